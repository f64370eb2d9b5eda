"""Would the best attention attend to larger β? Appendix A.1 of the second paper, and equation 12."""

from collections.abc import Iterable
from functools import reduce
from operator import getitem
from typing import Literal

import torch

from attnlib.probes.optimal_attention import optimal_attention
from companion.data import labelled_sets, parallel
from companion.results.config import AboveZero, BaseConfig, NotNegative, Positive
from companion.results.measurements import Measurement, answers, measurements_of
from companion.runs.procedure import RunSpec
from companion.runs.store import Store
from notebooks.learn.optimal_attention.measure import (
    measure_classifier_identity,
    measure_optimal_attention,
    measure_probe_identity,
)
from notebooks.shared.agreement import measure_translation
from notebooks.shared.intervals import Point, over_seeds, paired
from notebooks.shared.locality import probability_of_right_label

PLACE = "Snell et al. 2021, appendix A.1, equations 27-37; section 3.3, equation 12"
QUESTION = "Does the attention that minimises the loss attend to the positions with larger β?"
FORMS = ("summed", "joined")  # equation 32, and equation 2
BY_RULE = {"translation": "known_lexicon", "classification": "known_polarity"}
COUNTEREXAMPLE = ((0.0, 0.0, 0.0), (0.0, -10.0, 5.0), (0.0, 5.0, -10.0))  # γ of each position, equation 30


class Config(BaseConfig):
    """Settings.

    Attributes:
        seeds: networks of each kind.
        dataset: of the translation models, such as known_lexicon, multi30k_en_de.
        texts: of the classifiers, such as known_polarity, sst.
        absent: where Multi30k or SST is not on this machine: by_rule takes a set made by rule, stop stops.
        train_pairs: sentence pairs to train on; 0 for all.
        n_validation: pairs they are judged on; 0 for all.
        pieces: size of their vocabulary.
        width: of their states and embeddings.
        learning_rate: of Adam.
        steps: updates of the translation models.
        samples: of the pairs judged, those whose best attention is sought; 0 for all.
        probed_training: training pairs that the main model is judged on too; 0 for none. In this, as in all
            else, its networks are those of the agreement tables, which are trained once for both.
        train_texts: labelled texts to train on; 0 for all.
        validation_texts: labelled texts to judge on; 0 for all.
        classifier_width: of words, and of the state of one direction; 0 for the paper's.
        classifier_steps: updates of the classifiers.
    """

    seeds: Positive = 3
    dataset: str = "multi30k_en_de"
    texts: str = "sst"
    absent: Literal["by_rule", "stop"] = "by_rule"
    train_pairs: NotNegative = 2_000
    n_validation: NotNegative = 40
    pieces: Positive = 1_000
    width: Positive = 64
    learning_rate: AboveZero = 3e-3
    steps: Positive = 400
    samples: NotNegative = 0
    probed_training: NotNegative = 0
    train_texts: NotNegative = 2_000
    validation_texts: NotNegative = 150
    classifier_width: NotNegative = 64
    classifier_steps: Positive = 200


PROFILES = {
    "quick": Config(),
    "paper": Config(
        absent="stop",
        train_pairs=0,
        n_validation=0,
        pieces=8_000,
        width=256,
        learning_rate=1e-3,
        steps=36_250,
        probed_training=1_014,
        train_texts=0,
        validation_texts=0,
        classifier_width=0,
        classifier_steps=4_000,
    ),
}


def data_of(config: Config) -> dict[str, str]:
    """Names of the sets that are taken: for ``translation``, and for ``classification``."""
    named = {
        "translation": (config.dataset, Config.dataset, parallel.available),
        "classification": (config.texts, Config.texts, labelled_sets.available),
    }
    return {
        kind: BY_RULE[kind] if config.absent == "by_rule" and name == usual and not available(name) else name
        for kind, (name, usual, available) in named.items()
    }


def measurements(config: Config) -> tuple[Measurement, ...]:
    of_forms = [one for form in FORMS for asked in _of_form(config, form) for one in asked]
    return (*of_forms, *_optima(config), *_classifiers(config))


def _translators(config: Config, form: str) -> tuple[RunSpec, ...]:
    names = ("width", "learning_rate", "steps", "n_validation", "pieces")
    settings: dict = {name: getattr(config, name) for name in names}
    settings |= {"dataset": data_of(config)["translation"], "n_train": config.train_pairs}
    if form == "joined":
        settings |= {"saliency": True, "probed_training": config.probed_training}
    return tuple(
        RunSpec.of("translation", form=form, keep_network=True, seed=seed, **settings)
        for seed in range(config.seeds)
    )


def _of_form(config: Config, form: str) -> tuple[tuple[Measurement, ...], ...]:
    """Of each network of a form: how good it is, and what the identities leave."""
    specs = _translators(config, form)
    identities = measurements_of(specs, measure_probe_identity, samples=config.samples)
    return measurements_of(specs, measure_translation), identities


def _optima(config: Config) -> tuple[Measurement, ...]:
    """Each network of the summed form; beside it the next, where there is another, and the main model's next.

    Runs of one seed read in the same order, and agree for that alone.
    """
    specs, main = (_translators(config, form) for form in FORMS)
    found = []
    for spec, other, of_main in zip(specs, (*specs[1:], specs[0]), (*main[1:], main[0]), strict=True):
        beside = (of_main,) if other == spec else (other, of_main)
        found.append(Measurement(spec, measure_optimal_attention, (("samples", config.samples),), beside))
    return tuple(found)


def _classifiers(config: Config) -> tuple[Measurement, ...]:
    settings: dict = {
        "data": data_of(config)["classification"],
        "n_train": config.train_texts,
        "n_validation": config.validation_texts,
        "learning_rate": config.learning_rate,
        "steps": config.classifier_steps,
    }
    if width := config.classifier_width:
        settings |= {"embedding_width": width, "width": width}
    specs = (RunSpec.of("classification", seed=seed, **settings) for seed in range(config.seeds))
    return measurements_of(specs, measure_classifier_identity)


def counterexample() -> dict[str, float]:
    """Equations 29-31 worked: the right word is the first of three, its logit 0 from every position.

    β and α^opt of each position; the probability of the right word under α^opt (``right``), by equation 12
    from β of the right word alone (``from_right_word``), and with all attention on the ``first_alone``.
    """
    logits = torch.tensor(COUNTEREXAMPLE, dtype=torch.float64)
    one, masks = torch.zeros(1, 1, dtype=torch.long), (torch.ones(1, 3).bool(), torch.ones(1, 1).bool())
    found = optimal_attention(logits[None], torch.zeros(1, 1, 3), one, *masks)
    probe, best = logits.softmax(-1)[:, 0], found.attention[0, 0]
    places = ("first", "second", "third")
    return {
        **{f"probe_{place}": float(value) for place, value in zip(places, probe, strict=True)},
        **{f"optimal_{place}": float(value) for place, value in zip(places, best, strict=True)},
        "right": float(found.log_likelihood.exp()),
        "from_right_word": float(probability_of_right_label(best, probe)),
        "first_alone": float(probe[0]),
    }


def compute(config: Config, store: Store) -> tuple[dict, dict[str, list[dict]]]:
    """The worked counterexample, α^opt of trained networks, both forms' quality, and the identities.

    ``difference`` is BLEU of summed less joined within a seed. All but largest values are intervals over
    seeds; the tables ``example`` and ``unused`` are of the first seed's.
    """
    asked = {form: [_by_seed(one, store) for one in _of_form(config, form)] for form in FORMS}
    found = {form: qualities for form, (qualities, _) in asked.items()}
    optima = _by_seed(_optima(config), store)
    values: dict = {"data": data_of(config), "counterexample": counterexample()}
    for form, (qualities, identities) in asked.items():
        values[form] = quality(qualities) | {"identity": identity(identities)}
    values["summed"] |= optimum(optima)
    values["difference"] = {name: paired(found["summed"], found["joined"], of) for name, of in BLEU.items()}
    values["residual"] = max((one["residual"] for _, one in optima), default=None)
    values["classifier"] = classifier(_by_seed(_classifiers(config), store))
    return values, {
        "networks": [
            name | {"form": form, "bleu": one["bleu"][-1], "agreement": one["learned_probe"]}
            for form in FORMS
            for name, one in found[form]
        ],
        "example": cells(optima[0][1]["example"] if optima else None),
        "unused": cells(optima[0][1]["unused_example"] if optima else None),
    }


def _by_seed(asked: Iterable[Measurement], store: Store) -> list[Point]:
    """Answers that the store knows or may make."""
    return [({"seed": name["seed"]}, found) for name, found in answers(asked, store)]


BLEU = {"bleu": lambda one: one["bleu"][-1], "best_bleu": lambda one: max(one["bleu"])}


def _intervals(points: list[Point], names: Iterable[str], *branch: str) -> dict[str, dict]:
    """Numbers of a branch of the answers as intervals over seeds."""
    own = [({}, reduce(getitem, branch, one)) for _, one in points]
    return {name: over_seeds(own, lambda one, n=name: one.get(n)) for name in names}


def _difference(points: list[Point], first: str, second: str, *branch: str) -> dict:
    own = [({}, reduce(getitem, branch, one)) for _, one in points]
    return over_seeds(own, lambda one: one[first] - one[second])


def quality(points: list[Point]) -> dict:
    """What :func:`~notebooks.shared.agreement.measure_translation` says of a form.

    Its agreements have ties counted; :func:`optimum` puts better ones in their place, ``recorded`` stays.
    """
    agreements = _intervals(points, ("learned_probe", "chance"))
    return {
        **{name: over_seeds(points, of) for name, of in BLEU.items()},
        **_intervals(points, ("accuracy", "loss")),
        "agreement": agreements,
        "recorded": agreements,
        "over_chance": {"learned_probe": _difference(points, "learned_probe", "chance")},
    }


def identity(points: list[Point]) -> dict:
    """Mean differences as intervals, the largest of all networks as a number."""
    return {
        name: _intervals(points, ("mean",), name)
        | {"largest": max((one[name]["largest"] for _, one in points), default=None)}
        for name in ("all_words", "right_word")
    }


OPTIMUM = {
    "agreement": ("learned_probe", "chance", "optimal_probe", "learned_optimal", "optimal_other_probe",
                  "optimal_main_probe", "steepest_probe", "steepest_other_probe", "steepest_main_probe"),
    "log_likelihood": ("uniform", "learned", "largest_probe", "optimal"),
    "largest_probe": ("weight", "unused", "lost"),
    "dependent": ("share", "optimal_probe", "learned_probe", "unused"),
}  # fmt: skip


def optimum(points: list[Point]) -> dict:
    """What is said of α^opt; agreement with its chance on the very samples it was sought for."""
    probes = ("optimal_probe", "learned_probe")
    return {
        **{branch: _intervals(points, names, branch) for branch, names in OPTIMUM.items()},
        "over_chance": {name: _difference(points, name, "chance", "agreement") for name in probes},
        "gain": _difference(points, "optimal", "learned", "log_likelihood"),
        "gain_of_learned": _difference(points, "learned", "uniform", "log_likelihood"),
        **_intervals(points, ("positions",)),
        "words": min((one["words"] for _, one in points), default=0),
    }


def classifier(points: list[Point]) -> dict:
    """Equation 12 over all checkpoints of all classifiers, and what they learned."""
    return {
        "deviation": max((one["deviation"] for _, one in points), default=None),
        "wrong": sum(one["wrong"] for _, one in points),
        "checkpoints": sum(len(one["steps"]) for _, one in points),
        "loss": over_seeds(points, lambda one: one["loss"][-1]),
        "accuracy": over_seeds(points, lambda one: one["accuracy"]),
    }


def cells(shown: dict | None) -> list[dict]:
    """A sentence's matrices, a row a pair of positions; none where there is no sentence."""
    if shown is None:
        return []
    right = {f"right_{name}": value for name, value in shown.get("right", {}).items()}
    return [
        {"target_position": s, "source_position": t, "target": target, "source": source}
        | {name: shown[name][s][t] for name in ("attention", "probe", "optimal")}
        | ({"says": shown["says"][t], "says_with": shown["says_with"][t]} | right if right else {})
        for s, target in enumerate(shown["target"])
        for t, source in enumerate(shown["source"])
    ]

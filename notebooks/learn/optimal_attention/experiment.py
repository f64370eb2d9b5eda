"""Would the best attention attend to larger β? Appendix A.1 of the second paper, and equation 12."""

from functools import reduce
from typing import Literal

import torch
from jaxtyping import Float
from torch import Tensor

from attnlib.errors import BadInput
from attnlib.probes.optimal_attention import optimal_attention
from companion.data import labelled_sets, parallel
from companion.results.config import AboveZero, BaseConfig, NotNegative, Positive
from companion.results.measurements import Measurement, answers
from companion.runs.procedure import RunSpec
from companion.runs.store import Store
from notebooks.learn.optimal_attention import measure
from notebooks.shared.agreement import measure_translation
from notebooks.shared.intervals import Point, interval_of, nested, over_seeds, paired
from notebooks.shared.plan import Plan, asked, each_seed, plan_of, settings_of
from notebooks.shared.summaries import less

FORMS = ("summed", "joined")  # equation 32, and equation 2
BY_RULE = {"translation": "known_lexicon", "classification": "known_polarity"}
COUNTEREXAMPLE = ((0.0, 0.0, 0.0), (0.0, -10.0, 5.0), (0.0, 5.0, -10.0))  # γ of each position, equation 30


class Config(BaseConfig):
    seeds: Positive = 3  #: networks of each kind
    dataset: str = "multi30k_en_de"  #: of the translation models, such as known_lexicon, multi30k_en_de
    texts: str = "sst"  #: of the classifiers, such as known_polarity, sst
    #: where Multi30k or SST is not on this machine: by_rule takes a set made by rule, stop stops
    absent: Literal["by_rule", "stop"] = "by_rule"
    train_pairs: NotNegative = 2_000  #: sentence pairs to train on; 0 for all
    n_validation: NotNegative = 40  #: pairs they are judged on; 0 for all
    pieces: Positive = 1_000  #: size of their vocabulary
    width: Positive = 64  #: of their states and embeddings
    learning_rate: AboveZero = 3e-3  #: of Adam
    steps: Positive = 260  #: updates of the translation models
    samples: NotNegative = 0  #: of the pairs judged, those whose best attention is sought; 0 for all
    #: training pairs that the main model is judged on too; 0 for none. In this, as in all else, its networks
    #: are those of the agreement tables, which are trained once for both.
    probed_training: NotNegative = 0
    train_texts: NotNegative = 2_000  #: labelled texts to train on; 0 for all
    validation_texts: NotNegative = 150  #: labelled texts to judge on; 0 for all
    classifier_width: NotNegative = 64  #: of words, and of the state of one direction; 0 for the paper's
    classifier_steps: Positive = 200  #: updates of the classifiers


PROFILES = {
    "quick": Config(),
    "paper": Config(
        absent="stop", train_pairs=0, n_validation=0, pieces=8_000, width=256, learning_rate=1e-3,
        steps=36_250, probed_training=1_014, train_texts=0, validation_texts=0, classifier_width=0,
        classifier_steps=4_000,
    ),
}  # fmt: skip


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


def _translators(config: Config, form: str) -> tuple[RunSpec, ...]:
    settings = settings_of(config, "width", "learning_rate", "steps", "n_validation", "pieces")
    settings |= {"form": form, "keep_network": True}
    settings |= {"dataset": data_of(config)["translation"], "n_train": config.train_pairs}
    if form == "joined":
        settings |= {"saliency": True, "probed_training": config.probed_training}
    return each_seed(config.seeds, RunSpec.of, "translation", **settings)


def _plan(config: Config) -> tuple[Plan, Plan, Plan, Plan]:
    """By form quality and identity; α^opt of the summed form; identity of the classifiers.

    Beside a network of the summed form are the next, where there is another, and the main model's next.
    """
    networks = {form: _translators(config, form) for form in FORMS}
    others = (of[1:] + of[:1] for of in networks.values())
    optima = tuple(
        Measurement(
            spec, measure.measure_optimal_attention, (("samples", config.samples),), (*{own} - {spec}, main)
        )
        for spec, own, main in zip(networks["summed"], *others, strict=True)
    )
    texts: dict = {"data": data_of(config)["classification"], "n_train": config.train_texts}
    texts |= {"n_validation": config.validation_texts, "steps": config.classifier_steps}
    texts |= {"learning_rate": config.learning_rate}
    if width := config.classifier_width:
        texts |= {"embedding_width": width, "width": width}
    classifiers = {"classifier": each_seed(config.seeds, RunSpec.of, "classification", **texts)}
    return (
        plan_of(networks, measure_translation),
        plan_of(networks, measure.measure_probe_identity, samples=config.samples),
        {"summed": optima},
        plan_of(classifiers, measure.measure_classifier_identity),
    )


measurements = asked(_plan)


ByPosition, Rows = Float[Tensor, "*rows length"], Float[Tensor, "*rows"]


def probability_of_right_label(attention: ByPosition, probe: ByPosition) -> Rows:
    """The prediction from probe and attention alone, equation 12: σ( Σ_l α_l σ⁻¹(β_l) ).

    An identity for classifiers whose readout of the context is linear: log odds average with the attention.
    """
    attended = attention > 0
    if bool((((probe <= 0) | (probe >= 1)) & attended).any()):
        raise BadInput(
            "β is 0 or 1 at an attended position; its log odds are infinite: use log odds directly"
        )
    return (attention * torch.logit(probe.where(attended, 0.5))).sum(-1).sigmoid()


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
        **{f"probe_{place}": value for place, value in zip(places, probe.tolist(), strict=True)},
        **{f"optimal_{place}": value for place, value in zip(places, best.tolist(), strict=True)},
        "right": float(found.log_likelihood.exp()),
        "from_right_word": float(probability_of_right_label(best, probe)),
        "first_alone": float(probe[0]),
    }


def compute(config: Config, store: Store) -> tuple[dict, dict[str, list[dict]]]:
    """The worked counterexample, α^opt of trained networks, both forms' quality, and the identities.

    ``difference`` is BLEU of summed less joined within a seed. All but largest values are intervals over
    seeds; the tables ``example`` and ``unused`` are of the first seed's.
    """
    qualities, identities, best, classifiers = (
        {group: answers(own, store) for group, own in plan.items()} for plan in _plan(config)
    )
    optima = best["summed"]
    values: dict = {"data": data_of(config), "counterexample": counterexample()}
    for form, points in qualities.items():
        values[form] = intervals(points, QUALITY) | {n: over_seeds(points, of) for n, of in BLEU.items()}
        values[form]["identity"] = identity(identities[form])
    values["summed"] |= intervals(optima, OPTIMUM)
    values["summed"]["words"] = min((one["words"] for _, one in optima), default=0)
    values["difference"] = {name: paired(*qualities.values(), of) for name, of in BLEU.items()}
    values["residual"] = max((one["residual"] for _, one in optima), default=None)
    values["classifier"] = classifier(classifiers["classifier"])
    return values, {
        "networks": [
            {"seed": name["seed"], "form": form, "bleu": one["bleu"][-1], "agreement": one["learned_probe"]}
            for form, points in qualities.items()
            for name, one in points
        ],
        "example": cells(optima[0][1]["example"] if optima else None),
        "unused": cells(optima[0][1]["unused_example"] if optima else None),
    }


BLEU = {"bleu": lambda one: one["bleu"][-1], "best_bleu": lambda one: max(one["bleu"])}
# By name of a number where it is in an answer, and what it is less. In what measure_translation says of a
# form, ties are counted; agreements of the optimum come in place of these, ``recorded`` stays.
QUALITY = {
    "accuracy": ("accuracy",),
    "loss": ("loss",),
    "over_chance.learned_probe": ("learned_probe", "chance"),
}
QUALITY |= {f"{of}.{n}": (n,) for of in ("agreement", "recorded") for n in ("learned_probe", "chance")}
OPTIMUM = {name: (name,) for name in (
    *(f"agreement.{name}" for name in ("learned_probe", "chance", "optimal_probe", "learned_optimal")),
    *(f"agreement.{at}_{probe}" for at in ("optimal", "steepest") for probe in ("other_probe", "main_probe")),
    *(f"log_likelihood.{name}" for name in ("uniform", "learned", "largest_probe", "optimal")),
    *(f"largest_probe.{name}" for name in ("weight", "unused", "lost")),
    *(f"dependent.{name}" for name in ("share", "optimal_probe", "learned_probe", "unused")),
    "agreement.steepest_probe", "positions",
)}  # fmt: skip
OPTIMUM |= {
    "over_chance.optimal_probe": ("agreement.optimal_probe", "agreement.chance"),  # on the very same samples
    "over_chance.learned_probe": ("agreement.learned_probe", "agreement.chance"),
    "gain": ("log_likelihood.optimal", "log_likelihood.learned"),
    "gain_of_learned": ("log_likelihood.learned", "log_likelihood.uniform"),
}


def intervals(points: list[Point], numbers: dict[str, tuple[str, ...]]) -> dict:
    """Intervals over seeds, nested by the dots of their names."""
    found = {}
    for name, paths in numbers.items():
        read = [[reduce(dict.get, path.split("."), one) for path in paths] for _, one in points]
        found[(*name.split("."),)] = interval_of(own[0] if len(own) == 1 else less(*own) for own in read)
    return nested(found)


def identity(points: list[Point]) -> dict:
    """Mean differences as intervals, the largest of all networks as a number."""
    return {
        name: intervals([(seed, one[name]) for seed, one in points], {"mean": ("mean",)})
        | {"largest": max((one[name]["largest"] for _, one in points), default=None)}
        for name in ("all_words", "right_word")
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

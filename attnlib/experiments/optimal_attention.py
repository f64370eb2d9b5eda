"""Would the best attention attend to larger β? Appendix A.1 of the second paper, and equation 12."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING

import torch

from attnlib.errors import BadInput
from attnlib.experiments.aggregate import Point
from attnlib.experiments.asks import Ask, answers, ask, specs_of
from attnlib.experiments.checks import check_counts
from attnlib.experiments.measures.optimal_attention import measure_optimal_attention
from attnlib.experiments.measures.probe_identity import measure_classifier_identity, measure_probe_identity
from attnlib.experiments.measures.recorded_translation import measure_translation
from attnlib.experiments.optimal_summaries import cells, classifier, difference, identity, optimum, quality
from attnlib.probes.locality import probability_of_right_label
from attnlib.probes.optimal_attention import optimal_attention
from attnlib.recipes.recipe import RecipeSpec

if TYPE_CHECKING:
    from attnlib.training.store import Store

PLACE = "Snell et al. 2021, appendix A.1, equations 27-37; section 3.3, equation 12"
QUESTION = "Does the attention that minimises the loss attend to the positions with larger β?"
FORMS = ("summed", "joined")  # equation 32, and equation 2
COUNTEREXAMPLE = ((0.0, 0.0, 0.0), (0.0, -10.0, 5.0), (0.0, 5.0, -10.0))  # γ of each position, equation 30


@dataclass(frozen=True)
class Config:
    """Settings.

    Attributes:
        seeds: networks of each kind.
        dataset: of the translation models; see :data:`attnlib.texts.translation.NAMES`.
        width, learning_rate, steps: theirs.
        n_validation: pairs that they are looked at on; 0 for all.
        samples: of these, pairs whose optimal attention is sought; 0 for all.
        probed_training: training pairs that the main model is looked at on as well, with saliency: what the
            agreement tables ask of it, so that both share its networks; 0 for neither.
        texts: of the classifiers; see :func:`attnlib.texts.labelled_sets.names`.
        classifier_width: of words, and of the state of one direction; 0 for the paper's.
        classifier_steps: updates of the classifiers.
    """

    seeds: int = 3
    dataset: str = "known_lexicon"
    width: int = 64
    learning_rate: float = 3e-3
    steps: int = 500
    n_validation: int = 100
    samples: int = 50
    probed_training: int = 0
    texts: str = "known_polarity"
    classifier_width: int = 24
    classifier_steps: int = 100

    def __post_init__(self) -> None:
        check_counts(self, "classifier_steps")
        for name in ("n_validation", "samples", "probed_training", "classifier_width"):
            if getattr(self, name) < 0:
                raise BadInput(f"{name} is {getattr(self, name)}; it must be 0 or more")


PROFILES = {
    "quick": Config(),
    "paper": Config(
        dataset="multi30k_en_de",
        width=256,
        learning_rate=1e-3,
        steps=36_250,
        n_validation=0,
        samples=0,
        probed_training=1_014,
        texts="sst",
        classifier_width=0,
        classifier_steps=4_000,
    ),
}


def asks(config: Config) -> tuple[Ask, ...]:
    """What it asks of each network."""
    of_forms = [one for form in FORMS for of in (_qualities, _identities) for one in of(config, form)]
    return (*of_forms, *_optima(config), *_classifiers(config))


def models(config: Config) -> tuple[RecipeSpec, ...]:
    """The runs that the experiment needs, each once."""
    return specs_of(asks(config))


def _translators(config: Config, form: str) -> tuple[RecipeSpec, ...]:
    settings: dict = {
        name: getattr(config, name) for name in ("dataset", "width", "learning_rate", "steps", "n_validation")
    }
    if form == "joined" and config.probed_training:
        settings |= {"saliency": True, "probed_training": config.probed_training}
    return tuple(
        RecipeSpec.of("translation", form=form, keep_network=True, seed=seed, **settings)
        for seed in range(config.seeds)
    )


def _qualities(config: Config, form: str) -> tuple[Ask, ...]:
    return ask(_translators(config, form), measure_translation)


def _identities(config: Config, form: str) -> tuple[Ask, ...]:
    return ask(_translators(config, form), measure_probe_identity, samples=config.samples)


def _optima(config: Config) -> tuple[Ask, ...]:
    """Each network of the summed form; beside it the next, where there is another, and the main model's next.

    Runs of one seed read in the same order, and agree for that alone.
    """
    specs, main = (_translators(config, form) for form in FORMS)
    return tuple(
        Ask(
            spec,
            measure_optimal_attention,
            (("samples", config.samples),),
            (*(other for other in [specs[after]] if other != spec), main[after]),
        )
        for spec, after in zip(specs, (*range(1, len(specs)), 0), strict=True)
    )


def _classifiers(config: Config) -> tuple[Ask, ...]:
    settings: dict = {"data": config.texts, "steps": config.classifier_steps}
    if config.classifier_width:
        width = config.classifier_width
        settings |= {"embedding_width": width, "width": width, "saliency": False}
    specs = (RecipeSpec.of("classification", seed=seed, **settings) for seed in range(config.seeds))
    return ask(specs, measure_classifier_identity)


def counterexample() -> dict[str, float]:
    """Equations 29-31 worked: the right word is the first of three, its logit 0 from every position.

    Returns:
        β and α^opt of the ``first``, ``second`` and ``third`` position; the probability of the right word
        under α^opt (``right``), by equation 12 from β of the right word alone (``from_right_word``), and with
        all attention on the ``first_alone``.
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


def compute(config: Config, store: "Store") -> tuple[dict, dict[str, list[dict]]]:
    """The worked counterexample, α^opt of trained networks, both forms' quality, and the identities.

    Returns:
        values ``counterexample`` (:func:`counterexample`); for each form ``bleu``, ``best_bleu`` (of all
        checkpoints), ``accuracy``, ``loss``, ``agreement``, ``over_chance`` and ``identity``; for
        ``summed`` further what :func:`measure_optimal_attention` says of α^opt, and its ``gain`` in nats a
        word; ``difference`` of summed less joined by seed; ``residual``, the largest; ``classifier``. All
        but plain largest values are intervals over seeds. Tables ``networks``, a row a network; ``example``
        and ``unused`` of the first seed's.
    """
    found = {form: _answered(_qualities(config, form), store) for form in FORMS}
    optima = _answered(_optima(config), store)
    values: dict = {"counterexample": counterexample()}
    for form in FORMS:
        identities = _answered(_identities(config, form), store)
        values[form] = quality(found[form]) | {"identity": identity(identities)}
    values["summed"] |= optimum(optima)
    values["difference"] = difference(found["summed"], found["joined"])
    values["residual"] = max((one["residual"] for _, one in optima), default=None)
    values["classifier"] = classifier(_answered(_classifiers(config), store))
    return values, {
        "networks": [
            name | {"form": form, "bleu": one["bleu"][-1], "agreement": one["learned_probe"]}
            for form in FORMS
            for name, one in found[form]
        ],
        "example": cells(optima[0][1]["example"] if optima else None),
        "unused": cells(optima[0][1]["unused_example"] if optima else None),
    }


def _answered(asked: Iterable[Ask], store: "Store") -> list[Point]:
    """Answers that the store knows or may make, named by seed."""
    return [({"seed": name["seed"]}, found) for name, found in answers(asked, store)]

"""Weight decay on some of the weights alone: which of them have to be penalised for residuals to go."""

from collections.abc import Iterator
from dataclasses import asdict

from companion.results.config import AboveZero, BaseConfig, Positive, Scale, Task, setting
from companion.results.frames import Table, frame, joined, keyed, view
from companion.results.measurements import Measurement, measurements_of
from companion.runs.columns import NETWORK, Column, share
from companion.runs.measure import measure
from companion.runs.procedure import Recording, RunSpec
from companion.runs.spec import ModelSpec
from companion.runs.store import Store
from companion.runs.suite import spec_of
from notebooks.attend.decayed_weights.penalties import PENALISED_ALONE, PENALTIES
from notebooks.shared.measure import measure_alignment_terms
from notebooks.shared.suite import outcomes
from notebooks.shared.summaries import differences, summarise


class Config(BaseConfig):
    """Settings; a network is a set of penalised weights × seed."""

    scale: Scale = setting(
        "quick", "set by the profile: which training settings and data sizes are used, quick or paper"
    )
    task: Task = setting("one_to_one", "task of the suite, by name")
    seeds: Positive = setting(1, "networks for each set of penalised weights, seeds 0 … seeds − 1")
    width: Positive | None = setting(None, "of states and embeddings; the plan's by default")
    steps: Positive | None = setting(None, "updates of every network; the plan's number by default")
    weight_decay: AboveZero = setting(1e-3, "L2 penalty, added to the gradient")
    fit_samples: Positive = setting(2_000, "training samples that the components are fitted on, at most")


PROFILES = {
    "quick": Config(),
    "paper": Config(scale="paper", seeds=5, weight_decay=3e-3, fit_samples=25_000),
    "tiny": Config(seeds=1, width=8, steps=3, fit_samples=100),
}


@measure(version=1)
def measure_terms_of_penalised(recording: Recording, fit_samples: int) -> dict:
    """What :func:`~notebooks.shared.measure.measure_alignment_terms` finds, of a recorded network."""
    from notebooks.attend.decayed_weights.trainings.selective_decay import trained_network

    return measure_alignment_terms(trained_network(recording), fit_samples)


PENALTY = {"penalised": Column("weights that the L2 penalty is on", categories=PENALTIES)}
OUTCOMES = {
    "no_residual": share(
        "similarity with the network's attention of that from the four terms without residual"
    ),
    "temporal_share": Column("covariance of the temporal term with the score, over the score's variance"),
    "residual_share": Column("the same of the five terms with a residual"),
    "accuracy": share("next words of held-out samples that are predicted correctly"),
}


def suite_networks(config: Config) -> dict[ModelSpec, dict[str, object]]:
    """Return the networks of the suite with weight decay on nothing or on everything, and their names."""
    levels = {"nothing": 0.0, "everything": config.weight_decay}
    return {
        _spec(config, seed, level): {"penalised": penalised, "seed": seed}
        for penalised, level in levels.items()
        for seed in range(config.seeds)
    }


def penalised_networks(config: Config) -> Iterator[RunSpec]:
    """Yield networks with the same settings and weight decay on some of their weights, seed by seed."""
    for seed in range(config.seeds):
        settings = asdict(_spec(config, seed, config.weight_decay))
        for penalised in PENALISED_ALONE:
            yield RunSpec.of("selective_decay", penalised=penalised, **settings)


def _spec(config: Config, seed: int, weight_decay: float) -> ModelSpec:
    changes = {name: getattr(config, name) for name in ("width", "steps") if getattr(config, name)}
    return spec_of(config.task, "AED", scale=config.scale, seed=seed, weight_decay=weight_decay, **changes)


def measurements(config: Config) -> tuple[Measurement, ...]:
    return (*_of_suite(config), *_of_penalised(config))


def _of_suite(config: Config) -> tuple[Measurement, ...]:
    specs = suite_networks(config)
    return measurements_of(specs, measure_alignment_terms, fit_samples=config.fit_samples)


def _of_penalised(config: Config) -> tuple[Measurement, ...]:
    specs = penalised_networks(config)
    return measurements_of(specs, measure_terms_of_penalised, fit_samples=config.fit_samples)


def compute(config: Config, store: Store) -> dict[str, Table]:
    """Return the networks, means by penalised weights, and what each penalty adds, seed by seed.

    ``effects`` are differences from the networks of the same seed with no penalty, ``less_everything`` from
    those with the penalty on everything.
    """
    suite = suite_networks(config)
    names = PENALTY | {"seed": NETWORK["seed"]}
    shown = {"records": outcomes, "columns": OUTCOMES, "names": names}
    networks = joined(
        [
            frame(_of_suite(config), store, columns_of=suite.__getitem__, **shown),
            frame(_of_penalised(config), store, **shown),
        ]
    )

    def compared_with(penalised: str) -> Table:
        others = networks.query("penalised != @penalised", penalised=penalised)
        those = networks.query("penalised == @penalised", penalised=penalised)
        return summarise(differences(others, those, OUTCOMES), list(PENALTY), OUTCOMES)

    return {
        "networks": networks,
        "estimates": summarise(networks, list(PENALTY), OUTCOMES),
        "effects": compared_with("nothing"),
        "less_everything": compared_with("everything"),
    }


def values(config: Config, tables: dict[str, Table]) -> dict:
    """Return estimates of each set of penalised weights, and differences from no penalty and from all."""
    return view(
        keyed(tables["estimates"], "{penalised}.{quantity}"),
        keyed(tables["effects"], "effects.{penalised}.{quantity}"),
        keyed(tables["less_everything"], "less_everything.{penalised}.{quantity}"),
    )

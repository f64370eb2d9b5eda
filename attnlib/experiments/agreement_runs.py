"""The runs behind a data set's row of the agreement tables, and what is asked of them together."""

from collections.abc import Callable
from dataclasses import dataclass, replace

from attnlib.experiments.asks import Ask
from attnlib.experiments.measures.agreement import measure_agreement, measure_course
from attnlib.experiments.measures.saliency_readings import measure_saliency_readings
from attnlib.experiments.measures.ties import measure_ties
from attnlib.recipes.recipe import RecipeSpec

# Columns of the tables that hold two kinds of run against each other: (first, second) run, u of the first and
# v of the second. The β of 𝒜(α, β) is that of a network with another seed, whose α gives ξ.
COLUMNS = {
    "alpha_beta_uf": ("normal", "uniform", "attention~probe"),
    "beta_uf_beta_px": ("proxy", "uniform", "probe~probe"),
    "delta_beta_uf": ("normal", "uniform", "saliency~probe"),
    "alpha_beta": ("normal", "normal", "attention~probe"),
    "alpha_alpha": ("normal", "normal", "attention~attention"),
    "alpha_alpha_frozen": ("normal", "alone", "attention~attention"),
}


@dataclass(frozen=True)
class Runs:
    """The runs on one data set, in the order of their seeds.

    Attributes:
        normal: networks that learn to attend; uniform: networks that never do; proxy: bags of words.
        alone: networks whose attention layer alone is trained; may be fewer.
    """

    normal: tuple[RecipeSpec, ...]
    uniform: tuple[RecipeSpec, ...]
    proxy: tuple[RecipeSpec, ...]
    alone: tuple[RecipeSpec, ...] = ()

    @property
    def specs(self) -> tuple[RecipeSpec, ...]:
        return (*self.normal, *self.uniform, *self.proxy, *self.alone)

    def pairs(self, column: str) -> tuple[tuple[RecipeSpec, RecipeSpec], ...]:
        """Every two runs of the column's kinds with different seeds, among the seeds that both kinds have.

        Runs of one seed start from the same parameters and read the data in the same order, whatever their
        kind, and agree for that alone.
        """
        first, second = (getattr(self, kind) for kind in COLUMNS[column][:2])
        shared = {run.seed for run in first} & {run.seed for run in second}
        return tuple(
            (one, other)
            for one in first
            for other in second
            if one.seed != other.seed and {one.seed, other.seed} <= shared
        )

    def asks(self) -> tuple[Ask, ...]:
        """What is asked of each run that is looked up in, and of each pair."""
        sides: dict[tuple[RecipeSpec, RecipeSpec], list[str]] = {}
        for column in COLUMNS:
            for pair in self.pairs(column):
                sides.setdefault(pair, []).append(COLUMNS[column][2])
        return (
            *(Ask(run, measure_course) for run in (*self.normal, *self.uniform, *self.alone)),
            *(
                Ask(first, measure_agreement, (("pairs", " ".join(wanted)),), (second,))
                for (first, second), wanted in sides.items()
            ),
        )

    def readings(self) -> tuple[Ask, ...]:
        """What is asked of each free translator and the uniform one of the next seed: Δ in three readings.

        A set of its own, since :meth:`asks` has one question to each two. Of classifiers nothing: see
        :mod:`attnlib.probes.saliency_readings`.
        """
        others = dict(zip(self.normal, (*self.uniform[1:], *self.uniform[:1]), strict=True))
        return tuple(
            Ask(run, measure_saliency_readings, (), (other,))
            for run, other in others.items()
            if run.recipe == "translation"
        )

    def ties(self) -> tuple[Ask, ...]:
        """What is asked of every two that a column holds against a translator's β: what its ties add.

        A set of its own, as :meth:`readings` is. Of texts nothing: their β is compared by its log odds, which
        do not end at 1.
        """
        sides: dict[tuple[RecipeSpec, RecipeSpec], list[str]] = {}
        for column, (_, _, both) in COLUMNS.items():
            side, looked_up = both.split("~")
            for pair in self.pairs(column) if looked_up == "probe" else ():
                if pair[1].recipe == "translation":
                    sides.setdefault(pair, []).append(side)
        return tuple(
            Ask(first, measure_ties, (("sides", " ".join(wanted)),), (second,))
            for (first, second), wanted in sides.items()
        )


def classifier_runs(seeds: int, frozen: int, shared: dict[str, object], width: int) -> Runs:
    """Runs on labelled texts; ``shared`` are settings of networks and proxies alike."""

    def network(**own: object) -> RecipeSpec:
        return RecipeSpec.of("classification", width=width, **shared, **own)

    runs = _runs(seeds, network, lambda seed: RecipeSpec.of("classifier_proxy", **shared, seed=seed))
    return replace(
        runs, alone=tuple(network(seed=seed, saliency=False, attention="alone") for seed in range(frozen))
    )


def translator_runs(seeds: int, shared: dict[str, object]) -> Runs:
    """Runs on sentence pairs; ``shared`` are settings of networks and proxies alike."""
    return _runs(
        seeds,
        lambda **own: RecipeSpec.of("translation", **shared, **own),
        lambda seed: RecipeSpec.of("translation_proxy", **shared, seed=seed),
        keep_network=True,  # so that the chapter on optimal attention shares those of Multi30k
    )


def _runs(
    seeds: int,
    network: Callable[..., RecipeSpec],
    proxy: Callable[[int], RecipeSpec],
    **of_normal: object,
) -> Runs:
    return Runs(
        tuple(network(seed=seed, saliency=True, **of_normal) for seed in range(seeds)),
        tuple(network(seed=seed, saliency=False, attention="uniform") for seed in range(seeds)),
        tuple(map(proxy, range(seeds))),
    )

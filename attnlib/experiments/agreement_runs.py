"""The runs behind a data set's row of the agreement tables, and what is asked of them together."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from itertools import permutations

from attnlib.experiments.asks import Ask
from attnlib.experiments.measures.agreement import measure_agreement
from attnlib.experiments.measures.course_quality import measure_quality
from attnlib.recipes.recipe import RecipeSpec

# Columns of the tables that hold two kinds of run against each other: (first, second) run, u of the first and
# v of the second. The β of 𝒜(α, β) is that of a network with another seed, whose α gives ξ.
COLUMNS = {
    "alpha_beta_uf": ("normal", "uniform", "attention~probe"),
    "beta_uf_beta_px": ("proxy", "uniform", "probe~probe"),
    "delta_beta_uf": ("normal", "uniform", "saliency~probe"),
    "alpha_beta": ("normal", "other", "attention~probe"),
    "alpha_alpha": ("normal", "other", "attention~attention"),
    "alpha_alpha_frozen": ("normal", "alone", "attention~attention"),
}


@dataclass(frozen=True)
class Runs:
    """The runs on one data set, in the order of their seeds; run i of each kind belong together.

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

    def pairs(self, kinds: tuple[str, str]) -> tuple[tuple[RecipeSpec, RecipeSpec], ...]:
        """Every pair of runs of these kinds that is compared, seed by seed of the first."""
        first, second = kinds
        if second == "other":
            return tuple(permutations(self.normal, 2))
        return tuple(zip(getattr(self, first), getattr(self, second), strict=False))

    def asks(self) -> tuple[Ask, ...]:
        """What is asked of each run, and of each pair."""
        together: dict[tuple[str, str], list[str]] = {}
        for first, second, sides in COLUMNS.values():
            together.setdefault((first, second), []).append(sides)
        return (
            *(Ask(spec, measure_quality) for spec in self.specs),
            *(
                Ask(first, measure_agreement, (("pairs", " ".join(sides)),), (second,))
                for kinds, sides in together.items()
                for first, second in self.pairs(kinds)
            ),
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
    )


def _runs(seeds: int, network: Callable[..., RecipeSpec], proxy: Callable[[int], RecipeSpec]) -> Runs:
    return Runs(
        tuple(network(seed=seed, saliency=True) for seed in range(seeds)),
        tuple(network(seed=seed, saliency=False, attention="uniform") for seed in range(seeds)),
        tuple(map(proxy, range(seeds))),
    )

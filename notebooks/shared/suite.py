"""The task suite, from one fixed diagonal to attention that depends on the sample, and the models on it."""

import sys
from collections.abc import Iterable
from dataclasses import replace
from itertools import product
from pathlib import Path

from attnlib.models.config import Cell
from companion import paths
from companion.data.words import TokenizerName
from companion.results import config as settings
from companion.results.config import AboveZero, Attending, BaseConfig, Positive, Scale, Task, setting
from companion.results.frames import Table, frame
from companion.results.measurements import Measurement, measurements_of
from companion.runs.columns import NETWORK, Column, share
from companion.runs.spec import ModelSpec
from companion.runs.store import Store
from companion.runs.suite import point, seeds_of, spec_of
from notebooks.shared.dial import DIAL
from notebooks.shared.families import family
from notebooks.shared.intervals import kind
from notebooks.shared.measure import measure_alignment_terms

# One fixed order, one that words decide, and two in which attention depends on the sample.
QUICK_TASKS = ("one_to_one", "reordering_50", "scan", "multi30k_en_fr")
TRANSLATIONS = ("multi30k_en_fr", "multi30k_en_de", "tatoeba_en_fr")
CELL_TASKS = (
    "one_to_one",
    "reversal",
    "reordering_50",
    "scan",
)  # on which cells other than the GRU are trained
PAPER_TASKS = ("one_to_one", "permutation", "reversal", *DIAL, "scan", "scan_extended", *TRANSLATIONS)


class PlannedConfig(BaseConfig):
    """Settings of models that the task suite plans."""

    scale: Scale = setting(
        "quick", "set by the profile: which training settings and data sizes are used, quick or paper"
    )
    task: tuple[Task, ...] = setting(QUICK_TASKS, "tasks of the suite, by name")
    seeds: Positive | None = setting(
        None, "models of each kind, seeds 0 … seeds − 1; the plan's number by default"
    )
    width: Positive | None = setting(None, "of states and embeddings; the plan's by default")
    steps: Positive | None = setting(None, "updates of every model; the plan's number by default")
    fit_samples: Positive = setting(2_000, "training samples that the components are fitted on, at most")


class FilesConfig(PlannedConfig):
    """The same, of tasks or of two files of the reader's own."""

    source: Path | None = setting(
        None, "text file of your own, one sentence a line, as the task. Needs target"
    )
    target: Path | None = setting(None, "the same sentences in the other language, line by line")
    tokenizer: TokenizerName | None = setting(
        None,
        "how your text becomes words: words, spaces, unicode, characters or sentencepiece; words by default",
    )

    def check(self) -> None:
        self.take_files("task")
        settings.check_width(self)

    def take_files(self, *names: str) -> None:
        """Makes files the one task of these fields; nobody has asked for the tasks that a profile has."""
        profiles = getattr(sys.modules[self.__module__], "PROFILES", {})  # not there yet while it is made
        usual = [profiles[name] for name in paths.PROFILES if name in profiles]
        settings.take_files(self, **{name: {getattr(profile, name) for profile in usual} for name in names})


class SuiteConfig(FilesConfig):
    """Settings of an experiment over the task suite. A point is a task × architecture × cell × seed."""

    architecture: tuple[Attending, ...] = setting(
        ("AED", "AO"), "AED, recurrent with attention, or AO, attention only. VED has no attention to analyse"
    )
    cell: tuple[Cell, ...] = setting(("gru",), "recurrence of AED: gru, lstm, vanilla, ugrnn. AO has none")
    embedding_scale: AboveZero = setting(0.3, "standard deviation of the embeddings at the start of training")


PROFILES = {
    "quick": SuiteConfig(),
    "paper": SuiteConfig(task=PAPER_TASKS, scale="paper", fit_samples=25_000),
    "tiny": SuiteConfig(
        task=("one_to_one", "permutation", "reversal"), seeds=1, width=8, steps=3, fit_samples=100
    ),
}


def each_planned(
    config: BaseConfig, task: str, architecture: str, seeds: int | None = None, **changes: object
) -> tuple[ModelSpec, ...]:
    """The models of one kind in the order of their seeds: as many as asked for, as set, or as planned."""
    count, kind = seeds or config.seeds, {"cell": "gru", **settings.changes_of(config), **changes}
    chosen = range(count) if count else seeds_of(config.scale, task, architecture, kind["cell"])
    return tuple(spec_of(task, architecture, scale=config.scale, seed=seed, **kind) for seed in chosen)


def model_specs(config: PlannedConfig) -> tuple[ModelSpec, ...]:
    """The models behind an experiment, each once, in the order of task, architecture, cell, seed."""
    changes = {"embedding_scale": config.embedding_scale} if hasattr(config, "embedding_scale") else {}
    kinds = product(config.task, config.architecture, config.cell)
    specs = (spec for *kind, cell in kinds for spec in each_planned(config, *kind, cell=cell, **changes))
    return tuple(dict.fromkeys(specs))


def model_specs_and_cells(config: SuiteConfig) -> tuple[ModelSpec, ...]:
    """The same, and recurrent networks of ``config.more_cells`` on the tasks ``config.cells_on``."""
    specs = model_specs(config)
    if config.source is None:
        specs += model_specs(
            replace(config, task=config.cells_on, architecture=("AED",), cell=config.more_cells)
        )
    return tuple(dict.fromkeys(specs))


def measurements(config: SuiteConfig) -> tuple[Measurement, ...]:
    """The nine terms and typicality of each model: what two chapters ask, and a third of these and more."""
    return measurements_of(model_specs(config), measure_alignment_terms, fit_samples=config.fit_samples)


BY_KIND = ["task", "kind"]  # columns that name a kind of network
SUITE = NETWORK | {"kind": Column("architecture, with the recurrent cell unless it is a GRU")}


def suite_frame(measurements: Iterable[Measurement], store: Store, **how: object) -> Table:
    """Return :func:`companion.results.frames.frame` of networks of the suite, with their kind."""

    def columns_of(spec: ModelSpec) -> dict[str, object]:
        named = point(spec)
        return named | {"kind": kind(named)}

    return frame(measurements, store, columns_of=columns_of, **({"names": SUITE} | how))


FAMILY = {"family": Column("task, or the family of those that differ by a setting or by language")}
MARK = {"mark": Column("mark of the dial, from 0")}


def with_family(networks: Table) -> Table:
    """Return networks with a column that has the :func:`family` of their tasks."""
    return networks.assign(FAMILY, family=networks.frame["task"].map(family))


def on_dial(networks: Table) -> Table:
    """Return the networks that are trained on a mark of the dial, with a column that has the mark."""
    at_marks = networks.query("task in @dial", dial=DIAL)
    return at_marks.assign(MARK, mark=at_marks.frame["task"].map(DIAL.index))


PARTS_OF_STATES = {
    "temporal": "mean state at the position",
    "input": "mean deviation of the token's states",
    "residual": "what is left",
}
QUALITY = {
    "exact_match": share("held-out samples of which every next word is predicted correctly"),
    "loss": Column("cross-entropy of the next word in held-out samples", "nats a word", low=0),
    "token_accuracy": share("next words of held-out samples that are predicted correctly"),
}
OUTCOMES = {
    "typicality": share(
        "1 minus the mean total variation between a sample's attention and the average of others"
    ),
    "near_diagonal": share("attention within one position of the diagonal"),
    **QUALITY,
    "coverage": share("held-out samples in cells that are large enough for a typicality"),
}


def outcomes(terms: dict) -> dict[str, float | None]:
    """Numbers of one network, from what :func:`measure_alignment_terms` found; figures pick theirs."""
    shares, rebuilt = terms["covariance_share"], terms["substitution"]
    return {
        "accuracy": terms["quality"]["token_accuracy"],
        **terms["quality"],
        "typicality": terms["typicality"]["value"],
        "coverage": terms["typicality"]["coverage"],
        "near_diagonal": terms["near_diagonal"],
        "temporal_share": shares["temporal_temporal"],
        "input_share": shares["input_input"],
        "residual_share": sum(share for pair, share in shares.items() if "residual" in pair),
        "residual_residual": shares["residual_residual"],
        **{name: agreement["similarity"] for name, agreement in rebuilt.items()},
        **{f"{name}_argmax": agreement["argmax_agreement"] for name, agreement in rebuilt.items()},
    }

"""The first paper's networks built differently, and a SCAN near the diagonal that attention alone learns."""

from collections.abc import Callable, Collection, Iterable
from dataclasses import replace
from functools import partial
from typing import Annotated, Literal

import torch
from torch import Tensor, nn

from attnlib.models.corpus import Batch
from attnlib.models.encoder_decoder import EncoderDecoder
from attnlib.models.vocabulary import EOS
from attnlib.trace import Trace
from companion.results.config import Field, Task, setting
from companion.results.frames import Table, frame, keyed, view
from companion.results.measurements import Measurement, measurements_of
from companion.rounding import rounded
from companion.runs.columns import ARCHITECTURES, NETWORK, Column, share
from companion.runs.evaluate import evaluate, traces
from companion.runs.identity import Spec
from companion.runs.measure import measure
from companion.runs.procedure import Recording, RunSpec
from companion.runs.spec import ModelSpec
from companion.runs.store import Store, TrainedModel
from notebooks.attend.variants.names import KINDS, LONGER, PLAIN, VARIANT_MEANINGS
from notebooks.attend.variants.trainings.varied_encoder_decoder import (
    ARCHITECTURES_OF,
    load_task,
    recorded_network,
)
from notebooks.shared.measure import fit_components, measure_alignment_terms
from notebooks.shared.readings import READINGS, readings
from notebooks.shared.suite import OUTCOMES, PlannedConfig, each_planned, outcomes
from notebooks.shared.summaries import summarise
from notebooks.shared.temporal_peaks import OFFSETS, measure_temporal_offset
from notebooks.shared.translations import translations

PROCEDURE = "varied_encoder_decoder"
DIAL_TASK = "scan_lists"

Variant = Literal["context_readout", "gated", "learned_maps", "authors_defaults"]
Percent = Annotated[int, Field(ge=1, le=100)]
View = Callable[[Trace], Trace]


# What is measured of a variant is what is measured of the plain network, of states that attention sees.


class SeenThrough(nn.Module):
    """A network whose traces have other states, such as those that attention compares.

    Args:
        network: makes the traces.
        states_of: replaces the states of a trace.
    """

    def __init__(self, network: EncoderDecoder, states_of: View):
        super().__init__()
        self.network = network
        self.config, self.readout = network.config, network.readout
        self.states_of = states_of

    def forward(self, batch: Batch) -> Trace:
        """Return the trace of a batch with its states replaced."""
        return self.states_of(self.network(batch))


def as_compared(trace: Trace) -> Trace:
    """Return a trace whose states are the queries and keys of its attention.

    A linear map of a state is the sum of the maps of its parts. So parts of queries and keys are the mapped
    parts of the states, and their nine terms sum to the score.
    """
    (attention,) = trace.attentions
    return replace(trace, decoder_states=attention.queries[:, 0], encoder_states=attention.keys[:, 0])


def as_summed(trace: Trace) -> Trace:
    """Return a trace whose encoder states are the values of its attention, which the context sums."""
    (attention,) = trace.attentions
    return replace(trace, encoder_states=attention.values[:, 0])


def trained_network(recording: Recording, states_of: View) -> TrainedModel:
    """Return the network of a recording as the suite's measurements take it."""
    settings = recording.spec.resolved
    task, network = load_task(settings), recorded_network(recording)
    history = {"held_out": evaluate(network, task.held_out)}
    return TrainedModel(settings.spec, task, SeenThrough(network, states_of), history)


@measure(version=1)
def measure_compared_terms(recording: Recording, fit_samples: int) -> dict:
    """Measure the nine terms of queries and keys, as :func:`measure_alignment_terms` does of states."""
    return measure_alignment_terms(trained_network(recording, as_compared), fit_samples)


@measure(version=1)
def measure_compared_offset(recording: Recording, fit_samples: int) -> dict:
    """Measure where temporal parts of queries and keys peak, as :func:`measure_temporal_offset` does."""
    return measure_temporal_offset(trained_network(recording, as_compared), fit_samples)


VALUES_READ = {
    "values_read": share("source words whose value without its temporal part has its largest output at them"),
    "chance": share("one over the number of outputs"),
}


@measure(version=1, columns=VALUES_READ)
def measure_values_read(recording: Recording, fit_samples: int) -> dict:
    """Count how often W_C (v − μ) of a value is largest at the translation of its word, on held-out samples.

    Values are what the context sums, W_V h^E; μ is their mean at the position, fitted on training samples, so
    that v − μ = W_V (χ + Δ). Outputs are the words of training targets and the end mark.
    """
    trained = trained_network(recording, as_summed)
    task, model = trained.task, trained.model
    outputs = sorted({EOS, *task.train.target_ids.tolist()})
    rows = model.readout.weight.detach()[outputs, model.config.width :]  # (outputs, width)
    output_of = expected_outputs(translations(task)[0], outputs, len(task.source_vocabulary))
    fitted = fit_components(trained, fit_samples)
    right = words = 0
    for trace in traces(model, task.held_out):
        parts = fitted.encoder.split(trace.encoder_states, trace.source_tokens, trace.source_mask)
        expected = output_of[trace.source_tokens]  # (batch, source)
        judged = trace.source_mask & (expected >= 0)
        largest = ((parts.input + parts.residual) @ rows.T).argmax(-1)  # (batch, source)
        right += int((largest == expected)[judged].sum())
        words += int(judged.sum())
    return rounded({"values_read": right / words, "chance": 1 / len(outputs)})


def expected_outputs(expected: dict[int, int], outputs: list[int], words: int) -> Tensor:
    """Return the place among the outputs of each source word's translation; −1 for a word without one.

    >>> expected_outputs({1: 7, 2: 5}, [2, 5, 7], words=3).tolist()
    [-1, 2, 1]
    """
    places = torch.full((words,), -1)
    for word, translation in expected.items():
        if translation in outputs:
            places[word] = outputs.index(translation)
    return places


class Config(PlannedConfig):
    """Settings of the suite's plan; each variant is trained on each task."""

    task: tuple[Task, ...] = ("one_to_one",)
    variant: tuple[Variant, ...] = setting(
        ("context_readout", "gated", "learned_maps", "authors_defaults"),
        "what is built differently: context_readout, gated, learned_maps, authors_defaults",
    )
    longer: tuple[Variant, ...] = setting((), "variants that are trained for twice as many updates, too")
    further: tuple[Task, ...] = setting((), "further tasks of variants that attention only alone has")
    after: tuple[Percent, ...] = setting(
        (), "percent of SCAN lists that have 'after'; plain networks are also trained on lists without"
    )


PROFILES = {
    "quick": Config(seeds=1, variant=("context_readout", "gated", "learned_maps")),
    "paper": Config(
        scale="paper", seeds=3, fit_samples=25_000, longer=("authors_defaults",),
        further=(DIAL_TASK, "multi30k_en_fr"), after=(50,),
    ),
    "tiny": Config(
        seeds=1, longer=("authors_defaults",), after=(50,), width=8, steps=3, fit_samples=100,
    ),
}  # fmt: skip


def measurements(config: Config) -> tuple[Measurement, ...]:
    """Ask networks for their nine terms, peaks of temporal parts and what their values say."""
    return (*_terms(config), *_offsets(config), *_values(config))


def plain_specs(config: Config, tasks: Iterable[str]) -> tuple[ModelSpec, ...]:
    """Return the suite's networks on some tasks."""
    return tuple(
        spec
        for task in dict.fromkeys(tasks)
        for architecture in KINDS
        for spec in each_planned(config, task, architecture)
    )


def dial_specs(config: Config) -> tuple[ModelSpec, ...]:
    """Return plain networks on SCAN lists, at the marks of the dial but the first."""
    return tuple(
        spec
        for percent in config.after
        for architecture in KINDS
        for spec in each_planned(config, DIAL_TASK, architecture, task_options={"after": percent / 100})
    )


def varied_specs(config: Config) -> tuple[RunSpec, ...]:
    """Return the variants, each trained as the plain network of its task is planned; the longer ones last."""
    specs = []
    for variant in config.variant:
        further = config.further if ARCHITECTURES_OF[variant] == ("AO",) else ()
        for plain in plain_specs(config, (*config.task, *further)):
            if plain.architecture in ARCHITECTURES_OF[variant]:
                specs.append(varied_spec(plain, variant))
    return (*specs, *longer_specs(config))


def longer_specs(config: Config) -> tuple[RunSpec, ...]:
    """Return the variants that are trained for twice as many updates as the plain network."""
    return tuple(
        varied_spec(replace(plain, steps=2 * plain.steps), variant)
        for variant in config.longer
        for plain in plain_specs(config, config.task)
        if plain.architecture in ARCHITECTURES_OF[variant]
    )


def varied_spec(plain: ModelSpec, variant: str) -> RunSpec:
    """Return the run of a variant of a plain network, trained alike."""
    return RunSpec.of(
        PROCEDURE,
        seed=plain.seed,
        task=plain.task,
        options=plain.task_options,
        architecture=plain.architecture,
        variant=variant,
        width=plain.width,
        steps=plain.steps,
        batch_size=plain.batch_size,
        learning_rate=plain.learning_rate,
    )


def _terms(config: Config) -> tuple[Measurement, ...]:
    plain = (*plain_specs(config, (*config.task, DIAL_TASK, *config.further)), *dial_specs(config))
    settings = {"fit_samples": config.fit_samples}
    return (
        *measurements_of(plain, measure_alignment_terms, **settings),
        *measurements_of(varied_specs(config), measure_compared_terms, **settings),
    )


def _offsets(config: Config) -> tuple[Measurement, ...]:
    plain = plain_specs(config, (*config.task, *config.further))
    settings = {"fit_samples": config.fit_samples}
    return (
        *measurements_of(plain, measure_temporal_offset, **settings),
        *measurements_of(varied_specs(config), measure_compared_offset, **settings),
    )


def _values(config: Config) -> tuple[Measurement, ...]:
    with_maps = [spec for spec in varied_specs(config) if spec.resolved.variant == "learned_maps"]
    return measurements_of(with_maps, measure_values_read, fit_samples=config.fit_samples)


NAMES = {
    "task": Column("task; scan_lists_25 has 'after' in 25 of 100 lists"),
    "kind": Column("architecture", categories={kind: ARCHITECTURES[kind] for kind in KINDS}),
    "variant": Column("what is built differently", categories=VARIANT_MEANINGS),
    "seed": NETWORK["seed"],
}
BY_KIND = ["task", "kind", "variant"]
SHARES = ("temporal_own", "input_own", "input_delta_own", "temporal_input_delta")
NUMBERS = {
    "token_accuracy": OUTCOMES["token_accuracy"],
    "exact_match": OUTCOMES["exact_match"],
    "typicality": OUTCOMES["typicality"],
    "near_diagonal": OUTCOMES["near_diagonal"],
    **{name: READINGS[name] for name in SHARES},
    "no_residual": share("similarity of attention rebuilt from the four terms without a residual"),
}


def compute(config: Config, store: Store) -> dict[str, Table]:
    """Return numbers of each network, and their means by task, kind and variant."""
    how = {"names": NAMES, "columns_of": partial(names_of, longer=frozenset(longer_specs(config)))}
    networks = frame(_terms(config), store, records=_numbers, columns=NUMBERS, **how)
    offsets = frame(_offsets(config), store, columns=OFFSETS, **how)
    values_read = frame(_values(config), store, columns=VALUES_READ, **how)
    return {
        "networks": networks,
        "by_kind": summarise(networks, BY_KIND, NUMBERS),
        "offsets": offsets,
        "offsets_by_kind": summarise(offsets, BY_KIND, OFFSETS),
        "values_read": values_read,
        "values_by_kind": summarise(values_read, BY_KIND, VALUES_READ),
    }


def names_of(spec: Spec, longer: Collection[Spec] = ()) -> dict[str, object]:
    """Return the columns that name a network, plain or varied; ``longer`` have twice the updates."""
    if isinstance(spec, ModelSpec):
        task = spec.task
        percent = round(100 * float(dict(spec.task_options).get("after", 0)))
        if percent:
            task = f"{task}_{percent}"
        return {"task": task, "kind": spec.architecture, "variant": PLAIN, "seed": spec.seed}
    settings = spec.resolved
    return {
        "task": settings.task,
        "kind": settings.architecture,
        "variant": f"{settings.variant}{LONGER}" if spec in longer else settings.variant,
        "seed": settings.seed,
    }


def _numbers(terms: dict) -> dict[str, float | None]:
    return outcomes(terms) | readings(terms["covariance_share"])


def values(config: Config, tables: dict[str, Table]) -> dict:
    """Return numbers by task, kind and variant."""
    kind = "{task}.{kind}.{variant}."
    return view(
        keyed(tables["by_kind"], kind + "{quantity}"),
        keyed(tables["offsets_by_kind"], kind + "peaks.{quantity}"),
        keyed(tables["values_by_kind"], kind + "{quantity}"),
    )

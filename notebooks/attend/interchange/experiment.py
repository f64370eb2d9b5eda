"""Parts of states exchanged in the forward pass: do attention and output follow as the shares say?"""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import chain
from statistics import fmean
from typing import NamedTuple

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor

from attnlib.decomposition.components import STATE_PARTS
from attnlib.models.corpus import Corpus, collate
from attnlib.models.encoder_decoder import EncoderDecoder
from attnlib.trace import Trace
from companion.data import task as data
from companion.results.config import Positive, setting
from companion.results.frames import Table, joined, keyed, view
from companion.results.measurements import Measurement, measurements_of
from companion.rounding import rounded
from companion.runs.columns import NETWORK, Column, share
from companion.runs.measure import measure
from companion.runs.spec import ModelSpec
from companion.runs.store import Store, TrainedModel
from companion.runs.suite import task_name_of
from notebooks.attend.interchange.transplants import TRANSPLANTS
from notebooks.shared.intervals import interval_of
from notebooks.shared.measure import SIDES, Fitted, attend, fit_components, measure_alignment_terms
from notebooks.shared.readings import EFFECTS, effects_of_exchange, exchange_measurements, readings
from notebooks.shared.suite import (
    BY_KIND,
    DIAL,
    MARK,
    PAPER_TASKS,
    QUALITY,
    SUITE,
    SuiteConfig,
    each_planned,
    model_specs,
    on_dial,
    suite_frame,
    with_family,
)
from notebooks.shared.summaries import Bootstrap, correlations, differences, end_differences, summarise
from notebooks.shared.tasks import synthetic as rules
from notebooks.shared.translators import (
    LEARNED,
    translator_measurements,
    translators_that_count,
    with_learned,
)

LARGE = 0.3  # of the attention: an exchange that moves none of it costs nothing by construction

# The residual of the sentence with the other opening. Two sentences that differ in their first word alone
# have the same words at the same positions: temporal and input parts of their encoder states agree but for
# that word's. One opening lets the phrases stay, the other reverses them, and what a state at another word
# knows of it is in its residual. The network attends with the residual of one sentence put into the queries
# or the keys of the other.

OTHER_OPENING = dict(zip(rules.STAYING_OPENINGS, rules.REVERSING_OPENINGS, strict=True))
OTHER_OPENING |= {reversing: staying for staying, reversing in OTHER_OPENING.items()}
_BATCH = 256
Attention = Float[Tensor, "batch target source"]


@dataclass(frozen=True, eq=False)
class Twins:
    """Sentences, their twins with the other opening, and where in the source each target word comes from."""

    first: Corpus
    second: Corpus
    places: Int[np.ndarray, "2 twins target"]  # −1 beyond the words of the target

    def __len__(self) -> int:
        return len(self.first)


def twins_of(task: data.Task, samples: int) -> Twins:
    """Pair the first held-out ``samples`` with their twins.

    Another word has to signal the order as well, or a twin might be unlike any sentence of the training.
    """
    first: list[_Sentence] = []
    second: list[_Sentence] = []
    for sample in range(len(task.held_out)):
        words = task.source_vocabulary.decode(task.held_out.source(sample).tolist())
        if not set(words) & set(rules.SWAPPING_MODIFIERS):
            continue
        first.append(_Sentence.of(task, words))
        second.append(_Sentence.of(task, (OTHER_OPENING[words[0]], *words[1:])))
        if len(first) == samples:
            break
    longest = int(task.held_out.target_lengths.max())
    places = np.stack([_places(first, longest), _places(second, longest)])
    return Twins(_corpus_of(first), _corpus_of(second), places)


@dataclass(frozen=True, eq=False)
class _Sentence:
    """A sentence and its translation as ids, and the links between them."""

    source: np.ndarray
    target: np.ndarray
    links: data.Links

    @classmethod
    def of(cls, task: data.Task, words: Sequence[str]) -> "_Sentence":
        translation, links = rules.translate(words)
        return cls(task.source_vocabulary.encode(words), task.target_vocabulary.encode(translation), links)


def _corpus_of(sentences: list[_Sentence]) -> Corpus:
    return Corpus.from_ids(
        [sentence.source for sentence in sentences], [sentence.target for sentence in sentences]
    )


def _places(sentences: list[_Sentence], longest: int) -> Int[np.ndarray, "sentences target"]:
    """The source position that each target word comes from; −1 beyond the words of the target."""
    places = np.full((len(sentences), longest), -1)
    for row, sentence in enumerate(sentences):
        for place, step in sentence.links:
            places[row, step] = place
    return places


@measure(version=1)
def measure_transplant(trained: TrainedModel, fit_samples: int, samples: int) -> dict:
    """Where attention goes with the residual of the sentence with the other opening.

    Components are fitted on training samples. Judged are target words whose source position differs
    between the two sentences. By ``<transplant>``: ``own``, the share whose largest weight is where the
    sentence's order has it; ``other``, where its twin's order has it; ``variation``, mean total variation
    between rows before and after. ``none`` leaves states alone, ``keys`` and ``query`` put the twin's
    residuals into one side, ``both`` into both.
    """
    model, task = trained.model, trained.task
    device = model.readout.weight.device
    fitted = fit_components(trained, fit_samples)
    twins = twins_of(task, samples)
    sums = {name: TransplantSums() for name in TRANSPLANTS}
    with torch.inference_mode():
        for start in range(0, len(twins), _BATCH):
            chosen = range(start, min(start + _BATCH, len(twins)))
            first = model(collate(twins.first, chosen).to(device))
            second = model(collate(twins.second, chosen).to(device))
            steps = first.target_mask.shape[1]
            places = torch.from_numpy(twins.places[:, chosen, :]).to(device)
            padded = torch.nn.functional.pad(places, (0, steps), value=-1)
            first_places, second_places = padded[:, :, :steps]  # each (batch, target)
            attention = _transplanted(model, first, second, fitted)
            for name, rows in attention.items():
                sums[name].add(rows, attention["none"], first_places, second_places)
    shares = {name: of_transplant.shares() for name, of_transplant in sums.items()}
    return rounded({"pairs": len(twins), "words": sums["none"].words, **shares})


class TransplantSums:
    """Where the largest weights are with a transplant, added up over words whose position it may move."""

    def __init__(self) -> None:
        self.words = 0
        self.at_own = 0.0
        self.at_other = 0.0
        self.variation = 0.0

    def add(
        self, attention: Attention, before: Attention, places: Int[Tensor, "batch target"],
        twin_places: Int[Tensor, "batch target"],
    ) -> None:  # fmt: skip
        """Add a batch, with the positions of each target word in the order of either sentence."""
        judged = places != twin_places  # (batch, target)
        largest = attention.argmax(-1)
        variation = (attention - before).abs().sum(-1) / 2
        self.words += int(judged.sum())
        self.at_own += float((largest == places)[judged].double().sum())
        self.at_other += float((largest == twin_places)[judged].double().sum())
        self.variation += float(variation[judged].double().sum())

    def shares(self) -> dict[str, float]:
        """The means over words; NaN without any."""
        n = self.words or math.nan
        return {"own": self.at_own / n, "other": self.at_other / n, "variation": self.variation / n}


def _transplanted(model: EncoderDecoder, first: Trace, second: Trace, fitted: Fitted) -> dict[str, Attention]:
    """Return attention of the first sentences with residuals of the second, by transplant."""
    decoder, encoder = fitted.split(first)
    twin_decoder, twin_encoder = fitted.split(second)
    states = {"decoder": first.decoder_states, "encoder": first.encoder_states}
    query = {"decoder": first.decoder_states - decoder.residual + twin_decoder.residual}
    keys = {"encoder": first.encoder_states - encoder.residual + twin_encoder.residual}
    by_transplant = {
        "none": states,
        "keys": states | keys,
        "query": states | query,
        "both": states | query | keys,
    }
    attention = {}
    for name in TRANSPLANTS:
        attention[name], _ = attend(model, first, by_transplant[name])
    return attention


class Config(SuiteConfig):
    """Settings of the task suite, and how much is exchanged."""

    samples: Positive = setting(
        200, "held-out samples of each network in whose forward pass parts are exchanged, at most"
    )
    dial_seeds: Positive | None = setting(
        None, "recurrent networks along the dial, seeds 0 … n − 1; as many as of other tasks by default"
    )
    translated: Positive = setting(
        200, "held-out sentences that each translator writes, which tell whether it counts"
    )


QUICK_TASKS = ("one_to_one", "reordering_50", "scan")
PROFILES = {
    "quick": Config(task=QUICK_TASKS),
    "paper": Config(
        task=PAPER_TASKS,
        scale="paper",
        seeds=3,
        fit_samples=25_000,
        samples=1_500,
        dial_seeds=10,
        translated=1_000,
    ),
    "tiny": Config(
        task=("one_to_one", "reordering_50"),
        seeds=1,
        width=8,
        steps=3,
        fit_samples=100,
        samples=60,
        dial_seeds=2,
    ),
}


def measurements(config: Config) -> tuple[Measurement, ...]:
    dial = chain.from_iterable(_asked_along_dial(config))
    translators = translator_measurements(model_specs(config), config.translated)
    return tuple(dict.fromkeys((*_exchanges(config), *dial, *translators)))


def _exchanges(config: Config) -> tuple[Measurement, ...]:
    specs = model_specs(config)
    return (
        *measurements_of(specs, measure_alignment_terms, fit_samples=config.fit_samples),
        *exchange_measurements(specs, config.fit_samples, config.samples),
    )


class AlongDial(NamedTuple):
    """What is asked of recurrent networks at the marks of the dial among the tasks."""

    terms: tuple[Measurement, ...]
    exchange: tuple[Measurement, ...]
    transplant: tuple[Measurement, ...]


def _asked_along_dial(config: Config) -> AlongDial:
    specs: list[ModelSpec] = []
    for mark in _marks(config):
        specs += _recurrent(config, mark)
    turned = [spec for spec in specs if task_name_of(spec) != DIAL[0]]
    how = {"fit_samples": config.fit_samples, "samples": config.samples}
    return AlongDial(
        terms=measurements_of(specs, measure_alignment_terms, fit_samples=config.fit_samples),
        exchange=exchange_measurements(specs, **how),
        transplant=measurements_of(turned, measure_transplant, **how),
    )


def _marks(config: Config) -> tuple[str, ...]:
    return tuple(mark for mark in DIAL if mark in config.task and "AED" in config.architecture)


def _recurrent(config: Config, mark: str) -> tuple[ModelSpec, ...]:
    changes = {"cell": "gru", "embedding_scale": config.embedding_scale}
    return each_planned(config, mark, "AED", config.dial_seeds, **changes)


PART = {"part": Column("part of the states that is exchanged; state: all three")}
ACCURACY = {"accuracy": QUALITY["token_accuracy"]}
OF_PART = {
    "share": Column("covariance share of the product of this part with itself"),
    "split": Column("covariance shares of this part, mixed terms halved"),
    "moves": share("mean total variation of attention when the part is exchanged, in queries or in keys"),
    "costs": Column("word accuracy as trained, minus that with the part exchanged", low=-1, high=1),
}
WHOLE = "state"  # all three parts together, which have no share
NEXT_STEP = {
    "next_step.attention": share("rows whose largest weight is where the next row has it, with its clock"),
    "next_step.word": share("rows that write the word of the next row, with its clock"),
}
INTERVENTION = {
    "intervention": Column(
        "what is done to the part",
        categories={"exchanged": "that of another place is taken", "removed": "its mean is taken"},
    ),
    "side": Column("states that are changed", categories={"decoder": "queries", "encoder": "keys"}),
    **PART,
    "variation": share("mean total variation of attention from that of the states as they were"),
}
LEADS = {
    "query_temporal_minus_residual": Column("effect of temporal parts of queries minus that of residuals"),
    "keys_residual_minus_temporal": Column("effect of residuals of keys minus that of temporal parts"),
}
DIAL_ROW = {"task": SUITE["task"], "seed": SUITE["seed"], **MARK, **ACCURACY, **LEARNED, **EFFECTS}
TRANSPLANTED = {
    "own": Column("words whose largest weight is where the order of their sentence has it, as a share"),
    "other": Column("words whose largest weight is where the order of the other sentence has it, as a share"),
    "variation": share("mean total variation of attention from that without a transplant"),
}
TRANSPLANT = {
    "transplant": Column(
        "what gets residuals of the sentence with the other opening: none, keys, query, both"
    )
}
EXCHANGES = {
    "exchanges": Column(
        "exchanges that count: those of one part, of all parts, "
        f"or the large ones of all, which move more than {LARGE} of the attention"
    )
}
OVER_FAMILIES = Bootstrap(groups="family")
WITHIN_MARKS = Bootstrap(groups="task", draws_groups=False)


def compute(config: Config, store: Store) -> dict[str, Table]:
    """Compute effects by task and along the dial, and what they follow."""
    asked = _exchanges(config)
    effects = suite_frame(
        asked, store, records=_effects, columns=PART | QUALITY | OF_PART, row="a part of a network's states"
    )
    translators = translators_that_count(model_specs(config), config.translated, store)
    effects = with_learned(effects, translators).rename(token_accuracy="accuracy")
    networks = suite_frame(asked, store, records=_next_step, columns=ACCURACY | NEXT_STEP)
    interventions = suite_frame(
        asked, store, records=_interventions, columns=INTERVENTION, row="an intervention in a network"
    )
    of_parts = effects.query("part != @whole", whole=WHOLE)
    by_kind = summarise(effects, [*BY_KIND, *PART], OF_PART)
    intervened = [*BY_KIND, "intervention", "side", "part"]
    return {
        "effects": of_parts.select(*NETWORK, *PART, *ACCURACY, *LEARNED, *OF_PART),
        **_along_dial(config, store),
        "networks_by_kind": summarise(networks, BY_KIND, ACCURACY | NEXT_STEP),
        "effects_by_kind": by_kind.query("n > 0"),
        "interventions_by_kind": summarise(interventions, intervened, ["variation"]),
        "follows": follows(effects),
    }


def _effects(terms: dict, exchange: dict) -> Iterator[dict]:
    """Yield a record for each part of one network's states, and for all of them together."""
    shares = readings(terms["covariance_share"])
    for part in (*STATE_PARTS, WHOLE):
        on_either_side = [exchange["exchanged"][side][part] for side in SIDES]
        accuracy = fmean(effect["accuracy"] for effect in on_either_side)
        yield {
            "part": part,
            "token_accuracy": terms["quality"]["token_accuracy"],
            "share": shares.get(f"{part}_own"),
            "split": shares.get(f"{part}_split"),
            "moves": fmean(effect["variation"] for effect in on_either_side),
            "costs": exchange["accuracy"] - accuracy,
        }


def _next_step(terms: dict, exchange: dict) -> dict:
    return {"accuracy": terms["quality"]["token_accuracy"], "next_step": exchange["next_step"]}


def _interventions(terms: dict, exchange: dict) -> Iterator[dict]:
    for intervention in INTERVENTION["intervention"].categories:
        for side in SIDES:
            for part, effect in exchange[intervention][side].items():
                yield {
                    "intervention": intervention,
                    "side": side,
                    "part": part,
                    "variation": effect["variation"],
                }


def follows(effects: Table) -> Table:
    """Return rank correlations of how far attention moves, over networks that have learned their task.

    With the share of the exchanged part, part by part; with the accuracy that the exchange costs, over all
    parts together.
    """
    learned = with_family(effects.query("learned and part != @whole", whole=WHOLE))
    of_part = learned.assign(EXCHANGES, exchanges=learned.frame["part"])
    every = learned.assign(EXCHANGES, exchanges="all")
    large = learned.query("moves > @large", large=LARGE).assign(EXCHANGES, exchanges="large")
    how = {"by": ["exchanges"], "resampled": OVER_FAMILIES}
    return joined(
        [
            correlations(of_part, "moves", ["share", "split"], **how),
            correlations(every, "moves", ["costs"], **how),
            correlations(large, "moves", ["costs"], **how),
        ]
    )


def _along_dial(config: Config, store: Store) -> dict[str, Table]:
    """Compute effects of exchange and of transplants at every mark of the dial.

    Ranks and ends are of networks that have learned their task.
    """
    asked = _asked_along_dial(config)
    exchanges = suite_frame(
        (*asked.terms, *asked.exchange), store, records=_on_dial, columns=QUALITY | EFFECTS | LEADS
    )
    exchanges = on_dial(with_learned(exchanges, set()))
    transplants = suite_frame(
        asked.transplant,
        store,
        records=_transplants,
        columns=TRANSPLANT | TRANSPLANTED,
        row="a transplant in a network",
    )
    learned = exchanges.query("learned")
    lead = lead_of_keys(transplants)
    return {
        "dial": exchanges.rename(token_accuracy="accuracy").select(*DIAL_ROW),
        "exchanges_by_mark": summarise(exchanges, ["task"], [*EFFECTS, *LEADS, "token_accuracy"]),
        "dial_ranks": correlations(learned, "mark", EFFECTS, resampled=WITHIN_MARKS),
        "dial_ends": end_differences(learned, "mark", EFFECTS, resampled=WITHIN_MARKS),
        "transplants_by_mark": summarise(transplants, ["task", *TRANSPLANT], TRANSPLANTED),
        "lead_of_keys_by_mark": summarise(lead, ["task"], ["other"]),
    }


def _on_dial(terms: dict, exchange: dict) -> dict[str, float]:
    """Return effects in one network, and how far one part leads on either side."""
    effects = effects_of_exchange(exchange)
    return effects | {
        "query_temporal_minus_residual": effects["query_temporal"] - effects["query_residual"],
        "keys_residual_minus_temporal": effects["keys_residual"] - effects["keys_temporal"],
        "token_accuracy": terms["quality"]["token_accuracy"],
    }


def _transplants(measured: dict) -> list[dict]:
    return [{"transplant": transplant} | measured[transplant] for transplant in TRANSPLANTS]


def lead_of_keys(transplants: Table) -> Table:
    """Return how much oftener a network's keys than its queries turn attention to the other order."""
    keys = transplants.query("transplant == 'keys'")
    query = transplants.query("transplant == 'query'")
    return differences(keys, query, ["other"], on=["task", "seed"])


def values(config: Config, tables: dict[str, Table]) -> dict:
    """Return effects by task and along the dial, what they follow, and of how many networks that is.

    ``follows``: rank correlations of the attention moved, by part with the part's own share, under ``split``
    with its split share, under ``output`` with the accuracy that an exchange costs, and under
    ``output_of_large`` the same among large exchanges.
    """
    followed = tables["follows"]
    by_task = "by_task.{task}.{kind}"
    return view(
        _of_no_networks(),
        keyed(tables["networks_by_kind"], by_task + ".{quantity}"),
        keyed(tables["effects_by_kind"], by_task + ".{quantity}.{part}"),
        keyed(tables["interventions_by_kind"], by_task + ".{intervention}.{side}.{part}"),
        keyed(followed.query("quantity == 'share'"), "follows.{exchanges}"),
        keyed(followed.query("quantity == 'split'"), "follows.split.{exchanges}"),
        keyed(followed.query("exchanges == 'all'"), "follows.output"),
        keyed(followed.query("exchanges == 'large'"), "follows.output_of_large"),
        {"follows.networks": len(tables["effects"].query("learned").frame) // len(STATE_PARTS)},
        keyed(tables["exchanges_by_mark"], "dial.by_mark.{task}.{quantity}"),
        keyed(tables["dial_ranks"], "dial.rank.{quantity}"),
        keyed(tables["dial_ends"], "dial.ends.{quantity}"),
        keyed(tables["transplants_by_mark"], "dial.transplant.{task}.{transplant}.{quantity}"),
        keyed(tables["lead_of_keys_by_mark"], "dial.transplant.{task}.keys_minus_query"),
        _counts(tables["dial"].query("learned")),
    )


def _of_no_networks() -> dict[str, dict]:
    """Return what is at the keys of correlations and marks without a network."""
    unknown: dict[str, dict] = {"by_task": {}, "dial.by_mark": {}, "dial.transplant": {}}
    for part in STATE_PARTS:
        unknown[f"follows.{part}"] = interval_of()
        unknown[f"follows.split.{part}"] = interval_of()
    return unknown | {"follows.output": interval_of(), "follows.output_of_large": interval_of()}


def _counts(learned: Table) -> dict[str, int]:
    marks = learned.frame["mark"].nunique()
    return {"dial.marks": marks, "dial.networks": len(learned.frame)}

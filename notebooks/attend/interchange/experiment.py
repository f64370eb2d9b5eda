"""Parts of states exchanged in the forward pass: do attention and output follow as the shares say?"""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor

from attnlib.decomposition.components import STATE_PARTS
from attnlib.models.corpus import Corpus, collate
from companion.data import task as data
from companion.results.config import Positive
from companion.results.measurements import Measurement, answers, measurements_of
from companion.rounding import rounded
from companion.runs.measure import measure
from companion.runs.spec import ModelSpec
from companion.runs.store import Store, TrainedModel
from companion.runs.suite import point, task_name_of
from notebooks.attend.interchange.transplants import TRANSPLANTS
from notebooks.shared import tasks as rules
from notebooks.shared.intervals import by_kind, correlated, each_over_seeds, grouped, last_minus_first
from notebooks.shared.measure import SIDES, attend, fit_components, measure_alignment_terms
from notebooks.shared.plan import by_spec
from notebooks.shared.readings import effects_of_exchange, exchange_measurements, readings
from notebooks.shared.suite import DIAL, PAPER_TASKS, SuiteConfig, each_planned, family, model_specs
from notebooks.shared.summaries import summarised
from notebooks.shared.translators import has_learned, translator_measurements, translators_that_count

PARTS = ("temporal", "input", "residual")
LARGE = 0.3  # of the attention: an exchange that moves none of it costs nothing by construction

# The residual of the sentence with the other opening. Two sentences that differ in their first word alone
# have the same words at the same positions: temporal and input parts of their encoder states agree but for
# that word's. One opening lets the phrases stay, the other reverses them, and what a state at another word
# knows of it is in its residual. The network attends with the residual of one sentence put into the queries
# or the keys of the other.

OTHER_OPENING = dict(zip(rules.STAYING_OPENINGS, rules.REVERSING_OPENINGS, strict=True))
OTHER_OPENING |= {reversing: staying for staying, reversing in OTHER_OPENING.items()}
_BATCH = 256


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
    source, target = task.source_vocabulary, task.target_vocabulary
    pairs: list[tuple] = []
    for sample in range(len(task.held_out)):
        words = source.decode(task.held_out.source(sample).tolist())
        if not set(words) & set(rules.SWAPPING_MODIFIERS):
            continue
        twin = (OTHER_OPENING[words[0]], *words[1:])
        pairs.append(tuple(_encoded(sentence, source, target) for sentence in (words, twin)))
        if len(pairs) == samples:
            break
    corpora = []
    longest = int(task.held_out.target_lengths.max())
    places = np.full((2, len(pairs), longest), -1)
    for which, sentences in enumerate(zip(*pairs, strict=True)):
        corpora.append(Corpus.from_ids([ids for ids, _, _ in sentences], [ids for _, ids, _ in sentences]))
        for row, (_, _, links) in enumerate(sentences):
            for place, step in links:
                places[which, row, step] = place
    return Twins(*corpora, places)


def _encoded(words, source, target) -> tuple:
    """Ids of a sentence and of its translation, and the links between them."""
    translation, links = rules.translate(words)
    return source.encode(words), target.encode(translation), links


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
    sums = {name: torch.zeros(3, dtype=torch.float64) for name in TRANSPLANTS}
    words = 0
    with torch.inference_mode():
        for start in range(0, len(twins), _BATCH):
            chosen = range(start, min(start + _BATCH, len(twins)))
            first, second = (
                model(collate(corpus, chosen).to(device)) for corpus in (twins.first, twins.second)
            )
            steps = first.target_mask.shape[1]
            places = torch.from_numpy(twins.places[:, chosen, :]).to(device)
            places = torch.nn.functional.pad(places, (0, steps), value=-1)[:, :, :steps]  # (2, batch, target)
            judged = places[0] != places[1]  # (batch, target)
            words += int(judged.sum())
            attention = dict(_transplanted(model, first, second, fitted))
            for name, rows in attention.items():
                largest = rows.argmax(-1)
                own = (largest == places[0])[judged]
                other = (largest == places[1])[judged]
                moved = (rows - attention["none"]).abs().sum(-1)[judged] / 2
                sums[name] += torch.stack([part.double().sum().cpu() for part in (own, other, moved)])
    shares = {}
    for name, total in sums.items():
        own, other, variation = (total / words).tolist()
        shares[name] = {"own": own, "other": other, "variation": variation}
    return rounded({"pairs": len(twins), "words": words, **shares})


def _transplanted(model, first, second, fitted) -> Iterator[tuple[str, Float[Tensor, "batch target source"]]]:
    """Attention of the first sentences with residuals of the second, by transplant."""
    states = dict(zip(SIDES, (first.decoder_states, first.encoder_states), strict=True))
    parts, twin_parts = (dict(zip(SIDES, fitted.split(trace), strict=True)) for trace in (first, second))
    patched = {side: states[side] - parts[side].residual + twin_parts[side].residual for side in SIDES}
    sides = {"none": (), "keys": ("encoder",), "query": ("decoder",), "both": SIDES}
    for name in TRANSPLANTS:
        yield name, attend(model, first, states | {side: patched[side] for side in sides[name]})[0]


class Config(SuiteConfig):
    """Settings of the task suite, and how much is exchanged."""

    #: held-out samples of each network in whose forward pass parts are exchanged, at most
    samples: Positive = 200
    #: recurrent networks along the dial, seeds 0 … n − 1; as many as of other tasks by default
    dial_seeds: Positive | None = None
    #: held-out sentences that each translator writes, which tell whether it counts
    translated: Positive = 200


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
    dial = [measurement for asked in _along_dial(config).values() for measurement in asked]
    translators = translator_measurements(model_specs(config), config.translated)
    return tuple(dict.fromkeys((*_exchanges(config), *dial, *translators)))


def _exchanges(config: Config) -> tuple[Measurement, ...]:
    specs = model_specs(config)
    return (
        *measurements_of(specs, measure_alignment_terms, fit_samples=config.fit_samples),
        *exchange_measurements(specs, config.fit_samples, config.samples),
    )


def _along_dial(config: Config) -> dict[str, tuple[Measurement, ...]]:
    """What is asked of recurrent networks at the marks of the dial among the tasks, by what is asked."""
    specs = [spec for mark in _marks(config) for spec in _recurrent(config, mark)]
    turned = [spec for spec in specs if task_name_of(spec) != DIAL[0]]
    how = {"fit_samples": config.fit_samples, "samples": config.samples}
    return {
        "terms": measurements_of(specs, measure_alignment_terms, fit_samples=config.fit_samples),
        "exchange": exchange_measurements(specs, **how),
        "transplant": measurements_of(turned, measure_transplant, **how),
    }


def _marks(config: Config) -> tuple[str, ...]:
    return tuple(mark for mark in DIAL if mark in config.task and "AED" in config.architecture)


def _recurrent(config: Config, mark: str) -> tuple[ModelSpec, ...]:
    changes = {"cell": "gru", "embedding_scale": config.embedding_scale}
    return each_planned(config, mark, "AED", config.dial_seeds, **changes)


def compute(config: Config, store: Store) -> tuple[dict, dict[str, list[dict]]]:
    """Compute effects by task, along the dial, and what they follow.

    ``follows``: Spearman correlations over networks that learned their task, of a part's own share with what
    exchanging the part does to attention; ``split``, of its split share; ``output``, of the attention moved
    with the accuracy that it costs; ``output_of_large``, among exchanges that move more than ``LARGE`` of it.
    Intervals resample families of tasks.
    """
    found = by_spec(_exchanges(config), store)
    points = [(point(spec), effects(*both.values())) for spec, both in found.items()]
    counting = translators_that_count(model_specs(config), config.translated, store)
    rows = [
        {**name, "part": part, "accuracy": own["accuracy"]}
        | {"learned": has_learned(name, own["accuracy"], counting)}
        | {what: own[what][part] for what in ("share", "split", "moves", "costs")}
        for name, own in points
        for part in PARTS
    ]
    learned = [row | {"family": family(row["task"])} for row in rows if row["learned"]]
    of_part = {part: [row for row in learned if row["part"] == part] for part in PARTS}
    large = [row for row in learned if row["moves"] > LARGE]
    follows = {part: correlated(own, "share", "moves", by="family") for part, own in of_part.items()}
    follows |= {
        "split": {part: correlated(own, "split", "moves", by="family") for part, own in of_part.items()},
        "output": correlated(learned, "moves", "costs", by="family"),
        "output_of_large": correlated(large, "moves", "costs", by="family"),
        "networks": len(learned) // len(PARTS),
    }
    dial, dial_rows = along_dial(_along_dial(config), store)
    values = {"by_task": by_kind(points, each_over_seeds), "follows": follows, "dial": dial}
    return values, {"effects": rows, "dial": dial_rows}


def along_dial(asked: dict[str, tuple[Measurement, ...]], store: Store) -> tuple[dict, list[dict]]:
    """Effects of exchange and of transplants at every mark, and how they change along the dial.

    ``rank`` and ``ends`` are of networks that have learned their task: the rank correlation of an effect with
    the mark, and its mean at the last mark minus that at the first.
    """
    accuracy = {}
    for name, terms in answers(asked["terms"], store):
        accuracy[name["task"], name["seed"]] = terms["quality"]["token_accuracy"]
    points = []
    rows = []
    for name, exchange in answers(asked["exchange"], store):
        reached = accuracy[name["task"], name["seed"]]
        points.append((name, exchange | {"token_accuracy": reached}))
        row = {"task": name["task"], "seed": name["seed"], "mark": DIAL.index(name["task"])}
        row |= {"accuracy": reached, "learned": has_learned(name, reached, set())}
        rows.append(row | effects_of_exchange(exchange))
    learned = [row for row in rows if row["learned"]]
    columns = [f"{side}{part}" for side in ("", "query_", "keys_") for part in STATE_PARTS]
    rank = {column: correlated(learned, "mark", column, nested=False) for column in columns}
    ends = {column: correlated(learned, "mark", column, last_minus_first, nested=False) for column in columns}
    transplants = answers(asked["transplant"], store)
    values = {
        "marks": len({row["task"] for row in learned}),
        "networks": len(learned),
        "rank": rank,
        "ends": ends,
        "by_mark": summarised(grouped(points, "task"), of_exchange),
        "transplant": summarised(grouped(transplants, "task"), of_transplant),
    }
    return values, rows


def of_exchange(found: dict) -> dict[str, float]:
    """Effects in one network, how far one part leads on either side, and how many words it gets right."""
    effects = effects_of_exchange(found)
    return effects | {
        "query_temporal_minus_residual": effects["query_temporal"] - effects["query_residual"],
        "keys_residual_minus_temporal": effects["keys_residual"] - effects["keys_temporal"],
        "token_accuracy": found["token_accuracy"],
    }


def of_transplant(found: dict) -> dict:
    """Numbers of one network, and how much oftener keys than queries turn attention to the other order."""
    shares = {name: found[name] for name in TRANSPLANTS}
    return shares | {"keys_minus_query": found["keys"]["other"] - found["query"]["other"]}


def effects(terms: dict, found: dict) -> dict:
    """One network: a part's own and split share; how far its exchange moves attention; what it costs."""

    def both(part: str, what: str) -> float:
        return float(np.mean([found["exchanged"][side][part][what] for side in SIDES]))

    names, ways = (*PARTS, "state"), {"exchanged": (*PARTS, "state"), "removed": PARTS}
    return {
        "accuracy": terms["quality"]["token_accuracy"],
        "share": {part: terms["covariance_share"][f"{part}_{part}"] for part in PARTS},
        "split": {part: readings(terms["covariance_share"])[f"{part}_split"] for part in PARTS},
        "moves": {part: both(part, "variation") for part in names},
        "costs": {part: found["accuracy"] - both(part, "accuracy") for part in names},
        **{
            way: {side: {part: found[way][side][part]["variation"] for part in parts} for side in SIDES}
            for way, parts in ways.items()
        },
        "next_step": found["next_step"],
    }

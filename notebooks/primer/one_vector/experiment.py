"""Sequence to sequence with one vector: two ways to hand it over, and what a wrong word does to the rest."""

from dataclasses import replace
from itertools import product
from typing import Annotated

import numpy as np
import torch
from torch import Tensor

from attnlib.models.corpus import Batch, Corpus, collate, evaluation_batches
from attnlib.models.search import beam_search
from attnlib.models.sequence_to_sequence import NAMED
from attnlib.models.vocabulary import BOS, EOS, MARKS, PAD, Vocabulary
from companion.data import registry
from companion.results.config import BaseConfig, OneOf, Positive, setting
from companion.results.frames import Table, keyed, view
from companion.runs import registry as procedures
from companion.runs.columns import INTERVAL, Column, share
from companion.runs.measure import measure
from companion.runs.procedure import Recording, RunSpec
from companion.runs.store import Store
from notebooks.shared.bleu import bleu, bleu_counts
from notebooks.shared.measure import exact_matches
from notebooks.shared.plan import Plan, asked, each_seed, plan_frame, plan_of, settings_of
from notebooks.shared.sequence_course import judged_samples, load_task
from notebooks.shared.summaries import summarise

MOST_PLACES = 20  # of a sentence that a word is replaced at
BEAMS = 4
_BATCH = 128
_WRITTEN, _MEANT = "UNK", "UNSEEN"  # what stands for ``<unk>``: two words, or a missing one would be matched


@measure(version=1)
@torch.no_grad()
def measure_error_growth(recording: Recording, *, samples: int) -> dict:
    """Measure how one wrong word affects the words after it.

    Numbers by place use held-out sentences of one length, so that all places have the same sentences. At each
    place the network is given the correct words before it, then the correct word or another one, drawn
    uniformly, and goes on by itself.
    """
    settings = recording.spec.resolved
    task, judged = load_task(settings), judged_samples(settings)
    lengths = judged.target_lengths
    references = collate(judged, range(len(judged))).target_output
    written = recording["written"]
    teacher_forced = recording["right"][-1].bool().numpy()  # (sentences, places)
    free_running = _same(written, references).numpy()
    counted = np.arange(teacher_forced.shape[1]) <= lengths[:, None]  # words and the end mark

    length = fullest_length(lengths)
    of_length = np.flatnonzero(lengths == length)
    places = np.ix_(of_length, range(length + 1))
    without_error = np.logical_and.accumulate(free_running[places], axis=1)

    network = procedures.load(recording.spec.procedure).recorded_network(recording)
    exchanged = collate(judged, of_length[:samples])
    written_lengths = ((written != PAD) & (written != EOS)).sum(1).numpy()
    guessed = guessed_lengths(task.train, judged)
    by_beam = dict(recording.tensors) | {"written": beam_written(network, judged)}
    beams = replace(recording, tensors=by_beam)
    weights = [values for name, values in recording.tensors.items() if name.startswith("network.")]
    return {
        "length": length,
        "of_length": len(of_length),
        "teacher_forced": teacher_forced[places].mean(0).tolist(),
        "free_running": free_running[places].mean(0).tolist(),
        "so_far": without_error.mean(0).tolist(),
        "damage": damage(network, exchanged, words=len(task.target_vocabulary), seed=settings.seed),
        "token_accuracy": float(teacher_forced[counted].mean()),
        "own_accuracy": float(free_running[counted].mean()),
        "exact_match": float(exact_matches(recording, judged).mean()),
        "length_right": float((written_lengths == lengths).mean()),
        "bleu": written_bleu(recording),
        "beam": {"exact_match": float(exact_matches(beams, judged).mean()), "bleu": written_bleu(beams)},
        "length_guessed": float((guessed == lengths).mean()),
        "parameters": sum(values.numel() for values in weights),
    }


def fullest_length(lengths: np.ndarray) -> int:
    """Return the length whose sentences hold the most words in total; the shorter one in a tie."""
    counts = np.bincount(lengths)
    return int((counts * np.arange(len(counts))).argmax())


def guessed_lengths(train: Corpus, judged: Corpus) -> np.ndarray:
    """The commonest target length of sources as long, or of all where none is as long."""
    overall = _commonest(train.target_lengths)
    guesses = {}
    for length in np.unique(train.source_lengths).tolist():
        guesses[length] = _commonest(train.target_lengths[train.source_lengths == length])
    return np.array([guesses.get(length, overall) for length in judged.source_lengths.tolist()])


def _commonest(lengths: np.ndarray) -> int:
    return int(np.bincount(lengths).argmax())


def written_bleu(recording: Recording) -> float:
    """BLEU of what is written; a word that the vocabulary lacks is one that nothing matches."""
    settings = recording.spec.resolved
    vocabulary, judged = load_task(settings).target_vocabulary, judged_samples(settings)
    texts = []
    for row in recording["written"].numpy():
        is_word = (row != PAD) & (row != EOS)
        texts.append(_spelt(row[is_word], vocabulary, _WRITTEN))
    references = [_spelt(judged.target(i), vocabulary, _MEANT) for i in range(len(judged))]
    return bleu(bleu_counts(texts, references))


def _spelt(ids: np.ndarray, vocabulary: "Vocabulary", unknown: str) -> str:
    return " ".join(unknown if word in MARKS else word for word in vocabulary.decode(ids))


def beam_written(network: torch.nn.Module, corpus: Corpus) -> Tensor:
    most = 2 * int(corpus.target_lengths.max()) + 10
    rows = torch.full((len(corpus), most), PAD, dtype=torch.int32)
    for batch in evaluation_batches(corpus, _BATCH):
        written = beam_search(network, batch.source, batch.source_mask, max_steps=most, beams=BEAMS)
        words = written.words[:, 0]
        rows[batch.indices, : words.shape[1]] = words.to(torch.int32)
    return rows


def _same(written: Tensor, wanted: Tensor) -> Tensor:
    width = wanted.shape[1]
    missing = max(0, width - written.shape[1])
    padded = torch.nn.functional.pad(written[:, :width].long(), (0, missing), value=PAD)
    return padded == wanted


def damage(network: torch.nn.Module, batch: Batch, *, words: int, seed: int) -> list[dict]:
    """A row for each place after which a sentence goes on: ``words_after`` it, and the share wrong."""
    rows = []
    generator = torch.Generator().manual_seed(seed)
    right = batch.target_output
    for place in range(min(right.shape[1] - 1, MOST_PLACES)):
        drawn = torch.randint(words - len(MARKS) - 1, (len(right),), generator=generator) + len(MARKS)
        other = drawn + (drawn >= right[:, place])  # any word but the right one
        row = {"place": place + 1, "sentences": len(right), "words_after": right.shape[1] - place - 1}
        for name, word in (("wrong_after", other), ("wrong_after_right", right[:, place])):
            put = torch.cat([right[:, :place], word[:, None]], dim=1)  # (batch, place + 1)
            rest = right[:, place + 1 :]  # (batch, words after)
            written = continued(network, batch, put, steps=rest.shape[1])
            row[name] = float((written != rest).float().mean())
        rows.append(row)
    return rows


def continued(network: torch.nn.Module, batch: Batch, put: Tensor, *, steps: int) -> Tensor:
    """What the network writes by itself after the words ``put``; after its end, padding."""
    state = network.begin(batch.source, batch.source_mask)
    for word in (torch.full_like(put[:, 0], BOS), *put.unbind(1)):
        logits, state = network.write(word, state)
    running, written = torch.ones(len(put), dtype=torch.bool), []
    for _ in range(steps):
        logits[:, [PAD, BOS]] = -torch.inf
        word = torch.where(running, logits.argmax(-1), PAD)
        written.append(word)
        running &= word != EOS
        logits, state = network.write(word, state)
    return torch.stack(written, dim=1)


NETWORKS = {"cho": NAMED["cho"], "sutskever": NAMED["sutskever"]}
TEXT = {"max_words": 3_000, "max_length": 20}
OPTIONS = {"multi30k_en_fr": TEXT, "multi30k_en_de": TEXT}  # where the profile's sizes do not say it
WAYS = ("teacher_forced", "free_running", "so_far")


class Config(BaseConfig):
    """Settings; a network is a task × kind × seed."""

    task: tuple[Annotated[str, OneOf(registry.names())], ...] = setting(
        ("number_words",), "what they learn: number_words, dates, multi30k_en_fr, …"
    )
    network: tuple[Annotated[str, OneOf(NETWORKS)], ...] = setting(tuple(NETWORKS), "cho, sutskever")
    seeds: Positive = setting(3, "networks of each kind")
    digits: Positive = setting(3, "most digits of a number in number words")
    n_train: Positive = setting(750, "samples to train on, at most")
    judged: Positive = setting(180, "held-out samples")
    width: Positive = setting(64, "of states and embeddings")
    steps: Positive = setting(240, "updates in training")
    batch_size: Positive = setting(64, "samples an update")
    learning_rate: float = setting(6e-3, "of Adam")
    samples: Positive = setting(150, "held-out sentences of one length in which a word is replaced, at most")


PROFILES = {
    "quick": Config(),
    "paper": Config(
        task=("number_words", "dates", "multi30k_en_fr"), seeds=5, digits=7, n_train=20_000, judged=1_000,
        width=128, steps=4_000, learning_rate=2e-3, samples=500,
    ),
    "tiny": Config(
        task=("number_words", "dates"), seeds=2, digits=3, n_train=300, judged=60, width=8, steps=3,
        samples=20,
    ),
}  # fmt: skip


def _plan(config: Config) -> tuple[Plan]:
    shared = settings_of(config, "width", "steps", "batch_size", "learning_rate", "judged")
    shared |= {"snapshots": 1}  # only the end is measured
    groups = {}
    for task, network in product(config.task, config.network):
        options = {"n_train": config.n_train} | OPTIONS.get(task, {})
        if task == "number_words":
            options |= {"max_digits": config.digits, "n_held_out": config.judged}
        settings = {"task": task, "options": tuple(options.items()), **NETWORKS[network], **shared}
        groups[task, network] = each_seed(config.seeds, RunSpec.of, "recurrent_sequences", **settings)
    return (plan_of(groups, measure_error_growth, samples=config.samples),)


measurements = asked(_plan)


GROUP = {
    "task": Column("task that the network was trained on"),
    "network": Column("how the decoder gets the vector: cho, at every step; sutskever, at the start"),
}
QUALITY = {
    "token_accuracy": share("word accuracy, given the preceding words"),
    "exact_match": share("sentences that the network writes without an error"),
    "length_right": share("sentences that are written with as many words as the reference"),
    "bleu": Column("BLEU of what the network writes", "points", low=0, high=100),
    "after_error": Column("share of the words after an exchanged one that it makes wrong"),
    "early_over_late": Column("the same in the first third of the places, minus the last third"),
    "own_hand": Column("word accuracy after the correct words, minus that after what it wrote itself"),
    "length_over_guess": Column("lengths that are correct, minus those guessed from the source's length"),
    "beam_gain.exact_match": Column("sentences without an error by beam search, minus by greedy decoding"),
    "beam_gain.bleu": Column("BLEU by beam search, minus by greedy decoding", "points"),
}
SAMPLES = {
    "length_guessed": share("lengths that are correct if they are guessed from the source's length"),
    "length": Column("words of a sentence whose positions are distinguished", "words"),
    "of_length": Column("held-out sentences of this length", "sentences"),
    "parameters": Column("weights of the network"),
}
PLACE = {"place": Column("position of the word in the sentence, from 1")}
RIGHT = {
    "way": Column(
        "what is right",
        categories={
            "teacher_forced": "the word, after the right words",
            "free_running": "the word, after what the network wrote itself",
            "so_far": "all words up to this place",
        },
    ),
    **PLACE,
    "right": Column("share of sentences where this is correct"),
}
ADDED = {
    "effect": Column(
        "what a wrong word adds",
        categories={
            "share": "share of later words that it makes wrong",
            "words": "number of later words that it makes wrong",
        },
    ),
    **PLACE,
    "added": Column("errors after a wrong word at this position, minus those after the correct one"),
}


def compute(config: Config, store: Store) -> dict[str, Table]:
    (plan,) = _plan(config)
    a_place = "a place in a sentence"
    networks = plan_frame(plan, store, GROUP, records=_numbers, columns=QUALITY | SAMPLES)
    places = plan_frame(plan, store, GROUP, records=_by_place, columns=RIGHT, row=a_place)
    damages = plan_frame(plan, store, GROUP, records=_added_by_place, columns=ADDED, row=a_place)
    right = summarise(places, [*GROUP, "way", "place"], ["right"])
    added = summarise(damages, [*GROUP, "effect", "place"], ["added"])
    return {
        "places": right.select(*GROUP, "way", "place", *INTERVAL),
        "damage": added.select(*GROUP, "effect", "place", *INTERVAL).rename(effect="quantity"),
        "networks": networks,
        "estimates": summarise(networks, list(GROUP), QUALITY),
    }


def values(config: Config, tables: dict[str, Table]) -> dict:
    first = tables["networks"].query("seed == 0")
    return view(
        keyed(tables["estimates"], "{task}.{network}.{quantity}"),
        keyed(first, "{task}.{network}.{column}", SAMPLES),
    )


def _numbers(growth: dict) -> dict:
    beam_gain = {name: growth["beam"][name] - growth[name] for name in ("exact_match", "bleu")}
    return growth | {
        "after_error": after_error(growth["damage"]),
        "early_over_late": early_over_late(growth["damage"]),
        "own_hand": growth["token_accuracy"] - growth["own_accuracy"],
        "length_over_guess": growth["length_right"] - growth["length_guessed"],
        "beam_gain": beam_gain,
    }


def _by_place(growth: dict) -> list[dict]:
    return [
        {"way": way, "place": place, "right": right}
        for way in WAYS
        for place, right in enumerate(growth[way], 1)
    ]


def _added_by_place(growth: dict) -> list[dict]:
    rows = []
    for effect in ("share", "words"):
        for row in growth["damage"]:
            words = 1 if effect == "share" else row["words_after"]
            rows.append({"effect": effect, "place": row["place"], "added": _added(row) * words})
    return rows


def _added(row: dict) -> float:
    """Share of the later words that the exchange makes wrong."""
    return row["wrong_after"] - row["wrong_after_right"]


def after_error(damage: list[dict]) -> float:
    """Share of the words after an exchanged one that it makes wrong, over places, weighted by those words."""
    return float(np.average([_added(row) for row in damage], weights=[row["words_after"] for row in damage]))


def early_over_late(damage: list[dict]) -> float:
    """Share of later words spoilt by an exchange in the first third of the places, minus the last third."""
    number = max(1, len(damage) // 3)
    added = [_added(row) for row in damage]
    return float(np.mean(added[:number]) - np.mean(added[-number:]))

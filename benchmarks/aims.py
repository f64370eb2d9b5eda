"""The aims of speed, measured in one run: python benchmarks/aims.py

Every ratio is between two things that this run times in turns, on one thread and in processor time, so that
neighbours on the machine touch both; the least of all turns counts. Each line says what was aimed at, what
was measured and whether that reaches the aim. ``--only components,analysis`` takes some of the parts.

* components: `Components.update` and `.split` over states that lie in memory, in sums of the same states.
* corpus: both readings of an analysis over passes that are drawn, four sizes, and a line through them.
* analysis: an analysis, and the lexical probe, in passes of the model alone (Marian, cross-attention,
  sentences of 5 to 16 pieces); components by least squares, one batch in five judged. Beside the two passes
  alone is said what `analyse` takes with its defaults, with predictions, the sentences of the page, and the
  probe of every judged batch: a long corpus has it of four batches, and comes nearer to the passes alone.
* shards: the same corpus by one process and by two at once. The clock needs two idle cores; beside it is said
  what processor time allows, and what the machine does: the whole corpus by each of two processes at once.
"""

import os
import time
from collections.abc import Callable, Mapping
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from multiprocessing import get_context

import numpy as np
import torch
import typer
from corpus_scale import TOKENS, drawn_pass, pool, valid
from transformers import MarianConfig, MarianMTModel

from attnlib import Components
from attnlib.adapters import HuggingFace, TokenBatch, lexical_probe
from attnlib.analysis.passes import both_passes, fit_shard, judge_shard
from attnlib.analysis.stream import HoldOut, Shard, Stream
from attnlib.report import analyse

SENTENCES, POSITIONS, WIDTH, WORDS = 4_000, 20, 256, 4_000
EVICT_MB = 600  # written between any two timings: more than a cache holds
CORPUS_WIDTH, SIZES, EVERY = 512, (250_000, 500_000, 1_000_000, 2_000_000), 5
SECOND_READING_BEFORE = 16_380  # positions a second on 2026-11-21, see README.md
MODELS = {"0.6 M": ((96, 2, 4), 20, 2.0), "45 M": ((512, 6, 8), 5, 1.3)}  # width, layers, heads; batches; aim
PIECES, SAMPLES = 1_000, 32


def seconds(step: Callable[[], object]) -> float:
    """Of the processor that a step takes."""
    began = time.process_time()
    step()
    return time.process_time() - began


def least(ways: Mapping[str, Callable[[], object]], turns: int) -> dict[str, float]:
    """The least processor seconds of each way, after a turn that warms up."""
    elsewhere = torch.zeros(EVICT_MB * 250_000)
    found = dict.fromkeys(ways, float("inf"))
    for turn in range(turns + 1):
        for name, way in ways.items():
            elsewhere.add_(1)
            taken = seconds(way)
            found[name] = min(found[name], taken) if turn else found[name]
    return found


def said(what: str, measured: float, aim: float, *, more: bool = False, note: str = "") -> None:
    reached = measured >= aim if more else measured <= aim
    sign = "≥" if more else "≤"
    print(f"{what:52} {sign} {aim:<5g} {measured:7.2f}  {'yes' if reached else 'NO':3}  {note}", flush=True)


def components(turns: int) -> None:
    rng = torch.Generator().manual_seed(0)
    states = torch.randn(SENTENCES, POSITIONS, WIDTH, generator=rng)
    padded = torch.arange(POSITIONS) < torch.randint(10, POSITIONS + 1, (SENTENCES, 1), generator=rng)
    chances = 1.0 / torch.arange(1, WORDS + 1)  # as in text, by Zipf's law
    zipf = torch.multinomial(chances, padded.numel(), replacement=True, generator=rng).view_as(padded)
    tokens = {"even": torch.randint(WORDS, padded.shape, generator=rng), "Zipf's": zipf}
    masks = {"no": torch.ones_like(padded), "a quarter": padded}
    fitted = Components(WIDTH, n_tokens=WORDS, n_positions=POSITIONS).update(states, zipf, padded)
    ways: dict[str, Callable[[], object]] = {"sum": states.sum}
    for words, ids in tokens.items():
        for padding, mask in masks.items():
            ways[f"update, {words} words, {padding} padding"] = partial(fitted.update, states, ids, mask)
    ways["split, Zipf's words, a quarter padding"] = partial(fitted.split, states, zipf, padded)
    found = least(ways, turns)
    note = f"{states.nbytes / found['sum'] / 1e9:.0f} GB/s are summed"
    for name, taken in list(found.items())[1:]:
        aim = 2.5 if name.startswith("update") else 12
        said(f"Components.{name}", taken / found["sum"], aim, note=note)


def corpus(_turns: int, width: int = CORPUS_WIDTH) -> None:
    pool(width)
    points: dict[str, list[float]] = {"first": [], "second": []}
    counts = []
    for tokens in SIZES:
        stream = Stream(lambda number: drawn_pass(number, width), range(tokens // TOKENS), probed=0)
        clock = time.process_time()
        fit = fit_shard(stream, Shard(hold_out=HoldOut(every=1)), method="least_squares")
        points["first"].append(time.process_time() - clock)
        points["second"].append(seconds(partial(judge_shard, stream, fit, Shard(hold_out=HoldOut(every=1)))))
        counts.append(valid(fit))
    billion = {}
    for reading, taken in points.items():
        slope, start = np.polyfit(counts, taken, 1)
        billion[reading] = start + 1e9 * slope
        apart = np.abs(np.polyval((slope, start), counts) / taken - 1).max()
        times = ", ".join(f"{count:,}: {own:.1f} s" for count, own in zip(counts, taken, strict=True))
        print(f"  {reading} reading: {times}; a billion {billion[reading]:,.0f} s; off by {apart:.0%}")
    rate = counts[-1] / points["second"][-1]
    faster, note = rate / SECOND_READING_BEFORE, f"{rate:,.0f}/s"
    said("second reading, times as fast as before", faster, 3, more=True, note=note)
    hours = ((1 - 1 / EVERY) * billion["first"] + billion["second"] / EVERY) / 3600
    said(f"hours for a billion positions of width {width}", hours, 2.5, note="one core, a fifth judged")


def model(width: int, layers: int, heads: int) -> MarianMTModel:
    sizes = {
        f"{half}_{name}": value
        for half in ("encoder", "decoder")
        for name, value in (("layers", layers), ("attention_heads", heads), ("ffn_dim", 4 * width))
    }
    marks = {"pad_token_id": 0, "decoder_start_token_id": 0, "eos_token_id": 1}
    config = MarianConfig(vocab_size=PIECES, d_model=width, attn_implementation="eager", **sizes, **marks)
    with torch.random.fork_rng(devices=[]):  # transformers takes no generator
        torch.default_generator.manual_seed(0)  # torch.manual_seed would seed accelerators as well
        return MarianMTModel(config).eval()


def batches(count: int) -> list[TokenBatch]:
    rng = torch.Generator().manual_seed(0)
    chances = 1 / torch.arange(1, PIECES - 1)
    found = []
    for _ in range(count):
        tokens = 2 + torch.multinomial(chances, 2 * SAMPLES * 16, True, generator=rng).view(2, SAMPLES, 16)
        masks = torch.arange(16) < torch.randint(5, 17, (2, SAMPLES, 1), generator=rng)
        found.append(TokenBatch(tokens[0], masks[0], tokens[1], target_mask=masks[1]).packed())
    return found


@torch.no_grad()
def analysis(turns: int) -> None:
    for name, (sizes, count, aim) in MODELS.items():
        own, given = model(*sizes), batches(count)
        adapter = HuggingFace(own)
        stream = Stream(adapter.trace, given, probed=0)
        whole = Stream(adapter.trace, given, partial(lexical_probe, own), logits=adapter.logits)

        def alone(batch: TokenBatch, own: MarianMTModel = own) -> None:
            own(
                input_ids=batch.source, attention_mask=batch.source_mask.long(), use_cache=False,
                decoder_input_ids=batch.target, decoder_attention_mask=batch.target_mask.long(),
            )  # fmt: skip

        ways = {
            "alone": lambda given=given, alone=alone: list(map(alone, given)),
            "analysis": partial(both_passes, stream, EVERY, method="least_squares"),
            "whole": partial(analyse, whole),
            "one": partial(alone, given[0]),
            "probe": partial(lexical_probe, own, adapter.trace(given[0])),
        }
        found = least(ways, turns if count > 5 else max(1, turns // 3))
        note = f"{found['whole'] / found['alone']:.2f} with the defaults of analyse"
        said(f"analysis, {name}, passes of the model", found["analysis"] / found["alone"], aim, note=note)
        said(f"lexical probe, {name}, passes of the model", found["probe"] / found["one"], 5)


def shard(part: Shard, tokens: int = 3_000_000, width: int = 64) -> float:
    """Processor seconds of both readings of a part."""
    torch.set_num_threads(1)
    stream = Stream(lambda number: drawn_pass(number, width), range(tokens // TOKENS), probed=0)
    return seconds(lambda: judge_shard(stream, fit_shard(stream, part, method="means"), part))


def shards(turns: int) -> None:
    turns = max(1, turns // 3)
    with ProcessPoolExecutor(2, get_context("spawn")) as processes:

        def clock(*parts: Shard) -> tuple[float, float]:
            """The time of all of them at once by the clock, and of the longest by its processor."""
            began = time.perf_counter()
            taken = max(processes.map(shard, parts))
            return time.perf_counter() - began, taken

        list(processes.map(shard, [Shard()] * 2, [200_000] * 2))  # what each has to load
        ways = {"one": [Shard()], "two": [Shard(own, 2) for own in range(2)], "apart": [Shard()] * 2}
        every = {name: [clock(*parts) for _ in range(turns)] for name, parts in ways.items()}
    (one, alone), (two, half), (apart, _) = (map(min, zip(*own, strict=True)) for own in every.values())
    note = f"by processor time {alone / half:.2f}; load {os.getloadavg()[0]:.0f} on {os.cpu_count()} cores"
    note += f"; two whole ones at once, which share nothing: {2 * one / apart:.2f}"
    said("two shards, times as fast as one", one / two, 1.8, more=True, note=note)


PARTS = {"components": components, "corpus": corpus, "analysis": analysis, "shards": shards}


def main(turns: int = 9, only: str = ",".join(PARTS)) -> None:
    torch.set_num_threads(1)
    print(f"torch {torch.__version__}, one thread, load {os.getloadavg()[0]:.0f} on {os.cpu_count()} cores")
    print(f"{'':52} {'aim':7} measured reached")
    for name in only.split(","):
        PARTS[name](turns)


if __name__ == "__main__":
    main.__doc__ = __doc__
    typer.run(main)

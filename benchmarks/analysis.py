"""What an analysis of a model takes, in passes of the model alone over the same batches.

    python benchmarks/analysis.py            # Marian models of 0.6 and 45 million parameters, cross-attention
    python benchmarks/analysis.py --rounds 9 --kinds cross,encoder_self,decoder_self

Sentences of 5 to 16 pieces a side, words by Zipf's law; processor time of one thread, every way in turn. The
first reading fits, the second judges; an analysis judges one batch in five and fits on the others, without
the lexical probe, which is taken of a few batches whatever the corpus.
"""

from statistics import median
from time import process_time

import torch
from timing import command_line, quotient, seconds
from transformers import MarianConfig, MarianMTModel

from attnlib.adapters import HuggingFace, TokenBatch
from attnlib.adapters.hugging_face import lexical_probe
from attnlib.analysis.analyse import fit_part, judge_part
from attnlib.analysis.fit import Fit
from attnlib.analysis.judge import Judgement
from attnlib.analysis.stream import Shard, Stream

WORDS, SAMPLES, BATCHES = 1_000, 32, 20
SIZES = {"0.6 M": (96, 2, 4), "45 M": (512, 6, 8)}  # width, layers, heads


def model(width: int, layers: int, heads: int) -> MarianMTModel:
    sizes = {
        f"{half}_{name}": value
        for half in ("encoder", "decoder")
        for name, value in (("layers", layers), ("attention_heads", heads), ("ffn_dim", 4 * width))
    }
    marks = {"pad_token_id": 0, "decoder_start_token_id": 0, "eos_token_id": 1}
    config = MarianConfig(vocab_size=WORDS, d_model=width, attn_implementation="eager", **sizes, **marks)
    with torch.random.fork_rng(devices=[]):  # transformers takes no generator
        torch.manual_seed(0)
        return MarianMTModel(config).eval()


def batches() -> list[TokenBatch]:
    rng = torch.Generator().manual_seed(0)
    chances = 1 / torch.arange(1, WORDS - 1)
    found = []
    for _ in range(BATCHES):
        tokens = 2 + torch.multinomial(chances, 2 * SAMPLES * 16, True, generator=rng).view(2, SAMPLES, 16)
        masks = torch.arange(16) < torch.randint(5, 17, (2, SAMPLES, 1), generator=rng)
        found.append(TokenBatch(tokens[0], masks[0], tokens[1], masks[1]).packed())
    return found


@torch.no_grad()
def measure(name: str, given: list[TokenBatch], rounds: int, kinds: str) -> None:
    own = model(*SIZES[name])
    adapter = HuggingFace(own, kinds=kinds.split(","))
    stream = Stream(adapter.trace, given, probed=0)
    fit = fit_part(stream, Shard(every=1), method="least_squares")
    passes = list(map(adapter.trace, given))

    def bare() -> None:
        for one in given:
            own(
                input_ids=one.source, attention_mask=one.source_mask.long(), use_cache=False,
                decoder_input_ids=one.target, decoder_attention_mask=one.target_mask.long(),
            )  # fmt: skip

    def analysed() -> None:
        part = Shard(every=5)
        judge_part(stream, fit_part(stream, part, method="least_squares"), part)

    ways = {
        "model alone": bare,
        "trace": lambda: [adapter.trace(one) for one in given],
        "first reading": lambda: fit_part(stream, Shard(every=1), method="least_squares"),
        "second reading": lambda: judge_part(stream, fit, Shard(every=1)),
        "analysis": analysed,
        "sums of the first reading": lambda: [
            found.update(one) for found in [Fit(method="least_squares")] for one in passes
        ],
        "sums of the second reading": lambda: [
            found.update(one) for found in [Judgement(fit)] for one in passes
        ],
        "lexical probe": lambda: [lexical_probe(own, one) for one in passes],
    }
    times: dict[str, list[float]] = {way: [] for way in ways}
    for turn in range(rounds + 1):
        for way, work in ways.items():
            if turn < 2 or way != "lexical probe":
                times[way].append(seconds(work, process_time))
    weights = sum(own.numel() for own in own.parameters())
    print(f"{name}: {weights:,} parameters, {kinds}, {rounds} turns")
    for way, taken in times.items():
        alone = times["model alone"][1 : len(taken)]
        ratio = quotient(taken[1:], alone) if len(taken) > 2 else f"{taken[-1] / alone[-1]:.2f}"
        print(f"  {way}: {median(taken[1:]):.3f} s, {ratio} × the model alone", flush=True)


def main() -> None:
    options = command_line(__doc__, rounds=5, kinds="cross").parse_args()
    torch.set_num_threads(1)
    for name in SIZES:
        measure(name, batches(), options.rounds, options.kinds)


if __name__ == "__main__":
    main()

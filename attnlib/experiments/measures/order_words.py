"""What a swapped word does to the attention of one trained network, on pairs that it was not trained on.

Rows of attention are compared in four sets:

``own``        all steps that both targets have, each run reading the words of its own target;
``fork``       of these the one step of each pair at which the two translations part;
``same``       all steps, both runs reading the first sentence's target words: what the source alone does;
``same_fork``  of these the fork.
"""

from typing import TYPE_CHECKING

import numpy as np
import torch
from jaxtyping import Bool
from torch import Tensor

from attnlib.decomposition.rows import total_variation
from attnlib.experiments.fitting import Fitted, fit_components
from attnlib.experiments.measures.flip_routes import (
    PAIRS,
    PATCHES,
    ROUTES,
    TwoRuns,
    change_shares,
    decoder_parts,
    flip_share,
    moved,
    patched_rows,
    route_changes,
    run_both,
    term_changes,
)
from attnlib.experiments.measures.minimal_pairs import Pairs, Swap, draw_pairs, swaps_of
from attnlib.experiments.measures.word_swap import exchange_of, fit_effects, predict_rows, rerun
from attnlib.tasks.corpus import collate

if TYPE_CHECKING:
    from attnlib.training.store import TrainedModel

ROW_SETS = ("own", "fork", "same", "same_fork")
TERM_SETS = ("own", "fork")  # the nine terms; routes tell the rest
SAME_WORDS_PATCHES = tuple(name for name in PATCHES if "W" not in name)
LAGS, STEPS = 12, 24  # how far the memory of the word is followed
DIGITS = 4


def measure_order_words(trained: "TrainedModel", fit_samples: int, pairs: int, fit_pairs: int) -> dict:
    """Everything that is asked of one network about the words that its task knows.

    Args:
        fit_samples: training samples that components are fitted on, at most.
        pairs: held-out pairs of each kind of swap, at most.
        fit_pairs: training pairs of each kind that mean effects are fitted on, at most.

    Returns:
        plain JSON, by name of the swap: ``kind``, ``pairs``; ``exact`` (share of either sentence written
        without a fault, teacher-forced) and ``attended`` (share of forks whose largest weight stands at the
        gold position, where there is one); by row set ``change``, ``terms``, ``routes``, ``outside`` (squared
        change of scores without the swapped word's own column, over that with it), ``patches``;
        ``predictions`` on the rows ``all``, ``fork`` and ``changed`` (largest weight elsewhere in the rerun);
        ``memory`` (norms of state differences); ``example``, but for content words.

    Raises:
        BadInput: a task whose order words are not known, or without pairs.
    """
    task = trained.task
    reach = dict(trained.spec.task_options).get("reach", "both")
    fitted = fit_components(trained, fit_samples)
    found = {}
    with torch.inference_mode():
        for swap in swaps_of(task):
            held_out = draw_pairs(task, swap, pairs, reach=reach)
            training = draw_pairs(task, swap, fit_pairs, part="train", reach=reach)
            found[swap.name] = _judge(trained, swap, held_out, training, fitted)
    return _rounded(found)


def _judge(
    trained: "TrainedModel", swap: Swap, pairs: Pairs, training: Pairs, fitted: Fitted
) -> dict[str, object]:
    model = trained.model
    device = model.readout.weight.device
    batches = tuple(collate(c, range(len(pairs))).to(device) for c in (pairs.first, pairs.second))
    traces = [model(batch) for batch in batches]
    runs = run_both(model, batches, torch.from_numpy(pairs.positions).to(device), fitted)
    forks = torch.from_numpy(pairs.forks).to(device)
    fork = (torch.arange(runs.rows.shape[1], device=device) == forks[:, None]) & runs.rows
    attention = patched_rows(model, runs)
    parts = {words: decoder_parts(runs, 1, words, fitted) for words in (0, 1)}
    before = (decoder_parts(runs, 0, 0, fitted), runs.encoder_parts[0])
    found: dict = {
        "kind": swap.kind,
        "pairs": len(pairs),
        "exact": [_exact(trace) for trace in traces],
        "attended": _attended(traces, pairs, forks),
        **{name: {} for name in ("change", "terms", "routes", "outside", "patches")},
    }
    for row_set in ROW_SETS:
        own = row_set in ("own", "fork")
        rows = fork if "fork" in row_set else runs.rows
        end = "ESW" if own else "ES"
        after = (parts[int(own)], runs.encoder_parts[1])
        routes = route_changes(before, after, runs.at_word)
        shares, square = change_shares(routes, rows, runs.source_mask)
        found["change"][row_set] = moved(attention[""], attention[end], rows)
        found["routes"][row_set] = _named(ROUTES, shares)
        outside = change_shares(routes, rows, runs.source_mask & ~runs.at_word)[1]
        found["outside"][row_set] = outside / square if square else None
        if row_set in TERM_SETS:
            terms = change_shares(term_changes(before, after), rows, runs.source_mask)[0]
            found["terms"][row_set] = _named(PAIRS, terms)
        found["patches"][row_set] = {
            name: flip_share(attention[name], attention[""], attention[end], rows)
            for name in (PATCHES if own else SAME_WORDS_PATCHES)
        }
    found["predictions"] = _predictions(trained, pairs, training, fitted)
    found["memory"] = _memory(runs, fitted)
    if swap.kind != "content":
        found["example"] = _example(trained, pairs, traces)
    return found


def _named(names: tuple[str, ...], shares: list[float | None]) -> dict[str, float | None]:
    return dict(zip(names, shares, strict=True))


def _exact(trace) -> float:
    right = (trace.logits.argmax(-1) == trace.target_outputs) | ~trace.target_mask
    return float(right.all(1).double().mean())


def _attended(traces, pairs: Pairs, forks: Tensor) -> list[float | None]:
    found = []
    for trace, gold in zip(traces, torch.from_numpy(pairs.gold).T.to(forks.device), strict=True):
        best = trace.attention[torch.arange(len(forks)), forks].argmax(-1)
        found.append(float((best == gold).double().mean()) if bool((gold >= 0).all()) else None)
    return found


def _predictions(trained: "TrainedModel", pairs: Pairs, training: Pairs, fitted: Fitted) -> dict:
    """First the predictions, from the original run; then the rerun, and how close they came."""
    task, model = trained.task, trained.model
    device = model.readout.weight.device
    longest = (fitted.encoder.temporal.shape[0], fitted.decoder.temporal.shape[0])
    effects = fit_effects(model, training, len(task.source_vocabulary), longest)
    batch = collate(pairs.first, range(len(pairs))).to(device)
    predicted = predict_rows(model, batch, model(batch), exchange_of(pairs, device), fitted, effects)

    after = rerun(model, batch, collate(pairs.second, range(len(pairs))).to(device)).attention
    steps = torch.arange(after.shape[1], device=device)
    fork = (steps == torch.from_numpy(pairs.forks).to(device)[:, None]) & batch.target_mask
    changed = (predicted["none"].argmax(-1) != after.argmax(-1)) & batch.target_mask
    sets = {"all": batch.target_mask, "fork": fork, "changed": changed}
    return {name: _scores(predicted, after, rows) for name, rows in sets.items()}


def _scores(predicted: dict[str, Tensor], after: Tensor, rows: Bool[Tensor, "batch target"]) -> dict:
    """Similarity to the rerun, agreement on the largest entry, and gain: the part of what "no change" misses
    that is not missed (1 all of it, 0 none, below 0 worse than no change). None without rows.
    """
    if not rows.any():
        return {name: {"similarity": None, "argmax": None, "gain": None} for name in predicted}
    missed = {
        name: float(total_variation(there[rows], after[rows]).double().mean())
        for name, there in predicted.items()
    }
    return {
        name: {
            "similarity": 1 - missed[name],
            "argmax": float((there.argmax(-1) == after.argmax(-1))[rows].double().mean())
            if name != "uniform"
            else float((1 / (after[rows] > 0).sum(-1).double()).mean()),  # all positions tie
            "gain": 1 - missed[name] / missed["none"] if missed["none"] > 0 else None,
        }
        for name, there in predicted.items()
    }


def _memory(runs: TwoRuns, fitted: Fitted) -> dict[str, list[float | None]]:
    """Mean norm of the difference between the two runs' states, over that of the states around their μ.

    Encoder by lag t − q after the swapped word, parts input and residual; decoder by step, the words read the
    same (``decoder``: all of it residual) or each its own (``decoder_own_input``, ``decoder_own_residual``).
    """
    first, second = runs.encoder_parts
    lags = torch.arange(runs.source_mask.shape[1], device=runs.position.device) - runs.position[:, None]
    scale = (first.total() - first.temporal).norm(dim=-1)[runs.source_mask].mean()
    found = {
        f"encoder_{name}": _by_place((there - here).norm(dim=-1) / scale, lags, runs.source_mask, LAGS)
        for name, here, there in (
            ("input", first.input, second.input),
            ("residual", first.residual, second.residual),
        )
    }
    before = decoder_parts(runs, 0, 0, fitted)
    same, own = decoder_parts(runs, 1, 0, fitted), decoder_parts(runs, 1, 1, fitted)
    scale = (before.total() - before.temporal).norm(dim=-1)[runs.rows].mean()
    steps = torch.arange(runs.rows.shape[1], device=runs.position.device).expand_as(runs.rows)
    for name, difference in {
        "decoder": same.residual - before.residual,
        "decoder_own_input": own.input - before.input,
        "decoder_own_residual": own.residual - before.residual,
    }.items():
        found[name] = _by_place(difference.norm(dim=-1) / scale, steps, runs.rows, STEPS)
    return found


def _by_place(values: Tensor, places: Tensor, mask: Tensor, n: int) -> list[float | None]:
    chosen = (values[mask & (places == k)] for k in range(n))
    return [float(found.double().mean()) if len(found) else None for found in chosen]


def _example(trained: "TrainedModel", pairs: Pairs, traces) -> dict[str, object]:
    """The shortest pair as words and two matrices, each run on its own target; attention in thousandths."""
    size = pairs.first.source_lengths + np.maximum(pairs.first.target_lengths, pairs.second.target_lengths)
    sample = int(size.argmin())
    task = trained.task
    found: dict = {"position": int(pairs.positions[sample]), "fork": int(pairs.forks[sample])}
    for name, trace in zip(("first", "second"), traces, strict=True):
        source, target = trace.source_mask[sample], trace.target_mask[sample]
        found[name] = {
            "source": task.source_vocabulary.decode(trace.source_tokens[sample][source].tolist()),
            "target": task.target_vocabulary.decode(trace.target_outputs[sample][target].tolist()),
            "attention": (trace.attention[sample][target][:, source] * 1000).round().int().tolist(),
        }
    return found


def _rounded(content):
    if isinstance(content, float):
        return None if content != content else round(content, DIGITS)
    if isinstance(content, dict):
        return {name: _rounded(value) for name, value in content.items()}
    return [_rounded(value) for value in content] if isinstance(content, list) else content

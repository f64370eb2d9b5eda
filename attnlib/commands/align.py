"""``attnlib align``: word alignments of two texts in Pharaoh's format, and scores of heads by gold links."""

from typing import Any, cast

import torch
from rich.console import Console
from rich.table import Table

from attnlib.alignment.alignments import Alignments
from attnlib.alignment.both_directions import Symmetrisation
from attnlib.files import write_text_atomic
from attnlib.options import TEXT_OPTIONS, AlignOptions, arguments
from attnlib.report.as_text import number
from attnlib.report.files import csv_of
from attnlib.report.model_folders import search_notice
from attnlib.report.word_alignments import align

MOST_HEADS = 10  # rows of heads that are printed; all are in the table of scores
_COLUMNS = ("direction", "method", "layer", "head", "AER", "precision", "recall")


def align_command(options: AlignOptions) -> None:
    """Write the alignments, the scores and what the model wrote, and print the best heads.

    Args:
        options: what to align and how.

    Raises:
        BadInput: options that cannot be used.

    Example:
        >>> from pathlib import Path
        >>> text = Path("no-such-text")
        >>> options = AlignOptions(out=Path("pairs.talp"), model="my-model", source=text, target=text)
        >>> align_command(options)  # doctest: +ELLIPSIS
        Traceback (most recent call last):
            ...
        attnlib.errors.BadInput: ...no-such-text...
    """
    console = Console(stderr=True, highlight=False, soft_wrap=True, markup=False)
    if options.threads is not None:
        torch.set_num_threads(options.threads)
    for name in (options.model, options.reverse):
        if name is not None and (notice := search_notice(name)):
            console.print(notice)
    alignments = align(
        options.model,
        options.source,
        options.target,
        gold=options.gold,
        reverse=options.reverse,
        method=cast("Symmetrisation", options.symmetrise),  # align refuses others
        progress=True,
        generation=arguments(options.generation),
        **options.settings("layer", "head", "shift", "gold_first", "reverse_prefix"),
        **options.settings(*TEXT_OPTIONS, "batch_size", "longest", "device"),
    )
    for note in alignments.notes:
        console.print(note)
    write_text_atomic(options.out, alignments.to_pharaoh())
    if alignments.scores:
        path = options.files_written()["scores"]
        write_text_atomic(path, csv_of(list(alignments.scores)))
        Console(highlight=False, soft_wrap=True).print(_table(alignments))
        console.print(f"all scores: {path}")
    if options.generate:
        path = options.files_written()["target"]
        lines = (" ".join(words) for words in alignments.target)
        write_text_atomic(path, "".join(f"{line}\n" for line in lines))
        console.print(f"what the model wrote: {path}")
    n_links = sum(map(len, alignments.links))
    console.print(f"{n_links:,} links of {len(alignments):,} lines ({alignments.method}): {options.out}")


def _table(alignments: Alignments) -> Table:
    """Return the scores of the best heads of each direction, and of all else."""
    table = Table(*_COLUMNS, title="Against gold links", title_justify="left", box=None)
    for row in _shown_rows(alignments):
        rates = [number(row[name]) for name in ("error_rate", "precision", "recall")]
        layer_and_head = [str(row["layer"]), str(row["head"])]
        chosen = " ←" if row["chosen"] else ""
        table.add_row(row["direction"], row["method"], *layer_and_head, rates[0] + chosen, *rates[1:])
    return table


def _shown_rows(alignments: Alignments) -> list[dict[str, Any]]:
    heads = [row for row in alignments.scores if row["layer"] != ""]
    others = [row for row in alignments.scores if row["layer"] == ""]
    shown = []
    for direction in dict.fromkeys(row["direction"] for row in heads):
        of_direction = [row for row in heads if row["direction"] == direction]
        in_order = sorted(of_direction, key=_error_rate)
        shown += [row for row in in_order if row["chosen"] or row in in_order[:MOST_HEADS]]
    return shown + others


def _error_rate(row: dict[str, Any]) -> float:
    return row["error_rate"]

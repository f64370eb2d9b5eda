"""A reader's own parallel text with word alignments: three files that correspond line by line."""

import hashlib
import math
import re
from pathlib import Path

from attnlib.errors import BadInput
from attnlib.tasks.parallel import Pair, TextOptions, build, split_off
from attnlib.tasks.task import Links, Task
from companion.data.text import read_lines, read_parallel

_LINK = re.compile(r"(\d+)-(\d+)", re.ASCII)


def aligned(
    *,
    source: str | Path = "",
    target: str | Path = "",
    links: str | Path = "",
    n_train: int | None = None,
    n_held_out: int | None = None,
    min_count: int = 2,
    max_words: int | None = None,
    max_length: int | None = None,
    lowercase: bool = True,
) -> Task:
    """Two line-parallel files of words separated by spaces, and a third with the links of some of the lines.

    A line of ``links`` holds pairs ``source-target`` of word positions counted from 0, separated by spaces
    (the Pharaoh format, which aligners write); an empty line says that nothing is known of this pair. All
    links count as sure. As is usual for aligners, pairs with links are trained on with the rest, and the
    networks never see the links. Held out are first the pairs with links (:attr:`Task.gold`), then the last
    of the others. Words are split at spaces alone, since that is what links count. Pairs with an empty side
    are dropped.

    Args:
        source: path of the file to translate from, UTF-8, plain or gzip.
        target: path of the file to translate to.
        links: path of the file of links.
        n_train: use this many of the pairs without links from the beginning; all that are not held out when
            None.
        n_held_out: pairs without links at the end to hold out; a tenth of them when None.
        min_count: words seen less often in the training pairs are read as ``<unk>``.
        max_words: keep at most this many words on each side, the most frequent ones; all when None.
        max_length: drop pairs with more words than this on either side; None keeps all.
        lowercase: whether to fold case.

    Raises:
        BadInput: a path is missing, the files differ in length or are not UTF-8, a link cannot be read or
            points beyond its sentence (each names the line), or no line has links.
        DataUnavailable: a file cannot be read.
        CorruptFile: a broken gzip file.
    """
    paths = {"source": source, "target": target, "links": links}
    if missing := [role for role, path in paths.items() if not str(path)]:
        raise BadInput(f"aligned needs source=, target= and links=PATH; without {', '.join(missing)}")
    options = TextOptions(min_count, max_words, max_length, lowercase)
    known, others = _read(source, target, links, options)
    if n_held_out is None:
        n_held_out = len(others) // 10
    train, rest = split_off(others, n_train, n_held_out) if others else ([], [])
    pairs = [pair for pair, _ in known]
    checksums = {
        f"{role}/{Path(path).name}": hashlib.sha256(Path(path).read_bytes()).hexdigest()
        for role, path in paths.items()
    }
    task = build("aligned", [*train, *pairs], [*pairs, *rest], options, checksums)
    sides = task.source_vocabulary, task.target_vocabulary, task.train, task.held_out
    return Task(task.name, *sides, checksums, gold=tuple(own for _, own in known))


def _read(
    source: str | Path, target: str | Path, links: str | Path, options: TextOptions
) -> tuple[list[tuple[Pair, Links]], list[Pair]]:
    """Pairs with links, and the others."""
    longest = math.inf if options.max_length is None else options.max_length
    sources, targets = read_parallel(source, target)
    lines = read_lines(links)
    if len(lines) != len(sources):
        raise BadInput(
            f"{links} has {len(lines)} lines and {source} has {len(sources)}; a pair without links has an "
            "empty line"
        )
    known, others = [], []
    for number, (*pair, line) in enumerate(zip(sources, targets, lines, strict=True), 1):
        a, b = ((side.lower() if options.lowercase else side).split() for side in pair)
        own = _links(line, len(a), len(b), f"{links}, line {number}")
        if not (0 < len(a) <= longest and 0 < len(b) <= longest):
            continue
        if own:
            known.append(((a, b), own))
        else:
            others.append((a, b))
    if not known:
        raise BadInput(f"{links} has no links; a line such as `0-0 1-2` aligns word 1 with word 2 (from 0)")
    return known, others


def _links(line: str, source: int, target: int, place: str) -> Links:
    """Links of a line as (target position, source position)."""
    found = []
    for text in line.split():
        link = _LINK.fullmatch(text)
        if link is None:
            raise BadInput(f"{place}: {text!r} is no link; write source-target positions from 0, such as 0-2")
        i, j = map(int, link.groups())
        if i >= source or j >= target:
            raise BadInput(
                f"{place}: link {text} points beyond its sentences of {source} and {target} words "
                "(positions count from 0, words are split at spaces)"
            )
        found.append((j, i))
    return frozenset(found)


TASKS = {"aligned": aligned}

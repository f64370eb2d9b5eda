"""Put an analysis into words, by thresholds that are stated, and list what to beware of."""

import math
import statistics
from operator import itemgetter
from typing import Any

from attnlib.analysis.learned import not_learned
from attnlib.analysis.results import EVEN, Analysis, is_even
from attnlib.decomposition.typicality import MINIMUM_CELL
from attnlib.errors import first_names
from attnlib.report.contents import reads_frames
from attnlib.report.templates import template
from attnlib.trace import KINDS

FEW_COVERED = 0.5  # of the samples; a head with a lower share is named
HALF = 0.5  # a part that has more of a head's variation makes it
ALL_BUT = 0.9  # attention that is this near to the model's is rebuilt
MOST_HEADS = 6  # that a sentence names
KINDS_IN_WORDS = {
    "cross": "Cross-attention",
    "encoder_self": "Self-attention of the encoder",
    "decoder_self": "Self-attention of the decoder",
}
_SOURCES = {
    "temporal": "position alone",
    "input": "words alone",
    "mixed": "position with word",
    "residual": "a residual, alone or with another part",
}
NAMED_PARTS = tuple(_SOURCES)  # of which a head may be made


def findings(analysis: Analysis) -> list[str]:
    """Return what the numbers say: two sentences for each kind of attention.

    A part makes a head if the whole interval of its share is above :data:`HALF`; a share without an interval
    is taken as it is.

    Args:
        analysis: what ``attnlib.analyse`` or ``attnlib.read_report`` returned.

    Returns:
        A text for each kind.

    Example:
        >>> from attnlib import analyse, zoo
        >>> findings(analyse(zoo.load("reordering").stream(batch_size=64)))[0][:24]
        'Cross-attention, 4 heads'
    """
    texts = []
    for kind in KINDS:
        rows = [row for row in analysis.heads if row["kind"] == kind]
        if rows:
            texts.append(_findings_of_kind(kind, rows))
    return texts


def _findings_of_kind(kind: str, rows: list[dict]) -> str:
    heads = f"{KINDS_IN_WORDS[kind]}, {len(rows)} heads"
    sharp = [row for row in rows if not is_even(row)]
    if not sharp:
        return f"{heads}: all attend evenly, and there is nothing to share."
    n_rebuilt = sum(map(_is_rebuilt, sharp))
    return (
        f"{heads}: more than half of the variation of scores comes {_sources_of(rows, sharp)}. Position and "
        f"word together rebuild more than {ALL_BUT:.0%} of the attention, and close more than half of the "
        f"gap that uniform attention leaves, in {n_rebuilt or 'none'}."
    )


def _sources_of(rows: list[dict], sharp: list[dict]) -> str:
    """Return what the variation of heads comes from, as in "from words alone in 2 (…), from no single …"."""
    texts = []
    n_of_a_part = 0
    for part, source in _SOURCES.items():
        made_by_part = [row for row in sharp if _lower_end(row, part) > HALF]
        if made_by_part:
            texts.append(f"from {source} in {_named_heads(made_by_part)}")
        n_of_a_part += len(made_by_part)
    if len(sharp) > n_of_a_part:
        texts.append(f"from no single part in {len(sharp) - n_of_a_part}")
    n_even = len(rows) - len(sharp)
    if n_even:
        verb = "attends" if n_even == 1 else "attend"
        texts.append(f"and {n_even} {verb} evenly, so that there is nothing to share")
    return ", ".join(texts)


def _is_rebuilt(row: dict) -> bool:
    """Return True if position and word rebuild the attention, and more of it than uniform attention is."""
    rebuilt, uniform = row["no_residual_rebuilds"], row["uniform"]
    return rebuilt > ALL_BUT and rebuilt - uniform > (1 - uniform) / 2


def _lower_end(row: dict, part: str) -> float:
    """Return the lower end of a share's interval, or the share if it has no interval."""
    low = row[f"{part}_low"]
    return row[f"{part}_share"] if math.isnan(low) else low


def _named_heads(rows: list[dict]) -> str:
    names = first_names([f"{row['layer']}.{row['head']}" for row in rows], most=MOST_HEADS)
    return f"{len(rows)} (layer.head {names})"


def notes(analysis: Analysis) -> list[str]:
    """Return the caveats of an analysis: what was left out, what nothing checked, and what is too small.

    Args:
        analysis: what ``attnlib.analyse`` or ``attnlib.read_report`` returned.

    Returns:
        A paragraph each, by ``notes.txt.j2``.

    Example:
        >>> from attnlib import analyse, zoo
        >>> analysis = analyse(zoo.load("reordering").stream(batch_size=256))
        >>> notes(analysis)[0][:35]
        'No part of the corpus was held out,'
    """
    facts = vars(analysis) | _facts_of_notes(analysis)
    text = template("notes.txt.j2").render(facts)
    paragraphs = [" ".join(paragraph.split()) for paragraph in text.split("\n\n")]
    return [paragraph for paragraph in paragraphs if paragraph]


def _facts_of_notes(analysis: Analysis) -> dict[str, Any]:
    """Return what the caveats depend on besides the fields of the analysis, by name."""
    heads = analysis.heads
    is_encoder = analysis.one_sequence and heads[0]["kind"] == "encoder_self"
    return {
        "frames": reads_frames(analysis),
        "encoder_alone": is_encoder,
        "not_learned": not_learned(analysis.learned),
        "even": sum(is_even(row) for row in heads),
        "sure": interval_widths(analysis),
        "within": 1 - EVEN,
        "unseen": max(analysis.states, key=itemgetter("unseen_words"), default={"unseen_words": 0}),
        "fewest": min(heads, key=itemgetter("typicality_coverage"), default=None),
        "covered": _covered_by_typicality(heads),
        "minimum_cell": MINIMUM_CELL,
        "ignored": max((row["on_ignored"] for row in heads), default=0.0),
    }


def _covered_by_typicality(heads: list[dict]) -> str:
    """Return how few samples typicality covers, and in which heads; empty if it covers enough in all."""
    sparse = [row for row in heads if row["typicality_coverage"] < FEW_COVERED]
    if not sparse:
        return ""
    fewest = min(sparse, key=itemgetter("typicality_coverage"))
    share = f"{fewest['typicality_coverage']:.0%}"
    is_everywhere = len(sparse) == len(heads)
    if is_everywhere and len({f"{row['typicality_coverage']:.0%}" for row in heads}) == 1:
        where = "the only head" if len(heads) == 1 else f"all {len(heads)} heads"
        return f"only {share} of the judged samples in {where}"
    where = f"all {len(heads)} heads" if is_everywhere else f"{len(sparse)} of {len(heads)} heads"
    worst = f"at worst {share}, in layer {fewest['layer']}, head {fewest['head']} ({fewest['kind']})"
    return f"less than half of the judged samples in {where}, {worst}"


def interval_widths(analysis: Analysis) -> dict[str, float]:
    """Return how far intervals reach to either side, of heads that do not attend evenly.

    Args:
        analysis: what ``attnlib.analyse`` or ``attnlib.read_report`` returned.

    Returns:
        The half width in the ``middle`` of all, and the ``widest``; empty if there is no interval.

    Example:
        >>> from attnlib import analyse, zoo
        >>> interval_widths(analyse(zoo.load("reordering").stream(batch_size=256)))
        {}
    """
    half_widths = []
    for row in analysis.heads:
        if is_even(row):
            continue
        for part in NAMED_PARTS:
            low, high = row[f"{part}_low"], row[f"{part}_high"]
            if high > low:
                half_widths.append((high - low) / 2)
    if not half_widths:
        return {}
    return {"middle": statistics.median(half_widths), "widest": max(half_widths)}

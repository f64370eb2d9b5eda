"""Make alignments, and the table of their scores, from the links of one direction or of both."""

from dataclasses import replace
from typing import Any

from attnlib.alignment.alignments import Alignments
from attnlib.alignment.both_directions import Symmetrisation, symmetrise
from attnlib.alignment.score_table import (
    IBM_MODEL_1,
    diagonal_links,
    row_of_links,
    row_of_other_half,
    rows_of_heads,
    score_row,
    sums_by_choice,
)
from attnlib.alignment.scores import LinkSums
from attnlib.report.linked_text import LinkedText

SHOWN_SYMMETRISED: tuple[Symmetrisation, ...] = ("intersection", "union", "grow-diag-final-and")


def alignments_of(directions: list[LinkedText], method: Symmetrisation) -> Alignments:
    """Return the alignments of one direction, or of both symmetrised, with all scores.

    Args:
        directions: the links of the forward direction, and perhaps of the reverse one.
        method: of symmetrising two directions.

    Returns:
        Alignments of the text; their scores are empty without gold links.

    Example:
        >>> from attnlib.alignment.links import HeadChoice
        >>> from attnlib.report.text_to_link import ReadPairs
        >>> head, words = HeadChoice(0, 0), (("one",), ())  # the second line is empty
        >>> linked = LinkedText(direction="forward", read=ReadPairs(pairs=()), source=words, target=words,
        ...     choices=(head,), among=(head,), chosen=head)
        >>> alignments_of([linked], "union").links
        ((), ())
    """
    by_direction = [_of_direction(linked) for linked in directions]
    rows = []
    for linked in directions:
        rows += _rows_of_direction(linked, is_result=len(directions) == 1)
    if len(directions) == 1:
        (alignments,) = by_direction
        return replace(alignments, scores=tuple(rows))
    forward, reverse = by_direction
    rows += _rows_of_both(directions, by_direction, method)
    return replace(forward.symmetrised(reverse, method), scores=tuple(rows))


def _of_direction(linked: LinkedText) -> Alignments:
    links: list[tuple] = [()] * len(linked)
    weights: list[tuple] = [()] * len(linked)
    number_of_chosen = linked.choices.index(linked.chosen)
    for pair in linked.pairs:
        made = pair.best.links(number_of_chosen)
        attention = pair.best.weights(number_of_chosen)
        in_order = sorted(zip(made, attention, strict=True))
        links[pair.number] = tuple(link for link, _ in in_order)
        weights[pair.number] = tuple(weight for _, weight in in_order)
    return Alignments(
        links=tuple(links),
        weights=tuple(weights),
        source=linked.source,
        target=linked.target,
        method=str(linked.chosen),
        notes=linked.notes,
        left_out=linked.left_out,
    )


def _rows_of_direction(linked: LinkedText, *, is_result: bool) -> list[dict[str, Any]]:
    """Return the scores of all heads, of the best of either half, of IBM Model 1 and of the diagonal."""
    if not linked.gold or linked.lexicon is None:
        return []
    sums = sums_by_choice(linked.pairs, linked.gold, linked.choices)
    rows = rows_of_heads(linked.direction, sums, linked.chosen)
    if not is_result:
        rows = [row | {"chosen": False} for row in rows]
    other_half = row_of_other_half(
        linked.direction, linked.pairs, linked.gold, choices=linked.choices, among=linked.among
    )
    if other_half is not None:
        rows.append(other_half)
    for name, links in ((IBM_MODEL_1, linked.lexicon.links), ("diagonal", diagonal_links)):
        rows.append(row_of_links(linked.direction, name, linked.pairs, gold=linked.gold, links=links))
    return rows


def _rows_of_both(
    directions: list[LinkedText], by_direction: list[Alignments], method: Symmetrisation
) -> list[dict[str, Any]]:
    """Return the scores of what is symmetrised, of attention and of IBM Model 1."""
    forward, reverse = directions
    if not forward.gold or forward.lexicon is None or reverse.lexicon is None:
        return []
    methods = dict.fromkeys((*SHOWN_SYMMETRISED, method))
    rows = []
    for name in methods:
        both = by_direction[0].symmetrised(by_direction[1], name)
        sums = LinkSums()
        of_lexicons = LinkSums()
        for number, gold in forward.gold.items():
            if number in both.left_out:
                continue
            source, target = forward.source[number], forward.target[number]
            sums.update(both.links[number], gold)
            forward_links = forward.lexicon.links(source, target)
            reverse_links = reverse.lexicon.links(target, source)  # (target word, source word)
            turned = [(source_word, target_word) for target_word, source_word in reverse_links]
            of_lexicons.update(symmetrise(forward_links, turned, name), gold)
        rows.append(score_row("both", name, sums, chosen=name == method))
        rows.append(score_row("both", f"{IBM_MODEL_1}, {name}", of_lexicons))
    return rows

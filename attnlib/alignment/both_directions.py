"""Links of two directions made one alignment.

An aligner of one direction links each target word with one source word at most, and that of the other
direction each source word with one target word. Both together find what neither can write down: several words
on either side. Intersection and union of the two are the extremes. Phrase-based translation grows from the
first towards the second (Koehn, Och & Marcu 2003, "Statistical phrase-based translation"), with the last step
of Koehn et al. 2005, "Edinburgh system description for the 2005 IWSLT speech translation evaluation":
*final-and*.
"""

from collections.abc import Collection, Iterable
from typing import Any, Literal, get_args

from attnlib.errors import check_known
from attnlib.former_names import former_object
from attnlib.probes.alignment_error import Link

Symmetrisation = Literal["intersection", "union", "grow-diag", "grow-diag-final", "grow-diag-final-and"]

_NEIGHBOURS = ((-1, 0), (0, -1), (1, 0), (0, 1), (-1, -1), (-1, 1), (1, -1), (1, 1))


def symmetrise(
    forward: Collection[Link], backward: Collection[Link], method: Symmetrisation = "grow-diag-final-and"
) -> frozenset[Link]:
    """Make one alignment of the links of two directions.

    * *grow-diag* begins with the intersection and adds, as long as there are any, links of the union that
      touch a link already made, at a side or a corner, and of which one word at least has no link yet;
    * *final* then adds links of either direction of which one word at least has no link yet, first all of
      ``forward``, then those of ``backward``;
    * *final-and* does so only where neither word has a link yet.

    Links are gone through by target word, then by source word; another order can give other links.

    Args:
        forward: links of the model from source to target, as (source word, target word).
        backward: links of the model from target to source, likewise (source word, target word).
        method: how they are made one.

    Returns:
        The links. They lie between intersection and union.

    Raises:
        UnknownName: no such method.

    Example:
        >>> sorted(symmetrise([(0, 0), (1, 1)], [(0, 0), (1, 2)], "grow-diag"))
        [(0, 0), (1, 1), (1, 2)]
    """
    check_known("method", method, get_args(Symmetrisation))
    both = frozenset(forward) & frozenset(backward)
    either = frozenset(forward) | frozenset(backward)
    if method == "intersection":
        return both
    if method == "union":
        return either
    grown = _Growing(both)
    grown.grow_diagonally(either)
    if method != "grow-diag":
        needs_both = method == "grow-diag-final-and"
        grown.add_unlinked(forward, needs_both=needs_both)
        grown.add_unlinked(backward, needs_both=needs_both)
    return frozenset(grown.links)


class _Growing:
    """An alignment that grows: its links, and the words that have one."""

    def __init__(self, links: Iterable[Link]):
        self.links: set[Link] = set()
        self.linked_sources: set[int] = set()
        self.linked_targets: set[int] = set()
        for link in links:
            self.add(link)

    def add(self, link: Link) -> None:
        source, target = link
        self.links.add(link)
        self.linked_sources.add(source)
        self.linked_targets.add(target)

    def grow_diagonally(self, candidates: frozenset[Link]) -> None:
        has_grown = True
        while has_grown:
            has_grown = False
            for link in sorted(candidates, key=_by_target):
                if link in self.links:  # also one that was added on the way
                    has_grown = self._add_neighbours(link, candidates) or has_grown

    def _add_neighbours(self, link: Link, candidates: frozenset[Link]) -> bool:
        has_grown = False
        for source_step, target_step in _NEIGHBOURS:
            source, target = link[0] + source_step, link[1] + target_step
            is_new = source not in self.linked_sources or target not in self.linked_targets
            if is_new and (source, target) in candidates:
                self.add((source, target))
                has_grown = True
        return has_grown

    def add_unlinked(self, candidates: Iterable[Link], *, needs_both: bool) -> None:
        for source, target in sorted(candidates, key=_by_target):
            is_new_source = source not in self.linked_sources
            is_new_target = target not in self.linked_targets
            if (is_new_source and is_new_target) or (not needs_both and (is_new_source or is_new_target)):
                self.add((source, target))


def _by_target(link: Link) -> Link:
    source, target = link
    return target, source


def __getattr__(name: str) -> Any:
    return former_object(__name__, {"Method": f"{__name__}.Symmetrisation"}, name)

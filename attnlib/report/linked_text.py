"""Link the words of a text by the head that is given, or else by the best one."""

from dataclasses import dataclass, field, replace

from attnlib.alignment.gold import Gold, GoldFile, gold_of_text
from attnlib.alignment.links import HeadChoice, LinkedPair, Number, all_choices, choices_of
from attnlib.alignment.score_table import IBM_MODEL_1, Lexicon, best_choice, sums_by_choice
from attnlib.errors import first_names
from attnlib.report.text_to_link import Direction, ReadPairs, TextToLink, words_of_sides

# Sentence pairs, at most, on which the best head is looked for where there are no gold links.
CHOSEN_ON = 1_000


@dataclass(frozen=True, eq=False, kw_only=True)
class LinkedText:
    """The links of one direction.

    Attributes:
        direction: "forward" or "reverse".
        read: the pairs that have links, by each of ``choices``.
        source: words of every line.
        target: words of every line of the translation.
        choices: heads and means over heads.
        among: the choices that ``layer`` and ``head`` admit.
        chosen: the one whose links count.
        gold: links by the number of the line.
        lexicon: IBM Model 1 of the text, where there are gold links.
        notes: why the head was chosen, and what has no links.

    Example:
        >>> from attnlib.alignment.links import HeadChoice
        >>> head, read = HeadChoice(0, 0), ReadPairs(pairs=())
        >>> words = ((), ("two",))  # of a line that is empty, and of one that was not linked
        >>> linked = LinkedText(direction="forward", read=read, source=words, target=words,
        ...     choices=(head,), among=(head,), chosen=head)
        >>> sorted(linked.left_out)
        [0, 1]
    """

    direction: Direction
    read: ReadPairs
    source: tuple[tuple[str, ...], ...]
    target: tuple[tuple[str, ...], ...]
    choices: tuple[HeadChoice, ...]
    among: tuple[HeadChoice, ...]
    chosen: HeadChoice
    gold: dict[int, Gold] = field(default_factory=dict)
    lexicon: Lexicon | None = None
    notes: tuple[str, ...] = ()

    def __len__(self) -> int:
        return len(self.source)

    @property
    def pairs(self) -> tuple[LinkedPair, ...]:
        """The pairs that have links."""
        return self.read.pairs

    @property
    def left_out(self) -> frozenset[int]:
        """Numbers of the lines that have no links."""
        return frozenset(range(len(self))) - {pair.number for pair in self.pairs}


def linked_text(
    text: TextToLink, layer: Number | None, head: Number | None, *, file: GoldFile | None
) -> LinkedText:
    """Return the links of one direction by the head that is given, or else by the best one.

    Args:
        text: of which the model reads both sides.
        layer: number of a layer, or "mean"; None for any.
        head: number of a head, or "mean"; None for any.
        file: gold links; None if there are none.

    Returns:
        The links of the chosen head, and of all heads if there are gold links.

    Raises:
        BadInput: no such layer or head, no pair that can be linked, gold links of another text.

    Example:
        >>> from attnlib import zoo
        >>> from attnlib.progress import following
        >>> from attnlib.report.attended_pairs import StreamPasses
        >>> trained = zoo.load("one_to_one_AO")  # has one head
        >>> passes = StreamPasses(stream=trained.stream(), name=trained.word)
        >>> with following(progress=None) as follower:
        ...     text = TextToLink(passes=passes, shift="write", direction="forward", follower=follower)
        ...     linked = linked_text(text, layer=None, head=None, file=None)
        >>> str(linked.chosen)
        'layer 0, head 0'
    """
    among = choices_of(text.passes.heads(), layer, head)
    if file is not None:
        return _linked_by_gold(text, among, file)
    if len(among) == 1:
        return _linked_by_only(text, among[0])
    return _linked_by_agreement(text, among)


def _note_of_links_outside(file: GoldFile, inside: tuple[Gold | None, ...], n_outside: int) -> str:
    """Return how many gold links are left out, and of which lines."""
    numbers = []
    for number, (links, kept) in enumerate(zip(file.links, inside, strict=False), start=1):
        if links is not None and kept is not None and len(kept.possible) < len(links.possible):
            numbers.append(str(number))
    lines = f"({'line' if len(numbers) == 1 else 'lines'} {first_names(numbers, most=5)})"
    if n_outside == 1:
        return f"1 gold link leads outside its sentence and is left out {lines}"
    return f"{n_outside:,} gold links lead outside their sentences and are left out {lines}"


def _linked_by_gold(text: TextToLink, among: tuple[HeadChoice, ...], file: GoldFile) -> LinkedText:
    """Return the links of every head; the chosen one is the best by gold links."""
    if text.words is not None:
        gold_of_text(file, *words_of_sides(text.words))  # before the model reads anything
    choices = all_choices(text.passes.heads())
    read = text.read(choices)
    source, target = text.words_of_lines(read)
    of_text, n_outside = gold_of_text(file, source, target)
    gold = {number: links for number, links in enumerate(of_text) if links is not None}
    lexicon = text.lexicon(read)
    chosen = best_choice(sums_by_choice(read.pairs, gold, choices), among)
    notes = [f"{IBM_MODEL_1} was fitted on {lexicon.n_pairs:,} sentence pairs of this text"]
    if len(among) > 1:
        notes.append(
            f"{chosen} was chosen by the gold links themselves: its error rate is lower than it will be on "
            "other text, for which see the row “best head of the other half”"
        )
    if n_outside:
        notes.append(_note_of_links_outside(file, of_text, n_outside))
    return LinkedText(
        direction=text.direction,
        read=read,
        source=source,
        target=target,
        choices=choices,
        among=among,
        chosen=chosen,
        gold=gold,
        lexicon=lexicon,
        notes=(*notes, *read.notes(len(source))),
    )


def _linked_by_agreement(text: TextToLink, among: tuple[HeadChoice, ...]) -> LinkedText:
    """Return the links of the head that agrees most with IBM Model 1 on the first pairs of a text."""
    first = text.read(among, most=CHOSEN_ON)
    lexicon = text.lexicon(first)
    links = {pair.number: Gold(frozenset(lexicon.links(pair.source, pair.target))) for pair in first.pairs}
    best = best_choice(sums_by_choice(first.pairs, links, among), among)
    why = (
        f"{best} was chosen because its links agree most with those of {IBM_MODEL_1}, fitted on "
        f"{lexicon.n_pairs:,} sentence pairs of this text and compared on {len(first.pairs):,}"
    )
    if first.is_whole:
        linked = _of_read(text, first, choices=among, chosen=best)
    else:
        linked = _linked_by_only(text, best)
    return replace(linked, notes=(why, *linked.notes))


def _linked_by_only(text: TextToLink, choice: HeadChoice) -> LinkedText:
    """Return the links of one head."""
    return _of_read(text, text.read((choice,)), choices=(choice,), chosen=choice)


def _of_read(
    text: TextToLink, read: ReadPairs, *, choices: tuple[HeadChoice, ...], chosen: HeadChoice
) -> LinkedText:
    """Return the links of a chosen head in a text without gold links."""
    source, target = text.words_of_lines(read)
    return LinkedText(
        direction=text.direction,
        read=read,
        source=source,
        target=target,
        choices=choices,
        among=choices,
        chosen=chosen,
        notes=tuple(read.notes(len(source))),
    )

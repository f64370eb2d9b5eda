"""Hold what every view of an analysis shows alike: its words, its terms, sides and colours of its parts."""

from collections.abc import Callable

from attnlib.analysis.heads import Head
from attnlib.analysis.interventions import calibration_rows
from attnlib.analysis.results import Analysis, is_even
from attnlib.analysis.samples import Sample

Name = Callable[[str, int], str]  # side and id → the word

TITLE = "How this model attends"
# By kind of attention, the words of its queries and of its keys.
SIDES_OF_KIND = {
    "cross": ("target", "source"),
    "encoder_self": ("source", "source"),
    "decoder_self": ("read", "read"),
}
# Colours of the parts; purple is for mixed terms, and green for the bias.
COLOURS = {
    "temporal": "#0072b2",
    "input": "#d55e00",
    "mixed": "#aa4499",
    "residual": "#888888",
    "bias": "#009e73",
}
# By kind of attention, what names of terms have in them that are about words of the source.
_TERMS_OF_SOURCE_WORDS = {"cross": ("·input",), "encoder_self": ("·input", "input·"), "decoder_self": ()}


def id_as_word(_side: str, token: int) -> str:
    """Return the id itself, if nobody says which word it is of.

    Args:
        token: the id.

    Returns:
        Its digits.

    Example:
        >>> id_as_word("source", 7)
        '7'
    """
    return str(token)


def reads_frames(analysis: Analysis) -> bool:
    """Return True if the source has positions and no words, as pictures and sound: all has one id.

    Args:
        analysis: what ``attnlib.analyse`` or ``attnlib.read_report`` returned.

    Returns:
        False for texts.

    Example:
        >>> from types import SimpleNamespace
        >>> reads_frames(SimpleNamespace(states=[{"states": "encoder", "words": 1}]))  # one id for all frames
        True
    """
    words_seen = set()
    for row in analysis.states:
        site = row["states"]
        is_key_of_cross = site.startswith("cross") and site.endswith("key")
        if site.startswith("encoder") or is_key_of_cross:
            words_seen.add(row["words"])
    return words_seen == {1}


def shown_terms(analysis: Analysis, rows: list[dict]) -> list[dict]:
    """Leave out the terms of source words if the source has no words; these terms are zero.

    Args:
        analysis: that the rows are of.
        rows: of its terms.

    Returns:
        The rows to show.

    Example:
        >>> from attnlib import analyse, zoo
        >>> analysis = analyse(zoo.load("reordering").stream(batch_size=64))
        >>> shown_terms(analysis, analysis.terms) == analysis.terms
        True
    """
    if not reads_frames(analysis):
        return rows
    shown = []
    for row in rows:
        of_words = _TERMS_OF_SOURCE_WORDS[row["kind"]]
        if not any(part in row["term"] for part in of_words):
            shown.append(row)
    return shown


def calibration_of(analysis: Analysis) -> list[dict]:
    """Return the rank correlations between what shares say and how far attention moves.

    Args:
        analysis: made with interventions.

    Returns:
        Rows with the columns of :data:`~attnlib.analysis.interventions.CALIBRATION_COLUMNS`; none without
        interventions.

    Example:
        >>> from attnlib import analyse, zoo
        >>> calibration_of(analyse(zoo.load("reordering").stream(batch_size=64)))
        []
    """
    even = {Head.of_row(row) for row in analysis.heads if is_even(row)}
    return calibration_rows(analysis.terms, analysis.interventions, even)


def words_of(analysis: Analysis, sample: Sample, name: Name | None = None) -> dict[str, list[str]]:
    """Return the words of a sample's source, target and what is read; frames have their numbers.

    Args:
        analysis: that has the sample.
        sample: one that was kept.
        name: the word of an id; by default its piece, or the id itself if the analysis has no tokenizer.

    Returns:
        Words by "source", "target" and "read".

    Example:
        >>> from attnlib import analyse, zoo
        >>> network = zoo.load("reordering")
        >>> analysis = analyse(network.stream(batch_size=64))
        >>> words_of(analysis, analysis.samples[0], network.word)["source"][-1]
        '<eos>'
    """
    if sample.words:
        return {side: list(words) for side, words in sample.words.items()}
    words = {part: list(pieces) for part, pieces in sample.pieces.items()}
    if name is not None or not words:
        words = _named(sample, name or id_as_word)
    if reads_frames(analysis):
        words["source"] = [str(position) for position in range(len(sample.source))]
    return words


def _named(sample: Sample, name: Name) -> dict[str, list[str]]:
    return {
        "source": [name("source", token) for token in sample.source.tolist()],
        "target": [name("target", token) for token in sample.target.tolist()],
        "read": [name("target", token) for token in sample.read.tolist()],
    }

"""Samples of an analysis with their pieces joined to words: what is shown, while shares stay by piece."""

from dataclasses import replace

from attnlib.alignment.words import Words, join_attention
from attnlib.analysis.results import Analysis
from attnlib.analysis.samples import Sample
from attnlib.report.contents import SIDES_OF_KIND
from attnlib.report.pretrained import Checkpoint
from attnlib.trace import Side

_TOKENIZED_AS: dict[str, Side] = {"source": "source", "target": "target", "read": "target"}


def with_words(analysis: Analysis, checkpoint: Checkpoint) -> Analysis:
    """Return an analysis whose samples have words instead of pieces.

    Args:
        analysis: of passes of the checkpoint.
        checkpoint: whose tokenizer says which pieces make a word.

    Returns:
        A copy of the analysis; only its samples differ.

    Example:
        >>> from types import SimpleNamespace
        >>> from attnlib import zoo
        >>> from attnlib.report.one_call import analyse
        >>> analysis = analyse(zoo.load("reordering").stream(batch_size=64))
        >>> def join(side, tokens, *, keep_special):
        ...     return Words(("joined",), (0,) * len(tokens))
        >>> with_words(analysis, SimpleNamespace(join=join)).samples[0].words["source"]
        ('joined',)
    """
    samples = tuple(joined_sample(sample, checkpoint) for sample in analysis.samples)
    return replace(analysis, samples=samples)


def with_pieces(analysis: Analysis, checkpoint: Checkpoint) -> Analysis:
    """Return an analysis whose samples say which piece each id is of.

    Args:
        analysis: of passes of the checkpoint.
        checkpoint: whose tokenizer has the pieces.

    Returns:
        A copy of the analysis; only its samples differ.

    Example:
        >>> from types import SimpleNamespace
        >>> from attnlib import zoo
        >>> from attnlib.report.one_call import analyse
        >>> network = zoo.load("reordering")
        >>> analysis = analyse(network.stream(batch_size=64))
        >>> with_pieces(analysis, SimpleNamespace(word=network.word)).samples[0].pieces["source"][-1]
        '<eos>'
    """
    samples = []
    for sample in analysis.samples:
        pieces = {}
        for part, side in _TOKENIZED_AS.items():
            pieces[part] = tuple(checkpoint.word(side, token) for token in getattr(sample, part).tolist())
        samples.append(replace(sample, pieces=pieces))
    return replace(analysis, samples=tuple(samples))


def joined_sample(sample: Sample, checkpoint: Checkpoint) -> Sample:
    """Return a sample with its pieces joined to words.

    Attention is summed over the pieces of the word that is attended to, and averaged over the pieces of the
    word that attends, see :func:`~attnlib.alignment.words.join_attention`; so are the maps rebuilt of some
    terms, and the lexical probe. A special piece is a separate word. Terms are of pieces, and are left out.

    Args:
        sample: of passes of the checkpoint.
        checkpoint: whose tokenizer says which pieces make a word.

    Returns:
        A copy of the sample, with the words of each side in ``words``.

    Example:
        >>> from types import SimpleNamespace
        >>> from attnlib import zoo
        >>> from attnlib.report.one_call import analyse
        >>> sample = analyse(zoo.load("reordering").stream(batch_size=64)).samples[0]
        >>> def join(side, tokens, *, keep_special):
        ...     return Words(("joined",), (0,) * len(tokens))
        >>> joined = joined_sample(sample, SimpleNamespace(join=join))
        >>> {tuple(weights.shape) for weights in joined.attention.values()}
        {(1, 1)}
    """
    words: dict[str, Words] = {}
    for part, side in _TOKENIZED_AS.items():
        tokens = getattr(sample, part).tolist()
        words[part] = checkpoint.join(side, tokens, keep_special=True)
    maps = {}
    for (attention, head), of_head in sample.maps.items():
        kind, _ = attention.split(".")
        query_part, key_part = SIDES_OF_KIND[kind]
        maps[attention, head] = join_attention(of_head, words[query_part], words[key_part])
    probe = sample.probe
    if probe is not None:
        probe = join_attention(probe, words["target"], words["source"])
    return replace(
        sample,
        maps=maps,
        probe=probe,
        terms={},
        term_names={},
        pieces={},
        words={part: joined.words for part, joined in words.items()},
    )

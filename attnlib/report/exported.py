"""Tables of a report for other programs: as Parquet, and of the sentences on the page, head by head."""

import io
from typing import Any

from jaxtyping import Float
from torch import Tensor

from attnlib.analysis.heads import Head
from attnlib.analysis.results import Analysis
from attnlib.analysis.samples import Sample
from attnlib.optional import library
from attnlib.report.as_text import visible
from attnlib.report.contents import SIDES_OF_KIND, Name, words_of


def sentence_rows(analysis: Analysis, name: Name | None = None) -> list[dict[str, Any]]:
    """Return a row for each query and key of every head in the sentences that an analysis keeps.

    Args:
        analysis: that keeps samples.
        name: the word of an id, as for :func:`attnlib.report.report`; by default its piece, or the
            id itself if the analysis has no tokenizer.

    Returns:
        Rows with ``sentence``, ``kind``, ``layer``, ``head``, the positions ``query`` and ``key``, from 0,
        their words, the ``attention``, and each term of the score by its name; None where an attention has no
        such term, or a term is undefined. Pairs that are left out, or that a query cannot see, have no row.

    Example:
        >>> from attnlib import analyse, zoo
        >>> network = zoo.load("reordering")
        >>> rows = sentence_rows(analyse(network.stream(batch_size=64)), network.word)
        >>> list(rows[0])[:9]
        ['sentence', 'kind', 'layer', 'head', 'query', 'key', 'query_word', 'key_word', 'attention']
    """
    term_names: dict[str, None] = {}
    for sample in analysis.samples:
        for names in sample.term_names.values():
            term_names |= dict.fromkeys(names)
    rows = []
    for number, sample in enumerate(analysis.samples):
        words = {}
        for side, words_of_side in words_of(analysis, sample, name).items():
            words[side] = [visible(word) for word in words_of_side]
        for place, weights in sample.attention.items():
            columns = {"sentence": number, **place.columns}
            query_side, key_side = SIDES_OF_KIND[str(place.columns["kind"])]
            terms = _terms_of(sample, place)
            for query, key in (~weights.isnan()).nonzero().tolist():
                row = {
                    **columns,
                    "query": query,
                    "key": key,
                    "query_word": words[query_side][query],
                    "key_word": words[key_side][key],
                    "attention": float(weights[query, key]),
                }
                for term in term_names:
                    row[term] = None
                    if term in terms and not terms[term][query, key].isnan():
                        row[term] = float(terms[term][query, key])
                rows.append(row)
    return rows


def _terms_of(sample: Sample, head: Head) -> dict[str, Float[Tensor, "queries keys"]]:
    """Return the terms of a head by name; none where pieces were joined to words."""
    if head not in sample.terms:
        return {}
    return dict(zip(sample.term_names[head.attention], sample.terms[head], strict=True))


def parquet_of(rows: list[dict[str, Any]]) -> bytes:
    """Return rows as a file of Parquet.

    Args:
        rows: with one set of columns.

    Returns:
        The bytes of the file.

    Raises:
        BadInput: pyarrow is not installed.

    Example:
        >>> from importlib.util import find_spec
        >>> find_spec("pyarrow") is None or parquet_of([{"layer": 0}])[:4] == b"PAR1"
        True
    """
    table = library("pyarrow").Table.from_pylist(rows)
    buffer = io.BytesIO()
    library("pyarrow.parquet").write_table(table, buffer)
    return buffer.getvalue()

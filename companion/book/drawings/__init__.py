"""The book's drawings of networks and ideas, made by ``python -m companion.book.drawings``.

A page shows them by ``:::{drawing} bahdanau luong``, side by side where there is room.
"""

from collections.abc import Callable
from pathlib import Path

from companion.book.drawings import (
    decomposition,
    folders,
    learning,
    networks,
    paths,
    stages,
    tasks,
    transformers,
)
from companion.book.drawings.hand import Drawing

FOLDER = Path("book", "_drawings")  # of the committed files, below the root of the repository

_MAKERS: tuple[Callable[[], Drawing], ...] = (
    networks.cho,
    networks.sutskever,
    networks.bahdanau,
    networks.luong,
    networks.ved,
    networks.aed,
    networks.ao,
    networks.heads,
    decomposition.three_parts,
    decomposition.two_paths,
    decomposition.nine_terms,
    decomposition.worked_states,
    decomposition.worked_score,
    decomposition.nine_switches,
    decomposition.exchange,
    decomposition.memory,
    learning.step,
    learning.probe,
    learning.classifier,
    learning.two_labels,
    learning.three_words,
    stages.words_first,
    stages.attention_after,
    stages.same_words,
    stages.counts,
    stages.three_sets,
    stages.fixed_order,
    stages.two_networks,
    stages.resting,
    paths.paths,
    transformers.recurrent_pair,
    transformers.transformer_pair,
    transformers.three_attentions,
    folders.inside,
    tasks.reordering,
    tasks.scan,
    tasks.two_tasks,
)


def drawings() -> dict[str, Drawing]:
    """Return every drawing of the book by its name."""
    made = [make() for make in _MAKERS]
    return {drawing.name: drawing for drawing in made}

"""Small corpora whose count tables the second paper draws, with the translation of every word known.

Snell et al. 2021, Figures 1 (translation), 4 (permutations), 5 (polarity) and 8 (mixed permutations), and the
control of section 3.3, samples from more words than a sentence has. Words are as few as there.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float, Int

from attnlib.errors import check_known
from attnlib.training.corpus import Corpus
from attnlib.training.vocabulary import MARKS
from companion.runs.procedure import Recording
from notebooks.learn.early_dynamics.derivative import Bags
from notebooks.learn.early_dynamics.word_counts import text_of

NO_TRANSLATION = -1
# Any word goes with any of the others, and each stands for one word of the other language.
SLOTS = (
    (("mein", "my"), ("dein", "your"), ("sein", "his")),
    (("Film", "movie"), ("Roman", "novel"), ("Plan", "plan")),
    (("ist", "is"), ("war", "was"), ("wird", "becomes")),
    (("großartig", "great"), ("langweilig", "boring"), ("lang", "long")),
)
LETTERS = "ABCDEFGH"
LENGTH = 4  # letters of a sentence, as in Figures 4 and 8
POSITIVE, NEGATIVE = ("great", "moving"), ("dull", "awful")
NEUTRAL = ("film", "plot", "actor", "scene", "music", "end")


@dataclass(frozen=True, eq=False)
class CountCorpus:
    """Sentence pairs with the names of their words; ids start after the marks.

    ``right`` is the column of each source word's translation, or -1 where it has none.
    """

    corpus: Corpus
    source_words: tuple[str, ...]
    target_words: tuple[str, ...]
    right: Int[np.ndarray, " source_words"]
    marks = len(MARKS)

    @property
    def sizes(self) -> tuple[int, int]:
        """Of both vocabularies, marks included."""
        return len(self.source_words) + self.marks, len(self.target_words) + self.marks

    def without_marks(self, table: Float[np.ndarray, "ids ids"]) -> Float[np.ndarray, "words words"]:
        """A table over ids as one over words."""
        return table[self.marks :, self.marks :]

    @property
    def bags(self) -> Bags:
        """What the bag-of-words proxy sees, over words alone."""
        whole = Bags.of(self.corpus, *self.sizes)
        return Bags(whole.source[:, self.marks :], whole.target[:, self.marks :])


def draw(name: str, sentences: int, seed: int) -> CountCorpus:
    """One of :data:`CORPORA`, of so many sentence pairs."""
    check_known("corpus", name, CORPORA)
    return CORPORA[name](sentences, np.random.default_rng(seed))


def _lexicon(sentences: int, generator: np.random.Generator) -> CountCorpus:
    words = [pair for slot in SLOTS for pair in slot]
    first = np.cumsum([0, *map(len, SLOTS)])[:-1]
    drawn = [[start + generator.integers(len(slot)) for start, slot in zip(first, SLOTS, strict=True)]
             for _ in range(sentences)]  # fmt: skip
    german, english = zip(*words, strict=True)
    return _packed(drawn, drawn, german, english, range(len(words)))


def _permutation(sentences: int, generator: np.random.Generator) -> CountCorpus:
    return _copies([generator.permutation(LENGTH) for _ in range(sentences)], LENGTH)


def _sample(sentences: int, generator: np.random.Generator) -> CountCorpus:
    words = LENGTH * 3 // 2  # the paper's 40 of 60
    drawn = [generator.choice(words, LENGTH, replace=False) for _ in range(sentences)]
    return _copies(drawn, words)


def _mixture(sentences: int, generator: np.random.Generator) -> CountCorpus:
    drawn = [generator.permutation(LENGTH) + LENGTH * (i % 2) for i in range(sentences)]
    return _copies(drawn, 2 * LENGTH)


def _copies(drawn: list[np.ndarray], words: int) -> CountCorpus:
    letters = tuple(LETTERS[:words])
    return _packed(drawn, drawn, letters, tuple(f"{letter}′" for letter in letters), range(words))


def _polarity(sentences: int, generator: np.random.Generator) -> CountCorpus:
    """Reviews of one polar word among three neutral ones; the target is the label."""
    words = (*POSITIVE, *NEGATIVE, *NEUTRAL)
    polar = len(POSITIVE) + len(NEGATIVE)
    reviews, labels = [], []
    for i in range(sentences):
        negative = i % 2
        said = negative * len(POSITIVE) + generator.integers(len((POSITIVE, NEGATIVE)[negative]))
        review = [said, *(polar + generator.choice(len(NEUTRAL), LENGTH - 1, replace=False))]
        reviews.append(generator.permutation(review))
        labels.append([negative])
    right = [0] * len(POSITIVE) + [1] * len(NEGATIVE) + [NO_TRANSLATION] * len(NEUTRAL)
    return _packed(reviews, labels, words, ("+", "−"), right)


def _packed(sources, targets, source_words, target_words, right) -> CountCorpus:
    pairs = ([np.asarray(sentence) + len(MARKS) for sentence in side] for side in (sources, targets))
    return CountCorpus(Corpus.from_ids(*pairs), tuple(source_words), tuple(target_words), np.array(right))


CORPORA: dict[str, Callable[[int, np.random.Generator], CountCorpus]] = {
    "lexicon": _lexicon,
    "permutation": _permutation,
    "sample": _sample,
    "mixture": _mixture,
    "polarity": _polarity,
}

NUMBERS = ("agreement", "chance", "derivative_error", "derivative_correlation")


def measure_word_counts(recording: Recording) -> dict:
    """The recording with words in place of ids: for each listed source word its best target words."""
    text = text_of(recording.spec.resolved)
    source, target = text.source_vocabulary.words, text.target_vocabulary.words
    rows = [
        {"source": source[word]}
        | {
            name: [
                [target[other], value]
                for other, value in zip(
                    recording[f"{name}_words"][i].tolist(), recording[name][i].tolist(), strict=True
                )
            ]
            for name in ("counted", "iterated")
        }
        for i, word in enumerate(recording["words"].tolist())
    ]
    numbers = {name: recording[name].item() for name in NUMBERS}
    return {"rows": rows, "log_likelihood": recording["log_likelihood"].tolist()} | numbers

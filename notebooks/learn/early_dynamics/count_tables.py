"""Count tables: which words meet in sentence pairs, and what a first snapshot makes of it.

Snell et al. 2021, section 4 and Figures 1, 4, 5 and 8. With L the number of words of source m,

    (16)  C_io = Σ_m Σ_{t in source m} Σ_{s in target m} 1/L · 1[source word t is i] · 1[target word s is o]
    (17)  Trans(o | i) = C_io / Σ_o' C_io'
    (18)  β_st = Trans(target word s | source word t)
    (19)  α_st = β_st / Σ_t' β_st'

C is the table that IBM Model 1 starts from, every target word shared equally by the words of its source,
and the one that the proxy's first gradient follows. Sharing each target word by α instead of equally gives
the next table: expectation-maximisation. This is the paper's Model 1, without the null word that
:class:`~attnlib.probes.ibm_model_1.IBMModel1` has.

Tables are dense, (source words, target words): for vocabularies of up to some thousands.
"""

from dataclasses import dataclass

import numpy as np
from jaxtyping import Float, Int

from attnlib.errors import BadInput, check_known
from attnlib.training.corpus import Corpus
from attnlib.training.vocabulary import MARKS
from notebooks.learn.early_dynamics.derivative import Bags, check_ids

Table = Float[np.ndarray, "source_words target_words"]


def cooccurrence(corpus: Corpus, n_source: int, n_target: int) -> Table:
    """C, equation 16; ids are rows and columns."""
    check_ids(corpus, n_source, n_target)
    counts = np.zeros((n_source, n_target))
    for i in range(len(corpus)):
        source, target = corpus.source(i), corpus.target(i)
        if len(source):
            np.add.at(counts, (source[:, None], target[None, :]), 1 / len(source))
    return counts


def translation(counts: Table) -> Table:
    """Trans(o | i), equation 17: rows sum to one; a source word that met nothing keeps a row of zeros."""
    totals = counts.sum(1, keepdims=True)
    return np.divide(counts, totals, out=np.zeros_like(counts), where=totals > 0)


def alignment(table: Table, source, target) -> Float[np.ndarray, "target source"]:
    """α, equation 19, of one sentence pair, by Trans: the share of each source word in each target word.

    Rows of target words that no word of the source translates to are zero.
    """
    probe = table[np.asarray(source)[None, :], np.asarray(target)[:, None]]
    totals = probe.sum(1, keepdims=True)
    return np.divide(probe, totals, out=np.zeros_like(probe), where=totals > 0)


def shared_counts(corpus: Corpus, table: Table) -> Table:
    """The next count table: every target word shared by α among the words of its source."""
    check_ids(corpus, *table.shape)
    counts = np.zeros_like(table)
    for i in range(len(corpus)):
        source, target = corpus.source(i), corpus.target(i)
        np.add.at(counts, (source[None, :], target[:, None]), alignment(table, source, target))
    return counts


def log_likelihood(corpus: Corpus, table: Table) -> float:
    """Σ_m Σ_s log( 1/L Σ_t Trans(target word s | source word t) ), in nats: what the iterations raise."""
    check_ids(corpus, *table.shape)
    total = 0.0
    with np.errstate(divide="ignore"):  # a word that nothing translates to makes it minus infinity
        for i in range(len(corpus)):
            probe = table[corpus.source(i)[None, :], corpus.target(i)[:, None]]
            total += float(np.log(probe.mean(1)).sum()) if probe.size else 0.0
    return total


@dataclass(frozen=True, eq=False)
class CountTables:
    """Count tables through expectation-maximisation."""

    counts: tuple[Table, ...]  # C first, then the table after each iteration
    log_likelihood: tuple[float, ...]  # of the translation table made from each of them

    @classmethod
    def of(cls, corpus: Corpus, n_source: int, n_target: int, iterations: int = 0) -> "CountTables":
        """C, and the tables of so many iterations after it."""
        if iterations < 0:
            raise BadInput(f"iterations is {iterations}; it must be at least 0")
        counts = [cooccurrence(corpus, n_source, n_target)]
        for _ in range(iterations):
            counts.append(shared_counts(corpus, translation(counts[-1])))
        found = tuple(log_likelihood(corpus, translation(table)) for table in counts)
        return cls(tuple(counts), found)


# Small corpora whose count tables the paper draws, with the translation of every word known: Figures 1
# (translation), 4 (permutations), 5 (polarity) and 8 (mixed permutations), and the control of section 3.3,
# samples from more words than a sentence has. Words are as few as there.

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


CORPORA = {make.__name__[1:]: make for make in (_lexicon, _permutation, _sample, _mixture, _polarity)}

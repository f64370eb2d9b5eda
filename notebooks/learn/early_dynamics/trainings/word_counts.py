"""Count tables: which words meet in sentence pairs, what a first snapshot makes of it, and natural text.

Snell et al. 2021, section 4 and Figures 1, 4, 5 and 8. With L the number of words of source m,

    (16)  C_io = Σ_m Σ_{t in source m} Σ_{s in target m} 1/L · 1[source word t is i] · 1[target word s is o]
    (17)  Trans(o | i) = C_io / Σ_o' C_io'
    (18)  β_st = Trans(target word s | source word t)
    (19)  α_st = β_st / Σ_t' β_st'

Sharing each target word by α instead of equally gives the next table: expectation-maximisation, the paper's
Model 1, without the null word that :class:`~attnlib.probes.ibm_model_1.IBMModel1` has. Tables are dense,
(source words, target words): for vocabularies of up to some thousands. Of natural text, words beyond the most
frequent ones are one word, ``<unk>``. Nothing is trained by gradients.
"""

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor

from attnlib.errors import BadInput, check_at_least, check_known
from attnlib.models.corpus import Corpus
from attnlib.models.vocabulary import MARKS, UNK
from attnlib.probes.agreement import RowMean, agreement, chance_agreement
from companion.data import registry
from companion.data.task import Task
from companion.runs.loop import Report
from companion.runs.measure import measure
from companion.runs.procedure import Recording
from notebooks.shared.snapshots import Tensors

VERSION = 1  # of the training: raised when what it trains changes

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
        likelihoods = tuple(log_likelihood(corpus, translation(table)) for table in counts)
        return cls(tuple(counts), likelihoods)


# What the bag-of-words proxy learns first: its derivative at initialisation, in theory and measured.

Pairs = Float[Tensor, "source_words target_words"]


@dataclass(frozen=True, eq=False)
class Bags:
    """All that the proxy sees of a corpus."""

    source: Float[Tensor, "samples source_words"]  #: share of each source word in each source, n_i/L
    target: Float[Tensor, "samples target_words"]  #: how often each target word stands in each target

    @classmethod
    def of(cls, corpus: Corpus, n_source: int, n_target: int) -> "Bags":
        """Bags in float64, ids as columns."""
        if not corpus.source_lengths.all():
            raise BadInput("a source without words has no mean embedding; leave such pairs out")
        check_ids(corpus, n_source, n_target)
        sides = []
        for ids, lengths, size in (
            (corpus.source_ids, corpus.source_lengths, n_source),
            (corpus.target_ids, corpus.target_lengths, n_target),
        ):
            bags = np.zeros((len(corpus), size))
            np.add.at(bags, (np.repeat(np.arange(len(corpus)), lengths), ids), 1)
            sides.append(torch.from_numpy(bags))
        source, target = sides
        return cls(source / source.sum(1, keepdim=True), target)

    @property
    def counts(self) -> Pairs:
        """C of equation 16."""
        return self.source.T @ self.target


def check_ids(corpus: Corpus, n_source: int, n_target: int) -> None:
    """Raises BadInput: a word has a higher id than there are words on its side."""
    for side, ids, size in (("source", corpus.source_ids, n_source), ("target", corpus.target_ids, n_target)):
        if len(ids) and ids.max() >= size:
            raise BadInput(f"a {side} word has id {ids.max()}, but there are {size} {side} words")


@dataclass(frozen=True, eq=False)
class Derivative:
    """dθ̂/dτ and dθ/dτ at the start of training: of the logits, and of the probabilities."""

    logits: Pairs
    probabilities: Pairs


def derivative_in_theory(bags: Bags) -> Derivative:
    """The limit of infinite width (Snell et al. 2021, section 4.1 and appendix A.2).

    The proxy says each target word of sentence pair m with p^m = softmax( W · mean of the embeddings e of the
    source words ); loss = − Σ_m Σ_s log p^m_{y_s}, and W_o, e_i ~ N(0, I/width). Gradient flow gives the
    logits θ̂_io = W_o · e_i the derivative dθ̂_io/dτ = W_o · de_i/dτ + dW_o/dτ · e_i,

        W_o · de_i/dτ = Σ_m Σ_s n_i^m/L^m (W_o · W_{y_s} − Σ_o' p_o'^m W_o · W_o')
        dW_o/dτ · e_i = Σ_m Σ_s (1[y_s = o] − p_o^m) mean of e · e_i

    where n_i^m is how often word i stands in the L^m words of source m. As the width grows, W_o · W_o' →
    1[o = o'], e_i · e_j → 1[i = j], p → 1/N for N target words, and both halves come to the same. By the
    chain rule, the probabilities θ_i = softmax(θ̂_i) follow with the factor θ(0) = 1/N, which equation 15
    lacks (see the page):

        dθ̂_io/dτ → 2 (C_io − mean over o' of C_io')                                         (equation 54)
        dθ_io/dτ → 2/N · (C_io − mean over o' of C_io')
    """
    counts = bags.counts
    logits = 2 * (counts - counts.mean(1, keepdim=True))
    return Derivative(logits, logits / counts.shape[1])


def derivative_at_random(bags: Bags, width: int, seed: int) -> Derivative:
    """The derivative along gradient flow of a proxy drawn at random.

    It is the limit of (after − before) / rate over one gradient step as the rate goes to 0: the gradients of
    the loss by automatic differentiation, then the product rule and the derivative of softmax.
    """
    output, embeddings = random_proxy(bags, width, seed)
    output_slopes, embedding_slopes = gradients(bags, output, embeddings)
    logits = -(embedding_slopes @ output.T + embeddings @ output_slopes.T)
    probabilities = (embeddings @ output.T).softmax(-1)
    return Derivative(logits, probabilities * (logits - (probabilities * logits).sum(-1, keepdim=True)))


Output, Embeddings = Float[Tensor, "target_words width"], Float[Tensor, "source_words width"]


def random_proxy(bags: Bags, width: int, seed: int) -> tuple[Output, Embeddings]:
    """W and e, every entry from N(0, 1/width)."""
    if width < 1:
        raise BadInput(f"width is {width}; it must be at least 1")
    generator = torch.Generator().manual_seed(seed)
    source_words, target_words = bags.source.shape[1], bags.target.shape[1]
    output = torch.randn(target_words, width, generator=generator, dtype=torch.float64)
    embeddings = torch.randn(source_words, width, generator=generator, dtype=torch.float64)
    return output / width**0.5, embeddings / width**0.5


def gradients(bags: Bags, output: Output, embeddings: Embeddings) -> tuple[Output, Embeddings]:
    """Of the loss, equation 14, summed over all target words, by W and e."""
    output = output.detach().requires_grad_()
    embeddings = embeddings.detach().requires_grad_()
    logits = bags.source @ embeddings @ output.T
    loss = -(bags.target * logits.log_softmax(-1)).sum()
    return torch.autograd.grad(loss, (output, embeddings))


@dataclass(frozen=True)
class Comparison:
    """A measured derivative against one in theory."""

    error: float  #: norm of the difference over the norm of the theory's
    slope: float  #: of the least-squares line through the origin, measured over theory: 1 where equal
    correlation: float  #: of the entries


def compare(measured: Pairs, theory: Pairs) -> Comparison:
    """How close the two are, over all pairs of words.

    >>> theory = torch.tensor([[2.0, -2.0], [0.0, 0.0]])
    >>> found = compare(theory / 2, theory)
    >>> round(found.error, 3), round(found.slope, 3), round(found.correlation, 3)
    (0.5, 0.5, 1.0)
    """
    size = theory.norm()
    if size == 0:
        raise BadInput("the derivative in theory is zero everywhere, so nothing can be compared with it")
    product = (measured * theory).sum()
    both = torch.stack((measured.flatten(), theory.flatten()))
    return Comparison(
        error=float((measured - theory).norm() / size),
        slope=float(product / size**2),
        correlation=float(torch.corrcoef(both)[0, 1]),
    )


# Natural text: what is counted of it, and what is asked of the counts.

TOP = 4  # target words kept for each source word


@dataclass(frozen=True)
class Settings:
    """The text, and how far to iterate."""

    task: str = "multi30k_en_de"  # of sentence pairs, one that takes ``max_words``
    n_train: int = 0  # pairs counted, from the beginning; 0 for all
    max_words: int = 1_500  # of each side, the most frequent ones
    iterations: int = 10  # of expectation-maximisation, after the count table
    listed: int = 100  # source words whose rows are recorded, the most frequent ones
    judged: int = 1_000  # held-out pairs on which links are compared
    width: int = 256  # of a bag-of-words proxy drawn at random, whose first derivative is held against C
    derived: int = 2_000  # training pairs from which that derivative is taken
    seed: int = 0  # draws the proxy

    def __post_init__(self) -> None:
        check_at_least(1, self, "max_words", "iterations", "listed", "judged", "width", "derived")
        check_at_least(0, self, "n_train")


def task_of(settings: Settings) -> tuple[str, dict[str, object]]:
    """The sentence pairs, by name, and their options."""
    options: dict[str, object] = {"max_words": settings.max_words}
    if settings.n_train:
        options["n_train"] = settings.n_train
    return settings.task, options


def text_of(settings: Settings) -> Task:
    """The sentence pairs. Raises DataUnavailable where they are not available here."""
    name, options = task_of(settings)
    return registry.load(name, **options)


def record(settings: Settings, folder: Path, *, device: str = "cpu", report: Report | None = None) -> Tensors:
    """Count, iterate, and compare the links that follow.

    ``words``: ids of the listed source words; ``counted_words`` and ``counted`` (listed, 4): the target words
    that C gives most to and Trans from C; ``iterated_words`` and ``iterated``: the same after the iterations;
    ``log_likelihood`` by table; ``agreement`` and ``chance``: 𝒜 of the alignment after the iterations with
    that from C (equation 10) on held-out pairs, and its chance; ``derivative_error`` and
    ``derivative_correlation``: of the measured derivative of the proxy's logits with equation 54.
    """
    text = text_of(settings)
    source_words, target_words = len(text.source_vocabulary), len(text.target_vocabulary)
    tables = CountTables.of(text.train, source_words, target_words, settings.iterations)
    counted = translation(tables.counts[0])
    iterated = translation(tables.counts[-1])
    first_word = UNK + 1
    listed = np.arange(first_word, min(first_word + settings.listed, source_words))
    agreed, chance = _links(text, counted, iterated, settings.judged)
    derivative = _derivative(text, settings)
    return {
        "words": torch.from_numpy(listed),
        **_top("counted", counted, listed),
        **_top("iterated", iterated, listed),
        "log_likelihood": torch.tensor(tables.log_likelihood, dtype=torch.float64),
        "agreement": torch.tensor(agreed.value),
        "chance": torch.tensor(chance.value),
        "derivative_error": torch.tensor(derivative.error),
        "derivative_correlation": torch.tensor(derivative.correlation),
    }


def _derivative(text: Task, settings: Settings) -> Comparison:
    """Measured against theory, over words that are not marks."""
    pairs = text.train.subset(range(min(settings.derived, len(text.train))))
    whole = Bags.of(pairs, len(text.source_vocabulary), len(text.target_vocabulary))
    bags = Bags(whole.source[:, UNK:], whole.target[:, UNK:])
    measured = derivative_at_random(bags, settings.width, settings.seed)
    return compare(measured.logits, derivative_in_theory(bags).logits)


def _top(name: str, table: Table, words: np.ndarray) -> Tensors:
    """The most probable target words of each row, without <unk>."""
    rows = torch.from_numpy(table[words])
    rows[:, : UNK + 1] = 0
    values, ids = rows.topk(TOP)
    return {f"{name}_words": ids, name: values}


def _links(text: Task, first: Table, last: Table, judged: int) -> tuple[RowMean, RowMean]:
    """Agreement of the last alignment with the first, over target words of held-out pairs."""
    agreed, chance = RowMean(), RowMean()
    for i in range(min(judged, len(text.held_out))):
        source, target = text.held_out.source(i), text.held_out.target(i)
        counted, iterated = (torch.from_numpy(alignment(table, source, target)) for table in (first, last))
        met = (counted.sum(1) > 0) & (iterated.sum(1) > 0)
        agreed += RowMean.of(agreement(iterated[met], counted[met]))
        chance += RowMean.of(chance_agreement(counted[met]))
    return agreed, chance


NUMBERS = ("agreement", "chance", "derivative_error", "derivative_correlation")


@measure(version=1)
def measure_word_counts(recording: Recording) -> dict:
    """The recording with words in place of ids: for each listed source word its best target words."""
    text = text_of(recording.spec.resolved)
    source_words, target_words = text.source_vocabulary.words, text.target_vocabulary.words

    def best_of(place: int, name: str) -> list[list]:
        """Target words with their values, for the source word listed there."""
        words = [target_words[word] for word in recording[f"{name}_words"][place].tolist()]
        return [[word, value] for word, value in zip(words, recording[name][place].tolist(), strict=True)]

    rows = []
    for place, word in enumerate(recording["words"].tolist()):
        row = {"source": source_words[word]}
        rows.append(row | {name: best_of(place, name) for name in ("counted", "iterated")})
    numbers = {name: recording[name].item() for name in NUMBERS}
    return {"rows": rows, "log_likelihood": recording["log_likelihood"].tolist()} | numbers


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
        polar_word = negative * len(POSITIVE) + generator.integers(len((POSITIVE, NEGATIVE)[negative]))
        review = [polar_word, *(polar + generator.choice(len(NEUTRAL), LENGTH - 1, replace=False))]
        reviews.append(generator.permutation(review))
        labels.append([negative])
    right = [0] * len(POSITIVE) + [1] * len(NEGATIVE) + [NO_TRANSLATION] * len(NEUTRAL)
    return _packed(reviews, labels, words, ("+", "−"), right)


def _packed(sources, targets, source_words, target_words, right) -> CountCorpus:
    pairs = ([np.asarray(sentence) + len(MARKS) for sentence in side] for side in (sources, targets))
    return CountCorpus(Corpus.from_ids(*pairs), tuple(source_words), tuple(target_words), np.array(right))


CORPORA = {make.__name__[1:]: make for make in (_lexicon, _permutation, _sample, _mixture, _polarity)}

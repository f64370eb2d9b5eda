"""Agreement, links of words, the lexical probe, the best attention: by hand, by loops, by scipy."""

import math
import weakref
from collections import defaultdict
from fractions import Fraction
from itertools import permutations

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch.overrides import TorchFunctionMode

from attnlib import agreement
from attnlib.alignment.gold import read_gold
from attnlib.models.corpus import Corpus
from attnlib.models.vocabulary import Vocabulary
from attnlib.probes import ibm_model_1
from attnlib.probes.agreement import (
    RowMean,
    agreement_with_ties_broken,
    chance_agreement,
    halves,
    tied_at_top,
)
from attnlib.probes.alignment_error import AlignmentSums, diagonal, gold_links, link_mask, words_only
from attnlib.probes.ibm_model_1 import NO_LINK, NULL, IBMModel1
from attnlib.probes.lexical_probe import log_lexical_probe, log_probability_of_pairs
from tests.attnlib.models.model_builders import batch_of, translator
from tests.attnlib.refusals import refused
from tests.tables import beside


def equation_10(first: list[float], second: list[float], percent: int, ties: str = "first") -> float:
    """As it is printed, with the exact bound."""
    if not first or any(map(math.isnan, first + second)):
        return math.nan
    tops = [k for k, value in enumerate(first) if value == max(first)]
    agrees = [100 * sum(value > second[top] for value in second) < percent * len(second) for top in tops]
    return float(agrees[0]) if ties == "first" else float(np.mean(agrees))


@st.composite
def ragged_rows(draw):
    """Two rows for each of three masks, which broadcast; some entries no number; anything at padding."""
    shape = 3, 2, draw(st.integers(1, 45))
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    values = draw(st.sampled_from([[-2, 0, 3], [-math.inf, 0, 1, 2], [math.inf, -math.inf], range(99)]))
    sides = [torch.from_numpy(rng.choice(np.array(values, dtype=float), shape)) for _ in range(2)]
    mask = torch.from_numpy(rng.random((3, 1, shape[2])) < draw(st.sampled_from([0.1, 0.5, 1.0])))
    for side in sides:
        side[torch.from_numpy(rng.random(shape) < draw(st.sampled_from([0, 0.02])))] = torch.nan
        side[~mask.expand(shape)] = draw(st.sampled_from([torch.nan, 99.0, torch.inf, -torch.inf, 0.0]))
    return *sides, mask


@pytest.mark.signatures
@given(ragged_rows(), st.integers(1, 100))
def test_each_row_has_what_loops_find_at_its_valid_positions(rows, percent):
    first, second, mask = rows
    measured = {
        "first": agreement(*rows, percent=percent),
        "shared": agreement(*rows, percent=percent, ties="shared"),
        "chance": chance_agreement(second, mask, percent=percent),
        "broken": agreement_with_ties_broken(*rows, percent=percent),
        "tied": tied_at_top(first, mask),
    }
    for sample, step in np.ndindex(3, 2):
        u, v = (side[sample, step][mask[sample, 0]].tolist() for side in (first, second))
        alone = torch.tensor([u, v], dtype=torch.float64)  # of which the test below has all orders
        expected = {
            "first": equation_10(u, v, percent),
            "shared": equation_10(u, v, percent, "shared"),
            "chance": equation_10([0.0] * len(v), v, percent, "shared"),
            "broken": float(agreement_with_ties_broken(*alone, percent=percent)) if u else math.nan,
            "tied": float(len(u) > 1 and sorted(u)[-2:] == [max(u)] * 2 and not any(map(math.isnan, u))),
        }
        here = {name: float(values[sample, step]) for name, values in measured.items()}
        assert here == pytest.approx(expected, abs=1e-12, nan_ok=True)


def integers(longest, least=-3):
    rows = st.integers(1, longest).flatmap(lambda n: st.lists(st.integers(least, 3), min_size=n, max_size=n))
    return rows.map(lambda row: torch.tensor([row], dtype=torch.float64))


@pytest.mark.signatures
@given(integers(50))
def test_chance_is_the_mean_over_every_place_the_top_can_have(second):
    length = second.shape[1]
    tops = torch.eye(length, dtype=torch.float64)
    assert chance_agreement(second).item() == pytest.approx(agreement(tops, second).mean().item())
    share = math.ceil(length / 20) / length
    assert chance_agreement(second + torch.arange(length) / 1000).item() == pytest.approx(share)
    broken = agreement_with_ties_broken(tops, second)  # then chance is that share whatever is tied
    assert broken.mean().item() == pytest.approx(share)
    assert (broken <= agreement(tops, second)).all()


@given(integers(5, least=1), st.sampled_from([5, 30, 60]), st.integers(0, 4))
def test_ties_broken_is_the_mean_over_all_orders_of_what_is_tied(second, percent, top):
    length = second.shape[1]
    first = torch.arange(length) == min(top, length - 1)
    orders = torch.tensor(list(permutations(range(length))), dtype=torch.float64) / 100
    expected = agreement(first.double(), second + orders, percent=percent).mean().item()
    value = agreement_with_ties_broken(first.double(), second, percent=percent)
    assert value.item() == pytest.approx(expected)


@pytest.mark.signatures
def test_a_mean_over_batches_is_the_mean_over_all():
    values = torch.tensor([1.0, 0.0, torch.nan, 1.0, 1.0])
    assert RowMean.of(values[:2]) + RowMean.of(values[2:]) == RowMean.of(values)
    assert RowMean.of(values).value == 0.75
    assert math.isnan(RowMean().value)
    assert RowMean() + RowMean.of(values) == RowMean.of(values)
    present = torch.tensor([True, True, True, False, False])
    assert RowMean.of(values, present) == RowMean(total=1.0, rows=2, undefined=1)


def test_halves_are_a_partition_that_the_seed_decides():
    selecting, reporting = halves(11, seed=4)
    assert (len(selecting), len(reporting)) == (5, 6)
    assert sorted(selecting.tolist() + reporting.tolist()) == list(range(11))
    assert torch.equal(selecting, halves(11, seed=4)[0])
    assert not torch.equal(selecting, halves(11, seed=5)[0])


def test_of_two_samples_each_is_a_half():
    selecting, reporting = halves(2)
    assert sorted([selecting.tolist(), reporting.tolist()]) == [[0], [1]]


# Links of words.

WORKED = beside(__file__, "links")


@pytest.mark.parametrize("case", WORKED)
def test_error_rates_by_hand(case):
    attention, gold = torch.tensor([WORKED[case]["attention"]]), WORKED[case]["gold"]
    expected = {name: float(Fraction(value)) for name, value in WORKED[case]["expected"].items()}
    target_words, source_words = (torch.ones(1, length, dtype=torch.bool) for length in attention.shape[1:])
    links = link_mask([gold], *attention.shape[1:])
    sums = AlignmentSums().update(attention, links, target_words=target_words, source_words=source_words)
    rates = sums.result()
    assert {name: getattr(rates, name) for name in expected} == pytest.approx(expected)


def test_a_row_of_links_is_of_a_target_word():
    assert link_mask([{(2, 0)}], 1, 3).tolist() == [[[False, False, True]]]


def test_the_former_name_of_links_warns():
    with pytest.warns(DeprecationWarning, match="link_mask"):
        gold_links([{(0, 2)}], 1, 3)


@pytest.mark.signatures
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_the_former_name_takes_links_in_its_former_order():
    assert torch.equal(gold_links([{(0, 2)}], 1, 3), link_mask([{(2, 0)}], 1, 3))


@pytest.mark.signatures
def test_gold_links_of_a_file_have_the_order_of_attention():
    """The second target word attends to the first source word: 0-1 in Pharaoh's format."""
    attention = torch.tensor([[[0.1, 0.9], [0.8, 0.2]]])
    both = torch.ones(1, 2, dtype=torch.bool)
    (gold,) = read_gold(["1-0 0-1"]).links
    sums = AlignmentSums().update(
        attention, link_mask([gold.sure], 2, 2), target_words=both, source_words=both
    )
    assert sums.result().error_rate == 0


@given(st.integers(0, 2**32 - 1), st.integers(1, 6), st.booleans())
def test_two_batches_come_to_what_a_loop_counts(seed, batch, with_null):
    """Weights that are often tied or zero, rows below null, rows without gold, anything outside the words."""
    rng = np.random.default_rng(seed)
    attention, null = rng.choice([0.0, 0.25, 0.5, 1.0], (batch, 4, 5)), rng.choice([0.25, 0.5], (batch, 4))
    rows, columns = (np.arange(n) < rng.integers(0, n + 1, (batch, 1)) for n in (4, 5))
    inside = rows[:, :, None] & columns[:, None, :]
    gold = inside & (rng.random(inside.shape) < 0.2)
    hits = made = 0
    for n, s in np.argwhere(rows):
        row, best = attention[n, s][columns[n]], attention[n, s][columns[n]].max(initial=0)
        if best > 0 and not (with_null and best < null[n, s]):
            made += 1
            hits += gold[n, s][columns[n]][row == best].mean()
    attention[~inside] = 9.0
    masks = {"target_words": rows, "source_words": columns}
    options = masks | {"null": null} if with_null else masks
    sums = []
    for part in (slice(2), slice(2, None)):
        given = {name: torch.from_numpy(values)[part] for name, values in options.items()}
        weights, links = torch.from_numpy(attention)[part], torch.from_numpy(gold)[part]
        sums.append(AlignmentSums().update(weights, links, **given))
    rates, linked = (sums[0] + sums[1]).result(), int(gold.any(-1).sum())
    assert (rates.made, rates.gold, rates.rows) == (made, gold.sum(), linked)
    expected = {"precision": (hits, made), "recall": (hits, gold.sum()), "agreement": (hits, linked)}
    expected |= {"mass_on_gold": (attention[gold].sum(), linked)}
    for name, (part, whole) in expected.items():
        assert getattr(rates, name) == pytest.approx(part / whole if whole else math.nan, nan_ok=True)
    if made + gold.sum():
        assert rates.error_rate == pytest.approx(1 - 2 * hits / (made + gold.sum()))


@pytest.mark.signatures
def test_the_diagonal_stretches_to_the_longer_side():
    """Two target words halve four source words: middles 1 and 3; four halve two; the middle of four is 2."""
    expected = {(3, 3): [0, 1, 2], (2, 2): [0, 1], (2, 4): [1, 3], (4, 2): [0, 0, 1, 1], (1, 4): [2]}
    rows, columns = (torch.arange(4) < torch.tensor(side)[:, None] for side in zip(*expected, strict=True))
    weights = diagonal(rows, columns)
    for sample, places in zip(weights, expected.values(), strict=True):
        assert sample[: len(places)].argmax(-1).tolist() == places
    assert float(weights.sum()) == int(rows.sum())  # none at padding


@pytest.mark.signatures
def test_a_mask_without_end_marks():
    mask = torch.tensor([[True, True, True], [True, False, False]])
    assert words_only(mask).tolist() == [[True, True, False], [False, False, False]]


# IBM Model 1.

GERMAN = Vocabulary.of(["das", "Haus", "Buch", "ein"])
ENGLISH = Vocabulary.of(["the", "house", "book", "a"])
PAIRS = [("das Haus", "the house"), ("das Buch", "the book"), ("ein Buch", "a book")]


def fitted(pairs, **options) -> IBMModel1:
    lines = zip((GERMAN, ENGLISH), zip(*pairs, strict=True), strict=True)
    sides = [[words.encode(line.split()) for line in side] for words, side in lines]
    return IBMModel1.fit(Corpus.from_ids(*sides), len(GERMAN), len(ENGLISH), **options)


def naive(pairs, n_target: int, iterations: int) -> tuple[dict, dict]:
    """The algorithm as textbooks print it, word by word over dictionaries."""
    table = defaultdict(lambda: 1 / n_target)
    counts: dict = {}
    for _ in range(iterations):
        counts, totals = defaultdict(float), defaultdict(float)
        for words, targets in pairs:
            source = [NULL, *words]
            for target in targets:
                all_of_it = sum(table[word, target] for word in source)
                for word in source:
                    counts[word, target] += table[word, target] / all_of_it
                    totals[word] += table[word, target] / all_of_it
        table = {pair: count / totals[pair[0]] for pair, count in counts.items()}
    return table, counts


def test_one_iteration_of_ibm_model_1_by_hand():
    """das, Haus, null start equal: a third of a link each. das meets the twice, house and book once."""
    model = fitted(PAIRS, iterations=1)
    das, haus = GERMAN.encode(["das", "Haus"])
    the, house, book, a = ENGLISH.encode(["the", "house", "book", "a"])
    words = np.array([the, house, book, a])
    assert model.probability(das, words) == pytest.approx([1 / 2, 1 / 4, 1 / 4, 0])
    assert model.probability(haus, the) == pytest.approx(1 / 2)
    assert model.probability(NULL, words) == pytest.approx([1 / 3, 1 / 6, 1 / 3, 1 / 6])
    assert len(fitted(PAIRS).log_likelihood) == 11  # before each of ten iterations, and after
    entry = np.flatnonzero((model.sources == das) & (model.targets == the))
    assert (model.counts[entry], model.cooccurrences[entry]) == (pytest.approx(2 / 3), 2)


IDS = st.integers(4, 11)
SENTENCES = st.lists(st.tuples(st.lists(IDS, min_size=1, max_size=6), st.lists(IDS, max_size=6)), min_size=1)


PAIRS_WITH_WORDS = SENTENCES.filter(lambda pairs: any(target for _, target in pairs))


@pytest.fixture(scope="module", params=[1, 50, 10**6])
def block(request):
    """How many entries of the table are worked on at once."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(ibm_model_1, "_BLOCK", request.param)
        yield request.param


def model_of(pairs):
    return IBMModel1.fit(Corpus.from_ids(*zip(*pairs, strict=True)), 12, 12, iterations=4)


@given(PAIRS_WITH_WORDS)
def test_ibm_model_1_is_the_plain_algorithm(block, pairs):
    model, (table, counts) = model_of(pairs), naive(pairs, 12, iterations=4)
    entries = list(zip(model.sources.tolist(), model.targets.tolist(), strict=True))
    assert dict(zip(entries, model.probabilities, strict=True)) == pytest.approx(table)
    assert dict(zip(entries, model.counts, strict=True)) == pytest.approx(counts)


@given(PAIRS_WITH_WORDS)
def test_the_likelihood_of_ibm_model_1_climbs(block, pairs):
    model = model_of(pairs)
    assert len(model.log_likelihood) == 5
    assert (np.diff(model.log_likelihood) >= -1e-9).all()


@given(PAIRS_WITH_WORDS)
def test_posteriors_of_ibm_model_1_are_those_of_the_plain_algorithm(block, pairs):
    model, (table, _) = model_of(pairs), naive(pairs, 12, iterations=4)
    for source, target in pairs:
        weights = np.array([[table[word, written] for word in (NULL, *source)] for written in target])
        if target:
            expected = weights[:, 1:] / weights.sum(1, keepdims=True)
            assert model.posteriors(source, target) == pytest.approx(expected)


@pytest.mark.signatures
@pytest.mark.parametrize(("pairs", "source", "target"), [(PAIRS, "ein", "house"), (PAIRS[:1], "das", "book")])
def test_a_word_that_only_null_explains_or_nothing_has_no_link(pairs, source, target):
    """house and ein never stand in one sentence, but every word stands with null; book is not seen at all."""
    model, sides = fitted(pairs, iterations=3), (GERMAN.encode([source]), ENGLISH.encode([target]))
    assert model.best_links(*sides).tolist() == [NO_LINK]
    assert model.posteriors(*sides).tolist() == [[0.0]]
    assert NO_LINK == -1
    assert model.probability(len(GERMAN), 0) == 0  # of a word behind all others


# The lexical probe.


def traced(form="joined", lengths=((3, 5), (7, 2), (1, 1))):
    draw = np.random.default_rng(0)
    batch = batch_of(pairs=[[draw.integers(4, 300, size=n) for n in both] for both in lengths])
    model = translator(form=form, words=300, width=6).float()
    with torch.no_grad():
        return model, batch, model(batch)


def probe(model, batch, trace, **options):
    states = trace.encoder_states, trace.decoder_states
    wanted = {
        "outputs": batch.target_output,
        "source_mask": batch.source_mask,
        "target_mask": batch.target_mask,
    }
    return log_lexical_probe(model.readout, *states, **wanted, **options)


def every_logit(model, batch, trace):
    """Every logit of every pair at once, from the layers as the paper writes them."""
    readout = model.readout
    shape = (*batch.target_output.shape, batch.source.shape[1], -1)
    context = readout.context(trace.encoder_states)[:, None].expand(shape)
    states = trace.decoder_states[:, :, None].expand(shape)
    joined = model.config.form == "joined"
    hidden = readout.hidden(torch.cat([context, states], -1)).relu() if joined else context + states
    right = batch.target_output[:, :, None, None].expand(*shape[:3], 1)
    return readout.output(hidden).log_softmax(-1).gather(-1, right)[..., 0]


@pytest.mark.signatures
@pytest.mark.parametrize("form", ["joined", "summed"])
@pytest.mark.parametrize("at_once", [1, 7, 512])
def test_the_probe_is_the_plain_version_at_valid_pairs(form, at_once):
    model, batch, trace = traced(form)
    log_probe = probe(model, batch, trace, at_once=at_once)
    valid = batch.target_mask[:, :, None] & batch.source_mask[:, None, :]
    torch.testing.assert_close(log_probe[valid], every_logit(model, batch, trace)[valid])
    assert (log_probe[valid] < 0).all()


@pytest.mark.parametrize("form", ["joined", "summed"])
@pytest.mark.parametrize("at_once", [1, 7, 512])
def test_the_probe_gives_padding_no_probability(form, at_once):
    model, batch, trace = traced(form)
    valid = batch.target_mask[:, :, None] & batch.source_mask[:, None, :]
    assert (probe(model, batch, trace, at_once=at_once)[~valid] == -torch.inf).all()


@pytest.mark.signatures
def test_the_probe_by_hand():
    """Two words of logits (z, −z) with z the sum of both parts: the right word has probability σ(2z)."""
    both = torch.ones(1, 2, dtype=torch.bool)
    sides = torch.tensor([[[1.0], [-2.0]]]), torch.tensor([[[0.5], [0.0]]])
    words = torch.tensor([[0, 1]])
    log_probability = log_probability_of_pairs(
        *sides, lambda z: torch.cat([z, -z], 1), outputs=words, source_mask=both, target_mask=both
    )
    expected = torch.sigmoid(torch.tensor([[[3.0, -3.0], [-2.0, 4.0]]]))
    torch.testing.assert_close(log_probability.exp(), expected)


class Held(TorchFunctionMode):
    """How many bytes the tensors have at once that are made while it is on; ``most`` is the largest sum."""

    def __init__(self):
        super().__init__()
        self.made: list[weakref.ref] = []
        self.given: set[int] = set()  # where the numbers of tensors are that were there before
        self.most = 0

    def __torch_function__(self, function, types, args=(), kwargs=None):
        kwargs = kwargs or {}
        made = {storage_of(tensor) for tensor in self.alive()}
        given = {storage_of(tensor) for tensor in tensors_in([*args, *kwargs.values()])}
        self.given |= given - made
        result = function(*args, **kwargs)
        self.made = [weakref.ref(tensor) for tensor in [*self.alive(), *tensors_in([result])]]
        held = {storage_of(tensor): tensor.untyped_storage().nbytes() for tensor in self.alive()}
        self.most = max(self.most, sum(size for place, size in held.items() if place not in self.given))
        return result

    def alive(self) -> list[torch.Tensor]:
        tensors = [reference() for reference in self.made]
        return [tensor for tensor in tensors if tensor is not None]


def storage_of(tensor) -> int:
    return tensor.untyped_storage().data_ptr()


def tensors_in(values) -> list[torch.Tensor]:
    tensors = []
    for value in values:
        if isinstance(value, torch.Tensor):
            tensors.append(value)
        elif isinstance(value, (list, tuple)):
            tensors += tensors_in(value)
    return tensors


def peak(run) -> int:
    """The most numbers of 4 bytes that tensors hold at once while something runs, beyond what it is given."""
    with Held() as held:
        run()
    return held.most // 4


@pytest.mark.parametrize("form", ["joined", "summed"])
@torch.no_grad()
def test_memory_is_what_the_pairs_at_once_ask_for(form):
    model, batch, trace = traced(form, lengths=[(20, 20)] * 8)
    pairs, words, width = 8 * 21 * 21, 300, 6
    all_logits = peak(lambda: every_logit(model, batch, trace))
    assert all_logits >= 2 * pairs * words  # the logits and their softmax
    # The result, three places of 8 bytes a pair, a byte of mask, and the two mapped sides.
    whatever = pairs + 3 * 2 * pairs + pairs // 4 + 2 * 8 * 21 * width
    peaks = {n: peak(lambda n=n: probe(model, batch, trace, at_once=n)) for n in (16, 64, 256)}
    for at_once, ours in peaks.items():
        assert ours - whatever <= 2 * at_once * (words + width + 1)
        assert ours < all_logits / 10
    assert peaks[256] - peaks[16] >= (256 - 16) * words  # so the logits are among what was measured
    assert peak(lambda: probe(model, batch, trace, at_once=pairs)) >= pairs * words


# What cannot be.

BOTH = torch.ones(1, 2, dtype=torch.bool)


def align(links, length, target_words):
    gold = link_mask([links], 2, length)
    AlignmentSums().update(torch.ones(1, 2, length), gold, target_words=target_words, source_words=BOTH)


def fit(sources, targets, iterations=1):
    IBMModel1.fit(Corpus.from_ids(sources, targets), 6, 6, iterations=iterations)


test_what_cannot_be_is_refused = refused(
    (lambda: RowMean.of(torch.zeros(3), torch.ones(2).bool()), "one truth value a row"),
    (lambda: align({(0, 1)}, 2, torch.tensor([[True, False]])), "outside the words"),
    (lambda: align(set(), 3, BOTH), "give all three as"),
    (lambda: fit([], []), "at least one sentence pair"),
    (lambda: fit([[4]], [[]]), "at least one sentence pair"),
    (lambda: fit([[4]], [[4]], 0), "iterations is 0"),
    (lambda: fit([[7]], [[4]]), "a source word has id 7, but n_source is 6; ids end at 5"),
    (lambda: fit([[4]], [[6]]), "a target word has id 6, but n_target is 6"),
)

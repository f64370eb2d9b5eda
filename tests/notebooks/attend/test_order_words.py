"""Swapped order words: pairs by hand, routes and patches that must add up, predictions that must be exact."""

from functools import cache

import numpy as np
import pytest
import torch

from attnlib.models.corpus import collate
from companion.data import registry
from companion.runs.spec import ModelSpec
from notebooks.attend.order_words import experiment
from notebooks.attend.order_words.experiment import change_shares, flip_share
from notebooks.shared.measure import fit_components
from notebooks.shared.tasks.synthetic import interpret, translate
from tests.notebooks.worked import assert_answer

SMALL = (("min_phrases", 2), ("max_phrases", 3), ("n_held_out", 120), ("n_train", 300), ("p", 1.0))
SETTINGS = {"steps": 3, "width": 8, "batch_size": 16, "learning_rate": 0.01, "task_options": SMALL}


@pytest.fixture(scope="module", params=["AED", "AO"])
def trained(request, store):
    return store.model(ModelSpec("reordering", request.param, **SETTINGS))


@pytest.fixture(scope="module")
def setting(trained):
    fitted = fit_components(trained, 200)
    pairs = experiment.draw_pairs(trained.task, experiment.REORDERING_SWAPS[0], 12)
    batches = tuple(collate(corpus, range(len(pairs))) for corpus in (pairs.first, pairs.second))
    with torch.inference_mode():
        runs = experiment.run_both(trained.model, batches, torch.from_numpy(pairs.positions), fitted)
    return fitted, pairs, batches, runs


@pytest.mark.parametrize(
    ("here", "there", "fork"),
    [
        ("now red fox old owl", "now wild fox old owl", (1, 1, 2)),
        ("now red fox old owl", "once red fox old owl", (1, 1, 3)),  # either way the opening comes first
        ("walk left and run", "walk left after run", (0, -1, -1)),
        ("walk twice", "walk thrice", (2, -1, -1)),  # an end against a third walk
    ],
)
def test_the_fork_is_where_another_source_word_is_translated(here, there, fork):
    sides = [words.split() for words in (here, there)]
    meant = [
        experiment.Meant(interpret(words)) if words[0] == "walk" else experiment.Meant(*translate(words))
        for words in sides
    ]
    assert experiment.fork_of(*meant) == experiment.Fork(*fork)


PARTNERS = pytest.mark.parametrize(
    ("swap", "part"),
    [
        pytest.param(swap, part, id=f"{swap.name}-{part}")
        for swap in experiment.REORDERING_SWAPS
        for part in ("held_out", "train")
    ],
)


@cache
def partners_of(swap, part):
    task = registry.load("reordering", **dict(SMALL))
    return task, experiment.draw_pairs(task, swap, 120, part=part)


@PARTNERS
def test_partners_differ_in_one_word(swap, part):
    _, pairs = partners_of(swap, part)
    for i in range(len(pairs)):
        differing = np.flatnonzero(pairs.first.source(i) != pairs.second.source(i))
        assert differing.tolist() == [pairs.positions[i]]


@PARTNERS
def test_partners_are_in_no_other_part(swap, part):
    task, pairs = partners_of(swap, part)
    other = task.train if part == "held_out" else task.held_out
    known = {tuple(other.source(i)) for i in range(len(other))}
    assert not any(tuple(pairs.second.source(i)) in known for i in range(len(pairs)))


@PARTNERS
def test_the_target_of_a_partner_is_its_translation(swap, part):
    task, pairs = partners_of(swap, part)
    for i in range(len(pairs)):
        words = task.source_vocabulary.decode(pairs.second.source(i).tolist())
        target = task.target_vocabulary.decode(pairs.second.target(i).tolist())
        assert target == list(translate(words)[0])


@PARTNERS
def test_swapped_words_are_of_the_groups_that_the_swap_names(swap, part):
    task, pairs = partners_of(swap, part)
    for i, position in enumerate(pairs.positions):
        sources = pairs.first.source(i), pairs.second.source(i)
        swapped = [task.source_vocabulary.decode(source.tolist())[position] for source in sources]
        groups = [next(k for k, group in enumerate(swap.groups) if word in group) for word in swapped]
        assert (groups[0] != groups[1]) == swap.across
        assert groups[0] == pairs.groups[i]


@PARTNERS
def test_only_order_words_change_the_order(swap, part):
    _, pairs = partners_of(swap, part)
    assert (pairs.gold[:, 0] != pairs.gold[:, 1]).all() == (swap.kind == "order")


def test_routes_with_terms_add_up_to_the_change_of_the_score(setting):
    fitted, _, _, runs = setting
    first_states, second_states = runs.encoder
    first_parts, second_parts = runs.encoder_parts
    first = experiment.decoder_parts(runs, experiment.FIRST_RUN, fitted), first_parts
    second = experiment.decoder_parts(runs, experiment.SECOND_RUN, fitted), second_parts
    before = runs.decoder[experiment.FIRST_RUN] @ first_states.transpose(1, 2)
    after = runs.decoder[experiment.SECOND_RUN.of_decoder] @ second_states.transpose(1, 2)
    change = (after - before) * runs.rows[:, :, None] * runs.source_mask[:, None, :]
    routes = experiment.route_changes(first, second, runs.at_word)
    torch.testing.assert_close(routes.sum(0), change, atol=1e-5, rtol=1e-4)
    torch.testing.assert_close(experiment.term_changes(first, second).sum(0), change, atol=1e-5, rtol=1e-4)
    shares, square = experiment.change_shares(routes, runs.rows, runs.source_mask)
    assert square > 0
    assert sum(shares) == pytest.approx(1, abs=1e-5)


def test_patched_runs_end_where_the_network_itself_does(trained, setting):
    _, _, batches, runs = setting
    with torch.inference_mode():
        rows = experiment.patched_rows(trained.model, runs)
        names = (experiment.UNPATCHED, experiment.SECOND_RUN.key)
        for name, batch in zip(names, batches, strict=True):
            whole = trained.model(batch).attention[:, : runs.rows.shape[1]]
            torch.testing.assert_close(rows[name][runs.rows], whole[runs.rows], atol=1e-5, rtol=1e-4)
    if trained.spec.architecture == "AO":  # no start to take, and no other word's state to change
        assert torch.equal(rows["S"], rows[experiment.UNPATCHED])
        assert torch.equal(rows["e_context"], rows[experiment.UNPATCHED])
        assert torch.equal(rows["ES"], rows["e_word"])
    else:
        assert not torch.allclose(rows["S"], rows[experiment.UNPATCHED])


def test_a_patch_is_called_by_the_letters_of_what_it_takes():
    assert [*experiment.WHOLE_PATCHES] == ["E", "S", "W", "ES", "EW", "SW", "ESW"]


def test_effects_of_one_pair_predict_that_pair_exactly(trained, setting):
    fitted, pairs, _, _ = setting
    sides = [corpus.subset([3]) for corpus in (pairs.first, pairs.second)]
    columns = [column[3:4] for column in (pairs.positions, pairs.groups, pairs.forks, pairs.gold)]
    pair, model = experiment.Pairs(pairs.swap, *sides, *columns), trained.model
    batch, swapped = (collate(corpus, [0]) for corpus in sides)
    longest = fitted.encoder.n_positions, fitted.decoder.n_positions
    with torch.inference_mode():
        effects = experiment.fit_effects(model, pair, len(trained.task.source_vocabulary), longest)
        exchange = experiment.exchange_of(pair)
        predicted = experiment.predict_rows(model, batch, model(batch), exchange, fitted, effects)
        after = experiment.rerun(model, batch, swapped).attention
    torch.testing.assert_close(predicted["both"], after, atol=1e-5, rtol=1e-4)
    assert not torch.allclose(predicted["none"], after, atol=1e-5)


def test_without_recurrence_only_the_swapped_column_changes(store):
    trained = store.model(ModelSpec("reordering", "AO", **SETTINGS))
    measured = experiment.measure_order_words(trained, 200, 12, 20)
    for swap in measured.values():
        assert swap["outside"]["same"] == pytest.approx(0, abs=1e-6)
        unused = ("decoder_input", "decoder_residual", "encoder_context")
        assert not any(swap["routes"]["same"][route] for route in unused)
        assert swap["predictions"]["all"]["decoder"]["gain"] == pytest.approx(0, abs=1e-6)


ROW = torch.tensor([[True]])
TWO = torch.tensor([[True, True]])


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        # Centred, both pieces are (1, −1); and pieces that do not change have no share.
        pytest.param(
            (torch.tensor([[[[1.0, -1.0]]], [[[3.0, 1.0]]]]), ROW, TWO),
            [[0.5, 0.5], 8],
            id="alike_pieces_halve_the_change",
        ),
        pytest.param(
            (torch.tensor([[[[0.0, 0.0]]], [[[0.0, 0.0]]]]), ROW, TWO),
            [[None, None], 0],
            id="pieces_that_do_not_change",
        ),
    ],
)
def test_change_shares_by_hand(given, expected):
    assert_answer(change_shares(*given), expected)


FIRST = torch.tensor([[[0.9, 0.1]]])
SECOND = torch.tensor([[[0.2, 0.8]]])


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        # Nought at one end and one at the other.
        pytest.param((FIRST, FIRST, SECOND, ROW), {"share": 0, "argmax": 0}, id="as_the_first"),
        pytest.param((torch.tensor([[[0.55, 0.45]]]), FIRST, SECOND, ROW), {"share": 0.5}, id="halfway"),
        pytest.param((SECOND, FIRST, SECOND, ROW), {"share": 1}, id="as_the_second"),
        pytest.param(
            (SECOND, FIRST, FIRST, ROW), {"share": None, "argmax": None}, id="two_that_are_the_same"
        ),
    ],
)
def test_flip_share_by_hand(given, expected):
    assert_answer(flip_share(*given), expected)

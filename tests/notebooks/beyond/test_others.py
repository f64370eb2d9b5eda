"""Published weights, nothing unpickled: a network that writes molecules, and one that pronounces."""

import pickle
from functools import partial
from itertools import product
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
import torch

from attnlib.analysis.part_shares import FACTOR_SIDES
from attnlib.decomposition import STATE_PARTS
from attnlib.errors import CorruptFile, DataUnavailable
from companion.results.frames import Table
from companion.runs.procedure import Recording, RunSpec
from notebooks.beyond.others_model import experiment as others_model
from notebooks.beyond.others_model.trainings import published
from notebooks.beyond.others_vector import experiment
from notebooks.beyond.others_vector.trainings import published_speller
from notebooks.beyond.others_vector.trainings.published_speller import LETTERS, MOST, SOUNDS, STOP
from notebooks.shared import packages
from notebooks.shared.attribution_ranks import ATTRIBUTED, POINT
from tests.attnlib.refusals import assert_refused
from tests.companion.data.data_builders import available


def recorded(procedure, folder, **settings):
    """What is published; the test is skipped where its package is not on this machine."""
    tensors = available(procedure.record, procedure.Settings(**settings), folder)
    return Recording(RunSpec.of(procedure.__name__.rpartition(".")[2]), tensors, {})


def test_a_vocabulary_that_would_make_an_object_is_refused():
    assert published.symbols(pickle.dumps({"stoi": {"C": 5}, "itos": ["C"]})) == {"C": 5}
    made = pickle.dumps({"stoi": pytest.raises})
    assert_refused(lambda: published.symbols(made), "texts and numbers", CorruptFile)


def test_a_file_that_is_not_there_or_another_is_refused(monkeypatch, tmp_path):
    monkeypatch.setattr(packages, "find_spec", lambda _: None)
    require = partial(published.require, published.Settings())
    assert_refused(require, "pip install --no-deps annalog", DataUnavailable)
    there = SimpleNamespace(submodule_search_locations=[tmp_path])
    monkeypatch.setattr(packages, "find_spec", lambda _: there)
    path = tmp_path / published.WEIGHTS.partition("/")[2]
    path.parent.mkdir()
    path.write_bytes(b"other weights")
    assert_refused(require, "version", CorruptFile)


def test_the_published_network_writes_molecules_back(tmp_path):
    recording = recorded(published, tmp_path, molecules=4)
    (batch,) = published.molecules(recording["molecules"], 4)
    read = batch.target.roll(1, 1)
    read[:, 0] = published.START
    with torch.no_grad():
        written = published.recorded_network(recording)(batch.source, batch.source_mask, read).argmax(-1)
    assert (written == batch.target)[batch.target_mask].float().mean() > 0.9


def test_a_head_that_looks_one_place_on_copies():
    (batch,) = published.molecules(torch.tensor([[2, 5, 6, 3], [2, 7, 3, -1]]), 2)
    assert batch.target.tolist() == [[5, 6, 3], [7, 3, 0]]
    model_pass = SimpleNamespace(
        attentions=[SimpleNamespace(heads=2)],
        target_mask=batch.target_mask,
        softmax=lambda _, head: [torch.eye(4)[1:], torch.eye(4)[:3]][head].expand(2, 3, 4),
    )
    assert published.copied(model_pass, 0).tolist() == [5, 0]


@pytest.fixture(scope="module")
def points(tmp_path_factory):
    """Points of the stand-in that is drawn at random."""
    settings = {"weights": "drawn", "molecules": 40}
    tensors = published.record(published.Settings(**settings), tmp_path_factory.mktemp("drawn"))
    recording = Recording(RunSpec.of("published", **settings), tensors, {})
    return pd.DataFrame(published.measure_published_effects(recording, batch_size=8)["points"])


def test_points_of_a_head_are_in_the_order_of_sides_then_parts(points):
    expected = list(product(FACTOR_SIDES, STATE_PARTS))
    heads = points.groupby(["layer", "head"], sort=False)
    assert len(heads) == published.LAYERS * published.HEADS
    for _, of_head in heads:
        assert list(zip(of_head["side"], of_head["part"], strict=True)) == expected


def test_split_shares_of_the_parts_of_a_head_sum_to_one(points):
    both = points[points["side"] == "both"]
    assert both.groupby(["layer", "head"])["split"].sum().tolist() == pytest.approx([1] * 24)


def test_a_temporal_part_moves_attention_alike_either_way(points):
    temporal = points[points["part"] == "temporal"]
    assert temporal["exchange_attention"].tolist() == temporal["resample_attention"].tolist()
    assert temporal["exchange_attention"].min() > 0


def test_points_of_heads_that_attend_evenly_do_not_count(points):
    columns = others_model.HEAD_NAME | POINT | ATTRIBUTED | others_model.MOVED
    everything = Table.of(points.to_dict("records"), columns, "a point")
    one_head = Table.of([{"layer": 1, "head": 2}], others_model.HEAD_NAME, "a head")
    chosen = others_model._of_heads(everything, one_head).frame
    assert set(zip(chosen["layer"], chosen["head"], strict=True)) == {(1, 2)}
    assert len(chosen) == len(FACTOR_SIDES) * len(STATE_PARTS)


# The network that pronounces.


def test_the_published_network_pronounces(tmp_path):
    recording = recorded(published_speller, tmp_path, words=300)
    measured = published_speller.measure_vector(recording, letters=7)
    assert np.mean(measured["written"]["right"]) > 0.5
    network = published_speller.recorded_network(recording)
    word = torch.tensor([[*map(LETTERS.index, "cat"), published_speller.END]])
    sounds = network.writes(network.vector(word))[0].tolist()
    assert [SOUNDS[sound] for sound in sounds[: sounds.index(STOP)]] == ["K", "AE1", "T"]


def test_gates_are_in_torchs_order():
    """One step of the published code, written out: z leaves the old state, r stands inside the new one."""
    draw = np.random.default_rng(0)
    shapes = {"w_ih": (6, 2), "w_hh": (6, 2), "b_ih": 6, "b_hh": 6}
    theirs = {f"{side}_{name}": draw.normal(size=shape).astype(np.float32)
              for side in ("enc", "dec") for name, shape in shapes.items()}  # fmt: skip
    ours = published_speller.as_torch_has_them(theirs)
    cell = torch.nn.GRU(2, 2, batch_first=True)
    cell.load_state_dict(
        {name.partition(".")[2]: tensor for name, tensor in ours.items() if "encoder" in name}
    )
    x, h = (draw.normal(size=(1, 2)).astype(np.float32) for _ in range(2))
    read = x @ theirs["enc_w_ih"].T + theirs["enc_b_ih"]
    kept = h @ theirs["enc_w_hh"].T + theirs["enc_b_hh"]
    r, z = (1 / (1 + np.exp(-(read + kept)[:, at : at + 2])) for at in (0, 2))
    wanted = (1 - z) * np.tanh(read[:, 4:] + r * kept[:, 4:]) + z * h
    state = cell(torch.from_numpy(x)[:, None], torch.from_numpy(h)[None])[1][0]
    np.testing.assert_allclose(state.detach().numpy(), wanted, atol=1e-6)


def test_a_word_is_right_to_its_end_mark():
    wanted = torch.full((4, MOST + 1), -1)
    wanted[:3, :4] = torch.tensor([[5, 6, STOP, -1], [5, 6, 7, STOP], [5, 6, STOP, -1]])
    wanted[3] = torch.tensor([9] * MOST + [STOP])  # ends where nothing is written any more
    written = torch.full((4, MOST), 9)
    written[:3, :4] = torch.tensor([[5, 6, STOP, 8], [5, 6, STOP, STOP], [5, 6, 7, STOP]])

    known = SimpleNamespace(vector=lambda words: words, writes=lambda vector: written)
    assert published_speller.written_rightly(known, None, wanted).tolist() == [True, False, False, False]


def test_a_vector_that_is_a_sum_of_its_last_two_letters_is_read_there_alone():
    draw = torch.Generator().manual_seed(0)
    spelt = torch.randint(0, 26, (4_000, 3), generator=draw)
    codes = torch.randn(3, 26, 64, generator=draw)
    codes[0] = 0
    vector = sum(codes[place][spelt[:, place]] for place in range(3))
    folded = published_speller._fold(vector, spelt, torch.arange(4_000) % 5 == 0)
    assert folded["sum"] == pytest.approx(1, abs=1e-6)
    assert folded["of_place"][0] == pytest.approx(0, abs=1e-6)
    assert folded["of_place"][1] == pytest.approx(0.5, abs=0.05)
    assert folded["read"][1:] == [1, 1]
    assert folded["read"][0] < 0.1
    assert max(folded["common"]) < 0.1


def test_short_words_are_right_more_often_than_long_ones():
    """All of 100 short words, and half of 100 long ones; words between do not count."""
    letters, right = np.repeat([4, 8, 12], 100), np.repeat([1, 0, 0], 100)
    right[250:] = 1
    words = pd.DataFrame({"letters": letters, "right": right})
    (row,) = experiment.short_minus_long(Table(words, experiment.WORD, "a word")).records()
    assert row["value"] == 0.5
    assert 0.35 < row["low"] < row["high"] < 0.65

"""A network that pronounces: read as published, judged by hand-made vectors, written by a known decoder."""

import numpy as np
import pytest
import torch

from attnlib.errors import DataUnavailable
from companion.runs.procedure import Recording, RunSpec
from notebooks.beyond.others_vector import published_speller
from notebooks.beyond.others_vector.experiment import _short_less_long
from notebooks.beyond.others_vector.published_speller import MOST, SOUNDS, STOP, Settings


def test_the_published_network_pronounces(tmp_path):
    try:
        tensors = published_speller.record(Settings(words=300), tmp_path)
    except DataUnavailable as error:
        pytest.skip(str(error))
    recording = Recording(RunSpec.of("published_speller"), tensors, {})
    found = published_speller.measure_vector(recording, letters=7)
    assert np.mean(found["written"]["right"]) > 0.5
    network = published_speller.recorded_network(recording)
    word = torch.tensor([[*map(published_speller.LETTERS.index, "cat"), published_speller.END]])
    said = network.writes(network.vector(word))[0].tolist()
    assert [SOUNDS[sound] for sound in said[: said.index(STOP)]] == ["K", "AE1", "T"]


def test_gates_are_in_torchs_order():
    """One step of the published code, written out: z leaves the old state, r stands inside the new one."""
    draw = np.random.default_rng(0)
    shapes = {"w_ih": (6, 2), "w_hh": (6, 2), "b_ih": 6, "b_hh": 6}
    theirs = {f"{side}_{name}": draw.normal(size=shape).astype(np.float32)
              for side in ("enc", "dec") for name, shape in shapes.items()}  # fmt: skip
    ours = published_speller.as_torch_has_them(theirs)
    cell = torch.nn.GRU(2, 2, batch_first=True)
    cell.load_state_dict({name.partition(".")[2]: own for name, own in ours.items() if "encoder" in name})
    x, h = (draw.normal(size=(1, 2)).astype(np.float32) for _ in range(2))
    read = x @ theirs["enc_w_ih"].T + theirs["enc_b_ih"]
    kept = h @ theirs["enc_w_hh"].T + theirs["enc_b_hh"]
    r, z = (1 / (1 + np.exp(-(read + kept)[:, at : at + 2])) for at in (0, 2))
    wanted = (1 - z) * np.tanh(read[:, 4:] + r * kept[:, 4:]) + z * h
    found = cell(torch.from_numpy(x)[:, None], torch.from_numpy(h)[None])[1][0]
    np.testing.assert_allclose(found.detach().numpy(), wanted, atol=1e-6)


def test_a_word_is_right_to_its_end_mark():
    wanted = torch.tensor([[5, 6, STOP, -1], [5, 6, 7, STOP], [5, 6, STOP, -1]])
    written = torch.full((3, MOST), 9)
    written[:, :4] = torch.tensor([[5, 6, STOP, 8], [5, 6, STOP, STOP], [5, 6, 7, STOP]])

    class Known:
        vector = staticmethod(lambda words: words)
        writes = staticmethod(lambda vector: written)

    assert published_speller.written_rightly(Known, None, wanted).tolist() == [True, False, False]


def test_a_vector_that_is_a_sum_of_its_last_two_letters_is_read_there_alone():
    draw = torch.Generator().manual_seed(0)
    spelt = torch.randint(0, 26, (4_000, 3), generator=draw)
    codes = torch.randn(3, 26, 64, generator=draw)
    codes[0] = 0
    vector = sum(codes[place][spelt[:, place]] for place in range(3))
    found = published_speller._fold(vector, spelt, torch.arange(4_000) % 5 == 0)
    assert found["sum"] == pytest.approx(1, abs=1e-6)
    assert found["of_place"][0] == pytest.approx(0, abs=1e-6)
    assert found["of_place"][1] == pytest.approx(0.5, abs=0.05)
    assert found["read"][1:] == [1, 1]
    assert found["read"][0] < 0.1
    assert max(found["common"]) < 0.1


def test_short_words_less_long_ones():
    lengths, right = np.repeat([4, 8, 12], 100), np.repeat([1, 0, 0], 100)
    right[250:] = 1
    found = _short_less_long(lengths, right)
    assert found["value"] == 0.5
    assert 0.35 < found["low"] < found["high"] < 0.65

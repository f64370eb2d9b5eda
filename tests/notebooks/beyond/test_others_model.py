"""Published weights: nothing unpickled, a network that works as it should, attention on the right symbol."""

import pickle
from types import SimpleNamespace

import pytest
import torch

from attnlib.errors import CorruptFile, DataUnavailable
from companion.runs.fingerprint import symbols as needed
from companion.runs.procedure import Recording, RunSpec
from notebooks.beyond.others_model import published
from notebooks.beyond.others_model.published import START, Settings, recorded_network, symbols
from notebooks.beyond.your_own_model.measure import measure_report
from notebooks.shared import packages


def test_a_vocabulary_that_would_make_an_object_is_refused():
    assert symbols(pickle.dumps({"stoi": {"C": 5}, "itos": ["C"]})) == {"C": 5}
    with pytest.raises(CorruptFile, match="texts and numbers"):
        symbols(pickle.dumps({"stoi": pytest.raises}))


def test_a_file_that_is_not_there_or_another_is_refused(monkeypatch, tmp_path):
    monkeypatch.setattr(packages, "find_spec", lambda _: None)
    with pytest.raises(DataUnavailable, match="pip install --no-deps annalog"):
        published.checksums(Settings())
    monkeypatch.setattr(
        packages, "find_spec", lambda _: SimpleNamespace(submodule_search_locations=[tmp_path])
    )
    path = tmp_path / published.WEIGHTS.partition("/")[2]
    path.parent.mkdir()
    path.write_bytes(b"other weights")
    with pytest.raises(CorruptFile, match="version"):
        published.checksums(Settings())


def test_the_published_network_writes_molecules_back(tmp_path):
    try:
        tensors = published.record(Settings(molecules=4), tmp_path)
    except DataUnavailable as error:
        pytest.skip(str(error))
    recording = Recording(RunSpec.of("published"), tensors, {})
    (batch,) = published.molecules(recording["molecules"], 4)
    read = batch.target.roll(1, 1)
    read[:, 0] = START
    with torch.no_grad():
        said = recorded_network(recording)(batch.source, batch.source_mask, read).argmax(-1)
    assert (said == batch.target)[batch.target_mask].float().mean() > 0.9


def test_a_head_that_looks_one_place_on_copies():
    (batch,) = published.molecules(torch.tensor([[2, 5, 6, 3], [2, 7, 3, -1]]), 2)
    assert batch.target.tolist() == [[5, 6, 3], [7, 3, 0]]
    one = SimpleNamespace(
        attended=[SimpleNamespace(heads=2)],
        target_mask=batch.target_mask,
        softmax=lambda _, head: [torch.eye(4)[1:], torch.eye(4)[:3]][head].expand(2, 3, 4),
    )
    assert published.copied(one, 0).tolist() == [5, 0]


@pytest.mark.parametrize("measure", [published.measure_published_heads, measure_report])
def test_how_an_analysis_is_shown_makes_no_measurement_stale(measure):
    shown = {f"attnlib.analysis.{name}" for name in ("analyse", "report", "results:Analysis", "show")}
    covered = needed(measure) | {name.partition(":")[0] for name in needed(measure)}
    assert "attnlib.analysis.judge:TermSums" in covered
    assert not covered & shown

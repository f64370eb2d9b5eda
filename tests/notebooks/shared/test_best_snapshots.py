"""What is seen at the best snapshots of a part alone answers as if it were seen at all of them."""

import pytest
import torch
from torch.nn import Linear

from companion.runs.procedure import Recording
from notebooks.shared import agreement, snapshots
from notebooks.shared.snapshots import CHOOSING, GROUPS, keep_if_best, seen_where_best
from notebooks.shared.trainings import classification, translation

TEXTS = classification.Settings(
    data="known_polarity", n_train=100, n_validation=20, embedding_width=8, width=8, steps=300,
    learning_rate=0.05,
)  # fmt: skip
PAIRS = translation.Settings(
    dataset="known_lexicon", n_train=60, n_validation=12, probed_training=8, width=16, dropout=0.0, steps=160,
    learning_rate=0.02, saliency=True,
)  # fmt: skip


@pytest.mark.long
@pytest.mark.parametrize(("procedure", "settings"), [(classification, TEXTS), (translation, PAIRS)])
def test_saliency_is_not_a_number_but_at_the_best_snapshots(tmp_path, monkeypatch, procedure, settings):
    best = procedure.record(settings, tmp_path / "best")
    monkeypatch.setattr(snapshots, "_best", lambda notes: {part: set(notes) for part in notes[0]})
    every = procedure.record(settings, tmp_path / "every")
    assert best.keys() == every.keys()
    parts = agreement.measure_course(Recording(None, every, {}))["parts"]
    assert len(parts) == 2
    for part, qualities_of_part in parts.items():
        values, at_best = (recording[f"{part}.saliency"] for recording in (every, best))
        seen = ~at_best.isnan().all(1)
        places = {
            course[group].index(max(course[group]))
            for course in qualities_of_part.values()
            for group in CHOOSING
        }
        assert seen.nonzero()[:, 0].tolist() == sorted(places)
        assert len(places) < len(seen)
        assert not values.isnan().any()
        assert torch.equal(at_best[seen], values[seen])
        assert at_best[~seen].isnan().all()
    for name in every.keys() - {f"{part}.saliency" for part in parts}:
        assert torch.equal(best[name], every[name]), name


def of_part(*numbers, groups=GROUPS):
    return {"accuracy": dict(zip(groups, numbers, strict=True))}


def saved_after(folder, *qualities_of_steps):
    """Steps of the networks that are kept after these qualities: of all, selecting, reporting."""
    for step, of in enumerate(qualities_of_steps):
        keep_if_best(folder, step, Linear(1, 1), {"validation": of_part(*of)})
    return [int(path.stem.partition("-")[2]) for path in sorted(folder.glob("best-*"))]


def test_the_network_is_kept_where_it_is_best_by_either_choice(tmp_path):
    snapshots = [(5, 5, 0), (5, 5, 9), (4, 6, 0), (6, 5, 0)]
    expected = [[0], [0], [0, 2], [2, 3]]  # as good as before is no better; the half that reports has no say
    for count, steps in enumerate(expected, start=1):
        assert saved_after(tmp_path / str(count), *snapshots[:count]) == steps


def test_a_snapshot_that_comes_again_is_held_against_those_before(tmp_path):
    saved_after(tmp_path, (5, 5, 0), (6, 6, 0))
    (tmp_path / "best-00000001.safetensors").unlink()
    keep_if_best(tmp_path, 1, Linear(1, 1), {"validation": of_part(6, 6, 0)})
    assert [path.stem for path in tmp_path.glob("best-*")] == ["best-00000001"]


def of_three_snapshots(folder, last):
    """Networks kept at three checkpoints, and what is seen of each where it was best."""
    networks = [Linear(1, 1, bias=False) for _ in range(3)]
    snapshots = [((7, 7, 0), (1, 1, 0)), ((5, 5, 0), (2, 3, 0)), ((6, 6, 0), (3, 2, 0))]
    for step, (network, (validation, train)) in enumerate(zip(networks, snapshots, strict=True)):
        keep_if_best(folder, step, network, {"validation": of_part(*validation), "train": of_part(*train)})

    def see(network, part):
        return {part: network.weight.detach()[0]}

    return networks, seen_where_best(folder, last, (0, 1, 2), see)


def test_a_part_is_seen_where_the_network_is_best_on_it(tmp_path):
    networks, seen = of_three_snapshots(tmp_path, Linear(1, 1, bias=False))
    assert seen["validation"].isnan()[:, 0].tolist() == [False, True, True]
    assert seen["train"].isnan()[:, 0].tolist() == [True, False, False]
    assert seen["train"][1:].tolist() == [network.weight[0].tolist() for network in networks[1:]]


def test_a_network_is_what_it_was_after_its_best_was_seen(tmp_path):
    last = Linear(1, 1, bias=False)
    before = last.weight.clone()
    of_three_snapshots(tmp_path, last)
    assert torch.equal(last.weight, before)

"""Answers, courses and recordings that are given, so that what is made of them can be worked by hand."""

from types import SimpleNamespace

import torch

from attnlib.errors import NotMeasured
from attnlib.probes.agreement import halves
from companion.runs.procedure import Recording

NOTHING = {"value": None, "low": None, "high": None, "n": 0}  # the interval of no networks


class Given:
    """A store that knows what ``answer`` says of a run, or of a run, a measure and other specs."""

    def __init__(self, answer):
        self.answer, self.measured = answer, []

    def cached(self, spec, measure, **settings):
        self.measured.append(getattr(spec, "resolved", spec))
        found = self.answer(spec, measure, **settings)
        if found is None:
            raise NotMeasured(spec.setting)
        return found


def by_seed(*measured):
    """What was measured of seeds 0, 1, … of one kind of network."""
    return [({"seed": seed}, own) for seed, own in enumerate(measured)]


# Recordings of classifiers whose every agreement can be worked by hand.

TEXTS = 8
SELECTING, REPORTING = (half.tolist() for half in halves(TEXTS))
# Right at first on all texts that select and none that report, then on half of those that select and all that
# report: 50 % and 75 % of all. So the half that selects takes the first snapshot, all take the second.
CORRECT = ("1111 0000", "1100 1111")


def by_text(pattern):
    """``"0000 0111"``: a digit a text, those that select first, in the order of the texts."""
    selecting, reporting = pattern.split()
    found = dict(zip(SELECTING, selecting, strict=True)) | dict(zip(REPORTING, reporting, strict=True))
    return torch.tensor([int(found[text]) for text in range(TEXTS)])


def recorded(seed=0, correct=CORRECT, train=None, **by_position):
    """A classifier looked at twice, on eight texts of two words; which word is the top is given as 0 or 1.

    With ``train``, what is right of that part, it was looked at on the training texts too, and alike.
    """
    tensors = {
        "steps": torch.tensor([0, 10]),
        "validation.offsets": torch.arange(0, 2 * TEXTS + 1, 2),
        "validation.labels": torch.tensor([0, 1] * (TEXTS // 2)),
        "validation.correct": torch.stack([by_text(snapshot) for snapshot in correct]).bool(),
    }
    for name, snapshots in by_position.items():
        rows = torch.nn.functional.one_hot(torch.stack([by_text(one) for one in snapshots]), 2).float()
        tensors[f"validation.{name}"] = rows.flatten(1)
    if train is not None:
        tensors |= {name.replace("validation", "train"): value.clone() for name, value in tensors.items()}
        tensors["train.correct"] = torch.stack([by_text(snapshot) for snapshot in train]).bool()
    return Recording(SimpleNamespace(seed=seed, setting=f"seed {seed}"), tensors, {})

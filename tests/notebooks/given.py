"""Answers and courses that are given, so that what is made of them can be worked by hand."""

from attnlib.errors import NotMeasured

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

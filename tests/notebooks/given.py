"""A store whose answers are given."""

from attnlib.errors import NotMeasured


class Given:
    """A store that knows what ``answer`` says of a run, or of a run, a measure and what is beside it."""

    def __init__(self, answer):
        self.answer, self.asked = answer, []

    def cached(self, spec, measure, **settings):
        self.asked.append(spec.resolved)
        found = self.answer(spec, measure, **settings)
        if found is None:
            raise NotMeasured(spec.setting)
        return found

"""A store in which single heads have given courses, for tests of the chapter on several heads."""

from attnlib.errors import NotMeasured
from notebooks.learn.multi_head import experiment
from notebooks.learn.multi_head.experiment import UNSEEN, Config
from notebooks.shared.copying import ATTENTION, PROBES

TINY = {"candidates": 2, "trials": 1, "seeds": 1, "heads": 2, "elsewhere": 1}
TINY |= {"length": 4, "width": 8, "steps": 2, "every": 2, "followed": 2}
PAST = (0.0, 0.7, 0.7)  # accuracies of a course that was never good and does not end badly


class Given:
    """A store in which single heads have given courses, and a network that of the best of its heads.

    Args:
        courses: accuracies by (head, seed), by (head, seed, body), or by head.
        missing: sets of heads that were never trained.
    """

    def __init__(self, courses, missing=()):
        self.courses, self.missing, self.asked = courses, missing, []

    def kept(self, spec, measure):
        settings = spec.resolved
        self.asked.append(settings)
        if settings.heads in self.missing:
            raise NotMeasured(spec.setting)
        accuracy = max((self._of(head, settings) for head in settings.heads), key=lambda own: own[-1])
        columns = ("loss", *ATTENTION, *PROBES)
        # What a head is worth, it attends.
        weights = [self._of(head, settings)[-1] for head in settings.heads]
        still = {column: [0.5] * 3 for column in columns} | {
            "head_right": [[0.1] * len(weights), weights, weights]
        }
        return {"steps": [0, 1, 2], "accuracy": list(accuracy)} | still

    def _of(self, head, settings):
        names = ((head, settings.seed, settings.body), (head, settings.seed), head)
        found = next((self.courses[name] for name in names if name in self.courses), PAST)
        return found if isinstance(found, tuple) else (0.1, found, found)

    def trials(self, config):
        """(head, seed) of the runs of single candidates in the body of the chapter, in order."""
        return sorted(
            (one.heads[0], one.seed)
            for one in self.asked
            if len(one.heads) == 1 and one.heads[0] < UNSEEN and one.body == config.body
        )

    def networks(self, config):
        """Settings of the networks of several different heads, seeds in order."""
        several = [one for one in self.asked if len(set(one.heads)) == config.heads]
        return sorted(several, key=lambda one: (one.seed, one.heads))


def computed(courses, missing=(), **changes):
    config, store = Config(**TINY | changes), Given(courses, missing)
    values, rows = experiment.compute(config, store)
    return config, store, values, rows

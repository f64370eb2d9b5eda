"""The smallest settings of each experiment, and given answers, from which its numbers are worked by hand."""

import importlib
from types import SimpleNamespace

from attnlib.errors import NotMeasured
from attnlib.models.corpus import collate
from companion.results import registry
from companion.results.config import BaseConfig, override
from companion.results.request import Request
from companion.results.run import Outcome
from companion.results.run import computed as outcome_of
from companion.runs.procedure import Recording
from notebooks.shared.sequence_course import judged_samples

NOTHING = {"value": None, "low": None, "high": None, "n": 0}  # the interval of no networks


def tiny(name: str, **changes: object) -> BaseConfig:
    """Return the settings of an experiment's tiny run, some of them changed."""
    return override(registry.load(name).PROFILES["tiny"], changes)


def tiny_request(name: str, **changes: object) -> Request:
    """Return a request for the tiny run. It names every setting, since the book has no such profile."""
    return Request(name, parameters=vars(tiny(name, **changes)))


class Given:
    """A store that knows what ``answer`` says of a run, or of a run, a measure and other specs."""

    def __init__(self, answer):
        self.answer, self.measured = answer, []

    def cached(self, spec, measure, **settings):
        self.measured.append(getattr(spec, "resolved", spec))
        answer = self.answer(spec, measure, **settings)
        if answer is None:
            raise NotMeasured(spec.setting)
        return answer


def computed(config: BaseConfig, store: Given) -> Outcome:
    """Return the values and tables that a figure computes, from answers that are given."""
    module = importlib.import_module(type(config).__module__)
    return outcome_of(module, config, store)


def recording_of(tensors, seed=0, **settings):
    """What a run recorded, of which no more is known than its seed and some settings."""
    spec = SimpleNamespace(seed=seed, setting=f"seed {seed}", resolved=SimpleNamespace(**settings))
    return Recording(spec, tensors, {})


def written_rightly(recording):
    """What a network that makes no mistake writes for the samples that are judged."""
    judged = judged_samples(recording.spec.resolved)
    return collate(judged, range(len(judged))).target_output

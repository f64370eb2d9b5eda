"""Parts of states exchanged in the forward pass: do attention and output follow as the shares say?"""

from companion.results.config import Positive
from companion.results.measurements import Measurement, measurements_of
from companion.runs.store import Store
from notebooks.attend.interchange.measure import measure_interchange
from notebooks.shared.measure import measure_alignment_terms
from notebooks.shared.suite import PAPER_TASKS, SuiteConfig, model_specs

PLACE = "Aitken et al. 2021, contributions 1 and 2 (a causal test of ours)"
QUESTION = "When a component is exchanged, do attention and output follow?"


class Config(SuiteConfig):
    """Settings of the task suite, and how much is exchanged.

    Attributes:
        samples: held-out samples of each network in whose forward pass parts are exchanged, at most.
    """

    samples: Positive = 400


PROFILES = {
    "quick": Config(),
    "paper": Config(task=PAPER_TASKS, scale="paper", seeds=3, fit_samples=25_000, samples=1_500),
}


def measurements(config: Config) -> tuple[Measurement, ...]:
    specs = model_specs(config)
    return (
        *measurements_of(specs, measure_alignment_terms, fit_samples=config.fit_samples),
        *measurements_of(specs, measure_interchange, fit_samples=config.fit_samples, samples=config.samples),
    )


def compute(config: Config, store: Store) -> tuple[dict, dict[str, list[dict]]]:
    raise NotImplementedError

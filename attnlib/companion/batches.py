"""Trainings in batches: what the same figures need is trained in one process, which starts only once."""

import hashlib
import shlex
from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from attnlib.companion.provision import data_of_specs

if TYPE_CHECKING:
    from attnlib.training.product import ProductSpec
    from attnlib.training.spec import ModelSpec

LARGEST = 16  # products a batch: few starts, and still enough batches to share out among cores
LARGEST_ON_DATA = 3  # models of published text: they take longest, and no core should wait for one batch


@dataclass(frozen=True)
class Batch:
    """Products of one kind, by key, that are made in turn by one job.

    Attributes:
        module: what makes them, for ``python -m``.
        specs: key → spec.
    """

    module: str
    specs: Mapping[str, "ModelSpec | ProductSpec"]

    @property
    def arguments(self) -> str:
        """For ``python -m <module>``."""
        return shlex.join(word for spec in self.specs.values() for word in ("--spec", spec.to_json()))

    @property
    def name(self) -> str:
        """The first product's setting, how many there are, and a hash of their keys."""
        first = next(iter(self.specs)).rpartition("-")[0]
        more = f"-and-{len(self.specs) - 1}-more" if len(self.specs) > 1 else ""
        return f"{first}{more}-{hashlib.sha256(' '.join(self.specs).encode()).hexdigest()[:12]}"


def batches(needed: Mapping[str, Mapping[str, "ModelSpec | ProductSpec"]]) -> list[Batch]:
    """Batches of everything that is needed.

    A figure never waits for a product that it does not need: products share a batch where the same results
    need them and either all or none are models of published text. Neighbours in the order of their keys,
    which begin with the task, stay together.

    Args:
        needed: result → the products it needs, key → spec.
    """
    specs = {key: spec for own in needed.values() for key, spec in own.items()}
    groups: dict[tuple[str, bool, frozenset[str]], list[str]] = defaultdict(list)
    for key in sorted(specs):
        users = frozenset(result for result, own in needed.items() if key in own)
        groups[maker(specs[key]), _reads_text(specs[key]), users].append(key)
    return [
        Batch(module, {key: specs[key] for key in part})
        for (module, on_data, _), keys in groups.items()
        for part in _evenly(keys, LARGEST_ON_DATA if on_data else LARGEST)
    ]


def maker(spec: "ModelSpec | ProductSpec") -> str:
    """The module that makes the product of a spec."""
    from attnlib.training.spec import ModelSpec

    return "attnlib.training" if isinstance(spec, ModelSpec) else "attnlib.recipes"


def _reads_text(spec: "ModelSpec | ProductSpec") -> bool:
    return maker(spec) == "attnlib.training" and bool(data_of_specs([spec]))


def _evenly(keys: list[str], largest: int) -> Iterable[list[str]]:
    number = -(-len(keys) // largest)
    return (keys[i * len(keys) // number : (i + 1) * len(keys) // number] for i in range(number))

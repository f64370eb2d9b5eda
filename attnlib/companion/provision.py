"""Bring the data that figures read before they run: what a reader without a mirror expects of one command."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable
from importlib import import_module
from typing import TYPE_CHECKING

from attnlib.errors import AttnlibError
from attnlib.fingerprint import data_sets
from companion.data.sources import Dataset, check, fetch

if TYPE_CHECKING:
    from attnlib.companion.plan import Plan
    from attnlib.training.keys import Spec


def bring_data(plan: Plan) -> None:
    """Download the published data that the figures of a plan read and that is not here; never fails.

    With ``ATTNLIB_DATA`` set nothing is downloaded. What cannot be had is said on standard error, and the
    figures that need it say so on their pages.
    """
    if os.environ.get("ATTNLIB_DATA"):
        return
    waiting = [result for result in plan.results.values() if not result.current]
    for data in data_of_specs(spec for result in waiting for spec in result.specs.values()):
        if all(status.state == "ok" for status in check(data)):
            continue
        print(f"downloading {data.name} …", file=sys.stderr, flush=True)
        try:
            fetch(data)
        except AttnlibError as error:
            print(f"{data.name}: {error}", file=sys.stderr)


def data_of_specs(specs: Iterable[Spec]) -> list[Dataset]:
    """The data sets that models and recipes read: those that the code behind them refers to."""
    constants = {constant for roots in {spec.roots for spec in specs} for constant in data_sets(*roots)}
    found = {getattr(import_module(module), name) for module, name in (one.split(":") for one in constants)}
    return sorted(found, key=lambda data: data.name)

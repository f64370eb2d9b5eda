"""The smallest settings at which each experiment runs all of its lines."""

from pathlib import Path

import yaml

from companion.results import registry
from companion.results.config import BaseConfig, override

TINY = yaml.safe_load(Path(__file__).with_name("tiny.yaml").read_text(encoding="utf-8"))


def tiny(name: str, **changes: object) -> BaseConfig:
    """The settings of an experiment's tiny run, with some of them changed."""
    return override(registry.load(name).PROFILES["quick"], smallest(name) | changes)


def smallest(name: str) -> dict[str, object]:
    """What a tiny run changes of the quick one."""
    return TINY.get(name) or getattr(registry.load(name), "TINY", {})  # beside a figure that is new

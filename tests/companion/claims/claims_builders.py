"""Claims as they are written, for tests."""

from dataclasses import make_dataclass
from types import SimpleNamespace

import yaml

from companion.claims.model import load_papers
from companion.results.committed import write_checksums
from companion.results.result import Result
from tests.companion.data.data_builders import put
from tests.tables import beside

SOUND = beside(__file__, "sound")
RULE, READINGS = SOUND["rule"], SOUND["readings"]


def claim(name, **fields):
    return {"id": name} | SOUND["claim"] | fields


def write_paper(folder, *claims, name="p.yaml", table=None, **fields):
    """A file of claims, and the CSV of its published tables where there is one."""
    content = SOUND["paper"] | {"claims": list(claims)} | fields
    put(folder, {name: yaml.safe_dump(content, explicit_end=True)})
    if table is not None:
        put(folder, {"t.csv": f"table,dataset,quantity,value,note\n{table}"})
    return folder


def written(folder, rule=RULE):
    table = "2,IMDB,xi_star,90,\n2,SST,xi_star,84,\n"
    (paper,) = load_papers(write_paper(folder, numbers=[rule], csv="t.csv", table=table))
    return paper


def save(root, values, profile="quick", experiment="toy", *, stale=False, trained_on=()):
    """A result with these values, where verdicts are looked for; a stale one rests on another run."""
    folder = root / "results" / "paper" if profile == "paper" else root / "build" / "results" / "quick"
    origin = {"models": ["of another plan"] if stale else [], "measured": {}}
    if trained_on:
        origin["trained_on"] = list(trained_on)
    tables = {"points": [{"x": 1}]}
    schemas = {"points": {"row": "a point", "schema": {"fields": [{"name": "x"}]}}}
    result = Result(experiment, profile, {}, values, tables, {}, provenance=origin, schemas=schemas)
    path = result.save(folder)
    if profile == "paper":
        write_checksums(folder)
    return path


def toy_experiment():
    """An experiment that asks for no run, and so is current unless its result names one."""
    config = make_dataclass("Config", [], frozen=True)()
    nothing = lambda config: ()  # noqa: E731
    return SimpleNamespace(PROFILES={"quick": config, "paper": config}, models=nothing, measurements=nothing)

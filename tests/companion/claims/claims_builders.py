"""Claims as they are written, for tests."""

import yaml

from companion.claims.model import load_papers
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


def save(root, values, profile="quick", experiment="toy", *, stale=False):
    """A result with these values, where verdicts are looked for."""
    folder = root / "results" / "paper" if profile == "paper" else root / "build" / "results" / "quick"
    origin = {"code": "0"} if stale else {}
    return Result(experiment, profile, {}, values, {"points": [{"x": 1}]}, {}, provenance=origin).save(folder)

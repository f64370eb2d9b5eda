"""The scorecard: every claim and published number on it, escaped, linked, and built without a warning."""

import re
import subprocess
import sys

import pytest
import yaml

from companion.book.markup import plain
from companion.claims import Verdict, load_papers
from companion.claims.published import Entry
from companion.claims.scorecard import answers, scorecard_markdown, status
from companion.claims.verify import verify
from companion.results import registry
from companion.results.result import Result
from tests.companion.claims.claims_builders import claim

NASTY = "a *b* _c_ `d` [e](f) {g} <h> $i$ |j| #k \\l {{m}} ~n~ ^o^ &amp; --- 'q' \"r\" https://s.t"
CSV = "table,dataset,quantity,value,note\n2,IMDB,xi_star,87,starred in the paper\n2,SST,xi_star,78,\n"
CONFIGURATION = """
extensions = ["myst_parser"]
myst_enable_extensions = ["amsmath", "attrs_inline", "colon_fence", "deflist", "dollarmath", "substitution"]
"""


@pytest.fixture
def root(tmp_path, monkeypatch):
    """A project of one figure with claims of every kind, and results that are current, stale or missing."""
    known = (*registry.names(), "toy", "pageless")
    monkeypatch.setattr(registry, "names", lambda: known)
    published = {"table": 2, "dataset": "IMDB", "quantity": "xi_star"}
    claims = [
        claim("plain"),
        claim("nasty", says=NASTY, place=NASTY),
        claim("two-keys", keys=["x", "y"]),
        claim("ordered", keys=["x", "y"], judge={"kind": "order", "independent": True}),
        claim("tolerated", published=published, judge={"kind": "tolerance", "absolute": 80}),
        claim("without-a-page", experiment="pageless"),
        {"id": "later", "place": "p", "says": "s", "published": {"table": 2}, "not_run": "Not yet."},
        {"id": "never", "place": "p", "says": "s", "published": 53, "cannot_be_run": "data: <lost>"},
    ]
    content = {"paper": "p", "title": "A <paper>", "url": "https://example.org/a_b", "claims": claims}
    content |= {"csv": "t.csv", "tables": {2: "two & more"}}
    content["unavailable"] = [{"dataset": "SST", "reason": "data: not here"}]
    (tmp_path / "claims").mkdir()
    (tmp_path / "claims" / "p.yaml").write_text(yaml.safe_dump(content), encoding="utf-8")
    (tmp_path / "claims" / "t.csv").write_text(CSV, encoding="utf-8")
    (tmp_path / "notebooks" / "attend").mkdir(parents=True)
    (tmp_path / "notebooks" / "attend" / "toy.md").write_text("# A toy *figure*\n", encoding="utf-8")
    values = {"x": {"value": 9.0, "low": 4.0, "high": 10.0, "n": 3}, "y": 2.0}
    Result("toy", "quick", {}, values, {}, {}).save(tmp_path / "build" / "results" / "quick")
    stale = {"code": "0" * 16}
    Result("toy", "paper", {}, values, {}, {}, provenance=stale).save(tmp_path / "results" / "paper")
    return tmp_path


def row_of(page, name):
    return next(line for line in page.splitlines() if f'id="claim-{name}"' in line)


PARTLY = '<span class="verdict partly">partly</span>'


@pytest.mark.parametrize(
    ("name", "parts"),
    [
        ("plain", ["It is above five.", "`x`<br>above 5<br>", "](/attend/toy)",
                   rf"| {PARTLY}<br>9.000 \[4.000, 10.0\], n = 3 |",
                   f'| {PARTLY} <span class="verdict stale">stale</span>']),
        ("two-keys", ['<span class="verdict not-reproduced">', "(b) `y`", "<br>(b) 2.000 \\(no interval\\)"]),
        ("ordered", ["`x`<br>above `y`<br>", "7.000 \\(n = 3, no interval\\)"]),  # 9 - 2, y has none
        ("without-a-page", ["`attnlib run pageless --profile quick`"]),
        ("later", ['<span class="verdict not-run">not run at this profile</span><br>Not yet.',
                   "Published: 2 numbers (Table 2)"]),
        ("never", ['<span class="verdict cannot-be-run">cannot be run</span>', r"\<lost\>", "Published: 53"]),
    ],
)  # fmt: skip
def test_a_claim_stands_with_its_number_verdict_and_figure(root, name, parts):
    row = row_of(scorecard_markdown(root), name)
    assert [part for part in parts if part not in row] == []


def test_what_would_change_our_mind_has_a_table_of_its_own_and_counts_for_no_paper(root):
    before = scorecard_markdown(root)
    content = yaml.safe_load((root / "claims" / "p.yaml").read_text(encoding="utf-8"))
    content["claims"].append(claim("falls", kind="falsifier"))
    (root / "claims" / "p.yaml").write_text(yaml.safe_dump(content), encoding="utf-8")
    page = scorecard_markdown(root)
    section = page.partition("### What would change our mind\n")[2].partition("### Every published")[0]
    assert re.findall('id="claim-([a-z-]+)"', section) == ["falls"]
    counts = {line for line in page.splitlines() if line.startswith("| A ")}
    assert counts
    assert counts <= set(before.splitlines())


def test_a_published_number_has_the_verdict_of_the_claim_about_it_alone(root):
    (paper,) = load_papers(root / "claims")
    rows = answers(verify(root))
    # 9 is within 80 of 87, and the low end of its interval, 4, is not
    found = [status(entry, rows) for entry in paper.tables.entries]
    assert found == [Verdict.PARTLY, Verdict.CANNOT_BE_RUN]
    assert status(Entry("9", "IMDB", "size", "1", ""), rows) is Verdict.NOT_RUN


def test_summary_counts_every_claim_and_every_number(root):
    page = scorecard_markdown(root).splitlines()
    lines = [line for line in page if "paper\\>:" in line or line.startswith("| numbers of Table 2")]
    counts = [[int(cell) for cell in re.findall(r"\| (\d+)(?= \|)", line)] for line in lines]
    assert [sum(row) for row in counts] == [8, 8, 2]


@pytest.mark.slow
def test_the_page_of_this_project_holds_every_published_number(pytestconfig):
    page = scorecard_markdown(pytestconfig.rootpath)
    for paper in load_papers(pytestconfig.rootpath / "claims"):
        assert all(f'id="claim-{claim.id}"' in page for claim in paper.claims if not claim.number)
        for name in paper.tables.names:
            section = page.split(f"<summary>Table {name}:")[1].split("</details>")[0]
            cells = re.split(r" ?\| ?", section)  # ours stands below, after a break
            shown = [cell.split("<br>")[0].removesuffix("\\*") for cell in cells]
            for value in {entry.value for entry in paper.tables.table(name)}:
                printed = sum(entry.value == value for entry in paper.tables.table(name))
                assert shown.count(plain(value)) == printed, (name, value)


def test_a_page_builds_without_a_warning_and_show_text_as_it_is(root):
    source, html = root / "source", root / "html"
    (source / "attend").mkdir(parents=True)
    (source / "conf.py").write_text(CONFIGURATION, encoding="utf-8")
    page = scorecard_markdown(root)
    linked = set(re.findall(r"\]\(/((?:attend/)?\w+)\)", page))
    contents = {"toy": page} | {name: f"# {name}\n" for name in sorted(linked)}
    contents["index"] = "\n".join(["# Front\n", "```{toctree}", *contents, "```", ""])
    for name, text in contents.items():
        (source / f"{name}.md").write_text(text, encoding="utf-8")
    command = [sys.executable, "-m", "sphinx", "-q", "-W", "--keep-going", "-b", "html", source, html]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    toy = (html / "toy.html").read_text(encoding="utf-8")
    assert 'href="attend/toy.html"' in toy
    assert '<span class="verdict partly">partly</span>' in toy
    assert "a *b* _c_ `d` [e](f) {g} &lt;h&gt; $i$ |j| #k \\l {{m}} ~n~ ^o^ &amp;amp; " in toy
    assert "<h>" not in toy
    assert "<summary>Table 2: two &amp; more (2 numbers)</summary>" in toy

"""Prose that takes numbers and verdicts from results, and what it tells readers to type."""

import contextlib
import re
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
import torch
import typer.main
from matplotlib import pyplot

from attnlib.cli import app
from attnlib.errors import BadInput
from companion.book.numbers import table, value_at, written
from companion.book.prose import Book, PageHtml, Shown, filled, num, numbers_in_cell
from companion.claims.estimates import Estimate, MissingKey
from companion.claims.model import load_papers
from companion.claims.verdicts import Judgement, Verdict
from companion.results.result import Result
from tests.companion.book.book_builders import ROOT
from tests.companion.claims.claims_builders import claim, save, write_paper
from tests.tables import beside

CHAPTERS = {path: path.read_text(encoding="utf-8") for path in sorted((ROOT / "notebooks").rglob("*.md"))}
PAGE = "primer/source_reversal"
GIVEN = beside(__file__, "prose")
SOURCE = GIVEN["source"]


def result(root: Path, gain: float, profile: str = "paper") -> Path:
    interval = {"value": gain, "low": gain - 0.01, "high": gain + 0.01, "n": 5}
    values = {"gain": interval, "absent": {"cannot_be_run": "no such text here"}}
    return save(root, values, profile, "source_reversal")


@pytest.fixture
def root(tmp_path):
    """A checkout with claims and a committed result."""
    write_paper(tmp_path / "claims", *GIVEN["claims"])
    result(tmp_path, 0.25)
    return tmp_path


def test_what_leaves_the_book_has_text(root):
    text, wrong = filled(SOURCE, Book(root), PAGE)
    assert wrong == []
    assert "It gains 0.250 [0.240, 0.260],\nwhich is a gain *(paper ✓)*." in text
    assert "| It gains \\[something\\]. | 0.25 \\[0.24, 0.26\\], n = 5 | *(paper ✓)* |" in text


def test_a_number_on_a_page_says_where_it_is_from(root):
    page, _ = filled(SOURCE, Book(root), PAGE, PageHtml(PAGE))
    title = "paper profile, n = 5; source_reversal: gain"
    assert f'<span class="num" title="{title}">0.250 [0.240, 0.260]</span>' in page


def test_statements_that_are_not_decided_are_in_a_fold(root):
    reasons = {
        "nobody-knows": "It would take a year.",
        "nobody-asks": "It would cost too much.",
        "nobody-cares": "Why?",
    }
    unknown = [
        {"id": name, "place": "here", "says": "Nobody has looked.", "not_run": why}
        for name, why in reasons.items()
    ]
    write_paper(root / "claims", GIVEN["claims"][0], *unknown)
    listed = "\n".join(["it-gains", *reasons])
    table, _ = filled(f"```{{claims}}\n{listed}\n```\n", Book(root), PAGE)
    open_rows, fold = table.split("<summary>3 statements that our runs do not decide</summary>")
    assert open_rows.count("Nobody has looked") == 0
    assert fold.count("Nobody has looked") == 3


ESTIMATE = Estimate(0.25, 0.24, 0.26, 5)


@pytest.mark.parametrize(
    ("keys", "judged", "cell"),
    [
        pytest.param(["x"], {"judge": {"above": 0.1}}, r"0.25 \[0.24, 0.26\], n = 5", id="one"),
        pytest.param(
            ["x.encoder", "x.decoder"],
            {"judge": {"above": 0.1}},
            r"encoder: 0.25 \[0.24, 0.26\], n = 5<br>decoder: 0.25 \[0.24, 0.26\], n = 5",
            id="two by what tells them apart",
        ),
        pytest.param(
            ["x"],
            {"judge": {"within": 0.1}, "published": 0.2},
            r"0.25 \[0.24, 0.26\], n = 5<br>stated: 0.2",
            id="one and the claimed number",
        ),
    ],
)
def test_numbers_in_a_cell_are_named(tmp_path, keys, judged, cell):
    write_paper(tmp_path, claim("one", experiment="readout", keys=keys, **judged))
    (paper,) = load_papers(tmp_path)
    verdicts = dict.fromkeys(keys, Verdict.REPRODUCED)
    judgement = Judgement(Verdict.REPRODUCED, dict.fromkeys(keys, ESTIMATE), parts=verdicts)
    assert numbers_in_cell(paper.claims[0], judgement) == cell


@pytest.mark.parametrize(("mark", "message"), GIVEN["marks"])
def test_what_is_wrong_is_named_with_its_line(root, mark, message):
    source = f"# Reversal\n\n{mark}\n\n{{num}}`gain|value`\n"
    _, wrong = filled(source, Book(root), PAGE)
    assert [line for line, _ in wrong] == [3] * bool(message)
    assert all(message in problem for _, problem in wrong)


@pytest.mark.parametrize(("mark", "message"), GIVEN["marks"])
def test_what_is_wrong_stays_as_it_is_written(root, mark, message):
    source = f"# Reversal\n\n{mark}\n\n{{num}}`gain|value`\n"
    text, _ = filled(source, Book(root), PAGE)
    assert (mark in text) is bool(message)
    assert text.endswith("0.25\n")


def test_numbers_are_of_the_result_that_the_page_leads_with(root):
    def shown(text, page=PAGE):
        return num(Book(root), text, page)

    quick = result(root, 0.75, "quick")
    assert shown("gain|value").text == "0.25"
    assert shown("source_reversal@quick:gain|value", "index").text == "0.75"
    (root / "results" / "paper" / "source_reversal.json").unlink()
    assert shown("gain|value").text == "0.75"
    quick.unlink()
    assert shown("gain|value") == Shown("–", "not computed here: attnlib run source_reversal")


def test_all_that_chapters_say_of_results_holds():
    book = Book(ROOT)
    for path, text in CHAPTERS.items():
        page = path.relative_to(ROOT / "notebooks").with_suffix("").as_posix()
        assert filled(text, book, page)[1] == [], page


def test_all_that_other_pages_say_of_results_holds():
    book = Book(ROOT)
    for path in sorted((ROOT / "book").rglob("*.md")):
        page = path.relative_to(ROOT / "book").with_suffix("").as_posix()
        assert filled(path.read_text(encoding="utf-8"), book, page)[1] == [], page


# -- a number as text, in sentences and tables ---------------------------------------------------------------

RESULT = Result(**GIVEN["result"])


def number(text):
    key, *ways = text.split("|")
    return written(value_at(RESULT, key), ways)


@pytest.mark.parametrize(("text", "shown"), GIVEN["shown"].items())
def test_a_number_is_written_as_asked(text, shown):
    assert number(text).replace("\N{NO-BREAK SPACE}", " ") == shown


@pytest.mark.parametrize(("text", "error", "message"), GIVEN["refused"])
def test_a_key_without_a_number_or_an_unknown_way_to_write_it_is_refused(text, error, message):
    with pytest.raises({"MissingKey": MissingKey, "BadInput": BadInput}[error], match=message):
        number(text)


def test_a_table_leaves_out_rows_of_which_nothing_was_measured():
    rows = {"GRU": "gru", "LSTM": "lstm", "Europarl": "europarl", "vanilla": "vanilla"}
    shown = table(RESULT, rows, {("in the end", "share"): "share", ("in the end", "sentences"): "count"})
    assert shown.to_dict("index") == {
        "GRU": {("in the end", "share"): "−0.81 ± 0.10", ("in the end", "sentences"): "2,000"},
        "LSTM": {("in the end", "share"): "−0.81", ("in the end", "sentences"): "–"},
    }
    with pytest.raises(MissingKey, match="shore"):
        table(RESULT, rows, {"share": "shore", "mean": "mean|.1f"})


# -- what readers are told to type ---------------------------------------------------------------------------


README = (ROOT / "README.md").read_text(encoding="utf-8")


def snippets(page: str) -> list[str]:
    text = (ROOT / page).read_text(encoding="utf-8")
    return re.findall(r"^```python\n(.*?)^```$", text, flags=re.MULTILINE | re.DOTALL)


@pytest.fixture(scope="module")
def of_own_states(tmp_path_factory):
    """The names of the page's snippet once it has run, with the `folder` that it ran in."""
    (snippet,) = snippets("book/reference/your_states.md")
    folder = tmp_path_factory.mktemp("own states")
    names: dict = {"folder": folder}
    with contextlib.chdir(folder):
        exec(compile(snippet, "your_states.md", "exec"), names)
    names["pyplot"].close()
    return names


def test_the_snippet_for_own_states_draws_their_shares(of_own_states):
    assert (of_own_states["folder"] / "shares.png").stat().st_size > 1_000


def test_the_snippet_for_own_states_gives_the_means(of_own_states):
    states = of_own_states["encoder_states"].double().numpy()
    tokens = of_own_states["source"].numpy()
    temporal = states.mean(axis=0)
    centred = [states[b, t] - temporal[t] for b, t in np.argwhere(tokens == tokens[0, 0])]
    parts = of_own_states["encoder_parts"]
    np.testing.assert_allclose(parts.temporal[3].numpy(), temporal, atol=1e-5)
    np.testing.assert_allclose(parts.input[0, 0].numpy(), np.mean(centred, axis=0), atol=1e-5)


def test_the_snippet_for_own_states_gives_the_scores(of_own_states):
    queries, keys = of_own_states["decoder_parts"].temporal, of_own_states["encoder_parts"].input
    product = torch.einsum("btd,bsd->bts", queries, keys)
    torch.testing.assert_close(of_own_states["terms"][0, 1], product)


def test_the_snippet_of_the_readme_gives_the_same_terms(of_own_states):
    """Of the same states, as the only batch of its training."""
    _, snippet = snippets("README.md")  # the first is of a model
    sizes = {"source_vocabulary": 50, "target_vocabulary": 60, "longest_source": 12, "longest_target": 10}
    names = of_own_states | sizes | {"width": 32, "target_read": of_own_states["target"]}
    expected = names.pop("terms")
    names["training"] = [SimpleNamespace(**names)]
    exec(compile(snippet, "README.md", "exec"), names)
    torch.testing.assert_close(names["terms"], expected)


@pytest.mark.slow
def test_the_readme_prints_what_its_first_snippet_prints(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    exec(compile(snippets("README.md")[0], "README.md", "exec"), {})
    (shown,) = re.findall(r"^```text\n(.*?)^```$", README, flags=re.MULTILINE | re.DOTALL)
    assert capsys.readouterr().out == shown
    assert (tmp_path / "report" / "index.html").is_file()


def test_commands_of_the_readme_exist():
    blocks = "".join(re.findall(r"^```bash\n(.*?)^```$", README, flags=re.MULTILINE | re.DOTALL))
    commands = set(re.findall(r"^attnlib (\w+)", blocks, flags=re.MULTILINE))
    listed = typer.main.get_command(app).commands
    assert len(commands) > 4
    assert commands <= set(listed)


def test_targets_of_the_readme_exist():
    targets = re.findall(r"make (\w+)", README)
    assert {"book", "serve", "check", "format"} <= set(targets)
    for target in targets:
        assert re.search(
            rf"^(\w+ )*{target}( \w+)*:", (ROOT / "Makefile").read_text("utf-8"), re.MULTILINE
        ), target


def test_commands_in_the_prose_name_what_exists():
    prose = "\n".join(path.read_text(encoding="utf-8") for path in (ROOT / "book").rglob("*.md"))
    commands = re.findall(r"attnlib run (\w+/\w+)([^`\n]*)", prose)
    assert len(commands) > 5
    for figure, given in [*commands, *((name, "") for name in re.findall(r"notebooks/(\w+/\w+)\.md", prose))]:
        source = CHAPTERS[ROOT / f"notebooks/{figure}.md"]
        for name in re.findall(r"-p (\w+)=", given):
            assert re.search(rf"^{name} = ", source, re.MULTILINE), (figure, name)


@pytest.mark.slow
def test_a_plot_of_ones_own_has_a_panel_for_each_kind_of_network(monkeypatch):
    monkeypatch.chdir(ROOT)
    (snippet,) = snippets("book/reference/rerun.md")
    exec(compile(snippet, "rerun.md", "exec"), names := {})
    drawn = [axes.get_title() for axes in pyplot.gcf().axes]
    pyplot.close()
    assert drawn == [f"kind = {kind}" for kind in names["points"]["kind"].unique()]

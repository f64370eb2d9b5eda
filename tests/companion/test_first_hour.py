"""What a newcomer meets in the first hour: lists, runs and their names, explanations, and completion."""

import json

import pytest
from typer.testing import CliRunner

from attnlib.cli import app
from attnlib.errors import BadInput, UnknownName
from companion.book.execute import _opening
from companion.book.own_runs import OwnRun, compare, find_run, main_numbers, opening, own_runs
from companion.book.project import find_all
from companion.cli import _figures_beginning
from companion.results import registry
from companion.results.request import Request
from companion.results.result import Result
from tests.companion.claims.claims_builders import claim, save, toy_experiment, write_paper
from tests.companion.data.data_builders import put

HEAD = "---\npart: {part}\nplace: Snell et al. 2021, section 4\n---\n# {title}\n"


@pytest.fixture
def project(project, monkeypatch):
    """Three figures, one of them with a long title."""
    pages = {
        "attend/readout": HEAD.format(part="II", title="What the readout reads"),
        "attend/interchange": HEAD.format(part="II", title="A title " + "that goes on " * 12),
        "learn/agreement": HEAD.format(part="III", title="Agreement"),
    }
    put(project.notebooks, {f"{name}.md": text for name, text in pages.items()})
    monkeypatch.chdir(project.root)
    return project


def attnlib(*words: str, columns: int = 80):
    return CliRunner().invoke(app, words, env={"COLUMNS": str(columns), "TERMINAL_WIDTH": str(columns)})


def ids(output: str) -> list[str]:
    return [entry["id"] for entry in json.loads(output)]


# The list of figures.


def test_figures_are_a_row_each(project):
    lines = attnlib("figures").output.splitlines()
    assert [line.split()[0] for line in lines[1:4]] == [
        "attend/interchange",
        "attend/readout",
        "learn/agreement",
    ]


def test_the_minutes_of_a_figure_that_was_not_made_are_those_of_elsewhere(project, monkeypatch):
    monkeypatch.setattr("companion.cli.last_seconds", lambda _: {"attend/readout": 90.0})
    minutes = {line.split()[0]: line.split()[1] for line in attnlib("figures").output.splitlines()[1:4]}
    assert minutes == {"attend/interchange": "—", "attend/readout": "~1.5", "learn/agreement": "—"}


def test_the_signs_of_minutes_are_explained(project):
    output = attnlib("figures").output
    assert "~1.5 means that a figure took\n1.5 minutes on another machine" in output
    assert "— means that it has not been run" in output


def test_no_claim_is_judged_for_the_list(project, monkeypatch):
    monkeypatch.setattr("companion.claims.verify.verify", None)
    assert attnlib("figures").exit_code == 0


def test_figures_are_listed_as_json_with_their_minutes(project):
    save(project.root, {"a": 1.0}, experiment="readout")
    (project.results("quick") / "readout.provenance.json").write_text('{"seconds": 90}', encoding="utf-8")
    (entry,) = json.loads(attnlib("figures", "readout", "--json").output)
    assert entry["profiles"] == {"quick": {"minutes": 1.5}}
    assert (entry["part"], entry["title"]) == ("II", "What the readout reads")


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        pytest.param(["attend/*"], ["attend/interchange", "attend/readout"], id="of a folder"),
        pytest.param(["*agree*"], ["learn/agreement"], id="within a name"),
        pytest.param(["--part", "III"], ["learn/agreement"], id="of a part"),
    ],
)
def test_figures_are_chosen(project, words, expected):
    assert ids(attnlib("figures", *words, "--json").output) == expected


def test_a_pattern_that_fits_nothing_is_refused(project):
    with pytest.raises(UnknownName, match=r"no figure 'learned/\*'"):
        find_all(project, ["learned/*"])


def test_a_figure_lists_its_parameters(project):
    output = attnlib("figures", "readout").output
    assert "attnlib run attend/readout -p NAME=VALUE" in output
    assert "\n  seeds" in output


def test_a_pattern_runs_every_figure_that_fits(project, monkeypatch):
    targets = []
    monkeypatch.setattr(
        "companion.book.workflow.run", lambda _, names, *rest, **kind: targets.extend(names) or 0
    )
    assert attnlib("run", "attend/*", "--explain").exit_code == 0
    assert targets == ["build/notebooks/attend/interchange.ipynb", "build/notebooks/attend/readout.ipynb"]


def test_the_shell_completes_figures(project):
    assert _figures_beginning("attend/r") == ["attend/readout"]


def test_completion_can_be_installed():
    assert "--install-completion" in attnlib("--help", columns=120).output


# Runs.

VALUES = {"mine": {"AED": {"share": {"value": 0.25, "low": 0.2, "high": 0.3, "n": 3}}, "n": 4}}


def recorded(project, parameters, values=None):
    """A run with parameters, with its result where there are values."""
    request = Request("attend/readout", "quick", parameters)
    request.write(project.root / request.folder / "run.json")
    if values is not None:
        Result("readout", "quick", dict(parameters), values, {}, {}).save(project.root / request.folder)
        put(project.root / request.folder, {"readout.ipynb": "{}"})
    return request


def test_a_run_is_named_by_its_parameters(project):
    request = recorded(project, {"task": ["scan"], "source": "/home/me/my texts.en"})
    assert request.name.startswith("attend-readout-source-my-texts.en-task-scan-")


def test_runs_are_listed_with_their_state(project):
    recorded(project, {"seeds": 1}, VALUES)
    recorded(project, {"seeds": 2})
    states = {
        entry["parameters"]["seeds"]: entry["state"]
        for entry in json.loads(attnlib("status", "--json").output)
    }
    assert states == {1: "finished", 2: "not finished"}


def test_status_prints_parameters_as_they_are_typed(project):
    recorded(project, {"task": ["scan", "one_to_one"], "seeds": 1}, VALUES)
    assert "seeds=1 task=scan,one_to_one" in attnlib("status", columns=160).output


@pytest.mark.parametrize("end", ["1", "whole", "last letters"])
def test_a_run_is_found_by_number_name_or_end(project, end):
    request = recorded(project, {"seeds": 1}, VALUES)
    name = {"1": "1", "whole": request.name, "last letters": request.name[-6:]}[end]
    assert find_run(project, name).request == request


def test_an_unknown_run_is_refused(project):
    recorded(project, {"seeds": 1})
    with pytest.raises(UnknownName, match="no run 'attend-readout-seed-1'"):
        find_run(project, "attend-readout-seed-1")


@pytest.mark.parametrize("number", ["3", "0", "12345678901"])
def test_a_number_is_never_the_end_of_a_name(project, monkeypatch, number):
    for seeds in (1, 2):
        recorded(project, {"seeds": seeds}, VALUES)
    monkeypatch.setattr(OwnRun, "name", f"attend-readout-{number}")
    with pytest.raises(BadInput, match=rf"no run {number}: there are 2 runs, 1 to 2"):
        find_run(project, number)


def test_without_a_run_there_is_nothing_to_compare(project):
    result = attnlib("diff", "1")
    assert result.exit_code == 2
    assert "there is no run yet" in result.stderr


def test_a_folder_that_is_no_run_is_passed_over(project):
    put(project.build / "runs" / "x", {"run.json": "{"})
    assert own_runs(project) == []


def test_two_runs_are_compared(project):
    other = {"mine": {"AED": {"share": {"value": 0.5, "low": 0.4, "high": 0.6, "n": 3}}, "n": 4}}
    first, second = (
        Result("readout", "quick", {"seeds": n}, values, {}, {}) for n, values in ((1, VALUES), (2, other))
    )
    comparison = compare(first, second)
    assert comparison.settings == {"seeds": (1, 2)}
    assert list(comparison.numbers) == ["mine.AED.share"]
    assert comparison.equal == 1


def test_results_of_two_figures_are_not_compared():
    first, second = (Result(name, "quick", {}, VALUES, {}, {}) for name in ("readout", "agreement"))
    with pytest.raises(BadInput, match="measure different things"):
        compare(first, second)


def test_a_run_is_compared_with_the_book(project):
    recorded(project, {"seeds": 1}, VALUES)
    save(project.root, {"mine": {"AED": {"share": 0.75}, "n": 4}}, experiment="readout")
    output = attnlib("diff", "1").output
    assert "1 numbers differ, 1 are equal" in output
    assert "mine.AED.share: 0.750 (no interval) → 0.250 [0.200, 0.300], n = 3" in output


def numbers_of(task, kind="AED", share=0.25):
    return {task: {kind: {"share": share, "token_accuracy": 0.5}}}


@pytest.mark.parametrize(
    ("book", "text"),
    [
        pytest.param("multi30k_en_de", "parallel", id="a text"),
        pytest.param("tatoeba_en_fr", "aligned", id="a text with links"),
        pytest.param("sst", "own", id="labelled texts"),
    ],
)
def test_a_text_of_ones_own_is_compared_with_a_text_of_the_book(project, book, text):
    recorded(project, {"source": "/my.en"}, {"by_task": numbers_of(text)})
    book_values = {"by_task": numbers_of("scan", share=0.1) | numbers_of(book, share=0.75)}
    save(project.root, book_values, experiment="readout")
    output = attnlib("diff", "1", columns=160).output
    assert f"your own text are beside those of another: {book} → {text}" in output
    assert "1 numbers differ, 1 are equal" in output
    assert "2 numbers only in the first, 0 only in the second" in output
    assert f"by_task.{text}.AED.share: 0.750 (no interval) → 0.250 (no interval)" in output


def test_another_cell_is_compared_with_the_usual_one(project):
    recorded(project, {"cell": ["lstm"]}, numbers_of("scan", "AED-lstm"))
    save(project.root, numbers_of("scan", share=0.75), experiment="readout")
    output = attnlib("diff", "1").output
    assert "the numbers of AED-lstm are beside those of AED" in output
    assert "scan.AED-lstm.share: 0.750 (no interval) → 0.250 (no interval)" in output


def test_two_cells_are_compared_with_one_another():
    kinds = ("AED-lstm", "AED-vanilla")
    first, second = (Result("readout", "quick", {}, numbers_of("scan", kind), {}, {}) for kind in kinds)
    assert compare(first, second).compared_as == {"AED-vanilla": "AED-lstm"}


def test_a_text_is_compared_with_a_synthetic_task_where_there_is_no_other_text():
    tasks = ("scan", "parallel")
    first, second = (Result("readout", "quick", {}, numbers_of(task), {}, {}) for task in tasks)
    assert compare(first, second).compared_as == {"parallel": "scan"}


def test_runs_without_a_number_in_common_are_said_to_have_none(project):
    recorded(project, {"seeds": 1}, numbers_of("scan"))
    save(project.root, numbers_of("one_to_one"), experiment="readout")
    assert "they have no number in common" in attnlib("diff", "1").output


def test_a_text_of_ones_own_may_be_the_first_of_two_runs():
    tasks = ("parallel", "multi30k_en_fr")
    first, second = (Result("readout", "quick", {}, numbers_of(task), {}, {}) for task in tasks)
    comparison = compare(first, second)
    assert (comparison.equal, comparison.apart) == (2, (0, 0))
    assert comparison.compared_as == {"multi30k_en_fr": "parallel"}


def test_differences_begin_with_accuracy(project):
    values = [{"AED": {"share": n, "token_accuracy": n}} for n in (0.5, 0.75)]
    first, second = (Result("readout", "quick", {}, of_run, {}, {}) for of_run in values)
    assert list(compare(first, second).numbers) == ["AED.token_accuracy", "AED.share"]


def test_a_run_opens_with_the_numbers_that_claims_are_about_at_its_own_task(project):
    write_paper(project.root / "claims", claim("a-claim", experiment="readout", keys=["scan.AED.share"]))
    request = recorded(project, {"source": "/my.en"}, VALUES)
    result = Result("readout", "quick", {}, VALUES, {}, {})
    assert next(iter(main_numbers(project, request, result))) == "mine.AED.share"
    text = opening(project, request, result)
    assert text.startswith("**Your run** of *What the readout reads* with `source=my.en`")
    assert "| `mine.AED.share` | 0.250 [0.200, 0.300], n = 3 |" in text


def main_keys(project, values):
    """The keys that open a run of these values."""
    result = Result("readout", "quick", {}, values, {}, {})
    return list(main_numbers(project, recorded(project, {"seeds": 1}, values), result))


def test_accuracy_comes_first_among_the_main_numbers(project):
    write_paper(project.root / "claims", claim("a-claim", experiment="readout", keys=["scan.AED.share"]))
    values = {"scan": {"AED": {"share": 0.5, "probe": {"token_accuracy": 0.2}, "token_accuracy": 0.9}}}
    assert main_keys(project, values)[:2] == ["scan.AED.token_accuracy", "scan.AED.share"]


def test_the_claims_of_a_kind_of_network_are_about_its_cells_too(project):
    keys = ["one_to_one.AED.share.z", "by_task.scan.AED.share.z"]
    write_paper(project.root / "claims", claim("a-claim", experiment="readout", keys=keys))
    shares = {"AED-lstm": {"share": {"a": 0.1, "z": 0.2}}}
    assert main_keys(project, {"scan": shares})[0] == "scan.AED-lstm.share.z"
    assert main_keys(project, {"by_task": {"mine": shares}})[0] == "by_task.mine.AED-lstm.share.z"


def test_what_a_paper_claims_above_all_comes_before_the_rest(project):
    claims = [claim(name, experiment="readout", keys=[f"AED.{name}"]) for name in ("first", "second")]
    write_paper(
        project.root / "claims", *claims, central={"second": {"short": "What matters.", "number": "{0}"}}
    )
    assert main_keys(project, {"AED": {"first": 0.1, "second": 0.2}}) == ["AED.second", "AED.first"]


def test_numbers_that_no_claim_is_about_are_listed_from_the_largest(project):
    write_paper(project.root / "claims", claim("a-claim", experiment="agreement"))
    shares = {f"{letter}": number / 10 for number, letter in enumerate("abcdefghi")}
    assert main_keys(project, {"AED": {"share": shares}}) == [f"AED.share.{name}" for name in "ihgfedcb"]


def test_a_run_says_how_many_numbers_it_does_not_print(project, monkeypatch):
    write_paper(project.root / "claims", claim("a-claim", experiment="agreement"))
    recorded(project, {"seeds": 1}, {"AED": {name: 0.5 for name in "abcdefghi"}})
    monkeypatch.setattr("companion.book.workflow.run", lambda *_, **__: 0)
    monkeypatch.setattr("companion.book.plan.bring_data", lambda _: None)
    output = attnlib("run", "attend/readout", "-p", "seeds=1").output
    assert "8 of 9 numbers; all are in" in output


def test_a_run_says_how_long_the_command_took_by_the_clock(project, monkeypatch):
    write_paper(project.root / "claims", claim("a-claim", experiment="agreement"))
    request = recorded(project, {"seeds": 1}, VALUES)
    put(project.root / request.folder, {"readout.provenance.json": '{"seconds": 6, "training_seconds": 78}'})
    clock = iter([0.0, 110.0])
    monkeypatch.setattr("companion.cli.time.monotonic", lambda: next(clock, 110.0))
    monkeypatch.setattr("companion.book.workflow.run", lambda *_, **__: 0)
    monkeypatch.setattr("companion.book.plan.bring_data", lambda _: None)
    output = attnlib("run", "attend/readout", "-p", "seeds=1").output
    assert "this command took 1 min 50 s\n" in output
    assert "minutes" not in output


def test_the_notebook_of_a_run_begins_with_what_opens_it(project):
    write_paper(project.root / "claims", claim("a-claim", experiment="readout"))
    assert _opening(project, recorded(project, {"seeds": 1}, VALUES)).startswith("**Your run**")


def test_a_run_without_a_result_has_no_opening(project):
    assert _opening(project, recorded(project, {"seeds": 1})) == ""


# What authors of figures meet.


def test_an_experiment_that_cannot_list_its_networks_is_named_with_its_line(monkeypatch):
    experiment = registry.load("readout")

    def measurements(config):
        return config.no_such_setting

    monkeypatch.setattr(experiment, "measurements", measurements)
    with pytest.raises(BadInput, match=r"readout does not say .* at tests/companion/test_first_hour\.py:\d+"):
        experiment.models(object())


# Claims.


def test_verify_explains_its_headings(project):
    write_paper(project.root / "claims", claim("a-claim", experiment="readout"))
    assert "mathematics, data, networks: statements" in attnlib("verify").output


def test_verify_says_why_a_claim_cannot_be_judged(project):
    presupposes = {"keys": ["accuracy"], "at_least": 0.95, "says": "the networks have learned"}
    write_paper(
        project.root / "claims",
        claim("a-claim", experiment="readout", keys=["share"], presupposes=presupposes),
    )
    save(project.root, {"share": 0.25, "accuracy": 0.5}, experiment="readout")
    output = attnlib("verify", "a-claim").output
    assert "a-claim at quick: cannot be judged" in output
    assert "`accuracy` is 0.500, not at least 0.95" in output


def test_verify_explains_a_claim_in_words(project):
    words = {
        "says": "Attention is shared.",
        "place": "Section 4",
        "keys": ["scan.AED.share", "scan.AO.share"],
    }
    write_paper(
        project.root / "claims",
        claim("a-claim", experiment="readout", **words),
        title="Attention, a Study",
        url="https://example.org/study",
    )
    save(project.root, {"scan": {"AED": {"share": 9.0}, "AO": {"share": 1.0}}}, experiment="readout")
    output = attnlib("verify", "a-claim").output
    for piece in (
        "a-claim: Attention is shared.",
        "The paper says (Section 4)",
        "source: Attention, a Study, https://example.org/study",
        "Each of these 2 has to be above 5: “SCAN, GRU with attention: share”; “SCAN",
        "a-claim at quick: not reproduced",
        "why: of its 2 numbers, 1 is as stated, 1 is not as stated",
        "scan.AO.share: 1.000 (no interval): not as stated",
    ):
        assert piece in output


@pytest.fixture
def accepted(project, monkeypatch):
    """A claim whose verdict on a published result is accepted, beside one about another figure."""
    monkeypatch.setattr(registry, "names", lambda: ("readout", "agreement"))
    monkeypatch.setattr(registry, "load", lambda name: toy_experiment())
    claims = [claim("a-claim", experiment="readout", keys=["x"]), claim("b-claim", experiment="agreement")]
    write_paper(project.root / "claims", *claims)
    for experiment in ("readout", "agreement"):
        save(project.root, {"x": 9.0}, "paper", experiment)
    assert attnlib("verify", "--accept").exit_code == 0
    assert attnlib("verify", "a-claim").exit_code == 0
    return project


def test_explaining_a_claim_whose_result_was_altered_fails_as_verify_does(accepted):
    path = accepted.results("paper") / "readout.json"
    path.write_text(path.read_text().replace("9", "8"), encoding="utf-8")
    explained = attnlib("verify", "a-claim")
    assert explained.exit_code == 1
    assert "problem: results/paper/readout.json is not as it was written" in explained.output
    assert attnlib("verify", "b-claim").exit_code == 0
    assert "2 verdicts: 1 as expected, 0 changed, 1 broken" in attnlib("verify").output


def test_a_quick_result_that_was_altered_is_a_problem(project):
    write_paper(project.root / "claims", claim("a-claim", experiment="readout", keys=["x"]))
    save(project.root, {"x": 9.0}, experiment="readout")
    path = project.results("quick") / "readout.provenance.json"
    origin = json.loads(path.read_text(encoding="utf-8"))
    path.write_text(json.dumps(origin | {"computed": "of other numbers"}), encoding="utf-8")
    explained = attnlib("verify", "a-claim")
    assert explained.exit_code == 1
    message = "problem: build/results/quick/readout.json has other numbers than when it was computed"
    assert message in explained.output


def test_explaining_a_claim_with_a_wrong_key_fails_as_verify_does(accepted):
    claims = [claim("a-claim", experiment="readout", keys=["xx"]), claim("b-claim", experiment="agreement")]
    write_paper(accepted.root / "claims", *claims)
    explained = attnlib("verify", "a-claim")
    assert explained.exit_code == 1
    assert "problem: a-claim at paper: the result has no key 'xx'" in explained.output
    assert "2 verdicts: 1 as expected, 0 changed, 1 broken" in attnlib("verify").output


def test_of_many_claims_the_nearest_are_offered(project):
    names = [f"attention-is-shared-{letter}" for letter in "abcdefgh"] + ["no-more-than-chance"]
    write_paper(project.root / "claims", *(claim(name, experiment="readout") for name in names))
    message = attnlib("verify", "attention-is-shared").stderr
    assert message.count("attention-is-shared-") == 5
    assert "no-more-than-chance" not in message
    assert "`attnlib verify --all` lists the claims" in message


def test_an_unknown_claim_is_refused(project):
    write_paper(project.root / "claims", claim("a-claim", experiment="readout"))
    result = attnlib("verify", "b-claim")
    assert result.exit_code == 2
    assert "did you mean 'a-claim'" in result.stderr

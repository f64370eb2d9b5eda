"""Verdicts against expected verdicts: what counts as a change, what is stale, what accepting writes."""

import json
from dataclasses import replace

import pytest
import yaml

from attnlib.errors import BadInput
from companion.claims import Verdict
from companion.claims.verify import read_expected, summaries, verify, verify_command
from companion.results import registry
from companion.results.config import plain
from companion.results.request import Request
from companion.results.result import Result
from companion.results.run import code_of
from tests.companion.claims.claims_builders import claim

CLAIMS = [
    claim("above-five"),
    {"id": "for-later", "place": "Section 2", "says": "Later.", "not_run": "Not yet."},
    {"id": "never", "place": "Section 3", "says": "Never.", "cannot_be_run": "data: lost"},
]


@pytest.fixture
def root(tmp_path, monkeypatch):
    monkeypatch.setattr(registry, "names", lambda: ("toy",))
    (tmp_path / "claims").mkdir()
    write(tmp_path, CLAIMS)
    return tmp_path


def write(root, claims):
    content = {"paper": "p", "title": "A paper", "url": "https://example.org", "claims": claims}
    (root / "claims" / "p.yaml").write_text(yaml.safe_dump(content), encoding="utf-8")


def result(values, profile="quick", stale=False):
    """Values, or one of ``x``."""
    if not isinstance(values, dict):
        values = {"x": {"value": values, "low": values - 1, "high": values + 1, "n": 3}}
    return Result("toy", profile, {}, values, {}, {}, provenance={"code": "0"} if stale else {})


def save(root, values, profile="quick", stale=False):
    folder = root / "results" / "paper" if profile == "paper" else root / "build" / "results" / "quick"
    return result(values, profile, stale).save(folder)


def verdicts(root):
    return {(row.claim.id, row.profile): row.verdict for row in verify(root)}


def test_a_row_for_every_claim_and_profile(root):
    save(root, 9)
    assert verdicts(root) == {
        ("above-five", "quick"): Verdict.REPRODUCED,
        ("above-five", "paper"): Verdict.NOT_RUN,
        ("for-later", "quick"): Verdict.NOT_RUN,
        ("for-later", "paper"): Verdict.NOT_RUN,
        ("never", "quick"): Verdict.CANNOT_BE_RUN,
        ("never", "paper"): Verdict.CANNOT_BE_RUN,
    }
    reasons = [row.judgement.reason for row in verify(root)]
    assert "`attnlib run toy --profile paper`" in reasons[1]
    assert reasons[2:] == ["Not yet.", "Not yet.", "data: lost", "data: lost"]


def test_accepting_makes_the_verdict_expected_and_a_later_change_fails(root, capsys):
    save(root, 9)
    assert verify_command(root=root) == 1  # nobody has accepted it yet
    told = capsys.readouterr().out
    assert "no expected verdict; accept it with `attnlib verify --accept`" in told
    assert not (root / "claims" / "expected.json").exists()  # looking writes nothing
    assert verify_command(accept=True, root=root) == 0
    written = (root / "claims" / "expected.json").read_text(encoding="utf-8")
    assert json.loads(written) == {"above-five": {"quick": "reproduced"}}
    assert verify_command(root=root) == 0
    save(root, 5.5)
    capsys.readouterr()
    assert verify_command(root=root) == 1
    assert "above-five at quick: reproduced → partly" in capsys.readouterr().out
    assert (root / "claims" / "expected.json").read_text(encoding="utf-8") == written
    assert verify_command(accept=True, root=root) == 0
    assert read_expected(root) == {("above-five", "quick"): Verdict.PARTLY}
    assert verify_command(root=root) == 0


def test_where_a_claim_is_no_longer_judged_nothing_is_expected(root):
    save(root, 9)
    verify_command(accept=True, root=root)
    path = root / "claims" / "p.yaml"
    path.write_text(path.read_text(encoding="utf-8").replace("- quick\n", ""), encoding="utf-8")
    verify_command(accept=True, root=root)
    assert read_expected(root) == {}


def test_not_run_never_counts_as_a_change(root):
    path = save(root, 9)
    verify_command(accept=True, root=root)
    path.unlink()
    assert verify_command(root=root) == 0  # from reproduced to not run
    assert verify_command(accept=True, root=root) == 0
    assert read_expected(root) == {("above-five", "quick"): Verdict.REPRODUCED}  # kept, not forgotten
    for unjudged in ("not run at this profile", "cannot be run"):
        expected = {"above-five": {"quick": unjudged}}
        (root / "claims" / "expected.json").write_text(json.dumps(expected), encoding="utf-8")
        save(root, 0)
        assert verify_command(root=root) == 0  # and back from it


def test_a_stale_result_is_shown_as_stale_and_never_accepted(root, capsys):
    save(root, 9, stale=True)
    row = verify(root)[0]
    assert (row.verdict, row.stale) == (Verdict.REPRODUCED, True)
    assert verify_command(root=root) == 0  # accepting could not mend it
    assert "stale at quick, the code has changed since: toy" in capsys.readouterr().out
    verify_command(accept=True, everything=True, root=root)
    assert "above-five (stale)" in capsys.readouterr().out
    assert read_expected(root) == {}


def test_a_stale_result_with_another_verdict_is_to_be_run_again_first(root, capsys):
    """Accepting keeps what was expected of it, so that advice would lead nowhere."""
    save(root, 9)
    save(root, 9, "paper")
    verify_command(accept=True, root=root)
    save(root, 0, stale=True)
    capsys.readouterr()
    assert verify_command(accept=True, root=root) == 1
    told = capsys.readouterr().out
    assert "above-five at quick: reproduced → not reproduced" in told
    assert "stale: run it again first, `attnlib run toy --profile quick`" in told
    assert "--accept" not in told
    assert read_expected(root)["above-five", "quick"] is Verdict.REPRODUCED
    save(root, 0, "paper")
    assert verify_command(root=root) == 1
    told = capsys.readouterr().out
    assert told.count("run it again first") == 1
    assert "where the new verdict is right, `attnlib verify --accept` makes it" in told


def test_a_deleted_expectation_and_a_new_claim_count_as_changes(root):
    save(root, 9)
    verify_command(accept=True, root=root)
    write(root, [*CLAIMS, CLAIMS[0] | {"id": "another"}])
    assert [(row.claim.id, row.profile) for row in verify(root) if row.changed] == [("another", "quick")]
    assert verify_command(root=root) == 1
    assert verify_command(accept=True, root=root) == 0
    (root / "claims" / "expected.json").unlink()
    assert verify_command(root=root) == 1


def test_a_result_that_lacks_the_key_fails_unless_stale(root, capsys):
    save(root, {"xx": 1.0})
    assert verify_command(root=root) == 1
    assert "did you mean 'xx'" in " ".join(capsys.readouterr().out.split())
    save(root, {"xx": 1.0}, stale=True)
    assert verify_command(root=root) == 0


@pytest.mark.parametrize("content", [b"{", b"[]", b"\xff", b'{"experiment": "toy"}'])
def test_a_result_that_cannot_be_read_is_one_problem_and_the_others_are_judged(root, capsys, content):
    write(root, [*CLAIMS, CLAIMS[0] | {"id": "another"}])
    save(root, 9, "paper")
    save(root, 9).write_bytes(content)
    assert verdicts(root)["above-five", "paper"] is Verdict.REPRODUCED
    verify_command(accept=True, root=root)
    capsys.readouterr()
    assert verify_command(root=root) == 1
    (told,) = [line for line in capsys.readouterr().out.splitlines() if line.startswith("problem")]
    assert told.startswith("problem: build/results/quick/toy.json")


def test_a_committed_result_that_is_lost_is_a_problem_where_verdicts_were_expected(root, capsys):
    path = save(root, 9, "paper")
    verify_command(accept=True, root=root)
    path.unlink()
    capsys.readouterr()
    assert verify_command(root=root) == 1
    assert "problem: results/paper/toy.json is missing" in capsys.readouterr().out
    (root / "claims" / "expected.json").unlink()
    assert verify_command(root=root) == 0  # it has not been run yet


def test_a_verdict_expected_of_a_claim_that_is_gone_is_a_problem(root, capsys):
    save(root, 9)
    write(root, [*CLAIMS, CLAIMS[0] | {"id": "another"}])
    verify_command(accept=True, root=root)
    write(root, CLAIMS)
    capsys.readouterr()
    assert verify_command(root=root) == 1
    told = capsys.readouterr().out
    assert (
        "claims/expected.json expects another to be `reproduced` at quick, and there is no such claim" in told
    )
    assert verify_command(accept=True, root=root) == 0
    assert set(read_expected(root)) == {("above-five", "quick")}


def test_what_changed_fits_on_a_screen_and_all_of_it_is_there_on_demand(root, capsys):
    save(root, 9)
    write(root, [CLAIMS[0] | {"id": f"claim-{number}"} for number in range(100)])
    assert verify_command(root=root) == 1
    told = capsys.readouterr().out.splitlines()
    assert len(told) < 24
    assert told[-1] == "… and 92 more: `attnlib verify --all`"
    assert "reproduced" in told[1]
    assert "100" in told[1]
    assert verify_command(everything=True, root=root) == 1
    told = capsys.readouterr().out.splitlines()
    assert sum(line.startswith("changed: ") for line in told) == 100
    assert sum(line.startswith("reproduced ") and "quick" in line for line in told) == 100


def test_a_plan_of_training_that_hangs_on_data_not_on_this_machine_makes_nothing_stale(root, monkeypatch):
    """Where a set is not at hand, a plan leaves its networks out."""
    monkeypatch.setattr(registry, "names", lambda: ("temporal_share",))
    config = Request("temporal_share").config
    origin = {"code": code_of("temporal_share"), "models": ["a network of another plan"]}
    made = replace(result(9), experiment="temporal_share", config=plain(config), provenance=origin)
    made = replace(made, data={"scan/train.txt": "0" * 64})
    monkeypatch.setattr("companion.results.result._at_hand", lambda file: False)
    assert not made.stale
    assert replace(made, provenance=origin | {"code": "0"}).stale
    monkeypatch.setattr("companion.results.result._at_hand", lambda file: True)
    assert replace(made, values={}).stale


def test_json_holds_every_row(root, capsys):
    save(root, 9)
    verify_command(json=True, accept=True, root=root)
    told = json.loads(capsys.readouterr().out)
    assert (told["changed"], told["problems"], told["accepted"], len(told["rows"])) == (0, [], 1, 6)
    assert told["rows"][0] == {
        "claim": "above-five",
        "paper": "p",
        "experiment": "toy",
        "profile": "quick",
        "verdict": "reproduced",
        "expected": "reproduced",
        "changed": False,
        "stale": False,
        "problem": "",
        "reason": "",
        "evidence": {"x": {"value": 9.0, "low": 8.0, "high": 10.0, "n": 3}},
    }


def test_verdicts_of_an_experiment_in_a_few_words(root):
    save(root, 9, stale=True)
    assert summaries(verify(root)) == {
        ("toy", "quick"): "1 reproduced (stale)",
        ("toy", "paper"): "1 not run at this profile",
    }


@pytest.mark.parametrize("content", ["[", "[]", '{"a": 1}', '{"a": {"quick": "fine"}}'])
def test_expected_verdicts_that_cannot_be_read(root, content):
    (root / "claims" / "expected.json").write_text(content, encoding="utf-8")
    with pytest.raises(BadInput, match="is not as `attnlib verify --accept` writes it"):
        verify(root)


NONE = {"value": None, "low": None, "high": None, "n": 0}


@pytest.mark.parametrize(
    ("found", "verdict", "reason"),
    [
        ({"cannot_be_run": "data: x"}, Verdict.CANNOT_BE_RUN, "data: x"),
        (NONE | {"not_run": "3 bad heads, 8 needed"}, Verdict.NOT_RUN, "3 bad heads, 8 needed"),
    ],
)
def test_what_a_result_says_cannot_be_had_never_counts_as_a_change(root, found, verdict, reason):
    save(root, 9)
    verify_command(accept=True, root=root)
    save(root, {"x": found})
    row = verify(root, experiment="toy")[0]
    assert (row.verdict, row.judgement.reason, row.changed) == (verdict, reason, False)
    assert verify_command(root=root) == 0

"""Verdicts against expected ones: what changed, what is stale, what accepting writes, what chance adds."""

import json
from dataclasses import replace
from functools import partial
from types import SimpleNamespace

import pytest

from companion import paths
from companion.claims.verdicts import Judgement, Verdict
from companion.claims.verify import ClaimVerdict, by_origin, chance, read_expected, summaries, verify
from companion.claims.verify import verify_command as command
from companion.results import committed, recompute, registry
from companion.results.result import Result
from tests.attnlib.refusals import assert_refused
from tests.companion.claims import claims_builders as builders
from tests.companion.claims.claims_builders import claim, write_paper
from tests.tables import beside

GIVEN = beside(__file__, "verify")
CLAIMS = [claim("above-five"), *GIVEN["unjudged"]]


@pytest.fixture
def root(tmp_path, monkeypatch):
    monkeypatch.setattr(registry, "names", lambda: ("toy",))
    monkeypatch.setattr(registry, "load", lambda name: builders.toy_experiment())
    write(tmp_path, CLAIMS)
    return tmp_path


@pytest.fixture
def verified(root, capsys):
    """What the command says, of which some is expected, as is its exit code."""

    def verified(code, *pieces, **options):
        capsys.readouterr()
        exit_code = command(root=root, **options)
        output = capsys.readouterr().out
        assert (exit_code, [piece for piece in pieces if piece not in output]) == (code, [])
        return output

    return verified


def write(root, claims):
    write_paper(root / "claims", *claims)


def save(root, x, *profile, **options):
    """A result of ``x``, and an interval around it."""
    values = {"x": {"value": x, "low": x - 1, "high": x + 1, "n": 3}}
    return builders.save(root, values, *profile, **options)


def test_looking_writes_no_expected_verdict(root, verified):
    save(root, 9)
    verified(1, "no expected verdict; accept it with `attnlib verify --accept`")
    assert not (root / "claims" / "expected.json").exists()


def test_accepting_makes_the_verdict_expected(root, verified):
    save(root, 9)
    verified(0, accept=True)
    verified(0)
    expected = json.loads((root / "claims" / "expected.json").read_text(encoding="utf-8"))
    assert expected == {"above-five": {"quick": "reproduced"}}


def test_a_verdict_that_changes_fails_until_it_is_accepted(root, verified):
    save(root, 9)
    verified(0, accept=True)
    path = root / "claims" / "expected.json"
    before = path.read_text(encoding="utf-8")
    save(root, 5.5)
    verified(1, "above-five at quick: reproduced → undecided")
    assert path.read_text(encoding="utf-8") == before
    verified(0, accept=True)
    assert read_expected(root) == {("above-five", "quick"): Verdict.UNDECIDED}


def test_accepting_forgets_a_profile_that_is_no_longer_judged(root, verified):
    save(root, 5.5)
    verified(0, accept=True)
    write(root, [CLAIMS[0] | {"profiles": ["paper"]}, *CLAIMS[1:]])
    verified(0, accept=True)
    assert read_expected(root) == {}


def test_not_run_never_counts_as_a_change(root, verified):
    path = save(root, 9)
    verified(0, accept=True)
    path.unlink()
    verified(0)  # from reproduced to not run
    verified(0, accept=True)
    assert read_expected(root) == {("above-five", "quick"): Verdict.REPRODUCED}  # kept, not forgotten
    save(root, 0)
    for unjudged in ("not run at this profile", "cannot be run"):
        expected = {"above-five": {"quick": unjudged}}
        (root / "claims" / "expected.json").write_text(json.dumps(expected), encoding="utf-8")
        verified(0)  # and back from it


def test_a_stale_result_is_shown_as_stale(root):
    save(root, 9, stale=True)
    row = verify(root)[0]
    assert (row.verdict, row.stale) == (Verdict.REPRODUCED, True)
    expected = {("toy", "quick"): "1 reproduced (stale)", ("toy", "paper"): "1 not run at this profile"}
    assert summaries(verify(root)) == expected


def test_a_stale_result_is_never_accepted(root, verified):
    save(root, 9, stale=True)
    verified(
        0, "stale at quick, other runs or versions are asked for today: toy"
    )  # accepting could not mend it
    verified(0, "above-five (stale)", accept=True, everything=True)
    assert read_expected(root) == {}


def test_a_stale_result_with_another_verdict_is_to_be_run_again_first(root, verified):
    """Accepting keeps what was expected of it, so that advice would lead nowhere."""
    save(root, 9)
    save(root, 9, "paper")
    verified(0, accept=True)
    save(root, 0, stale=True)
    again = "stale: run it again first, `attnlib run toy --profile quick`"
    assert "--accept" not in verified(
        1, "above-five at quick: reproduced → not reproduced", again, accept=True
    )
    assert read_expected(root)["above-five", "quick"] is Verdict.REPRODUCED
    save(root, 0, "paper")
    output = verified(1, "where the new verdict is right, `attnlib verify --accept` makes it")
    assert output.count("run it again first") == 1


GONE = "claims/expected.json expects {} to be `reproduced` at {}, where there is no such claim"


def test_a_new_claim_fails_until_it_is_accepted(root, verified):
    save(root, 9)
    verified(0, accept=True)
    write(root, [*CLAIMS, CLAIMS[0] | {"id": "another"}])
    assert [(row.claim.id, row.profile) for row in verify(root) if row.changed] == [("another", "quick")]
    verified(1)
    verified(0, accept=True)
    verified(0)


def test_an_expectation_without_its_claim_fails_until_it_is_accepted(root, verified):
    write(root, [*CLAIMS, CLAIMS[0] | {"id": "another"}])
    save(root, 9)
    verified(0, accept=True)
    write(root, CLAIMS)
    verified(1, GONE.format("another", "quick"))
    verified(0, accept=True)
    verified(0)


@pytest.mark.parametrize(
    "replacement",
    [
        pytest.param([CLAIMS[0] | {"profiles": ["quick"]}, *CLAIMS[1:]], id="profile is gone"),
        pytest.param([CLAIMS[1] | {"id": "above-five"}, *CLAIMS[1:]], id="another claim of the same id"),
    ],
)
def test_an_expectation_at_a_profile_that_is_gone_fails(root, verified, replacement):
    for profile in ("quick", "paper"):
        save(root, 9, profile)
    verified(0, accept=True)
    write(root, replacement)
    verified(1, GONE.format("above-five", "paper"))


def test_accepting_forgets_expectations_without_a_claim(root, verified):
    for profile in ("quick", "paper"):
        save(root, 9, profile)
    verified(0, accept=True)
    write(root, [CLAIMS[1] | {"id": "above-five"}, *CLAIMS[1:]])
    verified(0, accept=True)
    assert read_expected(root) == {}


def test_accepting_without_any_result_keeps_what_is_expected(root, verified):
    for profile in ("quick", "paper"):
        save(root, 9, profile)
    verified(1, "no expected verdict")
    verified(0, accept=True)
    (root / "results" / "paper" / "toy.json").unlink()
    (root / "claims" / "expected.json").write_text('{"above-five": {"quick": "reproduced"}}')
    assert set(read_expected(root)) == {("above-five", "quick")}


def test_a_result_that_lacks_the_key_fails_unless_stale(root, verified):
    builders.save(root, {"xx": 1.0})
    verified(1, "did you mean 'xx'")
    builders.save(root, {"xx": 1.0}, stale=True)
    verified(0)


@pytest.mark.parametrize("content", [b"{", b"[]", b"\xff", b'{"experiment": "toy"}'])
def test_a_result_that_cannot_be_read_is_one_problem(root, verified, content):
    write(root, [*CLAIMS, CLAIMS[0] | {"id": "another"}])
    save(root, 9).write_bytes(content)
    output = verified(1, "problem: build/results/quick/toy.json is no result", accept=True)
    assert output.count("problem") == 1


@pytest.mark.parametrize("content", [b"{", b"[]", b"\xff", b'{"experiment": "toy"}'])
def test_beside_a_result_that_cannot_be_read_others_are_judged(root, content):
    write(root, [*CLAIMS, CLAIMS[0] | {"id": "another"}])
    save(root, 9, "paper")
    save(root, 9).write_bytes(content)
    assert verify(root)[1].verdict is Verdict.REPRODUCED


def test_a_current_result_that_no_longer_decides_what_was_expected_is_a_problem(root, verified):
    path = save(root, 9, "paper")
    verified(0, accept=True)
    replace(Result.load(path), values={"xx": 1.0}, missing=["toy AED: 1"]).save(path.parent)
    verified(1, "above-five at paper: not run at this profile, and `reproduced` was expected: ")


@pytest.mark.parametrize(("name", "was", "becomes", "message"), GIVEN["altered"])
def test_a_committed_result_that_is_lost_or_altered_is_a_problem(root, verified, name, was, becomes, message):
    verified(0)  # what has not been run yet is none
    path = save(root, 9, "paper").with_name(name)
    verified(0, accept=True)
    if becomes is None:
        path.unlink()
    else:
        content = path.read_text().replace(was, becomes) if was else becomes
        path.write_text(content, encoding="latin-1")
    verified(1, message)
    save(root, 9, "paper")
    verified(0)


def test_a_result_that_the_archive_does_not_give_is_a_problem_when_recomputed(root, verified, monkeypatch):
    """Its checksum may have been forged, too."""
    path = save(root, 9, "paper")
    verified(0, accept=True)
    saved = Result.load(path)
    monkeypatch.setattr(paths, "ARCHIVE", root / "archive")
    monkeypatch.setattr(paths, "PAPER", path.parent)
    monkeypatch.setattr("companion.results.answer.all_measurements", lambda profile: {})
    monkeypatch.setattr(committed, "committed", lambda: ["toy"])
    monkeypatch.setattr(recompute, "recomputed", lambda name, archive: saved)
    verified(0, recompute=True)
    save(root, 9.1, "paper")
    verified(0)
    verified(1, "results/paper/toy.json: the archive gives other numbers", recompute=True)
    replace(saved, provenance=saved.provenance | {"networks": 3}).save(path.parent)
    verified(1, "results/paper/toy.provenance.json: the archive gives another `networks`", recompute=True)
    monkeypatch.setattr(committed, "committed", lambda: ["gone", "toy"])  # the one does not stop the other
    verified(1, "results/paper/gone.json: ", "toy.provenance.json: the archive gives another", recompute=True)
    (root / "archive").mkdir()
    (root / "archive" / "x.jsonl").write_bytes(b'{"run":"a","training":"x"}\n{"cut off')
    verified(1, "archive/x.jsonl, line 2: no line of an archive", recompute=True)


def test_a_result_that_was_sealed_again_is_a_problem(root, verified):
    path = save(root, 9, "paper")
    verified(0, accept=True)
    saved = Result.load(path)
    computed = replace(saved, provenance=saved.provenance | {"computed": saved.digest})
    computed.save(path.parent)
    committed.write_checksums(path.parent)
    verified(0)
    replace(computed, values=saved.values | {"y": 1}).save(path.parent)
    committed.write_checksums(path.parent)
    verified(1, "results/paper/toy.json has other numbers than when it was computed")


def test_a_published_result_of_uncommitted_code_is_a_problem(root, verified):
    path = save(root, 9, "paper")
    verified(0, accept=True)
    result = Result.load(path)
    for dirty, code in ((False, 0), (True, 1)):
        replace(result, provenance=result.provenance | {"dirty": dirty}).save(path.parent)
        committed.write_checksums(path.parent)
        message = "results/paper/toy.json was made by code that was not committed" if dirty else ""
        verified(code, message)


def test_json_holds_a_row_for_every_verdict(root, verified):
    save(root, 9)
    report = json.loads(verified(0, json=True, accept=True))
    assert (report["changed"], report["problems"], report["accepted"]) == (0, [], 1)
    shown = [[row[name] for name in ("claim", "profile", "verdict", "reason")] for row in report["rows"]]
    assert shown == GIVEN["rows"]
    p = pytest.approx(0.00336, abs=1e-5)  # Student, 2 degrees, at 4 × 4.303
    assert report["rows"][0] == GIVEN["row"] | {"p": p}


@pytest.mark.parametrize("content", ["[", "[]", '{"a": 1}', '{"a": {"quick": "fine"}}'])
def test_expected_verdicts_that_cannot_be_read(root, content):
    (root / "claims" / "expected.json").write_text(content, encoding="utf-8")
    assert_refused(partial(verify, root), "is not as `attnlib verify --accept` writes it")


def about(*keys, **fields):
    """What the tallies need to know of a claim."""
    return SimpleNamespace(experiment="toy", keys=keys, **fields)


def test_claims_about_the_same_numbers_are_one_of_the_family_by_the_first_of_them():
    numbers = [(("x", "y"), 0.01), (("y", "x"), 0.9), (("x",), 0.04)]
    judged = [(about(*keys), Judgement(Verdict.REPRODUCED, {}, p=p)) for keys, p in numbers]
    rows = [ClaimVerdict(claim, "paper", judgement) for claim, judgement in judged]
    assert chance(rows).verdicts == 2
    assert chance(rows).limit == 0.04  # with the mirror it would be 0.01


def test_statements_about_networks_are_counted_by_who_says_so():
    fields = {"paper": "p", "kind": "statement", "reading": "", "number": False, "about": "networks"}
    rows = [
        ClaimVerdict(about("x", origin=origin, **fields), "paper", Judgement(verdict, {}))
        for origin, verdict in [
            ("inferred", Verdict.REPRODUCED),
            ("said", Verdict.UNDECIDED),
            ("reported", Verdict.UNDECIDED),
        ]
    ]
    assert by_origin(rows) == {
        ("p", "said"): {Verdict.UNDECIDED: 1},
        ("p", "inferred"): {Verdict.REPRODUCED: 1},
        ("p", "reported"): {Verdict.UNDECIDED: 1},
    }


def rows_with_p():
    """Verdicts of four claims that are decided, one without an interval, and of one left open."""
    judged = [Judgement(Verdict.REPRODUCED, {}, p=p) for p in (0.01, 0.02, 0.04, None)]
    judged.append(Judgement(Verdict.UNDECIDED, {}, p=0.9))
    claims = [(about(f"x{n}"), judgement) for n, judgement in enumerate(judged)]
    return [
        ClaimVerdict(claim, profile, judgement)
        for claim, judgement in claims
        for profile in ("quick", "paper")
    ]


def test_open_verdicts_count_for_the_family_alone():
    by_chance = chance(rows_with_p())
    assert (by_chance.verdicts, by_chance.limit, by_chance.surviving) == (3, 0.02, 2)
    assert by_chance.wrong == pytest.approx(0.15)


def test_a_verdict_survives_within_the_limit():
    by_chance = chance(rows_with_p())
    assert (by_chance.survives(0.02), by_chance.survives(0.04)) == (True, False)


def test_a_verdict_without_an_interval_survives_nothing():
    assert chance(rows_with_p()).survives(None) is False


def test_verdicts_without_an_interval_count_for_nothing():
    nothing = chance(row for row in rows_with_p() if row.judgement.p is None)
    assert (nothing.verdicts, nothing.surviving) == (0, 0)

"""Numbers guard numbers: what moves without a version is named, and a version raised for nothing."""

import subprocess
import sys

import pytest

from attnlib.errors import BadInput
from tests.companion.book.book_builders import copied, output_of
from tools.same_numbers import TinyRuns, by_meaning, checkout_of, differences

RUN = {"run": "toy-s0-1", "training": "toy", "version": 1, "settings": {"seed": 0, "width": 8}, "data": {}}


def lines(*, share=0.5, loss=2.5, training=1, measure=1, width=8, name="toy-s0-1"):
    """The archive's lines of one run and one measurement of it."""
    history = {"records": [{"step": 0, "loss": loss}], "seconds": 3.0}
    run = RUN | {
        "run": name,
        "version": training,
        "settings": {"seed": 0, "width": width},
        "history": history,
    }
    found = {"run": name, "measure": "readout", "version": measure, "settings": {}, "found": {"share": share}}
    return [run, found]


def compared(before: list[dict], now: list[dict], **accepted: str) -> list[str]:
    asked = {line["run"]: {"figure"} for line in before}
    return list(differences(TinyRuns(by_meaning(before), asked), TinyRuns(by_meaning(now)), accepted))


def test_equal_numbers_are_no_difference():
    assert compared(lines(), lines()) == []


def test_how_long_a_training_took_is_no_difference():
    before = lines()
    before[0]["history"]["seconds"] = 99.0
    assert compared(before, lines()) == []


def test_a_number_that_moved_without_a_version_is_named_with_both_values():
    (line,) = compared(lines(), lines(share=0.5000001))
    assert "readout gives other numbers and no version was raised: share was 0.5 and is 0.5000001" in line


def test_a_training_that_moved_without_a_version_is_named():
    (line,) = compared(lines(), lines(loss=2.6))
    assert "records[0].loss was 2.5 and is 2.6" in line


def test_a_measurement_that_moved_with_its_version_passes():
    assert compared(lines(), lines(share=0.6, measure=2)) == []


def test_numbers_that_moved_with_the_version_of_the_training_pass():
    assert compared(lines(), lines(loss=2.6, share=0.6, training=2, name="toy-s0-2")) == []


def test_a_version_that_was_raised_for_nothing_is_named():
    (line,) = compared(lines(), lines(measure=2))
    assert (
        line
        == "the version of the measurement readout went from 1 to 2, and no number of the tiny runs differs"
    )


def test_another_default_is_named_with_both_values():
    before_training, before_measurement = compared(lines(), lines(width=16, name="toy-s0-9"))
    assert "its training is not asked for any more; nearest today: width 8 → 16" in before_training
    assert "readout is not asked for any more" in before_measurement


def test_settings_that_an_experiment_changed_on_purpose_pass_where_it_is_accepted():
    assert compared(lines(), lines(width=16, name="toy-s0-9"), figure="a wider network") == []


def test_what_only_todays_code_asks_for_is_new():
    new = lines(width=16, name="toy-s0-9")
    assert compared(lines(), lines() + new) == []


def test_an_unknown_base_is_refused_with_the_way_out(tmp_path):
    with pytest.raises(BadInput, match="git fetch --unshallow"), checkout_of("0" * 40, tmp_path):
        pass


@pytest.mark.long
def test_an_order_of_summing_that_changed_is_found_in_a_real_run(tmp_path):
    """In a repository of its own: the first commit is the base, and the edit comes after it."""
    copied(tmp_path, "attnlib", "companion", "notebooks", "tools")

    def git(*words):
        subprocess.run(["git", "-c", "user.name=x", "-c", "user.email=x", *words], cwd=tmp_path, check=True)

    git("init", "--quiet")
    git("add", ".")
    git("commit", "--quiet", "--message", "base")
    own = {"PYTHONPATH": str(tmp_path), "ATTNLIB_ROOT": str(tmp_path)}
    command = [sys.executable, "-m", "tools.same_numbers", "HEAD", "--experiment", "alignment_breakdown"]
    assert "0 differences" in output_of(command, tmp_path, **own)
    path = tmp_path / "notebooks" / "shared" / "measure.py"
    edited = path.read_text(encoding="utf-8").replace('"near_diagonal": ', '"near_diagonal": 1e-6 + ', 1)
    assert edited != path.read_text(encoding="utf-8")
    path.write_text(edited, encoding="utf-8")
    assert "no version was raised" in output_of(command, tmp_path, code=1, **own)

"""Which differences between two versions of the code fail: the numbers of one network, written by hand."""

import copy

import pytest

from tools.comparison import Comparison, Side
from tools.differences import Difference

NETWORK, OTHER = "copying-s0-aaaa", "copying-s0-bbbb"


def numbers() -> dict:
    """Return what the tiny runs write: an experiment asks one measurement of one network."""
    record = {"training": "copying", "version": 1, "settings": {"width": 8, "seed": 0}, "data": {}}
    question = {"run": NETWORK, "measure": "readout", "settings": {"samples": 5}}
    result = {"values": {"share": 0.5}, "tables": {"rows": [{"seed": 0, "share": 0.5}]}}
    return {
        "trainings": {"copying": {"version": 1, "defaults": {"width": 8, "seed": 0}}},
        "runs": {NETWORK: {"record": record, "history": {"records": [{"step": 0, "loss": 2.0}]}}},
        "measurements": [question | {"version": 1, "found": {"shares": [0.25, 0.75]}}],
        "experiments": {"figure": {"config": {"seeds": 1}, **result, "asks": [question]}},
        "failed": {},
    }


def rename_network(content: dict, **settings: object) -> None:
    """Give the network other settings, and with them another id."""
    run = content["runs"].pop(NETWORK)
    run["record"]["settings"] |= settings
    content["runs"][OTHER] = run
    content["measurements"][0]["run"] = OTHER
    content["experiments"]["figure"]["asks"][0]["run"] = OTHER


def raise_training(content: dict) -> None:
    """Raise the version of the training, which gives the network another id."""
    rename_network(content)
    content["trainings"]["copying"]["version"] = 2
    content["runs"][OTHER]["record"]["version"] = 2


def compare(before: dict, now: dict, network: Difference | None = None, **options):
    return Comparison(Side(before), Side(now), lambda *ids: network, **options).made()


@pytest.fixture
def before() -> dict:
    return numbers()


@pytest.fixture
def now() -> dict:
    return numbers()


MOVED = Difference("weight[0]", 1.0, 1.5)


def test_equal_numbers_pass(before, now):
    report = compare(before, now)
    assert (report.failures, report.notes) == ([], [])


def test_a_measurement_that_moved_fails(before, now):
    now["measurements"][0]["found"]["shares"][1] = 0.7
    (line,) = compare(before, now).failures
    assert line == f"differs: readout of {NETWORK} (version 1): shares[1] was 0.75 and is 0.7"


def test_a_measurement_that_finds_more_fails(before, now):
    now["measurements"][0]["found"]["more"] = 1
    assert "more was nothing and is 1" in compare(before, now).failures[0]


def test_a_measurement_that_moved_passes_with_a_raised_version(before, now):
    now["measurements"][0] |= {"version": 2, "found": {"shares": [0.3, 0.7]}}
    report = compare(before, now)
    assert report.failures == []
    assert report.notes == ["version raised: readout; 1 of 1 measurements differ"]


def test_a_version_of_a_measurement_raised_for_nothing_fails(before, now):
    now["measurements"][0]["version"] = 2
    assert "raised for nothing: the version of readout" in compare(before, now).failures[0]


def test_a_version_of_a_measurement_that_went_back_fails(before, now):
    before["measurements"][0]["version"] = 2
    assert "version went back: readout from 2 to 1" in compare(before, now).failures


def test_a_network_that_moved_fails(before, now):
    (line,) = compare(before, now, MOVED).failures
    assert line == f"differs: network {NETWORK} (copying, version 1): weight[0] was 1.0 and is 1.5"


def test_a_measurement_of_a_network_that_moved_is_not_named_as_well(before, now):
    now["measurements"][0]["found"]["shares"][1] = 0.7
    assert len(compare(before, now, MOVED).failures) == 1


def test_a_history_that_moved_fails(before, now):
    now["runs"][NETWORK]["history"]["records"][0]["loss"] = 2.5
    assert "history.records[0].loss was 2.0 and is 2.5" in compare(before, now).failures[0]


def test_a_measurement_fails_although_the_history_moved_as_well(before, now):
    now["runs"][NETWORK]["history"]["records"][0]["loss"] = 2.5
    now["measurements"][0]["found"]["shares"][1] = 0.7
    assert len(compare(before, now).failures) == 2


def test_a_network_that_moved_passes_with_a_raised_version(before, now):
    raise_training(now)
    now["measurements"][0]["found"]["shares"][1] = 0.7
    assert compare(before, now, MOVED).failures == []


def test_a_version_of_a_training_raised_for_nothing_fails(before, now):
    raise_training(now)
    assert "raised for nothing: the version of copying" in compare(before, now).failures[0]


def test_networks_are_matched_in_a_measurement_of_several(before, now):
    raise_training(now)
    before["measurements"][0]["with"], now["measurements"][0]["with"] = [NETWORK], [OTHER]
    now["measurements"][0]["found"]["shares"][1] = 0.7
    assert compare(before, now, MOVED).failures == []


def test_another_default_fails_although_no_tiny_run_has_it(before, now):
    now["trainings"]["copying"]["defaults"]["width"] = 16
    assert compare(before, now).failures == ["other default: copying (version 1): width was 8 and is 16"]


def test_another_default_passes_with_a_raised_version(before, now):
    raise_training(now)
    now["trainings"]["copying"]["defaults"]["width"] = 16
    assert compare(before, now, MOVED).failures == []


def test_a_renamed_setting_of_a_training_is_named(before, now):
    now["trainings"]["copying"]["defaults"] = {"breadth": 8, "seed": 0}
    failures = compare(before, now).failures
    assert [line.partition("): ")[2] for line in failures] == [
        "breadth was nothing and is 8",
        "width was 8 and is nothing",
    ]


def test_a_network_without_a_partner_fails_but_not_its_measurements(before, now):
    rename_network(now, width=16)
    (line,) = compare(before, now).failures
    assert line == f"without a partner: network {NETWORK}: settings.width was 8 and is 16"


def test_a_planned_network_that_was_not_trained_is_named(before, now):
    now["runs"], now["measurements"] = {}, []  # its data were not found, and its experiment goes on without
    (line,) = compare(before, now).failures
    assert line == f"without a partner: network {NETWORK}: it is asked for, and was not trained"


def test_a_network_without_a_partner_passes_with_a_raised_version(before, now):
    rename_network(now, width=16)
    now["trainings"]["copying"]["version"] = 2
    assert compare(before, now).failures == []


@pytest.mark.parametrize("name", ["figure", "copying"])
def test_a_network_without_a_partner_is_accepted_by_name(before, now, name):
    rename_network(now, width=16)
    report = compare(before, now, accepted=[name])
    assert report.failures == []
    assert report.notes[0].endswith("accepted")


def test_a_measurement_with_another_setting_fails(before, now):
    for line in (now["measurements"][0], now["experiments"]["figure"]["asks"][0]):
        line["settings"] = {"samples": 6}
    (line,) = compare(before, now).failures
    assert line == f"without a partner: readout of {NETWORK}: settings.samples was 5 and is 6"


def test_a_measurement_with_another_setting_passes_with_a_raised_version(before, now):
    now["experiments"]["figure"]["asks"][0]["settings"] = {"samples": 6}
    now["measurements"][0] |= {"settings": {"samples": 6}, "version": 2}
    assert compare(before, now).failures == []


def test_a_measurement_that_is_no_longer_asked_for_fails(before, now):
    now["measurements"], now["experiments"]["figure"]["asks"] = [], []
    assert "it is no longer asked for" in compare(before, now).failures[0]


def test_a_removed_experiment_takes_what_it_asked_for_with_it(before, now):
    now["measurements"], now["experiments"], now["runs"] = [], {}, {}
    report = compare(before, now)
    assert report.failures == []
    assert report.notes == ["gone: figure, and what it alone asked for"]


def test_a_new_experiment_passes_with_what_it_asks_for(before, now):
    before["measurements"], before["experiments"], before["runs"], before["trainings"] = [], {}, {}, {}
    report = compare(before, now)
    assert (report.failures, report.notes) == ([], ["new: figure"])


def test_another_tiny_profile_fails(before, now):
    now["experiments"]["figure"]["config"]["seeds"] = 2
    assert "another tiny profile: seeds was 1 and is 2" in compare(before, now).failures[0]


def test_a_new_setting_of_an_experiment_passes(before, now):
    now["experiments"]["figure"]["config"]["more"] = 2
    assert compare(before, now).failures == []


def test_a_result_that_moved_alone_fails(before, now):
    now["experiments"]["figure"]["values"]["share"] = 0.6
    assert "values.share was 0.5 and is 0.6" in compare(before, now).failures[0]


def test_a_result_that_moved_with_its_paper_result_passes(before, now):
    now["experiments"]["figure"]["values"]["share"] = 0.6
    assert compare(before, now, on_view=["figure"]).failures == []


def test_a_result_that_moved_with_its_measurement_is_not_named_as_well(before, now):
    now["measurements"][0]["found"]["shares"][1] = 0.7
    now["experiments"]["figure"]["values"]["share"] = 0.6
    assert len(compare(before, now).failures) == 1


def test_a_new_value_passes(before, now):
    now["experiments"]["figure"]["values"]["other"] = 1.0
    assert compare(before, now).failures == []


def test_a_new_column_passes(before, now):
    now["experiments"]["figure"]["tables"]["rows"][0]["other"] = 1.0
    assert compare(before, now).failures == []


def test_a_new_row_fails(before, now):
    now["experiments"]["figure"]["tables"]["rows"].append({"seed": 1, "share": 0.5})
    assert "tables.rows[1] was nothing" in compare(before, now).failures[0]


def test_an_experiment_that_stops_with_an_error_fails(before, now):
    del now["experiments"]["figure"]
    now["failed"]["figure"] = {"reason": "KeyError: 'x'", "lacks_data": False}
    assert compare(before, now).failures == ["does not run: figure (KeyError: 'x')"]


def test_an_experiment_whose_data_nobody_has_is_not_compared(before, now):
    for content in (before, now):
        del content["experiments"]["figure"]
        content["failed"]["figure"] = {"reason": "no corpus", "lacks_data": True}
    report = compare(before, now)
    assert report.failures == []
    assert report.notes == ["not compared: figure lacks its data here (no corpus)"]


def test_comparing_alters_nothing(before, now):
    content = copy.deepcopy(before)
    compare(before, now)
    assert before == content

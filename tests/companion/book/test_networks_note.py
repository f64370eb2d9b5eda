"""How many networks stand behind a page, from the intervals of its result."""

from companion.book.notebook import networks_note
from companion.results.result import Result


def result(values, **config):
    return Result("x", "paper", {"task": list(values)} | config, values, {}, {}, {})


def of(n):
    return {"a": {"value": 0.5, "low": None, "high": None, "n": n}, "b": {"c": {"value": None, "n": n - 1}}}


def test_tasks_are_grouped_by_their_number_of_networks():
    tasks = {"one_to_one": 10, "reordering_0": 10, "reordering_50": 10, "reversal": 5}
    values = {task: {"AED": of(n), "AO": of(n)} for task, n in tasks.items()}
    assert networks_note(result(values)) == (
        "Networks a task and architecture: 10 (one-to-one, reordering 0, 50 %), 5 (reversal)."
    )
    assert networks_note(result({"by_task": values}, task=list(tasks))) == networks_note(result(values))


def test_kinds_with_other_numbers_are_named_apart():
    values = {task: {"AED": of(n), "AED-lstm": of(3)} for task, n in {"scan": 10, "reversal": 5}.items()}
    values["scan"]["VED"] = of(10)
    assert networks_note(result(values)) == (
        "Networks a task and kind. AED, VED: 10 (SCAN), 5 (reversal); AED-lstm: 3 (each of 2 tasks)."
    )


def test_nothing_is_said_where_settings_say_it_or_values_have_another_shape():
    values = {"scan": {"AED": of(3)}}
    assert networks_note(result(values, seeds=3)) == ""
    assert networks_note(result({"reordering": {"luong": of(3), "context": of(3)}})) == ""
    assert networks_note(Result("x", "paper", {}, values, {}, {}, {})) == ""

"""Settings: typed from words of the command line or refused, and written as the parameters of notebooks."""

from contextlib import nullcontext
from dataclasses import dataclass, make_dataclass
from functools import partial
from pathlib import Path
from typing import Annotated, Literal

import pytest

from attnlib.errors import BadInput
from companion.book.parameters import CELL, cell, check_parallel, split_assignments, written
from companion.book.project import Project, discover
from companion.results import config as settings
from companion.results.config import (
    AboveZero,
    BaseConfig,
    Fraction,
    OneOf,
    Positive,
    descriptions,
    override,
    setting,
)
from notebooks.attend.word_alignment import experiment as word_alignment
from notebooks.shared.suite import PROFILES, model_specs
from tests.attnlib.refusals import assert_refused
from tests.tables import beside

SETTINGS = beside(__file__, "settings")
QUICK = PROFILES["quick"]


class Words(BaseConfig):
    kind: Annotated[str, OneOf(["recurrent", "transformer"])] = "recurrent"
    order: Literal["first", "last"] = "first"
    seeds: Positive | None = 3
    sizes: tuple[Positive, ...] = ()
    rate: float = 0.1
    part: Fraction = 0.5
    levels: tuple[AboveZero, ...] = ()
    whole: bool = True

    def check(self):
        if self.seeds == 13:
            raise BadInput("13 brings bad luck")


@pytest.mark.parametrize(("name", "word", "value"), SETTINGS["typed"])
def test_a_word_of_the_command_line_takes_the_type_of_its_setting(name, word, value):
    taken = getattr(override(Words(), {name: word}), name)
    assert taken == (tuple(value) if isinstance(value, list) else value)


FILES = {"source": "a.en", "target": "b.fr"}
ALIGNING = word_alignment.PROFILES["quick"]


@pytest.mark.parametrize(("values", "message"), SETTINGS["refused"])
def test_what_cannot_be_used_is_told_in_a_line(values, message):
    assert_refused(lambda: override(Words(), values), message)


def test_two_files_of_the_reader_are_the_task():
    config = override(QUICK, FILES)
    assert (config.task, config.source) == (("parallel",), Path("a.en"))
    assert dict(model_specs(config)[0].task_options)["source"] == str(Path("a.en").resolve())


def test_files_of_the_reader_with_links_have_gold_alignments():
    config = override(ALIGNING, FILES | {"links": "c.talp"})
    assert config.task == config.tokens_of == ("aligned",)
    options = dict(word_alignment.measurements(config)[0].spec.task_options)
    assert {name: Path(path).name for name, path in options.items()} == FILES | {"links": "c.talp"}


def test_files_of_the_reader_give_a_task_for_tokens_alone():
    config = override(ALIGNING, FILES | {"seeds": 1})  # a task for tokens alone, also once more
    assert (config.task, config.tokens_of) == ((), ("parallel",))
    assert override(config, {"steps": 3}).task == override(QUICK, {"task": ""}).task == ()


def test_each_model_is_planned_once():
    specs = model_specs(override(QUICK, {"task": "scan", "cell": "gru,lstm", "seeds": 2}))
    assert len(specs) == len(set(specs)) == 6


def test_attention_only_is_planned_without_a_cell():
    specs = model_specs(override(QUICK, {"task": "scan", "cell": "gru,lstm", "seeds": 2}))
    assert sum(spec.architecture == "AO" for spec in specs) == 2


def test_a_path_is_text_in_plain_settings():
    assert settings.plain(override(QUICK, FILES))["source"] == "a.en"


def test_the_settings_that_are_paths_are_known_by_their_types():
    assert settings.path_fields(QUICK) == ("source", "target")


# -- parameters of notebooks ---------------------------------------------------------------------------------


@dataclass(frozen=True)
class Base:
    seeds: int = setting(3, "networks of each kind")
    width: int = setting(8, "of states. The smaller, the faster")
    height: int | None = setting(None, "of states")


@dataclass(frozen=True)
class More(Base):
    width: int = 8
    scale: str = setting("quick", "set by the profile: sizes")
    task: tuple[str, ...] = setting(("scan", "reversal"), "see attnlib.training.names")


def test_settings_inherit_descriptions():
    assert descriptions(More) == SETTINGS["documented"]


def test_a_parameters_cell_has_the_first_sentence_of_each_description():
    assert cell(More, {"quick": More(), "paper": More(seeds=5, task=())}) == SETTINGS["cell"]


def test_a_setting_without_a_description_is_refused():
    silent = make_dataclass("Silent", [("steps", int)], bases=(Base,), frozen=True, kw_only=True)
    assert_refused(partial(descriptions, silent), "Silent: no description of steps")


@pytest.mark.slow
def test_notebooks_have_the_parameters_of_their_experiments():
    for figure in discover(Project(Path(__file__).parents[3])).values():
        assert figure.path.read_text(encoding="utf-8") == written(figure), figure.id
        # Papermill warns of an unknown parameter where a line has a second equals sign, be it in a comment.
        lines = CELL.search(written(figure))["source"].splitlines()
        assert [line for line in lines if line.count("=") > 1] == [], figure.id


def test_assignments():
    assert split_assignments(["task=scan", "path=a=b"]) == {"task": "scan", "path": "a=b"}
    for words, message in ("task", "expected name=value"), ("=1", "expected"), ("a=1 a=2", "given twice"):
        assert_refused(partial(split_assignments, words.split()), message)


def test_text_files_with_next_to_nothing_in_them_are_refused_by_name(tmp_path):
    source, target = tmp_path / "my.en", tmp_path / "my.fr"
    for text, pairs in [("", 0), ("\n \n", 0), ("one\n" * 9 + "\n", 9), ("one\n" * 10, 10)]:
        source.write_text(text)
        target.write_text(text)
        message = rf"my\.en and .*my\.fr have {pairs} pairs .* at least 10"
        with pytest.raises(BadInput, match=message) if pairs < 10 else nullcontext():
            check_parallel(source, target)
        source.write_text(text + "one\n")
        with pytest.raises(BadInput, match=r"line \d+ of"):
            check_parallel(source, target)

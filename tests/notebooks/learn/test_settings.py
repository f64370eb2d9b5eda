"""Settings of the chapter: what is refused, and networks that several figures share."""

import pytest

from attnlib.errors import BadInput
from companion.data import labelled_sets, parallel
from companion.results import registry
from companion.results.config import override
from notebooks.learn.agreement.experiment import Config
from notebooks.learn.dataset_sizes import text_sizes
from notebooks.learn.early_dynamics import word_counts
from notebooks.learn.multi_head import multi_head
from notebooks.learn.probe_locality import keyword
from notebooks.shared import permutation_copying
from tests.notebooks.test_every_figure import TINY

COPIES = TINY["permutation_copying"]
REFUSED = {
    "agreement": [
        ({"source": "x"}, "source and target go together"),
        ({"data": "x", "source": "x", "target": "x"}, "give one of them"),
        *(({name: 1}, f"^{name} is 1; .* of other seeds") for name in ("seeds", "long_seeds", "main_seeds")),
        ({"frozen": 1}, "frozen is 1; .* 0 or at least 2"),
        ({"translation_steps": -1}, "translation_steps is -1"),
        ({"classification": "sts"}, "did you mean 'sst'"),
    ],
    "dataset_sizes": [({"sets": ()}, "at least one"), ({"absent": "stopp"}, "did you mean 'stop'")],
    "early_dynamics": [
        ({"sentences": 41}, "an even number"),
        ({"seeds": 0}, "seeds is 0"),
        ({"pairs": -1}, "pairs is -1"),
        ({"widths": (64,)}, "at least two"),
        ({"widths": (256, 64)}, "increasing"),
        ({"absent": "stopp"}, "did you mean 'stop'"),
    ],
    "fixed_permutation": [
        ({"controls": 0}, "controls is 0"),
        ({"length": 1}, "length 1"),
        ({"steps": 4, "longer_steps": 3}, "longer_steps is 3; it must be 0 or more than the 4 steps"),
    ],
    "multi_head": [({"trials": 0}, "trials is 0"), ({"moved": -1}, "moved is -1")],
    "optimal_attention": [({"samples": -1}, "samples is -1"), ({"absent": "by_rules"}, "'by_rule'")],
    "permutation_copying": [
        ({"kind": "mixtur"}, "did you mean 'mixture'"),
        ({"seeds": 0}, "seeds is 0"),
        (COPIES | {"steps": 5}, "steps is 5.*take a multiple of 2"),
        (COPIES | {"steps": 7, "followed": 8}, "take a multiple of 2"),
    ],
    "probe_locality": [({name: 1}, "at least") for name in ("length", "words")],
    "resting_attention": [
        ({"seeds": 1}, "at least 2"),
        ({"steps": 0}, "steps is 0"),
        ({"data": "tweets"}, "tweets"),
        ({"beside": "tweets"}, "tweets"),
    ],
    text_sizes: [
        ({"data": "sts"}, "did you mean 'sst'"),
        ({"reading": "clean"}, "no reading"),
        ({"pieces": 0}, "at least 1"),
    ],
    word_counts: [
        *(({name: 0}, f"{name} is 0") for name in ("iterations", "listed", "judged", "max_words", "width")),
        ({"derived": 0}, "derived is 0"),
        ({"n_train": -1}, "n_train is -1"),
    ],
    multi_head: [({"heads": ()}, "heads is 0")],
    keyword: [({"width": 0}, "width is 0"), ({"length": 3}, "4 positions")],
    permutation_copying: [({"order": "permutd"}, "did you mean 'permuted'")],
}


@pytest.mark.parametrize(
    ("of", "given", "message"), [(of, *case) for of, cases in REFUSED.items() for case in cases]
)
def test_settings_that_cannot_be_are_refused(of, given, message):
    with pytest.raises(BadInput, match=message):
        override(registry.load(of).PROFILES["quick"], given) if isinstance(of, str) else of.Settings(**given)


def test_own_files_that_cannot_be_used_are_refused_before_any_training(tmp_path):
    table, source, target = (tmp_path / name for name in ("three.tsv", "my.en", "my.de"))
    table.write_text("text\tlabel\n" + "".join(f"a{i}\t{i % 3}\n" for i in range(40)))
    source.write_text("a\nb\n")
    target.write_text("a\n")
    with pytest.raises(BadInput, match="expected two different labels, found 3"):
        Config(data=table)
    with pytest.raises(BadInput, match="line 2"):
        Config(source=source, target=target)


def _of_agreement(spec):
    return spec.procedure == "classification" or spec.resolved.form == "joined"


def _copied(spec):
    return spec.resolved.kind == "sample" and spec.resolved.network != "proxy"


@pytest.mark.parametrize(
    ("name", "other", "profile", "of", "lacking"),
    [
        ("optimal_attention", "agreement", "quick", _of_agreement, 1),  # one seed more of the translators
        ("optimal_attention", "agreement", "paper", _of_agreement, 0),
        ("resting_attention", "agreement", "paper", bool, 8),  # of twelve networks on SMS four are there
        ("permutation_copying", "fixed_permutation", "quick", _copied, 0),
        ("permutation_copying", "fixed_permutation", "paper", _copied, 0),
    ],
)
def test_networks_that_two_figures_have_are_trained_once(name, other, profile, of, lacking, monkeypatch):
    monkeypatch.setattr(parallel, "available", lambda name: True)
    monkeypatch.setattr(labelled_sets, "available", lambda name: True)
    ours, theirs = (set(one.models(one.PROFILES[profile])) for one in map(registry.load, (name, other)))
    wanted = {spec for spec in ours if of(spec)}
    assert len(wanted - theirs) == lacking < len(wanted)

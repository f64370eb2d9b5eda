"""Several heads make learning likelier: one good first query map among bad ones is enough."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from attnlib.errors import BadInput, NotMeasured
from attnlib.experiments.aggregate import Point
from attnlib.experiments.asks import Ask, answers, ask, specs_of
from attnlib.experiments.copying_courses import (
    check_looks,
    course_rows,
    followed,
    judged,
    outcome,
    outcome_rows,
)
from attnlib.experiments.good_heads import failures_apart, good_head
from attnlib.experiments.head_scenarios import (
    KINDS,
    SCENARIOS,
    SCREENED,
    UNSEEN,
    sets_of_heads,
    standing,
    too_few,
)
from attnlib.experiments.heads_together import chances, together
from attnlib.experiments.measures.copying import measure_copying
from attnlib.experiments.paired import paired
from attnlib.experiments.turned_away import sides, turned_away
from attnlib.recipes.recipe import RecipeSpec
from companion.data.synthetic import words_of

if TYPE_CHECKING:
    from attnlib.training.store import Store

PLACE = "Snell et al. 2021, Figure 6; section 5.2"
QUESTION = "Do several heads help because one of them is likely to start well?"
EARLY = 20  # updates after which the way that attention goes may show
TRAINS_ON = True  # which networks combine good and bad heads follows from how these did alone


@dataclass(frozen=True)
class Config:
    """Settings.

    Attributes:
        candidates: heads that are tried alone, numbered from 0.
        trials: data seeds, from 0, on which a head has to be good or bad.
        seeds: networks of each scenario, on data seeds that no head was judged on.
        heads: heads of each.
        body: the draw of all other parameters, in which heads are tried and combined. Random heads stand in
            this body and the ones after it, each network in its own.
        elsewhere: further bodies in which some good and bad heads are tried alone; moved: how many of each.
        length: words of a permutation.
        width: of embeddings and states.
        steps: updates after which heads and networks are judged; every: updates between two looks.
        followed: updates of all networks, if that is more. Heads whose attention is driven away from the word
            to be said learn too, only later (:mod:`~attnlib.experiments.turned_away`): by the 200 updates of
            the authors' configuration, at full size, too much so to be called bad.
    """

    candidates: int = 12
    trials: int = 1
    seeds: int = 3
    heads: int = 4
    body: int = 0
    elsewhere: int = 1
    moved: int = 2
    length: int = 12
    width: int = 32
    steps: int = 200
    every: int = 10
    followed: int = 200

    def __post_init__(self) -> None:
        words_of("permutation", self.length)
        for name in ("candidates", "trials", "seeds", "heads", "width", "steps", "every", "followed"):
            if getattr(self, name) < 1:
                raise BadInput(f"{name} is {getattr(self, name)}; it must be at least 1")
        for name in ("body", "elsewhere", "moved"):
            if getattr(self, name) < 0:
                raise BadInput(f"{name} is {getattr(self, name)}; it must be at least 0")
        if self.candidates >= UNSEEN:
            raise BadInput(f"{self.candidates} candidates; expected fewer than {UNSEEN}")
        check_looks(self.steps, self.every, self.updates)

    @property
    def updates(self) -> int:
        """How long networks are trained: as long as they are judged, or for longer."""
        return max(self.steps, self.followed)


PROFILES = {
    "quick": Config(),
    "paper": Config(
        candidates=20, trials=3, seeds=20, heads=8, elsewhere=2, moved=3, length=40, width=256, steps=100
    ),
}


def asks(config: Config) -> tuple[Ask, ...]:
    """What it asks of the networks that are known before any is trained: first trials, and random heads.

    Which head is tried again, and the networks of good and bad heads, follow from outcomes; :func:`compute`
    asks them.
    """
    first = [_spec(config, (head,), 0) for head in range(config.candidates)]
    random = [spec for scenario in ("random", "alone") for spec in _scenario(scenario, config, [], [])]
    return ask([*first, *random], measure_copying)


def models(config: Config) -> tuple[RecipeSpec, ...]:
    """The runs that are known before any is made, each once."""
    return specs_of(asks(config))


def compute(config: Config, store: "Store") -> tuple[dict, dict[str, list[dict]]]:
    """Which single heads are good or bad, and what becomes of networks that combine them.

    Of the courses the first ``steps`` updates count. A head is *good* when, alone, it reaches 95 % accuracy
    on every data seed, *bad* when it ends under 60 % on every one without having reached it; a head that is
    neither on one, or not what it was before, is not tried on the next. Heads of a network are drawn among
    them without repetition. A scenario for which they are too few has no networks, and ``not_run`` says so
    beside its values.

    Returns:
        values ``<scenario>.{n, failed, lowest_accuracy, …}``, see
        :func:`~attnlib.experiments.copying_courses.outcome`; ``<scenario>.head_sets``, how many of its
        networks' sets of heads are different; ``<scenario>.followed.…``, what became of them in the end, see
        :func:`~attnlib.experiments.copying_courses.followed`; ``<scenario>.turned.…``, which way those use
        attention that failed, see :func:`~attnlib.experiments.turned_away.turned_away`; ``single`` the same
        of the heads' first trials, one a head;
        ``elsewhere_{good, bad}`` the same of such heads alone in other bodies; ``random_over_alone``, the
        accuracy after ``steps`` updates of random heads less that of the first of them alone, by network;
        ``all_bad_less_one_good``, the share of failures of the one less that of the other, in pairs that
        share data and all heads but one (:func:`~attnlib.experiments.good_heads.failures_apart`);
        ``good_head.…``, which head attends in networks of one good head
        (:func:`~attnlib.experiments.good_heads.good_head`); ``together.<scenario>.…`` and ``chances.…``, in
        the end, whether heads of a network go one way, and whether more heads are more chances
        (:mod:`~attnlib.experiments.heads_together`); ``sides.…``, whether it shows early which way the
        attention of a single head in a body of its own goes (:func:`~attnlib.experiments.turned_away.sides`);
        ``heads.{tried, runs, good, bad}``, counts of heads and of runs of single heads, and
        ``heads.bad_later``, how many would be bad on their first data by all ``followed`` updates;
        tables ``courses`` (a row a network and checkpoint, to the end of its training) and ``outcomes`` (a
        row a network, after ``steps`` updates), later trials being the scenario ``again``.

    Raises:
        NotMeasured: a store that does not train lacks a run of a single head.
    """
    trials, heads = _screened(config, store)
    whole = {"single": _named("single", trials[0])}
    for scenario in SCENARIOS:
        whole[scenario] = _named(scenario, _asked(_scenario(scenario, config, **heads), store))
    for kind in KINDS:
        whole[f"elsewhere_{kind}"] = _named(f"elsewhere_{kind}", _asked(_moved(config, heads[kind]), store))
    found = {name: judged(points, config.steps) for name, points in whole.items()}
    values: dict[str, dict] = {
        name: outcome(points, config.steps)
        | {"head_sets": _head_sets(points), "turned": turned_away(points, config.length)}
        | {"followed": followed(whole[name], config.steps, config.updates)}
        for name, points in found.items()
    }
    values["random_over_alone"] = paired(
        found["random"], found["alone"], lambda course: course["accuracy"][-1]
    )
    values["all_bad_less_one_good"] = failures_apart(found["all_bad"], found["one_good"])
    good = [point for trial in trials for point in trial if point[0]["heads"][0] in heads["good"]]
    values["good_head"] = good_head(found["one_good"], judged(good, config.steps), config.steps)
    values["together"] = {
        name: together(whole[name], config.length, _early(config)) for name in ("single", *SCENARIOS)
    }
    values["chances"] = chances(whole["alone"], whole["random"], config.length)
    values["sides"] = sides(whole["alone"], config.length, _early(config))
    for scenario in SCREENED:
        if reason := too_few(scenario, config.heads, tried=config.candidates, **heads):
            values[scenario]["not_run"] = reason
            if scenario != "copied":
                values["all_bad_less_one_good"]["not_run"] = reason
    later = [standing(course["accuracy"]) for _, course in trials[0]]
    values["heads"] = {
        "tried": len(trials[0]),
        "runs": sum(map(len, trials)),
        "bad_later": later.count("bad"),
    }
    values["heads"] |= {kind: len(heads[kind]) for kind in KINDS}
    again = [point for trial in trials[1:] for point in _named("again", trial)]
    everything = [*(point for points in whole.values() for point in points), *again]
    return values, {
        "courses": course_rows(everything),
        "outcomes": outcome_rows(judged(everything, config.steps)),
    }


def _early(config: Config) -> int:
    """The last look at or before :data:`EARLY`, or the first after the beginning."""
    return min(max(EARLY // config.every, 1) * config.every, config.updates)


def _screened(config: Config, store: "Store") -> tuple[list[list[Point]], dict[str, list[int]]]:
    """The trials' points, and the heads that are good, or bad, on every data seed."""
    heads: dict[int, str] = {}
    trials = []
    for seed in range(config.trials):
        tried = heads if seed else range(config.candidates)
        points = _asked([_spec(config, (head,), seed) for head in tried], store)
        if len(points) < len(tried):
            raise NotMeasured(
                f"{len(tried) - len(points)} of {len(tried)} single heads have no answer yet on data seed "
                f"{seed}; which heads are good or bad hangs on all of them"
            )
        seen = {
            columns["heads"][0]: standing(course["accuracy"])
            for columns, course in judged(points, config.steps)
        }
        heads = {head: kind for head, kind in seen.items() if kind and heads.get(head, kind) == kind}
        trials.append(points)
    return trials, {kind: [head for head, own in heads.items() if own == kind] for kind in KINDS}


def _scenario(scenario: str, config: Config, good: list[int], bad: list[int]) -> list[RecipeSpec]:
    """The networks of a scenario; none where good or bad heads are too few."""
    return [
        _spec(
            config,
            heads,
            config.trials + seed,
            config.body if scenario in SCREENED else config.body + seed,
        )
        for seed, heads in enumerate(sets_of_heads(scenario, config.seeds, config.heads, good, bad))
    ]


def _moved(config: Config, heads: list[int]) -> list[RecipeSpec]:
    """The first of some heads, alone in other bodies."""
    bodies = range(config.body + 1, config.body + 1 + config.elsewhere)
    return [_spec(config, (head,), 0, body) for body in bodies for head in heads[: config.moved]]


def _spec(config: Config, heads: tuple[int, ...], seed: int, body: int | None = None) -> RecipeSpec:
    settings = {name: getattr(config, name) for name in ("length", "width", "every")}
    body = config.body if body is None else body
    return RecipeSpec.of("multi_head", heads=heads, body=body, seed=seed, steps=config.updates, **settings)


def _asked(specs: Iterable[RecipeSpec], store: "Store") -> list[Point]:
    """(settings, course) of every network that the store knows or may train."""
    return answers(ask(specs, measure_copying), store)


def _named(scenario: str, points: list[Point]) -> list[Point]:
    """The same points under the columns that name a network in this chapter."""
    return [
        (
            {"scenario": scenario, "heads": " ".join(map(str, columns["heads"]))}
            | {name: columns[name] for name in ("body", "seed")},
            course,
        )
        for columns, course in points
    ]


def _head_sets(points: list[Point]) -> int:
    return len({frozenset(str(name["heads"]).split()) for name, _ in points})

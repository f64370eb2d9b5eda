"""Does what single words say agree with attention? Tables 2 to 8, every number with its interval."""

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cache, cached_property, partial
from itertools import product
from pathlib import Path
from typing import Annotated

from attnlib.errors import BadInput
from attnlib.probes.agreement import RowMean
from companion.data import labelled_sets, parallel
from companion.results.config import AboveZero, BaseConfig, NotNegative, OneOf, Positive, take_files
from companion.results.measurements import Measurement
from companion.runs.procedure import RunSpec
from companion.runs.store import Store
from notebooks.learn.agreement.contextualised import ComparisonRun, best_checkpoint
from notebooks.shared.agreement import (
    COLUMNS,
    HALVES,
    READINGS,
    WAYS,
    Answers,
    Runs,
    classifier_runs,
    gathered,
    translator_runs,
)
from notebooks.shared.intervals import jackknife_interval, over_seeds

MEASURES = ("agreement", "kendall")
# By the ending of a number's name: which samples choose the first run's checkpoint, and which report. The
# second run's is chosen on the half that selects, or on all that report.
CHOICES = {"": ("selecting", "reporting"), "_optimistic": ("all", "all")}


def whole(sums: dict[str, list], place: int) -> RowMean:
    """The mean over all samples at one checkpoint, from the sums of either half."""
    return RowMean(*sums["selecting"][place]) + RowMean(*sums["reporting"][place])


def sums_at_best(answer: dict, part: str, sides: str, measure: str, quality: str, group: str) -> dict:
    """Sums of a pair with the first run where it was best by this quality on this group of the part."""
    best = answer["best"][part]
    by_group = best.get(quality, best["accuracy"])  # a bag of words writes no sentences, and has no BLEU
    return answer["parts"][part][sides][str(by_group[group])][measure]


class Column:
    """One column on one part of the data, checkpoints chosen by one measure of quality."""

    def __init__(self, runs: Runs, answers: Answers, column: str, part: str, quality: str):
        self.answers, self.part, self.quality = answers, part, quality
        first, second, self.sides = COLUMNS[column]
        self.one_kind = first == second
        self.looked_up = self.sides.split("~")[1]
        self.normal = {run.seed: run for run in runs.normal}
        self._course = cache(self._read_course)
        self.pairs = [pair for pair in runs.pairs(column) if pair in answers]
        self.seeds = tuple(sorted({run.seed for pair in self.pairs for run in pair}))

    def intervals(self) -> dict[str, dict]:
        """Every number over seeds."""
        found = {}
        for measure, (choice, what) in product(MEASURES, product(CHOICES, ("xi", "starred"))):
            found[measure + choice] = self.interval(measure + choice)
            found[f"{measure}_{what}{choice}"] = _jackknifed(
                self.seeds, partial(self._contextualised, measure, choice, what)
            )
        return found | {name: self.interval(name) for name in ("above_chance", "rises", "falls")}

    def interval(self, name: str) -> dict:
        return over_pairs(self._by_seeds(name), one_kind=self.one_kind)

    def _by_seeds(self, name: str) -> dict[tuple[int, int], float]:
        return {(one.seed, other.seed): numbers[name] for (one, other), numbers in self._of_pairs.items()}

    @cached_property
    def _of_pairs(self) -> dict[tuple[RunSpec, RunSpec], dict[str, float]]:
        """By pair its agreement and Kendall's τ in percent, either choice, and what is made of agreement."""
        found = {}
        for pair in self.pairs:
            numbers = found[pair] = {}
            for measure in MEASURES:
                apart, both = (self._halves(pair, measure, group) for group in ("selecting", "all"))
                steps = self.answers[pair]["steps"]
                numbers[measure] = 100 * best_checkpoint(steps, *apart).value
                numbers[f"{measure}_optimistic"] = 100 * best_checkpoint(steps, *both).optimistic
                if measure == "agreement":
                    for name, look in (("rises", 0), ("falls", -1)):
                        numbers[name] = numbers[measure] - 100 * apart[1][look].value
            chance = self.answers.get(pair[1:], {}).get("chance", {}).get(self.part, {})
            numbers["above_chance"] = numbers["agreement"] - 100 * chance.get(self.looked_up, math.nan)
        return found

    def _halves(self, pair: tuple[RunSpec, RunSpec], measure: str, group: str) -> tuple[list[RowMean], ...]:
        sums = sums_at_best(self.answers[pair], self.part, self.sides, measure, self.quality, group)
        return tuple([RowMean(*mean) for mean in sums[half]] for half in HALVES)

    def _contextualised(self, measure: str, choice: str, what: str, seeds: Sequence[int]) -> float:
        """ξ in percent, or the share that is starred: mean over the first runs of these seeds."""
        found = []
        for seed in seeds:
            value = _of_first(self._by_seeds(measure + choice), seed, seeds)
            courses = [self._course(measure, choice, seed, other) for other in seeds if other != seed]
            courses = [course for course in courses if course]
            if value is not None and courses:
                xi = ComparisonRun.mean(courses).contextualise(value / 100)
                found.append(xi.value if what == "xi" else float(not xi.exceeded))
        return _mean(found)

    def _read_course(self, measure: str, choice: str, seed: int, other: int) -> ComparisonRun | None:
        """𝒜(α, α̂(τ)) and p̂(τ) of the network with another seed; None where it has not been asked."""
        one, another = self.normal[seed], self.normal[other]
        if (one, another) not in self.answers or (another,) not in self.answers:
            return None
        answer, course = self.answers[one, another], self.answers[another,]
        choosing, reporting = CHOICES[choice]
        sums = sums_at_best(answer, self.part, "attention~attention", measure, self.quality, choosing)
        means = (
            whole(sums, place) if reporting == "all" else RowMean(*sums[reporting][place])
            for place in range(len(answer["steps"]))
        )
        performance = course["parts"][self.part][self.quality][reporting]
        return ComparisonRun(tuple(answer["steps"]), tuple(mean.value for mean in means), tuple(performance))


def over_pairs(numbers: Mapping[tuple[int, int], float], *, one_kind: bool) -> dict:
    """The mean over ordered pairs of seeds, with the jackknife's interval over seeds (of three).

    Of two seeds there are two pairs, and where the runs of a pair are of two kinds these are of four runs,
    and Student's interval of the two numbers stands. Where they are of one kind, as for (α, β) and (α, α),
    both pairs are of the same two runs: what a run adds to one it adds to the other, so there is none.
    """
    seeds = sorted({seed for pair in numbers for seed in pair})
    if len(seeds) == 2 and not one_kind:
        return over_seeds([({}, number) for number in numbers.values()], float)

    def mean(some: Sequence[int]) -> float:
        of_seeds = (_of_first(numbers, seed, some) for seed in some)
        return _mean(value for value in of_seeds if value is not None)

    return _jackknifed(seeds, mean)


def _of_first(numbers: Mapping[tuple[int, int], float], seed: int, seeds: Sequence[int]) -> float | None:
    """The mean over second runs of these seeds; None where the first run has no pair with any."""
    values = [number for (one, other), number in numbers.items() if one == seed and other in seeds]
    return _mean(values) if values else None


def _jackknifed(seeds: Sequence[int], number: Callable[[Sequence[int]], float]) -> dict:
    if math.isnan(number(seeds)):
        return over_seeds([], float)
    return jackknife_interval(seeds, number).as_dict()


def _mean(values: Iterable[float]) -> float:
    listed = list(values)
    return sum(listed) / len(listed) if listed else math.nan


# From what was asked of a data set's runs to the numbers of its row in the agreement tables, in percent.


def row(runs: Runs, answers: Answers) -> dict:
    """The numbers of one data set, by part, measure of quality and column, as intervals over seeds.

    ``agreement`` and ``kendall`` in percent, ``…_xi`` their ξ, ``…_starred``, the share of seeds that have ξ*
    there, and the same with ``_optimistic``, the paper's choice of checkpoints; ``above_chance``, agreement
    less 𝒜̂ of the same second run; ``rises`` and ``falls``, agreement at the best checkpoint less that at the
    first, and at the last. Beside the columns ``chance``, 𝒜̂ of β at uniform attention; ``final``, for ξ*, how
    good networks with learned attention are in the end, and ``majority``, the commonest answer's accuracy.
    """
    alone = [answer for asked, answer in answers.items() if len(asked) == 1]
    found: dict = {}
    for part, quality in ((p, q) for answer in alone for p, of in answer["parts"].items() for q in of):
        if quality not in found.setdefault(part, {}):
            found[part][quality] = _numbers(runs, answers, part, quality)
    return found


def weakest(values: dict) -> dict:
    """By column, ``above_chance`` of the data set where its interval reaches lowest, and its name."""

    def lowest(interval: dict) -> float:
        return interval["value" if interval["low"] is None or math.isnan(interval["low"]) else "low"]

    found = {column: {"above_chance": over_seeds([], float), "data": ""} for column in COLUMNS}
    for column in COLUMNS:
        every = {name: of["validation"]["accuracy"][column]["above_chance"] for name, of in values.items()}
        rows = {name: interval for name, interval in every.items() if interval["n"]}
        if rows:
            name = min(rows, key=lambda name: lowest(rows[name]))
            found[column] = {"above_chance": rows[name] | {"weakest_of": sorted(rows)}, "data": name}
    return found


def saliency_read(answers: Answers) -> dict[str, dict[str, dict]]:
    """By reading of saliency what the tables print: of each pair of runs the largest of all checkpoints.

    Student's interval is over the pairs, which have no run in common.
    """
    found = [({}, answer) for answer in answers.values()]
    return {
        reading: {
            name: over_seeds(found, lambda answer, r=reading, m=name: max(answer[r][m])) for name in MEASURES
        }
        for reading in READINGS
    }


def courses(runs: Runs, answers: Answers) -> list[dict]:
    """A row a column, pair of runs, part and checkpoint of the second; the first is where it is best."""
    rows = []
    for column, (_, _, sides) in COLUMNS.items():
        for one, other in runs.pairs(column):
            if (one, other) not in answers or (other,) not in answers:
                continue
            found, quality = answers[one, other], answers[other,]
            for part in found["parts"]:
                sums = {name: sums_at_best(found, part, sides, name, "accuracy", "all") for name in MEASURES}
                for place, step in enumerate(found["steps"]):
                    row = {"column": column, "part": part, "seed": one.seed, "second_seed": other.seed}
                    row |= {"step": step, "accuracy": quality["parts"][part]["accuracy"]["all"][place]}
                    rows.append(row | {name: 100 * whole(sums[name], place).value for name in MEASURES})
    return rows


def _numbers(runs: Runs, answers: Answers, part: str, quality: str) -> dict:
    found: dict = {column: Column(runs, answers, column, part, quality).intervals() for column in COLUMNS}
    asked = [answers[run,] for run in runs.uniform if (run,) in answers]
    found["chance"] = over_seeds(
        [({}, answer["chance"][part]) for answer in asked], lambda chance: 100 * chance["probe"]
    )
    asked = [answers[run,]["parts"][part][quality] for run in runs.normal if (run,) in answers]
    for name, group in (("final", "reporting"), ("final_optimistic", "all")):
        found[name] = over_seeds([({}, course) for course in asked], lambda course, of=group: course[of][-1])
    if quality == "accuracy":  # the same samples for all runs, so any of them can tell
        found["majority"] = next(answer for of, answer in answers.items() if len(of) == 1)["majority"][part]
    return found


# What ties in the lexical probe add to the agreement tables: both ways of counting them, in percent.


def ties_read(runs: Runs, answers: Answers) -> dict:
    """The numbers of one set of sentence pairs, by column that looks up β and way of counting ties.

    ``largest`` is the agreement at the best of all checkpoints, ``falls``, how far it is above the last one,
    the best chosen on one half of the samples and both read on the other. At the last checkpoint at uniform
    attention ``tied``, target words whose largest β is tied, ``ends``, how many of these are end marks, and
    ``chance``, with ties counted; ``chance_broken``, a number.
    """
    found: dict = {}
    for column in _columns():
        numbers = {
            (first.seed, second.seed): {way: _tie_numbers(steps, sums[way]) for way in WAYS}
            for first, second, steps, sums in _answers(runs, answers, column)
        }
        one_kind = COLUMNS[column][0] == COLUMNS[column][1]
        found[column] = {
            way: {
                name: over_pairs({pair: one[way][name] for pair, one in numbers.items()}, one_kind=one_kind)
                for name in ("largest", "falls")
            }
            for way in WAYS
        }
    last = {second.seed: answer for (_, second), answer in answers.items() if second in runs.uniform}
    points = [({}, one) for one in last.values()]
    for name in ("tied", "chance"):
        found[name] = over_seeds(points, lambda one, n=name: one[n][-1])
    ended = [({}, one) for one in last.values() if one["tied"][-1]]
    found["ends"] = over_seeds(ended, lambda one: 100 * one["tied_ends"][-1] / one["tied"][-1])
    return found | {"chance_broken": next((one["chance_broken"] for one in last.values()), None)}


def ties_courses(runs: Runs, answers: Answers) -> list[dict]:
    """A row a column, pair of runs and checkpoint of the second: both agreements, and words that are tied."""
    return [
        {"column": column, "seed": first.seed, "second_seed": second.seed, "step": step}
        | {way: 100 * whole(sums[way], place).value for way in WAYS}
        | {"tied": answers[first, second]["tied"][place]}
        for column in _columns()
        for first, second, steps, sums in _answers(runs, answers, column)
        for place, step in enumerate(steps)
    ]


def _columns() -> list[str]:
    return [column for column, (_, _, sides) in COLUMNS.items() if sides.endswith("~probe")]


def _answers(runs: Runs, answers: Answers, column: str) -> Iterator[tuple]:
    """(first run, second run, steps, sums by way and half) of the column's pairs that have been asked."""
    side = COLUMNS[column][2].split("~")[0]
    for pair in runs.pairs(column):
        if pair in answers:
            yield *pair, answers[pair]["steps"], answers[pair][side]


def _tie_numbers(steps: list[int], sums: dict[str, list]) -> dict[str, float]:
    selecting, reporting = ([RowMean(*one) for one in sums[half]] for half in HALVES)
    chosen = best_checkpoint(steps, selecting, reporting)
    return {"largest": 100 * chosen.optimistic, "falls": 100 * (chosen.value - reporting[-1].value)}


PLACE = "Snell et al. 2021, sections 3.1 and 3.2; Tables 2 to 8; Figure 2; section A.7"
QUESTION = "Does the lexical probe of a network that never attends agree with the attention of one that does?"
CLASSIFICATION = ("known_polarity", "sst")
TRANSLATION = ("known_lexicon", "multi30k_en_de")
MAIN = "multi30k_en_de"  # the direction that the text speaks of
VALIDATION_PAIRS = 1_014  # of Multi30k: so many pairs are looked at, of the training part too (Table 7)
STEPS = 36_250  # 20 epochs of Multi30k's 29,000 pairs in batches of 16 (section A.8)
# 30 epochs of the pairs at hand (A.8), which are 8,630. Of its 7,283 validation pairs as many are looked at
# as Multi30k has; all of them at every checkpoint would be seven times the work.
IWSLT14 = {"steps": 16_180, "probed_validation": VALIDATION_PAIRS}
LONG_REVIEWS = ("amazon", "imdb", "yelp")
LONG = ("twenty_newsgroups", *LONG_REVIEWS)  # median texts of 70 to 200 words


class Config(BaseConfig):
    """Settings. A row is a data set; each is trained on ``seeds`` times with every kind of network.

    Attributes:
        classification: sets of labelled texts.
        translation: sets of sentence pairs.
        only_at_hand: 1 leaves out the sets whose files are not on this machine.
        data: path of your own table of labelled texts (.tsv or .csv). It replaces all the sets; a tenth is
            held out.
        source: path of your own text file, line by line what target has.
        target: path of your own second text file.
        seeds: networks of each kind on short texts.
        long_seeds: the same on long texts and on sentence pairs.
        main_seeds: the same on Multi30k from English to German.
        frozen: networks with all but the attention layer frozen as drawn, of each set of texts; 0 for none.
        n_train: texts to train on; 0 for all that the paper used. All of a reader's own table are used where
            this is left at the profile's.
        n_validation: texts to judge on; 0 for all, as above.
        train_pairs: sentence pairs to train on; 0 for all.
        validation_pairs: sentence pairs to judge on; 0 for all, and for a sample of IWSLT14's.
        width: of states.
        embedding_width: of the classifiers' embeddings.
        learning_rate: of Adam.
        steps: updates of the classifiers.
        translation_steps: updates of the translators; 0 for the paper's. These are 36,250 on Multi30k, and as
            many on other sets but IWSLT14, which has as many epochs as the paper's, of the pairs we have.
        pieces: size of the vocabulary of sentence pairs.
        training_part: 1 judges on a sample of the training pairs too.
    """

    classification: tuple[Annotated[str, OneOf(labelled_sets.names())], ...] = CLASSIFICATION
    translation: tuple[Annotated[str, OneOf(parallel.NAMES)], ...] = TRANSLATION
    only_at_hand: int = 1
    data: Path | None = None
    source: Path | None = None
    target: Path | None = None
    seeds: int = 3
    long_seeds: int = 2
    main_seeds: int = 2
    frozen: int = 2
    n_train: NotNegative = 2_000
    n_validation: NotNegative = 150
    train_pairs: NotNegative = 2_000
    validation_pairs: NotNegative = 40
    width: Positive = 64
    embedding_width: Positive = 64
    learning_rate: AboveZero = 3e-3
    steps: Positive = 200
    translation_steps: NotNegative = 400
    pieces: Positive = 1_000
    training_part: int = 0

    def check(self) -> None:
        take_files(self)
        if self.data is not None and self.source is not None:
            raise BadInput("data is a table of labelled texts, source and target are pairs: give one of them")
        for name in ("seeds", "long_seeds", "main_seeds", "frozen"):
            given, none = getattr(self, name), "0 or " if name == "frozen" else ""
            if given < 2 and not (none and given == 0):
                raise BadInput(
                    f"{name} is {given}; a network is compared with others of other seeds, so give "
                    f"{none}at least 2"
                )
        if self.data is not None:  # refused now, not in the first training
            labelled_sets.read_own(self.data, {})
        if self.source is not None:
            parallel.read_parallel_files(self.source, self.target)


PROFILES = {
    "quick": Config(),
    "paper": Config(
        classification=("sst", "sst_as_text", "sms_spam", "ag_news", "twenty_newsgroups", *LONG_REVIEWS),
        translation=("multi30k_en_de", "multi30k_de_en", "iwslt14_de_en"),
        only_at_hand=0,
        seeds=4,
        long_seeds=3,
        main_seeds=3,  # as many as the chapter on optimal attention has, which shares them
        frozen=4,
        n_train=0,
        n_validation=0,
        train_pairs=0,
        validation_pairs=0,
        width=256,
        embedding_width=300,
        learning_rate=1e-3,
        steps=4_000,
        translation_steps=0,
        pieces=8_000,
        training_part=1,
    ),
}


def rows(config: Config) -> dict[str, Runs]:
    """The runs of every row, by data set; a reader's own is ``own``."""
    if config.data is not None:
        # The numbers of texts of a profile are not for a reader's own table: all of it is used.
        sizes = {
            name: 0 if given in {getattr(profile, name) for profile in PROFILES.values()} else given
            for name in ("n_train", "n_validation")
            for given in [getattr(config, name)]
        }
        return {"own": _classifiers(replace(config, **sizes), str(config.data.resolve()))}
    if config.source is not None:
        files = {"source": str(config.source.resolve()), "target": str(config.target.resolve())}
        return {"own": _translators(replace(config, long_seeds=config.seeds), parallel.OWN, **files)}
    return {
        name: of(config, name)
        for names, sets, of in (
            (config.classification, labelled_sets, _classifiers),
            (config.translation, parallel, _translators),
        )
        for name in names
        if not config.only_at_hand or sets.available(name)
    }


def measurements(config: Config) -> tuple[Measurement, ...]:
    return tuple(
        asked
        for runs in rows(config).values()
        for asked in (*runs.measurements(), *runs.readings(), *runs.ties())
    )


def compute(config: Config, store: Store) -> tuple[dict, dict[str, list[dict]]]:
    """The rows of the tables, as far as their runs are there: values by data set, in percent.

    A set that is not at hand has ``cannot_be_run`` with the reason.
    """
    values, along, tied = {}, [], []
    for name, runs in rows(config).items():
        answers = gathered(runs.measurements(), store)
        if answers:
            values[name] = row(runs, answers)
            if runs.readings():
                values[name]["saliency"] = saliency_read(gathered(runs.readings(), store))
            if runs.ties():
                found = gathered(runs.ties(), store)
                values[name]["ties"] = ties_read(runs, found)
                tied += [{"data": name} | line for line in ties_courses(runs, found)]
            along += [{"data": name} | line for line in courses(runs, answers)]
    own = config.data is not None or config.source is not None
    left_out = [n for n in (*config.classification, *config.translation) if not own and n not in rows(config)]
    absent = {name: {"cannot_be_run": f"data: {name} is not at hand"} for name in left_out}
    return values | absent | {"weakest": weakest(values)}, {"courses": along, "ties": tied}


def _classifiers(config: Config, data: str) -> Runs:
    names = ("n_train", "n_validation", "learning_rate", "steps", "embedding_width")
    shared = {name: getattr(config, name) for name in names}
    seeds = config.long_seeds if data in LONG else config.seeds
    return classifier_runs(seeds, min(seeds, config.frozen), shared | {"data": data}, config.width)


def _translators(config: Config, dataset: str, **files: str) -> Runs:
    shared = {name: getattr(config, name) for name in ("learning_rate", "width", "pieces")} | files
    shared |= {"dataset": dataset, "steps": config.translation_steps or STEPS}
    shared |= {"n_train": config.train_pairs, "n_validation": config.validation_pairs}
    if dataset == "iwslt14_de_en":
        shared["steps"] = config.translation_steps or IWSLT14["steps"]
        if not config.validation_pairs:
            shared["probed_validation"] = IWSLT14["probed_validation"]
    if config.training_part:
        shared["probed_training"] = config.validation_pairs or VALIDATION_PAIRS
    return translator_runs(config.main_seeds if dataset == MAIN else config.long_seeds, shared)

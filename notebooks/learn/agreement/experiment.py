"""Does what single words say agree with attention? Tables 2 to 8, every number with its interval."""

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from itertools import product
from operator import itemgetter
from pathlib import Path
from typing import Annotated

import numpy as np
from jaxtyping import Float

from attnlib.errors import BadInput
from companion import paths
from companion.data import labelled_sets, parallel
from companion.results.config import AboveZero, BaseConfig, Field, NotNegative, OneOf, Positive, take_files
from companion.results.measurements import Measurement
from companion.runs.procedure import RunSpec
from companion.runs.store import Store
from notebooks.shared import agreement
from notebooks.shared.intervals import bounded, interval_of, jackknife_interval
from notebooks.shared.plan import settings_of

LOWEST = {"agreement": 0.0, "kendall": -100.0}  # of each measure
# By the ending of a number's name: which samples choose the checkpoint of either run, and which report.
CHOICES = {"": ("selecting", "reporting"), "_optimistic": ("all", "all")}
Pairs = dict[tuple[int, int], float]  # a number by the seed of the first run and that of the second


def contextualise(
    agreement: float, reached: Sequence[float], performance: Sequence[float]
) -> tuple[float, bool]:
    """ξ of an agreement 𝒜(u, v) (Snell et al. 2021, equation 11), and whether it is ξ*, with an asterisk.

        ξ(u, v) = p̂( inf { τ : 𝒜(α, α̂(τ)) > 𝒜(u, v) } )

    is how good another run is when its attention α̂ first agrees with α *more* than u agrees with v; where it
    never does, the paper prints ξ* = p̂(𝒯), the performance when training finishes. ``reached`` is
    𝒜(α, α̂(τ)) at each checkpoint, NaN where no row could be judged, ``performance`` p̂(τ).

    >>> contextualise(0.3, [0.1, 0.3, 0.6, 0.5], [0.5, 0.7, 0.8, 0.9])  # 0.3 itself is not more than 0.3
    (0.8, False)
    >>> contextualise(0.6, [0.1, 0.3, 0.6, 0.5], [0.5, 0.7, 0.8, 0.9])
    (0.9, True)
    """
    if np.isnan(agreement):
        raise BadInput("the agreement to contextualise is NaN; was there a row to judge?")
    above = np.asarray(reached) > agreement
    return performance[above.argmax() if above.any() else -1], not above.any()


def best_checkpoint(agreement: Sequence[float]) -> int:
    """Where the samples that choose agree most, the first of equals; NaN is where they have no row to judge.

    The paper takes the maximum on the samples that it reports (appendix A.7), which is optimistic; here half
    of the samples can choose and the other half report, with the paper's way beside it.

    >>> selecting, reporting = [0.25, 0.75, 0.5], [0.5, 0.5, 1.0]
    >>> reporting[best_checkpoint(selecting)]
    0.5
    """
    if np.isnan(agreement).all():
        raise BadInput("no checkpoint has a row to judge, so none can be chosen")
    return int(np.nanargmax(agreement))


def means_of(sums: dict[str, list]) -> dict[str, Float[np.ndarray, " checkpoints"]]:
    """Of either half and of ``all`` samples the mean over rows; NaN where none could be judged."""
    of_halves = np.array([sums[half] for half in agreement.HALVES])  # (half, checkpoint, sums)
    total, rows, _ = np.moveaxis(of_halves, -1, 0)
    with np.errstate(invalid="ignore"):
        means = np.vstack([total, total.sum(0)]) / np.vstack([rows, rows.sum(0)])
    return dict(zip((*agreement.HALVES, "all"), means, strict=True))


def alone(answers: agreement.Answers) -> dict[RunSpec, dict]:
    """What was asked of single runs."""
    return {runs[0]: answer for runs, answer in answers.items() if len(runs) == 1}


def parts_of(answers: agreement.Answers) -> list[tuple[str, str]]:
    """Every part of the data with every measure of quality that networks have there."""
    parts = [(p, q) for answer in alone(answers).values() for p, of in answer["parts"].items() for q in of]
    return list(dict.fromkeys(parts))


def compared(runs: agreement.Runs, answers: agreement.Answers) -> list[dict]:
    """A row a column, pair of runs, part of the data, measure of quality and choice of checkpoints.

    ``agreement`` and ``kendall`` are by checkpoint of the second run; the other numbers as of :func:`row`.
    """
    of_one = alone(answers)
    return [
        {"column": column, "part": part, "quality": quality, "choice": choice}
        | {"pair": (pair[0].seed, pair[1].seed)}
        | _compared(answers[pair], of_one.get(pair[1]), agreement.COLUMNS[column][2], part, quality, choice)
        for column in agreement.COLUMNS
        for pair in runs.pairs(column)
        if pair in answers
        for part, quality in parts_of(answers)
        for choice in CHOICES
    ]


def _compared(answer: dict, second: dict | None, sides: str, part: str, quality: str, choice: str) -> dict:
    choosing, reporting = CHOICES[choice]
    best = answer["best"][part]  # a bag of words writes no sentences, and has no BLEU
    sums = answer["parts"][part][sides][str(best.get(quality, best["accuracy"])[choosing])]
    found = {"step": answer["steps"], "performance": second and second["parts"][part][quality][reporting]}
    for measure in LOWEST:
        means = means_of(sums[measure])
        found[measure] = means[reporting]
        found[f"best_{measure}"] = 100 * found[measure][best_checkpoint(means[choosing])]
    chance = second["chance"][part].get(sides.split("~")[1], math.nan) if second else math.nan
    less = {"above_chance": chance, "rises": found["agreement"][0], "falls": found["agreement"][-1]}
    return found | {name: found["best_agreement"] - 100 * other for name, other in less.items()}


def over_pairs(numbers: Pairs, column: str) -> dict:
    """The mean over a column's ordered pairs of seeds, with the jackknife's interval over seeds (of three).

    Two pairs of runs of two kinds are of four runs, and Student's interval of the two numbers stands. Where
    they are of one kind both pairs are of the same two runs, so there is none.
    """
    first, second, _ = agreement.COLUMNS[column]
    if first != second and len(set().union(*numbers)) == 2:
        return interval_of(numbers.values())
    return _jackknifed(numbers)


def _jackknifed(numbers: Pairs, of: Callable[..., float] = lambda number, *_: number) -> dict:
    """The mean over first runs of ``of(mean over second runs, first seed, seeds)``, with its interval."""

    def mean(seeds: Sequence[int]) -> float:
        found = []
        for seed in seeds:
            if own := [number for (one, other), number in numbers.items() if one == seed and other in seeds]:
                found.append(of(sum(own) / len(own), seed, seeds))
        return sum(found) / len(found) if found else math.nan

    seeds = sorted(set().union(*numbers))
    return interval_of() if math.isnan(mean(seeds)) else jackknife_interval(seeds, mean)


# From what was asked of a data set's runs to the numbers of its row in the agreement tables, in percent.


def row(runs: agreement.Runs, answers: agreement.Answers) -> dict:
    """The numbers of one data set, by part, measure of quality and column, as intervals over seeds.

    ``agreement`` and ``kendall`` in percent, ``…_xi`` their ξ, ``…_starred``, the share of seeds that have ξ*
    there, and the same with ``_optimistic``, the paper's choice of checkpoints; ``above_chance``, agreement
    less 𝒜̂ of the same second run; ``rises`` and ``falls``, agreement at the best checkpoint less that at the
    first, and at the last. Beside the columns :func:`less_than_frozen`; ``chance``, 𝒜̂ of β at uniform
    attention; ``final``, for ξ*, how good networks with learned attention are in the end; and ``majority``,
    the commonest answer's accuracy.
    """
    table, of_one, found = compared(runs, answers), alone(answers), {}
    for part, quality in parts_of(answers):
        own = [line for line in table if (line["part"], line["quality"]) == (part, quality)]
        numbers = found.setdefault(part, {})[quality] = {c: _intervals(own, c) for c in agreement.COLUMNS}
        uniform, normal = ([of_one[r] for r in own if r in of_one] for own in (runs.uniform, runs.normal))
        numbers["chance"] = bounded(interval_of(100 * one["chance"][part]["probe"] for one in uniform))
        for choice, (_, group) in CHOICES.items():
            final = interval_of(a["parts"][part][quality][group][-1] for a in normal)
            numbers[f"final{choice}"] = bounded(final)
        numbers["less_than_frozen"] = less_than_frozen(own)
        if quality == "accuracy":  # the same samples for all runs, so any of them can tell
            numbers["majority"] = next(iter(of_one.values()))["majority"][part]
    return found


def _intervals(table: list[dict], column: str) -> dict[str, dict]:
    """Every number of a column, of one part and measure of quality."""
    found = {}
    for choice in CHOICES:
        own_choice = [line for line in table if line["choice"] == choice]
        own = {line["pair"]: line for line in own_choice if line["column"] == column}
        for measure in LOWEST:
            numbers = {pair: line[f"best_{measure}"] for pair, line in own.items()}
            found[f"{measure}{choice}"] = bounded(over_pairs(numbers, column), LOWEST[measure])
            xi, starred = _contextualised(numbers, _attention_courses(own_choice, measure))
            found[f"{measure}_xi{choice}"] = bounded(xi)
            found[f"{measure}_starred{choice}"] = bounded(starred, high=1.0)
        if not choice:
            for name in ("above_chance", "rises", "falls"):
                differences = over_pairs({pair: line[name] for pair, line in own.items()}, column)
                found[name] = bounded(differences, -100.0)
    return found


def less_than_frozen(table: list[dict]) -> dict:
    """A(α, β) at uniform attention less A(α, α) with all but attention frozen, the two columns of Table 10.

    Both numbers share the free networks, their first runs: the difference is taken for each of these, and the
    jackknife leaves out a seed with all its pairs.
    """
    honest = [line for line in table if not line["choice"]]

    def numbers(column: str) -> Pairs:
        return {line["pair"]: line["best_agreement"] for line in honest if line["column"] == column}

    uniform, frozen = numbers("alpha_beta_uf"), numbers("alpha_alpha_frozen")

    def mean(seeds: Sequence[int]) -> float:
        differences = [
            _mean_of_others(uniform, seed, seeds) - _mean_of_others(frozen, seed, seeds) for seed in seeds
        ]
        return float(np.mean(differences))

    seeds = sorted({first for first, _ in uniform} & {first for first, _ in frozen})
    if not seeds:
        return interval_of()
    return bounded(jackknife_interval(seeds, mean), -100.0)


def _mean_of_others(numbers: Pairs, seed: int, seeds: Sequence[int]) -> float:
    """The mean over the second runs among these seeds; NaN without one."""
    of_others = [number for (first, other), number in numbers.items() if first == seed and other in seeds]
    return sum(of_others) / len(of_others) if of_others else math.nan


def _attention_courses(table: list[dict], measure: str) -> dict[tuple[int, int], tuple]:
    """By pair how far two attentions agree at each checkpoint of the second, and how good that is."""
    own = (line for line in table if line["column"] == "alpha_alpha" and line["performance"])
    return {line["pair"]: (line[measure], line["performance"]) for line in own}


def _contextualised(numbers: Pairs, courses: dict[tuple[int, int], tuple]) -> list[dict]:
    """ξ in percent, and the share that is starred; courses with all other seeds are averaged to one."""

    def of(number: float, seed: int, seeds: Sequence[int], place: int) -> float:
        others = [courses[seed, other] for other in seeds if (seed, other) in courses]
        return contextualise(number / 100, *np.mean(others, axis=0))[place] if others else math.nan

    return [_jackknifed(numbers, partial(of, place=place)) for place in (0, 1)]


def weakest(values: dict) -> dict:
    """By column, ``above_chance`` of the data set where its interval reaches lowest, and its name.

    ``accuracy`` is that of networks with learned attention on the set where they do worst in the end.
    """
    of_sets = {name: of["validation"]["accuracy"] for name, of in values.items()}

    def lowest(interval: dict) -> float:
        return interval["value" if interval["low"] is None or math.isnan(interval["low"]) else "low"]

    def least(intervals: dict[str, dict], end: Callable[[dict], float]) -> tuple[str, dict]:
        known = {name: interval for name, interval in intervals.items() if interval["n"]}
        name = min(known, key=lambda name: end(known[name]), default="")
        return name, known[name] | {"weakest_of": sorted(known)} if known else interval_of()

    found = {}
    for column in agreement.COLUMNS:
        name, interval = least({n: own[column]["above_chance"] for n, own in of_sets.items()}, lowest)
        found[column] = {"above_chance": interval, "data": name}
    _, accuracy = least({name: own["final"] for name, own in of_sets.items()}, itemgetter("value"))
    return found | {"accuracy": accuracy}


def saliency_by_variant(answers: agreement.Answers, table: list[dict]) -> dict[str, dict[str, dict]]:
    """By variant of saliency what the tables print: of each pair of runs the largest of all checkpoints.

    Student's interval is over the pairs, which have no run in common. ``…_xi`` is ξ by measure of quality, by
    the courses of attention (``table``, of :func:`compared`) that the tables take.
    """
    found: dict[str, dict] = {}
    for variant, name in product(agreement.SALIENCY_VARIANTS, LOWEST):
        own = found.setdefault(variant, {})
        pairs = {(one.seed, other.seed): max(each[variant][name]) for (one, other), each in answers.items()}
        own[name] = bounded(interval_of(pairs.values()), LOWEST[name])
        for quality in ("accuracy", "bleu"):
            chosen = ("validation", quality, "_optimistic")
            lines = [row for row in table if (row["part"], row["quality"], row["choice"]) == chosen]
            xi, _ = _contextualised(pairs, _attention_courses(lines, name))
            own.setdefault(f"{name}_xi", {})[quality] = bounded(xi)
    return found


def courses(runs: agreement.Runs, answers: agreement.Answers) -> list[dict]:
    """A row a column, pair of runs, part and checkpoint of the second; the first is where it is best."""
    rows = []
    for line in compared(runs, answers):
        if (line["quality"], line["choice"]) == ("accuracy", "_optimistic") and line["performance"]:
            along = {"step": line["step"], "accuracy": line["performance"]}
            along |= {measure: (100 * line[measure]).tolist() for measure in LOWEST}
            rows += _lines({"column": line["column"], "part": line["part"]}, line["pair"], along)
    return rows


def _lines(of: dict, pair: tuple[int, int], along: dict[str, list]) -> Iterator[dict]:
    """A row a checkpoint."""
    for numbers in zip(*along.values(), strict=True):
        yield of | {"seed": pair[0], "second_seed": pair[1]} | dict(zip(along, numbers, strict=True))


# What ties in the lexical probe add to the agreement tables: both ways of counting them, in percent.

LOOKED_UP = [column for column, (_, _, sides) in agreement.COLUMNS.items() if sides.endswith("~probe")]


def _tied(runs: agreement.Runs, answers: agreement.Answers, column: str) -> dict[tuple[int, int], dict]:
    """By pair of a column that looks up β the course of its ties, and by way agreement and its fall."""
    found, side = {}, agreement.COLUMNS[column][2].split("~")[0]
    for pair in runs.pairs(column):
        if pair in answers:
            answer = answers[pair]
            own = found[pair[0].seed, pair[1].seed] = {"step": answer["steps"], "tied": answer["tied"]}
            for way, sums in answer[side].items():
                means = {group: 100 * mean for group, mean in means_of(sums).items()}
                at_best = means["reporting"][best_checkpoint(means["selecting"])]
                own[way] = {"course": means["all"].tolist(), "falls": at_best - means["reporting"][-1]}
    return found


def ties_read(runs: agreement.Runs, answers: agreement.Answers) -> dict:
    """The numbers of one set of sentence pairs, by column that looks up β and way of counting ties.

    ``largest`` is the agreement at the best of all checkpoints; ``falls``, chosen on one half of the samples
    and read on the other, how far it is above the last one. At the last checkpoint at uniform attention
    ``tied``, target words whose largest β is tied, and ``ends``, how many of these are end marks.
    """
    found: dict = {}
    for column, way in product(LOOKED_UP, agreement.WAYS):
        own = {pair: ties[way] for pair, ties in _tied(runs, answers, column).items()}
        found.setdefault(column, {})[way] = {
            "largest": bounded(over_pairs({pair: max(ties["course"]) for pair, ties in own.items()}, column)),
            "falls": over_pairs({pair: ties["falls"] for pair, ties in own.items()}, column),
        }
    by_seed = {second.seed: answer for (_, second), answer in answers.items() if second in runs.uniform}
    last = list(by_seed.values())
    found |= {name: bounded(interval_of(one[name][-1] for one in last)) for name in ("tied", "chance")}
    ends = (100 * one["tied_ends"][-1] / one["tied"][-1] for one in last if one["tied"][-1])
    found["ends"] = bounded(interval_of(ends))
    return found | {"chance_broken": last[0]["chance_broken"] if last else None}


def ties_courses(runs: agreement.Runs, answers: agreement.Answers) -> list[dict]:
    """A row a column, pair of runs and checkpoint of the second: both agreements, and words that are tied."""
    return [
        line
        for column in LOOKED_UP
        for pair, ties in _tied(runs, answers, column).items()
        for line in _lines({"column": column}, pair, ties | {w: ties[w]["course"] for w in agreement.WAYS})
    ]


CLASSIFICATION = ("known_polarity", "sst")
TRANSLATION = ("known_lexicon", "multi30k_en_de")
MAIN = "multi30k_en_de"  # the direction that the text speaks of
VALIDATION_PAIRS = 1_014  # of Multi30k: so many pairs are looked at, of the training part too (Table 7)
STEPS = 36_250  # 20 epochs of Multi30k's 29,000 pairs in batches of 16 (section A.8)
# 30 epochs of the 8,630 pairs that there are (A.8). Of its 7,283 validation pairs as many are looked at
# as Multi30k has; all of them at every checkpoint would be seven times the work.
FEWER_STEPS = {"iwslt14_de_en": 16_180}
Several = Annotated[int, Field(ge=2)]  # a network is compared with others of other seeds
LONG_REVIEWS = ("amazon", "imdb", "yelp")
LONG = ("twenty_newsgroups", *LONG_REVIEWS)  # median texts of 70 to 200 words


class Config(BaseConfig):
    """Settings. A row is a data set; each is trained on ``seeds`` times with every kind of network."""

    #: sets of labelled texts
    classification: tuple[Annotated[str, OneOf(labelled_sets.names())], ...] = CLASSIFICATION
    translation: tuple[Annotated[str, OneOf(parallel.NAMES)], ...] = TRANSLATION  #: sets of sentence pairs
    only_at_hand: int = 1  #: 1 leaves out the sets whose files are not on this machine
    #: path of your own table of labelled texts (.tsv or .csv). It replaces all the sets; a tenth is held out.
    data: Path | None = None
    source: Path | None = None  #: path of your own text file, line by line what target has
    target: Path | None = None  #: path of your own second text file
    seeds: Several = 3  #: networks of each kind on short texts
    long_seeds: Several = 2  #: the same on long texts and on sentence pairs
    main_seeds: Several = 2  #: the same on Multi30k from English to German
    #: networks with all but the attention layer frozen as drawn, of each set of texts; 0 for none
    frozen: NotNegative = 2
    #: texts to train on; 0 for all that the paper used. All of a reader's own table are used where this is
    #: left at the profile's.
    n_train: NotNegative = 2_000
    n_validation: NotNegative = 150  #: texts to judge on; 0 for all, as above
    train_pairs: NotNegative = 2_000  #: sentence pairs to train on; 0 for all
    #: sentence pairs to judge on; 0 for all, and for a sample of IWSLT14's
    validation_pairs: NotNegative = 40
    width: Positive = 64  #: of states
    embedding_width: Positive = 64  #: of the classifiers' embeddings
    learning_rate: AboveZero = 3e-3  #: of Adam
    steps: Positive = 200  #: updates of the classifiers
    #: updates of the translators; 0 for the paper's. These are 36,250 on Multi30k, and as many on other sets
    #: but IWSLT14, which has as many epochs as the paper's, of the pairs we have.
    translation_steps: NotNegative = 260
    pieces: Positive = 1_000  #: size of the vocabulary of sentence pairs
    training_part: int = 0  #: 1 judges on a sample of the training pairs too

    def check(self) -> None:
        take_files(self)
        if self.data is not None and self.source is not None:
            raise BadInput("data is a table of labelled texts, source and target are pairs: give one of them")
        if self.frozen == 1:
            raise BadInput("frozen is 1; networks of several seeds are compared, so give 0 or at least 2")
        if self.data is not None:  # refused now, not in the first training
            labelled_sets.read_own(self.data, {})
        if self.source is not None:
            parallel.read_parallel_files(self.source, self.target)


PROFILES = {
    # Saliency takes a pass backward for each word, most of the time of a small translator.
    "quick": Config(steps=140, validation_pairs=8, translation_steps=80),
    "paper": Config(
        classification=("sst", "sst_as_text", "sms_spam", "ag_news", "twenty_newsgroups", *LONG_REVIEWS),
        translation=("multi30k_en_de", "multi30k_de_en", "iwslt14_de_en"),
        only_at_hand=0, seeds=4, long_seeds=3,
        main_seeds=3,  # as many as the chapter on optimal attention has, which shares them
        frozen=4, n_train=0, n_validation=0, train_pairs=0, validation_pairs=0, width=256,
        embedding_width=300, learning_rate=1e-3, steps=4_000, translation_steps=0, pieces=8_000,
        training_part=1,
    ),
    "tiny": Config(
        classification=("known_polarity",), translation=("known_lexicon",), seeds=2, frozen=2, n_train=60,
        n_validation=8, train_pairs=60, validation_pairs=8, width=8, embedding_width=8, steps=10,
        translation_steps=50, pieces=60, training_part=1,
    ),
}  # fmt: skip


def rows(config: Config) -> dict[str, agreement.Runs]:
    """The runs of every row, by data set; a reader's own is ``own``."""
    if config.data is not None:
        # The numbers of texts of a profile are not for a reader's own table: all of it is used.
        profiles = [PROFILES[name] for name in paths.PROFILES]
        usual = {name: {getattr(p, name) for p in profiles} for name in ("n_train", "n_validation")}
        all_of_it = {name: 0 for name, sizes in usual.items() if getattr(config, name) in sizes}
        return {"own": _classifiers(replace(config, **all_of_it), str(config.data.resolve()))}
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
        measurement
        for runs in rows(config).values()
        for measurement in (*runs.measurements(), *runs.saliency(), *runs.ties())
    )


def compute(config: Config, store: Store) -> tuple[dict, dict[str, list[dict]]]:
    """The rows of the tables, as far as their runs are there: values by data set, in percent.

    A set that is not available here has ``cannot_be_run`` with the reason.
    """
    values, along, tied, there = {}, [], [], rows(config)
    for name, runs in there.items():
        if answers := agreement.gathered(runs.measurements(), store):
            values[name] = row(runs, answers)
            along += [{"data": name} | line for line in courses(runs, answers)]
            if runs.ties():  # of translators alone
                found = agreement.gathered(runs.ties(), store)
                gradients = agreement.gathered(runs.saliency(), store)
                values[name]["saliency"] = saliency_by_variant(gradients, compared(runs, answers))
                values[name]["saliency"] |= {"majority": values[name]["validation"]["accuracy"]["majority"]}
                values[name]["ties"] = ties_read(runs, found)
                tied += [{"data": name} | line for line in ties_courses(runs, found)]
    own = config.data is not None or config.source is not None
    named = () if own else (*config.classification, *config.translation)
    absent = {n: {"cannot_be_run": f"data: {n} is not available here"} for n in named if n not in there}
    return values | absent | {"weakest": weakest(values)}, {"courses": along, "ties": tied}


def _classifiers(config: Config, data: str) -> agreement.Runs:
    shared = settings_of(config, "n_train", "n_validation", "learning_rate", "steps", "embedding_width")
    seeds = config.long_seeds if data in LONG else config.seeds
    return agreement.classifier_runs(seeds, min(seeds, config.frozen), shared | {"data": data}, config.width)


def _translators(config: Config, dataset: str, **files: str) -> agreement.Runs:
    shared = settings_of(config, "learning_rate", "width", "pieces") | files
    shared |= {"dataset": dataset, "steps": config.translation_steps or FEWER_STEPS.get(dataset, STEPS)}
    shared |= {"n_train": config.train_pairs, "n_validation": config.validation_pairs}
    if dataset in FEWER_STEPS and not config.validation_pairs:
        shared["probed_validation"] = VALIDATION_PAIRS
    if config.training_part:
        shared["probed_training"] = config.validation_pairs or VALIDATION_PAIRS
    return agreement.translator_runs(config.main_seeds if dataset == MAIN else config.long_seeds, shared)

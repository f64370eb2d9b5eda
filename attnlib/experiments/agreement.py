"""Does what single words say agree with attention? Tables 2 to 8, every number with its interval."""

from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from attnlib.errors import BadInput, UnknownName
from attnlib.experiments.agreement_runs import Runs, classifier_runs, translator_runs
from attnlib.experiments.agreement_summary import courses, row, saliency_read, weakest
from attnlib.experiments.agreement_ties import ties_courses, ties_read
from attnlib.experiments.asks import Ask, specs_of
from attnlib.experiments.checks import check_counts
from attnlib.experiments.pair_answers import gathered
from attnlib.recipes.recipe import RecipeSpec
from companion.data import labelled_sets, parallel

if TYPE_CHECKING:
    from attnlib.training.store import Store

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
LONG = ("imdb", "yelp", "twenty_newsgroups", "amazon")  # median texts of 70 to 200 words


@dataclass(frozen=True)
class Config:
    """Settings. A row is a data set; each is trained on ``seeds`` times with every kind of network.

    Attributes:
        classification: sets of labelled texts, see :func:`companion.data.labelled_sets.names`.
        translation: sets of sentence pairs, see :data:`companion.data.parallel.NAMES`.
        only_at_hand: 1 leaves out the sets whose files are not on this machine.
        data: a reader's own table of labelled texts, in place of all the sets; a tenth is held out.
        source, target: a reader's own two line-parallel files, likewise.
        seeds: networks of each kind on short texts; long_seeds: the same on long texts and on sentence pairs;
            main_seeds: the same on Multi30k from English to German.
        frozen: networks with all but the attention layer frozen as drawn, of each set of texts (Table 10);
            0 for none.
        n_train, n_validation: texts to use; 0 for all that the paper used. Of a reader's own table, all are
            used where these are left at the profile's.
        train_pairs, validation_pairs: sentence pairs to use; 0 for all, and for a sample of IWSLT14's
            validation pairs.
        width: of states; embedding_width: of the classifiers' embeddings.
        learning_rate: of Adam.
        steps: updates of the classifiers; translation_steps: of the others; 0 for the paper's on Multi30k,
            36,250, whatever the set and however many its pairs, but on IWSLT14 16,180: as many epochs as the
            paper's, of the pairs at hand.
        pieces: size of the vocabulary of sentence pairs.
        training_part: 1 looks at a sample of the training pairs too (Tables 7 and 8).
    """

    classification: tuple[str, ...] = CLASSIFICATION
    translation: tuple[str, ...] = TRANSLATION
    only_at_hand: int = 1
    data: Path | None = None
    source: Path | None = None
    target: Path | None = None
    seeds: int = 3
    long_seeds: int = 2
    main_seeds: int = 2
    frozen: int = 2
    n_train: int = 2_000
    n_validation: int = 150
    train_pairs: int = 2_000
    validation_pairs: int = 40
    width: int = 64
    embedding_width: int = 64
    learning_rate: float = 3e-3
    steps: int = 200
    translation_steps: int = 400
    pieces: int = 1_000
    training_part: int = 0

    def __post_init__(self) -> None:
        check_counts(self, "embedding_width", "pieces")
        if (self.source is None) != (self.target is None):
            raise BadInput("source and target go together: two text files, line by line translations")
        if self.data is not None and self.source is not None:
            raise BadInput("data is a table of labelled texts, source and target are pairs: give one of them")
        if self.translation_steps < 0:
            raise BadInput(f"translation_steps is {self.translation_steps}; it must be at least 0")
        for name in ("seeds", "long_seeds", "main_seeds"):
            if getattr(self, name) < 2:
                raise BadInput(
                    f"{name} is {getattr(self, name)}; a network is compared with others of other seeds, "
                    "so give at least 2"
                )
        if self.frozen < 0 or self.frozen == 1:
            raise BadInput(
                f"frozen is {self.frozen}; networks are compared with others of other seeds, so give 0 or "
                "at least 2"
            )
        if self.data is not None:  # refused now, not in the first training
            labelled_sets.read_own(self.data, {})
        if self.source is not None:
            parallel.read_parallel_files(self.source, self.target)
        for field, known in (("classification", labelled_sets.names()), ("translation", parallel.NAMES)):
            for name in getattr(self, field):
                if name not in known:
                    raise UnknownName(field, name, known)


PROFILES = {
    "quick": Config(),
    "paper": Config(
        classification=(
            "sst",
            "sst_as_text",
            "sms_spam",
            "ag_news",
            "twenty_newsgroups",
            "amazon",
            "imdb",
            "yelp",
        ),
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
    """The runs of every row, by the name of the data set; a reader's own is ``own``."""
    if config.data is not None:
        sizes = {name: _chosen(config, name) for name in ("n_train", "n_validation")}
        return {"own": _classifiers(replace(config, **sizes), str(config.data.resolve()))}
    if config.source is not None:
        files = {"source": str(config.source.resolve()), "target": str(config.target.resolve())}
        return {"own": _translators(replace(config, long_seeds=config.seeds), parallel.OWN, **files)}
    found = {
        name: _classifiers(config, name)
        for name in config.classification
        if not config.only_at_hand or labelled_sets.at_hand(name)
    }
    return found | {
        name: _translators(config, name)
        for name in config.translation
        if not config.only_at_hand or parallel.at_hand(name)
    }


def asks(config: Config) -> tuple[Ask, ...]:
    """What it asks of each run, and of each two that are compared."""
    return tuple(
        asked for runs in rows(config).values() for asked in (*runs.asks(), *runs.readings(), *runs.ties())
    )


def models(config: Config) -> tuple[RecipeSpec, ...]:
    """The runs behind all rows, each once."""
    return specs_of(asks(config))


def compute(config: Config, store: "Store") -> tuple[dict, dict[str, list[dict]]]:
    """The rows of the tables, as far as their runs are there.

    Returns:
        values ``<data set>.<part>.<quality>.<column>.{agreement, kendall}…``, in percent, see
        :func:`~attnlib.experiments.agreement_summary.row`; ``weakest.<column>``, the smallest
        ``above_chance`` of all data sets (by the lower end of its interval); ``<data set>.saliency.…`` of
        sentence pairs, see :func:`~attnlib.experiments.agreement_summary.saliency_read`, and
        ``<data set>.ties.…``, see :func:`~attnlib.experiments.agreement_ties.ties_read`. Tables ``courses``
        and ``ties``, a row a pair of runs and checkpoint, see
        :func:`~attnlib.experiments.agreement_summary.courses` and
        :func:`~attnlib.experiments.agreement_ties.ties_courses`. A set that is not at hand has
        ``cannot_be_run`` with the reason.
    """
    values, along, tied = {}, [], []
    for name, runs in rows(config).items():
        answers = gathered(runs.asks(), store)
        if answers:
            values[name] = row(runs, answers)
            if runs.readings():
                values[name]["saliency"] = saliency_read(gathered(runs.readings(), store))
            if runs.ties():
                found = gathered(runs.ties(), store)
                values[name]["ties"] = ties_read(runs, found)
                tied += [{"data": name} | line for line in ties_courses(runs, found)]
            along += [{"data": name} | line for line in courses(runs, answers)]
    absent = {name: {"cannot_be_run": f"data: {name} is not at hand"} for name in _absent(config)}
    return values | absent | {"weakest": weakest(values)}, {"courses": along, "ties": tied}


def _absent(config: Config) -> list[str]:
    """The sets that are left out because their files are not on this machine."""
    if config.data is not None or config.source is not None:
        return []
    return [name for name in (*config.classification, *config.translation) if name not in rows(config)]


def _chosen(config: Config, name: str) -> int:
    """A number of texts that the reader has chosen; 0 where it is one of the profiles'."""
    given = getattr(config, name)
    return 0 if given in {getattr(profile, name) for profile in PROFILES.values()} else given


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

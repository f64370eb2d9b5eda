"""The chapter on agreement in words and tables made from its numbers."""

import re
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING

from companion.book.intervals import listed, side
from companion.book.project import Project, find_root
from companion.book.tables import interval_text
from companion.claims import ClaimVerdict, Tolerance, load_papers
from companion.claims.tables import published_table
from companion.claims.verify import verify
from companion.results.result import Result
from notebooks.learn.agreement.drawing import sets_with_ties
from notebooks.shared.agreement_drawing import data_name, data_of

if TYPE_CHECKING:
    import pandas as pd


HEADS = {
    "alpha_beta_uf": "𝒜(α, βᵘᶠ)",
    "beta_uf_beta_px": "𝒜(βᵘᶠ, βᵖˣ)",
    "delta_beta_uf": "𝒜(Δ, βᵘᶠ)",
    "alpha_beta": "𝒜(α, β)",
}
LETTERS = {"agreement": "𝒜", "kendall": "τ"}
CHOICES = {"": "apart", "_optimistic": "as in the paper"}  # who chooses the checkpoint, see the page
PARTS = {"validation": ("validation",), "training": ("train", "training")}  # of texts and of sentence pairs
NEWS_COMMENTARY = "News Commentary It–Pt, En–Nl and En–Pt (*cannot be run: data*)"
# What the paper's tables beyond the first are of: measure, part, quality.
VARIANTS = {
    "Kendall's τ, performance as accuracy (Table 3)": ("kendall", "validation", "accuracy"),
    "Kendall's τ, performance as BLEU (Table 4)": ("kendall", "validation", "bleu"),
    "Agreement, performance as BLEU (Table 6)": ("agreement", "validation", "bleu"),
    "Agreement on training samples (Table 7)": ("agreement", "training", "accuracy"),
    "Agreement on training samples, performance as BLEU (Table 8)": ("agreement", "training", "bleu"),
}


def agreement_table(
    result: Result,
    *,
    measure: str = "agreement",
    part: str = "validation",
    quality: str = "accuracy",
    choice: str = "",
) -> "pd.DataFrame":
    """A row a data set that has such numbers: those of Table 5 with the half widths of their intervals.

    Args:
        measure: ``agreement`` or ``kendall``, in percent.
        part: ``validation`` or ``training``.
        quality: of the networks, ``accuracy`` or ``bleu``; it chooses checkpoints, and ξ is in its terms.
        choice: of checkpoints, one of :data:`CHOICES`.
    """

    def row(found: dict) -> dict[str, str]:
        agreements = {HEADS[column]: found[column][f"{measure}{choice}"] for column in HEADS}
        cells = {"n": runs_behind(agreements.values())}
        for head, interval in agreements.items():
            cells[head.replace("𝒜", LETTERS[measure])] = interval_percent(interval)
        if measure == "agreement":
            cells["chance"] = interval_percent(found["chance"])
        for column, head in HEADS.items():
            star = "*" if (found[column][f"{measure}_starred{choice}"]["value"] or 0) > 0.5 else ""
            cells[head.replace("𝒜", "ξ")] = interval_percent(found[column][f"{measure}_xi{choice}"]) + star
        return cells | {"ξ*": interval_percent(found[f"final{choice}"])}

    return _table(result, part, quality, row)


def both_choices(result: Result, **of: str) -> "pd.DataFrame":
    """:func:`agreement_table` with two rows a data set, one for either choice of checkpoints."""
    tables = {words: agreement_table(result, choice=choice, **of) for choice, words in CHOICES.items()}
    return _interleaved(tables)


def variants(result: Result) -> str:
    """:func:`both_choices` for Tables 3, 4 and 6 to 8, folded, as Markdown; what has no row is left out."""
    folded = []
    for title, (measure, part, quality) in VARIANTS.items():
        table = both_choices(result, measure=measure, part=part, quality=quality)
        if len(table):
            folded.append(f"<details>\n<summary>{title}</summary>\n\n{_markdown(table)}\n\n</details>\n")
    return "\n".join(folded) or "Nothing of this has been run yet."


def choice_table(result: Result) -> "pd.DataFrame":
    """What the paper's choice of checkpoint adds to the agreement, and how far it rises and falls."""

    def row(found: dict) -> dict[str, str]:
        own = found["alpha_beta_uf"]
        return {
            "n": runs_behind([own["agreement"]]),
            "chosen on one half, read on the other": interval_percent(own["agreement"]),
            "largest of all checkpoints": interval_percent(own["agreement_optimistic"]),
            "above the first checkpoint": interval_percent(own["rises"]),
            "above the last checkpoint": interval_percent(own["falls"]),
        }

    return _table(result, "validation", "accuracy", row)


def frozen_table(result: Result) -> "pd.DataFrame":
    """Attention trained alone and attention of another seed, beside the probe at uniform attention."""

    def row(found: dict, choice: str) -> dict[str, str]:
        if not found["alpha_alpha_frozen"]["agreement"]["n"]:
            return {}
        alone, uniform, other = (
            found[column][f"agreement{choice}"]
            for column in ("alpha_alpha_frozen", "alpha_beta_uf", "alpha_alpha")
        )
        return {
            "n": runs_behind([alone, uniform, other]),
            "𝒜(α, αᶠʳ)": interval_percent(alone),
            "𝒜(α, βᵘᶠ)": interval_percent(uniform),
            "𝒜(α, α of another seed)": interval_percent(other),
            "τ(α, α of another seed)": interval_percent(found["alpha_alpha"][f"kendall{choice}"]),
        }

    return _interleaved(
        {
            words: _table(result, "validation", "accuracy", lambda found, choice=choice: row(found, choice))
            for choice, words in CHOICES.items()
        }
    )


def _table(result: Result, part: str, quality: str, row: Callable[[dict], dict[str, str]]) -> "pd.DataFrame":
    """A row a data set that has numbers of the part and quality; none where ``row`` gives nothing."""
    import pandas as pd

    rows = {}
    for name in data_of(result):
        of_part = next((result.values[name][own] for own in PARTS[part] if own in result.values[name]), {})
        if quality in of_part and (cells := row(of_part[quality])):
            rows[data_name(name)] = cells
    return pd.DataFrame.from_dict(rows, orient="index")


def _interleaved(tables: "dict[str, pd.DataFrame]") -> "pd.DataFrame":
    """Tables of equal rows as one: each row once of every table, named by it."""
    import pandas as pd

    rows = {
        (name, words): dict(zip(table.columns, table.loc[name], strict=True))
        for name in next(iter(tables.values())).index
        for words, table in tables.items()
    }
    return pd.DataFrame.from_dict(rows, orient="index") if rows else pd.DataFrame()


def _markdown(table: "pd.DataFrame") -> str:
    """A table whose rows are named by data set and choice."""
    lines = [f"| | checkpoints | {' | '.join(table.columns)} |", "|---" * (2 + len(table.columns)) + "|"]
    before = None
    for (name, words), cells in zip(table.index, table.to_numpy(), strict=True):
        lines.append(f"| {'' if name == before else name} | {words} | {' | '.join(cells)} |")
        before = name
    return "\n".join(lines).replace("*", "\\*")


def runs_behind(intervals: Iterable[dict]) -> str:
    """How many networks of a kind are behind a row's numbers, ``3``, or ``2–4`` where that differs."""
    counts = sorted({interval["n"] for interval in intervals if interval["n"]})
    return "–".join(str(count) for count in dict.fromkeys((counts[0], counts[-1]))) if counts else "–"


def networks_caption(result: Result, names: Iterable[str] | None = None) -> str:
    """How many networks a set has, for captions: ``n, networks of each kind: 4 on SST; 2–4 on SMS``."""
    counts = []
    for name in data_of(result) if names is None else names:
        found = result.values[name]["validation"]["accuracy"]
        counts.append(f"{runs_behind(found[column]['agreement'] for column in HEADS)} on {data_name(name)}")
    return f"n, networks of each kind: {'; '.join(counts)}" if counts else "no networks yet"


def weakest_sentence(result: Result) -> str:
    """Where each column stands least above chance."""
    parts = []
    for column, head in HEADS.items():
        found = result.values["weakest"][column]
        if found["above_chance"]["n"]:
            name, above = data_name(found["data"]), interval_percent(found["above_chance"])
            parts.append(f"{head} on {name}, {above}")
    if not parts:
        return ""
    return f"Least above chance, by the lower ends of the intervals of all sets above: {'; '.join(parts)}."


def absent_sentence(result: Result) -> str:
    """The sets of the settings that have no numbers, of texts and of pairs, and what is not at hand."""
    config, shown = result.config, data_of(result)
    if config.get("data") or config.get("source"):  # in place of all the sets
        return ""
    parts = []
    for what, field in (("of labelled texts", "classification"), ("of sentence pairs", "translation")):
        names = [data_name(name) for name in config.get(field, ()) if name not in shown]
        names += [NEWS_COMMENTARY] if field == "translation" and len(config.get(field, ())) > 1 else []
        if names:
            parts.append(f"{what} {listed(names)}")
    return f"Without numbers here: {'; '.join(parts)}." if parts else ""


def interval_percent(interval: dict) -> str:
    """``53 ± 2``; a dash where there is no number."""
    return interval_text(interval, digits=0)


# What became of each point that would change our mind about agreement.

Outcome = tuple[str, str]  # a word of OUTCOMES, and the numbers it rests on
OUTCOMES = ("happened", "not ruled out", "not happened")


def outcome_sentences(result: Result) -> str:
    """What became of each point of what would change our mind, where one half chose the checkpoints."""
    points = {
        "Agreement of α and βᵘᶠ at chance": _at_chance,
        "Frozen networks that attend as usual": _as_usual,
        "Intervals as wide as the differences": _wide,
    }
    lines = []
    for title, judge in points.items():
        told: dict[str, list[str]] = {outcome: [] for outcome in OUTCOMES}
        for name in data_of(result):
            if judged := judge(result.values[name]["validation"]["accuracy"]):
                told[judged[0]].append(f"{data_name(name)} ({judged[1]})")
        parts = [f"  * *{outcome}*: {'; '.join(sets)}" for outcome, sets in told.items() if sets]
        lines += [f"* **{title}**", *parts] if parts else []
    return "\n".join(lines) or "No set has been run yet."


def _at_chance(found: dict) -> Outcome | None:
    """Not ruled out where the interval of the difference from chance holds 0."""
    above = found["alpha_beta_uf"]["above_chance"]
    if above["value"] is None:
        return None
    numbers = f"{interval_percent(above)} above"
    if above["low"] is None or above["low"] <= 0 <= above["high"]:
        return "not ruled out", numbers
    return "not happened" if above["low"] > 0 else "happened", numbers


def _as_usual(found: dict) -> Outcome | None:
    """Not ruled out where the intervals of a frozen with a free network and of two free ones overlap."""
    frozen, free = (found[column]["agreement"] for column in ("alpha_alpha_frozen", "alpha_alpha"))
    if frozen["value"] is None or free["value"] is None:
        return None
    numbers = f"{interval_percent(frozen)} % with a free one, two free ones {interval_percent(free)} %"
    if frozen["high"] is None or free["low"] is None:
        return "not ruled out", numbers
    if frozen["high"] < free["low"]:
        return "not happened", numbers
    return "happened" if frozen["low"] > free["high"] else "not ruled out", numbers


def _wide(found: dict) -> Outcome | None:
    """By the widest interval of the first table's agreements, and how far these lie apart."""
    columns = [found[column]["agreement"] for column in HEADS]
    values = [one["value"] for one in columns if one["value"] is not None]
    widest = max((one["high"] - one["low"] for one in columns if one["low"] is not None), default=0.0)
    if not widest or min(values) == max(values):
        return None
    low, high = min(values), max(values)
    numbers = f"between {low:.0f} and {high:.0f}, the widest interval {widest:.0f} from end to end"
    return "happened" if widest >= high - low else "not happened", numbers


# Which of two sets of ours a printed name means: the one whose numbers come nearer to what is printed.

# A printed name, and our two sets with what tells them apart.
READINGS = {
    "SST": {"sst": "the filter of labels that gives Table 9's counts", "sst_as_text": "the text's filter"},
    "Multi30k": {"multi30k_en_de": "English to German", "multi30k_de_en": "German to English"},
}
ROUNDED = ("2", "10")  # tables that print numbers of Table 5 again, rounded
# The proxy writes no sentences, so that in the tables by BLEU, too, its checkpoint is the most accurate one:
# what they print beside it of two probes is printed again. ξ is of a network that has its BLEU.
PROXY_BY_BLEU = re.compile(r"\.bleu\.beta_uf_beta_px\.(?!.*_xi)")


def readings_sentences(rows: Iterable[ClaimVerdict]) -> str:
    """How far ours are from the printed numbers under either reading; a name without both is left out.

    Each number of ours counts once, where both readings have it, with what is printed to most digits; one
    that stands under two keys, too.

    Args:
        rows: verdicts of the printed numbers, see :func:`companion.claims.verify.verify`.
    """
    distances: dict[str, dict[str, float]] = {}
    for row in sorted(rows, key=lambda row: row.claim.published.reference.table in ROUNDED):
        key = row.claim.keys[0]
        ours = row.judgement.evidence.get(key)
        if ours is not None and ours.defined and not PROXY_BY_BLEU.search(key):
            data, number = key.split(".", 1)
            distances.setdefault(data, {}).setdefault(number, abs(ours.value - row.claim.published.value))
    return "\n".join(
        f"* {sentence}"
        for printed, sets in READINGS.items()
        if (sentence := _sentence(printed, sets, *(distances.get(data, {}) for data in sets)))
    )


def _sentence(printed: str, sets: dict[str, str], first: dict, second: dict) -> str:
    shared = sorted(first.keys() & second.keys())
    if not shared:
        return ""
    one, other = sets.values()
    own, others = (sum(found[number] for number in shared) / len(shared) for found in (first, second))
    nearer = sum(first[number] < second[number] for number in shared)
    further = sum(first[number] > second[number] for number in shared)
    return (
        f"**{printed}.** Ours are {own:.1f} away from {len(shared)} printed numbers on average under {one}, "
        f"{others:.1f} under {other}; nearer under the first are {nearer} of them, under the "
        f"second {further}."
    )


# What the second paper prints of agreement beside ours: tables, readings of a name, and how near is near.

LOOKED_UP = "5"  # the table whose accuracies the sentence on baselines speaks of


def baselines_sentence(result: Result) -> str:
    """How often the commonest answer is right in each printed set that was run, and what that leaves of 5.

    The tables judge the paper profile, whichever is shown; nothing beside a reader's data or before any run.
    """
    path = Project(find_root()).results("paper") / "agreement.json"
    if "own" in result.values or not path.is_file():
        return ""
    judged, accuracies, parts = Result.load(path), _accuracies(), []
    for name in data_of(judged):
        common = judged.values[name]["validation"]["accuracy"]["majority"]
        if name in accuracies:
            judge = min(accuracies[name], key=lambda judge: judge.published)
            parts.append(
                f"* {data_name(name)}: {common:.1f} %. The lowest accuracy that Table {LOOKED_UP} prints, "
                f"{judge.published:g}, is to be met within {judge.short_of(common).allowed:.2g}."
            )
    if not parts:
        return ""
    return "\n".join(["How often the commonest answer is right, on validation samples:\n", *parts])


def printed_tables(result: Result, *tables: str) -> str:
    """Published tables as Markdown, ours below each number that was judged; none beside a reader's data."""
    if "own" in result.values:
        return "These are your own data; the paper prints nothing of them."
    (paper,) = (one for one in load_papers(find_root() / "claims") if one.name == "snell2021")
    rows = _printed_numbers()
    return "\n".join(published_table(paper.tables, name, rows) for name in tables)


def two_readings(result: Result) -> str:
    """Which reading of a printed name comes nearer to its numbers; nothing beside a reader's data."""
    return "" if "own" in result.values else readings_sentences(_printed_numbers())


def _printed_numbers() -> list[ClaimVerdict]:
    return [row for row in verify(find_root(), experiment="agreement") if row.claim.number]


def printed_agreement() -> dict[tuple[str, str], float]:
    """What Table 5 has of the columns of Table 2 and of chance, by our name of the data set and column."""
    (paper,) = (one for one in load_papers(find_root() / "claims") if one.name == "snell2021")
    found = {}
    for claim in paper.claims:
        if claim.number and claim.published.reference.table == "5":
            data, *_, column, measure = claim.keys[0].split(".")
            if measure in ("agreement_optimistic", "chance"):
                found[data, "chance" if measure == "chance" else column] = claim.published.value
    return found


def _accuracies() -> dict[str, list[Tolerance]]:
    """How the numbers of :data:`LOOKED_UP` are judged that have the commonest answer for baseline, by set."""
    (paper,) = (one for one in load_papers(find_root() / "claims") if one.name == "snell2021")
    found: dict[str, list[Tolerance]] = {}
    for claim in paper.claims:
        if claim.number and claim.published.reference.table == LOOKED_UP and claim.judge.unrelated:
            found.setdefault(claim.judge.unrelated.partition(".")[0], []).append(claim.judge)
    return found


# Which reading of saliency comes near the printed numbers of sentence pairs: a table, a sentence a set.

NAMES = {
    "logit": "derivative of the logit, as in the tables",
    "log_probability": "derivative of the log-probability",
    "gradient_norm": "length of its gradient",
}
COLUMNS = {"agreement": ("𝒜(Δ, βᵘᶠ)", "5"), "kendall": ("τ(Δ, βᵘᶠ)", "3")}  # heading, table that prints it


def readings_table(result: Result) -> "pd.DataFrame":
    """A row a set of pairs and reading, and one for what is printed; empty where no network was asked."""
    import pandas as pd

    rows = {}
    for name in _sets(result):
        for reading, told in NAMES.items():
            found = result.values[name]["saliency"][reading]
            rows[data_name(name), told] = {
                heading: interval_text(found[measure], digits=1) for measure, (heading, _) in COLUMNS.items()
            }
        if any(printed := _printed(name)):
            cells = ("–" if number is None else f"{number:g}" for number in printed)
            rows[data_name(name), "printed"] = dict(
                zip((heading for heading, _ in COLUMNS.values()), cells, strict=True)
            )
    return pd.DataFrame.from_dict(rows, orient="index")


def nearest_sentences(result: Result) -> str:
    """For each set that the paper prints, which reading is nearest to either number, by its point."""
    lines = []
    for name in _sets(result):
        found, parts = result.values[name]["saliency"], []
        for (measure, (heading, table)), printed in zip(COLUMNS.items(), _printed(name), strict=True):
            if printed is None:
                continue
            apart = {reading: abs(own[measure]["value"] - printed) for reading, own in found.items()}
            nearest = min(apart, key=apart.__getitem__)
            parts.append(
                f"{heading} of Table {table} by the {NAMES[nearest].removesuffix(', as in the tables')}, "
                f"{apart[nearest]:.1f} away (the logit's {apart['logit']:.1f})"
            )
        if parts:
            lines.append(f"* On {data_name(name)} what is printed is met best: {listed(parts)}.")
    return "\n".join(lines)


def _sets(result: Result) -> list[str]:
    """The sets of pairs whose networks have been asked."""
    return [
        name
        for name in data_of(result)
        if result.values[name].get("saliency", {}).get("logit", {}).get("agreement", {}).get("n")
    ]


def _printed(name: str) -> list[float | None]:
    """What the paper prints of 𝒜 and τ of Δ and β^uf, by our name of the set."""
    (paper,) = (one for one in load_papers(find_root() / "claims") if one.name == "snell2021")
    found: dict[tuple[str, str], float] = {}
    for claim in paper.claims:
        if claim.number:
            found[claim.published.reference.table, claim.keys[0]] = claim.published.value
    return [
        found.get((table, f"{name}.validation.accuracy.delta_beta_uf.{measure}_optimistic"))
        for measure, (_, table) in COLUMNS.items()
    ]


# What ties in the lexical probe add to agreement, in a table and in words.

FALLS = {
    "above": "{} below its best at the last checkpoint",
    "open": "at the last checkpoint not to be told from its best ({} below)",
    "below": "not below its best at the last checkpoint ({})",
}


def ties_table(result: Result) -> "pd.DataFrame":
    """A row a set of pairs and column of the tables, and one for chance; empty where no run was asked."""
    import pandas as pd

    printed = printed_agreement()
    rows = {}
    for name in sets_with_ties(result):
        found = result.values[name]["ties"]
        for column, head in HEADS.items():
            counted, broken = (found[column][way] for way in ("counted", "broken"))
            rows[data_name(name), head] = {
                "ties agree": interval_text(counted["largest"], digits=1),
                "ties broken": interval_text(broken["largest"], digits=1),
                "printed": _cell(printed.get((name, column))),
                "ties agree, above the last": interval_text(counted["falls"], digits=1),
                "ties broken, above the last": interval_text(broken["falls"], digits=1),
            }
        rows[data_name(name), "chance, at the end"] = {
            "ties agree": interval_text(found["chance"], digits=1),
            "ties broken": f"{found['chance_broken']:.1f}",
            "printed": _cell(printed.get((name, "chance"))),
        }
    return pd.DataFrame.from_dict(rows, orient="index").fillna("")


def ties_sentences(result: Result) -> str:
    """For each set how many words have a tie at the end, and whether agreement with βᵘᶠ falls again."""
    lines = []
    for name in sets_with_ties(result):
        found = result.values[name]["ties"]
        tied = f"{interval_text(found['tied'], digits=1)} % of the target words"
        if found["ends"]["n"]:
            tied += f", of which {interval_text(found['ends'], digits=0)} % are end marks"
        told = [f"at the end of training at uniform attention the largest β is tied for {tied}"]
        for column in ("alpha_beta_uf", "beta_uf_beta_px"):
            counted, broken = (
                FALLS[side(found[column][way]["falls"])].format(
                    interval_text(found[column][way]["falls"], digits=1)
                )
                for way in ("counted", "broken")
            )
            told.append(f"{HEADS[column]} with ties counted is {counted}, with ties broken {broken}")
        lines.append(f"* {data_name(name)}: {'; '.join(told)}.")
    return "\n".join(lines)


def _cell(number: float | None) -> str:
    return "–" if number is None else f"{number:g}"

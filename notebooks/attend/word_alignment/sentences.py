"""What attention against gold alignments came to, in words made from the numbers."""

import math

from attnlib.plots.style import task_name
from companion.book.intervals import above, listed, side
from companion.book.tables import interval_text
from companion.data.parallel import europarl_de_en
from companion.results.result import Result, kinds_of
from notebooks.attend.word_alignment.drawing import ROLES, extreme_tokens, rank
from notebooks.attend.word_alignment.experiment import RULES_SHOWN, TEXT

_NAMES = {"temporal_only": "μ·μ", "input_only": "χ·χ", "with_residual_only": "the terms with residuals"}
LINES = 20_000  # sentence pairs in the file of Europarl
LEARNT, ELSEWHERE = 0.95, 0.5  # tokens right, and largest weights on the word that is translated
FIXED, VARIED = "reordering_0", "reordering_100"  # the ends of the dial


def alignment_sentences(result: Result) -> str:
    """A line of Markdown for each task and architecture: error rates, and what aligns without the rest."""
    return "\n".join(
        f"* **{task_name(task)}, {kind}.** {_alignment(found)}" for task, kind, found in kinds_of(result)
    )


def _alignment(found: dict) -> str:
    full = found["attention"]["full"]["error_rate"]
    alone = {name: found["attention"][name]["error_rate"] for name in _NAMES}
    defined = {name: rate["value"] for name, rate in alone.items() if rate["value"] is not None}
    text = (
        f"Full attention has an alignment error rate of {interval_text(full)}: "
        f"{_against(found, 'diagonal')} and {_against(found, 'ibm_model_1')}."
    )
    if not defined:
        return text
    best = min(defined, key=defined.get)
    without = found["attention"]["no_residual"]["error_rate"]
    return (
        f"{text} By themselves, the lowest rate is that of {_NAMES[best]} ({interval_text(alone[best])}); "
        f"without residuals it is {interval_text(without)}."
    )


def _against(found: dict, name: str) -> str:
    """Better, worse or not to be told from a reference, by the interval of the difference."""
    title = {"diagonal": "the diagonal", "ibm_model_1": "IBM Model 1"}[name]
    gain = found[f"better_than_{name}"]
    reference, full = found["references"][name]["error_rate"], found["attention"]["full"]["error_rate"]
    rate = f"{title} ({interval_text(reference)})"
    if interval_text(full) == interval_text(reference):
        return f"the same in two digits as {rate}"
    if gain["value"] is None or gain["low"] is None:
        word = "against"
    elif gain["low"] > 0:
        word = "better than"
    elif gain["high"] < 0:
        word = "worse than"
    else:
        word = "not to be told from"
    return f"{word} {rate}"


def seeds_note(result: Result, tokens_of: list[str] | None = None) -> str:
    """How many networks stand behind the dots of a figure: ``Networks of each kind: reordering 50 %, 3; …``.

    Args:
        tokens_of: the tasks of a figure on tokens; without them the tasks with gold links are counted.
    """
    counts: dict[str, set[int]] = {}
    if tokens_of is None:
        for task, _, found in kinds_of(result):
            counts.setdefault(task_name(task), set()).add(found["attention"]["full"]["error_rate"]["n"])
    for task in tokens_of or ():
        for found in result.values["tokens"].get(task, {}).values():
            words = found["classes"]["predicted"].values()
            counts.setdefault(task_name(task), set()).update(entry["no_residual"]["n"] for entry in words)
    if not counts:
        return ""
    numbers = {task: " or ".join(map(str, sorted(n))) for task, n in counts.items()}
    if len(numbers) == 1:
        return f"Networks of each kind: {next(iter(numbers.values()))}."
    return f"Networks of each kind: {'; '.join(f'{task}, {n}' for task, n in numbers.items())}."


def translator_sentence(result: Result) -> str:
    """How good the networks are that translate text, which says what their alignments can be worth."""
    kinds = [(task, kind, found) for task, kind, found in kinds_of(result) if task in (TEXT, "aligned")]
    if not kinds:
        return ""
    task, gold = kinds[0][0], kinds[0][2]["gold"]
    kinds = [(kind, found) for _, kind, found in kinds]
    quality = "; ".join(
        f"{kind}: token accuracy {interval_text(found['quality']['token_accuracy'])}, perplexity "
        f"{interval_text(found['quality']['perplexity'])}"
        for kind, found in kinds
    )
    rows = "; ".join(
        f"{kind}: {interval_text(found['by_prediction']['right'])} where the next word is right, "
        f"{interval_text(found['by_prediction']['wrong'])} where it is not"
        for kind, found in kinds
    )
    unknown = {side: f"{100 * gold[f'unknown_{side}']:.0f} %" for side in ("source", "target")}
    return (
        f"{_kept(result, gold) if task == TEXT else ''}The {gold['trained_on']:,} sentence pairs that the "
        f"networks are trained on make a weak translator ({quality}; held-out text under "
        f"teacher forcing). Of the {gold['samples']} aligned pairs, {unknown['source']} of the source's "
        f"and {unknown['target']} of the target's words are outside the vocabulary. The share of linked "
        f"words whose largest weight has a gold link: {rows}."
    )


def _kept(result: Result, gold: dict) -> str:
    """What of the file of Europarl is trained on."""
    longest = result.config.get("max_length") or europarl_de_en.__kwdefaults__["max_length"]
    first = result.config.get("n_train")
    return (
        f"Of the {LINES:,} sentence pairs of the file those of at most {longest} words a side are kept. "
        f"Without the held-out ones{f', of the rest the first {first:,},' if first else ''} and with the "
        f"aligned ones that makes {gold['trained_on']:,}. "
    )


def term_sentences(result: Result) -> str:
    """What single terms find at both ends of the dial, attention on text, and attention elsewhere."""
    lines = [
        _dial_line(kind, result.values[FIXED][kind], result.values[VARIED][kind])
        for kind in result.values.get(VARIED, {})
        if kind in result.values.get(FIXED, {})
    ]
    lines += [_text_line(result), _elsewhere_line(result)]
    return "\n".join(f"* {line}" for line in lines if line)


def _dial_line(kind: str, fixed: dict, varied: dict) -> str:
    """The input term alone at both ends of the dial, and the temporal term beside it."""
    before, after = (found["attention"]["input_only"]["agreement"] for found in (fixed, varied))
    temporal, lead = varied["attention"]["temporal_only"]["agreement"], varied["input_over_temporal"]
    word = {1: "more", -1: "fewer", 0: "as far as can be told as many"}[
        int(above(after, before)) - int(above(before, after))
    ]
    text = (
        f"**Input term alone, {kind}.** With no sentence open to reordering it finds "
        f"{interval_text(before)} of the right words, with every one {interval_text(after)}: {word}"
    )
    if word == "more" and after["value"] <= 0.5:
        text += f", and yet one word in {round(1 / after['value'])}"
    beside = {"above": "fewer than χ·χ", "below": "more than χ·χ", "open": "not to be told from χ·χ"}[
        side(lead)
    ]
    return f"{text}. There μ·μ alone finds {interval_text(temporal)}, {beside}."


def _text_line(result: Result) -> str:
    """Error rates on Europarl against the diagonal's, in one sentence."""
    kinds = {kind: found for task, kind, found in kinds_of(result) if task == TEXT}
    if not kinds:
        return ""
    rates = listed(
        [
            f"{interval_text(found['attention']['full']['error_rate'])} ({kind})"
            for kind, found in kinds.items()
        ]
    )
    diagonal = interval_text(next(iter(kinds.values()))["references"]["diagonal"]["error_rate"])
    told = []
    for at, words in (
        ("above", "better than it"),
        ("below", "worse than it"),
        ("open", "not to be told from it"),
    ):
        same = [kind for kind, found in kinds.items() if side(found["better_than_diagonal"]) == at]
        told += [f"{words} in {listed(same)}"] if same else []
    return (
        f"**{task_name(TEXT)}.** Attention errs at {rates} of the links, the diagonal at {diagonal}: "
        f"{', '.join(told)}."
    )


def _elsewhere_line(result: Result) -> str:
    """Networks that say nearly all words right while most of their largest weights stand on other words."""
    parts = [
        f"in {task_name(task)}, {kind}, {interval_text(right)} of the tokens are right, and "
        f"{interval_text(hit)} of the largest weights stand on the word translated"
        for task, kind, found in kinds_of(result)
        for right, hit in [(found["quality"]["token_accuracy"], found["attention"]["full"]["agreement"])]
        if side(right, LEARNT) == "above" and side(hit, ELSEWHERE) == "below"
    ]
    if not parts:
        return ""
    return (
        "**Right words, attention elsewhere.** A network need not look at the word it says: "
        f"{'; '.join(parts)}."
    )


def token_sentence(result: Result, task: str, kind: str, role: str = "predicted", each: int = 6) -> str:
    """The ends of the list of tokens, by what each term alone rebuilds of rows, and what carries the last."""
    found = extreme_tokens(result, task, kind, role, each)
    if len(found) < 2:
        return f"No tokens of {task_name(task)}, {kind} are measured yet."
    half = min(each, len(found) // 2)
    temporal, least = found[:half], found[::-1][:half]
    return (
        f"{task_name(task)}, {kind}, by the {ROLES[role]}: {_tokens(temporal)} lean most on time; "
        f"{_tokens(least)} lean least on time.{_carried(least)}"
    )


def _carried(least: list[dict]) -> str:
    """What makes the rows of tokens that χ·χ alone comes closer to than μ·μ alone does; means over tokens."""
    rows = [row for row in least if rank(row) < 0]
    if not rows:
        return " Even of these μ·μ alone comes closer to the rows than χ·χ alone."

    def mean(share: str) -> float:
        known = [row[share] for row in rows if row[share] is not None]
        return sum(known) / len(known) if known else math.nan  # not above any threshold

    def number(share: str) -> str:
        return interval_text({"value": None if math.isnan(mean(share)) else mean(share), "low": None})

    which = "the latter" if len(rows) == len(least) else _tokens(rows)
    text = (
        f" To the rows of {which} χ·χ alone comes closer than μ·μ alone (similarity "
        f"{number('input_only')} and {number('temporal_only')}, means over these tokens); it has "
        f"{number('input_share')} of the covariance of their scores, μ·μ has {number('temporal_share')}"
    )
    if mean("input_only") > ELSEWHERE:
        return f"{text}. By similarity they are input-driven."
    text += ". They are the least temporal, and yet not input-driven"
    if mean("residual_share") > ELSEWHERE:
        return f"{text}: terms with residuals have {number('residual_share')} of the covariance."
    if mean("no_residual") > ELSEWHERE:
        return (
            f"{text}: only with the products of μ and χ do the terms without residuals rebuild them "
            f"(similarity {number('no_residual')})."
        )
    return f"{text}: no group of terms rebuilds them."


def _tokens(rows: list[dict]) -> str:
    return ", ".join(f"`{row['token']}`" for row in rows)


# Which outcomes that would change our mind about alignments have come about, told from the numbers.

_RULED = {
    "temporal_only": "μ·μ alone",
    "input_only": "χ·χ alone",
    "no_residual": "all terms without residuals",
}
UNMOVED = "reordering_0"  # the mark of the dial whose gold links are the diagonal


def outcome_sentences(result: Result) -> str:
    """Which of the outcomes that would change our mind have come about, one line each."""
    lines = [_below_the_diagonal(result), _by_the_word_read(result), _few_pairs(result)]
    return "\n".join(f"* {line}" for line in lines if line)


def _below_the_diagonal(result: Result) -> str:
    dial = [
        (f"{task_name(task)}, {kind}", found["better_than_diagonal"])
        for task, kind, found in kinds_of(result)
        if task.startswith("reordering_") and task != UNMOVED
    ]
    if not dial:
        return ""
    failed = [f"{name} ({interval_text(gain)})" for name, gain in dial if side(gain) != "above"]
    if failed:
        return f"**The diagonal** is not clearly beaten in {listed(failed)}, in differences of error rates."
    name, gain = min(dial, key=lambda entry: entry[1]["value"])
    return (
        "**The diagonal** is beaten wherever sentences are reordered; the smallest difference of error rates "
        f"is {interval_text(gain)} ({name})."
    )


def _by_the_word_read(result: Result) -> str:
    """Whether links are better by the word read than by the word predicted: full attention, then terms."""
    better, open_, terms, early = [], [], [], []  # of full attention, then of single terms
    for task, kind, found in kinds_of(result):
        for subset in RULES_SHOWN:
            if any(subset not in found["rules"].get(rule, {}) for rule in ("words", "read")):
                continue
            said, read = (found["rules"][rule][subset]["error_rate"] for rule in ("words", "read"))
            name = f"{task_name(task)}, {kind}"
            numbers = f"{interval_text(said)} by the word predicted, {interval_text(read)} by the word read"
            if not above(said, read):
                lower = None not in (said["value"], read["value"]) and read["value"] < said["value"]
                open_ += [f"in {name}, it cannot be told ({numbers})"] if subset == "full" and lower else []
            elif subset == "full":
                better.append(f"in {name} ({numbers})")
            else:
                terms.append(f"{name}, {_RULED[subset]} ({numbers})")
                early += [(name, found)] if subset == "temporal_only" else []
    text = f"**Better by the word read.** Of full attention this has {'' if better else 'not '}happened"
    text += f"{'' if better else ';'} {'; '.join(better or open_)}." if better or open_ else "."
    if terms:
        text += f" Of single terms it has: {'; '.join(terms)}."
    for name, found in early:
        rates = {s: found["attention"][s]["error_rate"] for s in ("full", "no_residual")}
        if above(rates["no_residual"], rates["full"]):
            text += (
                f" The temporal parts of {name}, point one place early; residuals move attention on (by the "
                f"word predicted {interval_text(rates['full'])} with them, "
                f"{interval_text(rates['no_residual'])} without)."
            )
    return text if kinds_of(result) else ""


def _few_pairs(result: Result) -> str:
    kinds = {kind: found for task, kind, found in kinds_of(result) if task == TEXT}
    if not kinds:
        return ""
    lost = [kind for kind, found in kinds.items() if side(found["better_than_ibm_model_1"]) == "below"]
    trained_on = next(iter(kinds.values()))["gold"]["trained_on"]
    told = f"does better than {listed(lost)}" if lost else "is not clearly ahead of a network"
    return f"**IBM Model 1** {told} on {task_name(TEXT)}, from {trained_on:,} pairs, which are few."

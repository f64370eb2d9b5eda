"""What attention against gold alignments came to, in words made from the numbers."""

from attnlib.companion.tables import interval_text
from attnlib.experiments.result import Result
from attnlib.experiments.word_alignment import TEXT
from attnlib.plotting.order import kinds_of
from attnlib.plotting.style import task_name
from attnlib.plotting.token_parts import ROLES, extreme_tokens

_NAMES = {"temporal_only": "μ·μ", "input_only": "χ·χ", "with_residual_only": "the terms with residuals"}


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
    rate = f"{title} ({interval_text(found['references'][name]['error_rate'])})"
    if gain["value"] is None or gain["low"] is None:
        word = "against"
    elif gain["low"] > 0:
        word = "better than"
    elif gain["high"] < 0:
        word = "worse than"
    else:
        word = "not to be told from"
    return f"{word} {rate}"


def seeds_note(result: Result) -> str:
    """How many networks stand behind the dots: ``Networks of each kind: reordering 50 %, 3; …``."""
    counts: dict[str, set[int]] = {}
    for task, _, found in kinds_of(result):
        counts.setdefault(task_name(task), set()).add(found["attention"]["full"]["error_rate"]["n"])
    for task, kinds in result.values["tokens"].items():
        for found in kinds.values():
            words = found["classes"]["predicted"].values()
            counts.setdefault(task_name(task), set()).update(entry["no_residual"]["n"] for entry in words)
    listed = "; ".join(f"{task}, {' or '.join(map(str, sorted(n)))}" for task, n in counts.items())
    return f"Networks of each kind: {listed}."


def translator_sentence(result: Result) -> str:
    """How good the networks are that translate text, which says what their alignments can be worth."""
    kinds = [(kind, found) for task, kind, found in kinds_of(result) if task in (TEXT, "aligned")]
    if not kinds:
        return ""
    gold = kinds[0][1]["gold"]
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
        f"The {gold['trained_on']:,} sentence pairs make a weak translator ({quality}; held-out text under "
        f"teacher forcing). Of the {gold['samples']} aligned pairs, {unknown['source']} of the source's "
        f"and {unknown['target']} of the target's words are outside the vocabulary. The share of linked "
        f"words whose largest weight has a gold link: {rows}."
    )


def token_sentence(result: Result, task: str, kind: str, role: str = "predicted", each: int = 6) -> str:
    """The ends of the list of tokens, by what each term alone rebuilds of their rows."""
    found = extreme_tokens(result, task, kind, role, each)
    if len(found) < 2:
        return f"No tokens of {task_name(task)}, {kind} are measured yet."
    half = min(each, len(found) // 2)
    temporal, inputs = ([row["token"] for row in part] for part in (found[:half], found[::-1][:half]))
    return (
        f"{task_name(task)}, {kind}, by the {ROLES[role]}: most temporal are {_listed(temporal)}; most "
        f"input-driven are {_listed(inputs)}."
    )


def _listed(tokens: list[str]) -> str:
    return ", ".join(f"`{token}`" for token in tokens)

"""The chapter on Transformers in words and tables made from its numbers."""

from typing import TYPE_CHECKING

from companion.book.intervals import capital
from companion.book.tables import interval_range, interval_text
from companion.results.result import Result
from notebooks.beyond.transformer_heads.drawing import TASK_LOOKS, positions_of, task_names
from notebooks.beyond.transformer_heads.experiment import ANCHORED

if TYPE_CHECKING:
    import pandas as pd

SHARE_NAMES = {
    "temporal": "the temporal share",
    "input": "the input share",
    "mixed": "the two mixed terms together",
    "residual": "the terms with a residual",
}
COLUMNS = {
    "temporal_share": "temporal",
    "input_share": "input",
    "mixed_share": "mixed",
    "residual_share": "residual",
    "position_bias_share": "position bias",
    "typicality": "typicality",
    "temporal_rebuilds": "temporal rebuilds",
    "uniform": "even attention",
}


def quality_table(result: Result) -> "pd.DataFrame":
    """What the networks can do, a row a task and kind of positions."""
    import pandas as pd

    rows = {
        f"{TASK_LOOKS[task][0]}, {positions}": {
            "tokens right": interval_text(found["token_accuracy"]),
            "sentences right": interval_text(found["exact_match"]),
            "parameters": f"{found['parameters']['value']:,.0f}",
        }
        for task, positions, found in _kinds(result, "networks")
    }
    return pd.DataFrame.from_dict(rows, orient="index")


def layer_table(result: Result, kind: str = "cross") -> "pd.DataFrame":
    """Shares, typicality and rebuilt attention of one kind of attention, before training in brackets."""
    import pandas as pd

    columns = {name: heading for name, heading in COLUMNS.items() if kind != "cross" or "bias" not in name}
    rows = {}
    for task, positions, kinds in _kinds(result, "layers"):
        for layer, states in kinds[kind].items():
            rows[f"{TASK_LOOKS[task][0]}, {positions}, {layer.replace('_', ' ')}"] = {
                heading: _with_before(states, name) for name, heading in columns.items()
            }
    return pd.DataFrame.from_dict(rows, orient="index")


def _number(value: float) -> str:
    return f"{value:.2f}".replace("-0.00", "0.00").replace("-", "−")


def _with_before(states: dict, name: str) -> str:
    before = states["untrained"][name]["value"]
    text = interval_text(states["trained"][name])
    return text if before is None else f"{text} ({_number(before)})"


def correlation_sentences(result: Result) -> str:
    """Typicality against each share, and how many heads have none."""
    found = result.values["correlation"]
    lines = [
        f"* {capital(name)}: ρ = {interval_range(found[key])}, {_direction(found[key])}."
        for key, name in SHARE_NAMES.items()
    ]
    counted = found["temporal"]
    left_out = counted["left_out"]
    lines.append(
        f"* These are {counted['heads']} heads of {counted['n']} networks; {left_out} "
        f"head{' is' if left_out == 1 else 's are'} left out because scores hardly vary."
        if counted["value"] is not None
        else "* Too few heads have both a share and a typicality."
    )
    rebuilt = [
        f"{name} ρ = {interval_range(found[key])}"
        for key, name in (
            ("temporal_rebuilds", "from temporal · temporal alone"),
            ("input_rebuilds", "from input · input alone"),
        )
    ]
    lines.append(f"* In place of shares, what can be rebuilt: {'; '.join(rebuilt)}.")
    return "\n".join(lines)


def input_sentence(result: Result) -> str:
    """The largest and the smallest input share that any kind of cross-attention has, means over heads."""
    found = [
        states["trained"]["input_share"]["value"]
        for task in task_names(result)
        for kinds in result.values["layers"][task].values()
        for states in kinds["cross"].values()
    ]
    found = [value for value in found if value is not None]
    if not found:
        return "No head of cross-attention has shares."
    low, high = (
        f"{value:.2f}".replace("-0.00", "0.00").replace("-", "−") for value in (min(found), max(found))
    )
    return (
        f"Input · input has between {low} and {high} of the covariance, whatever the task, positions and "
        "layer (means over heads and seeds)."
    )


def layer_sentences(result: Result) -> str:
    """The residual of the last layer against the first."""
    found = result.values["residual"]["last_less_first"]
    return (
        f"Residual share of cross-attention, last layer less first: {interval_range(found)}, "
        f"{_sign(found, 'more in the last layer', 'less in the last layer')}."
    )


def task_sentences(result: Result) -> str:
    """One-to-one against reordering, and sinusoidal against other positions."""
    lines = [
        f"* Temporal share in one-to-one less in reordering, {_kind(kind)}: {interval_range(found)}, "
        f"{_sign(found, 'more temporal in one-to-one', 'less temporal in one-to-one')}."
        for kind, found in _ordered(result, result.values["one_to_one_less_reordering"])
        if found["value"] is not None
    ]
    lines += [
        f"* In one-to-one, sinusoidal less {kind}: {interval_range(found)}, "
        f"{_sign(found, 'less is left to temporal terms', 'more is left to temporal terms')}."
        for kind, found in _ordered(result, result.values["sinusoidal_less"])
        if found["value"] is not None
    ]
    return (
        "\n".join(lines) or "This run has not both tasks, nor one-to-one translation with several positions."
    )


def _ordered(result: Result, found: dict) -> list[tuple[str, dict]]:
    """By kind of positions in the order asked for, and what is none at the end."""
    names = [name for name in positions_of(result) if name in found]
    return [(name, found[name]) for name in (*names, *(name for name in found if name not in names))]


def _kinds(result: Result, of: str) -> list[tuple[str, str, dict]]:
    """Task, kind of positions and what is known of both, in the order asked for, the control last."""
    found = result.values[of]
    tasks = [*task_names(result), *([ANCHORED] if ANCHORED in found else [])]
    return [(task, *pair) for task in tasks for pair in _ordered(result, found[task])]


def _kind(kind: str) -> str:
    return "the smallest of each seed" if kind == "smallest" else kind


def content_sentences(result: Result) -> str:
    """Content terms in one-to-one translation, and what a repeated word does, by kind of positions."""
    layers = result.values["layers"].get("one_to_one", {})
    lines = []
    for positions, found in _ordered(result, result.values["repeated"]):
        shares = [
            f"{interval_text(states['trained']['content_share'])} ({layer.replace('_', ' ')})"
            for layer, states in layers[positions]["cross"].items()
        ]
        less = found["once_less_again"]["attention"]
        lines.append(
            f"* {positions}: terms without a temporal component have {', '.join(shares)} of the covariance. "
            f"Where the word just read stands again in the source, attention on the aligned word is "
            f"{_sign(less, 'smaller', 'larger', 'not clearly another')}: once less again "
            f"{interval_range(less)}."
        )
    return "\n".join(lines) or "This run has no one-to-one translation."


def anchored_sentences(result: Result) -> str:
    """The control with a word that opens; where it was not trained, how to have it."""
    lines = []
    for positions, found in _ordered(result, result.values["anchored_less_free"]):
        layers = result.values["layers"][ANCHORED][positions]["cross"]
        own = [interval_text(states["trained"]["temporal_share"]) for states in layers.values()]
        lines.append(
            f"* {positions}: the temporal share is {', '.join(own)} by layer with an opening word; less that "
            f"in one-to-one translation: {interval_range(found)}, {_sign(found, 'more', 'less')}."
        )
    return "\n".join(lines) or (
        "This run did not train the control: `-p anchored=rotary,relative` does, three more networks each at "
        "the quick profile."
    )


def construction_table(result: Result) -> "pd.DataFrame":
    """What is forced in the encoder's first layer: its states' variance and the residual of its scores."""
    import pandas as pd

    rows = {}
    for task, positions, sites in _kinds(result, "states"):
        if task != ANCHORED:
            layer = result.values["layers"][task][positions]["encoder_self"]["layer_1"]["trained"]
            embedded, read = (sites[site]["trained"] for site in ("encoder.embedded", "encoder.0.self"))
            rows[f"{TASK_LOOKS[task][0]}, {positions}"] = {
                "residual, embedded": _exact(embedded["residual"]),
                "residual, after the norm": _exact(read["residual"]),
                "positions, after the norm": _exact(read["temporal_unique"]),
                "residual share of the scores": interval_text(layer["residual_share"]),
            }
    return pd.DataFrame.from_dict(rows, orient="index")


def _exact(interval: dict) -> str:
    """Zero as a bare 0: the number is exactly none, to nine decimals, in every network."""
    none = (interval["value"], interval["low"], interval["high"]) in ((0, 0, 0), (0, None, None))
    return "0" if none else interval_text(interval)


def state_table(result: Result) -> "pd.DataFrame":
    """Share of the variance of states that no sum of position and word explains, layer by layer."""
    import pandas as pd

    rows = {}
    for task, positions, sites in _kinds(result, "states"):
        if task != ANCHORED:
            halves = {"encoder": _depth(sites, "encoder"), "decoder": _depth(sites, "decoder")}
            rows[f"{TASK_LOOKS[task][0]}, {positions}"] = {
                f"{half}: {name}": interval_text(sites[site]["trained"]["residual"])
                for half, names in halves.items()
                for name, site in names.items()
            }
    return pd.DataFrame.from_dict(rows, orient="index")


def _depth(sites: dict, half: str) -> dict[str, str]:
    """What stands in the table of states, by name: what self-attentions read, and cross-attention's side."""
    found = {
        f"layer {site.split('.')[1]}": site for site in sites if site.startswith(half) and ".self" in site
    }
    found = {f"layer {int(name.split()[1]) + 1}": site for name, site in found.items()}
    if half == "encoder":
        return found | {"end": "encoder"}
    last = max((site for site in sites if site.endswith(".cross")), default=None)
    return found if last is None else found | {"last cross": last}


def _direction(interval: dict) -> str:
    return _sign(interval, "rising with it", "falling with it", "no direction shown")


def _sign(interval: dict, positive: str, negative: str, unclear: str = "no difference shown") -> str:
    """What the interval allows to say: neither, where it holds 0 or there is none."""
    if interval["low"] is None or interval["low"] <= 0 <= interval["high"]:
        return unclear
    return positive if interval["value"] > 0 else negative

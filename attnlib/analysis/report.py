"""An analysis in files: a page for people, tables for programs.

The page is one HTML file that loads nothing, made of ``report.html.j2``; it runs ``report.js`` and, by its
content security policy, no other script, and holds every number without it. Words and names may be hostile:
the template escapes all that it is given, and every character is made visible first.
"""

import base64
import csv
import hashlib
import io
import json
import math
import statistics
import time
import unicodedata
from collections.abc import Callable, Collection
from dataclasses import asdict
from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

import torch
from safetensors import safe_open
from torch import Tensor

import attnlib
from attnlib.adapters.library_models import KINDS
from attnlib.analysis.analyse import analyse
from attnlib.analysis.fit import head_of
from attnlib.analysis.interventions import ATTRIBUTIONS, calibration_rows
from attnlib.analysis.learned import has_learned
from attnlib.analysis.part_shares import part_rows
from attnlib.analysis.passes import Progress
from attnlib.analysis.results import EVEN, Analysis, is_even
from attnlib.analysis.samples import Sample
from attnlib.analysis.stored import Keep
from attnlib.analysis.stream import Losses, Stream
from attnlib.analysis.terms import REBUILT
from attnlib.decomposition.components import PART_NAMES, Method
from attnlib.decomposition.typicality import MINIMUM_CELL
from attnlib.errors import BadInput, CorruptFile
from attnlib.files import atomic_path, locked, write_json_atomic, write_text_atomic
from attnlib.sealed import load_file, save_file

if TYPE_CHECKING:
    from jinja2 import Template
    from markupsafe import Markup

Name = Callable[[str, int], str]  # side and id → the word

TABLES = ("heads", "terms", "states")
KEPT = "analysis.safetensors"
RUN = "run.json"  # when it was and how long it took
SIDES = {"cross": ("target", "source"), "encoder_self": ("source",) * 2, "decoder_self": ("read",) * 2}
AS_IT_IS, LISTS = ("method", "made", "about", "fitted", "judged", "held_out"), ("unchecked", "no_probe")
ONE_SEQUENCE = "one_sequence"  # in analysis.json where it is so
# Schema 4 had no split shares and no interventions.
SCHEMA = 5  # of analysis.json; 3 had no intervals of terms; 2 left_out and cut for losses; 1 no intervals
MOST_MAPS, MOST_CELLS = 48, 20_000  # example matrices on the page, and their squares
SCRIPT = Path(__file__).with_name("report.js")
SPLIT_HEADINGS = tuple(
    f"{part}, {reading}" for part in PART_NAMES for reading in ("own", "split", "any term")
)
MAPS = ("the model's", *(f"of {name}" for name in REBUILT))

# Of the parts; purple is for mixed terms, and green for the bias.
COLOURS = {
    "temporal": "#0072b2", "input": "#d55e00", "mixed": "#aa4499", "residual": "#888888", "bias": "#009e73",
}  # fmt: skip
PLAIN = "currentColor"  # black on white, white on black
STRONG = 0.75  # from here on, a square's own colour is behind its number


def report(
    stream: Stream,
    folder: str | Path,
    *,
    title: str = "How this model attends",
    name: Name | None = None,
    heads: int | Collection[int] | None = None,
    method: Method = "least_squares",
    every: int = 5,
    interventions: bool = False,
    keep: Keep | None = None,
    progress: Progress | bool | None = None,
    about: dict[str, str] | None = None,
) -> Analysis:
    """Analyse a model on a corpus and write what was found.

    Args:
        stream: passes of the model, see :class:`~attnlib.analysis.stream.Stream`.
        folder: gets ``index.html``, ``analysis.json``, ``heads.csv``, ``terms.csv``, ``states.csv``,
            ``parts.csv``, ``run.json``, and ``analysis.safetensors``, which :func:`read_report` reads.
        name: the word of an id, given ``"source"`` or ``"target"`` and the id; the id itself by default.
            Whatever it returns is shown as text.
        heads, method, every, interventions, keep, progress, about: as in
            :func:`~attnlib.analysis.analyse.analyse`.

    Raises:
        BadInput: an empty corpus, or a folder that cannot be written.
    """
    options = {"heads": heads, "method": method, "every": every, "interventions": interventions}
    options |= {"keep": keep, "progress": progress}
    with locked(Path(folder), ".report.lock", wait=True):  # a folder that cannot be written is refused first
        began = time.monotonic()
        analysis = analyse(stream, **options, about=about)
        write_run(folder, began)
        write_report(analysis, folder, title=title, name=name)
    return analysis


def write_run(folder: str | Path, began: float) -> None:
    """A file of its own, since reports of one analysis are the same bytes; nothing is drawn: no seeds."""
    record = {"date": datetime.now(UTC).isoformat(timespec="seconds"), "seeds": []}
    write_json_atomic(Path(folder) / RUN, record | {"seconds": round(time.monotonic() - began, 1)})


def write_report(
    analysis: Analysis, folder: str | Path, *, title: str = "How this model attends", name: Name | None = None
) -> None:
    """Write the page and the tables of an analysis, see :func:`report`."""
    folder = Path(folder)
    rows = {
        table: [{key: _plain(value) for key, value in row.items()} for row in getattr(analysis, table)]
        for table in TABLES
    }
    rows["parts"] = [
        {key: _plain(value) for key, value in row.items()}
        for row in part_rows(analysis.heads, analysis.terms)
    ]
    rows["terms"] = shown_terms(analysis, rows["terms"])
    if analysis.interventions:
        rows |= {"interventions": analysis.interventions, "calibration": calibration_of(analysis)}
        for table in ("interventions", "calibration"):
            rows[table] = [{key: _plain(value) for key, value in row.items()} for row in rows[table]]
    content = {
        "schema": SCHEMA,
        "attnlib": attnlib.__version__,
        **{name: getattr(analysis, name) for name in (*AS_IT_IS, *LISTS)},
        **({ONE_SEQUENCE: True} if analysis.one_sequence else {}),
        "learned": {key: _plain(value) for key, value in analysis.learned.items()},
        "findings": findings(analysis),
        "source": "frames" if reads_frames(analysis) else "words",
        "losses": asdict(analysis.losses),
        "unknown_pieces": {side: _plain(share) for side, share in analysis.losses.unknown.items()},
        "notes": notes(analysis),
    }
    text = json.dumps(content | rows, indent=1)  # before anything is written
    for table, own in rows.items():
        write_text_atomic(folder / f"{table}.csv", csv_of(own))
    write_text_atomic(folder / "analysis.json", text + "\n")
    tensors = {f"blocks/{at}/{head}": own for (at, head), own in analysis.blocks.items()}
    tensors |= {} if analysis.keys is None else {"keys": analysis.keys}
    with atomic_path(folder / KEPT) as temporary:
        save_file(tensors, temporary, {"analysis": json.dumps(content | rows)})
    files = [*(f"{table}.csv" for table in rows), "analysis.json"]
    if (folder / RUN).is_file():
        files.append(RUN)
    text = page(analysis, title, name or (lambda _, token: str(token)), files, script=True)
    write_text_atomic(folder / "index.html", text)


def read_report(folder: str | Path) -> Analysis:
    """The analysis that a report was written of, without its samples; for tables, pictures and comparisons.

    Raises:
        BadInput: a folder without ``analysis.safetensors``.
        CorruptFile: one that is not as it was written.
    """
    path = Path(folder) / KEPT
    if not path.is_file():
        raise BadInput(f"{folder} holds no {KEPT}: give a folder that attnlib analyse or report wrote")
    tensors = load_file(path)
    with safe_open(path, framework="pt") as file:
        said = json.loads((file.metadata() or {}).get("analysis", "null"))
    if said is None:
        raise CorruptFile(f"{path} was written by something else: make the report again")
    undefined = {None: math.nan}
    rows = {own: [{k: undefined.get(v, v) for k, v in row.items()} for row in said[own]] for own in TABLES}
    blocks = {head_of(name.removeprefix("blocks/")): own for name, own in tensors.items() if name != "keys"}
    own = {name: said[name] for name in (*AS_IT_IS, "learned")}
    own |= {name: tuple(said.get(name, ())) for name in LISTS} | {"losses": Losses(**said.get("losses", {}))}
    own[ONE_SEQUENCE] = said.get(ONE_SEQUENCE, False)
    own["interventions"] = [
        {key: undefined.get(value, value) for key, value in row.items()}
        for row in said.get("interventions", ())
    ]
    return Analysis(**rows, **own, blocks=blocks, keys=tensors.get("keys"))


def reads_frames(analysis: Analysis) -> bool:
    """Whether the source has positions and no words, as pictures and sound: all of it holds one id."""
    sites = {row["states"]: row["words"] for row in analysis.states}
    own = {
        words
        for site, words in sites.items()
        if site.startswith("encoder") or (site.startswith("cross") and site.endswith("key"))
    }
    return own == {1}


def shown_terms(analysis: Analysis, rows: list[dict]) -> list[dict]:
    """Rows of terms without those of the input part of a source that has no words, which is zero."""
    if not reads_frames(analysis):
        return rows
    empty = {"cross": ("·input",), "encoder_self": ("·input", "input·"), "decoder_self": ()}
    return [row for row in rows if not any(part in row["term"] for part in empty[row["kind"]])]


def words_of(analysis: Analysis, sample: Sample, name: Name) -> dict[str, list[str]]:
    """The words of a sample: of its source, its target and what is read; frames have their numbers."""
    sides = {"source": "source", "target": "target", "read": "target"}
    found = {of: [name(side, token) for token in getattr(sample, of).tolist()] for of, side in sides.items()}
    numbers = list(map(str, range(len(sample.source))))
    return found | ({"source": numbers} if reads_frames(analysis) else {})


def csv_of(rows: list[dict]) -> str:
    buffer = io.StringIO()
    if rows:
        writer = csv.DictWriter(buffer, list(rows[0]), lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)
    return buffer.getvalue()


def _plain(value: object) -> object:
    """A number to nine digits; what is undefined is empty."""
    if not isinstance(value, float):
        return value
    return float(f"{value:.9g}") if math.isfinite(value) else None


HALF, ALL_BUT = 0.5, 0.9  # what findings call more than half, and rebuilt
_KINDS = {
    "cross": "Cross-attention", "encoder_self": "Self-attention of the encoder",
    "decoder_self": "Self-attention of the decoder",
}  # fmt: skip
_PARTS = {
    "temporal": "position alone", "input": "words alone", "mixed": "position with word",
    "residual": "what neither position nor word explains",
}  # fmt: skip


def findings(analysis: Analysis) -> list[str]:
    """What the numbers say, in words: two sentences a kind of attention, by thresholds that are stated.

    A part makes a head where the whole interval of its share is above :data:`HALF`; without one, the share.
    """
    found = []
    for kind in [kind for kind in KINDS if any(row["kind"] == kind for row in analysis.heads)]:
        rows = [row for row in analysis.heads if row["kind"] == kind]
        sharp = [row for row in rows if not is_even(row)]
        made = {part: [row for row in sharp if _least(row, part) > HALF] for part in _PARTS}
        heads = f"{_KINDS[kind]}, {len(rows)} heads"
        if not sharp:
            found.append(f"{heads}: all attend evenly, and there is nothing to share.")
            continue
        said = [f"from {_PARTS[part]} in {_named_heads(own)}" for part, own in made.items() if own]
        if rest := len(sharp) - sum(map(len, made.values())):
            said.append(f"from no single part in {rest}")
        if even := len(rows) - len(sharp):
            said.append(f"and {even} attend{'s' * (even == 1)} evenly, so that there is nothing to share")
        gaps = ((row["no_residual_rebuilds"], row["uniform"]) for row in sharp)
        rebuilt = sum(own > ALL_BUT and own - even > (1 - even) / 2 for own, even in gaps)
        found.append(
            f"{heads}: more than half of the variation of scores comes {', '.join(said)}. Position and word "
            f"together rebuild more than {ALL_BUT:.0%} of the attention, and close more than half of the gap "
            f"that even attention leaves, in {rebuilt or 'none'}."
        )
    return found


def _least(row: dict, part: str) -> float:
    """The lower end of a share's interval, or the share where there is none."""
    low = row[f"{part}_low"]
    return row[f"{part}_share"] if math.isnan(low) else low


def _named_heads(rows: list[dict], most: int = 6) -> str:
    named = ", ".join(f"{row['layer']}.{row['head']}" for row in rows[:most])
    return f"{len(rows)} (layer.head {named}{f' and {len(rows) - most} more' if len(rows) > most else ''})"


def notes(analysis: Analysis) -> list[str]:
    """What the numbers are not of, what nothing checked, and what is too small."""
    said = _template("notes.txt.j2").render(
        vars(analysis)
        | {
            "frames": reads_frames(analysis),
            "encoder_alone": analysis.one_sequence and analysis.heads[0]["kind"] == "encoder_self",
            "has_learned": bool(analysis.learned) and has_learned(analysis.learned),
            "even": sum(map(is_even, analysis.heads)),
            "sure": _sure(analysis),
            "within": 1 - EVEN,
            "unseen": max(analysis.states, key=lambda row: row["unseen_words"], default={"unseen_words": 0}),
            "fewest": min(analysis.heads, key=lambda row: row["typicality_coverage"], default=None),
            "minimum_cell": MINIMUM_CELL,
            "ignored": max((row["on_ignored"] for row in analysis.heads), default=0.0),
        }
    )
    return [" ".join(note.split()) for note in said.split("\n\n") if note.strip()]


# -- the page --


METHODS = {
    "means": "means by position, then by word, as in the papers",
    "least_squares": "constant, position and word by least squares",
}


def _shown(name: str, value: object) -> str:
    """The value of an option; a choice of layers or heads that was not made is of all."""
    if value in (None, [None, None]):
        return "all" if name.removeprefix("--") in ("layers", "heads") else "none"
    return ", ".join(map(str, value)) if isinstance(value, list | tuple) else str(value)


def _sure(analysis: Analysis) -> dict[str, float]:
    """How far intervals reach to either side, of heads that do not attend evenly; empty without any."""
    rows = [row for row in analysis.heads if not is_even(row)]
    ends = [(row[f"{part}_low"], row[f"{part}_high"]) for row in rows for part in _PARTS]
    wide = [(high - low) / 2 for low, high in ends if high > low]
    return {"middle": statistics.median(wide), "widest": max(wide)} if wide else {}


def page(
    analysis: Analysis, title: str, name: Name, tables: Collection[str] = (), *, script: bool = False
) -> str:
    """The page; ``tables``: files beside it, which it links to; with its ``script`` or without."""
    facts = analysis.about | {
        "Samples fitted on": f"{analysis.fitted:,}",
        "Samples judged": f"{analysis.judged:,}" + ("" if analysis.held_out else " (the same)"),
    }
    if unknown := analysis.losses.unknown:
        shares = ", ".join(f"{side} {share:.2%}" for side, share in unknown.items())
        facts["Unknown to the tokenizer"] = shares
    if found := analysis.learned:
        facts["Predictions"] = (
            "{accuracy:.0%} of the next words right, loss {loss:.2f} (by frequency {loss_by_frequency:.2f}), "
            "{whole_sentences:.0%} of {sentences} sentences without a wrong word".format(**found)
        )
        facts |= {"BLEU of what it writes itself": f"{found['bleu']:.1f}"} if "bleu" in found else {}
    facts["Components"] = METHODS[analysis.method]
    kinds = {row["kind"] for row in analysis.heads}
    return _template().render(
        findings=findings(analysis),
        made=[
            (group, option, _shown(option, value))
            for group, own in analysis.made.items()
            for option, value in own.items()
        ],
        tables=tables,
        script=_script(analysis, name) if script else None,
        samples=len(analysis.samples),
        unit="sentence" if analysis.one_sequence else "sentence pair",
        one_sequence=analysis.one_sequence,
        means=analysis.method == "means",
        sure=_sure(analysis),
        title=title,
        facts=facts,
        notes=notes(analysis),
        kinds=[_kind(analysis, kind) for kind in KINDS if kind in kinds],
        split_headings=SPLIT_HEADINGS,
        attributions=[name.replace("_", " ") for name in ATTRIBUTIONS],
        calibration=_calibration(analysis),
        example=_example(analysis, name) if analysis.samples else None,
        states=[(_word(row["states"]), row) for row in analysis.states],
    )


def calibration_of(analysis: Analysis) -> list[dict]:
    """Return the rank correlations between what shares say and how far attention moves.

    Returns:
        rows with the columns of :data:`~attnlib.analysis.interventions.CALIBRATION_COLUMNS`; none where no
        interventions were asked for.
    """
    even = {(row["kind"], row["layer"], row["head"]) for row in analysis.heads if is_even(row)}
    return calibration_rows(analysis.terms, analysis.interventions, even)


def _calibration(analysis: Analysis) -> list[tuple[str, list[str]]]:
    """Return by kind, way and side the rank correlation of every attribution, for all parts together."""
    cells: dict[str, list[str]] = {}
    for row in calibration_of(analysis):
        if row["part"] == "every":
            heading = f"{_KINDS[row['kind']]}, {row['way']}, {row['side']}"
            cells.setdefault(heading, []).append(number(row["rank_correlation"]))
    return list(cells.items())


def _script(analysis: Analysis, name: Name) -> dict:
    """The script, its checksum for the policy, and what it draws: nothing in it ends an element.

    Shares are not in it: the script takes them, as they are shown, from the tables of the page.
    """
    from markupsafe import Markup

    heads = [(row["kind"], row["layer"], row["head"]) for row in analysis.heads]
    data = {
        "maps": MAPS,
        "heads": heads,
        "samples": [_sample(analysis, own, heads, name) for own in analysis.samples],
    }
    code = SCRIPT.read_text(encoding="utf-8")
    return {
        "code": Markup(code),
        "sha256": base64.b64encode(hashlib.sha256(code.encode()).digest()).decode(),
        "data": Markup(json.dumps(data, separators=(",", ":")).replace("<", "\\u003c")),
    }


def _sample(analysis: Analysis, sample: Sample, heads: list[tuple[str, int, int]], name: Name) -> dict:
    words = words_of(analysis, sample, name)
    maps = [sample.maps[f"{kind}.{layer}", head].flatten() for kind, layer, head in heads]
    probe = None if sample.probe is None else _bytes(sample.probe / sample.probe.max().clamp(min=1e-30))
    return {
        "words": {of: list(map(visible, own)) for of, own in words.items()},
        "maps": _bytes(torch.cat(maps)),
        "probe": probe,
    }


def _bytes(weights: Tensor) -> str:
    """Weights from 0 to 1 as bytes from 0 to 254, and 255 where there is none."""
    whole = (weights.nan_to_num(0) * 254).round().clamp(0, 254).masked_fill(weights.isnan(), 255)
    return base64.b64encode(whole.to(torch.uint8).numpy().tobytes()).decode()


@cache
def _template(name: str = "report.html.j2") -> "Template":
    from jinja2 import Environment, FileSystemLoader, StrictUndefined

    made = Environment(
        loader=FileSystemLoader(Path(__file__).parent),
        autoescape=name.endswith(".html.j2"),
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    made.filters |= {"number": number, "square": square, "paint": _paint, "sentence": sentence}
    made.filters["is_even"] = is_even
    made.filters["percent"] = "{:.0%}".format
    return made.get_template(name)


def _kind(analysis: Analysis, kind: str) -> dict:
    """What the page says of all attentions of a kind: rows of tables with their headings, by column."""
    rows = {(row["layer"], row["head"]): row for row in analysis.heads if row["kind"] == kind}
    layers, heads = (sorted(set(own)) for own in zip(*rows, strict=True))
    shares: dict[str, dict[str, str]] = {}
    for row in shown_terms(analysis, analysis.terms):
        if row["kind"] == kind:
            shares.setdefault(_place(row), {})[row["term"]] = _interval(row, "covariance")
    return {
        "id": kind,
        "heads": heads,
        "even": {_place(row) for row in rows.values() if is_even(row)},
        "grid": [(f"layer {layer}", [rows.get((layer, head)) for head in heads]) for layer in layers],
        "rows": [(_place(row), row) for row in rows.values()],
        "splits": _splits(analysis, kind),
        "intervals": [(_place(row), [_interval(row, part) for part in _PARTS]) for row in rows.values()],
        "terms": list(shares.items()),
        "term_columns": {term: term for row in shares.values() for term in row},
    }


def _splits(analysis: Analysis, kind: str) -> list[tuple[str, list[str]]]:
    """Return by head the own, split and any-term share of each part, as :data:`SPLIT_HEADINGS` has them."""
    cells: dict[str, list[str]] = {}
    for row in part_rows(analysis.heads, analysis.terms):
        if row["kind"] == kind:
            named = {"split_share": row["split_share"], "split_low": row["split_low"]}
            named["split_high"] = row["split_high"]
            shown = [number(row["own_share"]), _interval(named, "split"), number(row["any_term_share"])]
            cells.setdefault(_place(row), []).extend(shown)
    return list(cells.items())


def _interval(row: dict, part: str) -> str:
    share, low, high = (row[f"{part}_{name}"] for name in ("share", "low", "high"))
    return number(share) if math.isnan(low) else f"{number(share)} [{number(low)}, {number(high)}]"


def _example(analysis: Analysis, name: Name) -> dict:
    example = analysis.samples[0]
    words = {of: list(map(_word, own)) for of, own in words_of(analysis, example, name).items()}
    maps, drawn = [], {}
    for place, weights in example.attention.items():
        if sum(own.numel() for own in (*drawn.values(), weights)) <= MOST_CELLS and len(drawn) < MOST_MAPS:
            drawn[place] = weights
    for (at, head), weights in drawn.items():
        kind, layer = at.split(".")
        rows, columns = (words[of] for of in SIDES[kind])
        place = kind, _place({"layer": layer, "head": head})
        maps.append((*place, columns, list(zip(rows, weights.tolist(), strict=True))))
    longest, shown = (max(own) for own in (example.lengths or (0, 0), map(len, words.values())))
    return {
        "maps": maps,
        "hatched": any(math.isnan(own) for *_, rows in maps for _, row in rows for own in row),
        "more": len(example.attention) - len(maps),
        "cut": shown if longest > shown else None,
        "lengths": example.lengths,
    }


def _place(row: dict) -> str:
    return f"layer {row['layer']}, head {row['head']}"


def number(value: float | int) -> str:
    """A number with two decimals, a count with none; a dash where it is undefined.

    >>> number(-0.001), number(12_000), number(math.nan)
    ('0.00', '12,000', '–')
    """
    if isinstance(value, int):
        return f"{value:,}"
    if math.isnan(value):
        return "–"
    shown = f"{value:.2f}".replace("-", "−")
    return shown.removeprefix("−") if set(shown) <= set("−0.") else shown


def square(value: float, colour: str) -> str:
    """The style of a cell, as strong as its value, between −1 and 1, is large; hatched where negative."""
    strength = min(1.0, abs(value))
    paint = _paint((0.9 if colour in COLOURS else 0.35) * strength, COLOURS.get(colour, PLAIN))
    if value < -0.005:  # a sign must not hang on a hue
        paint = f"repeating-linear-gradient(45deg,{paint} 0 3px,transparent 3px 6px)"
    white = ";color:#fff" if strength > STRONG and value > 0 and colour in COLOURS else ""
    return f"background:{paint}{white}"


def _paint(strength: float, colour: str = PLAIN) -> str:
    return f"color-mix(in srgb,{colour} {100 * strength:.0f}%,transparent)"


# -- words of anybody's corpus as text: nothing of it runs, and nothing of it hides --

# Control, format (bidi marks are), surrogate, private, unassigned, and the spaces that are not a blank.
_HIDDEN = {"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp", "Zs"}
# Letters and marks that draw nothing: what Unicode calls Default_Ignorable_Code_Point beside the categories
# above (joiner, Hangul fillers, inherent vowels of Khmer, variation selectors), and Braille without a dot.
_BLANK = {
    *map(ord, "\u034f\u115f\u1160\u17b4\u17b5\u180b\u180c\u180d\u180f\u2800\u3164\uffa0"),
    *range(0xFE00, 0xFE10),
    *range(0xE0100, 0xE01F0),
}
SHOWN, SENTENCE = 60, 500  # characters of a word, and of a sentence


def visible(word: str, most: int = SHOWN, *, spaces: bool = False) -> str:
    """A word with every character to be seen: spaces as ␣ unless ``spaces``, by code those that draw nothing.

    A combining mark with no letter before it is on a dotted circle; beyond ``most`` characters it is cut off.

    >>> visible("a b\\x00\\u202ec")
    'a␣b␀⟨U+202E⟩c'
    """
    space = " " if spaces else "␣"
    shown = "".join(space if character == " " else _seen(character) for character in word[:most])
    if shown and unicodedata.category(shown[0]).startswith("M"):
        shown = "◌" + shown  # else it would sit on the letter before the word
    return (shown or "⟨empty⟩") + ("…" if len(word) > most else "")


def _seen(character: str) -> str:
    code = ord(character)
    if code < 0x20:
        return chr(0x2400 + code)  # Unicode's pictures of the control characters
    if unicodedata.category(character) in _HIDDEN or code in _BLANK:
        return f"⟨U+{code:04X}⟩"
    return character


def sentence(text: str) -> str:
    return visible(text, SENTENCE, spaces=True)


def _word(text: str) -> "Markup":
    """A visible word, escaped and kept apart from the direction of its neighbours."""
    from markupsafe import Markup

    return Markup("<bdi>{}</bdi>").format(visible(text))

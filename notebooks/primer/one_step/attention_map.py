"""An interactive map of attention as one self-contained piece of HTML: words, a slider for the training step.

It works by mouse and by keyboard, needs no network, follows light and dark pages, and has a table behind it
for screen readers and for pages without scripts.
"""

import hashlib
import html
import json
from pathlib import Path

import jinja2

END = "<eos>"  # the last word of a side, which is no word of the sentence


def attention_map(rows: list[dict], place: int = 0) -> str:
    """The map of one pair of sentences, from a row for each snapshot, target and source place.

    It starts before training, at the word in one place of the translation. Its name for screen readers has
    the source sentence, since a page may hold several.
    """
    data = _gathered(rows)
    encoded = json.dumps(data, ensure_ascii=True, separators=(",", ":")).replace("<", "\\u003c")
    name = f"attention-map-{hashlib.sha256(encoded.encode()).hexdigest()[:10]}"
    sentence = " ".join(word for word in data["source"] if word != END)
    label = f"Attention, word by word, to “{sentence}”"
    page = jinja2.Environment(undefined=jinja2.StrictUndefined)
    page.filters["text"] = html.escape
    template = page.from_string(Path(__file__).with_suffix(".html.jinja").read_text(encoding="utf-8"))
    return template.render(data, name=name, label=label, encoded=encoded, place=place)


def _gathered(rows: list[dict]) -> dict:
    steps = sorted({row["step"] for row in rows})
    source = {row["source_place"]: row["source"] for row in rows}
    target = {row["target_place"]: row["target"] for row in rows}
    attention = [[[0.0] * len(source) for _ in target] for _ in steps]
    probability = [[0.0] * len(target) for _ in steps]
    for row in rows:
        snapshot, s = steps.index(row["step"]), row["target_place"]
        attention[snapshot][s][row["source_place"]] = round(float(row["attention"]), 3)
        probability[snapshot][s] = round(float(row["probability"]), 3)
    return {
        "steps": steps,
        "source": [str(source[t]) for t in range(len(source))],
        "target": [str(target[s]) for s in range(len(target))],
        "attention": attention,
        "probability": probability,
    }

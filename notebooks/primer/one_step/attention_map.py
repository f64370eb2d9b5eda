"""An interactive map of attention as one self-contained piece of HTML: words, a slider for the training step.

It works by mouse and by keyboard, needs no network, follows light and dark pages, and has a table behind it
for screen readers and for pages without scripts. All words are escaped: they come from data.
"""

import hashlib
import html
import json

Row = dict[str, object]

END = "<eos>"  # the last word of a side, which is no word of the sentence

_STYLE = """
.attention-map{margin:1rem 0;padding:.8rem 1rem;border:1px solid #8886;border-radius:.4rem}
.attention-map .words{display:flex;flex-wrap:wrap;gap:.4rem;margin:.3rem 0 .7rem;padding:0;list-style:none}
.attention-map .words li{margin:0}
.attention-map .source li,.attention-map button{font:inherit;color:inherit;padding:.25rem .55rem;
  border-radius:.3rem}
.attention-map .source li{position:relative;border:1px solid #8884;text-align:center;min-width:2.6rem;
  overflow:hidden}
.attention-map .fill{position:absolute;inset:auto 0 0 0;height:0;background:#009e73;opacity:.35}
.attention-map .source span{position:relative}
.attention-map .source .fill{position:absolute}
.attention-map small{display:block;position:relative;font-variant-numeric:tabular-nums}
.attention-map button{background:transparent;border:1px solid #8886;cursor:pointer}
.attention-map button[aria-pressed=true]{background:#0072b2;color:#fff;border-color:#0072b2}
.attention-map :is(button,input):focus-visible{outline:3px solid #d55e00;outline-offset:1px}
.attention-map label{display:flex;gap:.8rem;align-items:center;flex-wrap:wrap}
.attention-map input{flex:1;min-width:8rem}
.attention-map output{min-width:7.5rem;font-variant-numeric:tabular-nums}
.attention-map details{overflow-x:auto}
.attention-map summary{cursor:pointer}
.attention-map table{border-collapse:collapse;margin:.5rem 0;font-variant-numeric:tabular-nums}
.attention-map :is(th,td){padding:.2rem .6rem;text-align:right;white-space:nowrap;
  border-bottom:1px solid #8884}
.attention-map tr :first-child{text-align:left}
"""

# Every name is local to the function; the data stands in a script element of its own, as JSON.
_SCRIPT = """
(() => {
  const root = document.getElementById(ID);
  const data = JSON.parse(root.querySelector('script[type="application/json"]').textContent);
  const slider = root.querySelector('input'), shown = root.querySelector('output');
  const buttons = [...root.querySelectorAll('.target button')];
  const cells = [...root.querySelectorAll('.source li')];
  const said = root.querySelector('[aria-live]'), title = root.querySelector('summary span');
  const table = [...root.querySelectorAll('tbody tr')].map(row => [...row.querySelectorAll('td')]);
  let place = 0;
  const draw = () => {
    const look = Number(slider.value), row = data.attention[look][place];
    shown.textContent = data.steps[look] + ' updates';
    slider.setAttribute('aria-valuetext', shown.textContent);
    cells.forEach((cell, t) => {
      cell.querySelector('.fill').style.height = (100 * row[t]) + '%';
      cell.querySelector('small').textContent = row[t].toFixed(2);
    });
    title.textContent = shown.textContent;
    table.forEach((row, s) => row.forEach((cell, t) => {
      cell.textContent = data.attention[look][s][t].toFixed(2);
    }));
    buttons.forEach((button, s) => button.setAttribute('aria-pressed', String(s === place)));
    const best = row.indexOf(Math.max(...row));
    said.textContent = 'Predicting \\u201c' + data.target[place] + '\\u201d (probability ' +
      data.probability[look][place].toFixed(2) + '): most attention, ' + row[best].toFixed(2) +
      ', on \\u201c' + data.source[best] + '\\u201d.';
  };
  buttons.forEach((button, s) => {
    const choose = () => { place = s; draw(); };
    button.addEventListener('click', choose);
    button.addEventListener('focus', choose);
    button.addEventListener('mouseenter', choose);
    button.addEventListener('keydown', event => {
      const move = {ArrowRight: 1, ArrowLeft: -1}[event.key];
      if (move) { event.preventDefault(); buttons[(s + move + buttons.length) % buttons.length].focus(); }
    });
  });
  slider.addEventListener('input', draw);
  draw();
})();
"""


def attention_map(rows: list[Row]) -> str:
    """The map of one pair of sentences.

    Args:
        rows: of one pair, a row a look, target and source place: ``step``, ``target_place``,
            ``source_place``, ``target``, ``source``, ``attention``, ``probability`` (of the target word).

    Returns:
        HTML; the last look is shown first. The same rows give the same text. Its name for screen readers
        has the source sentence, since a page may hold several.
    """
    data = _gathered(rows)
    encoded = json.dumps(data, ensure_ascii=True, separators=(",", ":")).replace("<", "\\u003c")
    name = f"attention-map-{hashlib.sha256(encoded.encode()).hexdigest()[:10]}"
    last = len(data["steps"]) - 1
    source = "".join(
        f'<li><span class="fill"></span><span>{html.escape(word)}</span><small></small></li>'
        for word in data["source"]
    )
    target = "".join(
        f'<li><button type="button" aria-pressed="false">{html.escape(word)}</button></li>'
        for word in data["target"]
    )
    label = html.escape(f"Attention, word by word, to “{_sentence(data['source'])}”")
    return (
        f'<div class="attention-map" id="{name}" role="group" aria-label="{label}">'
        f"<style>{_STYLE}</style>"
        f'<div>Source</div><ul class="words source">{source}</ul>'
        f'<div>Translation: choose a word</div><ul class="words target">{target}</ul>'
        f'<label>Training <input type="range" min="0" max="{last}" step="1" value="{last}">'
        f"<output>{data['steps'][-1]} updates</output></label>"
        f'<p aria-live="polite"></p>{_table(data)}'
        f'<script type="application/json">{encoded}</script>'
        f"<script>{_SCRIPT.replace('ID', json.dumps(name), 1)}</script></div>"
    )


def _gathered(rows: list[Row]) -> dict:
    """Words, and attention by look, target place and source place, rounded to three digits."""
    steps = sorted({row["step"] for row in rows})
    source = {row["source_place"]: row["source"] for row in rows}
    target = {row["target_place"]: row["target"] for row in rows}
    attention = [[[0.0] * len(source) for _ in target] for _ in steps]
    probability = [[0.0] * len(target) for _ in steps]
    for row in rows:
        look, s = steps.index(row["step"]), row["target_place"]
        attention[look][s][row["source_place"]] = round(float(row["attention"]), 3)
        probability[look][s] = round(float(row["probability"]), 3)
    return {
        "steps": steps,
        "source": [str(source[t]) for t in range(len(source))],
        "target": [str(target[s]) for s in range(len(target))],
        "attention": attention,
        "probability": probability,
    }


def _sentence(words: list[str]) -> str:
    """Words in a row, without the end mark.

    >>> _sentence(["i", "love", "you", "<eos>"])
    'i love you'
    """
    return " ".join(word for word in words if word != END)


def _table(data: dict) -> str:
    """All rows as a table, closed until asked for; of the last look, until the slider moves."""
    head = "".join(f'<th scope="col">{html.escape(word)}</th>' for word in data["source"])
    body = "".join(
        f'<tr><th scope="row">{html.escape(word)}</th>'
        + "".join(f"<td>{weight:.2f}</td>" for weight in row)
        + "</tr>"
        for word, row in zip(data["target"], data["attention"][-1], strict=True)
    )
    title = f"The same as a table, after <span>{data['steps'][-1]} updates</span>"
    return (
        f"<details><summary>{title}</summary><table><thead><tr>"
        f'<th scope="col">predicted \\ source</th>{head}</tr></thead><tbody>{body}</tbody></table></details>'
    )

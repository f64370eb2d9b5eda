"use strict";
// The page without this script holds every number; with it tables sort by a click on a heading, and a click
// on a head shows its terms and its attention. Words are put in as text, never as markup.
const data = JSON.parse(document.getElementById("data").textContent);
const panel = document.getElementById("head");
const make = (tag, text, more = {}) => Object.assign(document.createElement(tag), { textContent: text }, more);
const number = (value) => (value === null ? "–" : value.toFixed(2).replace(/^-0\.00$/, "0.00").replace("-", "−"));

// -- sorting: a second click turns the order round --

const valueOf = (row, column) => {
  const text = row.children[column].textContent.replace("−", "-").replace(/,/g, "").replace(/ \[.*/, "");
  return column === 0 ? null : parseFloat(text);
};
for (const table of document.querySelectorAll("table.sorted")) {
  const body = table.tBodies[0], order = [...body.rows];
  [...table.tHead.rows[0].children].forEach((heading, column) => {
    const sort = () => {
      const down = heading.getAttribute("aria-sort") !== "descending";
      for (const other of heading.parentElement.children) other.removeAttribute("aria-sort");
      heading.setAttribute("aria-sort", down ? "descending" : "ascending");
      const sorted = column === 0 ? (down ? [...order].reverse() : order) : [...order].sort((one, other) => {
        const [mine, theirs] = [valueOf(one, column), valueOf(other, column)];
        if (isNaN(mine) || isNaN(theirs)) return isNaN(mine) - isNaN(theirs); // what is undefined comes last
        return down ? theirs - mine : mine - theirs;
      });
      body.append(...sorted);
    };
    press(heading, sort);
  });
}

function press(element, act) {
  element.tabIndex = 0;
  element.classList.add("press");
  element.addEventListener("click", act);
  element.addEventListener("keydown", (event) => {
    if (event.key === "Enter" || event.key === " ") { event.preventDefault(); act(); }
  });
}

// -- one head --

const bytes = (text) => Uint8Array.from(atob(text), (character) => character.charCodeAt(0));
const weights = data.samples.map((sample) => bytes(sample.maps));
const sides = { cross: ["target", "source"], encoder_self: ["source", "source"], decoder_self: ["read", "read"] };
let shown = null, sentence = 0, map = 0;

function weightsOf(sample, index, which) {
  // Maps are one after the other: of each head those of data.maps, row by row.
  let start = 0;
  const size = ([kind]) => sides[kind].reduce((all, side) => all * data.samples[sample].words[side].length, 1);
  for (let before = 0; before < index; before++) start += data.maps.length * size(data.heads[before]);
  const own = size(data.heads[index]);
  return weights[sample].subarray(start + which * own, start + (which + 1) * own);
}

function termsTable(head) {
  const names = data.terms[head[0]], table = make("table", "");
  const pairs = names.map((name) => name.split("·")).filter((pair) => pair.length === 2);
  const [asks, answers] = [0, 1].map((side) => [...new Set(pairs.map((pair) => pair[side]))]);
  const top = table.createTHead().insertRow();
  top.append(make("td", ""), ...answers.map((part) => make("th", part, { scope: "col" })));
  const body = table.createTBody();
  for (const one of asks) {
    const row = body.insertRow();
    row.append(make("th", one, { scope: "row" }));
    for (const other of answers) row.append(make("td", number(head[3][names.indexOf(`${one}·${other}`)] ?? null)));
  }
  const bias = names.indexOf("position bias");
  if (bias >= 0) body.insertRow().append(make("th", "position bias"), make("td", number(head[3][bias])));
  return table;
}

function mapTable(sample, kind, values) {
  const [rows, columns] = sides[kind].map((side) => data.samples[sample].words[side]);
  const table = make("table", "", { className: "map" }), top = table.createTHead().insertRow();
  const word = (text) => { const cell = make("th", ""); cell.append(make("bdi", text)); return cell; };
  top.append(make("td", ""), ...columns.map(word));
  const body = table.createTBody();
  rows.forEach((text, at) => {
    const row = body.insertRow();
    row.append(word(text));
    columns.forEach((_, place) => {
      const value = values[at * columns.length + place], cell = row.insertCell();
      if (value === 255) Object.assign(cell, { className: "out", title: "left out" });
      else {
        cell.title = (value / 254).toFixed(2);
        cell.style.background = `color-mix(in srgb,currentColor ${(100 * value) / 254}%,transparent)`;
      }
    });
  });
  return table;
}

function choice(label, options, chosen, change) {
  const box = make("label", `${label} `), list = make("select", "");
  options.forEach((text, index) => list.append(make("option", text, { value: index, selected: index === chosen })));
  list.addEventListener("change", () => { change(Number(list.value)); show(); });
  box.append(list);
  return box;
}

function show() {
  const head = data.heads[shown], [kind, layer, place] = head;
  panel.replaceChildren(
    make("h2", `${kind.replace("_", " ")}, layer ${layer}, head ${place}`),
    make("p", "Share of every term, part of the query (rows) with part of the key (columns)."),
    termsTable(head),
  );
  if (data.samples.length) {
    const probe = kind === "cross" && data.samples[sentence].probe;
    const maps = [...data.maps, ...(probe ? ["the lexical probe, scaled to its largest value"] : [])];
    map = Math.min(map, maps.length - 1);
    const values = map < data.maps.length ? weightsOf(sentence, shown, map) : bytes(data.samples[sentence].probe);
    const texts = data.samples.map((sample, index) => `${index + 1}: ${sample.words.source.join(" ").slice(0, 60)}`);
    const wide = make("div", "", { className: "wide" });
    wide.append(mapTable(sentence, kind, values));
    panel.append(
      choice("Sentence", texts, sentence, (value) => { sentence = value; }),
      " ",
      choice("Attention", maps, map, (value) => { map = value; }),
      wide,
    );
  }
  panel.hidden = false;
}

const indices = new Map(data.heads.map(([kind, layer, place], index) => [`${kind}.${layer}.${place}`, index]));
const opens = (element, kind, layer, place) => {
  const index = indices.get(`${kind}.${layer}.${place}`);
  if (index === undefined) return;
  press(element, () => { shown = index; show(); panel.scrollIntoView({ block: "start" }); });
};
for (const part of document.querySelectorAll("[data-kind]")) {
  for (const grid of part.querySelectorAll("table.grid")) {
    const heads = [...grid.tHead.rows[0].cells].slice(1).map((cell) => cell.textContent);
    for (const row of grid.tBodies[0].rows) {
      const layer = row.cells[0].textContent.replace("layer ", "");
      [...row.cells].slice(1).forEach((cell, at) => opens(cell, part.dataset.kind, layer, heads[at]));
    }
  }
  for (const heading of part.querySelectorAll("table.sorted tbody th")) {
    const [, layer, place] = heading.textContent.match(/layer (\d+), head (\d+)/);
    opens(heading, part.dataset.kind, layer, place);
  }
}

"use strict";
// The page without this script holds every number; with it tables sort by a click on a heading, and a click
// on a head opens a panel at the foot of the window with its shares, as the tables have them, and its
// attention. Words are put in as text, never as markup.
const data = JSON.parse(document.getElementById("data").textContent);
const panel = document.getElementById("head");
const part = (name) => document.getElementById(name);
const make = (tag, text, more = {}) => Object.assign(document.createElement(tag), { textContent: text }, more);

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
let sentence = 0, map = 0;

function weightsOf(sample, index, which) {
  // Maps are one after the other: of each head those of data.maps, row by row.
  let start = 0;
  const size = ([kind]) => sides[kind].reduce((all, side) => all * data.samples[sample].words[side].length, 1);
  for (let before = 0; before < index; before++) start += data.maps.length * size(data.heads[before]);
  const own = size(data.heads[index]);
  return weights[sample].subarray(start + which * own, start + (which + 1) * own);
}

// A share and, below it, its interval, as they are in a cell of the page's tables.
function share(text = "–") {
  const [value, interval] = text.split(/ (?=\[)/), cell = make("td", value);
  if (interval) cell.append(make("small", interval));
  return cell;
}

function sharesTable(columns, rows) {
  const table = make("table", ""), top = table.createTHead().insertRow(), body = table.createTBody();
  top.append(make("td", ""), ...columns.map((name) => make("th", name, { scope: "col" })));
  for (const [name, shares] of rows) body.insertRow().append(make("th", name, { scope: "row" }), ...shares.map(share));
  const wide = make("div", "", { className: "wide" });
  wide.append(table);
  return wide;
}

// What a table of the page says of a head: column → text.
const said = (row) =>
  new Map([...row.closest("table").tHead.rows[0].cells].map((cell, at) => [cell.textContent, row.cells[at].textContent]).slice(1));

function sharesOf(head) {
  const parts = said(head.rows.parts), terms = said(head.rows.terms);
  const pairs = [...terms.keys()].map((name) => name.split("·")).filter((pair) => pair.length === 2);
  const [queries, keys] = [0, 1].map((side) => [...new Set(pairs.map((pair) => pair[side]))]);
  const rows = queries.map((one) => [one, keys.map((other) => terms.get(`${one}·${other}`))]);
  if (terms.has("position bias")) rows.push(["position bias", [terms.get("position bias")]]);
  return [
    make("h3", "Share of each part, and its interval"),
    sharesTable([...parts.keys()], [["share", [...parts.values()]]]),
    make("h3", "Share of each term: part of the query (rows) with part of the key (columns)"),
    sharesTable(keys, rows),
  ];
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
      if (value === 255) Object.assign(cell, { className: "out", title: "unseen or left out" });
      else {
        cell.title = (value / 254).toFixed(2);
        cell.style.background = `color-mix(in srgb,currentColor ${(100 * value) / 254}%,transparent)`;
      }
    });
  });
  return table;
}

function choose(label, options, chosen, change) {
  const box = make("label", `${label} `), list = make("select", "");
  options.forEach((text, index) => list.append(make("option", text, { value: index, selected: index === chosen })));
  list.addEventListener("change", () => change(Number(list.value)));
  box.append(list);
  return box;
}

// -- the panel: one head is chosen, and marked wherever the page names it --

const heads = data.heads.map(([kind, layer, place], index) => ({ kind, layer, place, index, cells: [], rows: {} }));
const named = new Map(heads.map((head) => [`${head.kind}.${head.layer}.${head.place}`, head]));
const headOf = new Map(); // of a cell
let shown = null, opener = null;

function showMap() {
  const own = data.samples[sentence], probe = shown.kind === "cross" && own.probe;
  const maps = [...data.maps, ...(probe ? ["the lexical probe, scaled to its largest value"] : [])];
  map = Math.min(map, maps.length - 1);
  const texts = data.samples.map((sample, index) => `${index + 1}: ${sample.words.source.join(" ").slice(0, 60)}`);
  const at = [...part("choices").querySelectorAll("select")].indexOf(document.activeElement);
  part("choices").replaceChildren(
    choose("Sentence", texts, sentence, (value) => { sentence = value; showMap(); }),
    " ",
    choose("Attention", maps, map, (value) => { map = value; showMap(); }),
  );
  if (at >= 0) part("choices").querySelectorAll("select")[at].focus();
  const values = map < data.maps.length ? weightsOf(sentence, shown.index, map) : bytes(own.probe);
  part("map").replaceChildren(mapTable(sentence, shown.kind, values));
}

function mark(head, chosen) {
  for (const cell of head.cells) {
    if (chosen) cell.setAttribute("aria-current", "true");
    else cell.removeAttribute("aria-current");
  }
}

function open(cell) {
  if (shown) mark(shown, false);
  [opener, shown] = [cell, headOf.get(cell)];
  mark(shown, true);
  const kind = cell.closest("[data-kind]").querySelector("h2").textContent.split(":")[0];
  part("head-name").textContent = `${kind}, layer ${shown.layer}, head ${shown.place}`;
  const even = shown.rows.terms.classList.contains("even");
  part("evenly").hidden = !even;
  part("shares").className = even ? "even" : "";
  part("shares").replaceChildren(...sharesOf(shown));
  if (data.samples.length) showMap();
  cell.closest("figure, details").after(panel); // next in the order of the tabulator key
  panel.hidden = false;
  cell.scrollIntoView({ block: "nearest", inline: "nearest" });
}

function close() {
  if (panel.hidden) return;
  panel.hidden = true;
  mark(shown, false);
  opener.focus();
}

const steps = { ArrowLeft: [0, -1], ArrowRight: [0, 1], ArrowUp: [-1, 0], ArrowDown: [1, 0] };
// The next head in the direction of an arrow; places without one are passed over.
function neighbour(cell, [down, right]) {
  const { rows } = cell.closest("tbody");
  let [row, column] = [cell.parentElement.sectionRowIndex, cell.cellIndex], found;
  do found = rows[(row += down)]?.cells[(column += right)];
  while (found && !headOf.has(found));
  return found;
}

function opens(cell, name) {
  const head = named.get(name);
  if (!head) return;
  headOf.set(cell, head);
  head.cells.push(cell);
  const stop = () => cell.closest("tbody").querySelector("[tabindex='0']"); // one a table
  const first = !stop();
  press(cell, () => open(cell));
  if (!first) cell.tabIndex = -1;
  cell.addEventListener("focus", () => { stop().tabIndex = -1; cell.tabIndex = 0; });
  cell.addEventListener("keydown", (event) => {
    const next = event.key in steps && neighbour(cell, steps[event.key]);
    if (!next) return;
    event.preventDefault();
    next.focus();
    if (!panel.hidden) open(next);
  });
}

for (const section of document.querySelectorAll("[data-kind]")) {
  const { kind } = section.dataset;
  for (const cell of section.querySelectorAll("table.sorted tbody th")) {
    const [, layer, place] = cell.textContent.match(/layer (\d+), head (\d+)/), name = `${kind}.${layer}.${place}`;
    for (const table of ["parts", "terms"]) {
      if (cell.closest("table").classList.contains(table)) named.get(name).rows[table] = cell.parentElement;
    }
    opens(cell, name);
  }
  for (const grid of section.querySelectorAll("table.grid")) {
    const columns = [...grid.tHead.rows[0].cells].map((cell) => cell.textContent);
    for (const row of grid.tBodies[0].rows) {
      const layer = row.cells[0].textContent.replace("layer ", "");
      [...row.cells].slice(1).forEach((cell) => opens(cell, `${kind}.${layer}.${columns[cell.cellIndex]}`));
    }
  }
}
panel.querySelector("button").addEventListener("click", close);
document.addEventListener("keydown", (event) => { if (event.key === "Escape") close(); });

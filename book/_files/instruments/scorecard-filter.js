// Search and filters of the scorecard's statements. They are in the page; this hides those that are not asked for.
"use strict";
Instruments.start("scorecard-filter", (stage, data) => {
  const { make, menu, readout, changed } = Instruments;
  const ANY = ["", "any"], state = { search: "", chapter: "", outcome: "", source: "", kind: "" };
  const FILTERS = { chapter: "Chapter", outcome: "What came out", source: "Source", kind: "Kind" };
  let rows = null;

  const list = () => document.querySelector("details.all-claims");

  /** What each row is, read from the page once it is there. */
  function read() {
    rows = [...document.querySelectorAll("details.claim-row")].map(row => ({ row, text: row.textContent.toLowerCase() }));
    for (const [name, part] of Object.entries(menus)) {
      const there = [...new Set(rows.map(({ row }) => row.dataset[name]))].sort();
      part.fill([ANY, ...there.map(value => [value, name === "kind" ? data.kinds[value] : value])]);
    }
  }

  const search = make("input", {
    type: "text", placeholder: "words of the statement",
    oninput: () => { state.search = search.value; changed(search); },
  });
  const menus = Object.fromEntries(Object.entries(FILTERS).map(([name, title]) =>
    [name, menu(title, [ANY], () => state[name], value => { state[name] = value; })]));
  const said = readout("");
  stage.append(make("div", { class: "controls" }, make("label", {}, "Search ", search),
    ...Object.values(menus).map(part => part.element)), said.element);

  function draw() {
    if (!rows?.length) read();
    if (!rows.length) return; // they are below in the page
    if (search.value !== state.search) search.value = state.search;
    for (const [name, part] of Object.entries(menus)) {
      if (state[name] && !rows.some(({ row }) => row.dataset[name] === state[name])) state[name] = "";
      part.draw();
    }
    const words = state.search.toLowerCase().split(/\s+/).filter(Boolean);
    let shown = 0;
    for (const { row, text } of rows) {
      const filtered = Object.keys(FILTERS).some(name => state[name] && row.dataset[name] !== state[name]);
      row.hidden = filtered || !words.every(word => text.includes(word));
      shown += !row.hidden;
    }
    if (Object.values(state).some(Boolean)) list().open = true;
    said.say(`${shown} of ${rows.length} statements match.`);
  }

  /** Open the row that a link leads to, which may be filtered out. */
  function follow() {
    const place = document.getElementById(location.hash.slice(1)), row = place?.closest("details.claim-row");
    if (!row) return;
    if (row.hidden) {
      for (const name of Object.keys(state)) state[name] = "";
      draw();
    }
    list().open = true;
    row.open = true;
    row.scrollIntoView();
  }
  addEventListener("DOMContentLoaded", () => { draw(); follow(); });
  addEventListener("hashchange", follow);
  return { state, draw, link: false };
});

// A filter of the scorecard's rows by verdict, kind and paper. The rows are in the page; this hides those that are not asked for.
"use strict";
Instruments.start("scorecard-filter", (stage, data) => {
  const { make, menu, readout } = Instruments;
  const ANY = ["", "any"], state = { verdict: "", kind: "", paper: "" };
  const KINDS = { said: "said by its paper", inferred: "inferred by us", predicted: "predicted by us",
    falsifier: "what would change our mind", reading: "what our own sentences rest on" };
  let rows = null;

  const CLAIM = "tr:has([id^='claim-'])", title = section => section.querySelector("h2, h3").firstChild.textContent.trim();

  /** What each row is, read from the page once it is there. */
  function read() {
    rows = [...document.querySelectorAll(CLAIM)].map(row => {
      const inner = row.closest("section"), paper = row.closest("section:has(> h2)");
      const said = row.querySelector("td em")?.textContent.match(/^\w+/)?.[0];
      const kind = inner === paper ? said : title(inner) === "What would change our mind" ? "falsifier" : "reading";
      const verdict = row.cells[data.column].querySelector(".verdict").textContent;
      return { row, kind, verdict, paper: title(paper) };
    });
    for (const [name, part] of Object.entries(menus)) {
      const there = [...new Set(rows.map(own => own[name]))];
      part.fill([ANY, ...there.map(value => [value, name === "kind" ? KINDS[value] ?? value : value])]);
    }
  }

  const titles = { verdict: `Verdict at the ${data.profile} profile`, kind: "Kind", paper: "From" };
  const menus = Object.fromEntries(Object.entries(titles).map(([name, title]) =>
    [name, menu(title, [ANY], () => state[name], value => { state[name] = value; })]));
  const said = readout("");
  stage.append(make("div", { class: "controls" }, ...Object.values(menus).map(part => part.element)), said.element);

  function draw() {
    if (!rows?.length) read();
    if (!rows.length) return; // they are below in the page
    for (const [name, part] of Object.entries(menus)) {
      if (state[name] && !rows.some(own => own[name] === state[name])) state[name] = "";
      part.draw();
    }
    let shown = 0;
    for (const { row, ...own } of rows) {
      row.hidden = Object.entries(own).some(([name, value]) => state[name] && value !== state[name]);
      shown += !row.hidden;
    }
    // A heading or a table without rows goes with them.
    for (const part of document.querySelectorAll("section:has(> :is(h2, h3)), table")) {
      const own = [...part.querySelectorAll(CLAIM)];
      if (own.length) part.hidden = own.every(row => row.hidden);
    }
    said.say(`${shown} of ${rows.length} claims are shown.`);
  }
  addEventListener("DOMContentLoaded", draw);
  addEventListener("hashchange", () => { // a link leads to a row that is hidden
    if (!document.getElementById(location.hash.slice(1))?.closest("tr")?.hidden) return;
    for (const name of Object.keys(state)) state[name] = "";
    draw();
    document.getElementById(location.hash.slice(1)).scrollIntoView();
  });
  return { state, draw };
});

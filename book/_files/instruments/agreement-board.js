// The agreement board: printed against our numbers of three tables, with chance, interval and ξ; in the first table, whose
// measure the courses are of, a click shows the course along training.
"use strict";
Instruments.start("agreement-board", (stage, data) => {
  const { make, choice, readout, plot, marker, clamp, changed, SHAPES } = Instruments;
  const state = { set: 0, column: 0, choice: data.choices.at(-1), table: data.tables[0] };
  const shown = choice("Show", data.tables.map(name => [name, name]), name => name === state.table,
    name => { state.table = name; });
  const chosen = choice("Checkpoints are chosen", data.choices.map(name => [name, name]), name => name === state.choice,
    name => { state.choice = name; });
  const said = readout("");
  const measure = () => data.measures[data.tables.indexOf(state.table)], hasCourse = () => state.table === data.tables[0];
  const low = () => (measure() === "kendall" ? -100 : 0); // a rank correlation may be negative
  const WIDTH = 88, across = value => 4 + (clamp(value, low(), 100) - low()) * (WIDTH - 8) / (100 - low());
  const whole = value => String(Math.round(value) || 0).replace("-", "−");

  function cell(set, n) {
    const table = data.tables.indexOf(state.table), { name, chance, cells } = data.sets[set], own = cells[n].of[table];
    return { name, chance: chance[table], ...own, own: own.own[state.choice], xi: own.xi[state.choice][0] };
  }

  const percent = (value, nothing) => value === null ? nothing : `${whole(value)} %`;

  function words(set, n) {
    const { name, chance, own: [value, low, high], printed, xi, printedXi } = cell(set, n);
    return `${name}, ${data.columns[n][1]}, ${state.table.replace(/ \(.*/, "")}: ours ${percent(value, "nothing")}`
      + (low === null ? "" : ` (${whole(low)} to ${whole(high)})`)
      + `, printed ${percent(printed, "nothing")}, chance ${percent(chance)};`
      + ` ξ ours ${percent(xi, "never")}, printed ${percent(printedXi, "nothing")}.`;
  }

  function strip(set, n) {
    const { chance, own: [value, low, high], printed } = cell(set, n), y = 10;
    const parts = [make("line", { x1: 4, x2: WIDTH - 4, y1: y, y2: y, class: "grid" }),
      make("line", { x1: across(chance), x2: across(chance), y1: 1, y2: 19, class: "at" })];
    if (low !== null) parts.push(make("line", { x1: across(low), x2: across(high), y1: y, y2: y, class: "bar" }));
    const point = (look, shape, at) => make("path", {
      class: `point ${look}`, d: SHAPES[shape], transform: `translate(${across(at)} ${y}) scale(1.15)`,
    });
    if (value !== null) parts.push(point("three", "circle", value));
    if (printed !== null) parts.push(point("one open", "diamond", printed));
    return make("svg", { viewBox: `0 0 ${WIDTH} 20`, width: WIDTH, height: 20, "aria-hidden": "true" }, ...parts);
  }

  const buttons = data.sets.map((_, set) => data.columns.map((_, n) => make("button", {
    type: "button",
    onclick: () => { Object.assign(state, { set, column: n }); changed(stage); },
    onmouseenter: () => said.say(words(set, n)),
    onfocus: () => said.say(words(set, n)),
    onkeydown: event => {
      const [down, right] = { ArrowDown: [1, 0], ArrowUp: [-1, 0], ArrowRight: [0, 1], ArrowLeft: [0, -1] }[event.key] ?? [];
      if (down === undefined) return;
      event.preventDefault();
      buttons[set + down]?.[n + right]?.focus();
    },
  })));
  const corner = make("th"), heads = data.columns.map(() => make("span"));
  const table = make("table", { class: "cells" },
    make("thead", {}, make("tr", {}, corner,
      ...data.columns.map(([, plain], n) => make("th", { scope: "col" }, heads[n], make("small", {}, plain))))),
    make("tbody", {}, ...data.sets.map(({ name }, set) => make("tr", {}, make("th", { scope: "row" }, name),
      ...buttons[set].map(button => make("td", {}, button))))));
  const curve = [["three", "this agreement"], ["two dashed", "attention of two seeds"], ["six", "accuracy of the second run"]];
  const course = plot("Agreement on held-out samples along training", {
    xLabel: "updates, on a scale of square roots", yLabel: "%", width: 440, height: 250, yTicks: [0, 50, 100],
  }, n => said.say(`${curve[n][1]}: ${[at().cells[state.column].course, at().between, at().accuracy][n].at(-1).toFixed(0)} % at the end.`));
  const at = () => data.sets[state.set];
  const along = make("div", { class: "panels" }, course.element,
    make("div", { class: "key" }, ...curve.map(([look, text]) => make("span", {}, marker(look, "square"), ` ${text}`))));
  stage.append(make("div", { class: "controls" }, shown.element, chosen.element,
    make("div", { class: "key" }, make("span", {}, marker("three", "circle"), " ours"),
      make("span", {}, marker("one open", "diamond"), " printed"), make("span", {}, "┆ chance"),
      make("span", {}, "Δ is saliency here, not the residual part"))),
    make("div", { class: "wide", tabindex: "0", role: "region", "aria-label": "Agreement of every data set" }, table),
    along, said.element);

  function draw() {
    state.set = clamp(Math.round(state.set), 0, data.sets.length - 1);
    state.column = clamp(Math.round(state.column), 0, data.columns.length - 1);
    if (!data.choices.includes(state.choice)) state.choice = data.choices.at(-1);
    if (!data.tables.includes(state.table)) state.table = data.tables[0];
    shown.draw();
    chosen.draw();
    corner.textContent = `${whole(low())} to 100 %`;
    data.columns.forEach(([head], n) => { heads[n].textContent = measure() === "kendall" ? head.replace("𝒜", "τ") : head; });
    buttons.forEach((row, set) => row.forEach((button, n) => {
      button.setAttribute("aria-pressed", String(set === state.set && n === state.column));
      button.setAttribute("aria-label", words(set, n));
      const [value] = cell(set, n).own;
      button.replaceChildren(strip(set, n), make("span", {}, value === null ? "–" : whole(value)));
    }));
    along.style.display = hasCourse() ? "" : "none";
    if (!hasCourse()) return said.say(`${words(state.set, state.column)} The course along training is that of ${data.tables[0]}, `
      + "on held-out samples, and is shown there.");
    const { steps, between, accuracy, cells } = at(), own = cells[state.column].course;
    const line = values => values.map((value, n) => [Math.sqrt(steps[n]), value]);
    const most = Math.max(...own), first = between.findIndex(value => value > most), notes = [];
    if (first >= 0) notes.push({
      x: Math.sqrt(steps[first]), y: accuracy[first] - 8, text: `ξ = ${whole(accuracy[first])}`, look: "six",
      dx: 6, // beside the line, not on it
    });
    const ticks = [0, steps[Math.floor(steps.length / 3)], steps.at(-1)];
    course.draw({
      x: [0, Math.sqrt(steps.at(-1))], y: [0, 102], notes, at: first < 0 ? undefined : Math.sqrt(steps[first]),
      xTicks: ticks.map(step => [Math.sqrt(step), step]),
      series: [own, between, accuracy].map((values, n) => ({ points: line(values), look: `${curve[n][0]} strong` })),
    });
    const { xi } = cell(state.set, state.column), best = `its best value, ${whole(most)} %, with each other`;
    said.say(`${words(state.set, state.column)} On the mean course drawn here `
      + (first < 0 ? `two seeds never agree more than ${best}.` : `ξ is ${whole(accuracy[first])} %: two seeds first agree more than `
        + `${best} after ${steps[first]} updates, when the second has ${whole(accuracy[first])} % right.`)
      + (xi === null ? "" : ` ξ ours, ${whole(xi)} %, is the mean over the seeds, each by its own course.`));
  }
  return { state, draw };
});

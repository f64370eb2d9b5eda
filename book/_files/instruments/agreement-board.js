// The agreement board: published against our numbers of every table, with verdict, chance, interval and ξ. In the tables whose
// measure the courses are of, a click shows the course along training.
"use strict";
Instruments.start("agreement-board", (stage, data) => {
  const { make, choice, menu, readout, plot, marker, clamp, changed, SHAPES } = Instruments;
  const state = { set: 0, column: 0, choice: data.choices.at(-1), table: data.tables[0].name };
  const VERDICTS = { "✓": "near enough", "?": "undecided", "✗": "not near enough", "–": "not judged" };
  const tables = menu("Table", data.tables.map(({ name, title }) => [name, `${name}: ${title}`]), () => state.table,
    name => {
      const before = table().rows[state.set].set;
      state.table = name;
      state.set = Math.max(0, table().rows.findIndex(row => row.set === before)); // the same data set, where it is there
    });
  const chosen = choice("Checkpoints are chosen", data.choices.map(name => [name, name]), name => name === state.choice,
    name => { state.choice = name; });
  const said = readout("");
  const table = () => data.tables.find(own => own.name === state.table) ?? data.tables[0];
  const columns = () => Object.keys(data.columns).filter(name => name in table().rows[0].numbers);
  const low = () => (table().measure === "kendall" ? -100 : 0); // a rank correlation may be negative
  const WIDTH = 78, across = value => 4 + (clamp(value, low(), 100) - low()) * (WIDTH - 8) / (100 - low());
  const tenth = value => value.toFixed(1).replace(/^-(0\.0)$/, "$1").replace("-", "−");
  const whole = value => String(Math.round(value) || 0).replace("-", "−");
  /** Ours by the present choice, [value, low, high, whether it is ξ*], and what is printed, with the verdict's sign. */
  const numberOf = (set, name) => {
    const { own, printed, sign } = table().rows[set].numbers[name] ?? {};
    return { own: own?.[data.choices.indexOf(state.choice)] ?? null, printed: printed ?? null, sign };
  };

  function pair({ own, printed, sign }, nothing) {
    const [value, least, most, starred] = own ?? [];
    const judged = sign && state.choice === data.choices.at(-1) ? `, ${VERDICTS[sign]}` : "";
    return `ours ${own ? `${tenth(value)} %${starred ? "*" : ""}${least === null ? "" : ` (${tenth(least)} to ${tenth(most)})`}` : nothing}`
      + `, published ${printed === null ? "nothing" : printed.replace(/^([^*]*)/, "$1 %").replace("-", "−")}${judged}`;
  }
  function words(set, name) {
    const { why, set: of, numbers } = table().rows[set];
    const parts = [`${of}, ${data.columns[name][1]}, ${table().title}: ${pair(numberOf(set, name), why ? `not run (${why})` : "none")}`];
    if (numbers.chance) parts.push(`chance ${pair(numberOf(set, "chance"), "none")}`);
    if (`xi ${name}` in numbers) parts.push(`ξ ${pair(numberOf(set, `xi ${name}`), "none")}`);
    if (numbers.xi_star) parts.push(`ξ* ${pair(numberOf(set, "xi_star"), "none")}`);
    return `${parts.join("; ")}.`;
  }

  function strip(set, name) {
    const { own, printed } = numberOf(set, name), [value, least, most] = own ?? [], chance = numberOf(set, "chance"), y = 10;
    const parts = [make("line", { x1: 4, x2: WIDTH - 4, y1: y, y2: y, class: "grid" })];
    const random = chance.own?.[0] ?? chance.printed;
    if (random !== null) parts.push(make("line", { x1: across(random), x2: across(random), y1: 1, y2: 19, class: "at" }));
    if (own && least !== null) parts.push(make("line", { x1: across(least), x2: across(most), y1: y, y2: y, class: "bar" }));
    const point = (look, shape, at) => make("path", {
      class: `point ${look}`, d: SHAPES[shape], transform: `translate(${across(at)} ${y}) scale(1.15)`,
    });
    if (own) parts.push(point("three", "circle", value));
    if (printed !== null) parts.push(point("one open", "diamond", parseFloat(printed)));
    return make("svg", { viewBox: `0 0 ${WIDTH} 20`, width: WIDTH, height: 20, "aria-hidden": "true" }, ...parts);
  }

  let buttons = [];
  const button = (set, n) => make("button", {
    type: "button",
    onclick: () => { Object.assign(state, { set, column: n }); changed(stage); },
    onmouseenter: () => said.say(words(set, columns()[n])),
    onfocus: () => said.say(words(set, columns()[n])),
    onkeydown: event => {
      const [down, right] = { ArrowDown: [1, 0], ArrowUp: [-1, 0], ArrowRight: [0, 1], ArrowLeft: [0, -1] }[event.key] ?? [];
      if (down === undefined) return;
      event.preventDefault();
      buttons[set + down]?.[n + right]?.focus();
    },
  });
  const grid = make("table", { class: "cells" });
  /** The grid of another table; what is in its cells is drawn with every change. */
  function lay() {
    const heads = columns().map(name => data.columns[name]), letter = table().measure === "kendall" ? "τ" : "𝒜";
    const ends = [["chance", "chance", ""], ["xi_star", "final accuracy", "ξ*"]].filter(([name]) => name in table().rows[0].numbers);
    buttons = table().rows.map((_, set) => heads.map((_, n) => button(set, n)));
    grid.replaceChildren(
      make("thead", {}, make("tr", {}, make("th", {}, `${whole(low())} to 100 %`, make("small", {}, "ours; published")),
        ...heads.map(([head, plain]) => make("th", { scope: "col" }, make("span", {}, plain), make("small", {}, head.replace("𝒜", letter)))),
        ...ends.map(([, text, symbol]) => make("th", { scope: "col" }, make("span", {}, text), make("small", {}, symbol))))),
      make("tbody", {}, ...table().rows.map(({ set: name, why }, set) => make("tr", {},
        make("th", { scope: "row" }, name, ...(why ? [make("small", {}, "not run")] : [])),
        ...buttons[set].map(own => make("td", {}, own)),
        ...ends.map(([end]) => make("td", { class: "end", "data-end": `${set},${end}` }))))));
    grid.dataset.table = state.table;
  }

  const curve = [["three", "this agreement"], ["two dashed", "attention of two seeds"], ["six", "accuracy of the second run"]];
  const course = plot("Agreement on held-out samples along training", {
    xLabel: "updates, on a scale of square roots", yLabel: "%", width: 440, height: 250, yTicks: [0, 50, 100],
  }, n => said.say(`${curve[n][1]}: ${curves()[n].at(-1).toFixed(0)} % at the end.`));
  const at = () => data.courses[table().rows[state.set].set];
  const curves = () => [at().columns[columns()[state.column]], at().between, at().accuracy];
  const along = make("div", { class: "panels" }, course.element,
    make("div", { class: "key" }, ...curve.map(([look, text]) => make("span", {}, marker(look, "square"), ` ${text}`))));
  stage.append(make("div", { class: "controls" }, tables.element, chosen.element,
    make("div", { class: "key" }, make("span", {}, marker("three", "circle"), " ours"),
      make("span", {}, marker("one open", "diamond"), " published"), make("span", {}, "┆ chance"),
      ...Object.entries(VERDICTS).map(([sign, text]) => make("span", {}, `${sign} ${text}`)),
      make("span", {}, "Δ is saliency here, not the residual part"))),
    make("div", { class: "wide", tabindex: "0", role: "region", "aria-label": "Published numbers and ours, for every data set" }, grid),
    along, said.element);

  function draw() {
    if (!data.tables.some(own => own.name === state.table)) state.table = data.tables[0].name;
    state.set = clamp(Math.round(state.set), 0, table().rows.length - 1);
    state.column = clamp(Math.round(state.column), 0, columns().length - 1);
    if (!data.choices.includes(state.choice)) state.choice = data.choices.at(-1);
    tables.draw();
    chosen.draw();
    if (grid.dataset.table !== state.table) lay();
    const judged = state.choice === data.choices.at(-1); // what is judged is the paper's own choice
    const text = ({ own, sign }) => `${own ? whole(own[0]) : "–"}${own && own[3] ? "*" : ""}${own && sign && judged ? ` ${sign}` : ""}`;
    const both = own => `${text(own)}; ${own.printed === null ? "–" : whole(parseFloat(own.printed))}`;
    buttons.forEach((row, set) => row.forEach((button, n) => {
      const name = columns()[n];
      button.setAttribute("aria-pressed", String(set === state.set && n === state.column));
      const shown = both(numberOf(set, name)); // a button's name begins with what is seen, for those who speak to it
      button.setAttribute("aria-label", `${shown}: ${words(set, name)}`);
      button.replaceChildren(strip(set, name), make("span", {}, shown));
    }));
    for (const cell of grid.querySelectorAll("[data-end]")) {
      const [set, end] = cell.dataset.end.split(",");
      cell.textContent = both(numberOf(Number(set), end));
    }
    const now = words(state.set, columns()[state.column]), drawn = table().course && at() && curves()[0];
    along.style.display = drawn ? "" : "none";
    if (!drawn) return said.say(table().course ? now
      : `${now} The course along training is of agreement on held-out samples, and is shown with Tables ${data.tables.filter(own => own.course).map(own => own.name).join(", ")}.`);
    const { steps, between, accuracy } = at(), own = curves()[0];
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
      series: curves().map((values, n) => ({ points: line(values), look: `${curve[n][0]} strong` })),
    });
    const best = `its best value, ${whole(most)} %, with each other`;
    said.say(`${now} On the mean course drawn here `
      + (first < 0 ? `two seeds never agree more than ${best}.` : `ξ is ${whole(accuracy[first])} %: two seeds first agree more than `
        + `${best} after ${steps[first]} updates, when the accuracy of the second is ${whole(accuracy[first])} %.`)
      + (first < 0 ? "" : " ξ above is the mean over the seeds, each by its own course."));
  }
  return { state, draw };
});

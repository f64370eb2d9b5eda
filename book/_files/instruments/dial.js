// The dial, linked to the scatter of all networks: matrices, nine shares and points move together.
"use strict";
Instruments.start("dial", (stage, data) => {
  const { make, choice, slider, menu, readout, heatmap, plot, percent, short, marker } = Instruments;
  const PARTS = Instruments.PARTS, columns = data.points;
  const points = columns.task.map((_, n) => Object.fromEntries(Object.entries(columns).map(([name, own]) => [name, own[n]])));
  const marks = Object.keys(data.tasks).filter(task => task.startsWith("reordering_"));
  const families = [...new Set(Object.values(data.tasks).map(([, family]) => family))];
  const SHAPES = ["circle", "circle", "circle", "square", "triangle", "diamond", "cross"];
  const LOOKS = ["one", "two", "three", "four", "five", "six", "seven"];
  const FAMILIES = { one_to_one: "one-to-one", permutation: "fixed permutation", scan: "SCAN", tatoeba_en_fr: "Tatoeba" };
  const NETWORKS = { AED: "GRU with attention", AO: "attention only" };
  const CELLS = { gru: "GRU with attention", lstm: "LSTM with attention", vanilla: "plain recurrence with attention",
    ugrnn: "UGRNN with attention", none: "attention only" };
  const UP = { temporal_share: "temporal share μ·μ", input_share: "input share χ·χ" };
  const state = { task: marks[0] ?? points[0].task, architecture: "AED", colour: "task", up: "temporal_share" };

  const mark = slider("Sentences whose words may reorder", () => marks.length,
    n => (marks.includes(state.task) ? data.tasks[marks[n]][0].replace("reordering ", "") : "not on the dial"),
    () => Math.max(0, marks.indexOf(state.task)), n => { state.task = marks[n]; });
  const network = choice("Network", Object.entries(NETWORKS), name => name === state.architecture,
    name => { state.architecture = name; });
  const task = menu("Task", Object.entries(data.tasks).map(([key, [name]]) => [key, name]), () => state.task,
    name => { state.task = name; });
  const colour = choice("Colour", [["task", "task"], ["network", "network"], ["accuracy", "accuracy"]],
    name => name === state.colour, name => { state.colour = name; });
  const up = choice("Upwards", Object.entries(UP), name => name === state.up, name => { state.up = name; });
  const said = readout(""), key = make("div", { class: "key" });
  const kind = () => data.kinds.find(own => own.task === state.task && own.architecture === state.architecture);

  const cell = name => (s, t) => {
    scatter.mark(-1);
    const own = kind(), on = name === "sample" ? ` on “${short(own.columns[t])}” to write “${short(own.rows[s])}”` : "";
    said.say(`${name === "sample" ? "This sentence" : "Average"}, step ${s + 1}, source place ${t + 1}: `
      + `${own[name][s][t].toFixed(2)} of the attention${on}.`);
  };
  const average = heatmap("Average of the task", cell("average"), { cell: 12 });
  const sample = heatmap("One sentence", cell("sample"), { cell: 13 });
  const shares = heatmap("Shares of the nine terms", (d, e) => {
    scatter.mark(-1);
    said.say(`${PARTS[d].name} part of the decoder with ${PARTS[e].name} part of the encoder: `
      + `${percent(kind().shares[d][e])} of the covariance.`);
  }, { cell: 46, numbers: true, look: Instruments.termLook });
  const mine = point => point.task === state.task && point.cell === { AED: "gru", AO: "none" }[state.architecture];
  const tell = n => {
    const own = points[n], kinds = state.architecture === "AED" ? "GRUs with attention" : "attention only";
    const whose = `${kinds} on ${data.tasks[state.task][0]}`;
    said.say(`${data.tasks[own.task][0]}, ${CELLS[own.cell]}, seed ${own.seed}: typicality ${own.typicality.toFixed(2)}, `
      + `temporal share ${own.temporal_share.toFixed(2)}, input share ${own.input_share.toFixed(2)}, `
      + `${percent(own.token_accuracy)} of the words right. `
      + (mine(own) ? `The matrices are those of its kind, ${whose}.` : `The matrices are those of ${whose}, not of this network.`));
  };
  const scatter = plot("All networks", { xLabel: "typicality", yLabel: "share of the scores", width: 420, height: 300,
    xTicks: [0.2, 0.4, 0.6, 0.8, 1], yTicks: [0, 0.5, 1] }, tell, n => {
    Object.assign(state, { task: points[n].task, architecture: points[n].architecture });
    Instruments.changed(stage);
    tell(n);
  });
  stage.append(mark.element, make("div", { class: "controls" }, network.element, task.element),
    make("div", { class: "panels" }, average.element, sample.element, shares.element),
    make("div", { class: "controls" }, colour.element, up.element),
    make("div", { class: "panels" }, scatter.element, key), said.element);

  const look = own => {
    if (state.colour === "network") return { look: { gru: "one", none: "two" }[own.cell] ?? "three" };
    const above = Math.round(Math.max(0, 200 * own.token_accuracy - 100)); // half of the words right and more
    if (state.colour === "accuracy") return { look: "own", fill: `color-mix(in srgb, var(--seven) ${above}%, var(--amber))` };
    return { look: LOOKS[families.indexOf(data.tasks[own.task][1])] };
  };
  function draw() {
    if (!(state.task in data.tasks)) state.task = points[0].task;
    if (!(state.up in UP)) state.up = "temporal_share";
    if (!["task", "network", "accuracy"].includes(state.colour)) state.colour = "task";
    if (!kind()) state.architecture = data.kinds.find(own => own.task === state.task).architecture;
    for (const part of [mark, network, task, colour, up]) part.draw();
    const own = kind(), symbols = side => PARTS.map(part => part.symbol);
    average.draw({ matrix: own.average });
    sample.draw({ matrix: own.sample, rows: own.rows.map(short), columns: own.columns.map(short) });
    shares.draw({ matrix: own.shares, rows: symbols("decoder"), columns: symbols("encoder"), signed: true });
    scatter.draw({
      x: [0.15, 1.02], y: [-0.25, 1.05],
      points: points.map(point => {
        const { look: name, fill } = look(point), shape = SHAPES[families.indexOf(data.tasks[point.task][1])];
        return { x: point.typicality, y: point[state.up], shape, fill, open: !point.learned,
          look: mine(point) ? `${name} chosen` : name };
      }),
      yLabel: UP[state.up],
    });
    const items = { task: families.map((family, n) => [LOOKS[n], SHAPES[n], FAMILIES[family] ?? family]),
      network: [["one", "circle", "GRU with attention"], ["two", "circle", "attention only"], ["three", "circle", "other recurrence"]],
      accuracy: [["seven", "circle", "all words right"], ["amber", "circle", "half of them or fewer"]] }[state.colour];
    key.replaceChildren(...items.map(([name, shape, text]) => make("span", {}, marker(name, shape), ` ${text}`)),
      make("span", {}, marker("six open", "circle"), " open: task not learned"),
      make("span", {}, marker("six chosen", "circle"), " outlined: the networks chosen above, whose matrices are shown"),
      make("span", {}, "in a ring: the network pointed at"));
    const group = points.filter(mine), mean = name => group.reduce((sum, point) => sum + point[name], 0) / group.length;
    said.say(`${data.tasks[state.task][0]}, ${NETWORKS[state.architecture]}, ${group.length} networks: `
      + `typicality ${mean("typicality").toFixed(2)}, `
      + `temporal share ${mean("temporal_share").toFixed(2)}, ${percent(mean("token_accuracy"))} of the words right. The matrices are theirs.`);
  }
  return { state, draw };
});

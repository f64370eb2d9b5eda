// The dial, linked to the scatter of all networks: matrices, nine shares and points move together.
"use strict";
Instruments.start("dial", (stage, data) => {
  const { make, choice, slider, menu, readout, heatmap, plot, percent, two, short, marker } = Instruments;
  const PARTS = Instruments.PARTS, columns = data.points;
  const points = columns.task.map((_, n) => Object.fromEntries(Object.entries(columns).map(([name, own]) => [name, own[n]])));
  const marks = Object.keys(data.tasks).filter(task => task.startsWith("reordering_"));
  const families = [...new Set(Object.values(data.tasks).map(([, family]) => family))];
  const SHAPES = ["circle", "circle", "circle", "square", "triangle", "diamond", "cross"];
  const LOOKS = ["one", "two", "three", "four", "five", "six", "seven"];
  const FAMILIES = { one_to_one: "one-to-one", permutation: "fixed permutation", scan: "SCAN", tatoeba_en_fr: "Tatoeba" };
  const NETWORKS = { AED: "GRU with attention", "AED-lstm": "LSTM with attention", "AED-vanilla": "plain recurrence with attention",
    "AED-ugrnn": "UGRNN with attention", AO: "attention only" };
  const UP = { temporal_share: "position, own term μ·μ", temporal_split: "position, split share", temporal_moves: "moved by another position",
    input_share: "word, own term χ·χ", input_split: "word, split share", input_moves: "moved by another word" };
  const COLOURS = [["task", "task"], ["network", "network"], ["accuracy", "accuracy"], ["decay", "weight decay"]];
  const levels = [...new Set(columns.decay)].sort((a, b) => a - b);
  const state = { task: marks[0] ?? points[0].task, architecture: "AED", colour: "task", up: "temporal_share" };

  /** A matrix of a string with a letter for each weight, row by row; weights are in steps. */
  const matrix = (letters, across) => {
    const weights = [...letters].map(letter => data.letters.indexOf(letter) / (data.letters.length - 1));
    return Array.from({ length: weights.length / across }, (_, s) => weights.slice(s * across, (s + 1) * across));
  };

  const mark = slider("Sentences whose words may reorder", () => marks.length,
    n => (marks.includes(state.task) ? data.tasks[marks[n]][0].replace("reordering ", "") : "not on the dial"),
    () => Math.max(0, marks.indexOf(state.task)), n => { state.task = marks[n]; });
  const network = menu("Network", [], () => state.architecture, name => { state.architecture = name; });
  const task = menu("Task", Object.entries(data.tasks).map(([key, [name]]) => [key, name]), () => state.task,
    name => { state.task = name; });
  const colour = choice("Colour by", COLOURS, name => name === state.colour, name => { state.colour = name; });
  const up = choice("Vertical axis", Object.entries(UP), name => name === state.up, name => { state.up = name; });
  const said = readout(""), key = make("div", { class: "key" }), notice = make("p", { class: "notice" });
  const kind = () => data.kinds.find(own => own.task === state.task && own.kind === state.architecture);
  const mine = point => point.task === state.task && point.kind === state.architecture;
  const name = own => `${data.tasks[own.task][0]}, ${NETWORKS[own.kind]}`;
  const trained = own => `${name(own)}, seed ${own.seed}${own.decay ? `, weight decay ${own.decay}` : ""}`;

  /** What exchanging parts does to attention, where it was tried. */
  const exchanged = (temporal, input) => (Number.isFinite(temporal) && temporal !== null
    ? `another position moves ${two(temporal)} of the attention and another word ${two(input)}` : "nothing was exchanged");

  let shown = [], drawn = {}, pointed = null; // points of the scatter, matrices, and the network of the one beside it
  const WHOSE = { average: "Average", sample: "This sentence", pointed: "Its average" };
  const cell = which => (s, t) => {
    if (which !== "pointed") scatter.mark(-1);
    const { rows, columns } = kind();
    const on = which === "sample" ? ` on “${short(columns[t])}” to write “${short(rows[s])}”` : "";
    said.say(`${which === "pointed" ? `${trained(pointed)}. ` : ""}${WHOSE[which]}, step ${s + 1}, source position ${t + 1}: `
      + `about ${drawn[which][s][t].toFixed(2)} of the attention${on}.`);
  };
  const average = heatmap("Average of the task", cell("average"), { cell: 12 });
  const sample = heatmap("One sentence", cell("sample"), { cell: 13 });
  const beside = heatmap("Average of the network pointed at", cell("pointed"), { cell: 11 });
  beside.element.classList.add("pointed");
  const shares = heatmap("Shares of the nine terms", (d, e) => {
    scatter.mark(-1);
    said.say(`${PARTS[d].name} part of the decoder with ${PARTS[e].name} part of the encoder: `
      + `${percent(kind().shares[d][e])} of the covariance.`);
  }, { cell: 46, numbers: true, look: Instruments.termLook });

  /** The network pointed at: its own matrix is beside the points. */
  function showBeside(own) {
    pointed = own;
    beside.draw({ matrix: drawn.pointed = matrix(own.average, own.across), name: `Average of seed ${own.seed}: ${name(own)}`
      + (own.decay ? `, weight decay ${own.decay}` : "") });
  }
  const tell = n => {
    const own = shown[n];
    showBeside(own);
    said.say(`${trained(own)}: typicality ${two(own.typicality)}, `
      + `own terms μ·μ ${two(own.temporal_share)} and χ·χ ${two(own.input_share)}, split shares of position ${two(own.temporal_split)} `
      + `and of word ${two(own.input_split)}, ${exchanged(own.temporal_moves, own.input_moves)}, `
      + `word accuracy ${percent(own.token_accuracy)}. Its average matrix is shown next to the points. `
      + `The matrices above are of ${mine(own) && !own.decay ? "its kind, " : "another kind, "}${name(kind())}.`);
  };
  const scatter = plot("All networks", { xLabel: "typicality", yLabel: "own term μ·μ", width: 400, height: 300,
    xTicks: [0.2, 0.4, 0.6, 0.8, 1], yTicks: [0, 0.5, 1] }, tell, n => {
    Object.assign(state, { task: shown[n].task, architecture: shown[n].kind });
    Instruments.changed(stage);
    tell(n);
  });
  const all = make("details", {}, make("summary", {}, "All networks as points: typicality and the shares of μ and χ"),
    make("div", { class: "controls" }, colour.element, up.element),
    make("div", { class: "panels" }, scatter.element, beside.element), key);
  stage.append(notice, mark.element, make("div", { class: "controls" }, network.element, task.element),
    make("div", { class: "panels" }, average.element, sample.element, shares.element), all, said.element); // last, since its length changes

  /** What changes along the dial, in the shares of the present kind of network at both of its ends. */
  function tellWhatToNotice() {
    const along = marks.map(task => data.kinds.find(own => own.task === task && own.kind === state.architecture)).filter(Boolean);
    const [first, last] = [along[0], along.at(-1)].map(own => own?.shares);
    if (along.length < 2) {
      notice.textContent = "";
      return;
    }
    const residual = shares => shares.flatMap((row, d) => row.filter((_, e) => d === 2 || e === 2)).reduce((sum, share) => sum + share, 0);
    const mark = own => data.tasks[own.task][0].replace("reordering ", "");
    notice.textContent = `Drag the slider from ${mark(along[0])} to ${mark(along.at(-1))} and watch the nine shares: the blue one, μ·μ, goes `
      + `from ${percent(first[0][0])} to ${percent(last[0][0])}, the five grey ones with Δ together from ${percent(residual(first))} `
      + `to ${percent(residual(last))}. The average matrix blurs; the matrix of one sentence stays sharp.`;
  }

  const mixed = (per, high = "var(--seven)") => `color-mix(in srgb, ${high} ${per}%, var(--amber))`;
  const ofLevel = level => mixed(100 * levels.indexOf(level) / (levels.length - 1));
  const look = own => {
    if (state.colour === "network") return { look: { AED: "one", AO: "two" }[own.kind] ?? "three" };
    const above = Math.round(Math.max(0, 200 * own.token_accuracy - 100)); // from a word accuracy of one half
    if (state.colour === "accuracy") return { look: "own", fill: mixed(above) };
    if (state.colour === "decay") return { look: "own", fill: ofLevel(own.decay) };
    return { look: LOOKS[families.indexOf(data.tasks[own.task][1])] };
  };
  const filled = fill => {
    const own = marker("own", "circle");
    own.firstChild.style.setProperty("--own", fill);
    return own;
  };
  /** Which networks the matrices are of. */
  function whose(triedWithDecay) {
    if (state.colour !== "decay") return "The matrices are from these networks.";
    if (triedWithDecay) return "The matrices are from these networks, trained without weight decay.";
    return "The matrices are from these networks, which were not trained with weight decay.";
  }

  function draw() {
    if (!(state.task in data.tasks)) state.task = points[0].task;
    if (!(state.up in UP)) state.up = "temporal_share";
    if (!COLOURS.some(([name]) => name === state.colour)) state.colour = "task";
    const there = data.kinds.filter(own => own.task === state.task).map(own => own.kind);
    if (!there.includes(state.architecture)) state.architecture = there[0];
    network.fill(there.map(own => [own, NETWORKS[own] ?? own]));
    for (const part of [mark, network, task, colour, up]) part.draw();
    if (state.colour !== "task" || state.up !== "temporal_share") all.open = true;
    tellWhatToNotice();
    // Weight decay was tried on some tasks and networks only; elsewhere than there it would not say what decay does.
    const tried = own => points.some(other => other.decay && other.task === own.task && other.kind === own.kind);
    shown = points.filter(own => (state.colour === "decay" ? tried(own) : !own.decay) && own[state.up] !== null);
    const own = kind(), symbols = side => PARTS.map(part => part.symbol), group = points.filter(point => mine(point) && !point.decay);
    drawn = { average: matrix(group[0].average, group[0].across), sample: matrix(own.sample, own.columns.length) };
    average.draw({ matrix: drawn.average });
    sample.draw({ matrix: drawn.sample, rows: own.rows.map(short), columns: own.columns.map(short) });
    shares.draw({ matrix: own.shares, rows: symbols("decoder"), columns: symbols("encoder"), signed: true });
    showBeside(group[0]);
    scatter.draw({
      x: [0.15, 1.02], y: [Math.min(-0.02, ...shown.map(point => point[state.up] - 0.02)), 1.05],
      points: shown.map(point => {
        const { look: name, fill } = look(point), shape = SHAPES[families.indexOf(data.tasks[point.task][1])];
        return { x: point.typicality, y: point[state.up], shape, fill, open: !point.learned,
          look: mine(point) ? `${name} chosen` : name };
      }),
      yLabel: UP[state.up],
    });
    const items = { task: families.map((family, n) => [marker(LOOKS[n], SHAPES[n]), FAMILIES[family] ?? family]),
      network: [[marker("one", "circle"), NETWORKS.AED], [marker("two", "circle"), NETWORKS.AO], [marker("three", "circle"), "other recurrence"]],
      accuracy: [[filled(mixed(100)), "word accuracy 100 %"], [filled(mixed(0)), "50 % or less"]],
      decay: levels.map(level => [filled(ofLevel(level)), level ? `weight decay ${level}` : "none"]) }[state.colour];
    key.replaceChildren(...items.map(([sign, text]) => make("span", {}, sign, ` ${text}`)),
      make("span", {}, marker("six open", "circle"), " open: task not learned"),
      make("span", {}, marker("six chosen", "circle"), " outlined: the networks chosen above"),
      make("span", {}, "in a ring: the network pointed at"));
    const mean = name => {
      const numbers = group.map(point => point[name]).filter(number => number !== null);
      return numbers.length ? numbers.reduce((sum, number) => sum + number, 0) / numbers.length : null;
    };
    said.say(`${name(own)}, ${group.length} networks: typicality ${two(mean("typicality"))}, `
      + `own term μ·μ ${two(mean("temporal_share"))}, split share of position ${two(mean("temporal_split"))}, `
      + `${exchanged(mean("temporal_moves"), mean("input_moves"))}, word accuracy ${percent(mean("token_accuracy"))}. `
      + whose(tried(own)));
  }
  return { state, draw };
});

// Swap one word: attention before and after, and the difference. Of trained networks both matrices are kept; what the word's
// input component does alone is computed by small networks that run in the page.
"use strict";
Instruments.start("swap-one-word", (stage, data) => {
  const { make, choice, menu, readout, heatmap, short, two } = Instruments;
  const NETWORKS = { AED: "GRU with attention", "AED-lstm": "LSTM with attention", AO: "attention only",
    "here-AED": "small GRU with attention, in this page", "here-AO": "small network of attention only, in this page" };
  const EXCHANGED = [["word", "the word"], ["input", "input component only"]];
  const first = data.pairs[0], state = { task: first.task, kind: first.kind, swap: first.swap, exchanged: "word" };
  const ofPage = () => state.kind.startsWith("here-");
  const given = own => own.task === state.task && own.kind === (ofPage() ? "AED" : state.kind); // sentences are the same
  const held = () => data.pairs.find(own => given(own) && own.swap === state.swap);

  const task = menu("Task", Object.entries(data.tasks), () => state.task, name => { state.task = name; });
  const kind = menu("Network", [], () => state.kind, name => { state.kind = name; });
  const swap = menu("Exchange", [], () => state.swap, name => { state.swap = name; });
  const exchanged = choice("What is exchanged", EXCHANGED, name => name === state.exchanged, name => {
    refused = name === "input" && !ofPage();
    state.exchanged = refused ? "word" : name;
  });
  let refused = false; // the input component alone was wanted of a network of which it was not kept
  const said = readout(""), sentence = make("p", { class: "writes" }), notice = make("p", { class: "notice" });
  const rules = make("p", { class: "quiet" });
  let runs = null, gain = null; // what is drawn, {source, predicted, matrix} before and after; what the input component makes of it

  /** Whether a network was trained on a task, there or small enough for this page. */
  const knows = (kind, task) => (kind.startsWith("here-") ? data.here.includes(task) && task in data.tasks
    : data.pairs.some(own => own.task === task && own.kind === kind));

  /** A word of the invented language with its English one. */
  const glossed = word => (word in data.glosses ? `${short(word)} (${data.glosses[word]})` : short(word));

  /** Why the input component is not exchanged, and what the reader can do. */
  function refusal() {
    const there = data.here.filter(task => task in data.tasks).map(task => data.tasks[task]);
    const task = data.here.includes(state.task) ? "" : ` on ${there.join(" or ")}`;
    return "Of this network we kept exchanges of whole words only. To exchange the input component alone, choose under “Network” "
      + `a small one that runs in this page${task}.`;
  }

  const tell = which => (s, t) => {
    if (!runs) return;
    const [before, after] = runs.map(run => run.matrix[s]?.[t]), run = runs[which === "before" ? 0 : 1];
    const weights = before === undefined ? `${after.toFixed(2)} after` : after === undefined ? `${before.toFixed(2)} before`
      : `${before.toFixed(2)} before and ${after.toFixed(2)} after, ${two(after - before)} more`;
    said.say(`Step ${s + 1}, to write “${glossed(run.predicted[s])}”, on “${short(run.source[t])}”: ${weights}.`);
  };
  const panels = ["before", "after", "after − before"].map(name => heatmap(name, tell(name), { cell: 14 }));
  const shown = make("div", { class: "panels" }, ...panels.map(panel => panel.element));
  stage.append(make("div", { class: "controls" }, task.element, kind.element, swap.element),
    make("div", { class: "controls" }, exchanged.element), notice, sentence, rules, shown, said.element);

  /** How much of its weight each step of one matrix has elsewhere in the other, as far as both have steps. */
  const moved = (one, other) => one.slice(0, other.length).map((row, s) =>
    row.reduce((sum, value, t) => sum + Math.abs(value - other[s][t]), 0) / 2);
  const mean = values => values.reduce((a, b) => a + b, 0) / values.length;

  /** Both runs of a network of the page, each reading its own words; or the second with one input component exchanged. */
  function run(network, { place, runs: [{ source: words }, { source: swapped }] }) {
    const [one, other] = [words, swapped].map(own => network.ids(own.slice(0, -1).join(" ")).ids);
    const before = network.run(one), read = [1, ...before.written.slice(0, -1)];
    const alone = network.run(one, { read, exchange: { place, word: other[place] } });
    const whole = network.run(other, { read }).attention;
    gain = 1 - mean(moved(alone.attention, whole)) / mean(moved(before.attention, whole));
    const after = state.exchanged === "word" ? network.run(other) : alone;
    runs = [[words, before], [swapped, after]].map(([source, { written, attention }]) => (
      { source, predicted: written.map(id => network.target[id]), matrix: attention }));
  }

  function show() {
    const { place } = held(), [before, after] = runs, by = moved(before.matrix, after.matrix);
    const labels = run => ({ rows: run.predicted.map(glossed), columns: run.source.map(short), marks: [place] });
    panels[0].draw({ matrix: before.matrix, ...labels(before) });
    panels[1].draw({ matrix: after.matrix, ...labels(after) });
    panels[2].draw({
      matrix: after.matrix.slice(0, by.length).map((row, s) => row.map((value, t) => value - before.matrix[s]?.[t])),
      columns: after.source.map(short), marks: [place], signed: true,
    });
    shown.classList.remove("old");
    shown.setAttribute("aria-busy", "false");
    const most = by.indexOf(Math.max(...by)), only = state.exchanged === "input", times = gain === null ? "" : two(gain);
    said.say(`The exchange ${only ? "of the input component alone " : ""}moves ${by[most].toFixed(2)} of the weight at step ${most + 1}, `
      + `where it moves most, and ${mean(by).toFixed(2)} on average. `
      + (only ? "All else in the states stays, and the decoder reads what it wrote before. " : "")
      + (!times ? "" : ofPage() ? `The input component alone makes ${times} of the change in this sentence. `
        : `Over all pairs and networks of this kind the input component alone makes ${times} of the change, where the attention moves. `)
      + "Green gains, purple loses.");
  }

  function draw() {
    if (!(state.task in data.tasks)) state.task = first.task;
    if (state.exchanged !== "input") state.exchanged = "word";
    const kinds = [...new Set(data.pairs.filter(own => own.task === state.task).map(own => own.kind)),
      ...(data.here.includes(state.task) ? ["here-AED", "here-AO"] : [])];
    if (!kinds.includes(state.kind)) state.kind = kinds[0];
    if (!ofPage()) state.exchanged = "word"; // of these only whole exchanges are kept
    const swaps = data.pairs.filter(given).map(own => own.swap);
    if (!swaps.includes(state.swap)) state.swap = swaps[0];
    kind.fill(kinds.map(key => [key, NETWORKS[key] ?? key]));
    swap.fill(swaps.map(key => [key, data.swaps[key]]));
    task.fill(Object.entries(data.tasks).filter(([key]) => knows(state.kind, key)));
    for (const part of [task, kind, swap, exchanged]) part.draw();
    notice.textContent = refused ? refusal() : "";
    refused = false;
    rules.textContent = data.rules[state.task] ?? "";
    const { place, runs: [before, after] } = held();
    sentence.replaceChildren(...before.source.flatMap((word, t) => [
      t === place ? make("mark", {}, `${short(word)} → ${short(after.source[t])}`) : short(word), " "]));
    if (!ofPage()) {
      ({ runs, gain } = held());
      return show();
    }
    const wanted = JSON.stringify(state);
    runs = null;
    shown.classList.add("old");
    shown.setAttribute("aria-busy", "true");
    said.say("Loading the network …");
    Instruments.network(`${state.task}-${state.kind.slice(5)}`).then(network => {
      if (JSON.stringify(state) !== wanted) return;
      run(network, held());
      show();
    }, () => said.say("The network could not be loaded; the table below has what was measured."));
  }
  return { state, draw };
});

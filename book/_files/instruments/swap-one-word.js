// Swap one word: attention before and after, and the difference.
"use strict";
Instruments.start("swap-one-word", (stage, data) => {
  const { make, choice, menu, readout, heatmap, short, two } = Instruments;
  const NETWORKS = { AED: "GRU with attention", "AED-lstm": "LSTM with attention", AO: "attention only" };
  const first = data.pairs[0], state = { task: first.task, kind: first.kind, swap: first.swap };
  const of = (...names) => own => names.every(name => own[name] === state[name]);
  const pair = () => data.pairs.find(of("task", "kind", "swap"));
  const values = (name, ...given) => [...new Set(data.pairs.filter(of(...given)).map(own => own[name]))];

  const task = menu("Task", Object.entries(data.tasks), () => state.task, name => { state.task = name; });
  const kind = menu("Network", [], () => state.kind, name => { state.kind = name; });
  const swap = menu("Exchange", [], () => state.swap, name => { state.swap = name; });
  const said = readout(""), sentence = make("p", { class: "writes" });
  const steps = () => Math.min(...pair().runs.map(run => run.matrix.length));
  const tell = which => (s, t) => {
    const { runs } = pair(), [before, after] = runs.map(run => run.matrix[s]?.[t]);
    const run = runs[which === "before" ? 0 : 1];
    const weights = before === undefined ? `${after.toFixed(2)} after` : after === undefined ? `${before.toFixed(2)} before`
      : `${before.toFixed(2)} before and ${after.toFixed(2)} after, ${two(after - before)} more`;
    said.say(`Step ${s + 1}, to write “${short(run.predicted[s])}”, on “${short(run.source[t])}”: ${weights}.`);
  };
  const panels = ["before", "after", "after − before"].map(name => heatmap(name, tell(name), { cell: 14 }));
  stage.append(make("div", { class: "controls" }, task.element, kind.element, swap.element), sentence,
    make("div", { class: "panels" }, ...panels.map(panel => panel.element)), said.element);

  function draw() {
    if (!(state.task in data.tasks)) state.task = first.task;
    for (const [name, part, texts, ...given] of [["kind", kind, NETWORKS, "task"], ["swap", swap, data.swaps, "task", "kind"]]) {
      const there = values(name, ...given);
      if (!there.includes(state[name])) state[name] = there[0];
      part.fill(there.map(key => [key, texts[key] ?? key]));
    }
    for (const part of [task, kind, swap]) part.draw();
    const { runs, place } = pair(), [before, after] = runs, both = steps();
    const labels = run => ({ rows: run.predicted.map(short), columns: run.source.map(short), marks: [place] });
    panels[0].draw({ matrix: before.matrix, ...labels(before) });
    panels[1].draw({ matrix: after.matrix, ...labels(after) });
    panels[2].draw({
      matrix: after.matrix.slice(0, both).map((row, s) => row.map((value, t) => value - before.matrix[s][t])),
      columns: after.source.map(short), marks: [place], signed: true,
    });
    sentence.replaceChildren(...before.source.flatMap((word, t) => [
      t === place ? make("mark", {}, `${short(word)} → ${short(after.source[t])}`) : short(word), " "]));
    const moved = before.matrix.slice(0, both).map((row, s) =>
      row.reduce((sum, value, t) => sum + Math.abs(value - after.matrix[s][t]), 0) / 2);
    const most = moved.indexOf(Math.max(...moved));
    said.say(`The exchange moves ${moved[most].toFixed(2)} of the weight at step ${most + 1}, where it moves most, `
      + `and ${(moved.reduce((a, b) => a + b, 0) / both).toFixed(2)} on average. Green gains, purple loses.`);
  }
  return { state, draw };
});

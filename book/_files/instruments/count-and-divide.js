// Expectation-maximisation one round at a time: count who meets whom, divide, align, and count again by the alignment.
"use strict";
Instruments.start("count-and-divide", (stage, data) => {
  const { make, choice, slider, readout, heatmap, clamp, two } = Instruments;
  const state = { corpus: data.corpora[0].name, round: 0 };
  const own = () => data.corpora.find(corpus => corpus.name === state.corpus);
  const corpus = choice("Sentences", data.corpora.map(({ name, title }) => [name, title]), name => name === state.corpus,
    name => Object.assign(state, { corpus: name, round: 0 }));
  const rounds = slider("Round", () => data.rounds + 1, n => (n ? `after ${n} more` : "the count"), () => state.round,
    n => { state.round = n; });
  const pairs = make("p", { class: "writes" }), notice = make("p", { class: "notice" }), said = readout("");

  const sum = values => values.reduce((a, b) => a + b, 0);
  /** Share a written word among the words of its source, by how likely each one translates to it; null: equally. */
  function align(table, source, written) {
    const weights = source.map(word => (table ? table[word][written] : 1)), total = sum(weights);
    return weights.map(weight => (total ? weight / total : 0));
  }
  /** Add up the shares of all sentence pairs: a row a source word, a column a target word. */
  function count(table) {
    const counts = own().source.map(() => own().target.map(() => 0));
    for (const [source, target] of own().pairs) for (const written of target) {
      align(table, source, written).forEach((share, t) => { counts[source[t]][written] += share; });
    }
    return counts;
  }
  const divide = counts => counts.map(row => row.map(value => (sum(row) ? value / sum(row) : 0)));
  const logLikelihood = table => sum(own().pairs.flatMap(([source, target]) => target.map(written =>
    Math.log(sum(source.map(word => table[word][written])) / source.length))));

  let shown = null; // counts, Trans of them, and the alignment of the first pair
  const names = ([s, t]) => `“${own().source[s]}” and “${own().target[t]}”`;
  const counts = heatmap("1. Count who meets whom", (s, t) => said.say(`${names([s, t])}: counted ${two(shown.counts[s][t])} times.`),
    { cell: 40, numbers: true });
  const table = heatmap("2. Divide each row by its sum", (s, t) => said.say(
    `“${own().source[s]}” means “${own().target[t]}” with probability ${two(shown.table[s][t])}.`), { cell: 40, numbers: true });
  const aligned = heatmap("3. Align the first pair", (s, t) => said.say(
    `“${shown.written[s]}” gives “${shown.read[t]}” ${two(shown.alignment[s][t])} of its weight.`), { cell: 40, numbers: true });
  stage.append(make("div", { class: "controls" }, corpus.element), pairs, rounds.element,
    make("div", { class: "panels" }, counts.element, table.element, aligned.element), said.element, notice);

  function draw() {
    if (!own()) state.corpus = data.corpora[0].name;
    state.round = clamp(Math.round(state.round), 0, data.rounds);
    for (const part of [corpus, rounds]) part.draw();
    const { source, target, pairs: sentences } = own();
    pairs.textContent = sentences.map(([read, written]) =>
      `${read.map(word => source[word]).join(" ")} → ${written.map(word => target[word]).join(" ")}`).join("; ");
    let counted = count(null);
    for (let n = 0; n < state.round; n++) counted = count(divide(counted));
    const divided = divide(counted), [read, written] = sentences[0];
    shown = {
      counts: counted, table: divided, alignment: written.map(word => align(divided, read, word)),
      read: read.map(word => source[word]), written: written.map(word => target[word]),
    };
    counts.draw({ matrix: counted, rows: source, columns: target, top: Math.max(...counted.flat()) });
    table.draw({ matrix: divided, rows: source, columns: target });
    aligned.draw({ matrix: shown.alignment, rows: shown.written, columns: shown.read });
    notice.textContent = own().notice;
    said.say(`${state.round ? `After the count and ${state.round} more ${state.round === 1 ? "round" : "rounds"}` : "From the count"}: `
      + `the log-likelihood is ${two(logLikelihood(divided))}. “${shown.written.at(-1)}” gives `
      + `${shown.read.map((word, t) => `“${word}” ${two(shown.alignment.at(-1)[t])}`).join(", ")} of its weight.`);
  }
  return { state, draw };
});

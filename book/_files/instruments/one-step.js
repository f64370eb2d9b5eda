// One step, and all others: scores become weights and weights a context, for each word of a translation, along training.
"use strict";
Instruments.start("one-step", (stage, data) => {
  const { make, choice, slider, readout, clamp, two, softmax, changed } = Instruments;
  const state = { sentence: data.sentence, word: data.word, look: data.sentences[data.sentence].steps.length - 1 };
  const own = () => data.sentences[state.sentence];
  const names = data.sentences.map((one, n) => [n, one.source.slice(0, -1).join(" ")]); // without its end mark
  const sentence = choice("Sentence", names, n => n === state.sentence, n => Object.assign(state, { sentence: n, word: 0 }));
  const training = slider("Training", () => own().steps.length, n => `${own().steps[n]} updates`,
    () => state.look, n => { state.look = n; });
  const target = make("div"), said = readout(""), steps = make("table", { class: "steps" }), context = make("div", { class: "context" });
  const sum = make("p", { class: "quiet sum" });
  let words = null, drawn = -1;
  stage.append(make("div", { class: "controls" }, sentence.element), target,
    make("div", { class: "wide", tabindex: "0", role: "region", "aria-label": "Scores and weights of the source words" }, steps),
    context, sum, training.element, said.element);

  /** The words of a translation, chosen by pointing, with Tab and by arrow keys. */
  function build() {
    drawn = state.sentence;
    words = choice("Word to predict", own().target.map((word, s) => [s, word]), s => s === state.word, s => { state.word = s; });
    words.buttons.forEach((button, s) => ["mouseenter", "focus"].forEach(name => button.addEventListener(name, () => {
      if (state.word === s) return;
      state.word = s;
      changed(stage);
    })));
    target.replaceChildren(words.element);
    const head = (title, what) => make("th", { scope: "col" }, title, make("small", {}, what));
    steps.replaceChildren(
      make("thead", {}, make("tr", {}, make("th", { scope: "col" }, "source word"), head("1. score", "minus the largest"),
        head("2. softmax", "exp of it"), head("= weight", "over their sum"), make("td"))),
      make("tbody", {}, ...own().source.map(word => make("tr", {}, make("th", { scope: "row" }, word), make("td"), make("td"),
        make("td", { class: "weight" }), make("td", { class: "length", "aria-hidden": "true" }, make("i"))))));
  }

  /** The context as one bar, a part for each state that has weight; at the step that the page works, one of its numbers too. */
  function showContext(row) {
    const heavy = row.map((weight, t) => [weight, t]).filter(([weight]) => weight >= 0.05).sort(([a], [b]) => b - a);
    context.replaceChildren(make("span", { class: "name" }, "3. context"), make("div", { class: "mixture", "aria-hidden": "true" },
      ...row.map((weight, t) => make("i", { style: `width:${100 * weight}%` }, weight > 0.15 ? own().source[t] : ""))));
    const parts = heavy.map(([weight, t]) => `${weight.toFixed(2)} × state of “${own().source[t]}”`);
    const rest = row.length - heavy.length;
    const { worked } = data, isWorked = worked && state.sentence === data.sentence && state.word === data.word
      && state.look === own().steps.length - 1;
    sum.textContent = `context = ${parts.join(" + ")}${rest ? ` + what little ${rest} others add` : ""}. ` + (isWorked
      ? `In coordinate ${worked.coordinate}: ${heavy.map(([weight, t]) => `${weight.toFixed(2)} × ${two(worked.states[t])}`).join(" + ")}`
        + ` + … = ${two(worked.context)}.` : "");
  }

  function draw() {
    for (const name of Object.keys(state)) state[name] = Math.round(state[name]);
    state.sentence = clamp(state.sentence, 0, data.sentences.length - 1);
    if (drawn !== state.sentence) build();
    state.word = clamp(state.word, 0, own().target.length - 1);
    state.look = clamp(state.look, 0, own().steps.length - 1);
    for (const part of [sentence, words, training]) part.draw();
    const scores = own().scores[state.look][state.word], row = softmax(scores), best = row.indexOf(Math.max(...row));
    steps.querySelectorAll("tbody tr").forEach((line, t) => {
      const [score, power, weight, length] = line.querySelectorAll("td");
      score.textContent = two(scores[t]);
      power.textContent = Math.exp(scores[t]).toFixed(3);
      weight.textContent = row[t].toFixed(2);
      length.firstChild.style.width = `${100 * row[t]}%`;
    });
    showContext(row);
    said.say(`After ${own().steps[state.look]} updates, predicting “${own().target[state.word]}” (probability `
      + `${own().probability[state.look][state.word].toFixed(2)}): most attention, ${row[best].toFixed(2)}, on “${own().source[best]}”.`);
  }
  return { state, draw };
});

// One step and all others: where each word of a translation looks, along training.
"use strict";
Instruments.start("one-step", (stage, data) => {
  const { make, choice, slider, readout, clamp, changed } = Instruments;
  const state = { sentence: data.sentence, word: data.word, look: 0 };
  const own = () => data.sentences[state.sentence];
  const names = data.sentences.map((one, n) => [n, one.source.slice(0, -1).join(" ")]); // without its end mark
  const sentence = choice("Sentence", names, n => n === state.sentence, n => Object.assign(state, { sentence: n, word: 0 }));
  const training = slider("Training", () => own().steps.length, n => `${own().steps[n]} updates`,
    () => state.look, n => { state.look = n; });
  const source = make("ul", { class: "sources", "aria-hidden": "true" }), target = make("div"), said = readout("");
  let words = null, drawn = -1;
  stage.append(make("div", { class: "controls" }, sentence.element), source, target, training.element, said.element);

  /** The words of a translation, chosen by pointing, with Tab and by arrow keys. */
  function build() {
    drawn = state.sentence;
    words = choice("Translation", own().target.map((word, s) => [s, word]), s => s === state.word, s => { state.word = s; });
    words.buttons.forEach((button, s) => ["mouseenter", "focus"].forEach(name => button.addEventListener(name, () => {
      if (state.word === s) return;
      state.word = s;
      changed(stage);
    })));
    target.replaceChildren(words.element);
    source.replaceChildren(...own().source.map(word => make("li", {}, make("i"), make("span", {}, word), make("small"))));
  }

  function draw() {
    for (const name of Object.keys(state)) state[name] = Math.round(state[name]);
    state.sentence = clamp(state.sentence, 0, data.sentences.length - 1);
    if (drawn !== state.sentence) build();
    state.word = clamp(state.word, 0, own().target.length - 1);
    state.look = clamp(state.look, 0, own().steps.length - 1);
    for (const part of [sentence, words, training]) part.draw();
    const row = own().attention[state.look][state.word], best = row.indexOf(Math.max(...row));
    [...source.children].forEach((cell, t) => {
      cell.firstChild.style.height = `${100 * row[t]}%`;
      cell.lastChild.textContent = row[t].toFixed(2);
    });
    said.say(`After ${own().steps[state.look]} updates, predicting “${own().target[state.word]}” (probability `
      + `${own().probability[state.look][state.word].toFixed(2)}): most attention, ${row[best].toFixed(2)}, on “${own().source[best]}”.`);
  }
  return { state, draw };
});

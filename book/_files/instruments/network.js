// A trained encoder-decoder (attnlib/models/encoder_decoder.py) that runs in the page, its scores in their nine terms.
"use strict";
Instruments.give({ name: "network", Network: (() => {
  /** A number of IEEE half precision. */
  function half(bits) {
    const exponent = (bits >> 10) & 31, fraction = bits & 1023, sign = bits >> 15 ? -1 : 1;
    return sign * (exponent === 0 ? fraction * 2 ** -24 : (1024 + fraction) * 2 ** (exponent - 25));
  }

  function unpacked({ shapes, half: text }) {
    const bytes = Uint8Array.from(atob(text), letter => letter.charCodeAt(0)), tensors = {};
    let place = 0;
    for (const [name, [rows, columns = 1]] of Object.entries(shapes)) {
      tensors[name] = Array.from({ length: rows }, () => Float64Array.from({ length: columns },
        () => half(bytes[2 * place] | (bytes[2 * place++ + 1] << 8))));
    }
    return tensors;
  }

  const dot = (a, b) => { let sum = 0; for (let i = 0; i < a.length; i++) sum += a[i] * b[i]; return sum; };
  const affine = (weight, bias, x) => weight.map((row, i) => dot(row, x) + bias[i][0]);
  const sigmoid = x => 1 / (1 + Math.exp(-x));
  const plus = (a, b, sign = 1) => a.map((value, i) => value + sign * b[i]);

  return class {
    constructor(held) {
      Object.assign(this, { tensors: unpacked(held), source: held.source, target: held.target });
      this.recurrent = "encoder.weight_hh_l0" in this.tensors;
      this.width = held.shapes["source_embedding.weight"][1];
    }

    /** Ids of a sentence's words, its end mark included, and the words that the network does not know. */
    ids(text) {
      const list = text.trim().toLowerCase().split(/\s+/).filter(Boolean);
      const known = this.source.map(word => word.toLowerCase());
      const found = list.map(word => known.indexOf(word, 4)); // the first four are marks
      return { list, ids: [...found, 2], strange: list.filter((_, n) => found[n] < 0) };
    }

    /** Sines on even, cosines on odd columns. */
    position(place) {
      return Float64Array.from({ length: this.width }, (_, column) => {
        const angle = place / 10000 ** ((column - column % 2) / this.width);
        return column % 2 ? Math.cos(angle) : Math.sin(angle);
      });
    }

    /** The state after one more word: a GRU step in torch's form, or tanh(W (x + p) + b). */
    step(side, word, place, state) {
      const t = this.tensors, x = t[`${side === "encoder" ? "source" : "target"}_embedding.weight`][word];
      if (!this.recurrent) {
        return Float64Array.from(affine(t[`${side}.weight`], t[`${side}.bias`], plus(x, this.position(place))).map(Math.tanh));
      }
      const n = this.width;
      const from = affine(t[`${side}.weight_ih_l0`], t[`${side}.bias_ih_l0`], x);
      const before = affine(t[`${side}.weight_hh_l0`], t[`${side}.bias_hh_l0`], state);
      return state.map((old, i) => {
        const reset = sigmoid(from[i] + before[i]), update = sigmoid(from[n + i] + before[n + i]);
        return (1 - update) * Math.tanh(from[2 * n + i] + reset * before[2 * n + i]) + update * old;
      });
    }

    /** Temporal, input and residual part of a state; what was never seen in fitting has none of the first two. */
    parts(side, state, word, place) {
      const zero = new Float64Array(this.width);
      const temporal = this.tensors[`${side}.temporal`][place] ?? zero, input = this.tensors[`${side}.chi`][word] ?? zero;
      return [temporal, input, plus(plus(state, temporal, -1), input, -1)];
    }

    /**
     * States of the source, their parts, and the last state. With `exchange` one of them has another word's input component;
     * with `swap`, {words, places}, those at some places come from a sentence of other words.
     */
    encode(words, exchange, swap) {
      const states = [], parts = [];
      let state = new Float64Array(this.width);
      words.forEach((word, place) => {
        state = this.step("encoder", word, place, state);
        states.push(state);
        parts.push(this.parts("encoder", state, word, place));
      });
      if (exchange) {
        const { place, word } = exchange, input = this.parts("encoder", state, word, place)[1];
        states[place] = plus(plus(states[place], parts[place][1], -1), input);
        parts[place][1] = input;
      }
      if (swap) {
        const other = this.encode(swap.words);
        for (const place of swap.places) [states[place], parts[place]] = [other.states[place], other.parts[place]];
      }
      return { states, parts, last: state };
    }

    /**
     * One pass. `read` are the ids that the decoder reads; without it the network reads what it writes, to the end
     * mark or for `most` steps. `on[d][e]` says which terms make the attention; `exchange`, {place, word}, puts the input
     * component of another word into one state that is attended to, and leaves the rest as it was; `swap`, {words, places},
     * puts states of another sentence there. Gives terms[d][e][s][t], attention, the probabilities of the next word, the words
     * written, and the states of both sides with their parts.
     */
    run(source, { read = null, on = null, most = 50, exchange = null, swap = null } = {}) {
      const { states, parts, last } = this.encode(source, exchange, swap), BOS = 1, EOS = 2;
      const decoder = { states: [], parts: [] };
      const terms = [0, 1, 2].map(() => [[], [], []]), attention = [], probabilities = [], written = [];
      let state = last, word = read ? read[0] : BOS;
      for (let s = 0; s < (read ? read.length : most); s++) {
        state = this.step("decoder", word, s, state);
        const own = this.parts("decoder", state, word, s);
        decoder.states.push(state);
        decoder.parts.push(own);
        const scores = states.map(() => 0);
        own.forEach((part, d) => [0, 1, 2].forEach(e => {
          const row = parts.map(other => dot(part, other[e]));
          terms[d][e].push(row);
          if (!on || on[d][e]) row.forEach((score, t) => { scores[t] += score; });
        }));
        const weights = Instruments.softmax(scores);
        const context = Float64Array.from({ length: this.width },
          (_, i) => weights.reduce((sum, weight, t) => sum + weight * states[t][i], 0));
        const both = Float64Array.from([...state, ...context]);
        const chances = Instruments.softmax(affine(this.tensors["readout.weight"], this.tensors["readout.bias"], both));
        attention.push(weights);
        probabilities.push(chances);
        written.push(chances.indexOf(Math.max(...chances)));
        if (!read && written.at(-1) === EOS) break;
        word = read ? read[s + 1] : written.at(-1);
      }
      return { terms, attention, probabilities, written, encoder: { states, parts }, decoder };
    }
  };
})() });

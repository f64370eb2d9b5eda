// The triangle of all attentions over three positions: drag the point, and see the probability of the correct answer.
"use strict";
Instruments.start("attention-triangle", (stage, data) => {
  const { make, choice, readout, clamp, two, softmax, changed } = Instruments;
  const WIDTH = 340, SIDE = 260, LEFT = 40, TOP = 34, HEIGHT = SIDE * Math.sqrt(3) / 2, CELLS = 24;
  const CORNERS = [[LEFT + SIDE / 2, TOP], [LEFT, TOP + HEIGHT], [LEFT + SIDE, TOP + HEIGHT]]; // all on position 1, 2, 3
  // Attention in whole per cent on positions 1 and 2; the rest is on 3.
  const state = { example: data.examples[0].name, first: 34, second: 33 };
  const own = () => data.examples.find(example => example.name === state.example);
  const attention = () => [state.first, state.second, 100 - state.first - state.second].map(share => share / 100);

  /** Mix the logits of the positions; the correct answer is the first output. */
  const mixed = weights => own().logits[0].map((_, o) => weights.reduce((sum, weight, l) => sum + weight * own().logits[l][o], 0));
  const right = weights => softmax(mixed(weights))[0];
  const place = weights => [0, 1].map(axis => weights.reduce((sum, weight, l) => sum + weight * CORNERS[l][axis], 0));

  const example = choice("Example", data.examples.map(({ name, title }) => [name, title]), name => name === state.example,
    name => { state.example = name; });
  const presets = choice("Attention", data.attentions.map(({ title }, n) => [n, title]),
    n => data.attentions[n].shares.every((share, l) => share === [state.first, state.second][l]),
    n => { [state.first, state.second] = data.attentions[n].shares; });
  const svg = make("svg", {
    viewBox: `0 0 ${WIDTH} ${TOP + HEIGHT + 44}`, tabindex: 0, role: "application", class: "drag",
    "aria-label": "Attention over three positions. The right arrow key moves attention from position 2 to 3, left the other way; "
      + "up moves it to position 1, down away from it.",
  });
  svg.style.width = `${WIDTH}px`;
  const handle = make("circle", { class: "handle", r: 9 });
  const bars = make("div", { class: "outputs" }), sums = make("p", { class: "quiet" }), said = readout("");
  stage.append(make("div", { class: "controls" }, example.element), make("div", { class: "controls" }, presets.element),
    make("div", { class: "panels" }, make("div", { class: "panel" }, svg), make("div", { class: "beside" }, bars, sums, said.element)));

  /** Take these weights as attention, in whole per cent; outside of the triangle some are negative and count as none. */
  function put(weights) {
    const positive = weights.map(weight => Math.max(0, weight)), sum = positive.reduce((a, b) => a + b, 0) || 1;
    state.first = Math.round(100 * positive[0] / sum);
    state.second = Math.min(100 - state.first, Math.round(100 * positive[1] / sum));
    changed(svg);
  }
  const fromPointer = event => {
    const frame = svg.getBoundingClientRect(), scale = WIDTH / frame.width;
    const x = (event.clientX - frame.left) * scale, y = (event.clientY - frame.top) * scale;
    const first = (TOP + HEIGHT - y) / HEIGHT, third = (x - LEFT) / SIDE - first / 2;
    put([first, 1 - first - third, third]);
  };
  svg.addEventListener("pointerdown", event => { svg.setPointerCapture(event.pointerId); fromPointer(event); });
  svg.addEventListener("pointermove", event => { if (svg.hasPointerCapture(event.pointerId)) fromPointer(event); });
  svg.addEventListener("keydown", event => {
    const [one, two, three] = attention(), step = 0.05;
    const moved = {
      ArrowRight: [one, two - Math.min(step, two), three + Math.min(step, two)],
      ArrowLeft: [one, two + Math.min(step, three), three - Math.min(step, three)],
      ArrowUp: [one + step, two - step / 2, three - step / 2],
      ArrowDown: [one - Math.min(step, one), two + Math.min(step, one) / 2, three + Math.min(step, one) / 2],
    }[event.key];
    if (!moved) return;
    event.preventDefault();
    put(moved);
  });

  /** Shade the triangle in small triangles by the probability of the correct answer at their middle. */
  function shade() {
    const cells = [];
    const corner = (row, column) => [(CELLS - row) / CELLS, (row - column) / CELLS, column / CELLS];
    const cell = (...corners) => {
      const middle = [0, 1, 2].map(l => corners.reduce((sum, weights) => sum + weights[l], 0) / 3);
      cells.push(make("path", { class: "cell", style: `fill-opacity:${(0.85 * right(middle)).toFixed(3)}`,
        d: `M${corners.map(weights => place(weights).map(x => x.toFixed(1)).join(" ")).join("L")}Z` }));
    };
    for (let row = 0; row < CELLS; row++) for (let column = 0; column <= row; column++) {
      cell(corner(row, column), corner(row + 1, column), corner(row + 1, column + 1));
      if (column < row) cell(corner(row, column), corner(row, column + 1), corner(row + 1, column + 1));
    }
    return cells;
  }

  let shaded = "";
  function draw() {
    if (!data.examples.some(({ name }) => name === state.example)) state.example = data.examples[0].name;
    state.first = clamp(Math.round(state.first), 0, 100);
    state.second = clamp(Math.round(state.second), 0, 100 - state.first);
    for (const part of [example, presets]) part.draw();
    const weights = attention(), { logits, outputs } = own();
    if (shaded !== state.example) {
      const labels = CORNERS.map(([x, y], l) => make("text", { x, y: l ? y + 20 : y - 20, "text-anchor": "middle" },
        make("tspan", { x }, `position ${l + 1}`), make("tspan", { x, dy: 14 }, `β = ${softmax(logits[l])[0].toFixed(3)}`)));
      svg.replaceChildren(...shade(), make("path", { class: "frame", d: `M${CORNERS.map(corner => corner.join(" ")).join("L")}Z` }),
        ...labels, handle);
      shaded = state.example;
    }
    const [x, y] = place(weights);
    handle.setAttribute("cx", x);
    handle.setAttribute("cy", y);
    const chances = softmax(mixed(weights));
    bars.replaceChildren(...outputs.map((output, o) => make("div", { class: "output" }, make("span", {}, output),
      make("i", { "aria-hidden": "true", style: `--length:${100 * chances[o]}%` }), make("b", {}, chances[o].toFixed(3)))));
    const ofProbe = weights.reduce((sum, weight, l) => sum + (weight ? weight * Math.log(softmax(logits[l])[0]) : 0), 0);
    const log = Math.log(chances[0]);
    sums.textContent = `log p = mean log β + disagreement: ${two(log)} = ${two(ofProbe)} + ${two(log - ofProbe)}.`;
    const best = Math.max(...data.best[state.example]);
    said.say(`Attention ${weights.map(weight => weight.toFixed(2)).join(", ")}: the correct answer has probability `
      + `${chances[0].toFixed(3)}. ${chances[0] > best - 0.002 ? "No attention does better." : `The best attention gives ${best.toFixed(3)}; find it.`}`);
  }
  return { state, draw };
});

// Networks that learn to copy: is attention drawn to the word, or driven away from it?
"use strict";
Instruments.start("drawn-or-driven-away", (stage, data) => {
  const { make, choice, slider, readout, plot, percent } = Instruments;
  const kinds = Object.keys(data.steps);
  const KINDS = {
    permutation: `permutations of ${data.length} words`, sample: "samples of a larger set", mixture: "one of two sets",
  };
  const WAYS = { drawn: "drawn to the word", away: "driven away from it" }, LOOKS = { drawn: "two", away: "one dashed" };
  const kind = kinds.includes("permutation") ? "permutation" : kinds[0];
  const state = { kind, look: data.steps[kind].length - 1, network: -1 };
  const steps = () => data.steps[state.kind] ?? data.steps[state.kind = kind];
  const own = () => data.networks.filter(network => network.kind === state.kind);
  const look = network => LOOKS[network.way] ?? "six";
  const times = value => `${value < 0.1 ? value.toPrecision(1) : value.toFixed(value < 10 ? 1 : 0)} times`;

  const select = choice("Sentences", kinds.map(name => [name, KINDS[name] ?? name]), name => name === state.kind,
    name => { state.kind = name; state.network = -1; state.look = steps().length - 1; });
  const scrub = slider("Training", () => steps().length, n => `${steps()[n]} updates`,
    () => state.look, n => { state.look = n; });
  const said = readout("");
  const follow = n => {
    state.network = n;
    Instruments.changed(stage);
  };
  const tell = n => {
    const network = own()[n], now = state.look;
    if (!network) return;
    said.say(`Network ${network.seed} after ${steps()[now]} updates: ${percent(network.accuracy[now])} of the words right, `
      + `with ${times(network.right[now])} the weight of uniform attention on the right word and `
      + `${times(network.later[now])} on a later one; ${percent(network.known[now])} of the words known.`);
  };
  const axes = { xLabel: "updates", width: 210, height: 230, xTicks: [0, 200, 400] };
  const panels = {
    accuracy: plot("Words copied right", { ...axes, yLabel: "share of words", yTicks: [0, 0.5, 1] }, tell, follow),
    right: plot("Attention on the right word", {
      ...axes, yLabel: "weight there × length", log: true, yTicks: [0.01, 0.1, 1, 10], band: [0.5, 2],
    }, tell, follow),
    known: plot("Words known", { ...axes, yLabel: "largest β at the right word", yTicks: [0, 0.5, 1] }, tell, follow),
  };
  const network = Instruments.menu("Follow", [], () => String(state.network), n => { state.network = Number(n); });
  const key = make("div", { class: "key" });
  stage.append(make("div", { class: "controls" }, select.element, network.element), scrub.element, key,
    make("div", { class: "panels" }, ...Object.values(panels).map(panel => panel.element)), said.element);

  function draw() {
    const until = steps(), networks = own();
    state.look = Instruments.clamp(Math.round(state.look), 0, until.length - 1);
    if (!networks[state.network]) state.network = -1;
    for (const part of [select, scrub]) part.draw();
    const named = networks.map((one, n) => [String(n), `network ${one.seed}, ${WAYS[one.way] ?? "neither"}`]);
    network.fill([["-1", "all networks"], ...named]);
    network.draw();
    const at = until[state.look];
    for (const [name, panel] of Object.entries(panels)) {
      const series = networks.map(one => ({
        look: look(one), points: until.slice(0, state.look + 1).map((step, n) => [step, one[name][n]]),
      }));
      const counts = way => networks.filter(one => one.way === way).length;
      const notes = name !== "right" ? [] : [
        ...(counts("drawn") ? [{ x: until.at(-1) * 0.97, y: 6, text: "drawn to the word", look: "two", anchor: "end" }] : []),
        ...(counts("away") ? [{ x: until.at(-1) * 0.97, y: 0.012, text: "driven away from it", look: "one", anchor: "end" }] : []),
        { x: until.at(-1) * 0.97, y: 1.1, text: "uniform attention", look: "", anchor: "end" },
      ];
      panel.draw({
        x: [0, until.at(-1)], y: name === "right" ? [0.0003, data.length] : [0, 1.02], series, at, notes,
        chosen: state.network < 0 ? undefined : state.network,
      });
    }
    key.replaceChildren(...Object.entries(LOOKS).map(([way, name]) => {
      const all = networks.filter(one => one.way === way);
      const mean = all.reduce((sum, one) => sum + one.accuracy[state.look], 0) / all.length;
      const line = make("svg", { viewBox: "0 0 30 8", width: 30, height: 8 },
        make("path", { class: `curve ${name} chosen`, d: "M0 4H30" }));
      return make("span", { "data-way": way }, line, ` ${all.length} networks ${WAYS[way]}: `
        + (all.length ? `${percent(mean)} of the words right` : "none"));
    }));
    if (state.network >= 0) tell(state.network);
    else said.say(`After ${at} updates. Point at a curve, or pick a network, to follow it through the three panels.`);
  }
  return { state, draw };
});

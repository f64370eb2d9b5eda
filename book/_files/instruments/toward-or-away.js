// Networks in training: does attention move toward the correct word, or away from it?
"use strict";
Instruments.start("toward-or-away", (stage, data) => {
  const { make, choice, slider, readout, plot, percent } = Instruments;
  const kinds = Object.keys(data.kinds);
  const WAYS = { drawn: "learn to look at the word", away: "learn to look away from it", none: data.neither ?? "neither" };
  const LOOKS = { drawn: "two", away: "one dashed", none: "six" };
  const state = { kind: kinds[0], look: 0, network: -1 };
  const steps = () => data.steps[state.kind] ?? data.steps[state.kind = kinds[0]];
  const own = () => data.networks.filter(network => network.kind === state.kind);
  const wayOf = network => network.way ?? "none";
  const nameOf = network => `network ${network.name}`;
  const top = 1.1 * Math.max(...data.networks.flatMap(network => network.right));
  const across = step => (data.doublings ? Math.log2(1 + step) : step);
  const times = value => `${value < 0.1 ? value.toPrecision(1) : value.toFixed(value < 10 ? 1 : 0)} times`;

  const select = choice("Show", Object.entries(data.kinds), name => name === state.kind,
    name => { state.kind = name; state.network = -1; state.look = 0; });
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
    const name = nameOf(network), later = network.later ? ` and ${times(network.later[now])} on a later one` : "";
    said.say(`${name[0].toUpperCase()}${name.slice(1)} after ${steps()[now]} updates: `
      + `word accuracy ${percent(network.accuracy[now])}, with ${times(network.right[now])} the weight of uniform `
      + `attention on the correct word${later}; ${percent(network.known[now])} of the correct words ranked first.`);
  };
  const axes = { xLabel: "updates", width: 196, height: 230 };
  const panels = {
    accuracy: plot("Word accuracy", { ...axes, yLabel: "share of correct words", yTicks: [0, 0.5, 1] }, tell, follow),
    right: plot("Attention on the correct word", {
      ...axes, yLabel: "times uniform attention", log: true, yTicks: [0.01, 0.1, 1, 10], band: [0.5, 2],
    }, tell, follow),
    known: plot("Correct word ranked first", { ...axes, yLabel: "share with the largest β there", yTicks: [0, 0.5, 1] }, tell, follow),
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
    const named = networks.map((one, n) => [String(n), nameOf(one) + (one.way ? `, ${WAYS[one.way]}` : "")]);
    network.fill([["-1", "all networks"], ...named]);
    network.draw();
    const at = until[state.look], end = until.at(-1), edge = across(end) * 0.97;
    const ticks = data.doublings ? [0, 8, 128, 2000] : [0, end / 2, end];
    for (const [name, panel] of Object.entries(panels)) {
      const series = networks.map(one => ({
        look: LOOKS[wayOf(one)],
        points: until.slice(0, state.look + 1).map((step, n) => [across(step), one[name][n]]),
      }));
      const counts = way => networks.filter(one => one.way === way).length;
      const notes = name !== "right" ? [] : [
        ...(counts("drawn") ? [{ x: edge, y: 6, text: "look at the word", look: "two", anchor: "end" }] : []),
        ...(counts("away") ? [{ x: edge, y: 0.012, text: "look away from it", look: "one", anchor: "end" }] : []),
        { x: edge, y: 1.1, text: "uniform attention", look: "", anchor: "end" },
      ];
      panel.draw({
        x: [0, across(end)], y: name === "right" ? [0.0003, top] : [0, 1.02], series, at: across(at), notes,
        xTicks: ticks.map(step => [across(step), step]),
        chosen: state.network < 0 ? undefined : state.network,
      });
    }
    key.replaceChildren(...Object.entries(LOOKS).flatMap(([way, name]) => {
      const all = networks.filter(one => wayOf(one) === way);
      if (!all.length) return [];
      const mean = all.reduce((sum, one) => sum + one.accuracy[state.look], 0) / all.length;
      const line = make("svg", { viewBox: "0 0 30 8", width: 30, height: 8 },
        make("path", { class: `curve ${name} chosen`, d: "M0 4H30" }));
      return make("span", { "data-way": way }, line, ` ${all.length} networks ${WAYS[way]}: `
        + `word accuracy ${percent(mean)}`);
    }));
    if (state.network >= 0) tell(state.network);
    else said.say(`After ${at} updates. ${state.look ? "" : "Press Play, or drag the slider, and see which way attention goes. "}`
      + "Point at a curve, or pick a network, to follow it through the three panels.");
  }

  scrub.playOnceSeen();
  addEventListener("beforeprint", () => { // a page of paper shows how training ends
    state.look = steps().length - 1;
    draw();
  });
  return { state, draw };
});

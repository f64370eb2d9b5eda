// Take attention apart: the sections of this page move one picture, which a trained network in the page computes.
"use strict";
Instruments.start("story", (stage, data) => {
  const { make, clamp, short, two, choice, slider, PARTS, termLook, softmax } = Instruments;
  const root = stage.parentElement, article = root.parentElement;
  const WIDTH = 420, HEIGHT = 400, STEPS = data.right.length, NO_NOTEBOOK = "110110000", ALL = "111111111";
  const state = { step: 1, shown: 0, command: data.command, notebook: 1, swapped: "011", update: 20 };
  const seen = new Set(); // steps whose question is answered
  let scrolls = !location.hash.startsWith("#story?"); // an address comes first; from then on the step is the one in view
  let network = null, learning = null;

  // ---- What the network computes, once a command.

  const runs = new Map();
  const words = command => command.split(" ");
  const joined = command => words(command).map(word => (word === "after" ? "and" : word)).join(" ");
  const readings = {
    whole: command => network.run(network.ids(command).ids),
    without: command => network.run(network.ids(command).ids, { on: grid(NO_NOTEBOOK) }),
    joined: command => network.run(network.ids(joined(command)).ids),
  };
  const grid = on => PARTS.map((_, d) => PARTS.map((_, e) => on[3 * d + e] === "1"));
  const run = (kind, command = data.command) => {
    const key = `${kind} ${command}`;
    if (!runs.has(key)) runs.set(key, readings[kind](command));
    return runs.get(key);
  };
  const AFTER = words(data.command).indexOf("after");
  /** The command with the states at some places taken from the same command with "and"; `which` has a digit a place from "after" on. */
  const swappedRun = which => {
    const key = `swap ${which}`;
    if (!runs.has(key)) {
      const places = [...which].flatMap((digit, n) => (digit === "1" ? [AFTER + n] : []));
      runs.set(key, network.run(network.ids(data.command).ids, { swap: { words: network.ids(joined(data.command)).ids, places } }));
    }
    return runs.get(key);
  };
  const written = result => result.written.map(id => short(network.target[id]));
  const spelled = result => written(result).filter(word => word !== "end").join(" ");

  // ---- Marks of the picture. Each has a name; one that two pictures share moves from its old place to the new one.

  const text = (content, { x = 0, y = 0, size = 14, anchor = "middle", look = "", bold = false } = {}) => make("text", {
    x, y, "text-anchor": anchor, class: look || null, style: `font-size:${size}px${bold ? ";font-weight:700" : ""}`,
  }, content);
  const tile = (word, look = "", width = 68) => [
    make("rect", { x: -width / 2, y: -15, width, height: 30, rx: 5, class: `tile ${look}` }),
    text(word, { y: 5, size: 15, look: `on ${look}` }),
  ];
  const round = value => Math.round(10 * value) / 10;
  const path = (d, look, width = 1.5) => make("path", { d, class: `wire ${look}`, style: `stroke-width:${round(width)}` });
  /** A short arrow, to the right unless turned by some degrees. */
  const arrow = (length, turn = 0) => make("path", {
    d: `M0 0H${length}M${length - 5} -4L${length} 0L${length - 5} 4`, class: "wire", transform: turn ? `rotate(${turn})` : null,
  });

  /** Numbers of a state as squares, eight a row: the larger a number, the darker; strength in four steps. */
  function squares(values, cell, look = "state") {
    const shades = {};
    values.forEach((value, n) => {
      const shade = clamp(Math.ceil(4 * Math.abs(value) / 0.9), 0, 4);
      if (!shade) return;
      const sign = look === "state" && value < 0 ? "less" : "more";
      shades[`${sign} ${shade}`] = `${shades[`${sign} ${shade}`] ?? ""}M${n % 8 - 4} ${Math.floor(n / 8) - 4}h.9`;
    });
    const side = 8 * cell + 6;
    return [
      make("rect", { x: -side / 2, y: -side / 2, width: side, height: side, rx: 3, class: `sheet ${look}` }),
      ...Object.entries(shades).map(([key, d]) => {
        const [sign, shade] = key.split(" ");
        return make("path", { d, class: `squares ${look} ${sign}`, "stroke-opacity": shade / 4,
          transform: `scale(${cell}) translate(.05 .5)` });
      }),
    ];
  }
  const unknown = (cell, look) => {
    const side = 8 * cell + 6;
    return [make("rect", { x: -side / 2, y: -side / 2, width: side, height: side, rx: 3, class: `sheet hidden ${look}` }),
      text("?", { y: 8, size: 24, look: "quiet" })];
  };
  const ring = (width, height = width) => make("rect", { x: -width / 2, y: -height / 2, width, height, rx: 6, class: "ring on" });
  const row = (count, n) => (WIDTH - 64 * count - 12 * (count - 1)) / 2 + 32 + 76 * n;
  const named = (name, x, y, children, opacity = 1) => ({ name, x, y, children, opacity });
  const label = (name, content, x, y, more = {}) => named(name, x, y, [text(content, { look: "quiet", size: 13, ...more })]);
  const sourceOf = command => [...words(command), "end"];
  const source = sourceOf(data.command);
  const across = n => row(source.length, n);

  // ---- The pictures, one a step: what is shown before and after the question is answered, and what it says in words.

  const pictures = [
    function command(shown) {
      const result = run("whole"), output = written(result).slice(0, -1);
      const heard = words(data.command);
      return {
        said: `The network reads ${data.command}${shown ? ` and writes ${output.join(" ")}` : ""}.`,
        marks: [
          label("reads", "it reads", WIDTH / 2, 36),
          ...heard.map((word, n) => named(`word ${n}`, row(heard.length, n), 68, tile(word, word === "after" ? "strong" : ""))),
          ...heard.map((_, n) => named(`in ${n}`, row(heard.length, n), 92, [arrow(34, 90)])),
          named("network", WIDTH / 2, 190, [
            make("rect", { x: -160, y: -52, width: 320, height: 104, rx: 12, class: "box" }),
            text("the network", { y: -4, size: 18, bold: true }),
            text("no rule in it says what “after” means", { y: 22, size: 13, look: "quiet" }),
          ]),
          ...output.map((_, n) => named(`out ${n}`, row(output.length, n), 250, [arrow(34, 90)])),
          ...output.map((word, n) => named(`written ${n}`, row(output.length, n), 312,
            shown ? tile(word, "result") : tile("?", "result hidden"))),
          label("writes", "it writes", WIDTH / 2, 352),
        ],
      };
    },

    function states(shown) {
      const { encoder, decoder, ...result } = run("whole"), output = written(result);
      return {
        said: `A state of ${network.width} numbers after each of ${source.join(", ")}, and one before each written word`
          + `${shown ? `. The states of ${source.slice(AFTER).join(", ")} can know about after` : ""}.`,
        marks: [
          label("while reading", "a state after each word it reads", WIDTH / 2, 20),
          ...source.map((word, n) => named(`word ${n}`, across(n), 50,
            tile(word, word === "after" ? "strong" : ""), shown && n < AFTER ? 0.35 : 1)),
          ...encoder.states.map((values, n) => named(`state ${n}`, across(n), 106, squares(values, 6), shown && n < AFTER ? 0.35 : 1)),
          ...source.slice(1).map((_, n) => named(`next ${n}`, across(n) + 28, 106, [arrow(19)])),
          ...(shown ? source.slice(AFTER).map((_, n) => named(`knows ${AFTER + n}`, across(AFTER + n), 106, [ring(61)])) : []),
          ...(shown ? [label("knows", "have read “after”", across(AFTER + 1), 160, { look: "", bold: true })] : []),
          named("hand over", 0, 0, [
            path(`M${across(source.length - 1)} 139V${shown ? 178 : 178}H${row(output.length, 0)}V222`, ""),
            make("path", { d: `M${row(output.length, 0) - 4} 217l4 5l4 -5`, class: "wire" })]),
          ...decoder.states.map((values, n) => named(`writer ${n}`, row(output.length, n), 252, squares(values, 6))),
          ...output.slice(1).map((_, n) => named(`then ${n}`, row(output.length, n) + 28, 252, [arrow(19)])),
          ...output.map((word, n) => named(`written ${n}`, row(output.length, n), 312, tile(word, "result"))),
          label("while writing", "a state for each word it writes", WIDTH / 2, 352),
          label("legend", "each square is one of 64 numbers: purple above zero, green below", WIDTH / 2, 384, { size: 12 }),
        ],
      };
    },

    function score(shown) {
      const { encoder, decoder, terms, attention } = run("whole"), first = attention[0];
      const scores = source.map((_, t) => terms.flat().reduce((sum, term) => sum + term[0][t], 0));
      return {
        said: `Before the first word is written, ${shown
          ? `scores are ${source.map((word, t) => `${word} ${scores[t].toFixed(1)}`).join(", ")}, and ${source[first.indexOf(Math.max(...first))]} gets ${percent(Math.max(...first))} of the attention`
          : "five states are compared with the state that writes"}.`,
        marks: [
          ...source.map((word, n) => named(`word ${n}`, across(n), 30, tile(word, word === "after" ? "strong" : ""))),
          ...encoder.states.map((values, n) => named(`state ${n}`, across(n), 84, squares(values, 6))),
          label("score", "score", 4, 133, { anchor: "start", size: 12 }),
          ...source.map((_, n) => named(`score ${n}`, across(n), 150,
            [text(shown ? scores[n].toFixed(1) : "?", { size: 17, bold: shown, look: shown ? "" : "quiet" })])),
          label("attention", "attention", 4, 176, { anchor: "start", size: 12 }),
          named("base", 0, 244, [make("path", { d: `M24 0H${WIDTH - 24}`, class: "wire thin" })]),
          ...(shown ? source.map((_, n) => named(`weight ${n}`, across(n), 244, [
            make("rect", { x: -24, y: round(-46 * first[n]), width: 48, height: round(Math.max(46 * first[n], 0.5)), class: "weight" }),
            text(percent(first[n]), { y: -50 * first[n] - 4, size: 14 })])) : []),
          ...source.map((_, n) => named(`look ${n}`, 0, 0, [
            path(`M${WIDTH / 2} 304L${across(n)} 248`, shown && first[n] > 0.5 ? "strong" : "", shown ? 0.6 + 8 * first[n] : 1.2)])),
          named("writer 0", WIDTH / 2, 334, squares(decoder.states[0], 6)),
          label("writer", shown ? "writes “jump”" : "is about to write", WIDTH / 2 + 36, 331, { anchor: "start" }),
          label("writer too", shown ? "" : "the first word", WIDTH / 2 + 36, 349, { anchor: "start" }),
          label("rule", "multiply number by number, add up: the score", WIDTH / 2, 388, { size: 12 }),
        ],
      };
    },

    function parts(shown) {
      const here = run("whole").encoder, there = run("joined").encoder, last = source.length - 1;
      const X = [46, 154, 262, 370], looks = ["temporal", "input", "residual"];
      const line = (name, y, { states, parts }, command, hidden) => [
        named(`command ${name}`, 4, y - 58, [text("", {}), sentence(command)]),
        named(`state ${name}`, X[0], y, squares(states[last], 9)),
        ...["=", "+", "+"].map((sign, n) => label(`sign ${n} ${name}`, sign, (X[n] + X[n + 1]) / 2, y + 7, { size: 20 })),
        ...looks.map((look, n) => named(`part ${n} ${name}`, X[n + 1], y, hidden ? unknown(9, look) : squares(parts[last][n], 9, look))),
      ];
      const verdicts = looks.map((_, n) => difference(here.parts[last][n], there.parts[last][n]) < 1e-9);
      return {
        said: `The state of end is a sum of a clock, a dictionary entry and a notebook.${shown
          ? ` In ${joined(data.command)} ${PARTS.map((_, n) => `the ${NAMES[n]} is ${verdicts[n] ? "the same" : "another"}`).join(", ")}.` : ""}`,
        marks: [
          ...line("one", 92, here, data.command, false),
          label("whole", "its state", X[0], 150),
          ...looks.map((look, n) => named(`name ${n}`, X[n + 1], 150, [text(`${NAMES[n]} ${PARTS[n].symbol}`, { look: `${look}-word`, size: 14, bold: true })])),
          ...["what position 5", "what the word", "what is left:"].map((words, n) => label(`means ${n}`, words, X[n + 1], 170, { size: 12 })),
          ...["says on average", "adds on average", "this command"].map((words, n) => label(`means too ${n}`, words, X[n + 1], 186, { size: 12 })),
          ...line("two", 284, there, joined(data.command), !shown),
          ...(shown ? verdicts.map((same, n) => named(`verdict ${n}`, X[n + 1], 348, [text(same ? "the same" : "different", { bold: !same, look: same ? "quiet" : "" })])) : []),
        ],
      };
    },

    function terms(shown) {
      const { terms } = run("whole"), at = 0, best = source.length - 1, rival = 1;
      const values = terms.map(row => row.map(term => term[at][best] - term[at][rival]));
      const total = values.flat().reduce((sum, value) => sum + value, 0);
      const score = t => terms.flat().reduce((sum, term) => sum + term[at][t], 0);
      const X = e => 168 + 96 * e, Y = d => 106 + 70 * d, top = Math.max(...values.flat());
      return {
        said: `Nine terms: clock, dictionary entry and notebook of the writing state, times those of the word.${shown
          ? ` They say why ${source[best]} outscores ${source[rival]}: ${values.flatMap((row, d) => row.map((value, e) => `${NAMES[d]} times ${NAMES[e]} ${two(value)}`)).join(", ")}; in all ${two(total)}.` : ""}`,
        marks: [
          label("columns", `state of “${source[best]}”`, X(1), 24),
          label("rows", "state that", 50, 24), label("rows too", "writes “jump”", 50, 40),
          ...PARTS.map((_, e) => named(`column ${e}`, X(e), 54, [text(NAMES_SHORT[e], { look: `${LOOKS[e]}-word`, bold: true })])),
          ...PARTS.map((_, d) => named(`line ${d}`, 50, Y(d) + 5, [text(NAMES_SHORT[d], { look: `${LOOKS[d]}-word`, bold: true })])),
          ...PARTS.flatMap((_, d) => PARTS.map((_, e) => named(`term ${d}${e}`, X(e), Y(d), [
            make("rect", { x: -45, y: -31, width: 90, height: 62, rx: 4, class: `term ${termLook(d, e)}` }),
            text(`${PARTS[d].symbol}·${PARTS[e].symbol}`, { y: shown ? -10 : 5, size: shown ? 12 : 17, look: `on ${termLook(d, e)}` }),
            ...(shown ? [text(signed(values[d][e]), { y: 14, size: 18, bold: true, look: `on ${termLook(d, e)}` })] : []),
            ...(shown && values[d][e] === top ? [ring(98, 70)] : []),
          ]))),
          ...(shown ? [
            named("sum", WIDTH / 2, 316, [text(`the nine add up to ${signed(total)}`, { size: 16, bold: true })]),
            label("scores", `score of “${source[best]}” ${score(best).toFixed(1)} minus score of “${source[rival]}” ${score(rival).toFixed(1)}`, WIDTH / 2, 342),
            label("nothing read", "zeros: it has not yet written a word", WIDTH / 2, 370, { size: 12 }),
          ] : [
            named("sum", WIDTH / 2, 316, [text(`why “${source[best]}” and not “${source[rival]}”?`, { size: 16, bold: true })]),
            label("scores", "the nine products add up to the difference of the scores", WIDTH / 2, 342, { size: 12 })]),
        ],
      };
    },

    function notebookOff(shown) {
      const off = shown && !state.notebook, heads = sourceOf(state.command);
      const whole = run("whole", state.command), without = run("without", state.command);
      const now = off ? without : whole, down = written(now);
      const cell = Math.min(32, 172 / heads.length, 192 / down.length), left = 236, top = 106;
      const lines = [["all nine terms", whole], ["without the notebook", without]];
      const right = written(whole);
      return {
        said: `${off ? "Without the five notebook terms" : "With all nine terms"} the network carries out ${state.command} as ${spelled(now)}.`,
        marks: [
          named("command", WIDTH / 2, 22, [text(state.command, { size: 16, bold: true })]),
          ...PARTS.flatMap((_, d) => PARTS.map((_, e) => named(`term ${d}${e}`, 36 + 44 * e, 134 + 44 * d, [
            make("rect", { x: -20, y: -20, width: 40, height: 40, rx: 4, class: `term ${termLook(d, e)}${off && (d === 2 || e === 2) ? " off" : ""}` }),
            text(`${PARTS[d].symbol}·${PARTS[e].symbol}`, { y: 5, size: 14, look: off && (d === 2 || e === 2) ? "off" : `on ${termLook(d, e)}` }),
          ]))),
          label("terms", off ? "five terms off" : "nine terms on", 80, 92),
          label("matrix", "attention", left + heads.length * cell / 2, 52),
          ...heads.map((word, t) => named(`head ${t}`, left + (t + 0.5) * cell, top - 6, [
            make("text", { transform: "rotate(-52)", "text-anchor": "start", style: "font-size:13px" }, word)])),
          ...down.map((word, s) => named(`side ${s}`, left - 6, top + (s + 0.5) * cell + 5, [text(word.replace("_", " "), { anchor: "end", size: 13, look: off && word !== right[s] ? "wrong" : "" })])),
          ...down.flatMap((_, s) => heads.map((_, t) => named(`cell ${s} ${t}`, round(left + t * cell), round(top + s * cell), [
            make("rect", { width: round(cell - 1), height: round(cell - 1), class: "cell", "fill-opacity": round(10 * now.attention[s][t]) / 10 })]))),
          named("frame", left, top, [make("rect", { x: -1, y: -1, width: round(heads.length * cell + 1), height: round(down.length * cell + 1), class: "frame" })]),
          ...lines.flatMap(([name, result], n) => [
            label(`name of line ${n}`, name, 16, 322 + 40 * n, { anchor: "start", look: shown && (n === 1) === off ? "" : "quiet", bold: shown && (n === 1) === off }),
            named(`line ${n}`, 170, 322 + 40 * n, [n && !shown ? text("?", { anchor: "start", size: 15, look: "quiet" })
              : differing(written(result).slice(0, -1), n ? right : null)]),
          ]),
        ],
      };
    },

    function whereWritten(shown) {
      const which = shown ? state.swapped : "000", now = swappedRun(which), weights = now.attention[0];
      const output = written(now).slice(0, -1), before = written(run("whole"));
      const swapped = n => n >= AFTER && which[n - AFTER] === "1";
      return {
        said: `States of ${source.filter((_, n) => swapped(n)).join(" and ") || "no word"} come from ${joined(data.command)}: it writes ${output.join(" ")}.`,
        marks: [
          label("title", shown ? "ringed states come from the command with “and”" : "swap states with those of the same command with “and”", WIDTH / 2, 20),
          ...source.map((word, n) => named(`word ${n}`, across(n), 50, tile(word === "after" && swapped(n) ? "and" : word, word === "after" ? "strong" : ""))),
          ...now.encoder.states.map((values, n) => named(`state ${n}`, across(n), 106, squares(values, 6))),
          ...source.flatMap((_, n) => (swapped(n) ? [named(`knows ${n}`, across(n), 106, [ring(61)])] : [])),
          label("attention", "attention for the first word", WIDTH / 2, 162, { size: 12 }),
          named("base", 0, 232, [make("path", { d: `M24 0H${WIDTH - 24}`, class: "wire thin" })]),
          ...source.map((_, n) => named(`weight ${n}`, across(n), 232, [
            make("rect", { x: -24, y: round(-46 * weights[n]), width: 48, height: round(Math.max(46 * weights[n], 0.5)), class: "weight" }),
            text(percent(weights[n]), { y: -46 * weights[n] - 5, size: 13 })])),
          label("writes", "it writes", WIDTH / 2, 262),
          ...output.slice(0, 5).map((word, n) => named(`written ${n}`, row(Math.min(output.length, 5), n), 290, tile(word, word === before[n] ? "result" : "result wrong"))),
          ...(shown ? [["100", "only “after” swapped"], ["011", "“jump” and “end” swapped"]].map(([key, name], n) => named(`outcome ${n}`, 0, 342 + 28 * n, [
            text(name, { x: 206, anchor: "end", size: 13, look: "quiet" }),
            (() => { const line = differing(written(swappedRun(key)).slice(0, -1), before); line.setAttribute("x", 218); return line; })(),
          ])) : []),
        ],
      };
    },

    function lookAway(shown) {
      const at = learning.steps.findLastIndex(step => step <= state.update), step = learning.steps[at], end = learning.steps.at(-1);
      const X = step => 54 + 300 * step / end, judged = learning.judged;
      const up = accuracy => 158 - 118 * accuracy, high = weight => 352 - 120 * Math.log10(Math.max(weight, 0.01) / 0.01) / Math.log10(4000);
      const curve = (values, place) => values.slice(0, at + 1).map((value, n) => `${n ? "L" : "M"}${Math.round(X(learning.steps[n]))} ${Math.round(place(value))}`).join("");
      const ways = ["drawn", "away"], count = way => learning.networks.filter(course => course.way === way).length;
      const mean = way => learning.networks.filter(course => course.way === way).reduce((sum, course) => sum + course.accuracy[at], 0) / count(way);
      return {
        said: `After ${step} updates ${count("drawn")} networks write ${percent(mean("drawn"))} of the words correctly, ${count("away")} others ${percent(mean("away"))}.`,
        marks: [
          label("above", "words copied correctly", 54, 24, { anchor: "start", look: "", bold: true }),
          named("axes", 0, 0, [
            ...[0, 0.5, 1].flatMap(value => [make("path", { d: `M54 ${up(value)}H354`, class: "grid" }), text(`${100 * value} %`, { x: 48, y: up(value) + 4, anchor: "end", size: 12, look: "quiet" })]),
            make("path", { d: `M${round(X(judged))} 36V158`, class: "wire dotted" }),
            text("the paper stops here", { x: round(X(judged)) + 6, y: 148, anchor: "start", size: 12, look: "quiet" })]),
          ...ways.map(way => named(`accuracy ${way}`, 0, 0, learning.networks.filter(course => course.way === way).map(course => make("path", { d: curve(course.accuracy, up), class: `course ${shown ? way : "drawn plain"}` })))),
          ...(shown ? [
            ...learning.steps.filter(step => step % 100 === 0).map(step => named(`tick ${step}`, X(step), 366, [text(String(step), { size: 12, look: "quiet" })])),
            label("below", "attention on the correct word", 54, 208, { anchor: "start", look: "", bold: true }),
            named("axes below", 0, 0, [
              ...[[0.01, "1/100 of", "uniform"], [1, "uniform"], [40, "all of it"]].flatMap(([value, name, below = ""]) => [
                make("path", { d: `M54 ${round(high(value))}H354`, class: `grid${value === 1 ? " dark" : ""}` }),
                text(name, { x: 48, y: round(high(value)) + (below ? -9 : 4), anchor: "end", size: 12, look: "quiet" }),
                ...(below ? [text(below, { x: 48, y: round(high(value)) + 4, anchor: "end", size: 12, look: "quiet" })] : [])])]),
            ...ways.map(way => named(`attention ${way}`, 0, 0, learning.networks.filter(course => course.way === way).map(course => make("path", { d: curve(course.right, high), class: `course ${way}` })))),
            named("drawn", 358, round(high(40)) + 4, [text(`${count("drawn")} look`, { anchor: "start", look: "drawn", size: 13, bold: true })]),
            named("away", 358, round(high(0.3)) + 2, [text(`${count("away")} look`, { anchor: "start", look: "away", size: 13, bold: true })]),
            named("away too", 358, round(high(0.3)) + 18, [text("away", { anchor: "start", look: "away", size: 13, bold: true })]),
          ] : [named("question", 204, 268, [text("where do the slow ones look?", { size: 16, bold: true })])]),
          label("updates", `updates of training${step < end ? `, so far ${step}` : ""}`, 204, shown ? 386 : 190, { size: 12 }),
        ],
      };
    },
  ];
  const NAMES = ["clock", "dictionary entry", "notebook"], NAMES_SHORT = ["clock", "dictionary", "notebook"];
  const LOOKS = ["temporal", "input", "residual"];
  const percent = value => `${(100 * value).toFixed(value < 0.01 && value > 0.0005 ? 1 : 0)} %`;
  const signed = value => (Math.abs(value) < 0.05 ? "0" : `${value > 0 ? "+" : "−"}${Math.abs(value).toFixed(1)}`);
  const difference = (left, right) => Math.max(...left.map((value, n) => Math.abs(value - right[n])));
  function sentence(command) {
    const line = make("text", { "text-anchor": "start", style: "font-size:13px", class: "quiet" });
    line.append("“end” of ", ...words(command).flatMap(word => [
      ["after", "and"].includes(word) ? make("tspan", { style: "font-weight:700" }, word) : word, " "]), make("tspan", { style: "font-weight:700" }, "end"));
    return line;
  }
  /** Words on a line, those that differ from the right ones marked. */
  function differing(output, right) {
    const line = make("text", { "text-anchor": "start", style: "font-size:15px" });
    line.append(...output.flatMap((word, n) => [make("tspan", { class: right && word !== right[n] ? "wrong" : "" }, word.replace("_", " ")), " "]));
    return line;
  }

  // ---- The picture.

  const still = matchMedia("(prefers-reduced-motion: reduce)");
  const svg = make("svg", { viewBox: `0 0 ${WIDTH} ${HEIGHT}`, role: "img", class: "picture" });
  const drawn = new Map();
  const place = ({ x, y }) => `translate(${round(x)}px, ${round(y)}px)`;

  function paint({ said, marks }) {
    svg.setAttribute("aria-label", said);
    const wanted = new Set(marks.map(mark => mark.name));
    for (const [name, element] of drawn) {
      if (wanted.has(name)) continue;
      drawn.delete(name);
      element.style.opacity = 0;
      if (still.matches) element.remove();
      else setTimeout(() => element.remove(), 350);
    }
    for (const mark of marks) {
      let element = drawn.get(mark.name);
      if (!element) {
        element = make("g", { style: `opacity:0;transform:${place(mark)}` });
        drawn.set(mark.name, element);
        svg.append(element);
        element.getBoundingClientRect(); // so that it fades in
      }
      element.replaceChildren(...mark.children);
      element.style.transform = place(mark);
      element.style.opacity = mark.opacity;
      svg.append(element);
    }
  }

  /** A picture that does not move, for those without scripts and for paper: `python -m notebooks.shared.story` keeps it. */
  Instruments.storyPicture = step => {
    const kept = { ...state };
    Object.assign(state, { step, command: data.command, notebook: 0, swapped: "011", update: Infinity });
    const { said, marks } = pictures[step - 1](true);
    Object.assign(state, kept);
    const alone = make("svg", { viewBox: `0 0 ${WIDTH} ${HEIGHT}`, role: "img", "aria-label": said });
    alone.append(...marks.map(({ x, y, children, opacity }) => make("g", {
      transform: `translate(${round(x)} ${round(y)})`, opacity: opacity === 1 ? null : opacity,
    }, ...children)));
    for (const name of ["x", "y", "width", "height"]) {  // whose last digits differ between processors
      for (const mark of alone.querySelectorAll(`[${name}]`)) mark.setAttribute(name, round(mark.getAttribute(name)));
    }
    return new XMLSerializer().serializeToString(alone).replace(/ style="font-size:(\d+)px(;font-weight:700)?"/g, (_, size, bold) => ` font-size="${size}"${bold ? ' font-weight="700"' : ""}`);
  };

  // ---- The steps: sections of the page, their questions, and what moves from one to the next.

  const sections = () => [...article.querySelectorAll(":scope > section")].slice(0, STEPS);
  const bar = make("div", { class: "bar" }), narrow = matchMedia("(max-width: 900px)");
  let heading = 0; // the step that a scroll goes to: on the way there the one in view does not count
  const go = (step, smooth = true) => {
    heading = clamp(step, 1, STEPS);
    if (heading !== state.step) {
      state.step = heading; // at once, so that the next key is about this step
      state.shown = Number(seen.has(heading));
      touched();
    }
    const goal = sections()[heading - 1], above = narrow.matches ? 66 + root.offsetHeight : 80;
    const top = goal.getBoundingClientRect().top + scrollY - above;
    scrollTo({ top, behavior: smooth && !still.matches ? "smooth" : "auto" });
  };
  const touched = () => Instruments.changed(stage);
  const reveal = () => {
    seen.add(state.step);
    state.shown = 1;
    if (state.step === 6) state.notebook = 0;
    touched();
    if (state.step === STEPS) train();
  };
  const forward = () => (seen.has(state.step) ? go(state.step + 1) : reveal());
  const back = make("button", { type: "button", title: "or the left arrow key", onclick: () => go(state.step - 1) }, "‹ Back");
  const next = make("button", { type: "button", class: "next", title: "or the right arrow key", onclick: forward });
  const place_ = make("span", { class: "where" });
  const copied = make("span", { class: "copied", role: "status" });
  const link = make("input", { type: "text", readonly: "", "aria-label": "Link to this view", hidden: "", onfocus: () => link.select() });
  const copy = make("button", { type: "button", class: "copy", onclick: async () => {
    const address = new URL(`#story?${new URLSearchParams(state)}`, location.href).href;
    try {
      await navigator.clipboard.writeText(address);
      copied.textContent = "Copied.";
    } catch { // a page from the disk may not
      Object.assign(link, { value: address, hidden: false });
      link.focus();
      copied.textContent = "Copy this address.";
    }
    setTimeout(() => { copied.textContent = ""; link.hidden = true; }, 8000);
  } }, "Copy link", make("span", { class: "long" }, " to this view"));
  bar.append(back, place_, next, copy, copied, link);

  const commands = Instruments.menu("Try", data.commands.map(command => [command, command]), () => state.command,
    command => { state.command = command; });
  const notebook = choice("Notebook", [["1", "on"], ["0", "off"]], value => Number(value) === Number(state.notebook),
    value => { state.notebook = Number(value); });
  const swaps = choice("Swap the state of", source.slice(AFTER).map((word, n) => [String(n), word]), n => state.swapped[n] === "1",
    n => { state.swapped = [...state.swapped].map((digit, place) => (place === Number(n) ? String(1 - digit) : digit)).join(""); });
  const training = slider("Training", () => learning?.steps.length ?? 2, n => (learning ? `${learning.steps[n]} updates` : ""),
    () => (learning ? learning.steps.findLastIndex(step => step <= state.update) : 0),
    n => { state.update = learning.steps[n]; });
  const controls = { 6: [commands.element, notebook.element], 7: [swaps.element], 8: [training.element] };
  const tools = make("div", { class: "tools" });
  const train = () => {
    const play = training.element.querySelector(".play");
    if (play) return play.click();
    state.update = learning.steps.at(-1); // less motion was asked for
    touched();
  };

  stage.append(svg, tools, bar);
  root.style.gridRow = `${[...article.children].indexOf(root) + 1} / span ${STEPS}`; // now, so that no section moves

  function ask(section, n) {
    const question = section.querySelector(".story-question"), answer = section.querySelector(".story-answer");
    const buttons = [...question.querySelectorAll("li")].map((item, option) => {
      const button = make("button", { type: "button", "aria-pressed": "false", onclick: () => {
        buttons.forEach((other, place) => other.setAttribute("aria-pressed", String(place === option)));
        state.step = n + 1;
        verdict.textContent = option === data.right[n] ? "Yes." : "Not so.";
        reveal();
      } });
      const words = (item.querySelector("p") ?? item).childNodes, printed = make("span", { class: "printed" });
      printed.append(...[...words].map(word => word.cloneNode(true))); // on paper there are no buttons
      button.append(...words);
      item.replaceChildren(button, printed);
      return button;
    });
    const verdict = make("strong", { class: "verdict-of-guess" });
    const first = answer.querySelector("p");
    first.prepend(verdict, " ");
    answer.setAttribute("aria-live", "polite");
    question.append(make("button", { type: "button", class: "show", onclick: () => {
      state.step = n + 1;
      reveal();
    } }, "Show me"));
  }

  addEventListener("DOMContentLoaded", () => {
    sections().forEach(ask);
    const follow = () => {
      const free = narrow.matches ? 66 + root.offsetHeight : 0, line = free + (innerHeight - free) * 0.5;
      const rest = article.querySelector(`:scope > section:nth-of-type(${STEPS + 1})`); // after the story
      const end = free + (innerHeight - free) * 0.1; // the last question is read before the picture goes
      root.classList.toggle("past", Boolean(rest) && rest.getBoundingClientRect().top < end);
      const at = sections().findLastIndex(section => section.getBoundingClientRect().top <= line) + 1;
      if (at === heading) heading = 0;
      if (scrolls && !heading && at && at !== state.step) {
        state.step = at;
        state.shown = Number(seen.has(at));
        touched();
      }
    };
    const middle = new IntersectionObserver(follow, { threshold: Array.from({ length: 21 }, (_, n) => n / 20) });
    addEventListener("scrollend", () => {
      heading = 0;
      follow();
    });
    article.querySelectorAll(":scope > section").forEach(section => middle.observe(section));
    touched();
  });
  addEventListener("keydown", event => {
    if (event.defaultPrevented || event.altKey || event.ctrlKey || event.metaKey || event.shiftKey) return;
    if (event.target.closest("input, select, textarea, .choice")) return;
    if (event.key === "ArrowRight") forward();
    else if (event.key === "ArrowLeft") go(state.step - 1);
    else return;
    event.preventDefault();
  });

  addEventListener("hashchange", () => location.hash.startsWith("#story?") && show()); // a link to a view, followed here

  Promise.all([Instruments.network("scan-AED"), Instruments.load("story", "learning")]).then(([here, course]) => {
    [network, learning] = [here, course];
    stage.dataset.network = "scan-AED";
    draw();
  }, () => root.classList.remove("live")); // the pictures below each step take over

  function draw() {
    state.step = clamp(Math.round(state.step), 1, STEPS);
    if (state.shown) seen.add(state.step);
    if (!data.commands.includes(state.command)) state.command = data.command;
    if (!/^[01]{3}$/.test(state.swapped)) state.swapped = "011";
    const shown = seen.has(state.step);
    sections().forEach((section, n) => {
      section.classList.toggle("current", n + 1 === state.step);
      section.classList.toggle("answered", seen.has(n + 1));
      section.querySelectorAll(".story-question li button").forEach((option, place) =>
        option.classList.toggle("right", seen.has(n + 1) && place === data.right[n]));
    });
    place_.textContent = `${state.step} of ${STEPS}`;
    next.textContent = !shown ? "Show me" : "Next ›";
    next.disabled = shown && state.step === STEPS;
    back.disabled = state.step === 1;
    const wanted = shown ? controls[state.step] ?? [] : [];
    if (tools.children.length !== wanted.length || wanted.some((element, n) => tools.children[n] !== element)) tools.replaceChildren(...wanted);
    if (!network) return;
    for (const part of [commands, notebook, swaps, training]) part.draw();
    paint(pictures[state.step - 1](shown));
  }
  const show = () => setTimeout(() => {
    go(state.step, false);
    setTimeout(() => { scrolls = true; }, 200);
  });
  return { state, draw, show, link: false };
});

// What the book's instruments share. Classic scripts without dependencies, so that pages work from a disk too.
// An instrument is a function of an element, its data and its state: see companion/book/notebook.py for the element,
// and one-step.js for a short example.
"use strict";
// A page with several instruments loads this once for each of them, and keeps the first.
var Instruments = globalThis.Instruments ?? (() => {
  const SVG = new Set(["svg", "g", "rect", "path", "circle", "text", "line", "tspan"]);

  /** An element of HTML or SVG; attributes that begin with "on" are listeners, others that are null stay away. */
  function make(tag, attributes = {}, ...children) {
    const element = SVG.has(tag)
      ? document.createElementNS("http://www.w3.org/2000/svg", tag) : document.createElement(tag);
    for (const [name, value] of Object.entries(attributes)) {
      if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
      else if (value !== null && value !== undefined) element.setAttribute(name, value);
    }
    element.append(...children);
    return element;
  }

  // A file beside this one: a script that calls give(…), since a page from the disk may fetch nothing.
  const here = document.currentScript.src.replace(/[^/]*$/, ""), given = {}, waiting = {};
  const give = held => { given[held.name](held); };
  function load(folder, name) {
    waiting[name] ??= new Promise((done, failed) => {
      given[name] = done;
      document.head.append(make("script", { src: `${here}${folder}/${name}.js`, onerror: failed }));
    });
    return waiting[name];
  }

  /** A network that runs in the page (network.js), by its name; a promise. */
  const network = name => Promise.all([load(".", "network"), load("networks", name)])
    .then(([{ Network }, held]) => new Network(held));

  const PARTS = [
    { name: "temporal", symbol: "μ" }, { name: "input", symbol: "χ" }, { name: "residual", symbol: "Δ" },
  ];
  /** The class of a term's cell: blue and vermillion for the pure terms, grey with a residual, mixed else. */
  const termLook = (decoder, encoder) =>
    (decoder === 2 || encoder === 2 ? "residual-term"
      : decoder === encoder ? ["temporal-term", "input-term"][decoder] : "mixed-term");

  const clamp = (value, low, high) => Math.min(high, Math.max(low, value));
  const percent = value => (value === null ? "unknown" : `${(100 * value).toFixed(0).replace("-", "−")} %`);
  /** Two decimals, and no minus before a zero. */
  const two = value => (Math.round(100 * value) / 100 || 0).toFixed(2).replace("-", "−");
  const short = word => (word === "<eos>" ? "end" : String(word).replace(/^I_/, "").toLowerCase());

  /** Softmax of a row. */
  function softmax(row) {
    const largest = Math.max(...row), powers = row.map(score => Math.exp(score - largest));
    const sum = powers.reduce((a, b) => a + b, 0);
    return powers.map(power => power / sum);
  }

  /** Mean over rows of 1 − total variation between two matrices of attention. */
  function similarity(one, other) {
    const distance = (a, b) => a.reduce((sum, value, t) => sum + Math.abs(value - b[t]), 0) / 2;
    return 1 - one.reduce((sum, row, s) => sum + distance(row, other[s]), 0) / one.length;
  }

  // State in the address: #name?key=value&… of the instrument that was changed last.

  function fromAddress(name, state) {
    const [target, query] = location.hash.slice(1).split("?");
    if (target !== name || query === undefined) return false;
    for (const [key, value] of new URLSearchParams(query)) {
      if (key in state) state[key] = typeof state[key] === "number" ? Number(value) || 0 : value;
    }
    return true;
  }

  /** A button that copies the address of the present view; where the browser forbids it, it shows the address. */
  function copyLink(address) {
    const message = make("output", { class: "copied", "aria-live": "polite" });
    const copy = async () => {
      try {
        await navigator.clipboard.writeText(address());
        message.textContent = "Copied.";
      } catch {
        message.textContent = address();
      }
    };
    return make("div", { class: "link-to-view" },
      make("button", { type: "button", onclick: copy }, "Copy link to this view"), message);
  }

  /** Build an instrument of this name wherever the page has its element; `show` brings into view what an address leads to;
   * `link` is false where the instrument has a button of its own that copies its address. */
  function start(name, build) {
    for (const root of document.querySelectorAll(`[data-instrument="${name}"]:not(.live)`)) {
      const data = JSON.parse(root.querySelector('script[type="application/json"]').textContent);
      const stage = make("div", { class: "stage" });
      root.prepend(stage);
      root.classList.add("live");
      const { state, draw, show = () => root.scrollIntoView(), link = true } = build(stage, data);
      let timer = null; // browsers refuse an address that changes too often
      const update = () => {
        draw();
        clearTimeout(timer);
        timer = setTimeout(() => history.replaceState(null, "", `#${name}?${new URLSearchParams(state)}`), 200);
      };
      const shared = fromAddress(name, state);
      root.addEventListener("change-of-state", update);
      root.addEventListener("moved-by-itself", draw); // without the reader's doing the address stays
      addEventListener("hashchange", () => fromAddress(name, state) && draw());
      draw();
      if (link) stage.append(copyLink(() => `${location.href.replace(/#.*/, "")}#${name}?${new URLSearchParams(state)}`));
      if (shared) addEventListener("load", show);
    }
  }

  /** To be called after a change of state by the reader: draws anew and writes the address. */
  const changed = element => element.dispatchEvent(new CustomEvent("change-of-state", { bubbles: true }));

  /** Buttons of which one is pressed, or, with `several`, any; options are pairs of a value and a text. */
  function choice(label, options, isPressed, press, kind = "") {
    const element = make("div", { class: `choice ${kind}`, role: "group", "aria-label": label });
    const buttons = options.map(([value, text]) => make("button", {
      type: "button",
      onclick: () => { press(value); changed(element); },
      onkeydown: event => {
        const move = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
        if (!move) return;
        event.preventDefault();
        buttons[(buttons.indexOf(event.target) + move + buttons.length) % buttons.length].focus();
      },
    }, text));
    element.append(make("span", { class: "name", "aria-hidden": "true" }, label), ...buttons);
    const draw = () => buttons.forEach((button, n) => {
      button.setAttribute("aria-pressed", String(Boolean(isPressed(options[n][0]))));
    });
    return { element, draw, buttons };
  }

  /** A menu, for choices of many. */
  function menu(label, options, value, set) {
    const select = make("select", { onchange: () => { set(select.value); changed(select); } });
    const fill = given => select.replaceChildren(...given.map(([key, text]) => make("option", { value: key }, text)));
    fill(options);
    return { element: make("label", {}, `${label} `, select), draw: () => { select.value = value(); }, fill };
  }

  /** A slider over the places 0 … n − 1, with a button that plays it unless the reader asked for less motion. */
  function slider(label, places, text, value, set) {
    let timer = null;
    const input = make("input", { type: "range", min: 0, step: 1, oninput: () => { stop(); go(Number(input.value)); } });
    const output = make("output");
    const play = make("button", { type: "button", class: "play", onclick: () => (timer ? stop() : run()) }, "Play");
    let byItself = false;
    const go = place => {
      set(place);
      if (byItself) input.dispatchEvent(new CustomEvent("moved-by-itself", { bubbles: true }));
      else changed(input);
    };
    const stop = () => { clearInterval(timer); timer = null; byItself = false; play.textContent = "Play"; };
    const run = () => {
      if (value() >= places() - 1) go(0);
      play.textContent = "Pause";
      timer = setInterval(() => (value() < places() - 1 ? go(value() + 1) : stop()), 5000 / Math.max(places(), 8));
    };
    const still = matchMedia("(prefers-reduced-motion: reduce)").matches;
    const element = make("div", { class: "slider" },
      make("label", {}, make("span", {}, label), input, output), ...(still ? [] : [play]));
    const draw = () => {
      input.max = places() - 1;
      input.value = value();
      output.textContent = text(value());
      input.setAttribute("aria-valuetext", output.textContent);
    };
    /** Play by itself, once, when most of it has come into view; not where the reader, or a shared address, chose a place. */
    const playOnceSeen = () => {
      if (still) return;
      const watcher = new IntersectionObserver(entries => {
        if (!entries.some(entry => entry.isIntersecting)) return;
        watcher.disconnect();
        if (value() !== 0 || timer) return;
        byItself = true;
        run();
      }, { threshold: 0.9 });
      watcher.observe(element);
    };
    return { element, draw, playOnceSeen };
  }

  /** A line that says what is pointed at, also to screen readers. */
  function readout(first) {
    const element = make("p", { class: "said", "aria-live": "polite" }, first);
    return { element, say: text => { element.textContent = text; } };
  }

  /** Arrow keys on an element move a cursor; `move` gets the steps right and down. */
  function arrows(element, move) {
    const steps = { ArrowRight: [1, 0], ArrowLeft: [-1, 0], ArrowDown: [0, 1], ArrowUp: [0, -1] };
    element.addEventListener("keydown", event => {
      if (!steps[event.key]) return;
      event.preventDefault();
      move(...steps[event.key]);
    });
  }

  const CELL = 24, LETTER = 7.2;

  /**
   * A matrix as a heat map. `draw` takes {matrix, rows, columns, marks, signed, top}: labels of both sides (may be left
   * out), columns to mark, whether values may be negative, and the value of the darkest cell. `on(row, column)` is told the cell pointed at. Given
   * `across`, cells are as large as so many pixels allow, at least `cell` and at most one and a half times CELL.
   */
  function heatmap(title, on = () => {}, { numbers = false, cell: least = CELL, across = 0, look = () => "" } = {}) {
    let cell = least;
    const svg = make("svg", { tabindex: 0, role: "application", "aria-label": `${title}. Arrow keys read its cells.` });
    const heading = make("div", { class: "title" }, title);
    const element = make("div", { class: "panel" }, heading, svg);
    let cursor = null, shown = null;
    const ring = make("rect", { class: "ring" });
    const point = (row, column) => {
      const { matrix, left, top } = shown;
      cursor = [clamp(row, 0, matrix.length - 1), clamp(column, 0, matrix[0].length - 1)];
      for (const side of ["width", "height"]) ring.setAttribute(side, cell);
      ring.setAttribute("x", left + cursor[1] * cell);
      ring.setAttribute("y", top + cursor[0] * cell);
      ring.classList.add("on");
      on(...cursor);
    };
    const under = event => {
      const found = event.target.dataset.cell;
      if (found) point(...found.split(",").map(Number));
    };
    svg.addEventListener("pointermove", under);
    svg.addEventListener("pointerdown", under);
    svg.addEventListener("focus", () => shown && svg.matches(":focus-visible") && point(...(cursor ?? [0, 0])));
    svg.addEventListener("pointerleave", () => { ring.classList.remove("on"); });
    arrows(svg, (right, down) => point((cursor?.[0] ?? 0) + down, (cursor?.[1] ?? 0) + right));

    function draw({ matrix, rows = [], columns = [], marks = [], signed = false, name = title, top: largest = 1 }) {
      const longest = words => Math.max(0, ...words.map(word => word.length));
      if (across) cell = clamp(Math.floor(across / matrix[0].length), least, 1.5 * CELL);
      const upright = longest(columns) * LETTER < cell;
      const left = rows.length ? longest(rows) * LETTER + 8 : 2;
      const top = !columns.length ? 2 : upright ? 20 : longest(columns) * LETTER + 8;
      const width = left + matrix[0].length * cell + 2, height = top + matrix.length * cell + 2;
      shown = { matrix, left, top };
      heading.textContent = name;
      svg.setAttribute("viewBox", `0 0 ${width} ${height}`);
      svg.style.width = `${width}px`;
      const parts = [];
      columns.forEach((word, t) => parts.push(make("text", {
        transform: `translate(${left + (t + 0.5) * cell + (upright ? 0 : 4)} ${top - 5}) rotate(${upright ? 0 : -90})`,
        "text-anchor": upright ? "middle" : null, class: marks.includes(t) ? "mark" : null,
      }, word)));
      rows.forEach((word, s) => parts.push(make("text", {
        x: left - 5, y: top + (s + 0.5) * cell + 4, "text-anchor": "end",
      }, word)));
      matrix.forEach((row, s) => row.forEach((value, t) => {
        const place = { x: left + t * cell, y: top + s * cell, width: cell, height: cell };
        parts.push(make("rect", {
          ...place, class: `cell ${look(s, t)}${signed ? (value < 0 ? " less" : " more") : ""}`, "data-cell": `${s},${t}`,
          style: `fill-opacity:${clamp(Math.abs(value ?? 0) / largest, 0, 1).toFixed(3)}`,
        }));
        if (numbers) parts.push(make("text", {
          x: place.x + cell / 2, y: place.y + cell / 2 + 4, "text-anchor": "middle",
          class: Math.abs(value) / largest < 0.55 ? "number" : { "": "over", "residual-term": "on-grey" }[look(s, t)] ?? "on-part",
        }, value === null ? "–" : two(value)));
      }));
      parts.push(make("rect", { x: left, y: top, width: width - left - 2, height: height - top - 2, class: "frame" }), ring);
      svg.replaceChildren(...parts);
      ring.classList.remove("on");
    }
    return { element, draw, svg };
  }

  const SHAPES = {
    circle: "M-4 0a4 4 0 1 0 8 0a4 4 0 1 0 -8 0", square: "M-3.7-3.7h7.4v7.4h-7.4z", triangle: "M0-4.8L4.8 4H-4.8z",
    diamond: "M0-5.2L5.2 0L0 5.2L-5.2 0z", cross: "M-2-5h4v3h3v4h-3v3h-4v-3h-3v-4h3z",
  };
  /** A point for a legend. */
  const marker = (look, shape) => make("svg", { viewBox: "-7 -7 14 14", width: 14, height: 14, "aria-hidden": "true" },
    make("path", { class: `point ${look}`, d: SHAPES[shape] }));

  /**
   * Axes of `width` × `height` with curves or points. `draw` takes {x, y, series, points, at, chosen}: ranges, curves
   * ({points, look}), points ({x, y, look, shape, open}), an upright line, and which of them is chosen.
   * `on(n)` is told the curve or point pointed at, `pick(n)` the one clicked; a point told of is ringed till the next drawing,
   * or till `mark(-1)`.
   */
  function plot(title, { xLabel, yLabel, width = 340, height = 250, log = false, xTicks = [], yTicks = [], band = null },
    on = () => {}, pick = on) {
    const svg = make("svg", {
      tabindex: 0, role: "application", viewBox: `0 0 ${width} ${height}`,
      "aria-label": `${title}. Arrow keys go from one to the next, Enter picks.`,
    });
    svg.style.width = `${width}px`;
    const element = make("div", { class: "panel" }, make("div", { class: "title" }, title), svg);
    const left = 46, right = width - 8, top = 8, bottom = height - 38;
    let shown = null, cursor = -1;
    const scale = (value, [low, high], from, to, log) => {
      if (log) [value, low, high] = [Math.log(Math.max(value, low)), Math.log(low), Math.log(high)];
      return from + (clamp(value, low - (high - low), high + (high - low)) - low) / (high - low) * (to - from);
    };
    const across = x => scale(x, shown.x, left, right), up = y => scale(y, shown.y, bottom, top, log);

    function nearest(event) {
      const frame = svg.getBoundingClientRect();
      const x = (event.clientX - frame.left) * width / frame.width, y = (event.clientY - frame.top) * height / frame.height;
      const away = ([a, b]) => (b === null ? Infinity : Math.hypot(across(a) - x, up(b) - y));
      const distances = [
        ...(shown.points ?? []).map(point => away([point.x, point.y])),
        ...(shown.series ?? []).map(({ points }) => Math.min(...points.map(away))),
      ];
      const least = Math.min(...distances);
      return least < 30 ? distances.indexOf(least) : -1;
    }
    const halo = make("circle", { class: "halo", r: 7.5 });
    /** Ring the point that is told of; none where there is no such point. */
    const mark = n => {
      const point = shown.points?.[n];
      if (!point) return halo.remove();
      halo.setAttribute("cx", across(point.x));
      halo.setAttribute("cy", up(point.y));
      svg.append(halo);
    };
    const told = tell => n => { tell(n); mark(n); };
    [on, pick] = [told(on), told(pick)];
    svg.addEventListener("pointermove", event => { const n = nearest(event); if (n >= 0) on(n); });
    svg.addEventListener("click", event => { const n = nearest(event); if (n >= 0) { cursor = n; pick(n); } });
    arrows(svg, (right, down) => {
      const count = (shown.points ?? shown.series).length;
      cursor = ((cursor < 0 ? shown.chosen ?? -1 : cursor) + right + down + count) % count;
      on(cursor);
    });
    svg.addEventListener("keydown", event => { if (event.key === "Enter" && cursor >= 0) pick(cursor); });

    function draw(given) {
      shown = given;
      const parts = [];
      if (band) parts.push(make("rect", {
        x: left, width: right - left, y: up(band[1]), height: up(band[0]) - up(band[1]), class: "band",
      }));
      for (const y of yTicks) parts.push(
        make("line", { x1: left, x2: right, y1: up(y), y2: up(y), class: "grid" }),
        make("text", { x: left - 5, y: up(y) + 4, "text-anchor": "end" }, String(y)));
      for (const tick of shown.xTicks ?? xTicks) {
        const [x, text] = [tick].flat();
        const place = { x: across(x), y: bottom + 15, "text-anchor": "middle" };
        if (x <= shown.x[1]) parts.push(make("text", place, String(text ?? x)));
      }
      parts.push(
        make("line", { x1: left, x2: right, y1: bottom, y2: bottom, class: "axis" }),
        make("text", { x: (left + right) / 2, y: height - 6, "text-anchor": "middle", class: "label" }, xLabel),
        make("text", {
          transform: `translate(11 ${(top + bottom) / 2}) rotate(-90)`, "text-anchor": "middle", class: "label",
        }, shown.yLabel ?? yLabel));
      if (shown.at !== undefined) parts.push(
        make("line", { x1: across(shown.at), x2: across(shown.at), y1: top, y2: bottom, class: "at" }));
      const last = [], ordered = (list, drawOne) => (list ?? []).forEach((one, n) => {
        (n === shown.chosen ? last : parts).push(drawOne(one, n === shown.chosen ? `${one.look} chosen` : one.look));
      });
      ordered(shown.series, ({ points }, look) => make("path", {
        class: `curve ${look}`,
        d: points.filter(([, y]) => y !== null)
          .map(([x, y], n) => `${n ? "L" : "M"}${across(x).toFixed(1)} ${up(y).toFixed(1)}`).join(""),
      }));
      ordered(shown.points, (point, look) => make("path", {
        class: `point ${look}${point.open ? " open" : ""}`, d: SHAPES[point.shape ?? "circle"],
        transform: `translate(${across(point.x).toFixed(1)} ${up(point.y).toFixed(1)})`,
        style: point.fill ? `--own:${point.fill}` : null,
      }));
      for (const { x, y, text, look, anchor = "start", dx = 0 } of shown.notes ?? []) last.push(
        make("text", { x: across(x) + dx, y: up(y), class: `note ${look}`, "text-anchor": anchor }, text));
      svg.replaceChildren(...parts, ...last);
    }
    return { element, draw, svg, mark };
  }

  return {
    start, changed, load, network, give, make, PARTS, SHAPES, termLook, marker, clamp, percent, two, short, softmax, similarity,
    choice, menu, slider, readout, heatmap, plot,
  };
})();

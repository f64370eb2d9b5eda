// Nine switches: a trained network runs in the page; each click takes a term of its scores away.
"use strict";
Instruments.start("nine-switches", (stage, data) => {
  const { make, choice, menu, readout, heatmap, short, two, softmax, similarity, PARTS, termLook, changed } = Instruments;
  const NETWORKS = { AED: "GRU with attention", AO: "attention only" }, LONGEST = 20;
  const PRESETS = [["111111111", "all nine"], ["100000000", "only μμ"], ["000010000", "only χχ"], ["110110000", "no Δ"],
    ["000000000", "none"]];
  const tasks = [...new Map(data.networks.map(own => [own.task, own.name]))];
  const chosen = () => data.networks.find(own => own.task === state.task && own.architecture === state.network);
  const state = { task: data.networks[0].task, network: data.networks[0].architecture, text: data.networks[0].examples[0],
    on: data.on ?? "111111111" };
  let network = null, found = null, shownText = null; // what is drawn, and the sentence that it is of

  const task = choice("Task", tasks, name => name === state.task, name => {
    state.task = name;
    state.text = chosen().examples[0];
  });
  const kind = choice("Network", Object.entries(NETWORKS), name => name === state.network, name => { state.network = name; });
  const examples = menu("Sentence", [], () => state.text, text => { state.text = text; });
  const typed = make("input", { type: "text", "aria-label": "Type a sentence", spellcheck: "false", autocomplete: "off",
    oninput: () => old(typed.value !== shownText, "Press Enter to run this sentence."),
    onchange: () => { state.text = typed.value; changed(stage); } });
  const complaint = make("p", { class: "complaint", "aria-live": "polite" });
  const words = make("div", { class: "choice words", role: "group", "aria-label": "Change a word" });
  const presets = choice("Keep", PRESETS, on => on === state.on, on => { state.on = on; });
  const said = readout(""), alike = make("output", { class: "alike" });
  const writes = make("p", { class: "writes", "aria-live": "polite" });
  const about = make("p", { class: "about" }), late = make("p", { class: "notice late" });

  const board = make("table", { class: "board" });
  const switches = PARTS.map((_, d) => PARTS.map((_, e) => make("button", {
    type: "button", class: termLook(d, e), "data-term": `${d}${e}`,
    onclick: () => {
      const on = [...state.on];
      on[3 * d + e] = on[3 * d + e] === "1" ? "0" : "1";
      state.on = on.join("");
      changed(stage);
    },
  }, make("b", {}, `${PARTS[d].symbol}·${PARTS[e].symbol}`), make("small"))));
  board.append(
    make("caption", {}, "The nine terms: click to switch one off or on"),
    make("tbody", {}, ...switches.map(row => make("tr", {}, ...row.map(button => make("td", {}, button))))));
  const numbers = make("p", { class: "numbers" });

  const cell = which => (s, t) => {
    if (!found || results[0].classList.contains("old")) return;
    const { rows, columns, centred, full, left } = found;
    show(centred.map(row => row.map(term => term[s][t])));
    numbers.textContent = "In the terms: their scores at this cell, minus the mean of the row.";
    said.say(`To write “${rows[s]}”, the network gives “${columns[t]}” ${full[s][t].toFixed(2)} of its attention; `
      + `the terms left on give it ${left[s][t].toFixed(2)}. `
      + `Among the nine terms, ${strongest(centred, s, t)} raises it most.`);
  };
  const strongest = (centred, s, t) => {
    const all = [0, 1, 2].flatMap(d => [0, 1, 2].map(e => [centred[d][e][s][t], `${PARTS[d].symbol}·${PARTS[e].symbol}`]));
    return all.reduce((best, own) => (own[0] > best[0] ? own : best))[1];
  };
  const full = heatmap("The network's attention", cell(), { cell: 19, across: 250 });
  const left = heatmap("Attention rebuilt from the terms left on", cell(), { cell: 19, across: 250 });
  for (const { svg } of [full, left]) svg.addEventListener("pointerleave", () => found && shares());

  function show(values) {
    switches.forEach((row, d) => row.forEach((button, e) => { button.lastChild.textContent = two(values[d][e]); }));
  }

  /**
   * A written word that is also in the source and is read from the word after it, as recurrent networks do; its step and place.
   * None where the source has the word twice.
   */
  function readLate({ rows, columns, full }) {
    const place = rows.map(word => (columns.indexOf(word) === columns.lastIndexOf(word) ? columns.indexOf(word) : -1));
    const step = rows.findIndex((word, s) => place[s] >= 0 && word !== "end"
      && full[s].indexOf(Math.max(...full[s])) === place[s] + 1);
    return step < 0 ? null : { written: rows[step], after: columns[place[step] + 1] };
  }

  /** What the network of the page does, and whether it has learned to. */
  function introduce() {
    const { about: task, accuracy, learned, architecture } = chosen();
    about.classList.toggle("notice", !learned);
    about.replaceChildren(`${task} The network is a ${architecture === "AO" ? "network of attention only" : NETWORKS[architecture]}; `
      + `on new sentences its word accuracy is ${(100 * accuracy).toFixed(1)} %. `
      + (learned ? "" : "It has not learned this task: what it writes is often wrong with all nine terms on."));
  }

  /** The covariance share of each term in this sentence. */
  function shares() {
    const { centred } = found, flat = centred.map(row => row.map(term => term.flat()));
    const total = flat[0][0].map((_, n) => flat.flat().reduce((sum, term) => sum + term[n], 0));
    const variance = total.reduce((sum, score) => sum + score * score, 0);
    show(flat.map(row => row.map(term => term.reduce((sum, score, n) => sum + score * total[n], 0) / variance)));
    numbers.textContent = "In the terms: their covariance shares in this sentence. Point at a cell for its nine numbers.";
  }

  function compute() {
    const { list, ids: source, strange } = network.ids(state.text);
    const vocabulary = network.source.slice(4);
    words.replaceChildren(make("span", { class: "name", "aria-hidden": "true" }, "Change a word"),
      ...list.map((word, place) => {
        const select = make("select", { "aria-label": `Word ${place + 1}`, onchange: () => {
          state.text = list.map((old, n) => (n === place ? select.value : old)).join(" ");
          changed(stage);
          words.querySelectorAll("select")[place]?.focus();
        } }, ...[...new Set([word, ...vocabulary])].map(own => make("option", { value: own }, short(own))));
        select.value = vocabulary.find(own => own.toLowerCase() === word) ?? word;
        return select;
      }));
    if (strange.length || !list.length || list.length > LONGEST) {
      const why = strange.length ? `The network does not know “${strange.join("”, “")}”.` : `Type between 1 and ${LONGEST} words.`;
      const before = found ? ` What is shown below is still of “${shownText}”.` : "";
      old(true, `${why}${before} Its words: ${vocabulary.join(", ")}.`);
      typed.setAttribute("aria-invalid", "true");
      said.say("");
      return;
    }
    old(false);
    typed.removeAttribute("aria-invalid");
    shownText = state.text;
    const on = PARTS.map((_, d) => PARTS.map((_, e) => state.on[3 * d + e] === "1"));
    const true_ = network.run(source), read = [1, ...true_.written.slice(0, -1)], without = network.run(source, { on });
    const kept = true_.terms.flatMap((row, d) => row.filter((_, e) => on[d][e]));
    const sum = (s, t) => kept.reduce((all, term) => all + term[s][t], 0);
    const rest = read.map((_, s) => softmax(source.map((_, t) => sum(s, t))));
    const centred = true_.terms.map(row => row.map(term => term.map(scores => {
      const mean = scores.reduce((a, b) => a + b, 0) / scores.length;
      return scores.map(score => score - mean);
    })));
    const names = true_.written.map(id => short(network.target[id]));
    found = { rows: names, columns: [...list, "end"], centred, full: true_.attention, left: rest };
    full.draw({ matrix: found.full, rows: names, columns: found.columns });
    left.draw({ matrix: rest, rows: names, columns: found.columns });
    alike.textContent = similarity(found.full, rest).toFixed(2);
    shares();
    const example = network.recurrent ? readLate(found) : null;
    late.textContent = example ? `“${example.written}” is written with most of the attention on “${example.after}”, the word after it. `
      + `That state has read “${example.written}” too: a recurrent network keeps a word in the states of the words that follow.` : "";
    const other = without.written.map(id => short(network.target[id]));
    writes.replaceChildren("It writes: ", make("span", { class: "full" }, names.join(" ")), make("br"), "With the terms left on: ",
      ...other.flatMap((word, n) => [word === names[n] ? word : make("mark", {}, word), " "]));
    const off = [...state.on].filter(one => one === "0").length;
    const changes = [...(other.length > names.length ? other : names).keys()].filter(n => other[n] !== names[n]).length;
    said.say(off ? `${off} of the nine terms ${off === 1 ? "is" : "are"} off, and `
      + `${changes === 1 ? "one word changes" : `${changes || "no"} words change`}.`
      : "All nine terms are on: both matrices are the same. Switch one off.");
  }

  const results = [make("div", { class: "panels" }, board, make("div", { class: "beside" }, presets.element,
    make("p", {}, "Similarity of the two matrices below: ", alike), numbers, writes)),
  make("div", { class: "panels pair" }, full.element, left.element)];

  /** Whether what is drawn is of another sentence than the one in the box, and why, under the box. */
  function old(is, why = "") {
    complaint.textContent = is ? why : "";
    for (const part of results) {
      part.classList.toggle("old", is);
      part.setAttribute("aria-busy", String(is));
    }
  }

  stage.append(
    ...(data.small ? [make("div", { class: "controls" }, kind.element, examples.element), about, complaint] : [
      make("div", { class: "controls" }, task.element, kind.element), about,
      make("div", { class: "controls" }, examples.element, typed), complaint, words]),
    ...results, late, said.element);

  stage.style.minHeight = data.small ? "27rem" : "34rem"; // until the network is there

  function draw() {
    if (!chosen()) Object.assign(state, { task: data.networks[0].task, network: data.networks[0].architecture });
    const foreign = data.networks.some(one => one.task !== state.task && one.examples.includes(state.text));
    if (foreign) state.text = chosen().examples[0];
    const own = chosen(), name = `${own.task}-${own.architecture}`;
    if (!/^[01]{9}$/.test(state.on)) state.on = "111111111";
    for (const part of [task, kind, presets]) part.draw();
    introduce();
    examples.fill([...new Set([state.text, ...own.examples])].map(text => [text, text]));
    examples.draw();
    typed.value = state.text;
    switches.forEach((row, d) => row.forEach((button, e) => button.setAttribute("aria-pressed", state.on[3 * d + e] === "1")));
    if (stage.dataset.network === name) return compute();
    said.say("Loading the network …");
    old(found !== null);
    const start = () => Instruments.network(name).then(own => {
      if (`${chosen().task}-${chosen().architecture}` !== name) return;
      network = own;
      stage.dataset.network = name;
      compute();
    }, () => said.say("The network could not be loaded; the table below has what it would show."));
    if (stage.dataset.seen) start();
    else new IntersectionObserver((entries, watcher) => {
      if (!entries.some(entry => entry.isIntersecting)) return;
      watcher.disconnect();
      stage.dataset.seen = "yes";
      draw();
    }, { rootMargin: "600px" }).observe(stage);
  }
  return { state, draw };
});

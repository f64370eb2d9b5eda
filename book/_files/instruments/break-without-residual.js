// A challenge: find commands that a network no longer carries out when the five terms with a residual are switched off.
"use strict";
Instruments.start("break-without-residual", (stage, data) => {
  const { make, readout, short, changed } = Instruments;
  const NO_RESIDUAL = [[true, true, false], [true, true, false], [false, false, false]];
  // SCAN's grammar (Lake and Baroni 2018): one or two parts, each a verb with a direction and a number of times.
  const TIMES = "(?: (?:twice|thrice))?", TURNED = "(?:opposite |around )?(?:left|right)";
  const PART = `(?:(?:walk|look|run|jump)(?: ${TURNED})?|turn ${TURNED})${TIMES}`;
  const COMMAND = new RegExp(`^${PART}(?: (?:and|after) ${PART})?$`);
  // What is wanted, which commands it is about, and whether they break.
  const GOALS = {
    breaks: ["a command that breaks", () => true, true],
    single: ["a command of a single word that breaks", text => !text.includes(" "), true],
    joined: ["a command with “and” or “after” that survives", text => / (and|after) /.test(text), false],
  };
  const state = { text: data.start, breaks: "", single: "", joined: "" };
  let network = null;

  const typed = make("input", { type: "text", "aria-label": "Type a command", spellcheck: "false", autocomplete: "off",
    onchange: () => { state.text = typed.value.trim().toLowerCase().replace(/\s+/g, " "); changed(stage); } });
  const set = text => { state.text = text; changed(stage); };
  const words = make("div", { class: "choice", role: "group", "aria-label": "Add a word" });
  const undo = make("button", { type: "button", onclick: () => set(state.text.split(" ").slice(0, -1).join(" ")) }, "Remove the last word");
  const goals = make("ul", { class: "goals" }), writes = make("p", { class: "writes" }), said = readout("");
  stage.append(make("p", { class: "about" }, `${data.about} Δ, the residual, is off in the second line. Find:`), goals,
    make("div", { class: "controls" }, typed, undo), words, writes, said.element);
  stage.style.minHeight = "18rem"; // until the network is there

  /** Both outputs of a command, as words. */
  function outputs(text) {
    const { ids } = network.ids(text);
    const write = options => network.run(ids, options).written.map(id => short(network.target[id]));
    return { whole: write({}), without: write({ on: NO_RESIDUAL }) };
  }
  const differs = ({ whole, without }) => whole.join(" ") !== without.join(" ");

  /** Whether a command reaches a goal; a shared address is judged anew. */
  function reaches(goal, text) {
    const [, isMeant, breaks] = GOALS[goal];
    return COMMAND.test(text) && isMeant(text) && differs(outputs(text)) === breaks;
  }

  function judge() {
    const isCommand = COMMAND.test(state.text);
    if (isCommand) {
      for (const goal of Object.keys(GOALS)) if (reaches(goal, state.text)) state[goal] = state.text;
      const both = outputs(state.text), { whole, without } = both;
      writes.replaceChildren("With all nine terms: ", make("span", { class: "full" }, whole.join(" ")), make("br"), "Without Δ: ",
        ...without.flatMap((word, n) => [word === whole[n] ? word : make("mark", {}, word), " "]));
      said.say(differs(both) ? "It breaks: without Δ the network writes something else."
        : "It survives: without Δ the network writes the same words.");
    } else {
      writes.replaceChildren();
      said.say("This is no command yet. A command is a verb, then a direction and a number of times if you like; "
        + "“and” or “after” joins two. Example: jump around left twice after walk.");
    }
    goals.replaceChildren(...Object.entries(GOALS).map(([goal, [title]]) => {
      const done = state[goal] && reaches(goal, state[goal]);
      return make("li", { class: done ? "done" : null }, done ? `✓ ${title}: ${state[goal]}` : `○ ${title}`);
    }));
    if (Object.keys(GOALS).every(goal => state[goal] && reaches(goal, state[goal]))) {
      said.say("All three found. What do commands that break have in common? Try the same words in another order.");
    }
  }

  function draw() {
    typed.value = state.text;
    if (network) return judge();
    said.say("Loading the network …");
    if (!stage.dataset.seen) new IntersectionObserver((entries, watcher) => {
      if (!entries.some(entry => entry.isIntersecting)) return;
      watcher.disconnect();
      if (stage.dataset.seen) return;
      stage.dataset.seen = "yes";
      Instruments.network(data.network).then(loaded => {
        network = loaded;
        stage.dataset.network = data.network;
        words.replaceChildren(make("span", { class: "name", "aria-hidden": "true" }, "Add a word"),
          ...network.source.slice(4).map(word => make("button", {
            type: "button", onclick: () => set(`${state.text} ${word.toLowerCase()}`.trim()),
          }, short(word))));
        judge();
      }, () => said.say("The network could not be loaded; the table below has how it does on average."));
    }, { rootMargin: "600px" }).observe(stage);
  }
  return { state, draw };
});

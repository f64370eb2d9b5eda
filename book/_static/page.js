// What every page does once it is there: formulas, things that scroll sideways, and names for what the theme left without.
(() => {
  "use strict";

  // The theme chooses between day and night at the end of the page, and until then nothing has a colour, nor a border of it.
  const root = document.documentElement.dataset;
  if (root.theme === "auto") root.theme = matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light";

  // KaTeX is on the pages that have formulas. What Sphinx writes is TeX between \( \) or \[ \], a number before it. Each is
  // drawn as soon as it has been read, before it is seen, so that it never moves what is around it.
  const narrow = matchMedia("(max-width: 600px)");
  const formulas = all => {
    for (const place of window.katex ? document.querySelectorAll(".math.notranslate:not(.drawn)") : []) {
      if (!all && !place.nextSibling && !place.parentNode.nextSibling) continue; // may go on
      const number = place.querySelector(".eqno");
      number?.remove();
      const display = place.tagName === "DIV";
      let tex = place.textContent.trim().replace(/^\\[([]|\\[)\]]$/g, "");
      // On a telephone two formulas side by side go below each other.
      if (display && narrow.matches && !/\\begin\{(?!split|gathered)/.test(tex)) {
        const below = tex.replaceAll("\\qquad", "\\\\[0.5em]");
        tex = /\\begin/.test(tex) || below === tex ? below : `\\begin{gathered}${below}\\end{gathered}`;
      }
      katex.render(tex, place, { displayMode: display, throwOnError: false });
      if (number) place.prepend(number);
      place.classList.add("drawn");
      // A comma or a bracket stays with the formula before it.
      const after = place.nextSibling;
      if (after?.nodeType === Node.TEXT_NODE && /^[,.;:)\]?’”]/.test(after.data)) after.data = `\u2060${after.data}`;
    }
  };
  const reading = new MutationObserver(() => formulas(false));
  reading.observe(document, { childList: true, subtree: true });

  // A figure or table that scrolls sideways (attnlib.css) is a stop of the Tab key, so that arrow keys move it, and a
  // table then has a name; one that fits is none. The theme makes stops of code.
  const SIDEWAYS = ".bd-article :is(figure, .cell_output .text_html, .pst-scrollable-table-container)";
  const wide = place => place.scrollWidth > place.clientWidth + 1;
  // An interval goes below its number (attnlib.css).
  const stack = table => {
    table.classList.add("stacked");
    for (const place of table.querySelectorAll("td, td p")) {
      if (place.querySelector(":not(br)")) continue;
      for (const line of [...place.childNodes].filter(node => node.nodeType === Node.TEXT_NODE)) {
        const [all, point, spread] = line.data.match(/^(\S+) ([±[].*)$/) ?? [];
        if (!all) continue;
        const below = document.createElement("span");
        below.className = "spread";
        below.textContent = spread;
        line.replaceWith(`${point} `, below);
      }
    }
  };
  const stops = () => {
    const known = {};  // regions of one page have different names
    const contents = document.querySelector("div.bd-sidebar-secondary");
    for (const place of document.querySelectorAll(SIDEWAYS)) {
      const tables = place.querySelectorAll("table");
      place.classList.remove("full-width");
      for (const table of tables) table.classList.remove("stacked");
      // A table wider than the text takes the room of the page's own contents too, which the theme then hides, if they are there.
      if (contents && wide(place) && !place.matches("figure, .wide *, details *")) place.classList.add("full-width");
      if (wide(place)) tables.forEach(stack);
      const scrolls = wide(place);
      place.classList.toggle("scrolls", scrolls);
      if (scrolls) place.tabIndex = 0;
      else place.removeAttribute("tabindex");
      if (place.matches("figure")) continue;
      const heading = place.closest("section")?.querySelector(":is(h1, h2, h3, h4)")?.firstChild?.textContent;
      const name = (place.querySelector("caption .caption-text")?.textContent ?? heading)?.trim() ?? "numbers";
      if (scrolls) {
        place.setAttribute("role", "region");
        known[name] = (known[name] ?? 0) + 1;
        place.setAttribute("aria-label", `Table: ${name}${known[name] > 1 ? `, ${known[name]}` : ""}`);
      } else place.removeAttribute("role");
    }
  };

  // The theme's arrows that unfold a part of the list of pages have no name, its logo lies in no landmark.
  const names = () => {
    for (const summary of document.querySelectorAll(".bd-sidebar-primary summary")) {
      const page = summary.closest("li")?.querySelector("a")?.textContent.trim();
      summary.setAttribute("aria-label", `Pages below ${page}`);
    }
    const sidebar = document.querySelector(".bd-sidebar-primary");
    sidebar?.setAttribute("role", "complementary");
    sidebar?.setAttribute("aria-label", "The book");
  };

  // A word of the glossary shows what it means while the pointer or the keyboard is on it (attnlib.css).
  const words = () => {
    for (const link of document.querySelectorAll("a.term[title]")) {
      link.dataset.meaning = link.title;
      link.setAttribute("aria-description", link.title);
      link.removeAttribute("title");
    }
  };

  // The note of a badge (companion/book/markup.py) opens by click, touch and keyboard without any script. Here it goes below its
  // badge, and a pointer that rests on the badge opens it, too.
  const notes = () => {
    let opener = null, waiting = 0;
    const place = note => {
      const badge = opener?.getAttribute("popovertarget") === note.id ? opener
        : document.querySelector(`[popovertarget="${CSS.escape(note.id)}"]`);
      if (!badge) return;
      note.classList.add("placed");
      const at = badge.getBoundingClientRect(), own = note.getBoundingClientRect(), room = 8;
      const below = at.bottom + 4, above = at.top - own.height - 4;
      note.style.left = `${Math.max(room, Math.min(at.left, document.documentElement.clientWidth - own.width - room))}px`;
      note.style.top = `${below + own.height > innerHeight && above > room ? above : below}px`;
    };
    for (const note of document.querySelectorAll(".claim-note[popover]")) {
      note.addEventListener("toggle", event => event.newState === "open" && place(note));
    }
    for (const badge of document.querySelectorAll("button[popovertarget]")) {
      const note = document.getElementById(badge.getAttribute("popovertarget"));
      if (!note?.showPopover) continue;
      badge.addEventListener("click", () => (opener = badge));
      const leave = () => {
        clearTimeout(waiting);
        waiting = setTimeout(() => note.dataset.hovered && !note.matches(":hover") && !badge.matches(":hover") && note.hidePopover(), 200);
      };
      badge.addEventListener("pointerenter", event => {
        if (event.pointerType !== "mouse" || note.matches(":popover-open")) return;
        clearTimeout(waiting);
        waiting = setTimeout(() => {
          opener = badge;
          note.dataset.hovered = "yes";
          note.showPopover();
        }, 250);
      });
      badge.addEventListener("pointerleave", leave);
      note.addEventListener("pointerleave", leave);
      // A click on a badge whose note the pointer has opened keeps it open.
      badge.addEventListener("click", event => {
        if (!note.dataset.hovered || !note.matches(":popover-open")) return;
        event.preventDefault();
        delete note.dataset.hovered;
      });
      note.addEventListener("toggle", event => event.newState === "closed" && delete note.dataset.hovered);
    }
    addEventListener("scroll", () => document.querySelector(".claim-note:popover-open")?.hidePopover(), { passive: true });
  };

  // The list of pages keeps its place from page to page; the page that is open has to be in sight.
  const here = () => {
    const current = document.querySelector(".bd-sidebar-primary .current.active > a, .bd-sidebar-primary li.current:not(:has(li.current)) > a");
    const list = document.querySelector(".bd-sidebar-primary");
    if (!current || !list) return;
    const at = current.getBoundingClientRect(), frame = list.getBoundingClientRect();
    if (at.top < frame.top || at.bottom > Math.min(frame.bottom, innerHeight)) {
      list.scrollTop += at.top - frame.top - Math.min(frame.height, innerHeight) / 3;
    }
  };

  // A number keeps its per cent.
  const percents = () => {
    for (const part of document.querySelectorAll(".bd-article :is(p, li, td, tbody th)")) {
      for (const text of part.childNodes) {
        if (text.nodeType === Node.TEXT_NODE && /\d %/.test(text.data)) text.data = text.data.replace(/(\d) %/g, "$1\u00a0%");
      }
    }
  };

  // A short word of code, such as -p, is never cut at its hyphen (attnlib.css).
  const options = () => {
    for (const word of document.querySelectorAll(".bd-article :is(p, li) code .pre")) {
      word.classList.toggle("whole", word.textContent.length < 25);
    }
    for (const block of document.querySelectorAll(".bd-article .highlight-bash pre")) {
      const texts = document.createTreeWalker(block, NodeFilter.SHOW_TEXT);
      for (let text; (text = texts.nextNode());) {
        const at = text.data.search(/\s-\w\b/);
        if (at < 0 || text.parentNode.matches(".whole")) continue;
        const option = text.splitText(at + 1);
        option.splitText(2);
        const whole = document.createElement("span");
        whole.className = "whole";
        option.replaceWith(whole);
        whole.append(option);
      }
    }
  };

  // The report of a model is a page by itself: it opens in its own tab, too. It has no scripts, and asks for nothing.
  const reports = () => {
    for (const frame of document.querySelectorAll("iframe.report")) {
      const link = document.createElement("a");
      link.href = URL.createObjectURL(new Blob([frame.srcdoc], { type: "text/html" }));
      link.target = "_blank";
      link.textContent = "Open the report in its own tab";
      frame.before(link);
    }
  };

  // On paper nothing can be unfolded and nothing scrolls: folds are open, and tables become as narrow as the paper is.
  const undo = [];
  const fit = wide => {
    document.body.classList.add("printing");
    undo.push(() => document.body.classList.remove("printing"));
    for (const table of document.querySelectorAll(".bd-article table")) {
      const ratio = wide / table.scrollWidth;
      if (ratio < 1 && table.scrollWidth) {
        table.style.zoom = Math.floor(100 * ratio) / 100;
        undo.push(() => table.style.removeProperty("zoom"));
      }
    }
  };
  addEventListener("beforeprint", () => {
    const theme = root.theme; // paper is white, whatever the screen is
    root.theme = "light";
    undo.push(() => (root.theme = theme));
    for (const fold of document.querySelectorAll(".bd-article details:not([open])")) {
      fold.open = true;
      undo.push(() => (fold.open = false));
    }
    fit(658); // pixels, of A4 between its margins
  });
  addEventListener("afterprint", () => undo.splice(0).forEach(back => back()));
  document.addEventListener("fit", event => fit(event.detail)); // workflows/pdf.py

  addEventListener("DOMContentLoaded", () => {
    reading.disconnect();
    formulas(true);
    names();
    words();
    notes();
    percents();
    options();
    reports();
    stops();
  });
  addEventListener("load", stops);
  addEventListener("load", here); // after the theme has brought back where the list was
  addEventListener("resize", stops);
  addEventListener("toggle", stops, true); // of a fold: what is in it has its width from now on
})();

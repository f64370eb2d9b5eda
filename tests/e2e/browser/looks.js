// What an open page of the book looks like, as one object of plain numbers and words.
async () => {
  // Text and the contrast of its colour with the ground it stands on (WCAG 2), lowest first.
  const contrast = () => {
    const rgb = text => text.match(/[\d.]+/g).map(Number);
    const linear = c => (c /= 255) <= 0.03928 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4;
    const luminance = ([r, g, b]) => 0.2126 * linear(r) + 0.7152 * linear(g) + 0.0722 * linear(b);
    const ground = element => {
      for (let e = element; e; e = e.parentElement) {
        const colour = rgb(getComputedStyle(e).backgroundColor);
        if (colour.length < 4 || colour[3] > 0.99) return colour;
      }
      return [255, 255, 255];
    };
    const wanted = "p, li, h1, h2, h3, td, th, dd, dt, figcaption, a, code, span";
    const found = [];
    for (const element of document.querySelectorAll(".bd-article :is(" + wanted + "), .bd-sidebar a")) {
      const words = [...element.childNodes].some(n => n.nodeType === 3 && n.textContent.trim());
      const style = getComputedStyle(element);
      if (!words || !element.getClientRects().length || style.visibility === "hidden") continue;
      const [a, b] = [luminance(rgb(style.color)), luminance(ground(element))];
      const ratio = (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
      found.push([ratio, element.tagName + "." + element.className, element.textContent.trim().slice(0, 40)]);
    }
    return found.sort((x, y) => x[0] - y[0]);
  };
  const images = [...document.querySelectorAll("img")].map(image => {
    const style = getComputedStyle(image);
    return {
      source: image.getAttribute("src"), alt: image.getAttribute("alt"), width: image.naturalWidth,
      inText: !!image.closest(".bd-article"), ground: style.backgroundColor, filter: style.filter,
      scheme: style.colorScheme,
    };
  });
  // Figures with more in them than the window shows, at which width, and whether the Tab key stops there.
  const figures = [...document.querySelectorAll(".bd-article .cell_output figure")].map(figure => {
    const image = figure.querySelector("img");
    return {
      natural: image.naturalWidth, shown: image.getBoundingClientRect().width,
      scrolls: figure.scrollWidth > figure.clientWidth + 1, stop: figure.tabIndex === 0,
      caption: figure.querySelector("figcaption").getBoundingClientRect().right,
      hint: getComputedStyle(figure.querySelector("figcaption"), "::before").content,
    };
  });
  const math = {
    undrawn: [...document.querySelectorAll(".bd-article .math")].filter(e => !e.querySelector(".katex")).length,
    drawn: document.querySelectorAll(".bd-article .katex").length,
    broken: [...document.querySelectorAll(".katex-error")].map(e => e.title),
    wide: [...document.querySelectorAll(".bd-article .katex-display")].filter(e => e.scrollWidth > e.clientWidth + 1)
      .map(e => e.textContent),
  };
  // What sticks out of the window to the right without an element around it that scrolls.
  const sticksOut = [...document.querySelectorAll(".bd-article *")].filter(element => {
    const right = element.getBoundingClientRect().right;
    if (!element.getClientRects().length || right <= innerWidth + 1) return false;
    for (let e = element; e && !e.matches(".bd-article"); e = e.parentElement)
      if (["auto", "scroll", "hidden"].includes(getComputedStyle(e).overflowX)) return false;
    return true;
  }).map(element => element.tagName + "." + element.className);
  // How far things have moved while the page opened.
  const shifts = await new Promise(done => {
    let sum = 0;
    new PerformanceObserver(list => {
      for (const entry of list.getEntries()) sum += entry.value;
    }).observe({ type: "layout-shift", buffered: true });
    setTimeout(() => done(sum), 50);
  });
  return {
    theme: document.documentElement.dataset.theme, contrast: contrast(), images, figures, math, sticksOut, shifts,
    pageWidth: document.documentElement.scrollWidth,
  };
}

// A figure that scrolls sideways (attnlib.css, narrow windows) is a stop of the Tab key, so that arrow keys move it;
// one that fits is none. The theme does the same for tables and code.
(() => {
  const mark = () => {
    for (const figure of document.querySelectorAll(".bd-article .cell_output figure")) {
      if (figure.scrollWidth > figure.clientWidth + 1) figure.tabIndex = 0;
      else figure.removeAttribute("tabindex");
    }
  };
  addEventListener("load", mark);
  addEventListener("resize", mark);
})();

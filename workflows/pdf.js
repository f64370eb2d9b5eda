// One page of the book for paper: its title, and its article as HTML whose ids and links hold in a document of all pages.
pages => {
  const slug = path => path.replace(/\.html$/, "").replace(/\W+/g, "-");
  const here = location.pathname.slice(1);
  const article = document.querySelector("article.bd-article");
  const code = "div.cell:not(.tag_hide-cell) details.hide.above-input, .tag_hide-cell details.hide .cell_input";
  const onScreen = `.headerlink, script, button:not([popovertarget]), iframe, .toctree-wrapper, .hide > summary > .expanded, ${code}`;
  for (const gone of article.querySelectorAll(onScreen)) gone.remove();
  for (const without of article.querySelectorAll("noscript")) without.replaceWith(...without.childNodes);
  for (const fold of article.querySelectorAll("details")) fold.open = true;
  for (const marked of article.querySelectorAll("[id]")) marked.id = `${slug(here)}--${marked.id}`;
  for (const image of article.querySelectorAll("img")) image.setAttribute("src", image.src); // whole addresses
  for (const link of article.querySelectorAll("a[href]")) {
    const to = new URL(link.href);
    const path = to.pathname.slice(1) || "index.html";
    if (to.origin !== location.origin) continue;
    if (pages.includes(path)) link.setAttribute("href", `#${slug(path)}${to.hash ? "--" + to.hash.slice(1) : ""}`);
    else link.replaceWith(...link.childNodes);
  }
  return {
    id: slug(here),
    title: article.querySelector("h1").textContent.trim(),
    book: document.querySelector(".logo__title").textContent.trim(),
    about: document.querySelector(".extra_footer").innerText.replace(/\s+/g, " ").trim(),
    article: `<article class="bd-article" id="${slug(here)}">${article.innerHTML}</article>`,
  };
}

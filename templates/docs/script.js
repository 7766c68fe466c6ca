
"use strict";
(() => {
  const root = document.documentElement;
  const byId = (id) => document.getElementById(id);

  // Light and dark: as the system has it, until somebody says otherwise.
  const theme = byId("theme");
  const system = matchMedia("(prefers-color-scheme: dark)");
  const remembered = (value) => {
    try {
      if (value !== undefined) localStorage.setItem("toolwright-theme", value);
      return localStorage.getItem("toolwright-theme");
    } catch {
      return null; // a page from a file may have no storage
    }
  };
  const isDark = () => (root.dataset.theme ? root.dataset.theme === "dark" : system.matches);
  const label = () => {
    theme.textContent = isDark() ? "Light" : "Dark";
    theme.setAttribute("aria-label", `Switch to ${isDark() ? "light" : "dark"} colours`);
  };
  const before = remembered();
  if (before === "light" || before === "dark") root.dataset.theme = before;
  theme.addEventListener("click", () => {
    root.dataset.theme = isDark() ? "light" : "dark";
    remembered(root.dataset.theme);
    label();
  });
  system.addEventListener("change", label);
  label();
  theme.hidden = false;

  // Search: an entry is shown where each word stands somewhere in it.
  const input = byId("search");
  const found = byId("found");
  const links = new Map([...document.querySelectorAll("nav a")].map((link) => [link.hash.slice(1), link]));
  const entries = [...document.querySelectorAll("article")].map((article) => ({
    article,
    item: links.get(article.id)?.parentElement,
    text: article.textContent.toLowerCase(),
  }));
  const search = () => {
    const words = input.value.toLowerCase().split(/\s+/).filter(Boolean);
    let count = 0;
    for (const { article, item, text } of entries) {
      const fits = words.every((word) => text.includes(word));
      article.hidden = !fits;
      if (item) item.hidden = !fits;
      count += fits;
    }
    for (const section of document.querySelectorAll("section.kind")) {
      section.hidden = !section.querySelector("article:not([hidden])");
    }
    for (const list of document.querySelectorAll("nav ul")) {
      list.hidden = list.previousElementSibling.hidden = !list.querySelector("li:not([hidden])");
    }
    found.textContent = words.length ? `${count} of ${entries.length} found` : "";
    byId("nothing").hidden = count > 0 || !words.length;
  };
  const clear = () => {
    input.value = "";
    search();
  };
  input.addEventListener("input", search);
  document.querySelector(".search").hidden = false;

  // Keys: / searches, arrows go through what was found, Escape shows all again.
  const shown = () => [...document.querySelectorAll("nav a")].filter((link) => link.offsetParent !== null);
  document.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const at = document.activeElement;
    if (event.key === "/" && at !== input) {
      input.focus();
      input.select();
    } else if (event.key === "Escape" && (at === input || input.value)) {
      clear();
      input.blur();
    } else if ((event.key === "ArrowDown" || event.key === "ArrowUp") && (at === input || at.closest("nav"))) {
      const list = [input, ...shown()];
      const step = event.key === "ArrowDown" ? 1 : -1;
      list[Math.min(Math.max(list.indexOf(at) + step, 0), list.length - 1)].focus();
    } else if (event.key === "Enter" && at === input) {
      const first = entries.find(({ article }) => !article.hidden);
      if (first && input.value) {
        location.hash = first.article.id;
        first.article.focus({ preventScroll: true });
      }
    } else {
      return;
    }
    event.preventDefault();
  });

  // A link to what the search hides shows all again.
  const reveal = () => {
    const target = byId(decodeURIComponent(location.hash.slice(1)));
    if (!target) return;
    if (target.closest("[hidden]")) {
      clear();
      target.scrollIntoView();
    }
    if (document.activeElement !== input) target.focus({ preventScroll: true }); // who types goes on typing
  };
  addEventListener("hashchange", reveal);

  // Copying, where the browser lets a page do so.
  if (navigator.clipboard) {
    for (const button of document.querySelectorAll(".copy")) {
      button.hidden = false;
      button.addEventListener("click", async () => {
        try {
          await navigator.clipboard.writeText(button.parentElement.querySelector("code").textContent);
          button.textContent = "Copied";
        } catch {
          button.textContent = "Not allowed";
        }
        setTimeout(() => (button.textContent = "Copy"), 1500);
      });
    }
  }
})();

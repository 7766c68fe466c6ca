(() => {
  const root = document.documentElement;
  const byId = (id) => document.getElementById(id);
  const all = (selector, within = document) => [...within.querySelectorAll(selector)];
  const make = (tag, text, name) => Object.assign(document.createElement(tag), { textContent: text, className: name ?? "" });

  // The search index. Built on the first search, so that the page loads faster.
  const entries = all("article").map((article, at) => ({
    at,
    article,
    details: article.querySelector("details"),
    id: article.querySelector(".anchor").id,
    name: article.querySelector("h3").textContent,
    kind: article.closest("section").querySelector("h2").textContent.replace(/s$/, "").toLowerCase(),
  }));
  const links = new Map(all("nav a").map((link) => [link.hash.slice(1), link]));
  const plain = (node) => (node?.textContent ?? "").replace(/\s+/g, " ").trim();
  const read = (entry) => {
    const body = entry.article.querySelector(".body");
    entry.title = plain(body.querySelector(":scope > .title")).toLowerCase();
    entry.about = plain(body.querySelector(":scope > .text")).toLowerCase();
    entry.keys = all("tbody th code", body).map((code) => code.textContent.toLowerCase());
    entry.text = all(":scope > :not(.link)", body).map(plain).filter(Boolean).join(" ");
    entry.low = entry.text.toLowerCase();
  };
  const count = (text, word) => text.split(word).length - 1;

  // How well a word matches: in the name, then the title, a key, the description, anything else.
  const worth = (entry, word) => {
    const name = entry.name.toLowerCase();
    if (name === word) return 100;
    const parts = name.split(/[^a-z0-9]+/);
    if (parts.includes(word)) return 60;
    if (name.startsWith(word)) return 50;
    if (parts.some((part) => part.startsWith(word))) return 40;
    if (name.includes(word)) return 25;
    if (entry.title.includes(word)) return 15;
    if (entry.keys.includes(word)) return 12;
    if (entry.keys.some((key) => key.includes(word))) return 8;
    if (entry.about.includes(word)) return 5;
    return entry.low.includes(word) ? 1 : 0;
  };
  const marked = (text, words) => {
    const made = document.createDocumentFragment();
    const low = text.toLowerCase();
    for (let at = 0; at < text.length; ) {
      const next = words
        .map((word) => [low.indexOf(word, at), word.length])
        .filter(([start]) => start >= 0)
        .sort((one, other) => one[0] - other[0] || other[1] - one[1])[0];
      if (!next || low.length !== text.length) {
        made.append(text.slice(at));
        break;
      }
      made.append(text.slice(at, next[0]), make("mark", text.slice(next[0], next[0] + next[1])));
      at = next[0] + next[1];
    }
    return made;
  };
  const around = (entry, words) => {
    const first = Math.min(...words.map((word) => entry.low.indexOf(word)).filter((at) => at >= 0));
    if (!Number.isFinite(first)) return entry.text.slice(0, 120);
    const start = first < 40 ? 0 : entry.text.indexOf(" ", first - 40) + 1;
    return (start ? "… " : "") + entry.text.slice(start, start + 160);
  };

  const input = byId("search");
  const results = byId("results");
  const nav = document.querySelector("nav");
  let words = [];
  const search = () => {
    words = [...new Set(input.value.toLowerCase().split(/\s+/).filter(Boolean))];
    if (words.length && entries.length && entries[0].text === undefined) entries.forEach(read);
    let hits = 0;
    const found = [];
    for (const entry of entries) {
      const values = words.map((word) => worth(entry, word));
      const fits = values.every(Boolean);
      entry.article.hidden = !fits;
      if (!fits || !words.length) continue;
      const name = entry.name.toLowerCase();
      entry.hits = words.reduce((sum, word) => sum + count(name, word) + count(entry.low, word), 0);
      hits += entry.hits;
      found.push({ entry, value: values.reduce((sum, value) => sum + value, 0) });
    }
    found.sort((one, other) => other.value - one.value || one.entry.at - other.entry.at);
    for (const section of all("section.kind")) section.hidden = !section.querySelector("article:not([hidden])");
    results.replaceChildren(
      ...found.map(({ entry }) => {
        const link = document.createElement("a");
        link.href = `#${entry.id}`;
        link.append(marked(entry.name, words), make("span", `${entry.kind}, ${entry.hits} ${entry.hits === 1 ? "hit" : "hits"}`, "where"));
        const text = make("span", "", "around");
        text.append(marked(around(entry, words), words));
        link.append(text);
        const item = document.createElement("li");
        item.append(link);
        return item;
      }),
    );
    results.hidden = !found.length;
    nav.hidden = words.length > 0;
    byId("found").textContent = words.length ? `${hits} ${hits === 1 ? "hit" : "hits"} in ${found.length} of ${entries.length}` : "";
    byId("nothing").hidden = found.length > 0 || !words.length;
    paint();
    scrolls();
  };
  const clear = () => {
    input.value = "";
    search();
  };
  input.addEventListener("input", search);
  document.querySelector(".search").hidden = byId("seek").hidden = false;

  // Highlight matches that are visible. A name consists of several nodes, so a match can span them.
  const paint = () => {
    if (!CSS.highlights) return;
    const ranges = [];
    for (const { article, details } of words.length ? entries : []) {
      if (article.hidden) continue;
      const walker = document.createTreeWalker(details.open ? article : article.querySelector("summary"), NodeFilter.SHOW_TEXT);
      const nodes = [];
      let text = "";
      while (walker.nextNode()) {
        nodes.push([text.length, walker.currentNode]);
        text += walker.currentNode.data;
      }
      const low = text.toLowerCase();
      if (low.length !== text.length) continue; // some letters have a longer lower-case form
      const place = (offset) => {
        let start = 0;
        for (let end = nodes.length; end - start > 1; ) {
          const middle = (start + end) >> 1;
          if (nodes[middle][0] <= offset) start = middle;
          else end = middle;
        }
        return [nodes[start][1], offset - nodes[start][0]];
      };
      for (const word of words) {
        for (let at = low.indexOf(word); at >= 0 && ranges.length < 2000; at = low.indexOf(word, at + word.length)) {
          const range = new Range();
          range.setStart(...place(at));
          const [node, offset] = place(at + word.length - 1);
          range.setEnd(node, offset + 1);
          ranges.push(range);
        }
      }
    }
    if (ranges.length) CSS.highlights.set("found", new Highlight(...ranges));
    else CSS.highlights.delete("found");
  };

  // Open or close all entries of a kind.
  for (const button of all(".all")) {
    const its = all("article > details", button.closest("section"));
    const say = () => (button.textContent = its.every((one) => one.open) ? "Close all" : "Open all");
    button.hidden = its.length < 2;
    button.addEventListener("click", () => {
      const open = !its.every((one) => one.open);
      for (const one of its) one.open = open;
      say();
    });
    for (const one of its) one.addEventListener("toggle", say);
  }
  document.addEventListener("toggle", () => words.length && paint(), true);

  // A link opens its target, and shows it if the search hides it.
  const sheet = byId("contents");
  const main = byId("content");
  let came = false;
  const reveal = () => {
    const target = byId(decodeURIComponent(location.hash.slice(1)));
    hide();
    main.inert = target === sheet && getComputedStyle(sheet).position === "fixed";
    for (const link of links.values()) link.removeAttribute("aria-current");
    links.get(target?.id)?.setAttribute("aria-current", "true");
    if (!target) return;
    if (target === sheet) {
      scrolls();
      if (main.inert) (wanted ? input : sheet).focus({ preventScroll: true });
      wanted = false;
      return;
    }
    if (target.closest("[hidden]")) clear();
    for (let above = target.closest("details"); above; above = above.parentElement.closest("details")) above.open = true;
    target.scrollIntoView(came ? {} : { behavior: "instant" });
    if (document.activeElement === input && !main.inert && input.offsetParent) return; // do not interrupt typing
    (target.matches(".anchor") ? target.closest("details").querySelector("summary") : target).focus({ preventScroll: true });
  };
  let wanted = false;
  byId("seek").addEventListener("click", () => (wanted = true));
  byId("back").addEventListener("click", (event) => {
    if (!came) return;
    event.preventDefault();
    history.back();
  });
  addEventListener("hashchange", () => {
    came = true;
    reveal();
  });
  document.addEventListener("click", (event) => {
    const link = event.target.closest('a[href^="#"]'); // the current link does not change the address
    if (link && link.hash && link.hash === location.hash && link.id !== "back") reveal();
  });

  // Show that the list scrolls, until its end is visible.
  const scrolls = () => {
    const left = sheet.scrollHeight - sheet.clientHeight - sheet.scrollTop > 8;
    sheet.classList.toggle("scrolls", left);
    sheet.classList.toggle("all-seen", !left);
  };
  sheet.addEventListener("scroll", scrolls, { passive: true });
  addEventListener("resize", scrolls);

  // Keys: / searches, arrow keys move through the results, Enter opens one, Escape clears the filter.
  const shown = () => all("nav a, #results a").filter((link) => link.offsetParent !== null);
  document.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const at = document.activeElement;
    if (event.key === "/" && at !== input) {
      if (getComputedStyle(sheet).display === "none") {
        wanted = true;
        location.hash = "#contents";
      }
      input.focus();
      input.select();
    } else if (event.key === "Escape" && !byId("preview").hidden) {
      hide();
    } else if (event.key === "Escape" && (at === input || input.value)) {
      clear();
      input.blur();
    } else if (event.key === "Escape" && main.inert) {
      byId("back").click();
    } else if ((event.key === "ArrowDown" || event.key === "ArrowUp") && (at === input || sheet.contains(at?.closest("nav, #results")))) {
      const list = [input, ...shown()];
      const step = event.key === "ArrowDown" ? 1 : -1;
      list[Math.min(Math.max(list.indexOf(at) + step, 0), list.length - 1)].focus();
    } else if (event.key === "Enter" && at === input) {
      input.blur();
      results.querySelector("a")?.click();
    } else {
      return;
    }
    event.preventDefault();
  });

  // Preview a schema next to a link to it.
  const preview = byId("preview");
  let over = null;
  let timer = 0;
  const hide = () => {
    clearTimeout(timer);
    preview.hidden = true;
    over?.removeAttribute("aria-describedby");
    over = null;
  };
  const show = (link) => {
    const article = byId(link.hash.slice(1))?.closest("article");
    if (!article || article.contains(link)) return;
    hide();
    over = link;
    const body = article.querySelector(".table");
    const rows = all(":scope > table > tbody > tr", body).filter((row) => row.querySelector(".d0 code"));
    const list = document.createElement("dl");
    for (const row of rows.slice(0, 8)) {
      const needed = row.querySelector(".required") ? " (required)" : "";
      list.append(make("dt", row.querySelector("th code").textContent), make("dd", plain(row.querySelector(".type")) + needed));
    }
    const about = plain(body.querySelector(":scope > .whole .text"));
    const more = rows.length > 8 ? `and ${rows.length - 8} more` : "";
    preview.replaceChildren(
      make("p", article.querySelector("h3").textContent, "strong"),
      ...(about ? [make("p", about.length > 240 ? `${about.slice(0, 240)}…` : about)] : []),
      ...all(":scope > .whole > p .type", body).map((type) => make("p", type.textContent, "quiet")),
      ...all(":scope > .whole > .notes li", body).map((note) => make("p", plain(note), "quiet")),
      ...(rows.length ? [list] : []),
      ...(more ? [make("p", more, "quiet")] : []),
    );
    preview.hidden = false;
    link.setAttribute("aria-describedby", "preview");
    const place = link.getBoundingClientRect();
    const below = place.bottom + 6 + preview.offsetHeight < innerHeight || place.top < preview.offsetHeight + 6;
    preview.style.top = `${scrollY + (below ? place.bottom + 6 : place.top - 6 - preview.offsetHeight)}px`;
    preview.style.left = `${Math.max(8, Math.min(place.left, root.clientWidth - preview.offsetWidth - 8))}px`;
  };
  const soon = (what, after) => {
    clearTimeout(timer);
    timer = setTimeout(what, after);
  };
  document.addEventListener("pointerover", (event) => {
    if (event.pointerType !== "mouse") return;
    const link = event.target.closest("a.ref");
    if (link && link !== over) soon(() => show(link), 200);
    else if (link || preview.contains(event.target)) clearTimeout(timer);
    else soon(hide, 200);
  });
  document.addEventListener("focusin", (event) => (event.target.matches("a.ref:focus-visible") ? show(event.target) : hide()));

  // Show everything when printing.
  let shut = [];
  addEventListener("beforeprint", () => {
    shut = all("details:not([open])");
    for (const one of shut) one.open = true;
  });
  addEventListener("afterprint", () => {
    for (const one of shut) one.open = false;
    shut = [];
  });

  // Copying, where the browser allows it.
  if (navigator.clipboard) {
    for (const place of all(".label")) {
      const button = Object.assign(make("button", "Copy"), { type: "button" });
      button.setAttribute("aria-label", `Copy: ${place.textContent}`);
      place.append(button);
      button.addEventListener("click", async () => {
        try {
          await navigator.clipboard.writeText(place.parentElement.querySelector("code").textContent);
          button.textContent = "Copied";
        } catch {
          button.textContent = "Not allowed";
        }
        byId("said").textContent = button.textContent;
        setTimeout(() => (button.textContent = "Copy"), 1500);
      });
    }
  }

  if (location.hash) reveal();
  scrolls();
})();

"use strict";
(() => {
  const root = document.documentElement;

  // Light or dark: the system's setting, until the user chooses.
  const theme = document.getElementById("theme");
  const system = matchMedia("(prefers-color-scheme: dark)");
  const remembered = (value) => {
    try {
      if (value !== undefined) localStorage.setItem("stubwright-theme", value);
      return localStorage.getItem("stubwright-theme");
    } catch {
      return null; // pages from files may have no storage
    }
  };
  const isDark = () => (root.dataset.theme ? root.dataset.theme === "dark" : system.matches);
  const label = () => {
    theme.textContent = isDark() ? "Light" : "Dark";
    theme.setAttribute("aria-label", `Switch to ${isDark() ? "light" : "dark"} colors`);
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
})();

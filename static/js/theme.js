/* Light or dark: the reader's choice, else the system's. Runs before the page is
   drawn, so that a chosen theme never flashes the other one. */
(function () {
  "use strict";
  const KEY = "impakt-theme";
  const root = document.documentElement;

  function stored() {
    try { return localStorage.getItem(KEY); } catch { return null; }
  }
  function current() {
    return root.dataset.theme || (matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light");
  }
  function announce() {
    document.dispatchEvent(new CustomEvent("impakt:theme", { detail: current() }));
  }
  function toggle() {
    root.dataset.theme = current() === "dark" ? "light" : "dark";
    try { localStorage.setItem(KEY, root.dataset.theme); } catch { /* private window: for this page only */ }
    announce();
  }

  const choice = stored();
  if (choice === "light" || choice === "dark") root.dataset.theme = choice;
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", announce);
  document.addEventListener("click", (event) => {
    if (event.target.closest("[data-theme-switch]")) toggle();
  });
  window.impakt = { theme: { toggle, current } };
})();

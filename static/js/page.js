/* What every page does: keyboard, menus, copying, selecting rows; last, it says the page is ready. */
(function () {
  "use strict";
  const waiting = (window.impakt.waiting = window.impakt.waiting || []);

  /* ---------- keyboard ---------- */
  const destinations = {};
  for (const link of document.querySelectorAll(".topbar .nav a")) {
    destinations[link.textContent.trim()[0].toLowerCase()] = link.href;
  }
  let going = false;
  function typing(target) {
    return target.closest("input:not([type=checkbox]), textarea, select, [contenteditable]");
  }
  const actions = {
    "/": () => document.querySelector("[data-search]")?.focus(),
    "?": () => document.getElementById("keys")?.togglePopover(),
    t: () => window.impakt.theme.toggle(),
    g: () => { going = true; setTimeout(() => { going = false; }, 1200); },
    j: () => step(1),
    k: () => step(-1),
    x: () => row()?.querySelector("[data-select]")?.click(),
    c: () => document.querySelector("[data-compare]:not([disabled])")?.click(),
    Enter: (event) => {
      if (event.target.closest("a, button, summary, input")) return false;
      row()?.querySelector("th a")?.click();
    },
  };
  document.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey || typing(event.target)) return;
    if (going) {
      going = false;
      if (destinations[event.key]) { location.href = destinations[event.key]; return; }
    }
    const action = actions[event.key];
    if (action && action(event) !== false) event.preventDefault();
  });

  /* ---------- rows ---------- */
  let at = -1;
  const rows = () => Array.from(document.querySelectorAll("[data-rows] tbody tr"));
  const row = () => rows()[at];
  function step(by) {
    const all = rows();
    if (!all.length) return;
    at = Math.min(all.length - 1, Math.max(0, at + by));
    all[at].querySelector("a, input")?.focus();
    all[at].scrollIntoView({ block: "nearest" });
  }
  const bar = document.querySelector("[data-selection]");
  function selection() {
    const boxes = Array.from(document.querySelectorAll("[data-select]"));
    const chosen = boxes.filter((box) => box.checked);
    for (const box of boxes) box.closest("tr").setAttribute("aria-selected", String(box.checked));
    if (!bar) return;
    bar.hidden = chosen.length === 0;
    bar.querySelector("[data-count]").textContent = `${chosen.length} selected`;
    const configurations = new Set(chosen.map((box) => box.dataset.configuration));
    const caches = new Set(chosen.map((box) => box.dataset.cache));
    const invalid = chosen.filter((box) => box.dataset.valid !== "true");
    const says = [];
    if (chosen.length > 1 && configurations.size < 2) says.push("all on one configuration");
    if (configurations.size > 2) says.push(`${configurations.size} configurations; a comparison has two sides`);
    if (caches.size > 1) says.push("cache state differs");
    if (invalid.length) says.push(`${invalid.length} without a valid record`);
    bar.querySelector("[data-warning]").hidden = says.length === 0;
    bar.querySelector("[data-warning-text]").textContent = says.join("; ");
    bar.querySelector("[data-compare]").disabled = chosen.length < 2 || configurations.size !== 2;
  }
  document.addEventListener("change", (event) => {
    if (event.target.matches("[data-select-all]")) {
      for (const box of document.querySelectorAll("[data-select]")) box.checked = event.target.checked;
    }
    if (event.target.matches("[data-select], [data-select-all]")) selection();
    if (event.target.matches("[data-submit]")) event.target.form.requestSubmit();
  });
  document.addEventListener("click", (event) => {
    if (event.target.closest("[data-clear]")) {
      for (const box of document.querySelectorAll("[data-select], [data-select-all]")) box.checked = false;
      selection();
    }
  });
  if (bar) selection();

  /* ---------- copying, closing, confirming ---------- */
  document.addEventListener("click", async (event) => {
    const copy = event.target.closest("[data-copy]");
    if (copy) {
      await navigator.clipboard.writeText(copy.dataset.copy);
      copy.setAttribute("aria-label", "Copied");
    }
    for (const open of document.querySelectorAll("details.switch[open], details.account[open]")) {
      if (!open.contains(event.target)) open.open = false;
    }
  });
  document.addEventListener("submit", (event) => {
    const button = event.submitter;
    if (button && !event.defaultPrevented && event.target.method === "post") {
      /* After the form has read its button: a second click must not post twice. */
      setTimeout(() => { button.disabled = true; button.setAttribute("aria-busy", "true"); });
    }
  });
  addEventListener("pageshow", () => {
    for (const busy of document.querySelectorAll("[aria-busy=true]")) {
      busy.disabled = false;
      busy.removeAttribute("aria-busy");
    }
  });

  /* ---------- ready ---------- */
  addEventListener("DOMContentLoaded", async () => {
    await Promise.allSettled(waiting);
    document.body.dataset.ready = "";
  });
})();

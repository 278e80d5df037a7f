/* Draws the figures the server describes. Colours arrive as names of tokens,
   "var(--cl-1)" or "var(--cl-1) / .2", and become values here: once per theme. */
(function () {
  "use strict";
  const impakt = window.impakt;
  impakt.waiting = impakt.waiting || [];
  const FONT_SIZE = 12;
  const LETTER_PX = 7.4; /* a letter of that size, at its widest */
  const COLOUR = /^var\((--[\w-]+)\)(?: \/ ([\d.]+))?$/;
  const figures = new Map();

  /* ---------- tokens ---------- */
  function tokens() {
    const style = getComputedStyle(document.documentElement);
    return (name) => style.getPropertyValue(name).trim();
  }
  function withOpacity(hex, opacity) {
    const parts = [1, 3, 5].map((at) => parseInt(hex.slice(at, at + 2), 16));
    return `rgba(${parts.join(",")},${opacity})`;
  }
  function resolve(value, token) {
    if (typeof value === "string") {
      const found = COLOUR.exec(value);
      if (!found) return value;
      const hex = token(found[1]);
      return found[2] ? withOpacity(hex, found[2]) : hex;
    }
    if (Array.isArray(value)) return value.map((item) => resolve(item, token));
    if (value && typeof value === "object") {
      return Object.fromEntries(Object.entries(value).map(([key, item]) => [key, resolve(item, token)]));
    }
    return value;
  }

  /* ---------- template ---------- */
  function axisTemplate(token) {
    return {
      gridcolor: token("--line"), gridwidth: 1, zeroline: false, linecolor: token("--line-strong"),
      tickcolor: token("--line-strong"), tickangle: 0, automargin: true, fixedrange: true,
      tickfont: { color: token("--muted") },
    };
  }
  function template(token) {
    return {
      font: { family: token("--sans"), size: FONT_SIZE, color: token("--muted") },
      paper_bgcolor: "rgba(0,0,0,0)", plot_bgcolor: "rgba(0,0,0,0)",
      margin: { l: 44, r: 12, t: 18, b: 44 }, showlegend: false, hovermode: "closest", dragmode: false,
      separators: ".,",
      hoverlabel: {
        bgcolor: token("--surface"), bordercolor: token("--line-strong"),
        font: { family: token("--sans"), size: FONT_SIZE, color: token("--ink") },
      },
    };
  }
  /* Titles stand at the ends of their axes, out of the way of the data. An axis named in
     layout.meta.quiet has its title for exports and readers of the data only. */
  function endTitle(axis, isX, quiet, token) {
    const title = axis.title && axis.title.text;
    delete axis.title;
    if (!title || quiet) return null;
    const common = { text: title, showarrow: false, xref: "paper", yref: "paper", font: { color: token("--muted") } };
    return isX
      ? { ...common, x: 1, xanchor: "right", y: 0, yanchor: "top", yshift: -24 }
      : { ...common, x: 0, xanchor: "left", xshift: -40, y: 1, yanchor: "bottom", yshift: 4 };
  }
  /* A tick is named only where its words do not touch those of the one before. */
  function thin(axis, plot) {
    if (!axis.ticktext || !axis.range) return;
    const place = axis.type === "log" ? Math.log10 : (value) => value;
    const [low, high] = axis.range;
    let taken = -Infinity;
    axis.ticktext = axis.ticktext.map((text, at) => {
      const middle = ((place(axis.tickvals[at]) - low) / (high - low)) * plot;
      const half = (text.length * LETTER_PX) / 2;
      if (middle - half < taken) return "";
      taken = middle + half + 6;
      return text;
    });
  }
  function layoutOf(figure, token, width) {
    const base = template(token);
    const own = resolve(structuredClone(figure.layout), token);
    const layout = { ...base, ...own, margin: { ...base.margin, ...own.margin } };
    const quiet = own.meta?.quiet || [];
    layout.annotations = [...(own.annotations || [])];
    for (const name of ["xaxis", "yaxis"]) {
      const axis = { ...axisTemplate(token), ...own[name] };
      const title = endTitle(axis, name === "xaxis", quiet.includes(name), token);
      if (title) layout.annotations.push(title);
      if (name === "xaxis") thin(axis, width - layout.margin.l - layout.margin.r);
      if (axis.zeroline) { axis.zerolinecolor = token("--line-strong"); axis.zerolinewidth = 1; }
      layout[name] = axis;
    }
    if (layout.yaxis.showticklabels === false) layout.yaxis.ticks = "";
    else if (!own.margin?.t) layout.margin.t = 22;
    return layout;
  }
  /* Words in a bar only where the bar has room for them, else its share alone. Those of a
     hatched bar stand on a piece of surface. */
  function words(text, room) {
    const share = (/\d+ %$/.exec(text) || [""])[0];
    return [text, share].find((one) => one.length * LETTER_PX + 8 < room) || "";
  }
  function fitting(data, layout, width, token) {
    const plot = width - layout.margin.l - layout.margin.r;
    const begun = new Map(); /* where the next piece of a stacked bar starts */
    for (const trace of data) {
      if (trace.type !== "bar" || !Array.isArray(trace.text)) continue;
      const [low, high] = layout.xaxis.range;
      const chip = trace.meta?.chip;
      trace.text = trace.text.map((text, at) => {
        const y = trace.y[at], from = begun.get(y) || 0;
        begun.set(y, from + trace.x[at]);
        const fits = words(text, (trace.x[at] / (high - low)) * plot - (chip ? 8 : 0));
        if (!chip || !fits) return fits;
        layout.annotations.push({
          text: fits, x: from, y, xanchor: "left", xshift: 5, showarrow: false, borderpad: 1,
          bgcolor: token("--surface"), font: { color: token("--ink"), weight: 600, size: 11 },
        });
        return "";
      });
    }
    return data;
  }
  const CONFIG = { displayModeBar: false, responsive: true };

  function draw(element, figure) {
    const token = tokens();
    const layout = layoutOf(figure, token, element.clientWidth);
    const data = fitting(resolve(structuredClone(figure.data), token), layout, element.clientWidth, token);
    return window.Plotly.react(element, data, layout, CONFIG);
  }

  async function load(element) {
    const inline = document.getElementById(element.dataset.chart);
    const figure = inline ? JSON.parse(inline.textContent) : await (await fetch(element.dataset.src)).json();
    figures.set(element, figure);
    await draw(element, figure);
  }

  /* ---------- exports ---------- */
  async function picture(element, format) {
    const token = tokens();
    const figure = figures.get(element);
    const layout = { ...layoutOf(figure, token, 900), paper_bgcolor: token("--surface"), plot_bgcolor: token("--surface") };
    const data = fitting(resolve(structuredClone(figure.data), token), layout, 900, token);
    await window.Plotly.downloadImage(
      { data, layout },
      { format, width: 900, height: element.clientHeight, scale: format === "png" ? 2 : 1, filename: element.dataset.name },
    );
  }
  function cell(tag, text) {
    const element = document.createElement(tag);
    element.textContent = text === null ? "not observed" : typeof text === "number" ? String(Number(text.toPrecision(6))) : text;
    if (typeof text === "number") element.className = "num";
    return element;
  }
  function table(element) {
    const figure = figures.get(element);
    const dialog = document.createElement("dialog");
    dialog.className = "dialog data-dialog";
    const head = document.createElement("header");
    head.append(cell("h2", element.dataset.title));
    const close = document.createElement("button");
    close.className = "btn btn-quiet push";
    close.textContent = "Close";
    close.addEventListener("click", () => dialog.close());
    head.append(close);
    const body = document.createElement("div");
    body.className = "body";
    const grid = document.createElement("table");
    grid.className = "table dense";
    const top = grid.createTHead().insertRow();
    for (const name of figure.columns) top.append(cell("th", name));
    const rows = grid.createTBody();
    for (const values of figure.rows) {
      const row = rows.insertRow();
      for (const value of values) row.append(cell("td", value));
    }
    body.append(grid);
    dialog.append(head, body);
    dialog.addEventListener("close", () => dialog.remove());
    document.body.append(dialog);
    dialog.showModal();
  }
  document.addEventListener("click", (event) => {
    const button = event.target.closest("[data-export]");
    if (!button) return;
    const element = button.closest("figure").querySelector("[data-chart]");
    if (!figures.has(element)) return;
    if (button.dataset.export === "table") table(element);
    else picture(element, button.dataset.export);
  });

  /* ---------- start ---------- */
  function redraw() {
    for (const [element, figure] of figures) draw(element, figure);
  }
  document.addEventListener("impakt:theme", redraw);
  addEventListener("beforeprint", redraw);
  for (const element of document.querySelectorAll("[data-chart]")) impakt.waiting.push(load(element));
})();

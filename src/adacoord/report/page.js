"use strict";
(() => {
  const { tol, curves } = JSON.parse(document.getElementById("data").textContent);
  const tip = document.getElementById("tip"), log = document.getElementById("log");
  const charts = [...document.querySelectorAll(".chart")];
  const labels = [...new Set(curves.map((c) => c.label))], hidden = new Set();

  const element = (name, attributes, parent, text) => {
    const node = document.createElementNS("http://www.w3.org/2000/svg", name);
    for (const key in attributes) node.setAttribute(key, attributes[key]);
    if (text !== undefined) node.textContent = text;
    return parent.appendChild(node);
  };
  const number = (v) => (v === 0 ? "0" : Math.abs(v) >= 1e-2 && Math.abs(v) < 1e5
    ? String(Number(v.toPrecision(3))) : v.toExponential(Math.abs(v) < 1e-2 ? 0 : 1));
  const superscript = (k) => "10" + String(k).replace(/./g, (c) =>
    ({ "-": "⁻" }[c] || "⁰¹²³⁴⁵⁶⁷⁸⁹"[c]));
  const time = (s) => (s < 1 ? Number((1000 * s).toPrecision(3)) + " ms"
    : Number(s.toPrecision(3)) + " s");

  // round steps of 1, 2 or 5 times a power of ten
  const steps = (high, count) => {
    const raw = high / count, power = 10 ** Math.floor(Math.log10(raw));
    const step = power * ([1, 2, 5, 10].find((m) => m * power >= raw) || 10), out = [];
    for (let k = 0; k * step <= high * (1 + 1e-9); k++) out.push(k * step);
    return out;
  };
  const ladder = (low, high) => {
    const out = [];
    for (let k = Math.floor(low); k <= high; k++) {
      for (const m of [1, 2, 5]) if (Math.log10(m) + k >= low - 1e-9 &&
        Math.log10(m) + k <= high + 1e-9) out.push(m * 10 ** k);
    }
    return out;
  };
  const decades = (low, high, most) => {
    const every = Math.max(1, Math.ceil((high - low) / most)), out = [];
    for (let k = Math.ceil(low / every) * every; k <= high; k += every) out.push(k);
    return out;
  };

  function draw(box) {
    const kind = box.dataset.x, logarithmic = log.checked;
    const width = Math.max(box.clientWidth, 260), height = Math.round(Math.min(380, 200 + width / 4));
    const left = 48, right = 14, top = 10, bottom = 40;
    box.replaceChildren();
    const svg = element("svg", { viewBox: `0 0 ${width} ${height}`, height, role: "img",
      "aria-label": `relative gap against ${kind}` }, box);
    const shown = curves.filter((c) => !hidden.has(c.label));
    const points = shown.flatMap((c) => c[kind].map((x, k) => [x, c.gap[k]])
      .filter(([, g]) => g !== null));
    if (!points.length) {
      element("text", { x: width / 2, y: height / 2, "text-anchor": "middle" }, svg,
        "Every solver is hidden: press a name to show it.");
      box.found = [];
      return;
    }
    const gaps = points.map(([, g]) => Math.log10(g));
    const low = Math.floor(Math.min(...gaps, Math.log10(tol || 1)));
    const high = Math.max(Math.ceil(Math.max(...gaps)), low + 1);
    const most = Math.max(...points.map(([x]) => x)) || 1;
    const positive = points.map(([x]) => x).filter((x) => x > 0);
    const least = Math.min(...positive, most);
    const from = Math.log10(least), to = Math.max(Math.log10(most), from + 1e-9);
    const X = (x) => left + (width - left - right) * (logarithmic
      ? (Math.log10(Math.max(x, least)) - from) / (to - from) : x / most);
    const Y = (g) => top + (height - top - bottom) * (high - Math.log10(g)) / (high - low);

    for (const k of decades(low, high, 7)) {
      const y = Y(10 ** k);
      element("line", { class: "grid", x1: left, x2: width - right, y1: y, y2: y }, svg);
      element("text", { x: left - 8, y: y + 4, "text-anchor": "end" }, svg, superscript(k));
    }
    const ticks = !logarithmic ? steps(most, width / 90)
      : to - from < 2 ? ladder(from, to) : decades(from, to, 6).map((k) => 10 ** k);
    for (const x of ticks) {
      element("line", { class: "grid", x1: X(x), x2: X(x), y1: top, y2: height - bottom }, svg);
      element("text", { x: X(x), y: height - bottom + 17, "text-anchor": "middle" }, svg, number(x));
    }
    element("text", { x: (left + width - right) / 2, y: height - 5, "text-anchor": "middle" },
      svg, kind);
    box.found = [];
    for (const curve of shown) {
      const at = curve[kind].map((x, k) => [x, curve.gap[k], k])
        .filter(([x, g]) => g !== null && !(logarithmic && x <= 0))
        .map(([x, g, k]) => ({ x: X(x), y: Y(g), k, curve }));
      const path = element("path", {
        class: curve.seed ? "curve other" : "curve", style: `stroke: ${curve.colour}`,
        "stroke-dasharray": curve.dash, "data-label": curve.label,
        d: at.map((p, k) => `${k ? "L" : "M"}${p.x.toFixed(1)} ${p.y.toFixed(1)}`).join(""),
      }, svg);
      at.forEach((p) => { p.path = path; });
      box.found.push(...at);
    }
    if (tol > 0) {
      element("line", { class: "goal", x1: left, x2: width - right, y1: Y(tol), y2: Y(tol) }, svg);
      element("text", { x: left + 6, y: Y(tol) - 5 }, svg, "asked for");
    }
    box.dot = element("circle", { class: "dot", r: 5, visibility: "hidden" }, svg);
    svg.addEventListener("pointermove", (event) => point(box, svg, event, width));
    svg.addEventListener("pointerdown", (event) => point(box, svg, event, width));
    svg.addEventListener("pointerleave", () => leave(box, svg));
  }

  function point(box, svg, event, width) {
    const area = svg.getBoundingClientRect(), scale = width / area.width;
    const x = (event.clientX - area.left) * scale, y = (event.clientY - area.top) * scale;
    let near = null, distance = 40 * 40;
    for (const p of box.found) {
      const d = (p.x - x) ** 2 + (p.y - y) ** 2;
      if (d < distance) [near, distance] = [p, d];
    }
    if (!near) return leave(box, svg);
    const { curve, k } = near, several = curves.some((c) => c.label === curve.label && c.seed);
    svg.classList.add("dim");
    svg.querySelectorAll(".near").forEach((n) => n.classList.remove("near"));
    near.path.classList.add("near");
    box.dot.setAttribute("cx", near.x);
    box.dot.setAttribute("cy", near.y);
    box.dot.style.fill = curve.colour;
    box.dot.setAttribute("visibility", "visible");
    tip.textContent = `${curve.label}${several ? `, seed ${curve.seed}` : ""}\n` +
      `gap ${curve.gap[k].toExponential(2)}\n${curve.passes[k]} passes, ${time(curve.seconds[k])}`;
    tip.hidden = false;
    const size = tip.getBoundingClientRect();
    tip.style.left = Math.max(4, Math.min(event.clientX + 14,
      document.documentElement.clientWidth - size.width - 4)) + "px";
    tip.style.top = Math.max(4, event.clientY - size.height - 12) + "px";
  }

  function leave(box, svg) {
    tip.hidden = true;
    svg.classList.remove("dim");
    if (box.dot) box.dot.setAttribute("visibility", "hidden");
  }

  const redraw = () => charts.forEach(draw);
  for (const label of labels) {
    const { colour, dash } = curves.find((c) => c.label === label);
    const button = document.createElement("button");
    button.type = "button";
    button.setAttribute("aria-pressed", "true");
    const swatch = element("svg", { width: 22, height: 8, "aria-hidden": "true" }, button);
    element("line", { x1: 0, x2: 22, y1: 4, y2: 4, style: `stroke: ${colour}`, "stroke-width": 3,
      "stroke-dasharray": dash }, swatch);
    button.append(label);
    button.addEventListener("click", () => {
      if (!hidden.delete(label)) hidden.add(label);
      button.setAttribute("aria-pressed", String(!hidden.has(label)));
      redraw();
    });
    document.getElementById("legend").append(button);
  }
  log.addEventListener("change", redraw);
  let waiting = 0;
  window.addEventListener("resize", () => {
    cancelAnimationFrame(waiting);
    waiting = requestAnimationFrame(redraw);
  });
  redraw();
})();

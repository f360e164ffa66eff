// Curves by uPlot, in the colours of the page, redrawn when its width or theme changes.

import { h } from "./dom.js";
import { clipped, num } from "./format.js";
import { filter } from "./places.js";

export const colour = (name) => getComputedStyle(document.documentElement).getPropertyValue(`--${name}`).trim();
export const HUES = ["c1", "c2", "c3", "c4", "c5", "c6", "c7", "c8"];
const alive = new Set();

// The library comes beside the page, so that neither waits for the other.
if (!window.uPlot) document.getElementById("uplot").addEventListener("load", () => redraw(), { once: true });

const stepped = (align) => window.uPlot.paths.stepped({ align });
const dots = (size) => ({ show: true, size, width: 0 });

const LETTER = 6.6; // pixels of a letter on an axis, about

// series: [{label, values, colour, kind: "line" | "step" | "dots" | "edge", width, dash, size, align, spread}]
// `spread` has the deviation of each place along both axes, {x, y}; a step goes on to the next point, or with `align` of -1 comes from it.
// A value of null is a gap, of undefined is not there. Along `xOptions` and `yOptions` there are the choices of a parameter.
export function chart({ label, x, series, height = 280, xLabel = "", yLabel = "", logX = false, logY = false, xTime = false, bands, pick, legend = true, xFormat, xOptions, yOptions }) {
  const box = h("div", { class: "chart", role: "img", "aria-label": `${label}. ${summary(series)}` });
  box.style.height = `${height}px`;
  let plot = null;
  const draw = () => {
    const width = Math.max(200, box.clientWidth);
    if (!window.uPlot || !box.isConnected || !box.clientWidth) return;
    plot?.destroy();
    box.replaceChildren();
    const axis = { stroke: colour("muted"), grid: { stroke: colour("grid"), width: 1 }, ticks: { stroke: colour("grid"), width: 1, size: 4 }, font: "12px system-ui", labelFont: "12px system-ui", labelSize: 22, labelGap: 2 };
    const options = {
      width, height,
      cursor: { points: { size: 7 }, drag: { x: true, y: false } },
      legend: { show: legend, live: true },
      scales: { x: { time: xTime, distr: logX ? 3 : 1, range: xOptions ? [-0.5, xOptions.length - 0.5] : undefined }, y: { distr: logY ? 3 : 1, range: yOptions ? [-0.5, yOptions.length - 0.5] : logY ? undefined : padded } },
      axes: [{ ...axis, label: xLabel, size: 38, space: xFormat ? 90 : 50, values: xTime ? undefined : (_, ticks) => ticks.map((tick) => tick === null ? "" : (xFormat || num)(tick)), ...(xOptions ? across(xOptions, width - 80) : {}) },
        { ...axis, label: yLabel, size: 58, values: (_, ticks) => ticks.map((tick) => tick === null ? "" : num(tick)), ...(yOptions ? up(yOptions, width / 3) : {}) }],
      series: [{ label: xLabel || "x", value: xTime ? undefined : (_, value) => xOptions ? xOptions[Math.round(value)] ?? "–" : (xFormat || num)(value) }, ...series.map(styled)],
      bands: bands || [],
      hooks: { drawSeries: [(drawn, place) => series[place - 1]?.spread && whiskers(drawn, place, series[place - 1])] },
    };
    plot = new window.uPlot(options, [x, ...series.map((one) => one.values)], box);
    if (legend) roomForLegend(plot, series, width, height);
    if (pick) plot.over.addEventListener("click", () => { if (plot.cursor.idx !== null && plot.cursor.idx !== undefined) pick(plot.cursor.idx); });
  };
  watch(box, draw, () => plot?.destroy());
  return box;
}

// One deviation to each side of a dot, within the axes.
function whiskers(plot, place, { spread, values, colour: name }) {
  const { ctx, bbox } = plot, at = (value, scale) => plot.valToPos(value, scale, true);
  ctx.save();
  ctx.beginPath();
  ctx.rect(bbox.left, bbox.top, bbox.width, bbox.height);
  ctx.clip();
  ctx.beginPath();
  ctx.strokeStyle = colour(name);
  ctx.globalAlpha = 0.5;
  values.forEach((y, i) => {
    if (y === null || y === undefined) return;
    const x = plot.data[0][i];
    ctx.moveTo(at(x - spread.x[i], "x"), at(y, "y"));
    ctx.lineTo(at(x + spread.x[i], "x"), at(y, "y"));
    ctx.moveTo(at(x, "x"), at(y - spread.y[i], "y"));
    ctx.lineTo(at(x, "x"), at(y + spread.y[i], "y"));
  });
  ctx.stroke();
  ctx.restore();
}

// The edges of a band are not named: the chart says what the band is. What the legend takes, the curves leave.
function roomForLegend(plot, series, width, height) {
  const shown = plot.root.querySelector(".u-legend"), rows = shown.querySelectorAll(".u-series");
  series.forEach((one, place) => { rows[place + 1].hidden = one.kind === "edge"; });
  plot.root.style.width = `${width}px`; // its own comes with the first drawing, and is what the legend wraps at
  plot.setSize({ width, height: height - shown.offsetHeight });
}

// Names of choices below an axis: all of them, slanted where they would overlap.
function across(options, width) {
  const room = Math.floor(width / options.length / LETTER), longest = Math.max(...options.map((option) => option.length));
  const isSlanted = longest > room, most = isSlanted ? 16 : longest;
  return { splits: () => options.map((_, place) => place), values: () => options.map((option) => clipped(option, most)), rotate: isSlanted ? -40 : 0, size: isSlanted ? 24 + Math.min(longest, most) * LETTER * 0.7 : 38 };
}

function up(options, width) {
  const most = Math.floor(width / LETTER), longest = Math.max(...options.map((option) => option.length));
  return { splits: () => options.map((_, place) => place), values: () => options.map((option) => clipped(option, most)), size: 24 + Math.min(longest, most) * LETTER };
}

// Whether the values are drawn on a log scale: as the reader chose, else where they differ by factors; and a box to choose it.
export function logChoice(query, values) {
  const seen = values.filter((value) => value !== null && value !== undefined), isPossible = seen.length > 0 && Math.min(...seen) > 0;
  const isWide = isPossible && seen.length > 2 && Math.max(...seen) / Math.min(...seen) > 100;
  const isLog = isPossible && (query.has("log") ? query.get("log") === "1" : isWide);
  return { isLog, box: h("label", { class: "check" }, h("input", { type: "checkbox", id: "log", checked: isLog, disabled: !isPossible, onchange: (event) => filter({ log: event.target.checked ? "1" : "0" }) }), "log scale") };
}

function padded(_, low, high) {
  if (low === null || high === null) return [0, 1];
  const margin = (high - low) * 0.06 || Math.abs(high) * 0.1 || 0.5;
  return [low - margin, high + margin];
}

function styled(one) {
  const stroke = one.colour.startsWith("#") ? one.colour : colour(one.colour);
  const base = { label: one.label, stroke, value: (_, value) => num(value), spanGaps: Boolean(one.joins) };
  if (one.kind === "dots") return { ...base, paths: () => null, points: { ...dots(one.size || 6), fill: stroke } };
  if (one.kind === "step") return { ...base, paths: stepped(one.align ?? 1), width: one.width || 2.4, points: { show: false }, spanGaps: true };
  if (one.kind === "edge") return { ...base, width: 0, points: { show: false } };
  return { ...base, width: one.width || 1.6, dash: one.dash, points: one.points ? dots(5) : { show: false } };
}

export const band = (upper, lower, name) => ({ series: [upper, lower], fill: () => `color-mix(in srgb, ${colour(name)} 22%, transparent)` });

function summary(series) {
  return series.filter((one) => one.label && one.kind !== "edge").slice(0, 6).map((one) => {
    const known = one.values.filter((value) => value !== null && value !== undefined);
    return known.length ? `${one.label}: ${known.length} points, last ${num(known[known.length - 1])}${one.spread ? ", with its uncertainty" : ""}` : `${one.label}: no points`;
  }).join("; ");
}

// Draws when the element has a width, again when that changes, and never after it is gone.
export function watch(box, draw, end = () => {}) {
  let width = 0;
  const observer = new ResizeObserver(() => {
    if (!box.isConnected) { observer.disconnect(); alive.delete(entry); end(); return; }
    if (box.clientWidth && box.clientWidth !== width) { width = box.clientWidth; draw(); }
  });
  const entry = { box, draw };
  alive.add(entry);
  observer.observe(box);
}

export function redraw() {
  for (const entry of [...alive]) {
    if (entry.box.isConnected) entry.draw();
    else alive.delete(entry);
  }
}

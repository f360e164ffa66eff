// What uPlot has not: sparklines, heat maps, parallel axes, lanes, trees. SVG with titles, so that they can be read out.

import { h, s } from "./dom.js";
import { colour, watch } from "./charts.js";
import { clipped, num } from "./format.js";

const LETTER = 6.2; // pixels of a letter on an axis, about

export function drawing({ label, height, draw }) {
  const box = h("div", { class: "drawing" });
  box.style.minHeight = `${height}px`;
  watch(box, () => box.replaceChildren(s("svg", { role: "img", "aria-label": label, width: box.clientWidth, height, viewBox: `0 0 ${box.clientWidth} ${height}` }, draw(box.clientWidth, height))));
  return box;
}

export function sparkline(values, { width = 120, height = 28, label = "trend" } = {}) {
  if (values.length < 2) return h("span", { class: "muted" }, values.length ? "one result" : "no result yet");
  const low = Math.min(...values), high = Math.max(...values), span = high - low || 1;
  const points = values.map((value, at) => `${(1 + at / (values.length - 1) * (width - 4)).toFixed(1)},${(height - 3 - (value - low) / span * (height - 6)).toFixed(1)}`);
  const [x, y] = points[points.length - 1].split(",");
  return s("svg", { class: "spark", width, height, viewBox: `0 0 ${width} ${height}`, role: "img", "aria-label": `${label}: from ${num(values[0])} to ${num(values[values.length - 1])}` },
    s("polyline", { points: points.join(" "), class: "spark-line" }), s("circle", { cx: x, cy: y, r: 2.6, class: "spark-end" }));
}

export const scale = (from, to, start, end, log = false) => {
  const turn = log ? Math.log : (value) => value;
  const low = turn(from), span = turn(to) - low || 1;
  return (value) => start + (turn(value) - low) / span * (end - start);
};

export function bars(rows, { label, unit = "" }) {
  const most = Math.max(...rows.map((row) => row.value + (row.spread || 0)), 1e-12);
  return h("div", { class: "bars", role: "list", "aria-label": label }, rows.map((row) => {
    const bar = h("span", { class: "bar-fill" }), whisker = h("span", { class: "bar-whisker" });
    bar.style.width = `${100 * row.value / most}%`;
    whisker.style.left = `${100 * Math.max(0, row.value - (row.spread || 0)) / most}%`;
    whisker.style.width = `${100 * Math.min(most, 2 * (row.spread || 0)) / most}%`;
    return h("div", { class: "bar", role: "listitem" }, h("span", { class: "bar-name" }, row.name),
      h("span", { class: "bar-track" }, bar, row.spread ? whisker : null), h("span", { class: "bar-value" }, row.text || `${num(row.value)}${unit}`));
  }));
}

// A share of colour between two ends, better is darker.
export function shade(share) {
  return `color-mix(in oklab, ${colour("shade-high")} ${Math.round(100 * Math.min(1, Math.max(0, share)))}%, ${colour("shade-low")})`;
}

export function heatmap({ label, xs, ys, values, better, xName, yName, dots = [], height = 420, format = num }) {
  const flat = values.flat(), low = Math.min(...flat), high = Math.max(...flat), span = high - low || 1;
  return drawing({ label, height, draw: (width) => {
    const names = ys.map((y) => num(y, 3)), longest = Math.max(...names.map((name) => name.length));
    const left = Math.min(Math.max(64, longest * LETTER + 34), width * 0.4), bottom = 46, top = 8, right = 12;
    const cw = (width - left - right) / xs.length, ch = (height - bottom - top) / ys.length;
    const parts = [];
    values.forEach((row, j) => row.forEach((value, i) => parts.push(s("rect", { x: left + i * cw, y: height - bottom - (j + 1) * ch, width: cw + 0.6, height: ch + 0.6, fill: shade(better === "low" ? (high - value) / span : (value - low) / span) },
      s("title", {}, `${xName} ${num(xs[i])}, ${yName} ${num(ys[j])}: ${format(value)}`)))));
    const tick = (at, of) => of <= 8 || at === 0 || at === of - 1 || at === Math.floor(of / 2);
    xs.forEach((x, i) => tick(i, xs.length) && parts.push(s("text", { x: left + (i + 0.5) * cw, y: height - bottom + 16, class: "axis", "text-anchor": "middle" }, xs.length <= 8 ? clipped(num(x, 3), Math.floor(cw / LETTER)) : num(x, 3), s("title", {}, num(x)))));
    ys.forEach((y, j) => tick(j, ys.length) && parts.push(s("text", { x: left - 6, y: height - bottom - (j + 0.5) * ch + 4, class: "axis", "text-anchor": "end" }, clipped(names[j], Math.floor((left - 26) / LETTER)), s("title", {}, num(y)))));
    parts.push(s("text", { x: left + (width - left - right) / 2, y: height - 6, class: "axis-name", "text-anchor": "middle" }, xName));
    parts.push(s("text", { x: 12, y: top + (height - bottom) / 2, class: "axis-name", "text-anchor": "middle", transform: `rotate(-90 12 ${top + (height - bottom) / 2})` }, yName));
    const place = (list, value, size, start, sign) => { const at = nearest(list, value); return at === null ? null : start + sign * (at + 0.5) * size; };
    for (const dot of dots) {
      const x = place(xs, dot.x, cw, left, 1), y = place(ys, dot.y, ch, height - bottom, -1);
      if (x !== null && y !== null) parts.push(s("circle", { cx: x, cy: y, r: dot.best ? 6 : 3, class: dot.best ? "dot-best" : "dot" }, s("title", {}, `trial ${dot.number}: ${format(dot.value)}`)));
    }
    return parts;
  } });
}

function nearest(list, value) {
  if (value === null || value === undefined) return null;
  if (typeof value !== "number") { const at = list.indexOf(value); return at < 0 ? null : at; }
  if (value <= list[0]) return 0;
  for (let at = 1; at < list.length; at += 1) {
    if (value <= list[at]) {
      const log = list[0] > 0 && list[list.length - 1] / list[0] > 50;
      const turn = log ? Math.log : (one) => one;
      return at - 1 + (turn(value) - turn(list[at - 1])) / (turn(list[at]) - turn(list[at - 1]) || 1);
    }
  }
  return list.length - 1;
}

export function parallel({ label, axes, rows, height = 320 }) {
  return drawing({ label, height, draw: (width) => {
    const top = 30, bottom = 26, left = 30, right = 44;
    const room = Math.floor((width - left - right) / Math.max(1, axes.length - 1) / LETTER) - 1;
    const at = (place) => axes.length > 1 ? left + place * (width - left - right) / (axes.length - 1) : width / 2;
    const y = (axis, value) => {
      if (value === null || value === undefined) return null;
      if (axis.options) return height - bottom - (axis.options.indexOf(String(value)) + 0.5) / axis.options.length * (height - top - bottom);
      return scale(axis.low, axis.high, height - bottom, top, axis.log)(value);
    };
    const lines = [...rows].sort((a, b) => a.merit - b.merit).map((row) => {
      const points = axes.map((axis, place) => [at(place), y(axis, row.values[place])]).filter((point) => point[1] !== null);
      return s("polyline", { points: points.map((point) => point.map((one) => one.toFixed(1)).join(",")).join(" "), fill: "none", stroke: shade(row.merit), "stroke-width": row.merit > 0.9 ? 1.8 : 0.9, "stroke-opacity": 0.35 + 0.6 * row.merit }, s("title", {}, row.title));
    });
    return [...lines, ...axes.map((axis, place) => s("g", {},
      s("line", { x1: at(place), x2: at(place), y1: top, y2: height - bottom, class: "axis-line" }),
      s("text", { x: at(place), y: 14, class: "axis-name", "text-anchor": place === 0 ? "start" : place === axes.length - 1 ? "end" : "middle" }, clipped(axis.name, room), s("title", {}, axis.name)),
      axis.options ? axis.options.map((option) => s("text", { x: at(place) + 5, y: y(axis, option) + 4, class: "axis" }, clipped(option, room), s("title", {}, option)))
        : [s("text", { x: at(place) + 4, y: top + 4, class: "axis" }, num(axis.high, 3)), s("text", { x: at(place) + 4, y: height - bottom, class: "axis" }, num(axis.low, 3))]))];
  } });
}

export function lanes({ label, names, bars: pieces, from, to, links = [], pick, format = num, laneHeight = 24, axisName = "" }) {
  const height = names.length * laneHeight + 44;
  return drawing({ label, height, draw: (width) => {
    const left = Math.min(150, width * 0.28), right = 16;
    const x = scale(from, to, left, width - right);
    const parts = names.map((name, lane) => s("g", {},
      s("text", { x: left - 8, y: lane * laneHeight + laneHeight / 2 + 8, class: "axis", "text-anchor": "end" }, String(name).length > 20 ? `${String(name).slice(0, 19)}…` : name, s("title", {}, name)),
      s("line", { x1: left, x2: width - right, y1: (lane + 1) * laneHeight + 3, y2: (lane + 1) * laneHeight + 3, class: "lane-line" })));
    for (const piece of pieces) {
      const start = x(piece.start), end = Math.max(x(piece.end), start + 1.5);
      parts.push(s("rect", { x: start, y: piece.lane * laneHeight + 7, width: end - start, height: laneHeight - 9, rx: 2.5, class: `lane-bar ${piece.tone || ""}`, fill: piece.fill, onclick: pick && (() => pick(piece)) }, s("title", {}, piece.title)));
      if (piece.mark) parts.push(s("line", { x1: start, x2: end, y1: piece.lane * laneHeight + laneHeight, y2: piece.lane * laneHeight + laneHeight, class: "winner-line" }));
    }
    for (const link of links) {
      const at = x(link.at), up = link.from * laneHeight + laneHeight / 2 + 3, down = link.to * laneHeight + laneHeight / 2 + 3, tip = down > up ? -5 : 5;
      parts.push(s("path", { d: `M${at} ${up}L${at} ${down}M${at - 3.5} ${down + tip}L${at} ${down}L${at + 3.5} ${down + tip}`, class: "link" }, s("title", {}, link.title)));
    }
    const steps = Math.max(2, Math.min(6, Math.floor((width - left) / 110)));
    for (let step = 0; step <= steps; step += 1) {
      const value = from + (to - from) * step / steps;
      parts.push(s("text", { x: x(value), y: names.length * laneHeight + 22, class: "axis", "text-anchor": step === 0 ? "start" : step === steps ? "end" : "middle" }, format(value)));
    }
    if (axisName) parts.push(s("text", { x: (left + width) / 2, y: height - 6, class: "axis-name", "text-anchor": "middle" }, axisName));
    return parts;
  } });
}

// Prefixes of a pipeline from left to right; the wider a node, the more of its stage's work it saved.
export function tree({ label, stages, nodes, unit }) {
  const children = new Map(), roots = [];
  const known = new Set(nodes.map((node) => node.key));
  for (const node of nodes) {
    if (node.parent && known.has(node.parent)) children.set(node.parent, [...(children.get(node.parent) || []), node]);
    else roots.push(node);
  }
  const ordered = [];
  const place = (node) => {
    const own = children.get(node.key) || [];
    if (!own.length) { node.y = ordered.length; ordered.push(node); return; }
    own.forEach(place);
    node.y = own.reduce((sum, one) => sum + one.y, 0) / own.length;
  };
  roots.forEach(place);
  const row = Math.max(13, Math.min(30, 700 / Math.max(1, ordered.length)));
  const height = Math.max(120, ordered.length * row + 50);
  return drawing({ label, height, draw: (width) => {
    const column = (width - 20) / stages.length, y = (node) => 36 + node.y * row + row / 2, x = (node) => 14 + node.depth * column;
    const parts = stages.map((stage, depth) => s("text", { x: 14 + depth * column - 6, y: 16, class: "axis-name" }, stage));
    for (const node of nodes) for (const child of children.get(node.key) || []) {
      parts.push(s("path", { d: `M${x(node)} ${y(node)}C${x(node) + column / 2} ${y(node)} ${x(child) - column / 2} ${y(child)} ${x(child)} ${y(child)}`, class: "branch" }));
    }
    const most = Math.max(...nodes.map((node) => node.loaded + node.computed), 1);
    for (const node of nodes) {
      const radius = 3 + 6 * Math.sqrt((node.loaded + node.computed) / most);
      parts.push(s("circle", { cx: x(node), cy: y(node), r: radius, class: node.loaded ? "node loaded" : "node" }, s("title", {}, `${node.stage}: ${node.label || "no params"}; computed ${node.computed}×, loaded ${node.loaded}×, saved ${num(node.saved)} ${unit}`)));
      if (row >= 13) parts.push(s("text", { x: x(node) + radius + 4, y: y(node) + 4, class: "axis" }, node.label.length * 6.2 > column - 40 ? `${node.label.slice(0, Math.max(4, Math.floor((column - 50) / 6.2)))}…` : node.label));
    }
    return parts;
  } });
}

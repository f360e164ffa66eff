import { get, study as at } from "../api.js";
import { card, empty, h } from "../dom.js";
import { band, chart } from "../charts.js";
import { bars, parallel } from "../drawings.js";
import { num, percent, plural } from "../format.js";

export async function draw({ key, about }) {
  const [points, model] = await Promise.all([get(at(key, "/parameters")), get(at(key, "/model")).catch((error) => ({ error: error.message }))]);
  if (!points.number.length) return empty("No results yet", "Charts of params begin with the first result.");
  const losses = points.value.map((value) => about.minimize ? value : -value);
  const ranks = losses.map((_, place) => place).sort((a, b) => losses[b] - losses[a]);
  const merit = new Array(losses.length);
  ranks.forEach((place, rank) => { merit[place] = ranks.length > 1 ? rank / (ranks.length - 1) : 1; });
  const names = model.importance ? [...Object.keys(model.importance), ...Object.keys(about.parameters).filter((name) => !(name in model.importance))] : Object.keys(about.parameters);
  return h("div", { class: "grid" }, importance(model), trust(model, about), card("All parameters at once", { wide: true, note: `A line for each of ${plural(points.number.length, "run")}${points.of > points.number.length ? ` of ${points.of.toLocaleString("en-GB")}` : ""}; the darker, the better.` }, lines(about, points, merit, names)),
    names.map((name) => slice(about, points, name, model.slices?.find((one) => one.parameter === name), merit)));
}

function importance(model) {
  if (!model.importance) return card("What matters", {}, empty("No model yet", model.error));
  return card("What matters", { note: "Share of the variance of the model over the space, with one standard deviation." }, bars(Object.entries(model.importance).slice(0, 12).map(([name, share]) => ({ name, value: share, spread: model.importance_deviation[name], text: `${percent(share)} ± ${percent(model.importance_deviation[name])}` })), { label: "Importance of parameters" }));
}

function trust(model, about) {
  if (!model.importance) return null;
  const explained = model.explained === null ? "nothing to explain" : percent(Math.max(0, model.explained));
  return card("How far to trust it", {}, h("dl", { class: "pairs" }, h("dt", {}, "differences explained"), h("dd", {}, explained), h("dt", {}, "half of the predictions are off by less than"), h("dd", {}, num(model.median_error, 3)), h("dt", {}, `a repeated trial changes its ${about.value} by about`), h("dd", {}, num(model.noise, 2)), model.calibration.map((one) => [h("dt", {}, `values in its ${percent(one.level)} interval`), h("dd", {}, percent(one.inside))]), h("dt", {}, "fitted to"), h("dd", {}, plural(model.trials.length, "trial"))));
}

function lines(about, points, merit, names) {
  const values = points.value.filter((value) => value !== null);
  const axes = [...names.map((name) => ({ name, ...axis(about.parameters[name]) })), { name: about.value, low: Math.min(...values), high: Math.max(...values) }];
  const rows = points.number.map((number, place) => ({ merit: merit[place], title: `trial ${number}: ${num(points.value[place])}`, values: [...names.map((name) => points.params[name][place]), points.value[place]] })).slice(0, 400);
  return parallel({ label: `Parallel coordinates of ${names.join(", ")} and ${about.value}`, axes, rows });
}

const axis = (parameter) => parameter.kind === "choice" ? { options: parameter.options.map(String) } : { low: parameter.low, high: parameter.high, log: parameter.log };

function slice(about, points, name, model, merit) {
  const parameter = about.parameters[name], options = parameter.kind === "choice" ? parameter.options.map(String) : null;
  const place = (value, at) => options ? options.indexOf(String(value)) + 0.24 * (2 * ((at * 0.618034) % 1) - 1) : value;
  const rows = points.number.map((number, at) => ({ x: points.params[name][at] === null ? null : place(points.params[name][at], at), value: points.value[at], merit: merit[at] })).filter((row) => row.x !== null);
  if (model) model.values.forEach((value, at) => rows.push({ x: options ? options.indexOf(String(value)) : value, expected: model.expected[at], low: model.low[at], high: model.high[at] }));
  rows.sort((a, b) => a.x - b.x);
  const column = (key) => rows.map((row) => row[key] ?? null);
  const series = [{ label: "a run", values: rows.map((row) => row.value !== undefined && row.merit < 0.9 ? row.value : null), colour: "c2", kind: "dots", size: 5 }, { label: "the best tenth", values: rows.map((row) => row.merit >= 0.9 ? row.value : null), colour: "accent", kind: "dots", size: 7 }];
  if (model) series.push({ label: "expected", values: column("expected"), colour: "c1", width: 2, joins: true, points: Boolean(options) }, { label: "high", values: column("high"), colour: "c1", kind: "edge" }, { label: "low", values: column("low"), colour: "c1", kind: "edge" });
  return card(name, { note: model ? "Line and band: what the model expects, with 95 %, the others as in the best trial." : "" }, chart({ label: `${about.value} against ${name}`, x: rows.map((row) => row.x), series, height: 250, logX: Boolean(parameter.log), yLabel: about.value, xLabel: name, bands: model ? [band(4, 5, "c1")] : [], legend: false, xFormat: options ? (value) => Number.isInteger(value) ? options[value] || "" : "" : undefined }));
}

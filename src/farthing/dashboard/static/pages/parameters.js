import { get, of, study as at } from "../api.js";
import { card, empty, h } from "../dom.js";
import { band, chart, logChoice } from "../charts.js";
import { bars, parallel } from "../drawings.js";
import { num, percent, plural } from "../format.js";

// How much of the full fidelity a run has, in steps: only runs of one step can be compared.
const REACHES = [{ from: 1, name: "trained to the end", colour: "c1", size: 7 }, { from: 1 / 3, name: "to a third or more", colour: "c2", size: 6 }, { from: 1 / 9, name: "to a ninth or more", colour: "c4", size: 5 }, { from: 0, name: "shorter", colour: "c8", size: 4 }];
const BEST = { name: "the best tenth", colour: "accent", size: 7 };
const stepOf = (reach) => REACHES.findIndex((step) => reach >= step.from * 0.999);

export async function draw({ key, about, query }) {
  const [points, model] = await Promise.all([get(at(key, `/parameters${of(about)}`)), get(at(key, `/model${of(about)}`)).catch((error) => ({ error: error.message }))]);
  if (!points.number.length) return empty("No results yet", "Charts of params begin with the first result.");
  const losses = points.value.map((value) => about.minimize ? value : -value);
  const steps = points.reach.map(stepOf);
  const ranks = losses.map((_, place) => place).sort((a, b) => steps[b] - steps[a] || losses[b] - losses[a]);
  const merit = new Array(losses.length);
  ranks.forEach((place, rank) => { merit[place] = ranks.length > 1 ? rank / (ranks.length - 1) : 1; });
  const names = model.importance ? [...Object.keys(model.importance), ...Object.keys(about.parameters).filter((name) => !(name in model.importance))] : Object.keys(about.parameters);
  const isShort = steps.some((step) => step > 0), { isLog, box: logBox } = logChoice(query, points.value);
  const plain = { name: "a run", colour: "c2", size: 5 }, kindOf = (at) => merit[at] >= 0.9 ? BEST : isShort ? REACHES[steps[at]] : plain;
  const kinds = [...(isShort ? REACHES : [plain]), BEST].filter((kind) => losses.some((_, at) => kindOf(at) === kind));
  return h("div", { class: "grid" }, importance(model), trust(model, about), card("All parameters at once", { wide: true, note: `A line for each of ${plural(points.number.length, "run")}${points.of > points.number.length ? ` of ${points.of.toLocaleString("en-GB")}` : ""}; the darker, the better${isShort ? ", what was trained further before what was not" : ""}.` }, lines(about, points, merit, names)),
    h("div", { class: "wide filters" }, h("div", { class: "legend", role: "list", "aria-label": "Dots of the charts below" }, kinds.map((kind) => h("span", { role: "listitem" }, h("span", { class: `swatch ${kind.colour}` }), kind.name))), logBox),
    names.map((name) => slice(about, points, name, model.slices?.find((one) => one.parameter === name), { kindOf, kinds, isLog })));
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

function slice(about, points, name, model, { kindOf, kinds, isLog }) {
  const parameter = about.parameters[name], options = parameter.kind === "choice" ? parameter.options.map(String) : null;
  const place = (value, at) => options ? options.indexOf(String(value)) + 0.24 * (2 * ((at * 0.618034) % 1) - 1) : value;
  const rows = points.number.map((number, at) => ({ x: points.params[name][at] === null ? null : place(points.params[name][at], at), value: points.value[at], kind: kindOf(at) })).filter((row) => row.x !== null);
  if (model) rows.push(...expectedAlong(model, options, isLog ? Math.min(...points.value) / 2 : -Infinity));
  rows.sort((a, b) => a.x - b.x);
  const column = (key) => rows.map((row) => row[key]);
  const series = kinds.map((kind) => ({ label: kind.name, values: rows.map((row) => row.kind === kind ? row.value : null), colour: kind.colour, kind: "dots", size: kind.size }));
  if (model) series.push({ label: "expected", values: column("expected"), colour: "c1", width: 2 }, { label: "high", values: column("high"), colour: "c1", kind: "edge" }, { label: "low", values: column("low"), colour: "c1", kind: "edge" });
  return card(name, { note: model ? "Line and band: what the model expects, with 95 %, the others as in the best trial." : "" }, chart({ label: `${about.value} against ${name}`, x: rows.map((row) => row.x), series, height: 250, logX: Boolean(parameter.log), logY: isLog, yLabel: about.value, xLabel: name, bands: model ? [band(kinds.length + 2, kinds.length + 3, "c1")] : [], legend: false, xOptions: options }));
}

// Choices have no order: each has a line and a band of its own.
function expectedAlong(model, options, lowest) {
  return model.values.flatMap((value, at) => {
    const [expected, low, high] = [model.expected[at], model.low[at], model.high[at]].map((one) => Math.max(one, lowest)), place = options?.indexOf(String(value));
    return options ? [{ x: place - 0.32, expected, low, high }, { x: place + 0.32, expected, low, high }, { x: place + 0.4, expected: null, low: null, high: null }] : [{ x: value, expected, low, high }];
  });
}

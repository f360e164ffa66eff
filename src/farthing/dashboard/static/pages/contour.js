import { get, of, study as at } from "../api.js";
import { card, empty, h } from "../dom.js";
import { heatmap } from "../drawings.js";
import { num } from "../format.js";
import { filter } from "../places.js";

export async function draw({ key, about, query }) {
  const names = Object.keys(about.parameters);
  if (names.length < 2) return empty("A contour needs two parameters", "This space has one.");
  const x = names.includes(query.get("x")) ? query.get("x") : names[0];
  const y = names.includes(query.get("y")) && query.get("y") !== x ? query.get("y") : names.find((name) => name !== x);
  const select = (id, chosen, other) => h("span", {}, h("label", { for: id }, id === "x" ? "Across" : "Up"), " ", h("select", { id, onchange: (event) => filter({ x, y, [id]: event.target.value }) }, names.filter((name) => name !== other).map((name) => h("option", { value: name, selected: name === chosen }, name))));
  const controls = h("div", { class: "filters" }, select("x", x, y), select("y", y, x));
  let found;
  try { found = await get(at(key, `/contour?${new URLSearchParams({ x, y })}${of(about, "&")}`)); } catch (error) { return [controls, empty("No contour yet", error.message)]; }
  const dots = found.trials.map((trial) => ({ ...trial, best: trial.number === found.best }));
  const shared = { xs: found.xs, ys: found.ys, xName: x, yName: y, dots };
  return [controls, h("div", { class: "grid" }, card(`Expected ${about.value}`, { note: `By the model of study.plot("model"), the others as in trial ${found.best}; the darker, the better. Dots are trials, the ring is trial ${found.best}.` }, heatmap({ ...shared, label: `Expected ${about.value} over ${x} and ${y}`, values: found.expected, better: about.minimize ? "low" : "high" })),
    card("How unsure the model is", { note: "Half of its 95 % interval; the darker, the surer." }, heatmap({ ...shared, label: `Uncertainty over ${x} and ${y}`, values: found.spread, better: "low", format: (value) => `± ${num(value)}` })))];
}

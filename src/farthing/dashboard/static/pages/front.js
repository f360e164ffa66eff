import { isReport } from "../api.js";
import { card, h, table } from "../dom.js";
import { chart } from "../charts.js";
import { cost, expected, num, plural } from "../format.js";
import { address, go } from "../places.js";

// The front in every two objectives, what was attained along the cost, and each limit.
export function fronts(found, about, key) {
  const names = found.objectives.map((one) => one.name);
  const couples = names.flatMap((x, place) => names.slice(place + 1).map((y) => [x, y]));
  return [...forSums(found, names, about, key), ...couples.map(([x, y], place) => couple(found, key, x, y, { wide: couples.length === 1, note: place ? "" : found.title })), attained(found, about, key), ...found.limits.map((limit) => limited(found, limit, about, key))];
}

// The best for 1, 10, 100 dollars, where the cost is one of the objectives.
const forSums = (found, names, about, key) => found.for_sums.length ? [card("The best for each sum", { wide: true }, table(["for up to", "trial", ...names], found.for_sums.map((one) => [cost(one.sum, about.cost_unit), h("a", { href: address("study", key, "trial", one.trial) }, one.trial), ...names.map((name) => expected(one.predicted[name]))]), { label: "The best for each sum" }))] : [];

const opens = (key, rows) => (place) => !isReport && rows[place] && go("study", key, "trial", rows[place].number);

// By what models expect, of the front with one deviation; hover a dot for its numbers, click it for its trial. Of two objectives
// alone, what is dominated lies beyond an edge.
function couple(found, key, x, y, { wide, note }) {
  const kinds = [["dominated", "pale"], ["beyond a limit", "muted"], ["the front", "c1"], [`trial ${found.best}`, "accent"]];
  const at = (point, kind, isOn = false) => ({ x: point.predicted[x][0], y: point.predicted[y][0], number: point.trial, kind, isOn, across: point.predicted[x][1] || 0, up: point.predicted[y][1] || 0 });
  const place = (point, otherwise) => point.trial === found.best ? 3 : otherwise;
  const rows = [...found.others.map((point) => at(point, place(point, point.keeps ? 0 : 1))), ...found.points.map((point) => at(point, place(point, 2), true))].sort((a, b) => a.x - b.x);
  const spread = { x: rows.map((row) => row.across), y: rows.map((row) => row.up) };
  const series = kinds.map(([label, colour], kind) => ({ label, values: rows.map((row) => row.kind === kind ? row.y : null), colour, kind: "dots", size: kind === 3 ? 10 : kind === 2 ? 7 : 5, spread: kind < 2 ? undefined : spread })).filter((one) => one.values.some((value) => value !== null));
  if (found.objectives.length === 2 && found.points.length) series.unshift({ label: "the edge of what is dominated", values: rows.map((row) => row.isOn ? row.y : null), colour: "c1", kind: "step", width: 1, align: better(found, x) === "less is better" ? 1 : -1 });
  return card(`${y} against ${x}, as expected`, { wide, note }, chart({ label: `${y} against ${x}`, x: rows.map((row) => row.x), series, height: 330, xLabel: `${x} (${better(found, x)})`, yLabel: `${y} (${better(found, y)})`, pick: opens(key, rows) }));
}

const better = (found, name) => found.objectives.find((one) => one.name === name).minimize ? "less is better" : "more is better";

function attained(found, about, key) {
  const label = found.objectives.length > 1 ? "Hypervolume against cost, as measured" : `Best ${about.value} within the limits, as measured`;
  const { spent, found: values, number } = found.attained, rows = number.map((one) => ({ number: one }));
  return card(label, { wide: true }, chart({ label, x: spent, series: [{ label: found.objectives.length > 1 ? "hypervolume" : about.value, values, colour: "accent", kind: "step" }], height: 260, xLabel: `cost of all trials (${about.cost_unit})`, pick: opens(key, rows) }));
}

function limited(found, limit, about, key) {
  const { spent, number } = found.attained, rows = number.map((one) => ({ number: one }));
  const known = limit.values.filter((value) => value !== null).length, kept = limit.keeps.filter(Boolean).length;
  const series = [{ label: "within it", values: limit.values.map((value, place) => limit.keeps[place] ? value : null), colour: "c2", kind: "dots" }, { label: "beyond it", values: limit.values.map((value, place) => limit.keeps[place] ? null : value), colour: "muted", kind: "dots" }, { label: `${limit.name} ${limit.text}`, values: spent.map(() => limit.bound), colour: "accent", dash: [4, 4], width: 1 }];
  return card(`${limit.name} ${limit.text}`, { note: `Kept by ${num(kept)} of ${plural(known, "result")}.` }, chart({ label: `${limit.name} against cost`, x: spent, series, height: 240, xLabel: `cost of all trials (${about.cost_unit})`, yLabel: limit.name, pick: opens(key, rows) }));
}

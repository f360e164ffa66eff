import { get, isReport, study as at } from "../api.js";
import { badge, card, empty, fact, h, table } from "../dom.js";
import { band, chart } from "../charts.js";
import { cost, duration, expected, num, params, percent, plural } from "../format.js";
import { address, go } from "../places.js";
import { tools } from "../acting.js";

export async function draw({ key, about, again }) {
  const [told, ahead] = await Promise.all([get(at(key, "/predictions")).catch(() => ({ predictions: [] })), about.trials ? get(at(key, "/outlook")).catch(() => null) : null]);
  return [facts(about), tools(about, again), about.trials ? h("div", { class: "grid" }, progress(about, told.predictions, key), flight(about, key), bill(about, key), worth(about, ahead), predictions(about, told.predictions), failures(about, key))
    : empty("No trials yet", "They appear here as soon as a run opens the first.")];
}

function facts(about) {
  const unit = about.cost_unit, best = about.best;
  const limits = Object.entries(about.budget || {});
  const used = { cost: about.spent, seconds: about.seconds, trials: about.trials };
  return h("div", { class: "facts" },
    fact("spent", cost(about.spent, unit), about.committed ? `${cost(about.committed, unit)} more in flight` : `${duration(about.seconds)} of running`),
    ...limits.map(([name, limit]) => meter(name, used[name], limit, unit)),
    best ? fact(`best ${about.value}`, num(best.value, 5), h("a", { href: address("study", about.key, "trial", best.number) }, `trial ${best.number}`), "good") : fact(`best ${about.value}`, "–", "no result yet"),
    fact("trials", about.trials.toLocaleString("en-GB"), Object.entries(about.counts).map(([state, count]) => `${count} ${state}`).join(", ")),
    about.failed_cost > 0.001 * about.spent ? fact("failed work", cost(about.failed_cost, unit), percent(about.failed_cost / (about.spent || 1)) + " of the spend", "bad") : null,
    saved(about));
}

function saved(about) {
  const amount = about.ledger ? Object.values(about.ledger.saved).reduce((sum, one) => sum + one, 0) : 0;
  return amount ? fact("saved", cost(amount, about.cost_unit), "by checkpoints and caches", "good") : null;
}

function meter(name, used, limit, unit) {
  const left = Math.max(0, limit - used), show = (value) => name === "cost" ? cost(value, unit) : name === "seconds" ? duration(value) : num(value);
  return h("div", { class: "fact" }, h("div", { class: "fact-label" }, `left of the ${name} budget`), h("div", { class: "fact-value" }, show(left)),
    h("progress", { max: limit, value: Math.min(used, limit), "aria-label": `${name} spent` }), h("div", { class: "fact-detail" }, `of ${show(limit)}`));
}

function progress(about, told, key) {
  const { spent, value, best, state, number } = about.progress;
  const isFailed = (at) => state[at] === "failed" || state[at] === "lost";
  const rows = spent.map((x, at) => ({ x, value: isFailed(at) ? null : value[at], best: best[at], number: number[at] }));
  for (const one of told) if (one.spent !== null && one.expected_value && one.expected_value[1] !== null) rows.push({ x: one.spent, low: one.expected_value[0] - 2 * one.expected_value[1], high: one.expected_value[0] + 2 * one.expected_value[1] });
  rows.sort((a, b) => a.x - b.x);
  const column = (name) => rows.map((row) => row[name] ?? null);
  const known = value.filter((one, at) => one !== null && !isFailed(at));
  const logY = known.length > 2 && Math.min(...known) > 0 && Math.max(...known) / Math.min(...known) > 100;
  const hasBand = rows.some((row) => row.low !== undefined) && !logY;
  const series = [{ label: "a trial", values: column("value"), colour: "c2", kind: "dots", size: rows.length > 400 ? 3.5 : 6 }, { label: "best so far", values: column("best"), colour: "accent", kind: "step" }];
  if (hasBand) series.push({ label: "expected, high", values: column("high"), colour: "c1", kind: "edge" }, { label: "expected, low", values: column("low"), colour: "c1", kind: "edge" });
  return card(`Best ${about.value} against cost`, { wide: true, note: [about.progress.of > spent.length ? `${plural(spent.length, "trial")} of ${about.progress.of.toLocaleString("en-GB")} drawn. ` : "", hasBand ? "The band is where the model expected each trial, with 95 %." : ""] },
    chart({ label: `Best ${about.value} against cost`, x: rows.map((row) => row.x), series, height: 330, xLabel: `cost of all trials (${about.cost_unit})`, yLabel: about.value, logY, bands: hasBand ? [band(3, 4, "c1")] : [], pick: (place) => rows[place].number !== undefined && !isReport && go("study", key, "trial", rows[place].number) }));
}

function flight(about, key) {
  return card("In flight", { note: about.committed ? `Predicted to cost ${cost(about.committed, about.cost_unit)} more.` : "" }, about.in_flight.length ? h("ul", { class: "flight" }, about.in_flight.map((trial) => {
    const reach = Object.entries(trial.fidelity)[0], seen = trial.last && reach ? trial.last.fidelity[reach[0]] || 0 : 0;
    return h("li", {}, h("div", { class: "flight-head" }, h("a", { href: address("study", key, "trial", trial.number) }, `trial ${trial.number}`), badge(trial.state), h("span", { class: "muted small" }, trial.worker || "waits for a worker")),
      h("div", { class: "small" }, params(trial.params)),
      reach ? h("div", { class: "small" }, h("progress", { max: reach[1], value: seen, "aria-label": `${reach[0]} done` }), ` ${num(seen)} of ${num(reach[1])} ${reach[0]}`, trial.last ? ` · ${about.value} ${num(trial.last.value)}` : "") : null,
      h("div", { class: "small muted" }, `cost ${cost(trial.cost, about.cost_unit)}, expected ${expected(trial.predicted_cost)}; ${about.value} expected ${expected(trial.predicted_value)}`));
  })) : empty("Nothing runs", "All trials have ended."));
}

function bill(about, key) {
  const box = h("div", { class: "bill" });
  const fill = (ledger) => {
    const line = (part, name, amount) => [part, name, amount];
    box.replaceChildren(table(["", "what", "amount"], [...Object.entries(ledger.spent).map(([kind, amount]) => line("spent", kind, cost(amount, ledger.unit))), line("spent", "total", h("strong", {}, cost(ledger.total, ledger.unit))),
      ...Object.entries(ledger.saved).map(([reason, amount]) => line("saved", reason, h("span", { class: "good" }, cost(amount, ledger.unit)))), line("overhead", "suggesting", `${duration(ledger.overhead_seconds)}${ledger.overhead_share === null ? "" : `, ${percent(ledger.overhead_share)}`}`)], { label: "The bill" }));
  };
  if (about.ledger) fill(about.ledger);
  else box.append(h("p", {}, `${cost(about.spent, about.cost_unit)} in all, ${cost(about.failed_cost, about.cost_unit)} of it failed work.`), h("button", { type: "button", onclick: async (event) => { event.target.disabled = true; event.target.textContent = "Adding up …"; fill(await get(at(key, "/bill"))); } }, "Add up the whole bill"));
  return card("The bill", {}, box);
}

function worth(about, ahead) {
  if (!about.worth.length) return null;
  return card("Is it worth going on?", { note: "What each quarter of the spend has bought." }, ahead ? h("p", { class: "outlook" }, ahead.text) : null, table(["quarter", `best ${about.value} after it`, "gained"], about.worth.map((part, place) => [`${place + 1}: ${cost(part.spent, about.cost_unit)}`, num(part.best, 5), part.gain === null ? "–" : part.gain === 0 ? h("span", { class: "bad" }, "nothing") : num(part.gain, 3)]), { label: "What each quarter of the spend has bought" }));
}

function predictions(about, told) {
  const rows = told.filter((one) => one.expected_cost && one.expected_cost[0] > 0).sort((a, b) => a.expected_cost[0] - b.expected_cost[0]);
  if (rows.length < 3) return null;
  const errors = rows.map((one) => Math.abs(one.cost - one.expected_cost[0])).sort((a, b) => a - b);
  const x = rows.map((one) => one.expected_cost[0]);
  return card("Cost, predicted and paid", { note: `Half of the predictions were off by less than ${cost(errors[Math.floor(errors.length / 2)], about.cost_unit)}.` },
    chart({ label: "Predicted and paid cost", x, height: 240, xLabel: `predicted (${about.cost_unit})`, yLabel: "paid", series: [{ label: "paid", values: rows.map((one) => one.cost), colour: "c2", kind: "dots" }, { label: "as predicted", values: x, colour: "muted", dash: [4, 4], width: 1 }] }));
}

function failures(about, key) {
  if (!about.failures.length) return null;
  return card("Failures", { wide: true, note: `The latest ${about.failures.length}.` }, h("div", { class: "failures" }, about.failures.map((trial) => h("details", { id: `failure-${trial.number}` }, h("summary", {}, `trial ${trial.number}`, " ", badge(trial.state), " ", h("span", {}, trial.failure || "no reason was seen")),
    h("p", {}, h("a", { href: address("study", key, "trial", trial.number) }, `Everything about trial ${trial.number}`)),
    h("pre", { tabindex: "0" }, trial.traceback || "No traceback was kept.")))));
}

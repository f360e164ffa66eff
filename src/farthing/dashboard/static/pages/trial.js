import { get, isReport, study as at } from "../api.js";
import { badge, card, empty, fact, h, table } from "../dom.js";
import { chart } from "../charts.js";
import { bytes, cost, duration, expected, num, paid, when } from "../format.js";
import { address } from "../places.js";
import { trialTools } from "../acting.js";
import { log } from "./overview.js";

export async function draw({ key, about, number, again }) {
  const trial = await get(at(key, `/trials/${encodeURIComponent(number)}`));
  const unit = about.cost_unit;
  return [h("div", { class: "study-title" }, h("h2", { class: "big" }, `Trial ${trial.number}`), badge(trial.state), trial.tags.map((tag) => badge(tag, "tag")), h("nav", { class: "steps", "aria-label": "Other trials" }, trial.number > 0 ? h("a", { href: address("study", key, "trial", trial.number - 1) }, "← previous") : null, trial.number + 1 < about.trials ? h("a", { href: address("study", key, "trial", trial.number + 1) }, "next →") : null)),
    h("div", { class: "facts" }, fact(about.value, num(trial.value, 6), trial.predicted_value && `expected ${expected(trial.predicted_value)}`), about.needed.map((name) => fact(name, num(trial.last?.metrics[name], 6), about.limits[name])), fact(paid(about), cost(trial.cost, unit), trial.predicted_cost ? `expected ${expected(trial.predicted_cost)}` : Object.entries(trial.costs).map(([kind, amount]) => `${kind} ${num(amount)}`).join(", ")),
      ran(trial), fact("attempt", trial.attempt, trial.worker || "")),
    trial.comment ? h("p", { class: "comment" }, trial.comment) : null, trialTools(about, trial, again),
    h("div", { class: "grid" }, card("Params", {}, table(["param", "value"], [...Object.entries(trial.params), ...Object.entries(trial.fidelity)].map(([name, value]) => [name, num(value, 6)]), { label: "Params" })),
      curve(trial, about), failure(trial), why(trial), lineage(trial, key), stages(trial, unit), files(trial, key), logs(trial, key))];
}

function curve(trial, about) {
  if (!trial.points.length) return trial.state === "running" ? card("Curve", {}, empty("No report yet", "Points appear as the trial reports them.")) : null;
  const axis = Object.keys(trial.fidelity).find((name) => about.fidelities[name]?.trace) || Object.keys(trial.fidelity)[0] || "step";
  const x = trial.points.map((point, place) => point.fidelity[axis] ?? point.step ?? place);
  const metrics = [...new Set(trial.points.flatMap((point) => Object.keys(point.metrics)))].slice(0, 5);
  return card("Curve", { wide: true }, chart({ label: `${about.value} along ${axis}`, x, height: 270, xLabel: axis, yLabel: about.value, series: [{ label: about.value, values: trial.points.map((point) => point.value), colour: "accent", points: trial.points.length < 60 }] }),
    metrics.length ? chart({ label: `Metrics along ${axis}`, x, height: 220, xLabel: axis, series: metrics.map((name, place) => ({ label: name, values: trial.points.map((point) => point.metrics[name] ?? null), colour: `c${place + 1}`, joins: true })) }) : null);
}

const failure = (trial) => trial.failure ? card("Failure", { wide: true }, h("p", { class: "bad" }, trial.failure), trial.traceback ? h("pre", { tabindex: "0" }, trial.traceback) : null) : null;

function why(trial) {
  if (trial.note === null || trial.note === undefined) return null;
  const words = [trial.why, trial.words].filter(Boolean).map((text) => h("p", {}, `${text[0].toUpperCase()}${text.slice(1)}.`));
  return card("Why it was suggested", {}, words.length ? words : h("p", {}, "The strategy gave no reason."), trial.overhead ? h("p", { class: "small muted" }, `Suggesting took ${duration(trial.overhead)}.`) : null,
    h("details", {}, h("summary", { class: "small muted" }, "The strategy's note, as it is stored"), h("pre", { tabindex: "0" }, JSON.stringify(trial.note, null, 1).slice(0, 4000))));
}

// A trial runs from when a worker took it; before that it waits.
function ran(trial) {
  if (!trial.started_at) return fact("ran", trial.finished_at ? "elsewhere" : "not yet", trial.finished_at ? when(trial.finished_at) : `waits since ${when(trial.opened_at)}`);
  return fact("ran", trial.finished_at ? duration(Math.max(0, trial.finished_at - trial.started_at)) : "still going", when(trial.started_at));
}

function lineage(trial, key) {
  if (trial.lineage.length < 2 && !trial.continued_by.length && !trial.checkpoint) return null;
  const link = (number, text) => h("a", { href: address("study", key, "trial", number) }, text || `trial ${number}`);
  return card("Lineage and checkpoints", {}, trial.lineage.length > 1 ? h("p", {}, "Continues: ", trial.lineage.map((one, place) => [place ? " → " : "", link(one.number), one.value === null ? "" : ` (${num(one.value)})`])) : null, trial.continued_by.length ? h("p", {}, "Continued by: ", trial.continued_by.map((number, place) => [place ? ", " : "", link(number)])) : null,
    h("dl", { class: "pairs" }, trial.resume_checkpoint ? [h("dt", {}, "started from"), h("dd", {}, trial.resume_checkpoint)] : null, trial.checkpoint ? [h("dt", {}, "left"), h("dd", {}, trial.checkpoint)] : null));
}

const stages = (trial, unit) => trial.stages.length ? card("Stages", {}, table(["stage", "", "cost", "saved"], trial.stages.map((stage) => [stage.stage, stage.loaded ? badge("loaded", "done") : "computed", cost(stage.cost, unit), stage.saved ? cost(stage.saved, unit) : ""]), { label: "Stages" })) : null;

function files(trial, key) {
  if (!trial.files.length || isReport) return null;
  const link = (file) => at(key, `/trials/${trial.number}/file?${new URLSearchParams({ name: file.name })}`);
  return card("Files it left", {}, h("ul", { class: "files" }, trial.files.map((file) => h("li", {}, h("a", { href: link(file), download: "" }, file.name), h("span", { class: "muted small" }, ` ${bytes(file.bytes)}`), file.image ? h("img", { src: link(file), alt: file.name, loading: "lazy" }) : null))));
}

const logs = (trial, key) => trial.logs.length && !isReport ? card("Log", { wide: true }, log(key, trial.number)) : null;

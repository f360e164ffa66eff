import { Refused, get, isReport, study as at } from "../api.js";
import { badge, card, empty, fact, h, table } from "../dom.js";
import { band, chart, logChoice } from "../charts.js";
import { bytes, cost, duration, expected, num, params, percent, plural } from "../format.js";
import { address, filter, go } from "../places.js";
import { tools } from "../acting.js";
import { fronts } from "./front.js";

const SECONDS_KEPT = 15;
const SECONDS_BETWEEN_LOOKS = 2; // at the log of a trial that runs
const SECONDS_BETWEEN_BESTS = 3; // a model may have to be fitted for it, while the study needs its processors
const MOST_BILLED = 5000; // trials; the bill of more takes the server half a second and longer

// What takes the server longer, by address: it is asked for once the page is drawn, and shown as it was until then.
const kept = new Map();

function later(path, fill, seconds = 0) {
  const mark = document.createComment("later"), before = kept.get(path);
  if (before) fill(before.found);
  const rest = before ? Math.max(0, before.time + 1000 * seconds - Date.now()) : 0;
  const ask = async () => {
    if (!mark.isConnected) return;
    const found = await get(path).catch(() => null);
    if (found) kept.set(path, { found, time: Date.now() });
    if (mark.isConnected) fill(found);
  };
  requestAnimationFrame(() => setTimeout(ask, rest));
  return mark;
}

export async function draw({ key, about, query, again }) {
  const recommended = best(about, key);
  if (!about.trials) return [facts(about, recommended.fact), tools(about, again), empty("No trials yet", "They appear here as soon as a run opens the first.")];
  if (!isSimple(about)) return several(about, key, query, again, recommended);
  const curve = progress(about, key, query), paid = predictions(about);
  const fill = (found) => { if (found) { curve.fill(found.predictions); paid.fill(found.predictions); } };
  return [facts(about, recommended.fact), tools(about, again), waiting(about),
    h("div", { class: "grid" }, recommended.card, curve.card, worth(about, key), flight(about, key), bill(about, key), failures(about, key), paid.card),
    later(at(key, "/predictions"), fill)];
}

function front(about, key) {
  const box = h("div", { class: "wide grid" }, card("The front", { wide: true }, h("p", { class: "note" }, "Working out the front …")));
  const mark = later(at(key, "/front"), (found) => box.replaceChildren(...(found?.front ? fronts(found.front, about, key) : [card("The front", { wide: true }, empty("No front yet", found?.why || "It could not be worked out."))])), SECONDS_BETWEEN_BESTS);
  return { box, mark };
}

const isSimple = (about) => about.objectives.length === 1 && !Object.keys(about.limits).length;

// Several objectives, or limits: the front takes the place of the one best value against the cost.
function several(about, key, query, again, recommended) {
  const paid = predictions(about), fronts = front(about, key);
  return [facts(about, recommended.fact), tools(about, again), waiting(about),
    h("div", { class: "grid" }, recommended.card, fronts.box, flight(about, key), bill(about, key), failures(about, key), paid.card),
    fronts.mark, later(at(key, "/predictions"), (found) => found && paid.fill(found.predictions))];
}

function facts(about, found) {
  const unit = about.cost_unit;
  const limits = Object.entries(about.budget || {});
  const used = { cost: about.spent, seconds: about.seconds, trials: about.trials };
  return h("div", { class: "facts" },
    fact("spent", cost(about.spent, unit), about.committed ? `${cost(about.committed, unit)} more in flight` : `${duration(about.seconds)} of running`),
    ...limits.map(([name, limit]) => meter(name, used[name], limit, unit)),
    found,
    fact("trials", about.trials.toLocaleString("en-GB"), Object.entries(about.counts).map(([state, count]) => `${count} ${state}`).join(", ")),
    about.failed_cost > 0.001 * about.spent ? fact("failed work", cost(about.failed_cost, unit), percent(about.failed_cost / (about.spent || 1)) + " of the spend", "bad") : null,
    saved(about));
}

// What `study.best` says: the strategy's recommendation, which may take a model, so that it comes after the page. Its room is there before.
function best(about, key) {
  const label = about.objectives.length > 1 ? "knee of the front" : `best ${about.value}`, number = fact(label, "…", "asking the strategy"), words = h("div", { class: "best-words" });
  const list = h("dl", { class: "params" });
  const show = (params) => list.replaceChildren(...Object.entries(params).map(([name, value]) => h("div", {}, h("dt", {}, name), h("dd", {}, num(value, 6)))));
  show(Object.fromEntries(Object.keys(about.parameters).map((name) => [name, "…"])));
  const fill = (found) => {
    const known = found?.best, told = known && known.trial !== null;
    number.replaceChildren(...fact(label, told ? (known.values ? Object.entries(known.values).map(([name, value]) => `${name} ${num(value, 4)}`).join(", ") : num(known.value, 5)) : "–", told ? [h("a", { href: address("study", key, "trial", known.trial) }, `trial ${known.trial}`), reached(about, known)] : "no result yet").children);
    number.classList.toggle("good", Boolean(told));
    words.replaceChildren(...(known ? [...known.words, known.is_fallback ? "The study's own strategy is not imported here, so this is the best that was measured." : ""] : [found?.why || "What the study recommends could not be worked out."]).filter(Boolean).map((line) => h("p", { class: "note" }, line)));
    show(known?.params || {});
  };
  const mark = later(at(key, "/best"), fill, SECONDS_BETWEEN_BESTS);
  return { fact: number, card: card("The best configuration", { wide: true }, list, words, mark) };
}

// Of runs that may be short: how far the best was trained, and what is expected of it at the end.
function reached(about, found) {
  const axes = Object.entries(about.fidelities);
  if (!axes.length || about.kind === "online" || about.kind === "population") return null;
  const short = axes.find(([name, axis]) => (found.fidelity[name] ?? 0) < axis.high);
  return short ? `, ${num(found.fidelity[short[0]])} of ${num(short[1].high)} ${short[0]}: not verified${found.predicted ? `, expected ${expected(found.predicted)}` : ""}` : ", trained to the end";
}

// A verification that was asked for here is carried out by a run; a page starts none.
function waiting(about) {
  const asked = about.in_flight.filter((trial) => trial.state === "pending" && trial.tags.includes("verification"));
  if (!asked.length || about.runs) return null;
  return h("p", { class: "warning", role: "note" }, `To be verified: ${asked.map((trial) => `trial ${trial.number}`).join(", ")}. Nothing runs this study now. `,
    h("code", {}, "farthing verify"), " or ", h("code", {}, "study.verify(work)"), " carries it out, and so does the next run.");
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

// What was measured is drawn at once, and the band of what was expected when it comes. The note has its room from the beginning.
function progress(about, key, query) {
  const across = { cost: ["spent", `cost of all trials (${about.cost_unit})`], time: ["elapsed", "time since the first trial", duration], trials: ["count", "trials that have ended"] };
  const chosen = query.get("x") in across ? query.get("x") : "cost", [field, xLabel, xFormat] = across[chosen];
  const { value, best, number } = about.progress, label = `Best ${about.value} against ${chosen}`;
  const measured = about.progress[field].map((x, place) => ({ x, value: value[place], best: best[place], number: number[place] }));
  const { isLog: logY, box: logBox } = logChoice(query, value), lowest = Math.min(...value.filter((one) => one !== null)) / 2;
  const edge = (one) => { const [mean, deviation] = one.expected_value, low = mean - 2 * deviation; return { low: logY ? Math.max(low, lowest) : low, high: logY ? Math.max(mean + 2 * deviation, lowest) : mean + 2 * deviation }; };
  const controls = h("div", { class: "filters" }, h("label", { for: "across" }, "Across"), h("select", { id: "across", onchange: (event) => filter({ x: event.target.value }) }, Object.keys(across).map((name) => h("option", { value: name, selected: name === chosen }, name))), logBox);
  const note = h("span", { class: "unseen" }, "The band is where the model expected each trial, with 95 %."), box = h("div", {});
  const fill = (told) => {
    const edges = told.some(isPredicted) ? bandOf(told, field, edge) : [];
    if (box.firstChild && !edges.length) return;
    const rows = [...measured, ...edges].sort((a, b) => a.x - b.x), column = (name) => rows.map((row) => row[name] ?? null);
    const series = [{ label: "a trial", values: column("value"), colour: "c2", kind: "dots", size: rows.length > 400 ? 3.5 : 6 }, { label: "best so far", values: column("best"), colour: "accent", kind: "step" }];
    if (edges.length) series.push({ label: "expected, high", values: rows.map((row) => row.high), colour: "c1", kind: "edge" }, { label: "expected, low", values: rows.map((row) => row.low), colour: "c1", kind: "edge" });
    note.classList.toggle("unseen", !edges.length);
    box.replaceChildren(chart({ label, x: rows.map((row) => row.x), series, height: 330, xLabel, xFormat, yLabel: about.value, logY, bands: edges.length ? [band(3, 4, "c1")] : [],
      pick: (place) => rows[place].number !== undefined && !isReport && go("study", key, "trial", rows[place].number) }));
  };
  fill([]);
  const thinned = about.progress.of > measured.length ? `${plural(measured.length, "trial")} of ${about.progress.of.toLocaleString("en-GB")} drawn. ` : "";
  return { card: card(label, { wide: true, note: [thinned, note], tools: controls }, box), fill };
}

const isPredicted = (one) => Boolean(one.expected_value) && one.expected_value[1] !== null;

// The band, with gaps where nothing was predicted; a single prediction is as wide as a dot.
export function bandOf(told, field, edge) {
  const places = told.map((one) => one[field]), half = (Math.max(...places) - Math.min(...places)) * 0.004;
  return told.flatMap((one, place) => {
    if (!isPredicted(one)) return [{ x: one[field], low: null, high: null }];
    const isAlone = ![told[place - 1], told[place + 1]].some((beside) => beside && isPredicted(beside));
    return (isAlone ? [-half, half] : [0]).map((shift) => ({ x: one[field] + shift, ...edge(one) }));
  });
}

// Each worker with what it does now; what waits for one comes last.
function flight(about, key) {
  const workers = Map.groupBy ? Map.groupBy(about.in_flight, (trial) => trial.worker || "") : grouped(about.in_flight);
  const runs = about.runs ? `${plural(about.runs, "run")} alive. ` : "No run is alive. ";
  return card("Workers and what each does now", { note: [runs, about.committed ? `Predicted to cost ${cost(about.committed, about.cost_unit)} more.` : ""] }, about.in_flight.length
    ? h("div", { class: "flight" }, [...workers].sort(([a], [b]) => (a === "") - (b === "") || a.localeCompare(b)).map(([worker, trials]) => [h("h3", {}, worker || "waits for a worker"), h("ul", {}, trials.map((trial) => task(about, trial, key)))]))
    : empty("Nothing runs", "All trials have ended."));
}

function grouped(trials) {
  const found = new Map();
  for (const trial of trials) found.set(trial.worker || "", [...(found.get(trial.worker || "") || []), trial]);
  return found;
}

function task(about, trial, key) {
  const reach = Object.entries(trial.fidelity)[0], seen = trial.last && reach ? trial.last.fidelity[reach[0]] || 0 : 0;
  return h("li", {}, h("div", { class: "flight-head" }, h("a", { href: address("study", key, "trial", trial.number) }, `trial ${trial.number}`), badge(trial.state), trial.tags.map((tag) => badge(tag, "tag"))),
    h("div", { class: "small" }, params(trial.params)),
    reach ? h("div", { class: "small" }, h("progress", { max: reach[1], value: seen, "aria-label": `${reach[0]} done` }), ` ${num(seen)} of ${num(reach[1])} ${reach[0]}`, trial.last ? ` · ${[[about.value, trial.last.value], ...about.needed.map((name) => [name, trial.last.metrics[name]])].map(([name, value]) => `${name} ${num(value)}`).join(", ")}` : "") : null,
    h("div", { class: "small muted" }, `cost ${cost(trial.cost, about.cost_unit)}`, trial.predicted_cost ? ` of ${expected(trial.predicted_cost)} expected` : "", trial.predicted_value ? `; ${about.value} expected ${expected(trial.predicted_value)}` : ""));
}

// What workers cost while they waited, where their seconds have a price.
function held(ledger) {
  const price = ledger.price_of_a_second;
  if (price === undefined) return [];
  const parts = { "waiting for suggestions": ledger.waiting_seconds, "idle workers": ledger.idle_seconds };
  return Object.entries(parts).map(([what, seconds]) => ["overhead", what, `${duration(seconds)}, ${cost(seconds * price, ledger.unit)}, ${percent(seconds * price / ledger.total)}`]);
}

// The bill of a long study takes every trial: it comes later, and that of a very long one when a button asks for it.
function bill(about, key) {
  const box = h("div", { class: "bill" }), path = at(key, "/bill");
  const fill = (ledger) => {
    if (!ledger) { box.replaceChildren(summary(), h("p", { class: "note" }, "The whole bill could not be added up.")); return; }
    box.replaceChildren(table(["", "what", "amount"], [...Object.entries(ledger.spent).map(([kind, amount]) => ["spent", kind, cost(amount, ledger.unit)]), ["spent", "total", h("strong", {}, cost(ledger.total, ledger.unit))],
      ...Object.entries(ledger.labels || {}).map(([label, amount]) => ["on", label, cost(amount, ledger.unit)]),
      ...Object.entries(ledger.saved).map(([reason, amount]) => ["saved", reason, h("span", { class: "good" }, cost(amount, ledger.unit))]), ["overhead", "suggesting", `${duration(ledger.overhead_seconds)}${ledger.overhead_share === null ? "" : `, ${percent(ledger.overhead_share)}`}`],
      ...held(ledger)], { label: "The bill" }));
  };
  const summary = () => h("p", {}, `${cost(about.spent, about.cost_unit)} in all, ${cost(about.failed_cost, about.cost_unit)} of it failed work.`);
  const load = async (event) => { event.target.disabled = true; event.target.textContent = "Adding up …"; fill(await get(path).catch(() => null)); };
  if (about.ledger) { fill(about.ledger); return card("The bill", {}, box); }
  const isAsked = !isReport && (about.is_large || about.trials > MOST_BILLED);
  box.append(summary(), isAsked ? h("button", { type: "button", onclick: load }, "Add up the whole bill") : h("p", { class: "note" }, "Adding up the whole bill …"));
  return card("The bill", {}, box, isAsked ? null : later(path, fill, SECONDS_KEPT));
}

function worth(about, key) {
  const box = h("p", { class: "outlook" }, "Working out what going on would bring …");
  const fill = (found) => box.replaceChildren(...(found?.outlook ? outlook(found.outlook, about) : [found?.why || "What going on would bring is not known."]));
  return card("Is it worth going on?", {}, box, later(at(key, "/outlook"), fill, SECONDS_KEPT),
    about.worth.length ? table(["quarter of the spend", `best ${about.value} after it`, "gained"], about.worth.map((part, place) => [`${place + 1}: ${cost(part.spent, about.cost_unit)}`, num(part.best, 5), part.gain === null ? "–" : part.gain === 0 ? h("span", { class: "bad" }, "nothing") : num(part.gain, 3)]), { label: "What each quarter of the spend has bought" }) : null);
}

const outlook = (found, about) => ["Another ", h("strong", {}, cost(found.cost, found.unit)), ` (about ${plural(found.trials, "configuration")}) is expected to improve ${about.value} by `, h("strong", {}, num(found.expected, 2)), `, with 80 % by ${num(found.low, 2)} to ${num(found.high, 2)}.`];

// It comes last on the page, so that nothing moves when it does.
function predictions(about) {
  const box = h("div", { class: "card", hidden: true });
  const fill = (told) => {
    const rows = told.filter((one) => one.expected_cost && one.expected_cost[0] > 0).sort((a, b) => a.expected_cost[0] - b.expected_cost[0]);
    if (rows.length < 3) return;
    const errors = rows.map((one) => Math.abs(one.cost - one.expected_cost[0])).sort((a, b) => a - b), x = rows.map((one) => one.expected_cost[0]);
    const drawn = card("Cost, predicted and paid", { wide: true, note: `Half of the predictions were off by less than ${cost(errors[Math.floor(errors.length / 2)], about.cost_unit)}.` },
      chart({ label: "Predicted and paid cost", x, height: 240, xLabel: `predicted (${about.cost_unit})`, yLabel: "paid", series: [{ label: "paid", values: rows.map((one) => one.cost), colour: "c2", kind: "dots" }, { label: "as predicted", values: x, colour: "muted", dash: [4, 4], width: 1 }] }));
    place.replaceWith(drawn);
    place = drawn;
  };
  let place = box;
  return { card: box, fill };
}

function failures(about, key) {
  if (!about.failures.length) return null;
  return card("Failures", { wide: true, note: `The latest ${about.failures.length}.` }, h("div", { class: "failures" }, about.failures.map((trial) => h("details", { id: `failure-${trial.number}` }, h("summary", {}, `trial ${trial.number}`, " ", badge(trial.state), " ", h("span", {}, trial.failure || "no reason was seen")),
    h("p", {}, h("a", { href: address("study", key, "trial", trial.number) }, `Everything about trial ${trial.number}`)),
    h("pre", { tabindex: "0" }, trial.traceback || "No traceback was kept."), isReport ? null : log(key, trial.number)))));
}

// A log that was opened stays open when the page is drawn again, and is read again while its trial runs.
let opened = null;
export function log(key, number, runs = false) {
  const box = h("div", {}), own = `${key}/${number}`;
  const open = async () => {
    opened = own;
    try {
      const found = await get(at(key, `/trials/${number}/log`));
      box.replaceChildren(h("pre", { tabindex: "0", class: "log" }, found.text || "It is empty."), found.is_cut ? h("p", { class: "small muted" }, `The end of ${bytes(found.bytes)}.`) : "");
      if (runs) box.firstChild.scrollTop = box.firstChild.scrollHeight;
    } catch (error) { box.replaceChildren(h("p", { class: "small muted" }, error instanceof Refused ? error.message : "The server does not answer.")); }
    if (runs && box.isConnected) setTimeout(() => box.isConnected && open(), SECONDS_BETWEEN_LOOKS * 1000);
  };
  box.append(h("button", { type: "button", onclick: open }, "Show the log"));
  if (opened === own) open();
  return box;
}

import { get, isReport, study as at } from "../api.js";
import { badge, empty, h } from "../dom.js";
import { cost, expected, num, paid, when } from "../format.js";
import { address, filter } from "../places.js";

const STATES = ["pending", "running", "done", "failed", "lost", "pruned"];
const ROWS = 50;

export async function draw({ key, about, query }) {
  const asked = new URLSearchParams();
  for (const name of ["sort", "order", "text", "tag"]) if (query.get(name)) asked.set(name, query.get(name));
  for (const name of ["state", "where"]) for (const one of query.getAll(name)) asked.append(name, one);
  const offset = Math.max(0, Number(query.get("offset")) || 0);
  const page = new URLSearchParams(asked);
  page.set("offset", offset);
  page.set("limit", ROWS);
  const { trials, matching } = await get(isReport ? at(key, "/table") : at(key, `/trials?${page}`));
  const all = columns(about), hidden = new Set(query.getAll("hide"));
  const shown = all.filter((column) => !hidden.has(column.id));
  return [filters(about, query, key, asked), chooser(all, hidden),
    trials.length ? h("div", { class: "scroll card", tabindex: "0", role: "region", "aria-label": "Trials" }, h("table", { class: "trials" }, h("caption", { class: "sr" }, `Trials of ${about.name}`), h("thead", {}, h("tr", {}, shown.map((column) => head(column, query)))),
      h("tbody", {}, trials.map((trial) => h("tr", {}, shown.map((column) => h("td", { class: column.number ? "number" : "" }, column.cell(trial, key))))))))
      : empty(about.trials ? "No trial matches" : "No trials yet", about.trials ? "Loosen the filters." : ""),
    isReport ? h("p", { class: "note" }, `${about.needed.length ? `The best ${trials.length} by ${about.value}` : `The best ${trials.length}`} of ${matching.toLocaleString("en-GB")}.`) : h("div", { class: "pager" }, h("button", { type: "button", id: "back", disabled: offset === 0, onclick: () => filter({ offset: Math.max(0, offset - ROWS) || "" }) }, "Previous"), h("span", { role: "status" }, matching ? `${offset + 1} to ${Math.min(offset + ROWS, matching)} of ${matching.toLocaleString("en-GB")}` : "none"),
      h("button", { type: "button", id: "next", disabled: offset + ROWS >= matching, onclick: () => filter({ offset: offset + ROWS }) }, "Next"))];
}

function columns(about) {
  const unit = about.cost_unit;
  return [{ id: "number", name: "trial", sort: "number", cell: (trial, key) => h("a", { href: address("study", key, "trial", trial.number) }, trial.number) },
    { id: "state", name: "state", sort: "state", cell: (trial) => badge(trial.state) },
    { id: "value", name: about.value, sort: "value", number: true, cell: (trial) => num(trial.value, 5) },
    ...about.needed.map((name) => ({ id: `needed.${name}`, name, number: true, cell: (trial) => num(trial.last?.metrics[name], 5) })),
    { id: "expected", name: about.needed.length ? `expected ${about.value}` : "expected", cell: (trial) => h("span", { class: "muted" }, expected(trial.predicted_value)) },
    { id: "cost", name: `${paid(about)} (${unit})`, sort: "cost", number: true, cell: (trial) => num(trial.cost) },
    ...Object.keys(about.fidelities).map((name) => ({ id: `fidelity.${name}`, name, sort: `fidelity.${name}`, number: true, cell: (trial) => num(trial.fidelity[name]) })),
    ...Object.keys(about.parameters).map((name) => ({ id: `param.${name}`, name, sort: `param.${name}`, number: true, cell: (trial) => name in trial.params ? num(trial.params[name]) : "" })),
    { id: "from", name: "continues", number: true, cell: (trial) => trial.resume_from === null ? "" : trial.resume_from },
    { id: "worker", name: "worker", cell: (trial) => h("span", { class: "small" }, trial.worker) },
    { id: "finished_at", name: "ended", sort: "finished_at", cell: (trial) => h("span", { class: "small" }, when(trial.finished_at)) },
    { id: "tags", name: "tags", cell: (trial) => trial.tags.map((tag) => badge(tag, "tag")) },
    { id: "comment", name: "comment", cell: (trial) => h("span", { class: "clip" }, trial.comment || trial.failure || "") }];
}

function head(column, query) {
  if (!column.sort || isReport) return h("th", { scope: "col" }, column.name);
  const isSorted = (query.get("sort") || "number") === column.sort, isDown = query.get("order") === "down";
  return h("th", { scope: "col", "aria-sort": isSorted ? (isDown ? "descending" : "ascending") : null }, h("button", { type: "button", class: "sort", id: `sort-${column.id}`, onclick: () => filter({ sort: column.sort, order: isSorted && !isDown ? "down" : "", offset: "" }) }, column.name, isSorted ? (isDown ? " ↓" : " ↑") : ""));
}

function filters(about, query, key, asked) {
  if (isReport) return null;
  const states = new Set(query.getAll("state")), where = query.getAll("where");
  const turn = (state) => { const next = new Set(states); if (!next.delete(state)) next.add(state); filter({ state: [...next], offset: "" }); };
  const add = (event) => { event.preventDefault(); const name = document.getElementById("where-name").value, text = document.getElementById("where-text").value; if (text) filter({ where: [...where, `${name}=${text}`], offset: "" }); };
  return h("div", { class: "filters" },
    h("div", { class: "chips", role: "group", "aria-label": "States" }, STATES.filter((state) => about.counts[state] || states.has(state)).map((state) => h("button", { type: "button", id: `state-${state}`, class: "chip", "aria-pressed": states.has(state) ? "true" : "false", onclick: () => turn(state) }, `${state} ${about.counts[state] || 0}`))),
    h("form", { onsubmit: (event) => { event.preventDefault(); filter({ text: document.getElementById("text").value, offset: "" }); } }, h("label", { for: "text" }, "Find"), h("input", { id: "text", type: "search", value: query.get("text") || "", placeholder: "param, tag, comment, failure", onchange: (event) => filter({ text: event.target.value, offset: "" }) })),
    h("form", { onsubmit: add }, h("label", { for: "where-name" }, "Where"), h("select", { id: "where-name" }, Object.keys(about.parameters).map((name) => h("option", {}, name))), h("label", { for: "where-text", class: "sr" }, "is"), h("input", { id: "where-text", placeholder: "0.01..0.1 or text" }), h("button", { type: "submit" }, "Add")),
    where.map((one) => h("button", { type: "button", class: "chip", "aria-label": `Remove ${one}`, onclick: () => filter({ where: where.filter((other) => other !== one), offset: "" }) }, `${one} ×`)),
    h("a", { class: "button", href: at(key, `/trials.csv?${asked}`), download: "" }, "CSV"));
}

function chooser(all, hidden) {
  const turn = (id) => { const next = new Set(hidden); if (!next.delete(id)) next.add(id); filter({ hide: [...next] }); };
  return h("details", { class: "chooser", open: hidden.size > 0 }, h("summary", {}, "Columns"), h("div", { class: "chips" }, all.map((column) => h("label", { class: "check" }, h("input", { type: "checkbox", id: `column-${column.id}`, checked: !hidden.has(column.id), onchange: () => turn(column.id) }), column.name))));
}

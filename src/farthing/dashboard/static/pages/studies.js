import { get } from "../api.js";
import { badge, empty, fact, h } from "../dom.js";
import { sparkline } from "../drawings.js";
import { cost, num, plural, when } from "../format.js";
import { address, filter, go } from "../places.js";

export async function draw({ query }) {
  const { studies, unreadable } = await get("api/studies");
  if (!studies.length && !unreadable.length) return empty("No studies yet", "Run one: farthing run study.toml. It appears here by itself.");
  const text = (query.get("text") || "").toLowerCase();
  const found = studies.filter((one) => one.name.toLowerCase().includes(text));
  const units = new Map();
  for (const one of studies) units.set(one.cost_unit, (units.get(one.cost_unit) || 0) + one.spent);
  const running = studies.filter((one) => one.is_running);
  return [h("h1", {}, "Studies"),
    h("div", { class: "facts" }, fact("studies", studies.length, `${running.length} running`), ...[...units].map(([unit, spent]) => fact(`spent, ${unit}`, cost(spent, unit), "all studies")),
      fact("trials", studies.reduce((sum, one) => sum + total(one), 0).toLocaleString("en-GB"), "all studies")),
    unreadable.length ? h("p", { class: "warning", role: "note" }, `Cannot be read, as farthing check says: ${unreadable.join(", ")}.`) : null,
    h("form", { class: "filters", role: "search", onsubmit: (event) => event.preventDefault() },
      h("label", { for: "find" }, "Find"), h("input", { id: "find", type: "search", value: query.get("text") || "", placeholder: "name", onchange: (event) => filter({ text: event.target.value }) }),
      h("button", { type: "button", class: "quiet", onclick: choose }, "Compare the chosen")),
    found.length ? h("div", { class: "scroll card", tabindex: "0", role: "region", "aria-label": "Studies" }, h("table", { class: "studies" },
      h("thead", {}, h("tr", {}, ["", "study", "state", "best measured", "trend", "spent", "trials", "strategy", "begun"].map((name) => h("th", { scope: "col" }, name || h("span", { class: "sr" }, "choose"))))),
      h("tbody", {}, found.map(row)))) : empty("No study has that name")];
}

const total = (one) => Object.values(one.counts).reduce((sum, count) => sum + count, 0);

function row(one) {
  const failed = (one.counts.failed || 0) + (one.counts.lost || 0);
  return h("tr", {}, h("td", {}, h("input", { type: "checkbox", value: one.key, name: "chosen", "aria-label": `Choose ${one.name}` })),
    h("th", { scope: "row" }, h("a", { href: address("study", one.key) }, one.name)),
    h("td", {}, badge(one.is_running ? "running" : "idle")),
    h("td", { class: "number" }, one.is_simple ? num(one.best) : "–", h("div", { class: "muted small" }, one.is_simple ? `${one.minimize ? "↓" : "↑"} ${one.value}` : one.aim)),
    h("td", {}, one.is_simple ? sparkline(one.trend, { label: `best ${one.value}` }) : ""),
    h("td", { class: "number" }, cost(one.spent, one.cost_unit)),
    h("td", { class: "number" }, plural(total(one), "trial"), failed ? h("div", { class: "small bad" }, `${failed} failed`) : null),
    h("td", {}, one.strategy || h("span", { class: "muted" }, "not chosen yet")), h("td", { class: "small" }, when(one.created_at)));
}

function choose() {
  const query = new URLSearchParams();
  for (const box of document.querySelectorAll("input[name=chosen]:checked")) query.append("study", box.value);
  go("compare", query);
}

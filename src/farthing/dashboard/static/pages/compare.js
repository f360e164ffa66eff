import { get } from "../api.js";
import { card, empty, h, table } from "../dom.js";
import { HUES, chart, logChoice } from "../charts.js";
import { cost, num } from "../format.js";
import { address, filter } from "../places.js";

export async function draw({ query }) {
  const { studies: all } = await get("api/studies");
  const known = new Set(all.map((one) => one.key)), chosen = query.getAll("study").filter((key) => known.has(key)).slice(0, 8);
  const turn = (key) => filter({ study: chosen.includes(key) ? chosen.filter((one) => one !== key) : [...chosen, key] });
  const picker = h("details", { class: "chooser", open: chosen.length < 2 }, h("summary", {}, `Studies (${chosen.length} chosen, up to 8)`), h("div", { class: "chips" }, all.map((one) => h("label", { class: "check" }, h("input", { type: "checkbox", id: `compare-${one.key}`, checked: chosen.includes(one.key), disabled: !chosen.includes(one.key) && chosen.length >= 8, onchange: () => turn(one.key) }), one.name))));
  if (!chosen.length) return [h("h1", {}, "Compare"), picker, empty("Choose studies", "Their best values are drawn against what each has cost.")];
  const { studies } = await get(`api/compare?${new URLSearchParams(chosen.map((key) => ["study", key]))}`);
  const units = new Set(studies.map((one) => one.cost_unit)), values = new Set(studies.map((one) => one.value));
  const x = [...new Set(studies.flatMap((one) => one.progress.spent))].sort((a, b) => a - b);
  const series = studies.map((one, place) => { const at = new Map(one.progress.spent.map((spent, index) => [spent, one.progress.best[index]])); return { label: one.name, values: x.map((spent) => at.get(spent) ?? null), colour: HUES[place], kind: "step" }; });
  const { isLog, box } = logChoice(query, series.flatMap((one) => one.values));
  return [h("h1", {}, "Compare"), picker, units.size > 1 || values.size > 1 ? h("p", { class: "warning", role: "note" }, `These studies differ in ${[units.size > 1 ? "their unit of cost" : "", values.size > 1 ? "what they optimise" : ""].filter(Boolean).join(" and ")}.`) : null,
    card("Best value against cost", { wide: true, tools: h("div", { class: "filters" }, box) }, x.length ? chart({ label: "Best value against cost, of each study", x, series, height: 380, xLabel: `cost (${[...units].join(", ")})`, yLabel: [...values].join(", "), logY: isLog }) : empty("No results yet")),
    card("Side by side", { wide: true }, table(["study", "strategy", "best measured", "spent", "trials"], studies.map((one) => [h("a", { href: address("study", one.key) }, one.name), one.strategy, num(one.best, 5), cost(one.spent, one.cost_unit), Object.values(one.counts).reduce((sum, count) => sum + count, 0)]), { label: "Side by side" }))];
}

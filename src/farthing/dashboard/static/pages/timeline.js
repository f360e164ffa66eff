import { get, study as at } from "../api.js";
import { badge, card, empty, h } from "../dom.js";
import { lanes } from "../drawings.js";
import { cost, duration, plural } from "../format.js";
import { go } from "../places.js";

export async function draw({ key, about }) {
  const { lanes: names, bars, of, all_lanes: all } = await get(at(key, "/timeline"));
  if (!bars.length) return empty("Nothing has run yet");
  const from = Math.min(...bars.map((bar) => bar.start)), to = Math.max(...bars.map((bar) => bar.end));
  const busy = bars.reduce((sum, bar) => sum + bar.end - bar.start, 0);
  const states = [...new Set(bars.map((bar) => bar.state))];
  return card("Trials by worker", { wide: true, note: [`${plural(bars.length, "trial")}${of > bars.length ? ` of ${of.toLocaleString("en-GB")}` : ""} in ${plural(all, "lane")} over ${duration(to - from)}`, of === bars.length ? `; workers were busy ${Math.round(100 * busy / Math.max(1e-9, (to - from) * names.length))} % of it` : "", "."] },
    h("div", { class: "legend" }, states.map((state) => badge(state))),
    lanes({ label: "Trials by worker, along the clock", names, from, to, format: (value) => duration(value - from), pick: (bar) => go("study", key, "trial", bar.number),
      bars: bars.map((bar) => ({ ...bar, tone: bar.state, title: `trial ${bar.number}, ${bar.state}: ${duration(bar.end - bar.start)}, cost ${cost(bar.cost, about.cost_unit)}` })) }));
}

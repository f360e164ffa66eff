// Numbers and times as people read them.

export function num(value, digits = 4) {
  if (value === null || value === undefined || Number.isNaN(value)) return "–";
  if (typeof value !== "number") return String(value);
  if (value === 0) return "0";
  const size = Math.abs(value);
  if (size >= 1e6 || size < 1e-4) return value.toExponential(2).replace("e+", "e");
  if (size >= 1000) return value.toLocaleString("en-GB", { maximumFractionDigits: size >= 1e5 ? 0 : 1 });
  return String(Number(value.toPrecision(digits)));
}

export function cost(value, unit) {
  if (value === null || value === undefined) return "–";
  return unit === "seconds" ? duration(value) : `${num(value)} ${unit}`;
}

export function duration(seconds) {
  if (seconds < 0.001 && seconds > 0) return `${(seconds * 1e6).toFixed(0)} µs`;
  if (seconds < 1 && seconds > 0) return `${(seconds * 1000).toFixed(seconds < 0.01 ? 1 : 0)} ms`;
  if (seconds < 60) return `${num(seconds, 3)} s`;
  if (seconds < 3600) return `${Math.floor(seconds / 60)} min ${String(Math.floor(seconds % 60)).padStart(2, "0")} s`;
  if (seconds < 172800) return `${Math.floor(seconds / 3600)} h ${String(Math.floor((seconds % 3600) / 60)).padStart(2, "0")} min`;
  return `${num(seconds / 86400, 3)} days`;
}

export function when(seconds) {
  if (!seconds) return "–";
  const date = new Date(seconds * 1000);
  const pad = (part) => String(part).padStart(2, "0");
  return `${date.getFullYear()}-${pad(date.getMonth() + 1)}-${pad(date.getDate())} ${pad(date.getHours())}:${pad(date.getMinutes())}`;
}

// What a trial itself cost, beside the price of a full run where that is an objective.
export const paid = (about) => about.needed.includes("cost") ? "paid" : "cost";
export const percent = (share) => `${(100 * share).toFixed(share < 0.1 ? 1 : 0)} %`;
export const bytes = (count) => count < 1e3 ? `${count} bytes` : count < 1e6 ? `${num(count / 1e3, 3)} kB` : `${num(count / 1e6, 3)} MB`;
export const params = (values) => Object.entries(values || {}).map(([name, value]) => `${name} ${num(value)}`).join("  ·  ");
export const expected = (pair) => pair ? `${num(pair[0])}${pair[1] === null ? "" : ` ± ${num(pair[1], 2)}`}` : "";
export const clipped = (text, most) => text.length > most ? `${text.slice(0, Math.max(1, most - 1))}…` : text;
export const plural = (count, word) => `${count.toLocaleString("en-GB")} ${word}${count === 1 ? "" : "s"}`;

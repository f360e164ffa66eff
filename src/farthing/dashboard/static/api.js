// Asks the server. In a report there is no server: the answers lie in the page.

const kept = document.getElementById("report-data");
const answers = kept ? JSON.parse(kept.textContent) : null;
export const isReport = answers !== null;

export class Refused extends Error {
  constructor(status, text) { super(text); this.status = status; }
}

export async function get(path, signal) {
  if (answers) {
    if (path in answers) return answers[path];
    throw new Refused(404, "This report does not hold that.");
  }
  return answer(await fetch(path, { signal, headers: { accept: "application/json" } }));
}

export async function send(method, path, body) {
  const headers = { "content-type": "application/json", accept: "application/json" };
  return answer(await fetch(path, { method, headers, body: JSON.stringify(body || {}) }));
}

async function answer(response) {
  const found = await response.json().catch(() => ({ error: `The server answered ${response.status}.` }));
  if (!response.ok) throw new Refused(response.status, found.error || `The server answered ${response.status}.`);
  return found;
}

export const study = (key, rest = "") => `api/studies/${encodeURIComponent(key)}${rest}`;

// One stream for the page. `on` gets the keys of changed studies, or null for all.
export function listen(on, onState) {
  if (answers) return;
  const stream = new EventSource("api/events");
  stream.addEventListener("changed", (event) => {
    const { studies, failure } = JSON.parse(event.data);
    onState(failure ? "storage" : "live");
    on(studies === null ? null : new Set(Object.keys(studies)));
  });
  stream.addEventListener("open", () => onState("live"));
  stream.addEventListener("error", () => onState("away"));
}

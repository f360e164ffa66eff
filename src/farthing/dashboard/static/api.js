// Asks the server. In a report there is no server: the answers lie in the page.

const kept = document.getElementById("report-data");
const answers = kept ? JSON.parse(kept.textContent) : null;
export const isReport = answers !== null;

export class Refused extends Error {
  constructor(status, text) { super(text); this.status = status; }
}

// The answers that a drawing is made of, by their tags: the same again means that there is nothing to draw.
let tags = new Map();
export const newTags = () => { tags = new Map(); return tags; };

export async function get(path) {
  if (answers) {
    if (path in answers) return answers[path];
    throw new Refused(404, "This report does not hold that.");
  }
  const own = tags, response = await fetch(path, { headers: { accept: "application/json" } });
  own.set(path, response.headers.get("etag"));
  const found = await answer(response);
  if (found.storage) place = found.storage;
  return found;
}

let place = "";
export const storagePlace = () => place;

// Changes need a secret that no cookie holds: a browser sends cookies to every port of the host, and this to none but ours.
const SECRET = `farthing-secret ${location.pathname}`;
export function keepSecret(secret) {
  try { localStorage.setItem(SECRET, secret); } catch { /* a browser that keeps nothing only looks */ }
}

function keptSecret() {
  try { return localStorage.getItem(SECRET) || ""; } catch { return ""; }
}

export async function send(method, path, body) {
  const headers = { "content-type": "application/json", accept: "application/json", "x-farthing-secret": keptSecret() };
  return answer(await fetch(path, { method, headers, body: JSON.stringify(body || {}) }));
}

async function answer(response) {
  const found = await response.json().catch(() => ({ error: `The server answered ${response.status}.` }));
  if (!response.ok) throw new Refused(response.status, found.error || `The server answered ${response.status}.`);
  return found;
}

export const study = (key, rest = "") => `api/studies/${encodeURIComponent(key)}${rest}`;

// The part of an address that says of which value it is, where there are several.
export const of = (about, sign = "?") => about.of ? `${sign}of=${encodeURIComponent(about.of)}` : "";

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

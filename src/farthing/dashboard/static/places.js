// Addresses within the page. They stand behind the #, so that any server, proxy or file serves them.

const only = document.documentElement.dataset.report;

// A report in a notebook is a frame without an address: a link would lead to the page around it, so its place is kept here.
const isFramed = location.protocol === "about:";
let kept = "";
export const hash = () => isFramed ? kept : location.hash;

function move(next) {
  if (!isFramed) { location.hash = next; return; }
  kept = next;
  again();
}

if (isFramed) document.addEventListener("click", (event) => {
  const link = event.target.closest('a[href^="#/"]');
  if (link) { event.preventDefault(); move(link.getAttribute("href")); }
});

export function here() {
  const asked = only && !hash().startsWith("#/") ? `#/study/${only}` : hash();
  const [path, query] = asked.replace(/^#\/?/, "").split("?");
  return { path, parts: path.split("/").filter(Boolean).map(decodeURIComponent), query: new URLSearchParams(query || "") };
}

export function address(...parts) {
  if (only && !parts.length) return `#/study/${only}`;
  const query = parts.length && parts[parts.length - 1] instanceof URLSearchParams ? parts.pop().toString() : "";
  const path = parts.filter((part) => part !== "").map(encodeURIComponent).join("/");
  return `#/${path}${query ? `?${query}` : ""}`;
}

export const go = (...parts) => move(address(...parts));

let again = () => {};
export const follow = (show) => { again = show; };

// Changes the query of the address without a new entry in the browser's list.
export function filter(changes) {
  const { path, query } = here();
  for (const [name, value] of Object.entries(changes)) {
    query.delete(name);
    for (const one of [value].flat()) if (one !== "" && one !== null && one !== undefined) query.append(name, one);
  }
  const text = query.toString();
  const next = `#/${path}${text ? `?${text}` : ""}`;
  if (isFramed) kept = next;
  else history.replaceState(null, "", next);
  again();
}

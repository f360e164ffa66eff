// Addresses within the page. They stand behind the #, so that any server, proxy or file serves them.

const only = document.documentElement.dataset.report;

export function here() {
  const asked = only && !location.hash.startsWith("#/") ? `#/study/${only}` : location.hash;
  const [path, query] = asked.replace(/^#\/?/, "").split("?");
  return { path, parts: path.split("/").filter(Boolean).map(decodeURIComponent), query: new URLSearchParams(query || "") };
}

export function address(...parts) {
  if (only && !parts.length) return `#/study/${only}`;
  const query = parts.length && parts[parts.length - 1] instanceof URLSearchParams ? parts.pop().toString() : "";
  const path = parts.filter((part) => part !== "").map(encodeURIComponent).join("/");
  return `#/${path}${query ? `?${query}` : ""}`;
}

export const go = (...parts) => { location.hash = address(...parts); };

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
  history.replaceState(null, "", `#/${path}${text ? `?${text}` : ""}`);
  again();
}

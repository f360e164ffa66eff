// Builds elements. Text only ever becomes text: nothing that a study holds is parsed as HTML.

const SVG = "http://www.w3.org/2000/svg";

function fill(element, properties, children) {
  for (const [name, value] of Object.entries(properties || {})) {
    if (value === null || value === undefined || value === false) continue;
    if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else if (name === "value" && "value" in element) element.value = value;
    else element.setAttribute(name, value === true ? "" : String(value));
  }
  for (const child of children.flat(4)) {
    if (child === null || child === undefined || child === false) continue;
    element.append(child instanceof Node ? child : document.createTextNode(String(child)));
  }
  return element;
}

export const h = (tag, properties, ...children) => fill(document.createElement(tag), properties, children);
export const s = (tag, properties, ...children) => fill(document.createElementNS(SVG, tag), properties, children);
export const say = (text) => { document.getElementById("said").textContent = text; };

// A message that stays for a while, wherever the reader is on the page.
export function tell(text) {
  const box = h("div", { class: "told", role: "status" }, h("p", {}, text), h("button", { type: "button", onclick: () => box.remove() }, "Close"));
  document.body.append(box);
  setTimeout(() => box.remove(), 20_000);
}

export function card(title, { id, note, wide, tools } = {}, ...children) {
  return h("section", { class: `card${wide ? " wide" : ""}`, "aria-label": title, id },
    h("div", { class: "card-head" }, h("h2", {}, title), tools, note && h("p", { class: "note" }, note)), ...children);
}

export const empty = (title, text) => h("div", { class: "empty" }, h("p", { class: "empty-title" }, title), text && h("p", {}, text));

export const fact = (label, value, detail, tone) => h("div", { class: `fact${tone ? ` ${tone}` : ""}` },
  h("div", { class: "fact-label" }, label), h("div", { class: "fact-value" }, value), detail && h("div", { class: "fact-detail" }, detail));

export const badge = (text, tone) => h("span", { class: `badge ${tone || text}` }, text);

export function table(head, rows, { label, empty: none, classes } = {}) {
  if (!rows.length) return empty(none || "Nothing yet");
  return h("div", { class: `scroll ${classes || ""}`, tabindex: "0", role: "region", "aria-label": label || head.join(", ") },
    h("table", {}, h("thead", {}, h("tr", {}, head.map((cell) => h("th", { scope: "col" }, cell)))),
      h("tbody", {}, rows.map((row) => h("tr", {}, row.map((cell) => h("td", {}, cell)))))));
}

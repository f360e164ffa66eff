// The page: which view an address shows, and when it is drawn again.

import { Refused, get, isReport, listen, newTags, storagePlace, study as at } from "./api.js";
import { badge, empty, h, say } from "./dom.js";
import { redraw } from "./charts.js";
import { address, filter, follow, hash, here } from "./places.js";

// A page is loaded when it is first shown.
const PAGES = {
  studies: () => import("./pages/studies.js"), compare: () => import("./pages/compare.js"), overview: () => import("./pages/overview.js"), trials: () => import("./pages/trials.js"),
  parameters: () => import("./pages/parameters.js"), contour: () => import("./pages/contour.js"), timeline: () => import("./pages/timeline.js"), system: () => import("./pages/system.js"), trial: () => import("./pages/trial.js"),
};
const TABS = ["overview", "trials", "parameters", "contour", "timeline", "system"];
const SYSTEMS = { multifidelity: "Curves", population: "Population", online: "Rounds", pipeline: "Pipeline" };
const SECONDS_BETWEEN_DRAWINGS = 0.8;
const main = document.getElementById("main"), top = document.getElementById("top");
let shown = null, asked = 0, state = isReport ? "report" : "connecting", storage = "";

function page(place) {
  const [first, key, tab, number] = place.parts;
  if (!first) return { page: "studies", name: "Studies" };
  if (first === "compare") return { page: "compare", name: "Compare" };
  if (first === "study" && key && tab === "trial") return { page: "trial", key, tab: "trials", number, name: `Trial ${number}` };
  if (first === "study" && key && TABS.includes(tab || "overview")) return { page: tab || "overview", key, tab: tab || "overview", name: tab || "overview" };
  return null;
}

async function show() {
  const place = here(), found = page(place), turn = ++asked;
  if (!found) { main.replaceChildren(empty("There is no such page", "Go back to the studies.")); return; }
  const isSame = shown && shown.path === place.path && shown.page === found.page;
  if (!isSame) {
    main.setAttribute("aria-busy", "true");
    main.replaceChildren(h("div", { class: "skeleton", "aria-hidden": "true" }, h("div"), h("div"), h("div")), h("p", { class: "sr" }, "Loading"));
  }
  const tags = newTags();
  try {
    const [view, about] = await Promise.all([PAGES[found.page](), found.key ? get(at(found.key)) : null]);
    const seen = OF_ONE_VALUE.includes(found.page) ? ofOneValue(about, place.query) : about;
    const drawn = await view.draw({ key: found.key, about: seen, query: place.query, number: found.number, again: show });
    if (turn !== asked) return;
    recovered();
    const made = JSON.stringify([...tags]);
    if (isSame && !isReport && made === shown.made && hash() === shown.text) return;
    const focus = isSame && document.activeElement?.id;
    const scroll = isSame ? window.scrollY : 0;
    setStorage(storagePlace());
    main.replaceChildren(...(about ? [heading(about, found.tab)] : []), h("div", { class: "page" }, seen?.of ? chooser(seen) : null, drawn));
    main.removeAttribute("aria-busy");
    document.title = about ? `${about.name} · ${found.name} · Farthing` : `${found.name} · Farthing`;
    window.scrollTo(0, scroll);
    if (focus) document.getElementById(focus)?.focus();
    if (!isSame) { say(`${document.title} is shown`); if (shown) main.focus({ preventScroll: true }); }
    shown = { ...found, path: place.path, text: hash(), made };
  } catch (error) {
    if (turn !== asked || error.name === "AbortError") return;
    main.removeAttribute("aria-busy");
    const isAway = !(error instanceof Refused) || error.status === 503;
    if (shown && isSame && isAway && !main.querySelector(".failure")) { lost(error); return; }
    isLost = isAway;
    shown = { ...found, path: place.path };
    main.replaceChildren(h("div", { class: "failure", role: "alert" }, h("h1", {}, error.status === 404 ? "Not here" : "This could not be shown"),
      h("p", {}, error instanceof Refused ? error.message : "The server does not answer. Is `farthing dashboard` still running?"),
      h("p", {}, h("button", { type: "button", onclick: show }, "Try again"), " ", h("a", { href: address() }, "All studies"))));
    if (!(error instanceof Refused)) console.error(error);
  } finally {
    follows();
  }
}

// Pages of one value at a time: with several objectives the reader chooses which, and the server is asked for that one.
const OF_ONE_VALUE = ["parameters", "contour", "system"];
function ofOneValue(about, query) {
  if (about.objectives.length < 2) return about;
  const chosen = about.objectives.find((one) => one.name === query.get("of")) || about.objectives[0];
  return { ...about, value: chosen.name, minimize: chosen.minimize, of: chosen.name };
}

const chooser = (seen) => h("div", { class: "filters" }, h("label", { for: "of" }, "Objective"), h("select", { id: "of", onchange: (event) => filter({ of: event.target.value }) }, seen.objectives.map((one) => h("option", { value: one.name, selected: one.name === seen.of }, one.name))));

// What is shown stays while the server or the storage is away, and is drawn again once it is back.
let isLost = false, notice = null;
function lost(error) {
  isLost = true;
  if (!(error instanceof Refused)) { setState("away"); return; }
  notice?.remove();
  notice = h("p", { class: "warning", role: "alert" }, `${error.message} Below is what was known before.`);
  main.prepend(notice);
}

function recovered() {
  isLost = false;
  notice?.remove();
}

// What changes is asked about once the first page is drawn: it has everything until then.
let isFollowing = false;
function follows() {
  if (isFollowing) return;
  isFollowing = true;
  last = Date.now();
  listen(changed, setState);
}

function heading(about, tab) {
  const link = (name, text) => h("a", { href: address("study", about.key, name === "overview" ? "" : name), "aria-current": tab === name ? "page" : null }, text);
  const running = about.counts.running || 0;
  return h("div", { class: "study-head" },
    h("div", { class: "study-title" }, h("h1", {}, about.name),
      badge(about.is_to_stop && running ? "stopping" : running ? "running" : "idle"),
      h("span", { class: "muted" }, `${about.aim}${about.strategy ? ` · ${about.strategy}` : ""}`)),
    h("nav", { class: "tabs", "aria-label": "Views of the study" }, link("overview", "Overview"), link("trials", "Trials"), link("parameters", "Parameters"),
      link("contour", "Contour"), link("timeline", "Timeline"), about.kind in SYSTEMS && link("system", SYSTEMS[about.kind])));
}

function setStorage(place) {
  if (isReport || place === storage) return;
  storage = place;
  drawTop();
}

function setState(next) {
  if (next === state) return;
  state = next;
  drawTop();
  if (state === "live" && isLost) show();
}

const STATES = { live: "live", connecting: "connecting", away: "server away", storage: "storage away", report: "report" };

function drawTop() {
  const theme = document.documentElement.dataset.theme;
  top.replaceChildren(h("a", { class: "brand", href: address(), "aria-label": "Farthing, all studies" }, coin(), h("span", {}, "Farthing")),
    h("nav", { "aria-label": "Main" }, isReport ? null : h("a", { href: address() }, "Studies"), isReport ? null : h("a", { href: address("compare") }, "Compare")),
    h("span", { class: "place", title: storage }, storage),
    h("span", { class: `live ${state}`, role: "status" }, STATES[state]),
    h("button", { type: "button", class: "theme", onclick: turnTheme, "aria-label": theme === "dark" ? "Use light colours" : "Use dark colours" }, theme === "dark" ? "☀" : "☾"));
}

function coin() {
  const span = h("span", { class: "coin", "aria-hidden": "true" }, "F");
  return span;
}

function turnTheme() {
  const next = document.documentElement.dataset.theme === "dark" ? "light" : "dark";
  document.documentElement.dataset.theme = next;
  try { localStorage.setItem("farthing-theme", next); } catch { /* private windows keep nothing */ }
  drawTop();
  redraw();
}

function firstTheme() {
  let kept = null;
  try { kept = localStorage.getItem("farthing-theme"); } catch { /* as above */ }
  const dark = window.matchMedia("(prefers-color-scheme: dark)");
  document.documentElement.dataset.theme = kept || (dark.matches ? "dark" : "light");
  dark.addEventListener("change", () => { if (!kept) { document.documentElement.dataset.theme = dark.matches ? "dark" : "light"; drawTop(); redraw(); } });
}

let waiting = null, last = 0;
function changed(keys) {
  if (!shown || document.hidden) return;
  if (keys && shown.key && !keys.has(shown.key)) return;
  if (waiting) return;
  waiting = setTimeout(() => { waiting = null; last = Date.now(); if (!editing()) show(); }, Math.max(0, SECONDS_BETWEEN_DRAWINGS * 1000 - (Date.now() - last)));
}

const editing = () => Boolean(document.activeElement?.closest("form, dialog"));

document.querySelector(".skip").addEventListener("click", (event) => { event.preventDefault(); main.focus(); });
firstTheme();
drawTop();
follow(show);
window.addEventListener("hashchange", show);
document.addEventListener("visibilitychange", () => { if (!document.hidden) changed(null); });
show();

// Changes: only where the server allows them. Each asks first, in a dialog, and says what came of it.

import { get, isReport, send, study as at } from "./api.js";
import { h, say, tell } from "./dom.js";
import { num } from "./format.js";

export function tools(about, again) {
  if (!about.may_change || isReport) return null;
  const button = (text, act, tone) => h("button", { type: "button", class: tone || "", onclick: act }, text);
  return h("div", { class: "acts", role: "group", "aria-label": "Change the study" },
    button("Stop …", () => ask("Stop the study?", [h("p", {}, "Its runs start no further trial, and end once those that run have ended. Nothing is lost.")], "Stop", () => send("POST", at(about.key, "/stop")), again), "danger"),
    button("Budget …", () => budget(about, again)), button("Enqueue …", () => enqueue(about, again)),
    Object.keys(about.fidelities).length ? button("Verify the best …", () => verify(about, again)) : null);
}

export function trialTools(about, trial, again) {
  if (!about.may_change || isReport) return null;
  const isGoing = ["pending", "running"].includes(trial.state);
  return h("div", { class: "acts", role: "group", "aria-label": "Change the trial" }, h("button", { type: "button", onclick: () => annotate(about, trial, again) }, "Annotate …"),
    isGoing ? h("button", { type: "button", class: "danger", onclick: () => ask(`Prune trial ${trial.number}?`, [h("p", {}, "It ends without a result; what it has cost so far stays on the bill.")], "Prune", () => send("POST", at(about.key, `/trials/${trial.number}/prune`)), again) }, "Prune …") : null);
}

// The page asks; a run that is alive, the next one, or `farthing verify` carries it out.
function verify(about, again) {
  const who = about.runs ? "A run that is alive carries it out next." : "Nothing runs this study now: it waits for the next run, or for farthing verify.";
  ask("Verify the best?", [h("p", {}, "What the study recommends is trained to the end, from its own checkpoint if it left one."), h("p", {}, who)], "Put it in line", async () => tell(verified(await send("POST", at(about.key, "/verify")))), again);
}

function verified({ enqueued, waiting, verified: done, runs }) {
  if (enqueued.length + waiting.length === 0) return `Trial ${done.number} has trained it to the end already: ${num(done.value, 5)}.`;
  return `Trial ${[...waiting, ...enqueued].join(", ")} is in line. ${runs ? "A run that is alive carries it out." : "Nothing runs this study now: start a run, or farthing verify."}`;
}

const field = (id, label, input) => h("div", { class: "field" }, h("label", { for: id }, label), input);

function budget(about, again) {
  const now = about.budget || {};
  const names = { cost: `Cost in all, in ${about.cost_unit}`, seconds: "Seconds of running in all", trials: "Configurations in all" };
  const inputs = Object.entries(names).map(([name, label]) => [name, h("input", { id: `budget-${name}`, type: "number", step: "any", min: 0, value: now[name] ?? "", placeholder: "no limit" }), label]);
  const hard = h("input", { id: "budget-hard", type: "checkbox", checked: about.hard_budget });
  const parts = inputs.map(([name, input, label]) => field(`budget-${name}`, label, input));
  ask("Change the budget", [...parts, field("budget-hard", "End running trials too when a limit is reached", hard)], "Change", () => {
    const limits = Object.fromEntries(inputs.filter(([, input]) => input.value !== "").map(([name, input]) => [name, Number(input.value)]));
    return send("POST", at(about.key, "/budget"), { ...limits, hard: hard.checked });
  }, again);
}

async function enqueue(about, again) {
  const start = (await get(at(about.key, "/best")).catch(() => null))?.best?.params || {};
  const inputs = Object.entries(about.parameters).map(([name, parameter], place) => {
    const id = `enqueue-${place}`;
    const input = parameter.kind === "choice" ? h("select", { id }, h("option", { value: "" }, "(inactive)"), parameter.options.map((option, index) => h("option", { value: index, selected: JSON.stringify(option) === JSON.stringify(start[name]) }, String(option))))
      : h("input", { id, type: "number", step: "any", value: start[name] ?? "", placeholder: "inactive" });
    const hint = parameter.kind === "choice" ? name : `${name}, from ${num(parameter.low)} to ${num(parameter.high)}`;
    return { name, parameter, input, element: field(id, hint, input) };
  });
  ask("Put a configuration in line", [h("p", { class: "note" }, "It begins as the best so far. It is run before the strategy is asked again."), ...inputs.map((one) => one.element)], "Enqueue", () => {
    const params = Object.fromEntries(inputs.filter((one) => one.input.value !== "").map((one) => [one.name, one.parameter.kind === "choice" ? one.parameter.options[Number(one.input.value)] : Number(one.input.value)]));
    return send("POST", at(about.key, "/queue"), { params });
  }, again);
}

function annotate(about, trial, again) {
  const comment = h("textarea", { id: "note-comment", rows: 3, maxlength: 1000 }, trial.comment);
  const tags = h("input", { id: "note-tags", type: "text", value: trial.tags.join(", ") });
  ask(`Annotate trial ${trial.number}`, [field("note-comment", "Comment", comment), field("note-tags", "Tags, with commas between", tags)], "Save", () => send("PATCH", at(about.key, `/trials/${trial.number}`), { comment: comment.value, tags: tags.value.split(",").map((tag) => tag.trim()).filter(Boolean) }), again);
}

function ask(title, parts, verb, act, again) {
  const failed = h("p", { class: "bad", role: "alert" });
  const close = () => { dialog.close(); dialog.remove(); };
  const submit = async (event) => {
    event.preventDefault();
    try { await act(); close(); say(`${verb}: done`); again(); } catch (error) { failed.textContent = error.message; }
  };
  const dialog = h("dialog", { "aria-label": title, oncancel: () => dialog.remove() }, h("form", { method: "dialog", onsubmit: submit }, h("h2", { class: "big" }, title), ...parts, failed, h("div", { class: "buttons" }, h("button", { type: "button", onclick: close }, "Cancel"), h("button", { type: "submit", class: "primary" }, verb))));
  document.body.append(dialog);
  dialog.showModal();
}

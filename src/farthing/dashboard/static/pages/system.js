import { get, of, study as at } from "../api.js";
import { card, empty, fact, h, table } from "../dom.js";
import { chart, logChoice } from "../charts.js";
import { lanes, shade, tree } from "../drawings.js";
import { cost, num, percent, plural } from "../format.js";
import { go } from "../places.js";

export async function draw({ key, about, query }) {
  const found = await get(at(key, `/system${of(about)}`));
  const view = { multifidelity: curves, population, online: rounds, pipeline }[found.kind];
  return view ? view(found, about, key, query) : empty("Nothing of its own", "This study has neither fidelities nor stages.");
}

function better(values, about) {
  const order = values.map((value, place) => place).filter((place) => values[place] !== null).sort((a, b) => (about.minimize ? values[b] - values[a] : values[a] - values[b]));
  const merit = values.map(() => 0);
  order.forEach((place, rank) => { merit[place] = order.length > 1 ? rank / (order.length - 1) : 1; });
  return merit;
}

function curves(found, about, key, query) {
  if (!found.curves.length) return empty("No curves yet", "Trials draw one as they report.");
  const places = [...new Set(found.curves.flatMap((curve) => curve.points.map((point) => point[0])))].sort((a, b) => a - b);
  const at = new Map(places.map((place, index) => [place, index]));
  const merit = better(found.curves.map((curve) => curve.points[curve.points.length - 1][1]), about);
  const order = found.curves.map((_, place) => place).sort((a, b) => merit[a] - merit[b]);
  const series = order.map((place) => {
    const values = new Array(places.length).fill(null);
    for (const [x, y] of found.curves[place].points) values[at.get(x)] = y;
    return { label: `trial ${found.curves[place].number}`, values, colour: merit[place] > 0.97 ? "accent" : merit[place] > 0.6 ? "c1" : merit[place] > 0.3 ? "c2" : "pale", width: merit[place] > 0.97 ? 2.4 : 1, joins: true, points: found.curves[place].points.length === 1 };
  });
  const { isLog, box } = logChoice(query, series.flatMap((one) => one.values));
  const ends = found.curves.map((curve) => curve.points[curve.points.length - 1][0]), full = about.fidelities[found.axis]?.high || Math.max(...ends);
  const steps = [0.1, 0.25, 0.5, 0.75, 1].map((share) => [percent(share), ends.filter((end) => end >= share * full * 0.999).length]);
  const spent = [...found.curves].sort((a, b) => b.cost - a.cost).slice(0, 12);
  return h("div", { class: "grid" }, card("Learning curves bought", { wide: true, tools: h("div", { class: "filters" }, box), note: `${plural(found.curves.length, "run")}${found.of > found.curves.length ? ` of ${found.of.toLocaleString("en-GB")}: the best, the latest and some others` : ""}; the best in red.` }, chart({ label: "Learning curves", x: places, series, height: 400, xLabel: found.axis, yLabel: about.value, legend: false, logY: isLog, logX: places[0] > 0 && places[places.length - 1] / places[0] > 50 })),
    card("How far they were taken", { note: `Of the runs shown, how many reached that share of ${num(full)} ${found.axis}.` }, table(["share", "runs"], steps, { label: "Reach" })),
    card("Where the cost went", { note: "The most expensive runs shown." }, table(["run", "trials", found.axis, about.value, "cost"], spent.map((curve) => [h("a", { href: `#/study/${encodeURIComponent(key)}/trial/${curve.number}` }, `trial ${curve.number}`), curve.trials.length, num(curve.points[curve.points.length - 1][0]), num(curve.points[curve.points.length - 1][1]), cost(curve.cost, about.cost_unit)]), { label: "Most expensive runs" })));
}

function population(found, about, key) {
  const pieces = found.members.flatMap((member, lane) => member.intervals.map((one) => ({ ...one, lane })));
  if (!pieces.length) return empty("No members yet");
  const ends = new Map();
  for (const piece of pieces) if (piece.value !== null) ends.set(piece.to, [...(ends.get(piece.to) || []), piece]);
  const tone = new Map();
  for (const own of ends.values()) better(own.map((piece) => piece.value), about).forEach((merit, place) => tone.set(own[place].number, merit));
  const winner = new Set(found.winner), lane = new Map(found.members.map((member, place) => [member.member, place]));
  const to = Math.max(...pieces.map((piece) => piece.to));
  const points = new Map();
  const lines = found.members.map((member) => { const own = new Map(); for (const one of member.intervals) for (const [x, y] of one.points) own.set(x, y); for (const x of own.keys()) points.set(x, true); return own; });
  const x = [...points.keys()].sort((a, b) => a - b);
  const path = new Map(pieces.filter((piece) => winner.has(piece.number)).flatMap((piece) => piece.points.map(([at, y]) => [at, y])));
  const numeric = Object.entries(about.parameters).filter(([, parameter]) => parameter.kind !== "choice");
  const won = pieces.filter((piece) => winner.has(piece.number)).sort((a, b) => a.from - b.from);
  return h("div", { class: "grid" }, card("Members", { wide: true, note: `${plural(found.members.length, "member")}, ${found.copies.length} copies. The darker, the better at that step; underlined is the way of the winner; arrows are copies.` },
    lanes({ label: "Lanes of the members, with copies", names: found.members.map((member) => `member ${member.member}`), from: 0, to, axisName: found.axis, laneHeight: 28, pick: (piece) => go("study", key, "trial", piece.number),
      bars: pieces.map((piece) => ({ ...piece, start: piece.from, end: piece.to, fill: ["failed", "lost"].includes(piece.state) ? null : shade(tone.get(piece.number) ?? 0.1), tone: ["failed", "lost", "running", "pending"].includes(piece.state) ? piece.state : "", mark: winner.has(piece.number), title: `trial ${piece.number}, ${piece.state}: ${about.value} ${num(piece.value)}` })),
      links: found.copies.map((copy) => ({ at: copy.at, from: lane.get(copy.donor), to: lane.get(copy.member), title: `member ${copy.member} became a copy of member ${copy.donor}` })) })),
  card(`${about.value} of each member`, { wide: true }, chart({ label: `${about.value} of each member`, x, height: 280, xLabel: found.axis, yLabel: about.value, legend: false, series: [...lines.map((own, place) => ({ label: `member ${found.members[place].member}`, values: x.map((at) => own.get(at) ?? null), colour: "c2", width: 1, joins: true })), { label: "the winner", values: x.map((at) => path.get(at) ?? null), colour: "accent", width: 2.4, joins: true }] })),
  numeric.map(([name, parameter]) => {
    const places = [...new Set(won.flatMap((piece) => [piece.from, piece.to]))].sort((a, b) => a - b);
    const all = found.members.map((member) => places.map((at) => member.intervals.find((one) => one.from <= at && at < one.to)?.params[name] ?? null));
    return card(`Schedule of ${name}`, { note: "Red: the winner's." }, chart({ label: `Schedule of ${name}`, x: places, height: 220, xLabel: found.axis, yLabel: name, legend: false, logY: Boolean(parameter.log), series: [...all.map((values, place) => ({ label: `member ${found.members[place].member}`, values, colour: "c2", kind: "step", width: 1 })), { label: "the winner", values: places.map((at) => (won.find((piece) => piece.from <= at && at < piece.to) || won[won.length - 1])?.params[name] ?? null), colour: "accent", kind: "step" }] }));
  }));
}

function rounds(found, about) {
  if (!found.rounds.length) return empty("No rounds yet", "They appear as the run plays them.");
  const x = found.rounds.map((one) => one.round), played = found.asked + found.silent;
  const names = Object.entries(about.parameters);
  return [h("div", { class: "facts" }, fact("rounds", played, `run of trial ${found.trial}`), fact("asked", found.asked, percent(found.asked / Math.max(1, played))), fact("silent", found.silent, "not measured, not paid", "good"), found.bad ? fact("bad", found.bad, "no finite value", "bad") : null, found.regret.length ? fact("regret so far", num(found.regret[found.regret.length - 1][1]), "against the best that was measured") : null),
    h("div", { class: "grid" }, card(`${about.value} by round`, { wide: true, note: "A dot is a round that was measured; between them the tuner stayed silent." }, chart({ label: `${about.value} by round`, x, height: 280, xLabel: "round", yLabel: about.value, series: [{ label: "measured", values: found.rounds.map((one) => one.value), colour: "accent", kind: "dots", size: 6 }, { label: "trend", values: found.rounds.map((one) => one.value), colour: "c2", width: 1, joins: true }] })),
      card("Regret", { note: "Summed over measured rounds: how far behind the best value the run ever measured. It bounds what a better choice among those tried could have gained, while nothing drifts." }, found.regret.length ? chart({ label: "Summed regret", x: found.regret.map((one) => one[0]), height: 220, xLabel: "round", series: [{ label: "regret", values: found.regret.map((one) => one[1]), colour: "c1", width: 2 }], legend: false }) : empty("Nothing measured yet")),
      names.map(([name, parameter]) => { const options = parameter.kind === "choice" ? parameter.options.map(String) : null; return card(`Choice of ${name}`, {}, chart({ label: `Choice of ${name} by round`, x, height: 220, xLabel: "round", yLabel: name, legend: false, logY: Boolean(parameter.log), yOptions: options, series: [{ label: "silent", values: found.rounds.map((one) => one.value === null ? place(one.params[name], options) : null), colour: "muted", kind: "dots", size: 3 }, { label: "measured", values: found.rounds.map((one) => one.value !== null ? place(one.params[name], options) : null), colour: "accent", kind: "dots", size: 6 }] })); }))];
}

const place = (value, options) => value === undefined || value === null ? null : options ? options.indexOf(String(value)) : value;

function pipeline(found, about) {
  const bills = Object.entries(found.bills), saved = bills.reduce((sum, [, bill]) => sum + bill.saved, 0), spent = bills.reduce((sum, [, bill]) => sum + bill.spent, 0);
  if (!found.nodes.length) return empty("No stage has ended yet", "The tree grows with every stage that a trial finishes.");
  return [h("div", { class: "facts" }, fact("spent on stages", cost(spent, found.unit)), fact("saved by the cache", cost(saved, found.unit), `${percent(saved / Math.max(1e-12, saved + spent))} of what it would have cost`, "good"), fact("prefixes", found.of, "different outputs of stages")),
    h("div", { class: "grid" }, card("Stages", { wide: true }, table(["stage", "computed", "loaded", "spent", "saved"], bills.map(([name, bill]) => [name, `${bill.computed}×${bill.repeated ? `, ${num(bill.repeated)} ${found.unit} again` : ""}`, `${bill.loaded}×`, cost(bill.spent, found.unit), h("span", { class: "good" }, cost(bill.saved, found.unit))]), { label: "Bill by stage" })),
      card("Tree of cached prefixes", { wide: true, note: [`The larger a node, the more trials passed through it; filled ones were loaded again.`, found.of > found.nodes.length ? ` ${found.nodes.length} of ${found.of} shown.` : ""] }, tree({ label: "Tree of cached prefixes", stages: found.stages, nodes: found.nodes, unit: found.unit })))];
}

"use strict";
// Draws what the desk's server says. A part that has not changed is left alone, so that focus, open
// details and what is being read stay where they are.

const SILENT_SECONDS = 8;
const AWAY_SECONDS = 2;
const byId = (id) => document.getElementById(id);
const drawn = {};
let state = null;
let heardAt = null;
let clockAhead = 0;
let denied = "";

// The token comes as a fragment, which no browser sends anywhere, and goes from the address at once.
const KEY = "stillwater-desk-token";
if (location.hash.length > 20) {
  sessionStorage.setItem(KEY, location.hash.slice(1));
  history.replaceState(null, "", location.pathname);
}
const token = () => sessionStorage.getItem(KEY) || "";

function el(tag, attributes, ...children) {
  const made = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes || {})) {
    if (name === "onclick" || name === "onsubmit") made[name] = value;
    else if (value !== null && value !== undefined && value !== false) made.setAttribute(name, value);
  }
  made.append(...children.flat().filter((each) => each !== null && each !== undefined && each !== ""));
  return made;
}

// The same two largest units as core.ground.words.span; no line ends between a figure and its unit.
function span(seconds) {
  const whole = Math.max(0, Math.round(seconds));
  const units = [[86400, "d"], [3600, "h"], [60, "min"], [1, "s"]];
  const counts = units.map(([size, unit], at) => [Math.floor((at ? whole % units[at - 1][0] : whole) / size), unit]);
  const first = counts.findIndex(([count]) => count);
  return counts.slice(first, first + 2).filter(([count]) => count).map(([c, u]) => `${c}\u00a0${u}`).join(" ") || "0\u00a0s";
}
const now = () => Date.now() / 1000 + clockAhead;
const utc = (at) => new Date(at * 1000).toISOString().replace("T", " ").slice(0, 19) + " UTC";
const clock = (at) => new Date(at * 1000).toISOString().slice(11, 19);
const age = (at, before = "", after = "") =>
  el("time", {"data-at": at, "data-before": before, "data-after": after, title: utc(at), datetime: new Date(at * 1000).toISOString()}, `${before}${span(Math.abs(now() - at))}${after}`);
const capital = (text) => text.charAt(0).toUpperCase() + text.slice(1);
const words = (text) => text.replaceAll("_", " ");

function tick() {
  for (const each of document.querySelectorAll("time[data-at]")) {
    each.textContent = `${each.dataset.before}${span(Math.abs(now() - each.dataset.at))}${each.dataset.after}`;
  }
  const silent = heardAt === null ? null : Date.now() / 1000 - heardAt;
  const stale = silent === null || silent > SILENT_SECONDS;
  document.body.classList.toggle("stale", stale && state !== null);
  const said = denied || (silent === null ? "connecting" : stale ? `no word for ${span(silent)}: this is old` : "live");
  if (byId("live").textContent !== said) byId("live").textContent = said;
  byId("live").className = `chip ${denied || stale ? "alarm" : "calm"}`;
  if (state && state.run && !stale) draw("run", [state.run, Math.floor(now() / 5)], () => run(state.run));
}

// Redraws a part where what it shows has changed; the focus stays on what had it.
function draw(id, shown, build) {
  const text = JSON.stringify(shown);
  if (drawn[id] === text) return;
  drawn[id] = text;
  const body = byId(id).querySelector(".body") || byId(id);
  const focused = body.contains(document.activeElement) ? document.activeElement.dataset.key : null;
  const open = [...body.querySelectorAll("details[open]")].map((each) => each.dataset.key);
  body.replaceChildren(...[build()].flat());
  for (const each of body.querySelectorAll("details")) each.open = open.includes(each.dataset.key);
  if (focused) body.querySelector(`[data-key="${CSS.escape(focused)}"]`)?.focus();
}
const orNothing = (list, empty, build) =>
  list === null ? el("p", {class: "empty unknown"}, "Unknown: not read yet.") : list.length ? build(list) : el("p", {class: "empty"}, empty);

function show(said) {
  state = said;
  heardAt = Date.now() / 1000;
  clockAhead = said.now - heardAt;
  denied = "";
  const {cluster, verdict} = said;
  document.title = `${{calm: "●", busy: "◐", unknown: "?", alarm: "▲"}[verdict.tone]} ${verdict.title} · ${cluster.name}`;
  byId("cluster").textContent = cluster.name;
  byId("where").textContent = `${cluster.environment}, ${cluster.region}`;
  byId("verdict").className = `verdict ${verdict.tone}`;
  draw("verdict", verdict, () => [
    el("h2", {}, verdict.title),
    verdict.sentences.length ? el("ul", {}, verdict.sentences.map((each) => el("li", {}, each))) : null,
  ].filter(Boolean));
  draw("wishes", said.pause, () => pauseButton(said.pause));
  draw("incidents", said.incidents, () => orNothing(said.incidents, "Nothing is going on with any instance.", (list) => list.map(incident)));
  draw("waits", said.waits, () => orNothing(said.waits, "No node waits.", (list) => el("ul", {class: "list"}, list.map(wait))));
  draw("leases", said.leases, () => orNothing(said.leases, "The lease is free.", (list) => el("ul", {class: "list"}, list.map(lease))));
  draw("zones", said.zones, () => orNothing(said.zones, "No zone is frozen or watched.", (list) => el("ul", {class: "list"}, list.map(zone))));
  draw("run", [said.run, Math.floor(now() / 5)], () => said.incidents === null ? orNothing(null) : said.run ? run(said.run) : el("p", {class: "empty"}, "No rotation was ever started here."));
  draw("health", said.health, () => said.health ? health(said.health) : orNothing(null));
  draw("volumes", said.volumes, () => said.volumes ? volumes(said.volumes) : orNothing(null));
  draw("costs", said.costs, () => el("ul", {class: "list"}, said.costs.map((each) => el("li", {}, el("div", {}, each.usd), el("small", {class: "soft"}, each.what)))));
  draw("sources", said.sources, () => said.sources.flatMap((each, at) => [
    at ? " · " : "", each.read_at === null ? `${each.name}: not read` : age(each.read_at, `${each.name} read `, " ago"),
  ]));
  tick();
}

const STATE_TONE = {draining: "busy", gating: "busy", retained: "alarm", lost: "alarm", released: "calm", ridden_through: "calm"};

function incident(of) {
  const tone = of.pages.length ? "alarm" : STATE_TONE[of.state] || "amber";
  const wishes = of.wishes.map((name) => el("button", {type: "button", "data-key": `${name} ${of.id}`, "aria-label": `${capital(name)} ${of.subject}`, onclick: () => ask(name, of)}, capital(name)));
  const step = (each) => el("li", {class: each.from === null ? "ahead" : each.to === null ? "here" : "gone", "aria-current": each.from !== null && each.to === null ? "step" : null},
    el("b", {}, words(each.state)), each.from === null ? "" : each.to === null ? (of.open ? age(each.from) : "") : span(each.to - each.from));
  const facts = Object.entries({instance: of.instance, announced: words(of.announced), ...of.facts});
  return el("article", {class: tone, "aria-label": `${of.subject}: ${words(of.state)}`},
    el("div", {class: "head"}, el("h3", {}, `${of.symbol} ${capital(of.subject)}`), el("span", {class: "chip"}, words(of.state)), el("span", {class: "soft"}, age(of.opened_at, "since ")), el("div", {class: "buttons"}, wishes)),
    el("p", {class: "why"}, of.reason),
    of.outlook ? el("p", {class: "soft"}, of.outlook) : null,
    el("ol", {class: "way", "aria-label": "Its way"}, of.way.map(step)),
    el("details", {"data-key": of.id}, el("summary", {"data-key": `more ${of.id}`}, "Everything about it"),
      el("dl", {}, facts.flatMap(([name, value]) => [el("dt", {}, name), el("dd", {}, value)])),
      el("ol", {}, of.history.map((each) => el("li", {}, el("time", {title: utc(each.at)}, clock(each.at)), el("span", {class: "soft"}, each.who), el("span", {}, each.what))))));
}

const wait = (of) => el("li", {}, el("b", {}, capital(of.who)), ` waits for ${of.behind.join("; ")}`, of.why.map((each) => el("div", {class: "soft"}, each)));
const lease = (of) => el("li", {class: of.out_at ? "busy" : ""}, el("b", {}, capital(of.holder)), of.out_at ? age(of.out_at, " is out for ") : age(of.expires_at, " holds it for ", " more"),
  of.party ? el("div", {class: "soft"}, `party ${of.party}`) : null);
const zone = (of) => el("li", {}, el("b", {}, of.zone), ` ${of.state} by ${of.by} `, age(of.opened_at, "for "), el("div", {class: "soft"}, of.reason, of.until ? ` Until ${utc(of.until)}.` : ""), of.said ? el("div", {class: "soft"}, of.said) : null);

function run(of) {
  const ends = of.turns.map((t) => t.done_at || (t.began_at ? Math.max(now(), t.began_at + (t.expected_seconds || 0)) : 0));
  const from = of.started_at;
  const to = Math.max(of.ended_at || now(), from + 60, ...ends);
  const place = (start, end) => `left:${(100 * (start - from)) / (to - from)}%;width:${(100 * Math.max(0, end - start)) / (to - from)}%`;
  const bar = (kind, start, end) => { const made = el("i", {class: kind}); made.style.cssText = place(start, end); return made; };
  const row = (t) => {
    const end = t.done_at || of.ended_at || now();
    const bars = t.began_at === null ? [] : t.phase === "done" ? [bar("done", t.began_at, end)] : t.phase === "failed" ? [bar("failed", t.began_at, end)]
      : [bar("leaving", t.began_at, t.released_at || end), t.released_at ? bar("returning", t.released_at, end) : null, t.expected_seconds ? bar("expected", t.began_at, t.began_at + t.expected_seconds) : null].filter(Boolean);
    const took = t.began_at === null ? words(t.phase) : t.done_at ? span(t.done_at - t.began_at) : `${words(t.phase)} ${span(end - t.began_at)}`;
    return el("li", {}, el("span", {}, `${t.symbol} ${capital(t.node)} `, el("small", {}, t.zone)),
      el("div", {class: "track", role: "img", "aria-label": `${t.node}: ${took}`}, bars), el("span", {class: "num"}, took),
      t.why && t.phase !== "done" ? el("small", {class: "after"}, t.why) : null);
  };
  const wishes = of.wishes.map((name) => el("button", {type: "button", "data-key": name, onclick: () => ask(name)}, name === "rotation-pause" ? "Pause the rotation" : "Resume the rotation"));
  const key = [["leaving", "leaving"], ["returning", "returning"], ["done", "back for good"]].map(([kind, said]) => el("span", {}, el("i", {class: kind}), said));
  return [
    el("div", {class: "head"}, el("h3", {}, `${of.done} of ${of.nodes} nodes`), el("span", {class: `chip ${{stopped: "alarm", done: "calm", running: "busy"}[of.state] || "amber"}`}, of.state),
      el("span", {class: "soft"}, `by ${of.by}, ${of.ended_at ? `took ${span(of.ended_at - of.started_at)}` : `for ${span(now() - of.started_at)}`}`), el("div", {class: "buttons"}, wishes)),
    el("p", {}, of.reason), el("ul", {class: "gantt"}, of.turns.map(row)), el("div", {class: "key", "aria-hidden": "true"}, key),
  ];
}

const HEALTH_TONE = {healthy: "calm", starting: "busy", degraded: "amber", unknown: "unknown", unhealthy: "alarm"};
function health(of) {
  const unwell = of.parts.filter((part) => part.status !== "healthy");
  const name = (part) => ["broker", "controller", "metadata log", "pod"].includes(part.kind) && !part.name.startsWith(part.kind) ? `${part.kind} ${part.name}` : part.name;
  return [
    el("p", {}, el("span", {class: `chip ${HEALTH_TONE[of.status]}`}, of.status), " ", of.message),
    el("ul", {class: "list"}, unwell.map((part) => el("li", {class: HEALTH_TONE[part.status]}, el("b", {}, capital(name(part))), ` ${part.status}`, el("div", {class: "soft"}, part.reason)))),
    el("ul", {class: "list"}, of.parts.flatMap((part) => part.notes).map((note) => el("li", {class: "soft"}, note))),
    el("ul", {class: "dots", "aria-label": "Every part"}, of.parts.map((part) => el("li", {class: HEALTH_TONE[part.status], title: part.reason}, name(part)))),
    el("p", {class: "soft"}, el("small", {}, `examined ${of.at}`)),
  ];
}

function volumes(of) {
  const percent = (share) => `${Math.round(100 * share)} %`;
  const claim = (each) => el("li", {}, el("b", {}, each.claim),
    each.used_share === null ? null : el("meter", {min: 0, max: 1, low: 0.7, high: 0.85, optimum: 0, value: each.used_share, "aria-label": `${each.claim}: ${percent(each.used_share)} full`}),
    el("div", {}, each.used_share === null ? "" : `${percent(each.used_share)} of ${each.size_gib} GiB. `, el("span", {class: "soft"}, each.forecast)));
  const asked = of.decisions.filter((each) => each.kind !== "keep");
  return [
    of.claims.length ? el("ul", {class: "list"}, of.claims.map(claim)) : el("p", {class: "empty unknown"}, "Unknown: λ volumes has kept no plan."),
    asked.length ? el("ul", {class: "list"}, asked.map((each) => el("li", {class: each.emergency ? "alarm" : "amber"}, el("b", {}, `${each.volume}: ${each.kind}${each.applied ? " (done)" : ""}`), el("div", {class: "soft"}, each.reason)))) : null,
    el("p", {class: "soft"}, el("small", {}, of.planned_at ? age(of.planned_at, `mode ${of.mode}, looked `, " ago") : "", ...of.unknown.map((each) => ` Not known: ${each}.`))),
  ].filter(Boolean);
}

function pauseButton(paused) {
  const name = paused === null || paused === undefined ? "pause" : "resume";
  return el("button", {type: "button", "data-key": "pause", class: name === "resume" ? "strong busy" : "", onclick: () => ask(name)}, name === "pause" ? "Pause everything" : "Resume");
}

const ASKED = {
  hold: (of) => ({title: `Hold ${of.subject}`, said: `Nothing of ${of.instance} is drained before then; its hooks go on beating. A drain that runs goes on.`, button: "Hold it", fields: [["until", "Until (90min, 2h, 1d, or 2026-11-20T18:00 in UTC)", "2h"]], with: {instance: of.instance}}),
  release: (of) => ({title: `Let ${of.subject} go?`, said: `${of.instance} goes without a replacement and without Kafka's consent; it is drained first. Partitions may fall below min.insync.replicas.`, button: `Let ${of.instance} go`, tone: "alarm", fields: [], with: {instance: of.instance}}),
  pause: () => ({title: "Pause everything", said: "Nothing new is drained or terminated. Heartbeats continue and running drains end. A node with a two-minute warning is still drained.", button: "Pause", fields: [["because", "Why, for the next reader", ""], ["until", "Until (4h, 1d; empty: until you resume)", "4h"]], with: {}}),
  resume: () => ({title: "Resume?", said: "The loop looks at every open incident at once.", button: "Resume", fields: [], with: {}}),
  "rotation-pause": () => ({title: "Pause the rotation?", said: "No further node begins; who is away comes back first.", button: "Pause the rotation", fields: [], with: {}}),
  "rotation-resume": () => ({title: "Resume the rotation?", said: "It goes on with the next node; every node has its whole deadline again.", button: "Resume the rotation", fields: [], with: {}}),
};

function ask(name, of) {
  const asked = ASKED[name](of);
  const dialog = byId("asking");
  const refused = el("p", {class: "refused", role: "alert"});
  const button = el("button", {type: "submit", class: `strong ${asked.tone || "busy"}`}, asked.button);
  const fields = asked.fields.flatMap(([key, label, value]) => [el("label", {for: `asked-${key}`}, label), el("input", {id: `asked-${key}`, name: key, value, autocomplete: "off"})]);
  const form = el("form", {method: "dialog", onsubmit: async (event) => {
    event.preventDefault();
    button.disabled = true;
    const said = {...asked.with, ...Object.fromEntries(new FormData(form))};
    try {
      const answer = await fetch(`/wishes/${name}`, {method: "POST", headers: {"X-Stillwater-Token": token(), "Content-Type": "application/json"}, body: JSON.stringify(said)});
      const body = await answer.json();
      if (!answer.ok) throw new Error(body.refused);
      dialog.close();
      toast(body.said);
    } catch (error) {
      refused.textContent = error.message;
    }
    button.disabled = false;
  }}, fields, refused, el("div", {class: "buttons"}, el("button", {type: "button", onclick: () => dialog.close()}, "Cancel"), button));
  dialog.replaceChildren(el("h2", {id: "asking-h"}, asked.title), el("p", {}, asked.said), form);
  dialog.showModal();
}

let fading = 0;
function toast(text) {
  byId("toast").textContent = text;
  byId("toast").hidden = false;
  clearTimeout(fading);
  fading = setTimeout(() => { byId("toast").hidden = true; }, 9000);
}

// Server-sent events, read by fetch: an EventSource cannot send the token in a header.
async function listen() {
  const answer = await fetch("/events", {headers: {"X-Stillwater-Token": token()}});
  if (!answer.ok) {
    denied = answer.status === 401 ? "open the address that the terminal printed" : (await answer.json()).refused;
    return answer.status !== 401;
  }
  const reader = answer.body.pipeThrough(new TextDecoderStream()).getReader();
  let text = "";
  for (let part = await reader.read(); !part.done; part = await reader.read()) {
    text += part.value;
    const events = text.split("\n\n");
    text = events.pop();
    if (events.length) show(JSON.parse(events.at(-1).slice("data: ".length)));
  }
  return true;
}

async function stay() {
  for (let again = true; again;) {
    try {
      again = await listen();
    } catch {
      // The desk is closed or the network of this machine sleeps: the chip says so meanwhile.
    }
    tick();
    await new Promise((wake) => setTimeout(wake, AWAY_SECONDS * 1000));
  }
}
setInterval(tick, 1000);
stay();

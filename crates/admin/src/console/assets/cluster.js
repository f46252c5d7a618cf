// The page of a cluster.

import * as actions from "./actions.js";
import { attribute, button, el, panel, show, text } from "./dom.js";
import { Insights } from "./insights.js";
import { budgetListing, guardListing, quarantineListing, refusedListing } from "./limits.js";
import { drawApp, listing } from "./listing.js";
import { cluster as clusterOf, live } from "./live.js";
import { Plot, range, setRange } from "./plots.js";
import { Rules } from "./rules.js";
import { amount, heldSentence, headline, plural, short, span, why } from "./words.js";

const APPS_EVERY_MS = 3000;

/** Buttons that change what happens to an app. */
export function drawActions(cell, clusterName, app) {
  cell.app = app;
  if (cell.firstChild) return;
  for (const [effect, label] of [["hold", "Hold"], ["throttle", "Throttle"], ["exempt", "Exempt"]]) {
    cell.append(button(label, () => actions.change(effect, cell.app, clusterName), { "data-effect": effect }));
  }
}

export function nameActions(cell, app) {
  for (const one of cell.children) attribute(one, "aria-label", `${one.textContent} ${app}`);
}

export class ClusterPage {
  constructor(name) {
    this.name = name;
    this.tone = null;
    this.signal = null;
    this.node = el("div", { class: "page" });
    this.buildHead();
    this.buildPlots();
    this.buildTables();
    this.refused = refusedListing(name, "refused");
    this.budgets = budgetListing();
    this.guards = guardListing();
    this.quarantine = quarantineListing(name);
    this.rules = new Rules(name);
    this.insights = new Insights(name);
    this.node.append(
      this.head,
      this.timeline.node,
      this.held.panel.node,
      this.starved.panel.node,
      this.waiting.panel.node,
      this.refused.panel.node,
      this.rules.panel.node,
      this.budgets.panel.node,
      this.guards.panel.node,
      this.quarantine.panel.node,
      el("div", { class: "columns" }, this.servers.panel.node, this.signals.panel.node),
      this.around.panel.node,
      this.apps.panel.node,
      this.insights.panel.node,
    );
  }

  buildHead() {
    this.pill = el("span", { class: "pill" });
    this.sentence = el("span", { class: "say" });
    const fact = (label) => {
      const value = el("dd");
      return { value, node: el("div", {}, el("dt", {}, label), value) };
    };
    this.facts = Object.fromEntries(["Waiting", "Held up", "Lag", "Pace", "Served", "Refused", "At the server", "Connections", "Mode"].map((label) => [label, fact(label)]));
    const jump = (event) => { event.preventDefault(); this.held.panel.node.scrollIntoView(); this.held.panel.heading.focus(); };
    this.jump = el("a", { href: "#held", onclick: jump });
    this.facts["Held up"].value.append(this.jump);
    this.notes = el("ul", { class: "notes" });
    this.head = el(
      "header",
      { class: "head" },
      el("div", { class: "title" }, el("h1", {}, this.name), this.pill, this.sentence),
      el("dl", { class: "facts" }, ...Object.values(this.facts).map((known) => known.node)),
      this.notes,
    );
  }

  buildPlots() {
    const trail = () => live.trails.get(this.name) ?? { x: [], columns: {}, signals: new Map(), marks: [] };
    const columns = (...keys) => () => ({ x: trail().x, columns: keys.map((key) => trail().columns[key] ?? []), marks: trail().marks });
    this.picker = el("select", { class: "quiet", "aria-label": "Signal to plot", onchange: () => this.pick(this.picker.value) });
    this.ranges = [[300, "5 min"], [900, "15 min"], [3600, "1 h"]].map(([seconds, label]) => button(label, () => this.setRange(seconds), { class: "quiet", "data-seconds": seconds }));
    const own = () => trail().signals.get(this.signal) ?? { value: [], threshold: [], open: [] };
    this.lag = new Plot(
      "Signal and its threshold",
      [{ label: "value", colour: "lag", format: "s", fill: true }, { label: "threshold", colour: "limit", format: "s", dash: [6, 4] }],
      () => ({ x: trail().x, columns: [own().value, own().threshold], shut: own().open, marks: trail().marks }),
      { class: "main", height: 200, marks: true, least: 0.01 },
    );
    this.plots = [
      this.lag,
      new Plot("Rows a second", [{ label: "pace", colour: "pace", format: "rate" }, { label: "slowest replica applies", colour: "applied", format: "rate", dash: [6, 4] }, { label: "written", colour: "lag", format: "rate" }], columns("pace", "applied", "written")),
      new Plot("Waits", [{ label: "p50", colour: "lag", format: "s" }, { label: "p99", colour: "limit", format: "s" }, { label: "oldest waiter", colour: "mark", format: "s", dash: [3, 3] }], columns("p50", "p99", "oldest"), { least: 0.01 }),
      new Plot("Queue", [{ label: "waiting", colour: "limit", format: "count", fill: true }, { label: "at the server", colour: "applied", format: "count" }], columns("waiting", "in_flight")),
      new Plot("Statements a second", [{ label: "served", colour: "pace", format: "rate" }, { label: "refused", colour: "bad", format: "rate" }], columns("served", "refused")),
    ];
    const shade = el("span", { class: "note" }, "shaded: the gate was shut");
    this.timeline = panel("Time line", "time-line", el("div", { class: "plots" }, ...this.plots.map((plot) => plot.node)));
    this.timeline.tools.append(shade, this.picker, el("div", { class: "choice", role: "group", "aria-label": "Time shown" }, ...this.ranges));
  }

  buildTables() {
    const { name } = this;
    const app = { key: "app", label: "Identity", class: "name", draw: (cell, row) => drawApp(cell, name, row.app), sort: (row) => row.app };
    const act = { key: "act", label: "", class: "act", draw: (cell, row) => { drawActions(cell, name, row.app); nameActions(cell, row.app); } };
    const queue = { key: "waiting", label: "Queue", class: "number bar", draw: (cell, row) => this.bar(cell, row.waiting), sort: (row) => row.waiting };
    const rule = { key: "rule", label: "Rule", class: "name", text: (row) => row.rule, sort: (row) => row.rule };
    this.held = listing("Who is held, and why", "held", [
      app, queue,
      { key: "oldest", label: "Longest", class: "number", text: (row) => span(row.oldest_s), sort: (row) => row.oldest_s ?? -1 },
      rule,
      { key: "why", label: "Why", class: "wide", text: heldSentence },
      act,
    ], { key: (row) => `${row.app}\n${row.rule}`, empty: "Nobody is held up.", search: (row) => `${row.app} ${row.rule} ${row.reason}`, sort: ["waiting", "descending"] });
    this.held.panel.tools.append(button("Hold an app …", () => actions.change("hold", null, name), { class: "quiet", id: "hold-any" }));
    this.starved = listing("Who is starved, and by whom", "starved", [
      app, rule,
      { key: "share", label: "Of the window", class: "number", text: (row) => `${(row.share * 100).toFixed(1)} %`, sort: (row) => row.share },
      { key: "for", label: "Since", class: "number", text: (row) => `${span(row.for_s)} ago`, sort: (row) => row.for_s },
      { key: "now", label: "Now", text: starvedNow, tone: (row) => (row.blocked || row.kind === "below_share" ? "bad" : null) },
      { key: "passed", label: "Passed meanwhile", class: "wide", text: (row) => [row.likely_cause && `the likely cause is ${row.likely_cause}`, ...row.passed.map(passedWords)].filter(Boolean).join(", ") },
    ], { key: (row) => `${row.app}\n${row.rule}` });
    this.waiting = listing("Connections that wait", "waiting", [
      { key: "id", label: "Id", class: "number", text: (row) => row.connection_id, sort: (row) => row.connection_id },
      { ...app, label: "Identity" },
      { key: "user", label: "User", class: "name", text: (row) => row.user, sort: (row) => row.user },
      { key: "client", label: "Client", class: "name", text: (row) => row.client },
      rule,
      { key: "waited", label: "Waited", class: "number", text: (row) => span(row.waited_s), sort: (row) => row.waited_s },
      { key: "left", label: "Refused in", class: "number", text: (row) => span(row.left_s), sort: (row) => row.left_s },
      { key: "why", label: "Why", class: "wide", text: why },
    ], { key: (row) => `${row.connection_id}\n${row.client}`, search: (row) => `${row.app} ${row.user} ${row.client} ${row.rule}` });
    this.servers = listing("Servers", "servers", [
      { key: "server", label: "Server", class: "name host", text: (row) => row.server },
      { key: "state", label: "State", text: (row) => row.says, tone: (row) => row.tone },
      { key: "lag", label: "Lag", class: "number", text: (row) => span(row.lag_s) },
      { key: "for", label: "For", class: "number", text: (row) => span(row.for_s) },
      { key: "wrong", label: "What is wrong", class: "wide", text: (row) => row.trouble || "–" },
    ], { key: (row) => `${row.role} ${row.server}` });
    this.signals = listing("Signals", "signals", [
      { key: "signal", label: "Signal", class: "name", text: (row) => row.signal },
      { key: "value", label: "Value", class: "number", text: (row) => amount(row.value, row.unit) },
      { key: "threshold", label: "Threshold", class: "number", text: (row) => amount(row.threshold, row.unit) },
      { key: "state", label: "Says", text: (row) => (row.state === "no_data" ? `no data${row.open ? ", lets through" : ""}` : row.state), tone: (row) => (row.open ? "good" : "bad") },
      { key: "for", label: "For", class: "number", text: (row) => span(row.for_s) },
      { key: "flight", label: "In flight", class: "number", text: (row) => (row.in_flight === null ? "–" : `${row.in_flight}${ofLimit(row.in_flight_limit)}`) },
    ], { key: (row) => row.signal, empty: "No signals." });
    this.around = listing("Writes past Sluice", "around", [
      { key: "user", label: "User", class: "name", text: (row) => row.user },
      { key: "sessions", label: "Sessions", class: "number", text: (row) => row.sessions, sort: (row) => row.sessions },
      { key: "share", label: "Of the rows", class: "number", text: (row) => (row.share === null ? "–" : `${(row.share * 100).toFixed(0)} %`) },
      { key: "hosts", label: "From", class: "wide", text: (row) => row.hosts.join(", ") },
    ], { key: (row) => row.user });
    const count = (key, label, of) => ({ key, label, class: "number", text: (row) => of(row).toLocaleString("en"), sort: of });
    this.apps = listing("Identities since the start", "apps", [
      app, rule,
      { key: "mode", label: "Mode", text: (row) => row.mode },
      { key: "rate", label: "A second", class: "number", text: (row) => (row.rate === undefined ? "–" : short(row.rate)), sort: (row) => row.rate ?? -1 },
      count("passed", "Passed", (row) => row.admitted + (row.mode === "observe" ? row.rejected : 0)),
      count("delayed", "Delayed", (row) => row.delayed),
      count("rejected", "Refused, or would be", (row) => row.rejected),
      act,
    ], { key: (row) => `${row.app}\n${row.rule}\n${row.mode}`, empty: "No statement has come yet.", search: (row) => `${row.app} ${row.rule}`, sort: ["rate", "descending"] });
  }

  bar(cell, value) {
    if (!cell.firstChild) cell.append(el("span"), el("meter", { min: 0, "aria-hidden": "true" }));
    const [said, meter] = cell.children;
    text(said, value);
    const most = Math.max(1, this.longest ?? 1);
    if (meter.max !== most) meter.max = most;
    if (meter.value !== value) meter.value = value;
  }

  begin() {
    for (const plot of this.plots) plot.begin();
    this.setRange(range());
    this.insights.begin();
    this.update();
  }

  end() {
    for (const plot of this.plots) plot.end();
    this.rules.end();
    this.insights.end();
  }

  setRange(seconds) {
    setRange(seconds);
    for (const one of this.ranges) attribute(one, "aria-pressed", String(Number(one.dataset.seconds) === seconds));
  }

  pick(signal) {
    this.signal = signal;
    const known = clusterOf(this.name)?.signals.find((one) => one.signal === signal);
    const format = known?.unit === "s" ? "s" : "count";
    for (const one of this.lag.series) one.format = format;
    text(this.lag.heading, `${signal} against its threshold`);
    this.lag.title = `${signal} against its threshold`;
    this.lag.legend[0].node.firstChild.nodeValue = signal;
    this.lag.series[0].label = signal;
    if (this.lag.plot) this.lag.rebuild();
  }

  /** The signals to choose from; lag comes first. */
  pickers(signals) {
    const names = signals.map((signal) => signal.signal);
    if (this.known?.join("\n") === names.join("\n")) return;
    this.known = names;
    this.picker.replaceChildren(...names.map((name) => el("option", { value: name }, name)));
    show(this.picker, names.length > 1);
    if (!names.includes(this.signal)) this.pick(names.includes("lag") ? "lag" : names[0]);
    this.picker.value = this.signal ?? "";
  }

  update() {
    const cluster = clusterOf(this.name);
    if (!cluster) return;
    this.pickers(cluster.signals);
    this.updateHead(cluster);
    this.longest = Math.max(1, ...cluster.throttled.map((row) => row.waiting));
    this.held.table.set(cluster.throttled, cluster.throttled_total);
    text(this.held.panel.note, cluster.throttled_total === 0 ? "" : plural(cluster.throttled_total, "identity", "identities"));
    this.optional(this.starved, cluster.starved, cluster.starved.length);
    this.optional(this.waiting, cluster.waiting, cluster.waiting_total);
    this.optional(this.refused, cluster.refused, cluster.refused_total);
    this.optional(this.budgets, cluster.budgets, cluster.budgets.length);
    this.optional(this.guards, cluster.guards, cluster.guards_total);
    this.optional(this.quarantine, cluster.quarantine, cluster.quarantine.length);
    this.optional(this.around, cluster.bypass, cluster.bypass.length);
    this.servers.table.set(servers(cluster));
    this.signals.table.set(cluster.signals);
    this.rules.update();
    this.fetchApps();
    for (const plot of this.plots) plot.draw();
  }

  optional({ table, panel: made }, rows, total) {
    show(made.node, rows.length > 0);
    table.set(rows, total);
  }

  updateHead(cluster) {
    const { tone, label, sentence } = headline(cluster);
    text(this.pill, label);
    attribute(this.pill, "data-tone", tone);
    text(this.sentence, sentence);
    if (this.tone !== null && (this.tone === "bad") !== (tone === "bad")) actions.announce(`${this.name}: ${label}. ${sentence}`);
    this.tone = tone;
    const lag = cluster.signals.find((signal) => signal.signal === "lag");
    const trail = live.trails.get(this.name);
    const last = (key) => trail?.columns[key].at(-1);
    const { pace } = cluster;
    const values = {
      Waiting: cluster.waiting_total,
      "Held up": cluster.throttled_total,
      Lag: lag ? amount(lag.value, lag.unit) : "–",
      Pace: pace.per_second === null ? "–" : `${short(pace.per_second)} ${pace.unit}/s`,
      Served: `${short(last("served"))}/s`,
      Refused: `${short(last("refused"))}/s`,
      "At the server": cluster.in_flight,
      Connections: cluster.client_connections,
      Mode: cluster.mode,
    };
    for (const [key, value] of Object.entries(values)) text(key === "Held up" ? this.jump : this.facts[key].value, value);
    attribute(this.jump, "aria-label", `${plural(cluster.throttled_total, "identity", "identities")} held up: show them`);
    attribute(this.facts.Lag.value, "data-tone", lag && !lag.open ? "bad" : null);
    attribute(this.facts.Waiting.value, "data-tone", cluster.waiting_total > 0 ? "warn" : null);
    attribute(this.facts.Refused.value, "data-tone", last("refused") > 0 ? "warn" : null);
    this.updateNotes(cluster);
  }

  updateNotes(cluster) {
    const { status } = live.frame;
    const said = [...status.not_ready.map((one) => `Not ready: ${one}`), ...status.notes];
    for (const one of cluster.cut_overs) said.push(`A cut-over of gh-ost holds the lock on ${one.schema}.${one.table} for ${span(one.for_s)}.`);
    if (cluster.primary.heartbeat_blocked) said.push(`The heartbeat waits: ${cluster.primary.heartbeat_blocked}.`);
    if (this.said === said.join("\n")) return;
    this.said = said.join("\n");
    this.notes.replaceChildren(...said.map((one) => el("li", {}, one)));
    show(this.notes, said.length > 0);
  }

  async fetchApps() {
    const every = this.apps.table.rows.length > 500 ? 4 * APPS_EVERY_MS : APPS_EVERY_MS;
    if (this.isFetching || Date.now() - (this.fetched ?? 0) < every || document.hidden) return;
    this.isFetching = true;
    try {
      const answer = await fetch("/api/v1/apps");
      if (answer.ok) this.takeApps(await answer.json());
    } catch {
      // The stream tells that Sluice is lost.
    }
    this.fetched = Date.now();
    this.isFetching = false;
  }

  takeApps({ uptime_s: uptime, apps }) {
    const before = this.counts ?? new Map();
    const seconds = uptime - (this.uptime ?? uptime);
    if (this.uptime === uptime) return;
    this.counts = new Map();
    const rows = apps.filter((row) => row.cluster === this.name);
    for (const row of rows) {
      const key = `${row.app}\n${row.rule}\n${row.mode}`;
      const all = row.admitted + row.rejected;
      this.counts.set(key, all);
      if (seconds > 0 && before.size > 0) row.rate = Math.max(0, all - (before.get(key) ?? 0)) / seconds;
    }
    this.uptime = uptime;
    this.apps.table.set(rows);
    text(this.apps.panel.note, plural(new Set(rows.map((row) => row.app)).size, "identity", "identities"));
  }
}

function starvedNow({ kind, blocked, received_of_share: part }) {
  if (kind === "below_share" && part !== null) return `gets ${Math.round(part * 100)} % of its fair share`;
  return blocked ? "blocked" : "let through";
}

function ofLimit(limit) {
  if (limit === null) return "";
  return limit < 1 ? ` of 1, ${Math.round(limit * 100)} % of the time` : ` of ${limit}`;
}

function passedWords({ app, rule, passage, count }) {
  const how = { exempt: "exempt", ungated: rule ? "not gated" : "no rule" }[passage];
  const by = [how, rule && `rule ${rule}`].filter(Boolean).join(", ");
  return `${app}${by ? ` (${by})` : ""}: ${count}`;
}

function servers(cluster) {
  const { primary } = cluster;
  const tones = { answers: "good", silent: "bad" };
  const first = {
    server: primary.server, role: "primary", lag_s: null, for_s: null,
    says: `primary, ${primary.state.replaceAll("_", " ")}`, tone: tones[primary.state] ?? null,
    trouble: [primary.error, primary.unreached && `not reached: ${primary.unreached}`].filter(Boolean).join("; "),
  };
  const isBad = (state) => ["unreachable", "no_data"].includes(state) || state.endsWith("_stopped");
  const slowest = live.trails.get(cluster.cluster)?.slowest;
  const others = cluster.replicas.map((replica) => ({
    server: replica.server, role: "replica", lag_s: replica.lag_s, for_s: replica.for_s,
    says: `${replica.server === slowest && cluster.replicas.length > 1 ? "slowest, " : ""}${replica.state.replaceAll("_", " ")}${replica.counts || replica.state === "counted" ? "" : ", left out"}`,
    tone: isBad(replica.state) ? "bad" : replica.state === "counted" ? "good" : null,
    trouble: [replica.error, replica.advice].filter(Boolean).join("; "),
  }));
  return [first, ...others];
}

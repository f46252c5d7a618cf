// The page of one identity: how it stands, its rules, and its history where Sluice keeps one.

import * as actions from "./actions.js";
import { button, el, panel, show, text } from "./dom.js";
import { Insights } from "./insights.js";
import { refusedListing } from "./limits.js";
import { listing } from "./listing.js";
import { cluster as clusterOf, live } from "./live.js";
import { Plot } from "./plots.js";
import { Rules } from "./rules.js";
import { amount, clock, heldSentence, span, why } from "./words.js";

const EVERY_MS = 2000;
const HISTORY_EVERY_MS = 30000;
const WHY_EVERY_MS = 5000;

export class IdentityPage {
  constructor(clusterName, app) {
    this.cluster = clusterName;
    this.app = app;
    this.trail = { x: [], waiting: [], passed: [], refused: [] };
    this.pill = el("span", { class: "pill" });
    this.sentence = el("p", { class: "say" });
    const act = (effect, label) => button(label, () => actions.change(effect, app, clusterName), { "data-effect": effect });
    this.head = el(
      "header",
      { class: "head" },
      el("p", { class: "crumb" }, el("a", { href: `#/cluster/${encodeURIComponent(clusterName)}` }, `← cluster ${clusterName}`)),
      el("div", { class: "title" }, el("h1", { class: "name" }, app === "" ? "(empty)" : app), this.pill),
      this.sentence,
      el("div", { class: "buttons start" }, act("hold", "Hold …"), act("throttle", "Throttle …"), act("exempt", "Exempt …")),
    );
    this.plots = [
      new Plot("Waiting", [{ label: "statements", colour: "limit", format: "count", fill: true }], () => ({ x: this.trail.x, columns: [this.trail.waiting], marks: [] })),
      new Plot("Statements a second", [{ label: "passed", colour: "pace", format: "rate" }, { label: "refused", colour: "bad", format: "rate" }], () => ({ x: this.trail.x, columns: [this.trail.passed, this.trail.refused], marks: [] })),
    ];
    this.timeline = panel("Since this page is open", "own-time", el("div", { class: "plots" }, ...this.plots.map((plot) => plot.node)));
    this.rules = new Rules(clusterName, app);
    this.counts = listing("By rule, since the start", "own-counts", [
      { key: "rule", label: "Rule", class: "name", text: (row) => row.rule, sort: (row) => row.rule },
      { key: "mode", label: "Mode", text: (row) => row.mode },
      { key: "admitted", label: "Passed", class: "number", text: (row) => row.admitted.toLocaleString("en"), sort: (row) => row.admitted },
      { key: "delayed", label: "Delayed", class: "number", text: (row) => row.delayed.toLocaleString("en"), sort: (row) => row.delayed },
      { key: "rejected", label: "Refused, or would be", class: "number", text: (row) => row.rejected.toLocaleString("en"), sort: (row) => row.rejected },
    ], { key: (row) => `${row.rule}\n${row.mode}`, empty: "No statement under this name; names with ids are counted without them." });
    this.waiting = listing("Connections that wait", "own-waiting", [
      { key: "id", label: "Id", class: "number", text: (row) => row.connection_id },
      { key: "user", label: "User", class: "name", text: (row) => row.user },
      { key: "client", label: "Client", class: "name", text: (row) => row.client },
      { key: "waited", label: "Waited", class: "number", text: (row) => span(row.waited_s), sort: (row) => row.waited_s },
      { key: "left", label: "Refused in", class: "number", text: (row) => span(row.left_s), sort: (row) => row.left_s },
      { key: "why", label: "Why", class: "wide", text: why },
    ], { key: (row) => `${row.connection_id}\n${row.client}` });
    this.refused = refusedListing(clusterName, "own-refused", true);
    this.buildHistory();
    this.insights = new Insights(clusterName, app);
    this.chains = el("div", { class: "chains" });
    this.why = panel("Why", "why", this.chains);
    this.why.node.hidden = true;
    this.node = el("div", { class: "page" }, this.head, this.why.node, this.history.node, this.timeline.node, this.refused.panel.node, this.rules.panel.node, this.waiting.panel.node, this.counts.panel.node, this.insights.panel.node);
  }

  buildHistory() {
    this.hour = { x: [], columns: [[], []], marks: [] };
    this.tallies = { x: [], columns: [[], [], []], marks: [] };
    const hour = [
      new Plot("Waits of the last hour", [{ label: "p99", colour: "limit", format: "s" }, { label: "longest", colour: "mark", format: "s", dash: [3, 3] }], () => this.hour, { span: 3600, least: 0.01 }),
      new Plot("Statements of the last hour", [{ label: "passed", colour: "pace", format: "count" }, { label: "delayed", colour: "limit", format: "count" }, { label: "refused", colour: "bad", format: "count" }], () => this.tallies, { span: 3600 }),
    ];
    this.plots.push(...hour);
    this.list = el("ul", { class: "sentences" });
    this.intervals = listing("When it was held", "own-held", [
      { key: "began", label: "From", class: "number", text: (row) => clock(Date.parse(row.began) / 1000), sort: (row) => row.began },
      { key: "lasted", label: "For", class: "number", text: (row) => `${span(row.lasted_s)}${row.ended ? "" : ", goes on"}`, sort: (row) => row.lasted_s },
      { key: "rule", label: "Rule", class: "name", text: (row) => row.rule, sort: (row) => row.rule },
      { key: "reason", label: "Why", class: "wide", text: (row) => (row.signal ? `${row.reason}: ${row.signal} up to ${amount(row.highest, row.unit)}${row.server ? ` at ${row.server}` : ""}` : row.reason) },
      { key: "delayed", label: "Delayed", class: "number", text: (row) => row.delayed, sort: (row) => row.delayed },
      { key: "wait", label: "At most", class: "number", text: (row) => span(row.wait_max_s), sort: (row) => row.wait_max_s },
      { key: "refused", label: "Refused", class: "number", text: (row) => row.refused, sort: (row) => row.refused },
    ], { key: (row) => `${row.began}\n${row.rule}` });
    this.history = panel("The last hour", "history", this.list, el("div", { class: "plots" }, ...hour.map((plot) => plot.node)), this.intervals.table.node);
    this.history.node.hidden = true;
  }

  begin() {
    for (const plot of this.plots) plot.begin();
    this.insights.begin();
    this.fetchHistory();
    this.fetchWhy();
    this.update();
  }

  end() {
    for (const plot of this.plots) plot.end();
    this.rules.end();
    this.insights.end();
  }

  update() {
    const cluster = clusterOf(this.cluster);
    if (!cluster) return;
    const held = cluster.throttled.filter((row) => row.app === this.app);
    const waiting = held.reduce((sum, row) => sum + row.waiting, 0);
    const isHeld = held.length > 0;
    const refused = cluster.refused.filter((row) => row.app === this.app);
    text(this.pill, waiting > 0 ? `${waiting} waiting` : isHeld ? "held up" : refused.length > 0 ? "refused of late" : "passes");
    this.pill.dataset.tone = isHeld || refused.length > 0 ? "warn" : "good";
    const said = held.map((row) => `Under rule ${row.rule}: ${heldSentence(row)}.`);
    const last = Math.min(...refused.map((row) => row.last_s));
    const lately = refused.length > 0 ? `Nothing of it waits; it was last refused ${span(last)} ago.` : "Nothing of it waits, and nothing of it was refused lately.";
    text(this.sentence, said.join(" ") || lately);
    show(this.refused.panel.node, refused.length > 0);
    this.refused.table.set(refused);
    const own = cluster.waiting.filter((row) => row.app === this.app);
    show(this.waiting.panel.node, own.length > 0);
    this.waiting.table.set(own, waiting);
    this.rules.update();
    this.fetchCounts(waiting);
    if (Date.now() - this.told > HISTORY_EVERY_MS) this.fetchHistory();
    if (Date.now() - this.whyTold > WHY_EVERY_MS) this.fetchWhy();
  }

  async fetchCounts(waiting) {
    if (this.isFetching || Date.now() - (this.fetched ?? 0) < (this.isLong ? 6 * EVERY_MS : EVERY_MS) || document.hidden) return;
    this.isFetching = true;
    try {
      const answer = await fetch("/api/v1/apps");
      if (answer.ok) this.take(await answer.json(), waiting);
    } catch {
      // The stream tells that Sluice is lost.
    }
    this.fetched = Date.now();
    this.isFetching = false;
  }

  take({ uptime_s: uptime, apps }, waiting) {
    this.isLong = apps.length > 500;
    const rows = apps.filter((row) => row.cluster === this.cluster && row.app === this.app);
    this.counts.table.set(rows);
    const sum = (key) => rows.reduce((all, row) => all + row[key], 0);
    const [passed, refused] = [sum("admitted"), sum("rejected")];
    const { last } = this;
    if (last && uptime === last.uptime) return;
    this.last = { uptime, passed, refused };
    const seconds = last ? uptime - last.uptime : 0;
    const rate = (is, was) => (seconds > 0 ? Math.max(0, is - was) / seconds : null);
    this.trail.x.push(live.frame.unix_s);
    this.trail.waiting.push(waiting);
    this.trail.passed.push(last ? rate(passed, last.passed) : null);
    this.trail.refused.push(last ? rate(refused, last.refused) : null);
    for (const plot of this.plots) plot.draw();
  }

  /** The chain of what waits longest, of the last refusal, of the longest wait: as `sluice why` has them. */
  async fetchWhy() {
    if (this.app === "" || document.hidden) return;
    this.whyTold = Date.now();
    let statements = [];
    try {
      const answer = await fetch(`/api/v1/why/${encodeURIComponent(this.app)}`);
      if (answer.ok) ({ statements } = await answer.json());
    } catch {
      // The stream tells that Sluice is lost.
      return;
    }
    const told = statements.filter((one) => one.cluster === this.cluster && one.app === this.app);
    show(this.why.node, told.length > 0);
    const lines = told.map(({ sentences }) => sentences);
    const known = JSON.stringify(lines);
    // What has not changed stays as it is, for who reads or marks it.
    if (known === this.whyKnown) return;
    this.whyKnown = known;
    const chain = (sentences) => el("ul", { class: "sentences" }, ...sentences.map((one) => el("li", {}, one)));
    this.chains.replaceChildren(...lines.map(chain));
  }

  /** Sentences first, as `sluice history` has them; then when it was held, and the parts of the hour. */
  async fetchHistory() {
    this.told = Date.now();
    try {
      const asked = new URLSearchParams({ app: this.app, cluster: this.cluster, since: "1h ago" });
      const answer = await fetch(`/api/v1/history?${asked}`);
      this.known = answer.ok ? await answer.json() : null;
      // This version keeps none.
      if (answer.status === 404) this.told = Infinity;
    } catch {
      this.known = null;
    }
    const { sentences = [], held = [], parts = [] } = this.known ?? {};
    show(this.history.node, sentences.length > 0 || parts.length > 0);
    this.list.replaceChildren(...sentences.map((one) => el("li", {}, one)));
    this.intervals.table.set(held);
    show(this.intervals.table.node, held.length > 0);
    const column = (key) => parts.map((part) => part[key]);
    this.hour = { x: parts.map((part) => Date.parse(part.at) / 1000), columns: [column("wait_p99_s"), column("wait_max_s")], marks: [] };
    this.tallies = { x: this.hour.x, columns: [column("admitted"), column("delayed"), column("refused")], marks: [] };
    for (const plot of this.plots) plot.draw();
  }
}

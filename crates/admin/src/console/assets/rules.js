// The rules of a cluster. There may be thousands: they are fetched when they have changed, and their
// hits come with the stream.

import * as actions from "./actions.js";
import { attribute, button, panel, show, text } from "./dom.js";
import { live, now } from "./live.js";
import { namesOf } from "./names.js";
import { Table } from "./table.js";
import { countdown } from "./words.js";

const REFRESH_MS = 60000;

export function endsIn(rule) {
  return rule.expires_at ? Date.parse(rule.expires_at) / 1000 - now() : Infinity;
}

export class Rules {
  /** Of one cluster; with an app only those made at runtime for it. */
  constructor(clusterName, app = null) {
    this.cluster = clusterName;
    this.app = app;
    this.rules = [];
    this.revision = undefined;
    this.fetched = 0;
    this.isFetching = false;
    this.fault = "";
    this.panel = panel(app ? "Rules made for it" : "Rules", app ? "own-rules" : "rules");
    this.table = new Table(this.columns(), {
      key: (rule) => rule.rule,
      caption: "Rules, the first that matches decides",
      empty: app ? "None." : "No rules: everything passes.",
      search: (rule) => `${rule.rule} ${rule.does} ${rule.author ?? "file"} ${rule.reason}`,
    });
    if (this.table.filter) this.panel.tools.append(this.table.filter);
    this.panel.node.append(this.table.node);
    this.again = () => this.fetch();
    document.addEventListener("rules-changed", this.again);
  }

  columns() {
    const left = (rule) => {
      const seconds = endsIn(rule);
      if (rule.standing === "off_schedule") return "off schedule";
      return seconds === Infinity ? "permanent" : countdown(seconds);
    };
    return [
      { key: "place", label: "#", class: "number", text: (rule) => rule.place + 1, sort: (rule) => rule.place },
      { key: "rule", label: "Rule", class: "name", text: (rule) => rule.rule, sort: (rule) => rule.rule },
      { key: "does", label: "Does", class: "wide", text: (rule) => rule.does, sort: (rule) => rule.effect, tone: (rule) => (rule.effect === "hold" || rule.effect === "deny" ? "bad" : null) },
      { key: "mode", label: "Mode", text: (rule) => rule.mode },
      { key: "hits", label: "Hits", class: "number", text: (rule) => hits(rule).toLocaleString("en"), sort: hits },
      { key: "left", label: "Ends in", class: "number left", text: left, sort: endsIn, tone: (rule) => (endsIn(rule) < 60 ? "warn" : null) },
      { key: "by", label: "By", text: (rule) => rule.author ?? "the file", sort: (rule) => rule.author ?? "" },
      { key: "reason", label: "Reason", class: "wide", text: (rule) => rule.reason || "–" },
      { key: "lift", label: "", class: "act", draw: (cell, rule) => this.act(cell, rule) },
    ];
  }

  act(cell, rule) {
    if (rule.source !== "runtime") return;
    if (!cell.firstChild) cell.append(button("Lift", () => actions.lift(cell.rule)));
    cell.rule = rule;
    attribute(cell.firstChild, "aria-label", `Lift ${rule.rule}`);
  }

  async fetch() {
    if (this.isFetching) {
      this.isStale = true;
      return;
    }
    this.isFetching = true;
    this.isStale = false;
    const wanted = live.trails.get(this.cluster)?.revision;
    try {
      const source = this.app ? "&source=runtime" : "";
      const answer = await fetch(`/api/v1/rules?cluster=${encodeURIComponent(this.cluster)}${source}`);
      if (!answer.ok) throw new Error(`status ${answer.status}`);
      const rules = (await answer.json()).rules;
      rules.forEach((rule, place) => { rule.place = place; });
      this.rules = this.app ? rules.filter((rule) => namesOf(this.app).includes(rule.app)) : rules;
      this.revision = wanted;
      this.fault = "";
    } catch (error) {
      this.fault = `The rules could not be read (${error.message}).`;
    }
    this.fetched = Date.now();
    this.isFetching = false;
    this.draw();
    if (this.isStale) this.fetch();
  }

  update() {
    const revision = live.trails.get(this.cluster)?.revision;
    if (revision !== this.revision || Date.now() - this.fetched > REFRESH_MS) {
      // After a fault not every second.
      if (!this.fault || Date.now() - this.fetched > 5000) this.fetch();
    }
    this.draw();
  }

  draw() {
    const standing = this.rules.filter((rule) => endsIn(rule) > -60);
    this.table.set(standing);
    if (this.app) show(this.panel.node, standing.length > 0);
    const made = standing.filter((rule) => rule.source === "runtime").length;
    text(this.panel.note, this.fault || `${standing.length} in order, the first that matches decides${made ? `; ${made} made at runtime` : ""}`);
  }

  end() {
    document.removeEventListener("rules-changed", this.again);
  }
}

function hits(rule) {
  return Math.max(live.hits.get(rule.rule) ?? 0, rule.hits);
}

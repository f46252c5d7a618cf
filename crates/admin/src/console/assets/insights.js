// What statements cost, by digest and by other things, where this Sluice tells.

import { attribute, button, el, panel, show, text } from "./dom.js";
import { Table } from "./table.js";
import { short, span } from "./words.js";

const EVERY_MS = 10000;
const BYS = { digest: "by digest", app: "by app", user: "by user", table: "by table" };
const SORTS = { time: "most time", count: "most statements", p99: "slowest (p99)", queued: "longest queued", refused: "most refused", errors: "most errors", rows_affected: "most rows changed" };
const WINDOWS = ["10m", "1h", "6h"];

function subject(row) {
  return row.digest_text || row.digest || row.table || row.user || row.app || "unknown";
}

function seconds(value) {
  if (value === null || value === undefined) return "–";
  return value < 1 ? `${short(value * 1000)} ms` : span(value);
}

function change(row) {
  const { change: how, before } = row;
  if (!how || how === "same") return "–";
  const mean = [before?.time_mean_s, row.time_mean_s];
  if (how === "slower" && mean[0] && mean[1]) return `slower, ${(mean[1] / mean[0]).toFixed(1)} ×`;
  if ((how === "grown" || how === "shrunk") && before?.count) return `${how}, ${(row.count / before.count).toFixed(1)} ×`;
  return how;
}

export class Insights {
  constructor(clusterName, app = null) {
    Object.assign(this, { cluster: clusterName, app, by: "digest", sort: "time", window: WINDOWS[0], compare: false });
    this.panel = panel("What statements cost", "insights");
    this.panel.node.hidden = true;
    const choose = (key, label, options) => {
      const select = el("select", { class: "quiet", "aria-label": label, onchange: () => this.choose({ [key]: select.value }) }, ...Object.entries(options).map(([value, words]) => el("option", { value }, words)));
      return select;
    };
    this.windows = WINDOWS.map((window) => button(window, () => this.choose({ window }), { class: "quiet" }));
    this.comparing = button("Compare with before", () => this.choose({ compare: !this.compare }), { class: "quiet" });
    this.table = new Table(this.columns(), {
      key: (row) => [row.digest, row.app, row.schema, row.user, row.table].join("\n"),
      caption: "What statements cost",
      empty: "Nothing in this window.",
      search: (row) => [subject(row), row.app, row.schema, row.user, ...(row.tables ?? [])].join(" "),
    });
    this.panel.tools.append(choose("by", "What makes a row", BYS), choose("sort", "Order", SORTS), this.comparing, el("div", { class: "choice", role: "group", "aria-label": "Window" }, ...this.windows), this.table.filter);
    this.panel.node.append(this.table.node);
  }

  columns() {
    const number = (key, label, words = (value) => (value ?? 0).toLocaleString("en")) => ({ key, label, class: "number", text: (row) => words(row[key]), sort: (row) => row[key] ?? -1 });
    return [
      { key: "subject", label: "Statement, or who", class: "name digest", text: subject, sort: subject },
      { key: "app", label: "App", class: "name", text: (row) => row.app ?? "–", sort: (row) => row.app ?? "" },
      number("count", "Statements"),
      number("share", "Of the time", (value) => `${((value ?? 0) * 100).toFixed(1)} %`),
      number("time_mean_s", "Mean", seconds),
      number("time_p99_s", "p99", seconds),
      number("queued_total_s", "Queued", seconds),
      number("refused", "Refused"),
      number("errors", "Errors"),
      number("rows_affected", "Rows changed"),
      { key: "change", label: "Against before", class: "change", text: (row) => change(row), sort: (row) => row.change ?? "", tone: (row) => ({ slower: "bad", new: "warn" })[row.change] ?? null },
    ];
  }

  begin() {
    this.fetch();
    this.timer = setInterval(() => { if (!document.hidden) this.fetch(); }, EVERY_MS);
  }

  end() {
    clearInterval(this.timer);
  }

  choose(what) {
    Object.assign(this, what);
    this.fetch();
  }

  async fetch() {
    const asked = new URLSearchParams({ by: this.by, sort: this.sort, window: this.window, cluster: this.cluster, limit: "500" });
    if (this.app !== null) asked.set("app", this.app);
    if (this.compare) asked.set("compare", "previous");
    let told = null;
    try {
      const answer = await fetch(`/api/v1/insights?${asked}`);
      if (answer.ok) told = await answer.json();
      else if (answer.status === 404) this.end();
    } catch {
      return;
    }
    const rows = told?.rows ?? [];
    show(this.panel.node, told !== null && (rows.length > 0 || !this.panel.node.hidden));
    this.panel.node.classList.toggle("compares", this.compare);
    attribute(this.comparing, "aria-pressed", String(this.compare));
    this.windows.forEach((one, index) => attribute(one, "aria-pressed", String(WINDOWS[index] === this.window)));
    this.table.set(rows, told?.rows_total);
    if (told) text(this.panel.note, `${told.from.slice(11, 16)} to ${told.to.slice(11, 16)} UTC`);
  }
}

// Statements by digest, where this Sluice tells.

import { button, el, panel, show, text } from "./dom.js";
import { Table } from "./table.js";
import { short } from "./words.js";

const EVERY_MS = 10000;
const SORTS = ["count", "time", "wait", "errors", "rows"];
const WINDOWS = ["10m", "1h"];

/** The rows of an answer, whatever its list is called. */
export function rowsOf(answer) {
  if (Array.isArray(answer)) return answer;
  return Object.values(answer).find((value) => Array.isArray(value) && value.every((row) => row && typeof row === "object")) ?? [];
}

function cellText(value) {
  if (value === null || value === undefined) return "–";
  if (Array.isArray(value)) return value.join(", ");
  if (typeof value === "object") return JSON.stringify(value);
  if (typeof value === "number") return Number.isInteger(value) ? value.toLocaleString("en") : short(value);
  return String(value);
}

/** Columns for what rows have. */
export function columnsOf(rows) {
  const keys = [...new Set(rows.flatMap((row) => Object.keys(row)))].filter((key) => typeof rows[0][key] !== "object" || Array.isArray(rows[0][key]));
  return keys.map((key) => {
    const isNumber = rows.some((row) => typeof row[key] === "number");
    return {
      key, label: key.replaceAll("_", " "), class: isNumber ? "number" : key === "text" || key === "digest_text" ? "wide name" : "name",
      text: (row) => cellText(row[key]), sort: (row) => row[key] ?? (isNumber ? -Infinity : ""),
    };
  });
}

export class Insights {
  constructor(clusterName, app = null) {
    this.cluster = clusterName;
    this.app = app;
    this.sort = SORTS[0];
    this.window = WINDOWS[0];
    this.panel = panel("Statements by digest", "insights");
    this.panel.node.hidden = true;
    this.windows = WINDOWS.map((window) => button(window, () => this.choose({ window }), { class: "quiet" }));
    this.panel.tools.append(el("div", { class: "choice", role: "group", "aria-label": "Window" }, ...this.windows));
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
    let rows = [];
    try {
      const asked = new URLSearchParams({ by: "digest", sort: this.sort, window: this.window });
      const answer = await fetch(`/api/v1/insights?${asked}`);
      if (!answer.ok) {
        // This version has none.
        show(this.panel.node, false);
        clearInterval(this.timer);
        return;
      }
      rows = rowsOf(await answer.json());
    } catch {
      return;
    }
    const own = rows.filter((row) => (row.cluster ?? this.cluster) === this.cluster && (this.app === null || (row.app ?? this.app) === this.app));
    show(this.panel.node, own.length > 0);
    this.windows.forEach((one, index) => one.setAttribute("aria-pressed", String(WINDOWS[index] === this.window)));
    if (own.length === 0) return;
    const columns = columnsOf(own);
    const shape = columns.map((column) => column.key).join(" ");
    if (shape !== this.shape) {
      this.shape = shape;
      this.table?.node.remove();
      this.table = new Table(columns, { key: (row) => row.digest ?? JSON.stringify(row), caption: "Statements by digest", search: (row) => Object.values(row).join(" ") });
      this.panel.node.append(this.table.node);
    }
    this.table.set(own);
    text(this.panel.note, `the last ${this.window}`);
  }
}

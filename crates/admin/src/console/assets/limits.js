// What refuses statements beside gates: whom, and by what; how full budgets are; what guards have met.

import { el, text } from "./dom.js";
import { drawApp, listing } from "./listing.js";
import { countdown, refusedBy, span } from "./words.js";

const count = (key, label, of) => ({ key, label, class: "number", text: (row) => of(row).toLocaleString("en"), sort: of });
const name = (key, label) => ({ key, label, class: "name", text: (row) => row[key], sort: (row) => row[key] });

/** Whose statements were refused of late; on a page of one app without its name. */
export function refusedListing(clusterName, id, isOfOne = false) {
  const app = { key: "app", label: "Identity", class: "name", draw: (cell, row) => drawApp(cell, clusterName, row.app), sort: (row) => row.app };
  return listing("Who was refused in the last ten minutes, and by what", id, [
    ...(isOfOne ? [] : [app]),
    name("user", "User"),
    { key: "by", label: "Refused by", class: "wide", text: refusedBy, sort: refusedBy },
    { key: "reason", label: "Reason", class: "name", text: (row) => row.reason, sort: (row) => row.reason },
    count("count", "Statements", (row) => row.count),
    { key: "since", label: "Since", class: "number", text: (row) => `${span(row.for_s)} ago`, sort: (row) => row.for_s },
    { key: "last", label: "Last", class: "number", text: (row) => `${span(row.last_s)} ago`, sort: (row) => row.last_s, tone: (row) => (row.last_s < 5 ? "bad" : null) },
    { key: "why", label: "The last one", class: "name", draw: drawWhy },
  ], {
    key: (row) => [row.app, row.user, row.rule, row.reason, row.budget, row.guard, row.check, row.quarantine].join("\n"),
    search: (row) => `${row.app} ${row.user} ${row.reason} ${refusedBy(row)} ${row.last_id}`,
    sort: ["count", "descending"],
  });
}

/** The command that tells the whole of it. */
function drawWhy(cell, row) {
  if (!cell.firstChild) cell.append(el("code"));
  text(cell.firstChild, `sluice why ${row.last_id}`);
}

export function budgetListing() {
  return listing("Budgets", "budgets", [
    name("budget", "Budget"),
    { key: "mode", label: "Mode", text: (row) => row.mode },
    { key: "allows", label: "Allows", class: "wide", text: (row) => row.allows },
    { key: "fill", label: "Full", class: "number bar", draw: drawFill, sort: (row) => row.fill ?? -1, tone: (row) => (row.fill >= 1 || row.waiting > 0 ? "bad" : null) },
    count("in_use", "At the server", (row) => row.in_use),
    count("waiting", "Waiting", (row) => row.waiting),
    count("exceeded", "Had no room", (row) => row.exceeded),
    { key: "reason", label: "Reason", class: "wide", text: (row) => row.reason || "–" },
  ], { key: (row) => row.budget, search: (row) => `${row.budget} ${row.allows}` });
}

function drawFill(cell, row) {
  if (!cell.firstChild) cell.append(el("span"), el("meter", { min: 0, max: 1, "aria-hidden": "true" }));
  const [said, meter] = cell.children;
  text(said, row.fill === null ? "–" : `${Math.round(row.fill * 100)} %`);
  const value = Math.min(1, row.fill ?? 0);
  if (meter.value !== value) meter.value = value;
}

export function guardListing() {
  return listing("Guards, since the start", "guards", [
    name("guard", "Guard"),
    { key: "check", label: "Check", class: "name", text: (row) => (row.limit === "" ? row.check : `${row.check}: ${row.limit}`), sort: (row) => row.check },
    { key: "mode", label: "Mode", text: (row) => row.mode },
    count("hits", "Objected", (row) => row.hits),
    count("unjudged", "Not judged", (row) => row.unjudged),
    { key: "reason", label: "Reason", class: "wide", text: (row) => row.reason || "–" },
  ], { key: (row) => `${row.guard}\n${row.check}\n${row.mode}`, search: (row) => `${row.guard} ${row.check}` });
}

export function quarantineListing(clusterName) {
  return listing("Quarantine: a statement like it ran away", "quarantine", [
    name("id", "Id"),
    { key: "app", label: "Identity", class: "name", draw: (cell, row) => drawApp(cell, clusterName, row.app), sort: (row) => row.app },
    name("rule", "Rule"),
    { key: "like", label: "Like", class: "name", text: (row) => `${row.by} ${row.hash}` },
    { key: "becomes", label: "Becomes", text: (row) => (row.action === "kill" ? "refused" : "one at a time") },
    { key: "left", label: "Left", class: "number", text: (row) => countdown(row.left_s), sort: (row) => row.left_s },
  ], { key: (row) => row.id });
}

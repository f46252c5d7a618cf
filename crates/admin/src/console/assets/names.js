// Whom a rule can be about, of a name as it is shown: as `sluice top` has it. Counts show names without
// their levels that are numbers or UUIDs, and a client may call itself what is a pattern in a rule.

import { printable } from "./dom.js";

/** What metrics call the apps beyond `metrics.max_apps`, and those without a name. */
const OTHER = "other";
/** Longer names are cut by then, in bytes. */
const SHOWN_LEN_MAX = 128;

/** Its levels, the last one first, then all of it; none where a rule would be about somebody else. */
export function namesOf(app) {
  if (app.endsWith("*")) return [];
  const names = app.split(":").reverse().filter(isWhole);
  if (app.includes(":") && isWhole(app)) names.push(app);
  return [...new Set(names)];
}

function isWhole(name) {
  const isCut = new TextEncoder().encode(name).length >= SHOWN_LEN_MAX;
  return name !== "" && name !== OTHER && !name.endsWith("*") && !printable(name).includes("\ufffd") && !isCut;
}

/** Who else comes under a rule about this name. */
export function reach(name) {
  return name.includes(":")
    ? `It is about the app ${name} alone, without further levels.`
    : `It is about every app with the level ${name}, also of other users.`;
}

// Numbers and reasons in words, as `sluice status` has them.

export function span(seconds) {
  if (seconds === null || seconds === undefined) return "–";
  if (seconds < 10) return `${seconds.toFixed(2)} s`;
  if (seconds < 120) return `${Math.floor(seconds)} s`;
  if (seconds < 7200) return `${Math.floor(seconds / 60)} min`;
  if (seconds < 172800) return `${Math.floor(seconds / 3600)} h ${Math.floor((seconds % 3600) / 60)} min`;
  return `${Math.floor(seconds / 86400)} d ${Math.floor((seconds % 86400) / 3600)} h`;
}

/** A time that runs down, to the second. */
export function countdown(seconds) {
  if (seconds <= 0) return "ended";
  const whole = Math.ceil(seconds);
  const two = (number) => String(number).padStart(2, "0");
  const [days, hours] = [Math.floor(whole / 86400), Math.floor((whole % 86400) / 3600)];
  const rest = `${two(Math.floor((whole % 3600) / 60))}:${two(whole % 60)}`;
  if (days > 0) return `${days} d ${two(hours)}:${rest}`;
  return hours > 0 ? `${hours}:${rest}` : rest;
}

export function amount(value, unit = "") {
  if (value === null || value === undefined) return "no value";
  return `${Number(value.toFixed(3))}${unit ? ` ${unit}` : ""}`;
}

/** Digits that fit a small place: 12.3 k. */
export function short(value) {
  if (value === null || value === undefined) return "–";
  const size = Math.abs(value);
  if (size >= 1e6) return `${(value / 1e6).toFixed(size >= 1e7 ? 0 : 1)} M`;
  if (size >= 1e4) return `${(value / 1e3).toFixed(size >= 1e5 ? 0 : 1)} k`;
  if (size >= 100 || Number.isInteger(value)) return value.toFixed(0);
  return value.toFixed(size >= 10 ? 1 : 2);
}

export function clock(unixSeconds) {
  const time = new Date(unixSeconds * 1000);
  return time.toLocaleTimeString("en-GB", { hour12: false });
}

export function plural(count, one, many = `${one}s`) {
  return `${count} ${count === 1 ? one : many}`;
}

const REASONS = {
  ratio: "its checks lose the dice of the rule",
  paced: "waits its turn at the pace that the gate allows",
  hold: "held: nothing passes until the rule ends or is lifted",
  deny: "denied",
  budget_concurrency: "the budget's concurrency is used up",
  budget_rate: "the budget's rate is used up",
  budget_share: "the budget's share is used up",
  budget_query: "the statement costs more than the budget allows",
  guard: "a guard stops it",
  quarantined: "quarantined",
  no_primary: "there is no primary",
  failover: "a failover is under way",
  queue_full: "the queue is full",
  timeout: "waited as long as it may",
  shutdown: "Sluice is shutting down",
};

/** Why something waits: the reason, with the signal behind it. */
export function why({ reason, signal, value, threshold, unit, budget, limit }) {
  if (!reason) return "nothing of it waits now";
  if (reason === "gate_closed" && signal) {
    return `${signal} is ${amount(value, unit)}, at or over its threshold of ${amount(threshold, unit)}`;
  }
  if (reason === "no_data" && signal) return `${signal} has no value, and its gate is shut without one`;
  if (budget) return `${REASONS[reason] ?? reason}: budget ${budget}`;
  if (reason === "paced" && limit === "speed") return "pauses, for its rule keeps it at a part of its own speed";
  if (reason === "paced" && limit) return `waits for ${limit} of its rule`;
  if (reason === "paced" && signal) return `waits its turn at the pace that ${signal} allows`;
  return REASONS[reason] ?? reason;
}

/** What has refused statements: the guard with its check, the budget, what is in quarantine, or the rule. */
export function refusedBy({ rule, budget, guard, check, quarantine }) {
  if (guard) return `guard ${guard}: ${check}`;
  if (budget) return `budget ${budget}`;
  if (quarantine) return `quarantine ${quarantine} of rule ${rule}`;
  return `rule ${rule}`;
}

/** One identity that is held, as a sentence. */
export function heldSentence(held) {
  const parts = [];
  if (held.waiting > 0) {
    const longest = held.oldest_s === null ? "" : `, the longest for ${span(held.oldest_s)}`;
    parts.push(`${plural(held.waiting, "statement waits", "statements wait")}${longest}: ${why(held)}`);
  } else {
    parts.push(`refused or gave up ${span(held.asked_s)} ago`);
  }
  if (held.for_s !== null && held.for_s !== undefined) parts.push(`nothing has passed for ${span(held.for_s)}`);
  return parts.join("; ");
}

/** How a cluster stands, as `{ tone, label, sentence }`. */
export function headline(cluster) {
  const gate = cluster.pace.gate;
  const shut = cluster.signals.filter((signal) => !signal.open && gate.includes(signal.signal));
  const held = cluster.throttled_total;
  const line = cluster.waiting_total > 0
    ? `${plural(cluster.waiting_total, "statement waits", "statements wait")}, of ${plural(held, "identity", "identities")}.`
    : held > 0 ? `${plural(held, "identity is", "identities are")} held up; nothing waits this moment.` : "Nobody waits.";
  if (gate.length === 0) return { tone: "plain", label: "No default gate", sentence: line };
  if (shut.length > 0) {
    const reasons = shut.map((signal) => signal.state === "no_data"
      ? `${signal.signal} has had no value for ${span(signal.for_s)}`
      : `${signal.signal} is ${amount(signal.value, signal.unit)}, threshold ${amount(signal.threshold, signal.unit)}, for ${span(signal.for_s)}`);
    return { tone: "bad", label: "Gate shut", sentence: `${reasons.join("; ")}. ${line}` };
  }
  const { per_second: pace, unit, governs } = cluster.pace;
  const speed = pace === null ? "" : `pace ${short(pace)} ${unit} a second${governs ? `, governed by ${governs}` : ""}. `;
  return { tone: held > 0 ? "warn" : "good", label: held > 0 ? `Gate open, ${held} held up` : "Gate open", sentence: `${speed}${line}` };
}

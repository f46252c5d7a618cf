// What Sluice tells, second by second, and what it told before: one stream for the whole page.

const HOUR_S = 3600;
const RATES = ["pace", "applied", "written", "served", "refused", "waiting", "in_flight", "oldest", "p50", "p99"];

/** Frames come every second; a stream without any for so long is dead, whatever the browser says. */
const SILENT_MS = 6000;
const RETRY_MS = [500, 1000, 1000, 2000, 3000];

export const live = {
  frame: null,
  trails: new Map(),
  hits: new Map(),
  isLost: false,
  lostSince: null,
  why: "",
  isOld: false,
};

const listeners = { frame: new Set(), link: new Set(), past: new Set() };
let source = null;
let build = null;
let silence = null;
let failures = 0;
let offset = 0;
let clockAhead = 0;

export function on(event, listener) {
  listeners[event].add(listener);
  return () => listeners[event].delete(listener);
}

function tell(event) {
  for (const listener of [...listeners[event]]) listener();
}

/** Unix time by Sluice's clock. */
export function now() {
  return Date.now() / 1000 + clockAhead;
}

export function cluster(name) {
  return live.frame?.status.clusters.find((known) => known.cluster === name);
}

export function connect() {
  source?.close();
  source = new EventSource("/api/v1/events");
  source.addEventListener("past", (event) => past(JSON.parse(event.data)));
  source.addEventListener("frame", (event) => frame(JSON.parse(event.data)));
  source.addEventListener("error", () => lost());
  watch();
}

function watch() {
  clearTimeout(silence);
  silence = setTimeout(() => lost(), SILENT_MS);
}

async function lost() {
  clearTimeout(silence);
  source?.close();
  source = null;
  if (!live.isLost) {
    live.isLost = true;
    live.lostSince = Date.now();
  }
  tell("link");
  const wait = RETRY_MS[Math.min(failures, RETRY_MS.length - 1)];
  failures += 1;
  live.why = await reason();
  tell("link");
  setTimeout(connect, wait);
}

/** A stream says nothing of why it was refused. */
async function reason() {
  try {
    const answer = await fetch("/api/v1/events?frames=0", { signal: AbortSignal.timeout(3000) });
    if (answer.ok) return "";
    const said = await answer.json();
    return [said.message, said.remedy].filter(Boolean).join(": ");
  } catch {
    return "";
  }
}

function timed({ at_s, unix_s }) {
  const before = offset;
  clockAhead = unix_s - Date.now() / 1000;
  // Points stay where they are in time unless the clock was set.
  if (Math.abs(unix_s - at_s - offset) > 1.5) offset = unix_s - at_s;
  return offset - before;
}

function past(event) {
  if (build !== null && build !== event.build) live.isOld = true;
  build ??= event.build;
  timed(event);
  live.hits.clear();
  for (const told of event.clusters) {
    const trail = trailOf(told.cluster);
    const first = told.columns.at_s[0];
    const from = first === undefined ? event.unix_s : first + offset;
    cutFrom(trail, from);
    if (trail.x.length > 0 && from - trail.x.at(-1) > 5) gap(trail, trail.x.at(-1) + 1);
    append(trail, told);
  }
  watch();
  tell("past");
}

function frame(event) {
  const jump = timed(event);
  for (const told of event.clusters) {
    const trail = trailOf(told.cluster);
    if (jump !== 0) trail.x = trail.x.map((x) => x + jump);
    append(trail, told);
  }
  for (const [rule, count] of Object.entries(event.hits)) live.hits.set(rule, count);
  live.frame = event;
  failures = 0;
  const was = live.isLost;
  live.isLost = false;
  live.why = "";
  watch();
  if (was) tell("link");
  tell("frame");
}

function trailOf(name) {
  if (!live.trails.has(name)) {
    const columns = Object.fromEntries(RATES.map((key) => [key, []]));
    live.trails.set(name, { x: [], columns, signals: new Map(), marks: [], revision: null, slowest: null });
  }
  return live.trails.get(name);
}

function append(trail, told) {
  trail.revision = told.revision;
  trail.slowest = told.slowest;
  const { columns } = told;
  columns.at_s.forEach((at, index) => {
    const x = at + offset;
    if (trail.x.length > 0 && x <= trail.x.at(-1)) return;
    trail.x.push(x);
    for (const key of RATES) trail.columns[key].push(columns[key][index]);
    for (const signal of columns.signals) {
      const own = signalOf(trail, signal.signal);
      own.value.push(signal.value[index]);
      own.threshold.push(signal.threshold[index]);
      own.open.push(signal.open[index]);
    }
    for (const own of trail.signals.values()) fill(own, trail.x.length);
  });
  for (const mark of told.marks) {
    const x = mark.at_s + offset;
    const isKnown = trail.marks.some((known) => known.text === mark.text && Math.abs(known.x - x) < 2);
    if (!isKnown) trail.marks.push({ x, text: mark.text });
  }
  trim(trail);
}

function signalOf(trail, name) {
  if (!trail.signals.has(name)) {
    const empty = () => new Array(trail.x.length - 1).fill(null);
    trail.signals.set(name, { value: empty(), threshold: empty(), open: empty() });
  }
  return trail.signals.get(name);
}

function fill(signal, length) {
  for (const column of [signal.value, signal.threshold, signal.open]) {
    while (column.length < length) column.push(null);
  }
}

function everyColumn(trail) {
  const signals = [...trail.signals.values()].flatMap((own) => [own.value, own.threshold, own.open]);
  return [trail.x, ...Object.values(trail.columns), ...signals];
}

/** Nothing was heard meanwhile, so no line is drawn. */
function gap(trail, x) {
  trail.x.push(x);
  for (const column of everyColumn(trail).slice(1)) column.push(null);
}

function cutFrom(trail, x) {
  const keep = trail.x.findIndex((known) => known >= x);
  if (keep >= 0) for (const column of everyColumn(trail)) column.length = keep;
}

function trim(trail) {
  const oldest = trail.x.at(-1) - HOUR_S - 60;
  const drop = trail.x.findIndex((x) => x >= oldest);
  if (drop > 60) for (const column of everyColumn(trail)) column.splice(0, drop);
  trail.marks = trail.marks.filter((mark) => mark.x >= oldest).slice(-400);
}

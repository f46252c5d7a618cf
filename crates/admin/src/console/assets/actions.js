// Signing in, and the changes that a page can make. The token is in this module's memory only.

import { button, el, show, text } from "./dom.js";
import { live, now } from "./live.js";
import { namesOf, reach } from "./names.js";
import { clock, countdown } from "./words.js";

let token = null;
let author = null;
let refusal = null;
const listeners = new Set();

const dialog = () => document.getElementById("dialog");

export function isSignedIn() {
  return author !== null;
}

export function whoami() {
  return { author, withToken: token !== null };
}

export function onChange(listener) {
  listeners.add(listener);
}

export function say(words) {
  const said = document.getElementById("said");
  text(said, words);
  clearTimeout(say.timer);
  say.timer = setTimeout(() => text(said, ""), 8000);
}

/** For who listens to the page: who sees it sees it anyway. */
export function announce(words) {
  text(document.getElementById("told"), words);
}

/** Asks whose changes of this page would be. */
export async function look() {
  await show_(token);
}

async function show_(candidate) {
  try {
    const answer = await fetch("/api/v1/access", { headers: bearer(candidate) });
    const said = await answer.json();
    author = answer.ok ? said.author : null;
    refusal = answer.ok ? null : { status: answer.status, words: words(said) };
    if (answer.ok) token = candidate;
  } catch {
    refusal = { status: 0, words: "Sluice does not answer" };
  }
  for (const listener of listeners) listener();
  return refusal;
}

function bearer(candidate = token) {
  return candidate ? { Authorization: `Bearer ${candidate}` } : {};
}

function words({ message, remedy }) {
  return [message, remedy].filter(Boolean).join(" — ");
}

export function signOut() {
  token = null;
  author = null;
  look();
  say("Signed out: the token is forgotten.");
}

function open(title, ...content) {
  const box = dialog();
  box.replaceChildren(el("h2", { id: "dialog-title" }, title), ...content);
  if (!box.open) box.showModal();
}

function close() {
  dialog().close();
}

function field(label, input, hint) {
  return el("label", { class: "field" }, el("span", {}, label), input, hint ? el("small", {}, hint) : null);
}

function form(onsubmit, ...content) {
  const fault = el("p", { class: "fault", role: "alert", hidden: true });
  const node = el("form", {
    onsubmit: async (event) => {
      event.preventDefault();
      const wrong = await onsubmit();
      text(fault, wrong ?? "");
      show(fault, Boolean(wrong));
    },
  });
  node.append(...content.filter(Boolean), fault);
  return node;
}

function buttons(...all) {
  return el("div", { class: "buttons" }, ...all);
}

/** Asks for the token, and goes on with `then` when it is one. */
export function signIn(then = null) {
  if (!token && refusal?.status === 403) {
    open("Nothing can be changed here", el("p", {}, refusal.words), buttons(button("Close", close, { class: "primary" })));
    return;
  }
  const input = el("input", { type: "password", name: "token", autocomplete: "off", required: true, spellcheck: false });
  const node = form(
    async () => {
      const wrong = await show_(input.value.trim());
      if (wrong) return wrong.words;
      close();
      say(`Signed in as ${author}.`);
      then?.();
      return null;
    },
    el("p", {}, "A token that the file names (admin.token_env, admin.token_file or admin.tokens). It stays in this page’s memory and is gone when the page is closed."),
    field("Token", input),
    buttons(button("Cancel", close), el("button", { type: "submit", class: "primary" }, "Sign in")),
  );
  open("Sign in", node);
  input.focus();
}

const EFFECTS = {
  hold: "Hold: nothing passes",
  throttle: "Throttle: a part of its checks is refused",
  exempt: "Exempt: passes whatever the lag",
};

const SPANS = [["10m", "10 minutes", 600], ["1h", "1 hour", 3600], ["4h", "4 hours", 14400], ["12h", "12 hours", 43200], ["7d", "7 days", 604800]];

/** Makes a rule about an app as it is shown, or about one that is written here, after asking. */
export function change(effect, app = null, clusterName = null) {
  if (!isSignedIn()) {
    signIn(() => change(effect, app, clusterName));
    return;
  }
  const names = app === null ? [] : namesOf(app);
  if (app !== null && names.length === 0) {
    const why = `${app || "(empty)"} is not a name that a rule can be made for here: it is a pattern, or is shown otherwise than it is. Name its user or a pattern: sluice hold, sluice throttle.`;
    open("No rule for this name", el("p", {}, why), buttons(button("Close", close, { class: "primary" })));
    return;
  }
  const clusters = live.frame?.status.clusters.map((cluster) => cluster.cluster) ?? [];
  const pick = (options, value) => el("select", { onchange: () => tell() }, ...options.map(([key, label]) => el("option", { value: key, selected: key === value }, label)));
  const effectOf = pick(Object.entries(EFFECTS), effect);
  const where = pick([["", "every cluster"], ...clusters.map((name) => [name, name])], clusterName ?? "");
  const name = names.length > 0
    ? pick(names.map((one) => [one, one]), names[0])
    : el("input", { type: "text", required: true, autocomplete: "off", spellcheck: false, oninput: () => tell() });
  const ratio = el("input", { type: "number", min: "0", max: "1", step: "0.01", value: "0.9", required: true, oninput: () => tell() });
  const lasts = pick(SPANS, "1h");
  const reason = el("input", { type: "text", maxLength: 200, required: true, autocomplete: "off", placeholder: "what the next person on call should know" });
  const ratioField = field("Part of its checks refused, 0 to 1", ratio);
  const sentence = el("p", { class: "sentence", "aria-live": "polite" });
  const submit = el("button", { type: "submit", class: "primary" }, "Do it");
  const tell = () => {
    show(ratioField, effectOf.value === "throttle");
    ratio.disabled = effectOf.value !== "throttle";
    const seconds = SPANS.find(([key]) => key === lasts.value)[2];
    const until = `until ${clock(now() + seconds)} (for ${SPANS.find(([key]) => key === lasts.value)[1]})`;
    const on = where.value ? `on cluster ${where.value}` : "on every cluster";
    const does = {
      hold: `no gated statement of ${name.value || "…"} passes ${on}; who waits is refused when its patience ends`,
      throttle: `${Math.round(Number(ratio.value) * 100)} % of the checks of ${name.value || "…"} are refused ${on}`,
      exempt: `${name.value || "…"} passes every gate ${on}, whatever the lag`,
    }[effectOf.value];
    const whom = names.length > 0 ? ` ${reach(name.value)}` : "";
    text(sentence, `From now ${until}: ${does}.${whom}`);
    text(submit, { hold: "Hold it", throttle: "Throttle it", exempt: "Exempt it" }[effectOf.value]);
    submit.classList.toggle("danger", effectOf.value !== "exempt");
  };
  const node = form(
    async () => {
      submit.disabled = true;
      const draft = { app: name.value, effect: effectOf.value, for: lasts.value, reason: reason.value };
      if (where.value) draft.cluster = where.value;
      if (draft.effect === "throttle") draft.ratio = Number(ratio.value);
      const wrong = await ask("POST", "/api/v1/rules", draft);
      submit.disabled = false;
      return wrong;
    },
    field("What", effectOf),
    field("App", name, "A name matches also as a level of a longer one: online-ddl is also 7f3a:online-ddl."),
    ratioField,
    el("div", { class: "pair" }, field("For", lasts), field("Cluster", where)),
    field("Reason", reason),
    sentence,
    buttons(button("Cancel", close), submit),
  );
  open("Change what happens to an app", node);
  tell();
  (names.length === 1 ? reason : name).focus();
}

/** Lifts a runtime rule, after asking. */
export function lift(rule) {
  if (!isSignedIn()) {
    signIn(() => lift(rule));
    return;
  }
  const left = rule.expires_at ? ` It would end in ${countdown(Date.parse(rule.expires_at) / 1000 - now())}.` : "";
  const node = form(
    () => ask("DELETE", `/api/v1/rules/${encodeURIComponent(rule.rule)}?cluster=${encodeURIComponent(rule.cluster)}`),
    el("p", {}, `${rule.rule} on cluster ${rule.cluster}: ${rule.does}. Made by ${rule.author ?? "nobody known"}: “${rule.reason}”.${left}`),
    el("p", { class: "sentence" }, "Whoever waits for it is judged anew at once, by the rules that remain."),
    buttons(button("Keep it", close), el("button", { type: "submit", class: "primary danger" }, "Lift it")),
  );
  open("Lift this rule", node);
  node.querySelector("button[type=submit]").focus();
}

async function ask(method, path, body = undefined) {
  try {
    const headers = bearer();
    if (body) headers["Content-Type"] = "application/json";
    const answer = await fetch(path, { method, headers, body: body ? JSON.stringify(body) : undefined });
    const said = await answer.json();
    if (!answer.ok) {
      if (answer.status === 401) look();
      return words(said);
    }
    close();
    say(said.done);
    document.dispatchEvent(new CustomEvent("rules-changed"));
    return null;
  } catch {
    return "Sluice does not answer; whether it was done is not known. Look at the rules before you try again.";
  }
}

// Which page is shown, and what stands around it.

import * as actions from "./actions.js";
import { ClusterPage } from "./cluster.js";
import { attribute, button, el, printable, show, text } from "./dom.js";
import { IdentityPage } from "./identity.js";
import { connect, live, on } from "./live.js";
import { repaint } from "./plots.js";
import { clock, headline, plural } from "./words.js";

const main = document.getElementById("main");
let page = null;
let shown = null;

/** `#/`, `#/cluster/NAME`, `#/app/CLUSTER/NAME`. */
function wanted() {
  const parts = location.hash.replace(/^#\/?/, "").split("/").map((part) => {
    try { return decodeURIComponent(part); } catch { return part; }
  });
  const first = live.frame?.status.clusters[0]?.cluster;
  if (parts[0] === "app" && parts.length >= 3) return { kind: "app", cluster: parts[1], app: parts.slice(2).join("/") };
  return { kind: "cluster", cluster: parts[0] === "cluster" ? parts[1] : first };
}

function route() {
  if (!live.frame) return;
  const to = wanted();
  const key = JSON.stringify(to);
  if (key === shown) return;
  const isFirst = shown === null;
  shown = key;
  page?.end();
  page = null;
  if (!live.frame.status.clusters.some((cluster) => cluster.cluster === to.cluster)) {
    main.replaceChildren(el("p", { class: "hint" }, "There is no such cluster. ", el("a", { href: "#/" }, "Show the first one.")));
    return;
  }
  page = to.kind === "app" ? new IdentityPage(to.cluster, to.app) : new ClusterPage(to.cluster);
  main.replaceChildren(page.node);
  page.begin();
  document.title = `${printable(to.kind === "app" ? to.app : to.cluster)} – Sluice`;
  if (!isFirst) {
    main.focus({ preventScroll: true });
    scrollTo(0, 0);
  }
}

function updateTop() {
  const { status } = live.frame;
  const nav = document.getElementById("clusters");
  const names = status.clusters.map((cluster) => cluster.cluster);
  if (nav.dataset.names !== names.join("\n")) {
    nav.dataset.names = names.join("\n");
    nav.replaceChildren(...names.map((name) => el("a", { href: `#/cluster/${encodeURIComponent(name)}` }, el("span", { class: "dot", "aria-hidden": "true" }), name, el("span", { class: "hidden" }))));
  }
  const { cluster: current } = wanted();
  status.clusters.forEach((cluster, index) => {
    const link = nav.children[index];
    const { tone, label } = headline(cluster);
    attribute(link, "aria-current", cluster.cluster === current ? "page" : null);
    attribute(link.firstChild, "data-tone", tone);
    text(link.lastChild, `, ${label}`);
  });
  text(document.getElementById("about"), `Sluice ${status.version}, started ${status.started_at}, file read ${status.config.last_reload_at}${status.config.last_reload_successful ? "" : status.config.waits_for_files ? " (the one on disk waits for files that it names)" : " (the one on disk has faults)"}`);
}

function updateLink() {
  const link = document.getElementById("link");
  const lost = document.getElementById("lost");
  document.body.classList.toggle("is-lost", live.isLost);
  attribute(link, "data-tone", live.isLost ? "bad" : "good");
  text(link, live.isLost ? "lost" : live.frame ? `live ${clock(live.frame.unix_s)}` : "connecting");
  show(lost, live.isLost || live.isOld);
  if (live.isLost) {
    const since = clock(live.lostSince / 1000);
    text(lost, `Sluice does not answer since ${since}${live.why ? ` (${live.why})` : ""}. What stands here is what it said last; this page tries again by itself.`);
  } else if (live.isOld && !lost.querySelector("button")) {
    lost.replaceChildren("This Sluice is another version than this page. ", button("Load its page", () => location.reload()));
  }
}

function updateSign() {
  const sign = document.getElementById("sign");
  const { author, withToken } = actions.whoami();
  text(sign, author === null ? "Sign in" : withToken ? `${author}: sign out` : "changes: no sign-in needed");
  attribute(sign, "title", author !== null && !withToken ? "The file lets this machine change rules without a token" : null);
  sign.disabled = author !== null && !withToken;
}

const THEMES = ["system", "dark", "light"];

function setTheme(theme) {
  attribute(document.documentElement, "data-theme", theme === "system" ? null : theme);
  text(document.getElementById("theme"), `Theme: ${theme}`);
  try { localStorage.setItem("sluice-theme", theme); } catch { /* It is asked again next time. */ }
  repaint();
}

function theme() {
  try { return THEMES.includes(localStorage.getItem("sluice-theme")) ? localStorage.getItem("sluice-theme") : "system"; } catch { return "system"; }
}

on("frame", () => {
  updateLink();
  updateTop();
  route();
  page?.update();
});
on("past", () => { for (const plot of page?.plots ?? []) plot.draw(); });
on("link", () => {
  updateLink();
  if (live.isLost) actions.say("");
  else {
    actions.say(`Sluice answers again, after ${plural(Math.max(1, Math.round((Date.now() - live.lostSince) / 1000)), "second")}.`);
    actions.look();
  }
});
addEventListener("hashchange", () => { route(); if (live.frame) updateTop(); });
document.addEventListener("visibilitychange", () => { if (!document.hidden) page?.update(); });
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => repaint());
document.getElementById("theme").addEventListener("click", () => setTheme(THEMES[(THEMES.indexOf(theme()) + 1) % THEMES.length]));
document.getElementById("sign").addEventListener("click", () => (actions.isSignedIn() ? actions.signOut() : actions.signIn()));
document.getElementById("skip").addEventListener("click", (event) => { event.preventDefault(); main.focus(); });
actions.onChange(updateSign);
setTheme(theme());
actions.look();
connect();

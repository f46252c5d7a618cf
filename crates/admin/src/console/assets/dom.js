// Elements. What is shown is always set as text: names come from clients and are never markup.

/** What has no width, turns the direction of a text, or controls a terminal. */
const UNPRINTABLE = /[\0-\x08\x0b-\x1f\x7f-\x9f\xad\u061c\u180e\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff\u{e0000}-\u{e007f}]/gu;

/** A text without that, as the plain page and the commands show it: a name would turn its sentence round. */
export function printable(value) {
  return String(value).replace(UNPRINTABLE, "\ufffd");
}

/** An element with these properties and children; children are nodes or texts. */
export function el(tag, props = {}, ...children) {
  const node = document.createElement(tag);
  for (const [name, value] of Object.entries(props)) {
    if (value === undefined || value === null || value === false) continue;
    if (name.startsWith("on")) node.addEventListener(name.slice(2), value);
    else if (name === "class") node.className = value;
    else if (name in node && !name.includes("-") && name !== "list" && name !== "role") node[name] = value;
    else node.setAttribute(name, value === true ? "" : value);
  }
  const there = children.filter((child) => child !== null && child !== undefined);
  node.append(...there.map((child) => (child instanceof Node ? child : printable(child))));
  return node;
}

/** Sets a text only where it is another: what does not change does not flicker, and selections stay. */
export function text(node, value) {
  const wanted = printable(value);
  if (node.textContent !== wanted) node.textContent = wanted;
}

export function attribute(node, name, value) {
  if (value === null || value === false) {
    if (node.hasAttribute(name)) node.removeAttribute(name);
  } else if (node.getAttribute(name) !== String(value)) {
    node.setAttribute(name, value);
  }
}

export function show(node, whether) {
  if (node.hidden === whether) node.hidden = !whether;
}

/** A panel with a heading: `{ node, body, note }`. */
export function panel(title, id, ...body) {
  const note = el("span", { class: "note" });
  const heading = el("h2", { id: `${id}-h`, tabIndex: -1 }, title);
  const tools = el("div", { class: "tools" });
  const node = el(
    "section",
    { class: "panel", id, "aria-labelledby": `${id}-h` },
    el("div", { class: "panel-head" }, heading, note, el("span", { class: "grow" }), tools),
    ...body,
  );
  return { node, note, tools, heading };
}

export function button(label, onclick, props = {}) {
  return el("button", { type: "button", onclick, ...props }, label);
}

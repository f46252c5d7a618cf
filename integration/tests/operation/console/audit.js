// What a page is looked at for; the body of a function that gives what is wrong.

const seen = (css) => [...document.querySelectorAll(css)].filter((one) => one.checkVisibility());

// Controls that stand outside the window, where no list scrolls.
const outside = seen("button, select, a, input")
  .filter((one) => !one.closest(".scroll") && !one.matches(".skip"))
  .filter((one) => {
    const box = one.getBoundingClientRect();
    return box.left < 0 || box.right > innerWidth + 1;
  });

// What a screen reader has no name for.
const named = (one) => one.ariaLabel || one.innerText.trim() || one.labels?.length;
const nameless = seen("button, a, input, select, [role=img]").filter((one) => !named(one));
const tables = seen("table").filter((one) => {
  const heads = [...one.tHead.rows[0].cells];
  return !one.caption || heads.some((cell) => cell.scope !== "col");
});
const ids = [...document.querySelectorAll("[id]")].map((one) => one.id);
const twice = ids.filter((id, index) => ids.indexOf(id) !== index);
const landmarks = ["main", "h1", "header", "footer", "nav[aria-label]"]
  .filter((css) => document.querySelector(css) === null);

// Inks on grounds with a contrast below 4.5 (WCAG 2.2, 1.4.3).
const style = getComputedStyle(document.documentElement);
const linear = (part) => (part <= 0.04045 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4);
const light = (name) => {
  let hex = style.getPropertyValue(`--${name}`).trim().slice(1);
  if (hex.length === 3) hex = [...hex].map((one) => one + one).join("");
  const parts = [0, 2, 4].map((at) => linear(parseInt(hex.slice(at, at + 2), 16) / 255));
  return 0.2126 * parts[0] + 0.7152 * parts[1] + 0.0722 * parts[2];
};
const contrast = ([ink, ground]) => {
  const [low, high] = [light(ink), light(ground)].sort((a, b) => a - b);
  return (high + 0.05) / (low + 0.05);
};
const inks = ["ink", "dim", "faint", "link-ink", "good", "warn", "bad"];
const pairs = ["ground", "panel", "raised"].flatMap((ground) => inks.map((ink) => [ink, ground]));
pairs.push(...["good", "warn", "bad"].map((tone) => [tone, `${tone}-ground`]));
pairs.push(["ink", "button"], ["primary-ink", "primary"], ["primary-ink", "danger"]);
const pale = pairs.filter((pair) => !(contrast(pair) >= 4.5)).map((pair) => pair.join(" on "));

return [
  ...outside.map((one) => `outside: ${one.outerHTML}`),
  ...[...nameless, ...tables].map((one) => `no name: ${one.outerHTML}`),
  ...twice.map((id) => `twice: ${id}`),
  ...landmarks.map((css) => `missing: ${css}`),
  ...pale,
];

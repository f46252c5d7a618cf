// Plots of the last minutes, by uPlot. Their lines move with the clock; a cursor stands in all of them.

import { attribute, el, text } from "./dom.js";
import { amount, clock, short, span } from "./words.js";
import { now } from "./live.js";

/** Most pixels above a plot for the texts of marks. */
const MARK_SLACK = 9;

let rangeS = 300;
const plots = new Set();
const sync = () => window.uPlot.sync("time");

export function setRange(seconds) {
  rangeS = seconds;
  for (const plot of plots) plot.draw();
}

export function range() {
  return rangeS;
}

/** Colours have changed. */
export function repaint() {
  for (const plot of plots) plot.rebuild();
}

function colour(name) {
  return getComputedStyle(document.documentElement).getPropertyValue(`--${name}`).trim();
}

const FORMATS = { s: (value) => span(value), rate: (value) => `${short(value)}/s`, count: (value) => short(value) };

/**
 * Series are `{ label, colour, format, dash?, fill?, hidden? }`. `source()` gives
 * `{ x, columns, shut?, marks? }`: `shut` is the column of a gate, `marks` are `{ x, text }`.
 */
export class Plot {
  constructor(title, series, source, options = {}) {
    this.title = title;
    this.series = series;
    this.source = source;
    this.options = options;
    this.at = null;
    this.described = 0;
    this.heading = el("h3", {}, title);
    this.legend = series.map((one) => this.entry(one));
    this.when = el("span", { class: "when" });
    this.mark = el("p", { class: "mark", "aria-hidden": "true" });
    this.canvas = el("div", { class: "canvas", role: "img" });
    const legend = el("div", { class: "legend" }, ...this.legend.map((entry) => entry.node));
    this.node = el(
      "div",
      { class: `plot ${options.class ?? ""}` },
      el("div", { class: "plot-head" }, this.heading, this.when, el("span", { class: "grow" }), legend),
      this.canvas,
      ...(options.marks ? [this.mark] : []),
    );
    this.watcher = new ResizeObserver(() => this.resize());
    // For who tests it: how many points there are.
    this.node.plotted = () => this.data?.x.length ?? 0;
  }

  entry({ label, colour: name }) {
    const value = el("b", {}, "–");
    return { value, node: el("span", { class: `key key-${name}` }, label, " ", value) };
  }

  /** The node is in the document now. */
  begin() {
    plots.add(this);
    this.watcher.observe(this.canvas);
    this.rebuild();
  }

  end() {
    plots.delete(this);
    this.watcher.disconnect();
    this.plot?.destroy();
    this.plot = null;
  }

  rebuild() {
    this.plot?.destroy();
    this.described = 0;
    this.data = this.source();
    this.plot = new window.uPlot(this.settings(), this.table(), this.canvas);
    this.draw();
  }

  size() {
    return { width: Math.max(120, Math.floor(this.canvas.clientWidth)), height: this.options.height ?? 150 };
  }

  resize() {
    const { width, height } = this.size();
    if (this.plot && (this.plot.width !== width || this.plot.height !== height)) this.plot.setSize({ width, height });
  }

  settings() {
    const axis = { stroke: colour("faint"), grid: { stroke: colour("grid"), width: 1 }, ticks: { stroke: colour("grid"), width: 1, size: 4 }, font: "11px system-ui, sans-serif" };
    const format = FORMATS[this.series[0].format];
    return {
      ...this.size(),
      padding: [this.options.marks ? MARK_SLACK + 3 : 6, 26, 0, 0],
      legend: { show: false },
      cursor: { sync: { key: sync().key }, drag: { x: false, y: false }, points: { size: 6 }, y: false },
      scales: {
        x: { time: true, range: () => this.reach() },
        y: { range: (_, __, most) => [0, Math.max(most * 1.12, this.options.least ?? 1)] },
      },
      axes: [
        { ...axis, size: 26, space: 70, values: (_, splits) => splits.map((at) => this.timeLabel(at)) },
        { ...axis, size: 54, space: 26, values: (_, splits) => splits.map((value) => (value === null ? "" : format(value))) },
      ],
      series: [{}, ...this.series.map((one) => this.line(one))],
      hooks: {
        drawClear: [(plot) => this.drawShut(plot)],
        draw: [(plot) => this.drawMarks(plot)],
        setCursor: [(plot) => this.point(plot)],
      },
    };
  }

  timeLabel(at) {
    const label = clock(at);
    return (this.options.span ?? rangeS) > 600 ? label.slice(0, 5) : label;
  }

  line({ label, colour: name, dash, fill }) {
    return {
      label,
      stroke: colour(name),
      width: dash ? 1.2 : 1.6,
      dash,
      fill: fill ? colour(`${name}-fill`) : undefined,
      points: { show: false },
      spanGaps: false,
    };
  }

  table() {
    return [this.data.x, ...this.data.columns];
  }

  /** The end of the time line: it moves while Sluice is heard, and stands while it is lost. */
  end_s() {
    const last = this.data.x.at(-1);
    return last === undefined ? now() : last;
  }

  /** The time that is shown: not more than there is, so that the first minutes can be read. */
  reach() {
    const [end, wanted] = [this.end_s(), this.options.span ?? rangeS];
    const first = this.data.x[0] ?? end;
    return [Math.max(end - wanted, Math.min(first, end - 60)), end];
  }

  draw() {
    if (!this.plot || document.hidden) return;
    this.data = this.source();
    this.plot.setData(this.table());
    this.showValues();
    this.describe();
  }

  /** Legends show the values under the cursor, or the last ones. */
  showValues() {
    const index = this.at ?? this.data.x.length - 1;
    this.series.forEach((one, place) => {
      const value = this.data.columns[place][index];
      text(this.legend[place].value, value === null || value === undefined ? "–" : FORMATS[one.format](value));
    });
    text(this.when, this.at === null ? "" : clock(this.data.x[index]));
    if (!this.options.marks) return;
    const near = this.at === null ? this.data.marks.at(-1) : this.nearest(this.data.x[index]);
    const said = near ? `▼ ${clock(near.x)} ${near.text}` : "▼ marks changes of rules";
    text(this.mark, said);
    attribute(this.mark, "title", said);
  }

  nearest(x) {
    const slack = rangeS / 60;
    const near = this.data.marks.filter((mark) => Math.abs(mark.x - x) <= slack);
    return near.sort((a, b) => Math.abs(a.x - x) - Math.abs(b.x - x))[0];
  }

  point(plot) {
    const index = plot.cursor.idx;
    this.at = index === undefined || plot.cursor.left < 0 ? null : index;
    this.showValues();
  }

  /** In words, for who does not see it; not every second, or it would never be read to its end. */
  describe() {
    if (Date.now() - this.described < 5000) return;
    this.described = Date.now();
    const [from] = this.reach();
    const first = this.data.x.findIndex((x) => x >= from);
    const parts = this.series.map((one, place) => {
      const values = this.data.columns[place].slice(Math.max(0, first)).filter((value) => value !== null && value !== undefined);
      if (values.length === 0) return `${one.label}: no values`;
      const format = FORMATS[one.format];
      return `${one.label}: now ${format(values.at(-1))}, highest ${format(Math.max(...values))}`;
    });
    attribute(this.canvas, "aria-label", `${this.title}, the last ${Math.round((this.options.span ?? rangeS) / 60)} minutes. ${parts.join(". ")}.`);
  }

  /** Shades the time in which the gate was shut. */
  drawShut(plot) {
    const { shut } = this.data;
    if (!shut) return;
    const { ctx, bbox } = plot;
    const [from] = this.reach();
    ctx.save();
    ctx.fillStyle = colour("shut-band");
    let begun = null;
    const paint = (a, b) => {
      const left = Math.max(bbox.left, plot.valToPos(a, "x", true));
      const right = Math.min(bbox.left + bbox.width, plot.valToPos(b, "x", true));
      if (right > left) {
        ctx.fillRect(left, bbox.top, right - left, bbox.height);
        ctx.fillRect(left, bbox.top, right - left, 3 * devicePixelRatio);
      }
    };
    for (let i = 0; i < shut.length; i += 1) {
      if (this.data.x[i] < from) continue;
      const isShut = shut[i] === false;
      if (isShut && begun === null) begun = this.data.x[Math.max(0, i - 1)];
      if (!isShut && begun !== null) {
        paint(begun, this.data.x[i - 1]);
        begun = null;
      }
    }
    if (begun !== null) paint(begun, this.data.x.at(-1));
    ctx.restore();
  }

  drawMarks(plot) {
    if (!this.options.marks) return;
    const { ctx, bbox } = plot;
    const size = 5 * devicePixelRatio;
    ctx.save();
    ctx.fillStyle = colour("mark");
    ctx.strokeStyle = colour("mark");
    ctx.lineWidth = devicePixelRatio;
    for (const mark of this.data.marks) {
      const left = plot.valToPos(mark.x, "x", true);
      if (left < bbox.left || left > bbox.left + bbox.width) continue;
      ctx.globalAlpha = 0.55;
      ctx.beginPath();
      ctx.moveTo(left, bbox.top);
      ctx.lineTo(left, bbox.top + bbox.height);
      ctx.stroke();
      ctx.globalAlpha = 1;
      ctx.beginPath();
      ctx.moveTo(left - size, bbox.top - 2 * size);
      ctx.lineTo(left + size, bbox.top - 2 * size);
      ctx.lineTo(left, bbox.top - size / 3);
      ctx.fill();
    }
    ctx.restore();
  }
}

export function thresholdWords(signal) {
  return amount(signal.threshold, signal.unit);
}

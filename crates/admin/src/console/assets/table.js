// A table that stays quick with thousands of rows: it draws one page of them, keeps the elements of
// rows that stay, and changes only texts that are others.

import { attribute, button, el, show, text } from "./dom.js";
import { plural } from "./words.js";

const PAGE = 25;

/**
 * Columns are `{ key, label, text(row), sort(row)?, class?, tone(row)?, draw(cell, row)? }`.
 * `options`: `key(row)`, `caption`, `empty`, `search(row)?` (its text, for the filter), `sort?` ([key, "descending"]).
 */
export class Table {
  constructor(columns, options) {
    this.columns = columns;
    this.options = options;
    this.rows = [];
    this.total = null;
    this.page = 0;
    this.wanted = "";
    this.order = options.sort ?? null;
    this.drawn = new Map();
    this.build();
  }

  build() {
    const { caption, search } = this.options;
    this.heads = this.columns.map((column) => this.head(column));
    this.body = el("tbody");
    this.table = el(
      "table",
      {},
      el("caption", { class: "hidden" }, caption),
      el("thead", {}, el("tr", {}, ...this.heads)),
      this.body,
    );
    this.none = el("p", { class: "hint" }, this.options.empty ?? "Nothing.");
    this.filter = search
      ? el("input", {
          type: "search",
          placeholder: "Filter",
          "aria-label": `Filter: ${caption}`,
          autocomplete: "off",
          spellcheck: false,
          oninput: () => this.search(this.filter.value),
        })
      : null;
    this.where = el("span", { class: "where", role: "status" });
    this.back = button("Previous", () => this.turn(-1), { class: "quiet", "aria-label": `Previous page: ${caption}` });
    this.next = button("Next", () => this.turn(1), { class: "quiet", "aria-label": `Next page: ${caption}` });
    this.pager = el("div", { class: "pager" }, this.where, this.back, this.next);
    const scroll = el("div", { class: "scroll", tabIndex: 0, role: "group", "aria-label": caption }, this.table);
    this.scroll = scroll;
    this.node = el("div", { class: "table" }, scroll, this.none, this.pager);
  }

  head(column) {
    const props = { scope: "col", class: column.class };
    if (!column.sort) return el("th", props, column.label);
    return el("th", { ...props, "data-key": column.key }, button(column.label, () => this.sortBy(column.key), { class: "sort" }));
  }

  search(value) {
    this.wanted = value.trim().toLowerCase();
    this.page = 0;
    this.draw();
  }

  sortBy(key) {
    const isDescending = this.order?.[0] === key && this.order[1] === "descending";
    this.order = [key, isDescending ? "ascending" : "descending"];
    this.page = 0;
    this.draw();
  }

  turn(by) {
    this.page += by;
    this.draw();
  }

  /** Shows these rows, of so many in truth. */
  set(rows, total = null) {
    this.rows = rows;
    this.total = total;
    this.draw();
  }

  chosen() {
    const { search } = this.options;
    let rows = this.rows;
    if (this.wanted && search) rows = rows.filter((row) => search(row).toLowerCase().includes(this.wanted));
    const column = this.order && this.columns.find((known) => known.key === this.order[0]);
    if (!column) return rows;
    const sign = this.order[1] === "descending" ? -1 : 1;
    const keyed = rows.map((row, index) => [column.sort(row), index, row]);
    keyed.sort(([a, i], [b, j]) => (a < b ? -sign : a > b ? sign : i - j));
    return keyed.map(([, , row]) => row);
  }

  draw() {
    const rows = this.chosen();
    const pages = Math.max(1, Math.ceil(rows.length / PAGE));
    this.page = Math.min(Math.max(0, this.page), pages - 1);
    const first = this.page * PAGE;
    this.drawRows(rows.slice(first, first + PAGE));
    this.drawAround(rows, pages, first);
  }

  drawRows(rows) {
    const stale = new Set(this.drawn.keys());
    let place = this.body.firstElementChild;
    for (const row of rows) {
      const key = this.options.key(row);
      stale.delete(key);
      let known = this.drawn.get(key);
      if (!known) {
        known = { node: el("tr"), cells: this.columns.map((column) => el("td", { class: column.class, "data-label": column.label })) };
        known.node.append(...known.cells);
        this.drawn.set(key, known);
      }
      if (place === known.node) place = place.nextElementSibling;
      else this.body.insertBefore(known.node, place);
      this.drawCells(known, row);
    }
    for (const key of stale) {
      this.drawn.get(key).node.remove();
      this.drawn.delete(key);
    }
  }

  drawCells(known, row) {
    this.columns.forEach((column, index) => {
      const cell = known.cells[index];
      if (column.draw) column.draw(cell, row);
      else text(cell, column.text(row));
      if (column.tone) attribute(cell, "data-tone", column.tone(row));
    });
  }

  drawAround(rows, pages, first) {
    const isEmpty = rows.length === 0;
    show(this.scroll, !isEmpty);
    show(this.none, isEmpty);
    text(this.none, this.wanted ? "Nothing matches the filter." : this.options.empty ?? "Nothing.");
    const total = this.total ?? this.rows.length;
    const further = total > this.rows.length ? ` (${total} in all)` : "";
    const said = pages > 1
      ? `${first + 1}–${Math.min(first + PAGE, rows.length)} of ${rows.length}${further}`
      : `${plural(rows.length, "row")}${further}`;
    text(this.where, said);
    show(this.pager, pages > 1 || further !== "");
    show(this.back, pages > 1);
    show(this.next, pages > 1);
    this.back.disabled = this.page === 0;
    this.next.disabled = this.page >= pages - 1;
    if (this.filter) show(this.filter, this.rows.length > 5 || this.wanted !== "");
    for (const head of this.heads) {
      if (!head.dataset.key) continue;
      attribute(head, "aria-sort", this.order?.[0] === head.dataset.key ? this.order[1] : null);
    }
  }
}

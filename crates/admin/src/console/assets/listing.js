// Tables in panels, and cells that several of them have.

import { attribute, el, panel, text } from "./dom.js";
import { Table } from "./table.js";

/** A table in a panel of its own, as `{ table, panel }`. */
export function listing(title, id, columns, options) {
  const table = new Table(columns, { caption: title, ...options });
  const made = panel(title, id, table.node);
  if (table.filter) made.tools.append(table.filter);
  return { table, panel: made };
}

/** A cell with a link to an identity's page. */
export function drawApp(cell, clusterName, app) {
  if (!cell.firstChild) cell.append(el("a", {}));
  attribute(cell.firstChild, "href", `#/app/${encodeURIComponent(clusterName)}/${encodeURIComponent(app)}`);
  text(cell.firstChild, app === "" ? "(empty)" : app);
}

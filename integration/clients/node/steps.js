// What every Node driver is put through: the same steps, direct and through Sluice. A driver is a module
// that exports a class with what is used here; see mysql2.js.

import { createHash } from "node:crypto";
import { setTimeout as sleep } from "node:timers/promises";

const BLOB_BYTES = 4 << 20;
// The rule holds back for one second; clocks and schedulers may shave a little off it.
const HELD_AT_LEAST_MS = 950;
const GREETING = "Grüße, 世界";
const HELD = "/*app='driver-held'*/ ";
const REFUSED = "/*app='driver-refused'*/ ";
const NAMES = [
  "connect", "text", "prepared", "commit", "rollback", "blob", "multi", "error",
  "held", "refused", "refused-prepared", "refused-in-transaction", "reconnect",
];

export async function main(Driver, words) {
  const [host, port, user, password, database, tls, server, route] = words;
  const target = { host, port: Number(port), user, password, database, tls: tls === "yes", server };
  target.throughSluice = route === "sluice";
  target.compress = (process.env.DRIVER_COMPRESSION ?? "no") !== "no";
  const steps = new Steps(Driver, target);
  let failed = false;
  for (const name of NAMES) {
    let verdict = "ok";
    let detail;
    try {
      detail = await steps[name]();
    } catch (error) {
      verdict = "fail";
      detail = `${error.name}: ${error.message}`;
      failed = true;
    }
    console.log(`step ${name} ${verdict} ${detail.replace(/\s+/g, " ")}`);
    if (failed && name === "connect") break;
  }
  process.exit(failed ? 1 : 0);
}

class Steps {
  constructor(Driver, target) {
    this.Driver = Driver;
    this.target = target;
  }

  // --- what works everywhere ---------------------------------------------------------------------

  async connect() {
    this.driver = await this.Driver.connect(this.target);
    const [[, cipher]] = await this.run("SHOW SESSION STATUS LIKE 'Ssl_cipher'");
    expect(cipher !== "", this.target.tls, "encrypted");
    const [[, compression]] = await this.run("SHOW SESSION STATUS LIKE 'Compression'");
    expect(compression === "ON", this.target.compress, "compressed");
    await this.run("DROP TABLE IF EXISTS t");
    await this.run(
      "CREATE TABLE t (id INT PRIMARY KEY, note VARCHAR(100), data LONGBLOB) CHARACTER SET utf8mb4",
    );
    return `tls=${cipher ? "yes" : "no"} compressed=${compression === "ON" ? "yes" : "no"}`;
  }

  async text() {
    const [[one, words, nothing, amount]] = await this.run(`SELECT 1, '${GREETING}', NULL, 12.50`);
    expect([one, words, nothing, String(amount)], [1, GREETING, null, "12.50"], "row");
    return `${one} ${words} NULL ${amount}`;
  }

  async prepared() {
    for (const number of [1, 2, 3]) {
      await this.driver.execute("INSERT INTO t (id, note) VALUES (?, ?)", [number, `${GREETING} ${number}`]);
    }
    const rows = await this.driver.execute("SELECT id, note FROM t WHERE id >= ? ORDER BY id", [2]);
    expect(rows, [[2, `${GREETING} 2`], [3, `${GREETING} 3`]], "rows");
    return "rows=3 by=server";
  }

  async commit() {
    await this.driver.begin();
    await this.insert(10);
    await this.driver.commit();
    expect(await this.there(10), 1, "committed rows");
    return "rows=1";
  }

  async rollback() {
    await this.driver.begin();
    await this.insert(11);
    await this.driver.rollback();
    expect(await this.there(11), 0, "rows rolled back");
    return "rows=0";
  }

  async blob() {
    const sent = Buffer.alloc(BLOB_BYTES);
    for (let i = 0; i < BLOB_BYTES; i++) sent[i] = (i * 7 + (i >> 8)) & 0xff;
    await this.driver.execute("INSERT INTO t (id, data) VALUES (?, ?)", [12, sent]);
    const [[received, digest]] = await this.run("SELECT data, SHA2(data, 256) FROM t WHERE id = 12");
    expect(digest, createHash("sha256").update(sent).digest("hex"), "digest");
    expect(sent.equals(received), true, "bytes came back");
    return `bytes=${received.length} sha256=${digest.slice(0, 16)}`;
  }

  async multi() {
    const seen = await this.driver.several("SELECT 1; SELECT 2; SELECT 3");
    expect(seen, [1, 2, 3], "results");
    return "results=1,2,3";
  }

  async error() {
    const error = await this.fails(() => this.insert(1));
    expect(error.errno, 1062, "errno");
    return described(error);
  }

  // --- what Sluice changes -----------------------------------------------------------------------

  async held() {
    const started = performance.now();
    await this.insert(20, HELD);
    const held = performance.now() - started >= HELD_AT_LEAST_MS;
    expect(await this.there(20), 1, "rows");
    if (this.target.throughSluice) expect(held, true, "held back");
    return `held=${held ? "yes" : "no"} rows=1`;
  }

  async refused() {
    const before = await this.connectionId();
    const said = await this.refusedOrNot(() => this.insert(30, REFUSED));
    expect(await this.connectionId(), before, "connection id");
    expect(await this.there(30), this.target.throughSluice ? 0 : 1, "rows");
    return `${said} connection=kept`;
  }

  async "refused-prepared"() {
    const statement = "INSERT INTO t (id, note, data) VALUES (?, ?, ?)";
    const bytes = Buffer.from([0, 255, 39, 92]);
    await this.run("SET @sluice_app = 'driver-refused'");
    const said = await this.refusedOrNot(() => this.driver.execute(statement, [31, GREETING, bytes]));
    await this.run("SET @sluice_app = 'driver'");
    const number = this.target.throughSluice ? 31 : 32;
    await this.driver.execute(statement, [number, GREETING, bytes]);
    const [[note, data]] = await this.run(`SELECT note, data FROM t WHERE id = ${number}`);
    expect([note, bytes.equals(data)], [GREETING, true], "row after the retry");
    return `${said} retry=stored`;
  }

  async "refused-in-transaction"() {
    await this.driver.begin();
    const said = await this.refusedOrNot(() => this.insert(40, REFUSED));
    await this.insert(41);
    await this.driver.rollback();
    expect((await this.there(40)) + (await this.there(41)), 0, "rows rolled back");
    await this.driver.begin();
    await this.refusedOrNot(() => this.insert(42, REFUSED));
    await this.insert(43);
    await this.driver.commit();
    expect(await this.there(42), this.target.throughSluice ? 0 : 1, "refused rows");
    expect(await this.there(43), 1, "committed rows");
    return `${said} transaction=goes-on`;
  }

  async reconnect() {
    const other = await this.Driver.connect(this.target);
    await other.run(`KILL ${await this.connectionId()}`);
    await sleep(300);
    const error = await this.fails(() => this.run("SELECT 1"));
    this.driver.abandon();
    this.driver = await this.Driver.connect(this.target);
    expect(await this.there(1), 1, "rows on a new connection");
    await other.close();
    await this.driver.close();
    return `lost=${error.name}`;
  }

  // --- words the steps are made of ---------------------------------------------------------------

  run(sql) {
    return this.driver.run(sql);
  }

  insert(number, comment = "") {
    return this.run(`${comment}INSERT INTO t (id) VALUES (${number})`);
  }

  async there(number) {
    const [[count]] = await this.run(`SELECT COUNT(*) FROM t WHERE id = ${number}`);
    return Number(count);
  }

  async connectionId() {
    const [[id]] = await this.run("SELECT CONNECTION_ID()");
    return Number(id);
  }

  async refusedOrNot(attempt) {
    if (!this.target.throughSluice) {
      await attempt();
      return "admitted";
    }
    const error = await this.fails(attempt);
    expect(error.errno, 1205, "errno");
    if (!/\[sluice .*executed=no\]/.test(error.message)) throw new Error(`the message is ${error.message}`);
    return described(error);
  }

  async fails(attempt) {
    try {
      await attempt();
    } catch (error) {
      return error;
    }
    throw new Error("no error");
  }
}

function described(error) {
  const fatal = error.fatal ? " fatal" : "";
  return `${error.name} code=${error.code} errno=${error.errno} sqlstate=${error.sqlState}${fatal}`;
}

function expect(seen, wanted, what) {
  const [left, right] = [seen, wanted].map((value) => JSON.stringify(value));
  if (left !== right) throw new Error(`${what}: ${left} instead of ${right}`);
}

// mysql2, with promises: `query` is text, `execute` prepares at the server.

import { createRequire } from "node:module";
import { main } from "./steps.js";

const mysql = createRequire(`${process.env.NODE_CLIENTS}/`)("mysql2/promise");

class Driver {
  static async connect(target) {
    const { host, port, user, password, database, compress } = target;
    const ssl = target.tls ? { rejectUnauthorized: false } : undefined;
    const options = { host, port, user, password, database, ssl, compress, rowsAsArray: true, multipleStatements: true };
    const driver = new Driver();
    driver.connection = await mysql.createConnection(options);
    // A lost connection is told to the statement that meets it; nobody else needs to hear of it.
    driver.connection.connection.on("error", () => {});
    return driver;
  }

  async run(sql) {
    return (await this.connection.query(sql))[0];
  }

  async execute(sql, values) {
    return (await this.connection.execute(sql, values))[0];
  }

  async several(sql) {
    return (await this.run(sql)).map((rows) => rows[0][0]);
  }

  begin() {
    return this.connection.beginTransaction();
  }

  commit() {
    return this.connection.commit();
  }

  rollback() {
    return this.connection.rollback();
  }

  close() {
    return this.connection.end();
  }

  abandon() {
    this.connection.destroy();
  }
}

await main(Driver, process.argv.slice(2));

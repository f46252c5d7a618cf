// mariadb (Connector/Node.js): `query` is text, `execute` prepares at the server.

import { createRequire } from "node:module";
import { main } from "./steps.js";

const mariadb = createRequire(`${process.env.NODE_CLIENTS}/`)("mariadb");

class Driver {
  static async connect(target) {
    const { host, port, user, password, database, compress } = target;
    const driver = new Driver();
    driver.connection = await mariadb.createConnection({
      host, port, user, password, database, compress,
      ssl: target.tls ? { rejectUnauthorized: false } : false,
      allowPublicKeyRetrieval: true, rowsAsArray: true, multipleStatements: true,
      bigIntAsNumber: true,
    });
    // A lost connection is told to the statement that meets it; nobody else needs to hear of it.
    driver.connection.on("error", () => {});
    return driver;
  }

  run(sql) {
    return this.connection.query(sql);
  }

  execute(sql, values) {
    return this.connection.execute(sql, values);
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

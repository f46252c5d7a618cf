"""MySQL Connector/Python. The first argument says which half of it: `pure` speaks the protocol itself,
`c` uses the C library that comes with it. Both prepare at the server."""

import sys

import mysql.connector

import steps


class Driver:
    errors = mysql.connector.Error
    prepares = "server"
    pure = True

    def __init__(self, target):
        self.connection = mysql.connector.connect(
            host=target.host, port=target.port, user=target.user, password=target.password,
            database=target.database, charset="utf8mb4", collation="utf8mb4_general_ci",
            autocommit=True, use_pure=self.pure,
            ssl_disabled=not target.tls, ssl_verify_cert=False, compress=target.compress,
        )
        self.statements = {}

    def run(self, sql):
        cursor = self.connection.cursor()
        cursor.execute(sql)
        rows = cursor.fetchall() if cursor.description else []
        cursor.close()
        return rows

    def execute(self, sql, values):
        if sql not in self.statements:
            self.statements[sql] = self.connection.cursor(prepared=True)
        cursor = self.statements[sql]
        cursor.execute(sql, values)
        return cursor.fetchall() if cursor.description else []

    def several(self, sql):
        cursor = self.connection.cursor()
        seen = []
        cursor.execute(sql)
        for _, result in cursor.fetchsets():
            seen.append(result[0][0])
        cursor.close()
        return seen

    def begin(self):
        self.connection.start_transaction()

    def commit(self):
        self.connection.commit()

    def rollback(self):
        self.connection.rollback()

    def close(self):
        self.connection.close()

    @staticmethod
    def taken_apart(error):
        return error.errno, error.sqlstate, error.msg


if __name__ == "__main__":
    Driver.pure = sys.argv.pop(1) == "pure"
    steps.main(Driver)

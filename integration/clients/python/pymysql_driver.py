"""PyMySQL: pure Python, prepares nothing at the server."""

import ssl

import pymysql
from pymysql.constants import CLIENT

import steps


class Driver:
    errors = pymysql.MySQLError
    prepares = "client"

    def __init__(self, target):
        self.connection = pymysql.connect(
            host=target.host, port=target.port, user=target.user, password=target.password,
            database=target.database, charset="utf8mb4", autocommit=True,
            client_flag=CLIENT.MULTI_STATEMENTS,
            ssl=unverified() if target.tls else None, ssl_disabled=not target.tls,
        )

    def run(self, sql, values=None):
        with self.connection.cursor() as cursor:
            cursor.execute(sql, values)
            return list(cursor.fetchall())

    def execute(self, sql, values):
        return self.run(sql.replace("?", "%s"), values)

    def several(self, sql):
        with self.connection.cursor() as cursor:
            cursor.execute(sql)
            seen = [cursor.fetchone()[0]]
            while cursor.nextset():
                seen.append(cursor.fetchone()[0])
            return seen

    def begin(self):
        self.connection.begin()

    def commit(self):
        self.connection.commit()

    def rollback(self):
        self.connection.rollback()

    def close(self):
        if self.connection.open:
            self.connection.close()

    @staticmethod
    def taken_apart(error):
        return error.args[0], None, error.args[1]


def unverified():
    """TLS without a check of the certificate: the servers' are made for the test."""
    context = ssl.create_default_context()
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    return context


if __name__ == "__main__":
    steps.main(Driver)

"""mysqlclient: MySQLdb over the C library (on Debian libmariadb), prepares nothing at the server."""

import MySQLdb
from MySQLdb.constants import CLIENT

import steps


class Driver:
    errors = MySQLdb.MySQLError
    prepares = "client"

    def __init__(self, target):
        self.connection = MySQLdb.connect(
            host=target.host, port=target.port, user=target.user, password=target.password,
            database=target.database, charset="utf8mb4", autocommit=True,
            client_flag=CLIENT.MULTI_STATEMENTS,
            ssl_mode="REQUIRED" if target.tls else "DISABLED",
            # It compresses whatever it is told with this word.
            **({"compress": True} if target.compress else {}),
        )

    def run(self, sql, values=None):
        cursor = self.connection.cursor()
        cursor.execute(sql, values)
        rows = list(cursor.fetchall())
        cursor.close()
        return rows

    def execute(self, sql, values):
        return self.run(sql.replace("?", "%s"), values)

    def several(self, sql):
        cursor = self.connection.cursor()
        cursor.execute(sql)
        seen = [cursor.fetchone()[0]]
        while cursor.nextset():
            seen.append(cursor.fetchone()[0])
        cursor.close()
        return seen

    def begin(self):
        self.connection.begin()

    def commit(self):
        self.connection.commit()

    def rollback(self):
        self.connection.rollback()

    def close(self):
        self.connection.close()

    @staticmethod
    def taken_apart(error):
        return error.args[0], None, error.args[1]


if __name__ == "__main__":
    steps.main(Driver)

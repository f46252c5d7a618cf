"""SQLAlchemy's pool and its reading of errors, over PyMySQL.

Outside a longer transaction each statement is one, on what it borrows from a pool of one connection: the
connection id tells whether the pool kept it.
"""

import sqlalchemy
from pymysql.constants import CLIENT

import steps
from pymysql_driver import unverified


class Driver:
    errors = sqlalchemy.exc.DBAPIError
    prepares = "client"

    def __init__(self, target):
        url = sqlalchemy.URL.create(
            "mysql+pymysql", target.user, target.password, target.host, target.port, target.database,
            {"charset": "utf8mb4"},
        )
        arguments = {
            "client_flag": CLIENT.MULTI_STATEMENTS, "ssl_disabled": not target.tls,
            "ssl": unverified() if target.tls else None,
        }
        self.engine = sqlalchemy.create_engine(url, pool_size=1, max_overflow=0, connect_args=arguments)
        self.transaction = None

    def run(self, sql, values=None):
        if self.transaction is not None:
            return self.on(self.transaction, sql, values)
        with self.engine.begin() as connection:
            return self.on(connection, sql, values)

    @staticmethod
    def on(connection, sql, values):
        result = connection.exec_driver_sql(sql, values)
        return [tuple(row) for row in result] if result.returns_rows else []

    def execute(self, sql, values):
        return self.run(sql.replace("?", "%s"), values)

    def several(self, sql):
        connection = self.engine.raw_connection()
        cursor = connection.cursor()
        cursor.execute(sql)
        seen = [cursor.fetchone()[0]]
        while cursor.nextset():
            seen.append(cursor.fetchone()[0])
        cursor.close()
        connection.close()
        return seen

    def begin(self):
        self.transaction = self.engine.connect()
        self.transaction.begin()

    def commit(self):
        self.transaction.commit()
        self.end()

    def rollback(self):
        self.transaction.rollback()
        self.end()

    def end(self):
        self.transaction.close()
        self.transaction = None

    def close(self):
        self.engine.dispose()

    @staticmethod
    def taken_apart(error):
        number, message = error.orig.args
        lost = ", connection_invalidated" if error.connection_invalidated else ""
        return number, None, message + lost


if __name__ == "__main__":
    steps.main(Driver)

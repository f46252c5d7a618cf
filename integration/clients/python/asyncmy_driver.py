"""asyncmy: asyncio, pure Python compiled by Cython, prepares nothing at the server."""

import asyncio

import asyncmy
from asyncmy.constants import CLIENT
from asyncmy.errors import MySQLError

import steps
from pymysql_driver import unverified

LOOP = asyncio.new_event_loop()


class Driver:
    errors = MySQLError
    prepares = "client"

    def __init__(self, target):
        self.connection = LOOP.run_until_complete(
            asyncmy.connect(
                host=target.host, port=target.port, user=target.user, password=target.password,
                database=target.database, charset="utf8mb4", autocommit=True,
                client_flag=CLIENT.MULTI_STATEMENTS,
                ssl=unverified() if target.tls else None,
            )
        )

    def run(self, sql, values=None):
        return LOOP.run_until_complete(self._run(sql, values))

    async def _run(self, sql, values):
        async with self.connection.cursor() as cursor:
            await cursor.execute(sql, values)
            return list(await cursor.fetchall())

    def execute(self, sql, values):
        return self.run(sql.replace("?", "%s"), values)

    def several(self, sql):
        return LOOP.run_until_complete(self._several(sql))

    async def _several(self, sql):
        async with self.connection.cursor() as cursor:
            await cursor.execute(sql)
            seen = [(await cursor.fetchone())[0]]
            while await cursor.nextset():
                seen.append((await cursor.fetchone())[0])
            return seen

    def begin(self):
        LOOP.run_until_complete(self.connection.begin())

    def commit(self):
        LOOP.run_until_complete(self.connection.commit())

    def rollback(self):
        LOOP.run_until_complete(self.connection.rollback())

    def close(self):
        self.connection.close()

    @staticmethod
    def taken_apart(error):
        return error.args[0], None, error.args[1]


if __name__ == "__main__":
    steps.main(Driver)

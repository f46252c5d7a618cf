"""Django's database layer over mysqlclient. Its connections are the process's: a second one is an alias."""

import django
from django.conf import settings
from django.db import connections, transaction
from django.db.utils import DatabaseError

import steps


class Driver:
    errors = DatabaseError
    prepares = "client"
    aliases = ["other", "default"]

    def __init__(self, target):
        if not settings.configured:
            configure(target)
        # The third and later ones take the place of the first, which was lost.
        self.alias = self.aliases.pop() if self.aliases else "default"
        self.atomic = None

    @property
    def connection(self):
        return connections[self.alias]

    def run(self, sql, values=None):
        with self.connection.cursor() as cursor:
            cursor.execute(sql, values)
            return list(cursor.fetchall()) if cursor.description else []

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
        self.atomic = transaction.atomic(using=self.alias)
        self.atomic.__enter__()

    def commit(self):
        self.atomic.__exit__(None, None, None)

    def rollback(self):
        transaction.set_rollback(True, using=self.alias)
        self.atomic.__exit__(None, None, None)

    def close(self):
        self.connection.close()

    @staticmethod
    def taken_apart(error):
        return error.args[0], None, error.args[1]


def configure(target):
    database = {
        "ENGINE": "django.db.backends.mysql", "HOST": target.host, "PORT": target.port, "USER": target.user,
        "PASSWORD": target.password, "NAME": target.database,
        "OPTIONS": {"charset": "utf8mb4", "ssl_mode": "REQUIRED" if target.tls else "DISABLED"},
    }
    settings.configure(DATABASES={"default": database, "other": dict(database)}, USE_TZ=True)
    django.setup()


if __name__ == "__main__":
    steps.main(Driver)

"""What every Python driver is put through: the same steps, direct and through Sluice.

A driver is a module with a class `Driver`; see pymysql_driver.py for the shortest. The steps only use
what the class offers, so a step that differs between two drivers is the driver's doing.
"""

import hashlib
import os
import sys
import time
from dataclasses import dataclass

BLOB_BYTES = 4 << 20
# The rule holds back for one second; clocks and schedulers may shave a little off it.
HELD_AT_LEAST_S = 0.95
GREETING = "Grüße, 世界"

HELD = "/*app='driver-held'*/ "
REFUSED = "/*app='driver-refused'*/ "


@dataclass
class Target:
    """Where to connect, and what stands there."""

    host: str
    port: int
    user: str
    password: str
    database: str
    tls: bool
    server: str
    route: str

    @classmethod
    def from_arguments(cls, words):
        host, port, user, password, database, tls, server, route = words
        return cls(host, int(port), user, password, database, tls == "yes", server, route)

    @property
    def compress(self):
        return os.environ.get("DRIVER_COMPRESSION", "no") != "no"

    @property
    def through_sluice(self):
        return self.route == "sluice"


class StepFailed(Exception):
    """What a step saw is not what it should have seen."""


def expect(seen, wanted, what):
    if seen != wanted:
        raise StepFailed(f"{what}: {seen!r} instead of {wanted!r}")


class Steps:
    def __init__(self, driver_class, target):
        self.driver_class = driver_class
        self.target = target
        self.driver = None

    def run(self):
        names = [
            "connect", "text", "prepared", "commit", "rollback", "blob", "multi", "error",
            "held", "refused", "refused-prepared", "refused-in-transaction", "reconnect",
        ]
        failed = False
        for name in names:
            try:
                detail, verdict = getattr(self, name.replace("-", "_"))(), "ok"
            except Exception as error:  # the step's verdict is the point, whatever the type
                detail, verdict, failed = f"{type(error).__name__}: {error}", "fail", True
            print(f"step {name} {verdict} {' '.join(str(detail).split())}", flush=True)
            if failed and name == "connect":
                break
        return 1 if failed else 0

    # --- what works everywhere -------------------------------------------------------------------

    def connect(self):
        self.driver = self.driver_class(self.target)
        [(_, cipher)] = self.driver.run("SHOW SESSION STATUS LIKE 'Ssl_cipher'")
        expect(bool(cipher), self.target.tls, "encrypted")
        [(_, compression)] = self.driver.run("SHOW SESSION STATUS LIKE 'Compression'")
        expect(compression == "ON", self.target.compress, "compressed")
        self.driver.run("DROP TABLE IF EXISTS t")
        self.driver.run(
            "CREATE TABLE t (id INT PRIMARY KEY, note VARCHAR(100), data LONGBLOB) CHARACTER SET utf8mb4"
        )
        return f"tls={'yes' if cipher else 'no'} compressed={'yes' if compression == 'ON' else 'no'}"

    def text(self):
        [(one, words, nothing, amount)] = self.driver.run(f"SELECT 1, '{GREETING}', NULL, 12.50")
        expect((one, words, nothing, str(amount)), (1, GREETING, None, "12.50"), "row")
        return f"{one} {words} NULL {amount}"

    def prepared(self):
        for number in (1, 2, 3):
            self.driver.execute("INSERT INTO t (id, note) VALUES (?, ?)", (number, f"{GREETING} {number}"))
        rows = self.driver.execute("SELECT id, note FROM t WHERE id >= ? ORDER BY id", (2,))
        expect(rows, [(2, f"{GREETING} 2"), (3, f"{GREETING} 3")], "rows")
        return f"rows=3 by={self.driver.prepares}"

    def commit(self):
        self.driver.begin()
        self.insert(10)
        self.driver.commit()
        expect(self.there(10), 1, "committed rows")
        return "rows=1"

    def rollback(self):
        self.driver.begin()
        self.insert(11)
        self.driver.rollback()
        expect(self.there(11), 0, "rows rolled back")
        return "rows=0"

    def blob(self):
        sent = b"".join(hashlib.sha256(b"%d" % i).digest() for i in range(BLOB_BYTES // 32))
        self.driver.execute("INSERT INTO t (id, data) VALUES (?, ?)", (12, sent))
        [(received, digest)] = self.driver.run("SELECT data, SHA2(data, 256) FROM t WHERE id = 12")
        expect(digest, hashlib.sha256(sent).hexdigest(), "digest")
        expect(bytes(received) == sent, True, "bytes came back")
        return f"bytes={len(received)} sha256={digest[:16]}"

    def multi(self):
        seen = self.driver.several("SELECT 1; SELECT 2; SELECT 3")
        expect(seen, [1, 2, 3], "results")
        return "results=1,2,3"

    def error(self):
        error = self.fails(lambda: self.insert(1))
        expect(error.errno, 1062, "errno")
        return str(error)

    # --- what Sluice changes ---------------------------------------------------------------------

    def held(self):
        started = time.monotonic()
        self.insert(20, HELD)
        held = time.monotonic() - started >= HELD_AT_LEAST_S
        expect(self.there(20), 1, "rows")
        if self.target.through_sluice:
            expect(held, True, "held back")
        return f"held={'yes' if held else 'no'} rows=1"

    def refused(self):
        before = self.connection_id()
        said = self.refused_or_not(lambda: self.insert(30, REFUSED))
        expect(self.connection_id(), before, "connection id")
        expect(self.there(30), 0 if self.target.through_sluice else 1, "rows")
        return f"{said} connection=kept"

    def refused_prepared(self):
        statement = "INSERT INTO t (id, note, data) VALUES (?, ?, ?)"
        self.driver.run("SET @sluice_app = 'driver-refused'")
        said = self.refused_or_not(lambda: self.driver.execute(statement, (31, GREETING, b"\x00\xff'\\")))
        self.driver.run("SET @sluice_app = 'driver'")
        number = 31 if self.target.through_sluice else 32
        self.driver.execute(statement, (number, GREETING, b"\x00\xff'\\"))
        [(note, data)] = self.driver.run(f"SELECT note, data FROM t WHERE id = {number}")
        expect((note, bytes(data)), (GREETING, b"\x00\xff'\\"), "row after the retry")
        return f"{said} retry=stored"

    def refused_in_transaction(self):
        self.driver.begin()
        said = self.refused_or_not(lambda: self.insert(40, REFUSED))
        self.insert(41)
        self.driver.rollback()
        expect(self.there(40) + self.there(41), 0, "rows rolled back")
        self.driver.begin()
        self.refused_or_not(lambda: self.insert(42, REFUSED))
        self.insert(43)
        self.driver.commit()
        expect(self.there(42), 0 if self.target.through_sluice else 1, "refused rows")
        expect(self.there(43), 1, "committed rows")
        return f"{said} transaction=goes-on"

    def reconnect(self):
        other = self.driver_class(self.target)
        other.run(f"KILL {self.connection_id()}")
        time.sleep(0.3)
        error = self.fails(lambda: self.driver.run("SELECT 1"))
        self.driver.close()
        self.driver = self.driver_class(self.target)
        expect(self.there(1), 1, "rows on a new connection")
        other.close()
        self.driver.close()
        return f"lost={error.type}"

    # --- words the steps are made of -------------------------------------------------------------

    def insert(self, number, comment=""):
        self.driver.run(f"{comment}INSERT INTO t (id) VALUES ({number})")

    def there(self, number):
        return self.driver.run(f"SELECT COUNT(*) FROM t WHERE id = {number}")[0][0]

    def connection_id(self):
        return self.driver.run("SELECT CONNECTION_ID()")[0][0]

    def refused_or_not(self, attempt):
        if not self.target.through_sluice:
            attempt()
            return "admitted"
        error = self.fails(attempt)
        expect(error.errno, 1205, "errno")
        if "[sluice " not in error.message or "executed=no]" not in error.message:
            raise StepFailed(f"the message is {error.message!r}")
        return str(error)

    def fails(self, attempt):
        try:
            attempt()
        except self.driver.errors as error:
            return Seen(error, *self.driver.taken_apart(error))
        raise StepFailed("no error")


class Seen:
    """An error as the application sees it."""

    def __init__(self, error, errno, sqlstate, message):
        self.type = f"{type(error).__module__}.{type(error).__qualname__}"
        self.errno, self.sqlstate, self.message = errno, sqlstate, message

    def __str__(self):
        state = f" sqlstate={self.sqlstate}" if self.sqlstate else ""
        return f"{self.type} errno={self.errno}{state}"


def main(driver_class):
    sys.exit(Steps(driver_class, Target.from_arguments(sys.argv[1:])).run())

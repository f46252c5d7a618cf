//! What each class of statements holds.

/// Behind the keys.
pub(super) const CLASSES: &str = "
## Classes of statements

A statement has the class of its verb, and further ones by what else it does; a rule holds it if \
    it names any of them. A text of several statements has the classes of all.
`write` in a rule's `statements` covers `write`, `locking_read`, `call`, `load` and `unknown`.

- `read`: SELECT without a lock (INTO OUTFILE too), TABLE, VALUES, DO, HANDLER OPEN and READ, EXPLAIN and \
    DESCRIBE of anything.
- `locking_read`: SELECT … FOR UPDATE, FOR SHARE, LOCK IN SHARE MODE, at any depth.
- `write`: INSERT, UPDATE, DELETE, REPLACE, WITH … UPDATE or DELETE; CREATE TABLE from a query \
    (beside `ddl`); NEXT VALUE FOR, NEXTVAL(), SETVAL() and `s.nextval` with MariaDB, whose \
    sequences are replicated.
- `load`: LOAD DATA, LOAD XML.
- `call`: CALL; beside its own class, any text that names a function which is not built in: SET, \
    DO, SHOW … WHERE and, with MariaDB, EXPLAIN run it as SELECT does. A text of one statement \
    is none if all its functions write nothing by the server's own list, which the probe reads \
    [where it may](OPERATIONS.md#accounts).
- `ddl`: CREATE, ALTER, DROP, TRUNCATE, OPTIMIZE, REPAIR, IMPORT TABLE.
- `transaction`: BEGIN, START TRANSACTION, COMMIT, ROLLBACK, SAVEPOINT, RELEASE, XA.
- `session`: SET, USE, PREPARE, DEALLOCATE, SIGNAL, GET DIAGNOSTICS.
- `admin`: SHOW, KILL, FLUSH, ANALYZE TABLE, CHECK, CHECKSUM, LOCK and UNLOCK TABLES, HANDLER CLOSE, RENAME \
    TABLE, GRANT and the account statements, replication, plugins, CLONE, HELP.
- `unknown`: whatever cannot be read, an empty statement, BINLOG, EXECUTE IMMEDIATE, BEGIN NOT \
    ATOMIC, EXECUTE of a name that the session has not prepared.

EXPLAIN ANALYZE, MariaDB's ANALYZE of a statement and SET STATEMENT … FOR have the class of what \
    they run.

- **What `deny` refuses.** A rule that denies and has no `statements` refuses `write`, `locking_read`, \
    `load`, `call`, `unknown` and `ddl`, and with them RENAME TABLE and CLONE INSTANCE: nothing delays \
    those, but a rule that denies `ddl` refuses them, whatever their class `admin`, and takes them \
    for `ddl` in `match.statements` too.
  It does not refuse what changes neither data nor schema of yours: the rest of `admin` (GRANT and the \
    account statements, plugins and components, PURGE, RESET and CHANGE of replication, FLUSH, KILL, \
    SHUTDOWN), SET in all its forms, XA COMMIT of what has been prepared. Those are for privileges.
- **What replicas get.** OPTIMIZE, REPAIR and every ALTER TABLE are written to the binary log, \
    on MySQL and MariaDB alike, and each replica rebuilds what the primary has rebuilt, or \
    changes as little as it did:
  nobody but the server knows which, so all of them are `ddl`. With LOCAL or NO_WRITE_TO_BINLOG \
    they work on the primary alone, and are `ddl` as well. ANALYZE TABLE, FLUSH (but of logs) \
    and the account statements are
  written to the binary log too; a replica reads some pages or a small table for them, and no \
    rule holds them. CHECK, CHECKSUM and CACHE INDEX stay where they are.
- **Functions.** A word before a bracket is built in if it was found to be in MySQL 9.7 or \
    MariaDB 10.11, whose lists hold for all releases; with a server that is not known yet, in \
    both. `db.f(…)`, a quoted name, and COUNT, NOW, SUBSTRING
  and the other functions that IGNORE_SPACE is about with a space before their bracket are \
    stored functions. Loadable functions are not built in.
- **System schemas.** What only reads `information_schema`, `performance_schema` and `sys`, and \
    what only writes to `performance_schema`, is never held, spelt in lower case: with MariaDB \
    anybody may make a schema `PERFORMANCE_SCHEMA`. Writes to `sys`, of which
  `sys_config` is replicated, are writes; a text that calls a routine of `sys` is a `call`.

What changes nothing and is held like a write nevertheless:

- a SELECT of stored or loadable functions that only read: they could write. Not held if the \
    server's own list shows what they do.
- EXPLAIN of a text with such functions: MariaDB runs them to make the plan.
- `COUNT (a)`, `NOW ()` and the like in a session with IGNORE_SPACE: the text does not tell; \
    without that mode it is a stored function.
- `` `concat`(a) ``: a quoted name is a stored function for most names.
- a column `nextval` with its table's name, with MariaDB: where `sql_mode` is ORACLE that moves \
    a sequence on.
- functions that only one of MySQL and MariaDB has, before the server is known: the other would \
    look for a stored function.
- functions of releases newer than the lists: the same.
- `a ESCAPE (b)` and other words that MariaDB does not reserve, before a bracket: they may be \
    functions there.
- `SELECT … FOR UPDATE` of nothing that is changed: locks hold others up.
- what follows the definition of a program in which BEGIN, END or DO is a name: where the \
    program ends is not certain.
- texts whose quotes or comments do not end, or that releases read differently: what cannot be \
    read could be anything.
";

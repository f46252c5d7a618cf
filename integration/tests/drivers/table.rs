//! The drivers, and what each makes of a refusal. docs/DRIVERS.md has the same for people, and a test holds the
//! two together.

/// A program of `integration/clients`.
pub(crate) struct Driver {
    /// Its name there and in the documentation.
    pub(crate) name: &'static str,
    /// What `scripts/install-clients` calls what it needs.
    pub(crate) group: &'static str,
    /// Its error in a refused step.
    pub(crate) error: &'static str,
    /// Steps of which it says something else.
    pub(crate) but: &'static [(&'static str, &'static str)],
}

impl Driver {
    /// What it must say of a step that is refused.
    pub(crate) fn expected(&self, step: &str) -> &'static str {
        self.but.iter().find(|(other, _)| *other == step).map_or(self.error, |(_, error)| error)
    }
}

const fn driver(name: &'static str, group: &'static str, error: &'static str) -> Driver {
    Driver { name, group, error, but: &[] }
}

pub(crate) const DRIVERS: &[Driver] = &[
    driver("mysql-cli", "cli", "ERROR 1205 (HY000)"),
    driver("mariadb-cli", "cli", "ERROR 1205 (HY000)"),
    driver("libmariadb", "c", "errno=1205 sqlstate=HY000"),
    driver("pymysql", "python", "pymysql.err.OperationalError errno=1205"),
    driver("mysqlclient", "python", "MySQLdb.OperationalError errno=1205"),
    driver("asyncmy", "python", "asyncmy.errors.OperationalError errno=1205"),
    driver("connector-python", "python", CONNECTOR_PYTHON),
    driver("connector-python-c", "python", CONNECTOR_PYTHON),
    driver("sqlalchemy", "python", "sqlalchemy.exc.OperationalError errno=1205"),
    driver("django", "python", "django.db.utils.OperationalError errno=1205"),
    driver("go-sql-driver", "go", "*mysql.MySQLError errno=1205 sqlstate=HY000"),
    Driver { but: CONNECTOR_J_BUT, ..driver("connector-j", "java", CONNECTOR_J) },
    Driver { but: CONNECTOR_J_BUT, ..driver("hikaricp", "java", CONNECTOR_J) },
    Driver { but: MARIADB_J_BUT, ..driver("mariadb-connector-j", "java", MARIADB_J) },
    Driver { but: MARIADB_J_BUT, ..driver("hikaricp-mariadb", "java", MARIADB_J) },
    driver("mysql2", "node", "Error code=ER_LOCK_WAIT_TIMEOUT errno=1205 sqlstate=HY000"),
    driver("mariadb-node", "node", "SqlError code=ER_LOCK_WAIT_TIMEOUT errno=1205 sqlstate=HY000"),
    driver("mysql-async", "rust", "mysql_async::Error::Server errno=1205 sqlstate=HY000"),
    driver("sqlx", "rust", "sqlx::Error::Database errno=1205 sqlstate=HY000"),
    Driver {
        but: &[("refused-prepared", "DBD::mysql::st errno=1205 sqlstate=HY000")],
        ..driver("dbd-mysql", "perl", "DBD::mysql::db errno=1205 sqlstate=HY000")
    },
    Driver {
        but: &[("refused-prepared", "DBD::MariaDB::st errno=1205 sqlstate=HY000")],
        ..driver("dbd-mariadb", "perl", "DBD::MariaDB::db errno=1205 sqlstate=HY000")
    },
    driver("php-mysqli", "php", "mysqli_sql_exception errno=1205 sqlstate=HY000"),
    driver("php-pdo", "php", "PDOException errno=1205 sqlstate=HY000"),
    driver("ruby-mysql2", "ruby", "Mysql2::Error::TimeoutError errno=1205 sqlstate=HY000"),
];

const CONNECTOR_PYTHON: &str = "mysql.connector.errors.DatabaseError errno=1205 sqlstate=HY000";

/// It looks the number up in a table of its own, whatever the SQLSTATE says.
const CONNECTOR_J: &str = "com.mysql.cj.jdbc.exceptions.MySQLTransactionRollbackException errno=1205 sqlstate=40001 transient";
const CONNECTOR_J_BUT: &[(&str, &str)] = &[
    ("refused-spring", "org.springframework.dao.CannotAcquireLockException"),
    ("refused-spring-40001", "org.springframework.dao.CannotAcquireLockException"),
];

/// It goes by the SQLSTATE alone: profile `retryable_40001` makes it transient.
const MARIADB_J: &str = "java.sql.SQLException errno=1205 sqlstate=HY000";
const MARIADB_J_BUT: &[(&str, &str)] = &[
    (
        "refused-40001",
        "java.sql.SQLTransactionRollbackException errno=1205 sqlstate=40001 transient",
    ),
    ("refused-spring", "org.springframework.jdbc.UncategorizedSQLException"),
    ("refused-spring-40001", "org.springframework.dao.CannotAcquireLockException"),
];

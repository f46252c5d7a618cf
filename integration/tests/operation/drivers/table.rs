//! The drivers, and what each makes of a refusal. docs/DRIVERS.md has the same for people, and a test holds the
//! two together.

use integration::server::Flavour;

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
    /// What it can compress with.
    pub(crate) compression: &'static [&'static str],
}

impl Driver {
    /// What it must say of a step that is refused.
    pub(crate) fn expected(&self, step: &str) -> &'static str {
        self.but.iter().find(|(other, _)| *other == step).map_or(self.error, |(_, error)| error)
    }

    const fn with_zlib(self) -> Self {
        Self { compression: &["zlib"], ..self }
    }

    /// In how many ways it is tried: with and without TLS, and compressed with each that the server knows too.
    pub(crate) fn modes(&self, flavour: Flavour) -> Vec<Mode> {
        let mut modes =
            vec![Mode { tls: "no", compression: "no" }, Mode { tls: "yes", compression: "no" }];
        for compression in self.compression {
            modes.extend(match (*compression, flavour) {
                ("zstd", Flavour::MariaDb) => None,
                (_, Flavour::MariaDb) | ("zstd", Flavour::MySql) => {
                    Some(Mode { tls: "yes", compression })
                }
                (_, Flavour::MySql) => Some(Mode { tls: "no", compression }),
            });
        }
        modes
    }
}

/// How a driver is told to connect.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Mode {
    /// `yes` or `no`.
    pub(crate) tls: &'static str,
    /// `no` or an algorithm.
    pub(crate) compression: &'static str,
}

const fn driver(name: &'static str, group: &'static str, error: &'static str) -> Driver {
    Driver { name, group, error, but: &[], compression: &[] }
}

pub(crate) const DRIVERS: &[Driver] = &[
    Driver { compression: &["zlib", "zstd"], ..driver("mysql-cli", "cli", "ERROR 1205 (HY000)") },
    driver("mariadb-cli", "cli", "ERROR 1205 (HY000)").with_zlib(),
    driver("libmariadb", "c", "errno=1205 sqlstate=HY000").with_zlib(),
    driver("pymysql", "python", "pymysql.err.OperationalError errno=1205"),
    driver("mysqlclient", "python", "MySQLdb.OperationalError errno=1205").with_zlib(),
    driver("asyncmy", "python", "asyncmy.errors.OperationalError errno=1205"),
    driver("connector-python", "python", CONNECTOR_PYTHON).with_zlib(),
    driver("connector-python-c", "python", CONNECTOR_PYTHON).with_zlib(),
    driver("sqlalchemy", "python", "sqlalchemy.exc.OperationalError errno=1205"),
    driver("django", "python", "django.db.utils.OperationalError errno=1205"),
    driver("go-sql-driver", "go", "*mysql.MySQLError errno=1205 sqlstate=HY000").with_zlib(),
    Driver { but: CONNECTOR_J_BUT, ..driver("connector-j", "java", CONNECTOR_J).with_zlib() },
    Driver { but: CONNECTOR_J_BUT, ..driver("hikaricp", "java", CONNECTOR_J) },
    Driver { but: MARIADB_J_BUT, ..driver("mariadb-connector-j", "java", MARIADB_J).with_zlib() },
    Driver { but: MARIADB_J_BUT, ..driver("hikaricp-mariadb", "java", MARIADB_J) },
    driver("mysql2", "node", "Error code=ER_LOCK_WAIT_TIMEOUT errno=1205 sqlstate=HY000")
        .with_zlib(),
    driver("mariadb-node", "node", "SqlError code=ER_LOCK_WAIT_TIMEOUT errno=1205 sqlstate=HY000")
        .with_zlib(),
    driver("mysql-async", "rust", "mysql_async::Error::Server errno=1205 sqlstate=HY000")
        .with_zlib(),
    driver("sqlx", "rust", "sqlx::Error::Database errno=1205 sqlstate=HY000"),
    Driver {
        but: &[("refused-prepared", "DBD::mysql::st errno=1205 sqlstate=HY000")],
        ..driver("dbd-mysql", "perl", "DBD::mysql::db errno=1205 sqlstate=HY000").with_zlib()
    },
    Driver {
        but: &[("refused-prepared", "DBD::MariaDB::st errno=1205 sqlstate=HY000")],
        ..driver("dbd-mariadb", "perl", "DBD::MariaDB::db errno=1205 sqlstate=HY000").with_zlib()
    },
    driver("php-mysqli", "php", "mysqli_sql_exception errno=1205 sqlstate=HY000").with_zlib(),
    driver("php-pdo", "php", "PDOException errno=1205 sqlstate=HY000").with_zlib(),
    driver("ruby-mysql2", "ruby", "Mysql2::Error::TimeoutError errno=1205 sqlstate=HY000")
        .with_zlib(),
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

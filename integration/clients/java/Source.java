import com.zaxxer.hikari.HikariConfig;
import com.zaxxer.hikari.HikariDataSource;
import java.sql.Connection;
import java.sql.DriverManager;
import java.sql.SQLException;

/** Where connections come from: a driver alone, which has one, or a pool over a driver. */
interface Source extends AutoCloseable {
    Connection borrow() throws SQLException;

    /** Given back to the pool; kept where there is none. */
    void giveBack(Connection connection) throws SQLException;

    boolean isPool();

    @Override
    void close() throws SQLException;

    static Source of(String driver, Target target) throws SQLException {
        return switch (driver) {
            case "connector-j" -> new Alone(connectorJ(target), target);
            case "mariadb-connector-j" -> new Alone(mariadb(target), target);
            case "hikaricp" -> new Pool(connectorJ(target), target);
            case "hikaricp-mariadb" -> new Pool(mariadb(target), target);
            default -> throw new IllegalArgumentException("no driver " + driver);
        };
    }

    private static String connectorJ(Target target) {
        return "jdbc:mysql://%s:%d/%s?sslMode=%s&allowPublicKeyRetrieval=true&useServerPrepStmts=true&allowMultiQueries=true&useCompression=%b"
                .formatted(
                        target.host(), target.port(), target.database(),
                        target.tls() ? "REQUIRED" : "DISABLED", target.compress());
    }

    private static String mariadb(Target target) {
        return "jdbc:mariadb://%s:%d/%s?sslMode=%s&allowPublicKeyRetrieval=true&useServerPrepStmts=true&allowMultiQueries=true&useCompression=%b"
                .formatted(
                        target.host(), target.port(), target.database(),
                        target.tls() ? "trust" : "disable", target.compress());
    }

    /** One connection, as long as it lives. */
    final class Alone implements Source {
        private final String url;
        private final Target target;
        private Connection connection;

        Alone(String url, Target target) {
            this.url = url;
            this.target = target;
        }

        @Override
        public Connection borrow() throws SQLException {
            if (connection == null || connection.isClosed()) {
                connection = DriverManager.getConnection(url, target.user(), target.password());
            }
            return connection;
        }

        @Override
        public void giveBack(Connection connection) {
            // The next one who asks has the same.
        }

        @Override
        public boolean isPool() {
            return false;
        }

        @Override
        public void close() throws SQLException {
            if (connection != null) {
                connection.close();
            }
        }
    }

    /** A pool of one connection: whether it is still the same one shows whether the pool kept it. */
    final class Pool implements Source {
        private final HikariDataSource pool;

        Pool(String url, Target target) {
            HikariConfig config = new HikariConfig();
            config.setJdbcUrl(url);
            config.setUsername(target.user());
            config.setPassword(target.password());
            config.setMaximumPoolSize(1);
            pool = new HikariDataSource(config);
        }

        @Override
        public Connection borrow() throws SQLException {
            return pool.getConnection();
        }

        @Override
        public void giveBack(Connection connection) throws SQLException {
            connection.close();
        }

        @Override
        public boolean isPool() {
            return true;
        }

        @Override
        public void close() {
            pool.close();
        }
    }
}

import java.security.MessageDigest;
import java.sql.Connection;
import java.sql.PreparedStatement;
import java.sql.ResultSet;
import java.sql.SQLException;
import java.sql.SQLTransientException;
import java.sql.Statement;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.HexFormat;
import java.util.List;
import java.util.Objects;
import org.springframework.dao.DataAccessException;
import org.springframework.jdbc.core.JdbcTemplate;
import org.springframework.jdbc.datasource.SingleConnectionDataSource;

/** What every JDBC driver is put through: the same steps, direct and through Sluice. */
public final class Steps {
    private static final int BLOB_BYTES = 4 << 20;
    // The rule holds back for one second; clocks and schedulers may shave a little off it.
    private static final long HELD_AT_LEAST_MS = 950;
    private static final String GREETING = "Grüße, 世界";
    private static final String HELD = "/*app='driver-held'*/ ";
    private static final String REFUSED = "/*app='driver-refused'*/ ";
    private static final String REFUSED_40001 = "/*app='driver-refused-40001'*/ ";

    private final String driver;
    private final Target target;
    private Source source;

    private Steps(String driver, Target target) {
        this.driver = driver;
        this.target = target;
    }

    interface Step {
        String run() throws Exception;
    }

    interface Attempt<T> {
        T on(Connection connection) throws SQLException;
    }

    private record Named(String name, Step step) {}

    public static void main(String[] words) {
        Steps steps = new Steps(words[0], Target.of(words));
        System.exit(steps.all() ? 0 : 1);
    }

    private boolean all() {
        List<Named> named = List.of(
                new Named("connect", this::connect), new Named("text", this::text),
                new Named("prepared", this::prepared), new Named("commit", this::commit),
                new Named("rollback", this::rollback), new Named("blob", this::blob),
                new Named("multi", this::multi), new Named("error", this::error),
                new Named("held", this::held), new Named("refused", this::refused),
                new Named("refused-prepared", this::refusedPrepared),
                new Named("refused-in-transaction", this::refusedInTransaction),
                new Named("refused-40001", () -> refused(REFUSED_40001, 50)),
                new Named("refused-spring", () -> spring(REFUSED, 51)),
                new Named("refused-spring-40001", () -> spring(REFUSED_40001, 52)),
                new Named("reconnect", this::reconnect));
        boolean well = true;
        for (Named next : named) {
            String line;
            try {
                line = "ok " + next.step().run();
            } catch (Exception failure) {
                line = "fail " + failure;
                well = false;
            }
            System.out.printf("step %s %s%n", next.name(), line.replaceAll("\\s+", " "));
            if (!well && next.name().equals("connect")) {
                break;
            }
        }
        return well;
    }

    // --- what works everywhere -----------------------------------------------------------------

    private String connect() throws Exception {
        source = Source.of(driver, target);
        String cipher = with(connection -> first(connection, "SHOW SESSION STATUS LIKE 'Ssl_cipher'", 2));
        expect(!cipher.isEmpty(), target.tls(), "encrypted");
        String compression = with(connection -> first(connection, "SHOW SESSION STATUS LIKE 'Compression'", 2));
        expect(compression.equals("ON"), target.compress(), "compressed");
        run("DROP TABLE IF EXISTS t");
        run("CREATE TABLE t (id INT PRIMARY KEY, note VARCHAR(100), data LONGBLOB) CHARACTER SET utf8mb4");
        return "tls=" + (cipher.isEmpty() ? "no" : "yes") + " compressed=" + (compression.equals("ON") ? "yes" : "no");
    }

    private String text() throws Exception {
        return with(connection -> {
            try (Statement statement = connection.createStatement();
                    ResultSet rows = statement.executeQuery("SELECT 1, '" + GREETING + "', NULL, 12.50")) {
                rows.next();
                expect(rows.getString(2), GREETING, "words");
                expect(rows.getObject(3), null, "NULL");
                return rows.getInt(1) + " " + rows.getString(2) + " NULL " + rows.getBigDecimal(4);
            }
        });
    }

    private String prepared() throws Exception {
        return with(connection -> {
            try (PreparedStatement insert = connection.prepareStatement("INSERT INTO t (id, note) VALUES (?, ?)")) {
                for (int number = 1; number <= 3; number++) {
                    insert.setInt(1, number);
                    insert.setString(2, GREETING + " " + number);
                    expect(insert.executeUpdate(), 1, "rows");
                }
            }
            List<String> seen = new ArrayList<>();
            try (PreparedStatement select = connection.prepareStatement("SELECT note FROM t WHERE id >= ? ORDER BY id")) {
                select.setInt(1, 2);
                try (ResultSet rows = select.executeQuery()) {
                    while (rows.next()) {
                        seen.add(rows.getString(1));
                    }
                }
            }
            expect(seen, List.of(GREETING + " 2", GREETING + " 3"), "rows");
            return "rows=3 by=server";
        });
    }

    private String commit() throws Exception {
        inTransaction(connection -> insert(connection, "", 10), true);
        expect(there(10), 1, "committed rows");
        return "rows=1";
    }

    private String rollback() throws Exception {
        inTransaction(connection -> insert(connection, "", 11), false);
        expect(there(11), 0, "rows rolled back");
        return "rows=0";
    }

    private String blob() throws Exception {
        byte[] sent = new byte[BLOB_BYTES];
        for (int i = 0; i < BLOB_BYTES; i++) {
            sent[i] = (byte) (i * 7 + (i >> 8));
        }
        String wanted = HexFormat.of().formatHex(MessageDigest.getInstance("SHA-256").digest(sent));
        return with(connection -> {
            try (PreparedStatement insert = connection.prepareStatement("INSERT INTO t (id, data) VALUES (?, ?)")) {
                insert.setInt(1, 12);
                insert.setBytes(2, sent);
                insert.executeUpdate();
            }
            try (Statement statement = connection.createStatement();
                    ResultSet rows = statement.executeQuery("SELECT data, SHA2(data, 256) FROM t WHERE id = 12")) {
                rows.next();
                expect(rows.getString(2), wanted, "digest");
                expect(Arrays.equals(rows.getBytes(1), sent), true, "bytes came back");
                return "bytes=" + rows.getBytes(1).length + " sha256=" + wanted.substring(0, 16);
            }
        });
    }

    private String multi() throws Exception {
        return with(connection -> {
            List<Integer> seen = new ArrayList<>();
            try (Statement statement = connection.createStatement()) {
                boolean more = statement.execute("SELECT 1; SELECT 2; SELECT 3");
                while (more) {
                    try (ResultSet rows = statement.getResultSet()) {
                        rows.next();
                        seen.add(rows.getInt(1));
                    }
                    more = statement.getMoreResults();
                }
            }
            expect(seen, List.of(1, 2, 3), "results");
            return "results=1,2,3";
        });
    }

    private String error() throws Exception {
        SQLException error = fails(() -> run("INSERT INTO t (id) VALUES (1)"));
        expect(error.getErrorCode(), 1062, "errno");
        return described(error);
    }

    // --- what Sluice changes -------------------------------------------------------------------

    private String held() throws Exception {
        long started = System.nanoTime();
        run(HELD + "INSERT INTO t (id) VALUES (20)");
        boolean held = (System.nanoTime() - started) / 1_000_000 >= HELD_AT_LEAST_MS;
        expect(there(20), 1, "rows");
        if (target.throughSluice()) {
            expect(held, true, "held back");
        }
        return "held=" + (held ? "yes" : "no") + " rows=1";
    }

    private String refused() throws Exception {
        return refused(REFUSED, 30);
    }

    /** With a pool each statement borrows anew: the same id says that the pool kept the connection. */
    private String refused(String comment, int number) throws Exception {
        String before = connectionId();
        String said = refusedOrNot(() -> run(comment + "INSERT INTO t (id) VALUES (" + number + ")"));
        expect(connectionId(), before, "connection id");
        expect(there(number), ifAdmitted(), "rows");
        return said + " connection=kept";
    }

    private String refusedPrepared() throws Exception {
        return with(connection -> {
            byte[] data = {0, (byte) 255, '\'', '\\'};
            String text = "INSERT INTO t (id, note, data) VALUES (?, ?, ?)";
            try (PreparedStatement insert = connection.prepareStatement(text)) {
                insert.setInt(1, 31);
                insert.setString(2, GREETING);
                insert.setBytes(3, data);
                run(connection, "SET @sluice_app = 'driver-refused'");
                String said = refusedOrNot(insert::executeUpdate);
                run(connection, "SET @sluice_app = 'driver'");
                insert.setInt(1, 31 + ifAdmitted());
                expect(insert.executeUpdate(), 1, "rows of the retry");
                String stored = first(connection, "SELECT CONCAT(note, ' ', HEX(data)) FROM t WHERE id = " + (31 + ifAdmitted()), 1);
                expect(stored, GREETING + " 00FF275C", "row after the retry");
                return said + " retry=stored";
            }
        });
    }

    private String refusedInTransaction() throws Exception {
        String[] said = {null};
        for (int number : new int[] {40, 42}) {
            boolean committed = number == 42;
            inTransaction(connection -> {
                said[0] = refusedOrNot(() -> insert(connection, REFUSED, number));
                insert(connection, "", number + 1);
                return null;
            }, committed);
        }
        expect(there(40) + there(41), 0, "rows rolled back");
        expect(there(42), ifAdmitted(), "refused rows");
        expect(there(43), 1, "committed rows");
        return said[0] + " transaction=goes-on";
    }

    /** What Spring makes of it, with its defaults. */
    private String spring(String comment, int number) throws Exception {
        return with(connection -> {
            JdbcTemplate spring = new JdbcTemplate(new SingleConnectionDataSource(connection, true));
            String insert = comment + "INSERT INTO t (id) VALUES (" + number + ")";
            if (!target.throughSluice()) {
                spring.update(insert);
                return "admitted connection=kept";
            }
            try {
                spring.update(insert);
                throw new IllegalStateException("no error");
            } catch (DataAccessException error) {
                return error.getClass().getName() + " connection=kept";
            }
        });
    }

    /** A driver tells the statement that meets it; a pool that looks before it lends replaces it unseen. */
    private String reconnect() throws Exception {
        try (Source other = Source.of(driver, target)) {
            run(other.borrow(), "KILL " + connectionId());
        }
        Thread.sleep(source.isPool() ? 800 : 300);
        String lost = source.isPool() ? "unseen" : fails(() -> run("SELECT 1")).getClass().getName();
        expect(there(1), 1, "rows on a new connection");
        source.close();
        return "lost=" + lost;
    }

    // --- words the steps are made of -----------------------------------------------------------

    private <T> T with(Attempt<T> attempt) throws SQLException {
        Connection connection = source.borrow();
        try {
            return attempt.on(connection);
        } finally {
            source.giveBack(connection);
        }
    }

    private void inTransaction(Attempt<?> work, boolean committed) throws SQLException {
        with(connection -> {
            connection.setAutoCommit(false);
            work.on(connection);
            if (committed) {
                connection.commit();
            } else {
                connection.rollback();
            }
            connection.setAutoCommit(true);
            return null;
        });
    }

    private int run(String sql) throws SQLException {
        return with(connection -> run(connection, sql));
    }

    private static int run(Connection connection, String sql) throws SQLException {
        try (Statement statement = connection.createStatement()) {
            statement.execute(sql);
            return 0;
        }
    }

    private static int insert(Connection connection, String comment, int number) throws SQLException {
        return run(connection, comment + "INSERT INTO t (id) VALUES (" + number + ")");
    }

    private static String first(Connection connection, String sql, int column) throws SQLException {
        try (Statement statement = connection.createStatement(); ResultSet rows = statement.executeQuery(sql)) {
            rows.next();
            return rows.getString(column);
        }
    }

    private int there(int number) throws SQLException {
        return Integer.parseInt(with(connection -> first(connection, "SELECT COUNT(*) FROM t WHERE id = " + number, 1)));
    }

    private String connectionId() throws SQLException {
        return with(connection -> first(connection, "SELECT CONNECTION_ID()", 1));
    }

    private int ifAdmitted() {
        return target.throughSluice() ? 0 : 1;
    }

    interface Doing {
        int now() throws SQLException;
    }

    private String refusedOrNot(Doing doing) throws SQLException {
        if (!target.throughSluice()) {
            doing.now();
            return "admitted";
        }
        SQLException error = fails(doing);
        expect(error.getErrorCode(), 1205, "errno");
        expect(error.getMessage().contains("[sluice ") && error.getMessage().contains("executed=no]"), true, error.getMessage());
        return described(error);
    }

    private static SQLException fails(Doing doing) {
        try {
            doing.now();
        } catch (SQLException error) {
            return error;
        }
        throw new IllegalStateException("no error");
    }

    private static String described(SQLException error) {
        String kind = error instanceof SQLTransientException ? " transient" : "";
        return error.getClass().getName() + " errno=" + error.getErrorCode() + " sqlstate=" + error.getSQLState() + kind;
    }

    private static void expect(Object seen, Object wanted, String what) {
        if (!Objects.equals(seen, wanted)) {
            throw new IllegalStateException(what + ": " + seen + " instead of " + wanted);
        }
    }
}

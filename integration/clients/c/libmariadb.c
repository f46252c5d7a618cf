/* The C library (libmariadb), put through the same steps direct and through Sluice:
 *
 *   libmariadb HOST PORT USER PASSWORD DATABASE TLS SERVER ROUTE
 *
 * Prepared statements are the binary protocol's; the blob goes in pieces as long data. A step answers 0 and
 * says its detail in `detail`, or anything else and why. */
#define _POSIX_C_SOURCE 200809L
#include <mysql.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { BLOB_BYTES = 4 << 20, PIECE_BYTES = 1 << 16, DUPLICATE = 1062, REFUSAL = 1205 };
/* The rule holds back for one second; clocks and schedulers may shave a little off it. */
#define HELD_AT_LEAST_S 0.95
#define GREETING "Grüße, 世界"
#define HELD "/*app='driver-held'*/ "
#define REFUSED "/*app='driver-refused'*/ "
#define OR_FAIL(condition, ...) do { if (!(condition)) return say(__VA_ARGS__), 1; } while (0)
#define OR_ITS_ERROR(condition) OR_FAIL(condition, "%u %s", mysql_errno(db), mysql_error(db))
#define OR_PASS_ON(step) do { if (step) return 1; } while (0)

static const char *host, *user, *password, *database;
static unsigned port;
static int tls, compress, through_sluice;
static MYSQL *db;
static char detail[2048];
static unsigned char sent[BLOB_BYTES], received[BLOB_BYTES];

static void say(const char *format, ...) {
    va_list words;
    va_start(words, format);
    vsnprintf(detail, sizeof detail, format, words);
    va_end(words);
}

/* --- words the steps are made of ------------------------------------------------------------------ */

static MYSQL *connected(void) {
    MYSQL *new = mysql_init(NULL);
    my_bool yes = 1, no = 0;
    mysql_options(new, MYSQL_SET_CHARSET_NAME, "utf8mb4");
    if (tls) mysql_optionsv(new, MYSQL_OPT_SSL_ENFORCE, &yes);
    mysql_optionsv(new, MYSQL_OPT_SSL_VERIFY_SERVER_CERT, &no);
    if (compress) mysql_optionsv(new, MYSQL_OPT_COMPRESS, NULL);
    if (mysql_real_connect(new, host, user, password, database, port, NULL, CLIENT_MULTI_STATEMENTS)) return new;
    say("%u %s", mysql_errno(new), mysql_error(new));
    mysql_close(new);
    return NULL;
}

static int run(const char *format, ...) {
    char text[512];
    va_list words;
    va_start(words, format);
    vsnprintf(text, sizeof text, format, words);
    va_end(words);
    OR_ITS_ERROR(!mysql_query(db, text));
    MYSQL_RES *result = mysql_store_result(db);
    if (result) mysql_free_result(result);
    return 0;
}

static int insert(const char *comment, int number) {
    return run("%sINSERT INTO t (id) VALUES (%d)", comment, number);
}

/* One value, as text; empty when it is NULL. */
static int ask(char *value, size_t size, int column, const char *text) {
    OR_ITS_ERROR(!mysql_query(db, text));
    MYSQL_RES *result = mysql_store_result(db);
    OR_ITS_ERROR(result);
    MYSQL_ROW row = mysql_fetch_row(result);
    snprintf(value, size, "%s", row && row[column] ? row[column] : "");
    mysql_free_result(result);
    return 0;
}

static int expect_rows(int wanted, const char *numbers) {
    char text[128], count[32];
    snprintf(text, sizeof text, "SELECT COUNT(*) FROM t WHERE id IN (%s)", numbers);
    OR_PASS_ON(ask(count, sizeof count, 0, text));
    OR_FAIL(atoi(count) == wanted, "%s rows of %s instead of %d", count, numbers, wanted);
    return 0;
}

/* What the error of the last call says, when it is the expected one. */
static int described(unsigned expected, unsigned seen, const char *state, const char *message) {
    OR_FAIL(seen == expected, "errno %u instead of %u: %s", seen, expected, message);
    if (expected == REFUSAL)
        OR_FAIL(strstr(message, "[sluice ") && strstr(message, "executed=no]"), "the message is %s", message);
    say("errno=%u sqlstate=%s", seen, state);
    return 0;
}

static int refused_or_not(int failed, unsigned seen, const char *state, const char *message) {
    if (through_sluice) return described(REFUSAL, seen, state, message);
    OR_FAIL(!failed, "%u %s", seen, message);
    say("admitted");
    return 0;
}

static int insert_refused_or_not(int number) {
    int failed = insert(REFUSED, number);
    return refused_or_not(failed, mysql_errno(db), mysql_sqlstate(db), mysql_error(db));
}

static double now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static MYSQL_STMT *prepared_from(const char *text) {
    MYSQL_STMT *statement = mysql_stmt_init(db);
    if (!mysql_stmt_prepare(statement, text, strlen(text))) return statement;
    say("%s", mysql_stmt_error(statement));
    mysql_stmt_close(statement);
    return NULL;
}

static MYSQL_BIND number_bind(int *number) {
    return (MYSQL_BIND){.buffer_type = MYSQL_TYPE_LONG, .buffer = number};
}

static MYSQL_BIND bytes_bind(enum enum_field_types type, void *bytes, unsigned long *length) {
    return (MYSQL_BIND){.buffer_type = type, .buffer = bytes, .buffer_length = *length, .length = length};
}

/* --- what works everywhere ------------------------------------------------------------------------ */

static int step_connect(void) {
    char cipher[128], compression[8];
    db = connected();
    if (!db) return 1;
    OR_PASS_ON(ask(cipher, sizeof cipher, 1, "SHOW SESSION STATUS LIKE 'Ssl_cipher'"));
    OR_FAIL((cipher[0] != 0) == tls, "cipher '%s'", cipher);
    OR_PASS_ON(ask(compression, sizeof compression, 1, "SHOW SESSION STATUS LIKE 'Compression'"));
    OR_FAIL((strcmp(compression, "ON") == 0) == compress, "compression '%s'", compression);
    OR_PASS_ON(run("DROP TABLE IF EXISTS t"));
    OR_PASS_ON(run("CREATE TABLE t (id INT PRIMARY KEY, note VARCHAR(100), data LONGBLOB) CHARACTER SET utf8mb4"));
    say("tls=%s compressed=%s", tls ? "yes" : "no", compress ? "yes" : "no");
    return 0;
}

static int step_text(void) {
    OR_ITS_ERROR(!mysql_query(db, "SELECT 1, '" GREETING "', NULL, 12.50"));
    MYSQL_RES *result = mysql_store_result(db);
    MYSQL_ROW row = mysql_fetch_row(result);
    say("%s %s %s %s", row[0], row[1], row[2] ? row[2] : "NULL", row[3]);
    mysql_free_result(result);
    OR_FAIL(!strcmp(detail, "1 " GREETING " NULL 12.50"), "%s", detail);
    return 0;
}

static int insert_three(MYSQL_STMT *statement) {
    int number;
    char note[64];
    unsigned long length = sizeof note;
    MYSQL_BIND values[2] = {number_bind(&number), bytes_bind(MYSQL_TYPE_STRING, note, &length)};
    OR_FAIL(!mysql_stmt_bind_param(statement, values), "%s", mysql_stmt_error(statement));
    for (number = 1; number <= 3; number++) {
        length = (unsigned long)snprintf(note, sizeof note, GREETING " %d", number);
        OR_FAIL(!mysql_stmt_execute(statement), "%s", mysql_stmt_error(statement));
    }
    return 0;
}

static int read_from_two(MYSQL_STMT *statement) {
    int from = 2, count = 0;
    char note[64], wanted[64];
    unsigned long length = sizeof note;
    MYSQL_BIND value = number_bind(&from), column = bytes_bind(MYSQL_TYPE_STRING, note, &length);
    OR_FAIL(!mysql_stmt_bind_param(statement, &value), "%s", mysql_stmt_error(statement));
    OR_FAIL(!mysql_stmt_execute(statement), "%s", mysql_stmt_error(statement));
    OR_FAIL(!mysql_stmt_bind_result(statement, &column), "%s", mysql_stmt_error(statement));
    for (; !mysql_stmt_fetch(statement); count++) {
        snprintf(wanted, sizeof wanted, GREETING " %d", from + count);
        OR_FAIL(length == strlen(wanted) && !memcmp(note, wanted, length), "row %d is wrong", count);
    }
    OR_FAIL(count == 2, "%d rows", count);
    return 0;
}

static int step_prepared(void) {
    MYSQL_STMT *put = prepared_from("INSERT INTO t (id, note) VALUES (?, ?)");
    if (!put) return 1;
    int failed = insert_three(put);
    mysql_stmt_close(put);
    OR_PASS_ON(failed);
    MYSQL_STMT *look = prepared_from("SELECT note FROM t WHERE id >= ? ORDER BY id");
    if (!look) return 1;
    failed = read_from_two(look);
    mysql_stmt_close(look);
    OR_PASS_ON(failed);
    say("rows=3 by=server");
    return 0;
}

static int step_commit(void) {
    OR_PASS_ON(mysql_autocommit(db, 0) || insert("", 10) || mysql_commit(db) || mysql_autocommit(db, 1));
    OR_PASS_ON(expect_rows(1, "10"));
    say("rows=1");
    return 0;
}

static int step_rollback(void) {
    OR_PASS_ON(mysql_autocommit(db, 0) || insert("", 11) || mysql_rollback(db) || mysql_autocommit(db, 1));
    OR_PASS_ON(expect_rows(0, "11"));
    say("rows=0");
    return 0;
}

static int send_in_pieces(MYSQL_STMT *statement) {
    unsigned long length = 0;
    MYSQL_BIND value = bytes_bind(MYSQL_TYPE_LONG_BLOB, sent, &length);
    OR_FAIL(!mysql_stmt_bind_param(statement, &value), "%s", mysql_stmt_error(statement));
    for (int at = 0; at < BLOB_BYTES; at += PIECE_BYTES)
        OR_FAIL(!mysql_stmt_send_long_data(statement, 0, (char *)sent + at, PIECE_BYTES), "%s", mysql_stmt_error(statement));
    OR_FAIL(!mysql_stmt_execute(statement), "%s", mysql_stmt_error(statement));
    return 0;
}

static int read_back(MYSQL_STMT *statement) {
    unsigned long length = BLOB_BYTES;
    MYSQL_BIND column = bytes_bind(MYSQL_TYPE_LONG_BLOB, received, &length);
    OR_FAIL(!mysql_stmt_execute(statement), "%s", mysql_stmt_error(statement));
    OR_FAIL(!mysql_stmt_bind_result(statement, &column), "%s", mysql_stmt_error(statement));
    OR_FAIL(!mysql_stmt_fetch(statement), "no row");
    OR_FAIL(length == BLOB_BYTES && !memcmp(sent, received, BLOB_BYTES), "%lu other bytes", length);
    return 0;
}

static int step_blob(void) {
    for (int i = 0; i < BLOB_BYTES; i++) sent[i] = (unsigned char)(i * 7 + (i >> 8));
    MYSQL_STMT *put = prepared_from("INSERT INTO t (id, data) VALUES (12, ?)");
    if (!put) return 1;
    int failed = send_in_pieces(put);
    mysql_stmt_close(put);
    OR_PASS_ON(failed);
    MYSQL_STMT *look = prepared_from("SELECT data FROM t WHERE id = 12");
    if (!look) return 1;
    failed = read_back(look);
    mysql_stmt_close(look);
    OR_PASS_ON(failed);
    char digest[80];
    OR_PASS_ON(ask(digest, sizeof digest, 0, "SELECT SHA2(data, 256) FROM t WHERE id = 12"));
    say("bytes=%d sha256=%.16s", BLOB_BYTES, digest);
    return 0;
}

static int step_multi(void) {
    int wanted = 1, more;
    OR_ITS_ERROR(!mysql_query(db, "SELECT 1; SELECT 2; SELECT 3"));
    do {
        MYSQL_RES *result = mysql_store_result(db);
        OR_ITS_ERROR(result);
        int seen = atoi(mysql_fetch_row(result)[0]);
        mysql_free_result(result);
        OR_FAIL(seen == wanted++, "a result of %d", seen);
        more = mysql_next_result(db);
    } while (!more);
    OR_FAIL(more == -1 && wanted == 4, "%d results", wanted - 1);
    say("results=1,2,3");
    return 0;
}

static int step_error(void) {
    insert("", 1);
    return described(DUPLICATE, mysql_errno(db), mysql_sqlstate(db), mysql_error(db));
}

/* --- what Sluice changes -------------------------------------------------------------------------- */

static int step_held(void) {
    double started = now();
    OR_PASS_ON(insert(HELD, 20));
    int held = now() - started >= HELD_AT_LEAST_S;
    OR_PASS_ON(expect_rows(1, "20"));
    OR_FAIL(held || !through_sluice, "not held back");
    say("held=%s rows=1", held ? "yes" : "no");
    return 0;
}

static int step_refused(void) {
    unsigned long before = mysql_thread_id(db);
    char said[256], id[32];
    OR_PASS_ON(insert_refused_or_not(30));
    snprintf(said, sizeof said, "%s connection=kept", detail);
    OR_PASS_ON(ask(id, sizeof id, 0, "SELECT CONNECTION_ID()"));
    OR_FAIL(strtoul(id, NULL, 10) == before, "connection %s instead of %lu", id, before);
    OR_PASS_ON(expect_rows(through_sluice ? 0 : 1, "30"));
    say("%s", said);
    return 0;
}

/* The library sends the types of what is bound once: the retry comes without them. */
static int refused_then_stored(MYSQL_STMT *statement) {
    int number = 31;
    char note[] = GREETING, data[] = {0, (char)255, '\'', '\\'}, row[128], said[256], text[128];
    unsigned long note_length = sizeof note - 1, data_length = sizeof data;
    MYSQL_BIND values[3] = {number_bind(&number), bytes_bind(MYSQL_TYPE_STRING, note, &note_length),
                            bytes_bind(MYSQL_TYPE_BLOB, data, &data_length)};
    OR_FAIL(!mysql_stmt_bind_param(statement, values), "%s", mysql_stmt_error(statement));
    OR_PASS_ON(run("SET @sluice_app = 'driver-refused'"));
    int failed = mysql_stmt_execute(statement);
    OR_PASS_ON(refused_or_not(failed, mysql_stmt_errno(statement), mysql_stmt_sqlstate(statement), mysql_stmt_error(statement)));
    snprintf(said, sizeof said, "%s retry=stored", detail);
    OR_PASS_ON(run("SET @sluice_app = 'driver'"));
    number += through_sluice ? 0 : 1;
    OR_FAIL(!mysql_stmt_execute(statement), "%s", mysql_stmt_error(statement));
    snprintf(text, sizeof text, "SELECT CONCAT(note, ' ', HEX(data)) FROM t WHERE id = %d", number);
    OR_PASS_ON(ask(row, sizeof row, 0, text));
    OR_FAIL(!strcmp(row, GREETING " 00FF275C"), "the row is %s", row);
    say("%s", said);
    return 0;
}

static int step_refused_prepared(void) {
    MYSQL_STMT *statement = prepared_from("INSERT INTO t (id, note, data) VALUES (?, ?, ?)");
    if (!statement) return 1;
    int failed = refused_then_stored(statement);
    mysql_stmt_close(statement);
    return failed;
}

static int step_refused_in_transaction(void) {
    char said[256];
    OR_PASS_ON(run("START TRANSACTION"));
    OR_PASS_ON(insert_refused_or_not(40));
    snprintf(said, sizeof said, "%s transaction=goes-on", detail);
    OR_PASS_ON(insert("", 41) || mysql_rollback(db) || expect_rows(0, "40, 41"));
    OR_PASS_ON(run("START TRANSACTION"));
    OR_PASS_ON(insert_refused_or_not(42));
    OR_PASS_ON(insert("", 43) || mysql_commit(db));
    OR_PASS_ON(expect_rows(through_sluice ? 0 : 1, "42") || expect_rows(1, "43"));
    say("%s", said);
    return 0;
}

static int step_reconnect(void) {
    MYSQL *other = connected(), *first = db;
    if (!other) return 1;
    unsigned long id = mysql_thread_id(first);
    db = other;
    OR_PASS_ON(run("KILL %lu", id));
    nanosleep(&(struct timespec){.tv_nsec = 300000000}, NULL);
    OR_FAIL(mysql_query(first, "SELECT 1"), "no error");
    unsigned lost = mysql_errno(first);
    mysql_close(first);
    db = connected();
    if (!db) return 1;
    OR_PASS_ON(expect_rows(1, "1"));
    mysql_close(other);
    mysql_close(db);
    say("lost=%u", lost);
    return 0;
}

static void one_line(char *text) {
    for (; *text; text++)
        if (*text == '\n') *text = ' ';
}

int main(int count, char **words) {
    static const struct { const char *name; int (*step)(void); } steps[] = {
        {"connect", step_connect}, {"text", step_text}, {"prepared", step_prepared}, {"commit", step_commit},
        {"rollback", step_rollback}, {"blob", step_blob}, {"multi", step_multi}, {"error", step_error},
        {"held", step_held}, {"refused", step_refused}, {"refused-prepared", step_refused_prepared},
        {"refused-in-transaction", step_refused_in_transaction}, {"reconnect", step_reconnect},
    };
    if (count != 9) return fputs("libmariadb HOST PORT USER PASSWORD DATABASE TLS SERVER ROUTE\n", stderr), 2;
    host = words[1], port = (unsigned)atoi(words[2]), user = words[3], password = words[4], database = words[5];
    tls = !strcmp(words[6], "yes"), through_sluice = !strcmp(words[8], "sluice");
    const char *compression = getenv("DRIVER_COMPRESSION");
    compress = compression && strcmp(compression, "no");
    int status = 0;
    for (size_t i = 0; i < sizeof steps / sizeof *steps; i++) {
        detail[0] = 0;
        int failed = steps[i].step();
        one_line(detail);
        printf("step %s %s %s\n", steps[i].name, failed ? "fail" : "ok", detail);
        fflush(stdout);
        status |= failed != 0;
        if (failed && i == 0) break;
    }
    return status;
}

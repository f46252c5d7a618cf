#!/usr/bin/env bash
# A command-line client is put through the steps of the drivers, one script of statements a step:
#
#   steps.sh PROGRAM mysql|mariadb HOST PORT USER PASSWORD DATABASE TLS SERVER ROUTE
#
# The second word says whose options it takes. `--force` goes on after an error, as a person would.
set -euo pipefail

program="$1" options_of="$2"
shift 2
host="$1" port="$2" user="$3" password="$4" database="$5" tls="$6" route="$8"
compression="${DRIVER_COMPRESSION:-no}"

BLOB_BYTES=4194304
# The rule holds back for one second; clocks and schedulers may shave a little off it.
HELD_AT_LEAST_MS=950
GREETING='Grüße, 世界'
HELD="/*app='driver-held'*/"
REFUSED="/*app='driver-refused'*/"

scratch="$(mktemp -d)"
trap 'rm -rf "$scratch"' EXIT
options=(--no-defaults --host="$host" --port="$port" --protocol=tcp --user="$user" --database="$database"
    --default-character-set=utf8mb4 --max-allowed-packet=64M --comments --force --batch --skip-column-names)
case "$options_of-$tls" in
mysql-yes) options+=(--commands --ssl-mode=REQUIRED) ;;
mysql-no) options+=(--commands --ssl-mode=DISABLED --get-server-public-key) ;;
mariadb-yes) options+=(--ssl --skip-ssl-verify-server-cert) ;;
mariadb-no) options+=(--skip-ssl) ;;
esac
case "$options_of-$compression" in
*-no) ;;
mysql-*) options+=(--compression-algorithms="$compression") ;;
mariadb-*) options+=(--compress) ;;
esac

main() {
    local status=0 name verdict
    for name in connect text prepared commit rollback blob multi error held refused refused-prepared \
        refused-in-transaction reconnect; do
        # Not as a condition: bash would go on after a command that failed.
        set +e
        (set -e; "step_${name//-/_}" >"$scratch/detail" 2>"$scratch/why")
        [ $? = 0 ] && verdict=ok || verdict=fail status=1
        set -e
        printf 'step %s %s %s\n' "$name" "$verdict" "$(cat "$scratch/detail" "$scratch/why" | tr -s '\n\t ' ' ' | sed 's/ $//' | cut -c1-500)"
        [ "$name-$verdict" != connect-fail ] || break
    done
    exit $status
}

# The statements of standard input; what they give on standard output, their errors in $scratch/errors.
sql() { MYSQL_PWD="$password" "$program" "${options[@]}" 2>"$scratch/errors" || [ -s "$scratch/errors" ]; }
sql_without_error() { sql; expect "$(errors)" '' errors; }
errors() { grep '^ERROR' "$scratch/errors" || true; }
expect() { [ "$1" = "$2" ] || { echo "$3: '$1' instead of '$2'"; exit 1; } >&2; }
ask() { sql_without_error <<<"$1"; }
there() { ask "SELECT COUNT(*) FROM t WHERE id IN ($1)"; }
through_sluice() { [ "$route" = sluice ]; }

# --- what works everywhere ------------------------------------------------------------------------

step_connect() {
    local cipher compressed=no
    cipher="$(ask "SHOW SESSION STATUS LIKE 'Ssl_cipher'" | cut -f2)"
    expect "$([ -n "$cipher" ] && echo yes || echo no)" "$tls" encrypted
    [ "$(ask "SHOW SESSION STATUS LIKE 'Compression'" | cut -f2)" = OFF ] || compressed=yes
    expect "$compressed" "$([ "$compression" = no ] && echo no || echo yes)" compressed
    ask "DROP TABLE IF EXISTS t; CREATE TABLE t (id INT PRIMARY KEY, note VARCHAR(100), data LONGBLOB) CHARACTER SET utf8mb4"
    echo "tls=$tls compressed=$compressed"
}

step_text() {
    local row
    row="$(ask "SELECT 1, '$GREETING', NULL, 12.50")"
    expect "$row" "1	$GREETING	NULL	12.50" row
    echo "$row"
}

step_prepared() {
    sql_without_error >"$scratch/rows" <<SQL
PREPARE put FROM 'INSERT INTO t (id, note) VALUES (?, ?)';
SET @id = 1, @note = '$GREETING 1'; EXECUTE put USING @id, @note;
SET @id = 2, @note = '$GREETING 2'; EXECUTE put USING @id, @note;
SET @id = 3, @note = '$GREETING 3'; EXECUTE put USING @id, @note;
PREPARE look FROM 'SELECT id, note FROM t WHERE id >= ? ORDER BY id';
SET @id = 2; EXECUTE look USING @id;
SQL
    expect "$(cat "$scratch/rows")" "2	$GREETING 2
3	$GREETING 3" rows
    echo "rows=3 by=sql"
}

step_commit() {
    ask "START TRANSACTION; INSERT INTO t (id) VALUES (10); COMMIT"
    expect "$(there 10)" 1 "committed rows"
    echo rows=1
}

step_rollback() {
    ask "START TRANSACTION; INSERT INTO t (id) VALUES (11); ROLLBACK"
    expect "$(there 11)" 0 "rows rolled back"
    echo rows=0
}

step_blob() {
    head -c $((BLOB_BYTES / 2)) /dev/urandom | od -An -v -tx1 | tr -d ' \n' >"$scratch/text"
    { printf "INSERT INTO t (id, data) VALUES (12, '"; cat "$scratch/text"; printf "')"; } | sql_without_error
    ask "SELECT data FROM t WHERE id = 12" | tr -d '\n' >"$scratch/back"
    cmp "$scratch/text" "$scratch/back"
    expect "$(ask "SELECT SHA2(data, 256) FROM t WHERE id = 12")" "$(sha256sum <"$scratch/text" | cut -d' ' -f1)" digest
    echo "bytes=$(ask "SELECT LENGTH(data) FROM t WHERE id = 12")"
}

# The client splits at the delimiter: with another one the server has three statements in one command.
step_multi() {
    expect "$(printf 'DELIMITER //\nSELECT 1; SELECT 2; SELECT 3 //\n' | sql_without_error | tr '\n' ,)" 1,2,3, results
    echo results=1,2,3
}

step_error() {
    sql <<<"INSERT INTO t (id) VALUES (1)"
    errors
}

# --- what Sluice changes --------------------------------------------------------------------------

step_held() {
    local started held=no
    started=$(date +%s%3N)
    ask "$HELD INSERT INTO t (id) VALUES (20)"
    [ $(($(date +%s%3N) - started)) -lt $HELD_AT_LEAST_MS ] || held=yes
    expect "$(there 20)" 1 rows
    ! through_sluice || expect $held yes "held back"
    echo "held=$held rows=1"
}

step_refused() {
    local ids
    ids="$(sql <<<"SELECT CONNECTION_ID(); $REFUSED INSERT INTO t (id) VALUES (30); SELECT CONNECTION_ID()")"
    said
    expect "$(uniq <<<"$ids" | wc -l)-$(wc -l <<<"$ids")" 1-2 "connection ids"
    expect "$(there 30)" "$(if_admitted)" rows
    echo connection=kept
}

step_refused_prepared() {
    local number
    number=$((31 + $(if_admitted)))
    sql <<SQL
PREPARE put FROM 'INSERT INTO t (id, note, data) VALUES (?, ?, ?)';
SET @id = 31, @note = '$GREETING', @data = x'00ff275c', @sluice_app = 'driver-refused';
EXECUTE put USING @id, @note, @data;
SET @sluice_app = 'driver', @id = $number;
EXECUTE put USING @id, @note, @data;
SQL
    said
    expect "$(ask "SELECT note, HEX(data) FROM t WHERE id = $number")" "$GREETING	00FF275C" "row after the retry"
    echo retry=stored
}

step_refused_in_transaction() {
    sql <<<"START TRANSACTION; $REFUSED INSERT INTO t (id) VALUES (40); INSERT INTO t (id) VALUES (41); ROLLBACK"
    said
    expect "$(there 40,41)" 0 "rows rolled back"
    sql <<<"START TRANSACTION; $REFUSED INSERT INTO t (id) VALUES (42); INSERT INTO t (id) VALUES (43); COMMIT"
    expect "$(there 42)" "$(if_admitted)" "refused rows"
    expect "$(there 43)" 1 "committed rows"
    echo transaction=goes-on
}

# A script does not reconnect by itself, but has a word for it.
step_reconnect() {
    local after
    after="$(printf 'KILL CONNECTION_ID();\nSELECT 1;\nconnect\nSELECT COUNT(*) FROM t WHERE id = 1;\n' | sql)"
    expect "$(tail -n 1 <<<"$after")" 1 "rows on a new connection"
    echo "lost=$(errors | cut -d' ' -f1-2 | tr ' \n' '- ')"
}

if_admitted() { if through_sluice; then echo 0; else echo 1; fi; }

# What the last script's errors say: the refusal, and nothing else.
said() {
    if ! through_sluice; then
        expect "$(errors)" '' errors
        echo admitted
        return
    fi
    expect "$(errors | wc -l)" 1 "lines of errors"
    grep -q '\[sluice .*executed=no\]' "$scratch/errors" || { errors >&2; exit 1; }
    errors | sed 's/ at line .*//'
}

main

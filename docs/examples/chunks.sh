#!/bin/sh
# A job in chunks that asks Sluice before each of them, for a job that writes around Sluice:
#
#   SLUICE_CHECK='http://127.0.0.1:9307/throttler/check?app=cleanup' ./chunks.sh mysql --host=db1 shop
#
# The arguments are a client that reads a statement from its standard input and prints what it says. Anything but 200
# waits, and so does no answer.
set -eu

may_go_on() {
    [ "$(curl --silent --head --max-time 2 --output /dev/null --write-out '%{http_code}' "$SLUICE_CHECK")" = 200 ]
}

statement="${STATEMENT:-DELETE FROM carts WHERE updated < NOW() - INTERVAL 1 YEAR LIMIT 500; SELECT ROW_COUNT()}"

while :; do
    until may_go_on; do sleep 1; done
    changed="$(printf '%s;\n' "$statement" | "$@" | tail -n 1)"
    [ "$changed" -gt 0 ] || break
done

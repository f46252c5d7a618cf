// go-sql-driver/mysql through database/sql, put through the same steps direct and through Sluice.
//
//	driver HOST PORT USER PASSWORD DATABASE TLS SERVER ROUTE
package main

import (
	"bytes"
	"context"
	"crypto/sha256"
	"database/sql"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"reflect"
	"strings"
	"time"

	"github.com/go-sql-driver/mysql"
)

const (
	blobBytes = 4 << 20
	// The rule holds back for one second; clocks and schedulers may shave a little off it.
	heldAtLeast = 950 * time.Millisecond
	greeting    = "Grüße, 世界"
	held        = "/*app='driver-held'*/ "
	refused     = "/*app='driver-refused'*/ "
)

func main() {
	words := os.Args[1:]
	if len(words) != 8 {
		fmt.Fprintln(os.Stderr, "driver HOST PORT USER PASSWORD DATABASE TLS SERVER ROUTE")
		os.Exit(2)
	}
	config := mysql.NewConfig()
	config.Net, config.Addr = "tcp", words[0]+":"+words[1]
	config.User, config.Passwd, config.DBName = words[2], words[3], words[4]
	config.MultiStatements = true
	config.TLSConfig = map[string]string{"yes": "skip-verify", "no": "false"}[words[5]]
	compression := os.Getenv("DRIVER_COMPRESSION")
	compress := compression != "" && compression != "no"
	if err := config.Apply(mysql.EnableCompression(compress)); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(2)
	}
	steps := &steps{config: config, tls: words[5] == "yes", compress: compress, throughSluice: words[7] == "sluice"}
	os.Exit(steps.all())
}

type steps struct {
	config        *mysql.Config
	tls           bool
	compress      bool
	throughSluice bool
	pool          *sql.DB
	// One connection of the pool: session variables and transactions are its.
	conn *sql.Conn
}

func (s *steps) all() int {
	named := []struct {
		name string
		step func() (string, error)
	}{
		{"connect", s.connect}, {"text", s.text}, {"prepared", s.prepared}, {"commit", s.commit},
		{"rollback", s.rollback}, {"blob", s.blob}, {"multi", s.multi}, {"error", s.error},
		{"held", s.held}, {"refused", s.refused}, {"refused-prepared", s.refusedPrepared},
		{"refused-in-transaction", s.refusedInTransaction}, {"reconnect", s.reconnect},
	}
	status := 0
	for _, step := range named {
		detail, err := step.step()
		verdict := "ok"
		if err != nil {
			verdict, detail, status = "fail", fmt.Sprintf("%T: %v", err, err), 1
		}
		fmt.Printf("step %s %s %s\n", step.name, verdict, strings.Join(strings.Fields(detail), " "))
		if err != nil && step.name == "connect" {
			break
		}
	}
	return status
}

// --- what works everywhere ----------------------------------------------------------------------

func (s *steps) connect() (string, error) {
	connector, err := mysql.NewConnector(s.config)
	if err != nil {
		return "", err
	}
	s.pool = sql.OpenDB(connector)
	if s.conn, err = s.pool.Conn(ctx); err != nil {
		return "", err
	}
	var name, cipher string
	if err := s.row("SHOW SESSION STATUS LIKE 'Ssl_cipher'").Scan(&name, &cipher); err != nil {
		return "", err
	}
	if err := expect(cipher != "", s.tls, "encrypted"); err != nil {
		return "", err
	}
	var compression string
	if err := s.row("SHOW SESSION STATUS LIKE 'Compression'").Scan(&name, &compression); err != nil {
		return "", err
	}
	if err := expect(compression == "ON", s.compress, "compressed"); err != nil {
		return "", err
	}
	if err := s.run("DROP TABLE IF EXISTS t"); err != nil {
		return "", err
	}
	err = s.run("CREATE TABLE t (id INT PRIMARY KEY, note VARCHAR(100), data LONGBLOB) CHARACTER SET utf8mb4")
	said := map[bool]string{true: "yes", false: "no"}
	return "tls=" + said[s.tls] + " compressed=" + said[s.compress], err
}

func (s *steps) text() (string, error) {
	var one int
	var words, amount string
	var nothing sql.NullString
	err := s.row("SELECT 1, '"+greeting+"', NULL, 12.50").Scan(&one, &words, &nothing, &amount)
	if err == nil {
		err = expect([]any{words, nothing.Valid, amount}, []any{greeting, false, "12.50"}, "row")
	}
	return fmt.Sprintf("%d %s NULL %s", one, words, amount), err
}

func (s *steps) prepared() (string, error) {
	insert, err := s.conn.PrepareContext(ctx, "INSERT INTO t (id, note) VALUES (?, ?)")
	if err != nil {
		return "", err
	}
	defer insert.Close()
	for number := 1; number <= 3; number++ {
		if _, err := insert.Exec(number, fmt.Sprintf("%s %d", greeting, number)); err != nil {
			return "", err
		}
	}
	rows, err := s.conn.QueryContext(ctx, "SELECT note FROM t WHERE id >= ? ORDER BY id", 2)
	if err != nil {
		return "", err
	}
	defer rows.Close()
	var seen []string
	for rows.Next() {
		var note string
		if err := rows.Scan(&note); err != nil {
			return "", err
		}
		seen = append(seen, note)
	}
	if err := rows.Err(); err != nil {
		return "", err
	}
	return "rows=3 by=server", expect(seen, []string{greeting + " 2", greeting + " 3"}, "rows")
}

func (s *steps) commit() (string, error) {
	transaction, err := s.conn.BeginTx(ctx, nil)
	if err != nil {
		return "", err
	}
	if _, err := transaction.Exec(insertOf(10, "")); err != nil {
		return "", err
	}
	if err := transaction.Commit(); err != nil {
		return "", err
	}
	return "rows=1", s.expectRows(1, 10)
}

func (s *steps) rollback() (string, error) {
	transaction, err := s.conn.BeginTx(ctx, nil)
	if err != nil {
		return "", err
	}
	if _, err := transaction.Exec(insertOf(11, "")); err != nil {
		return "", err
	}
	if err := transaction.Rollback(); err != nil {
		return "", err
	}
	return "rows=0", s.expectRows(0, 11)
}

func (s *steps) blob() (string, error) {
	sent := make([]byte, blobBytes)
	for i := range sent {
		sent[i] = byte(i*7 + i>>8)
	}
	if _, err := s.conn.ExecContext(ctx, "INSERT INTO t (id, data) VALUES (?, ?)", 12, sent); err != nil {
		return "", err
	}
	var received []byte
	var digest string
	if err := s.row("SELECT data, SHA2(data, 256) FROM t WHERE id = 12").Scan(&received, &digest); err != nil {
		return "", err
	}
	sum := sha256.Sum256(sent)
	if err := expect(digest, hex.EncodeToString(sum[:]), "digest"); err != nil {
		return "", err
	}
	return fmt.Sprintf("bytes=%d sha256=%s", len(received), digest[:16]), expect(bytes.Equal(sent, received), true, "bytes came back")
}

func (s *steps) multi() (string, error) {
	rows, err := s.conn.QueryContext(ctx, "SELECT 1; SELECT 2; SELECT 3")
	if err != nil {
		return "", err
	}
	defer rows.Close()
	var seen []int
	for more := true; more; more = rows.NextResultSet() {
		for rows.Next() {
			var value int
			if err := rows.Scan(&value); err != nil {
				return "", err
			}
			seen = append(seen, value)
		}
	}
	if err := rows.Err(); err != nil {
		return "", err
	}
	return "results=1,2,3", expect(seen, []int{1, 2, 3}, "results")
}

func (s *steps) error() (string, error) {
	return fails(1062, func() error { return s.insert(1, "") })
}

// --- what Sluice changes ------------------------------------------------------------------------

func (s *steps) held() (string, error) {
	started := time.Now()
	if err := s.insert(20, held); err != nil {
		return "", err
	}
	waited := time.Since(started) >= heldAtLeast
	if s.throughSluice {
		if err := expect(waited, true, "held back"); err != nil {
			return "", err
		}
	}
	return fmt.Sprintf("held=%s rows=1", map[bool]string{true: "yes", false: "no"}[waited]), s.expectRows(1, 20)
}

func (s *steps) refused() (string, error) {
	before, err := s.connectionID()
	if err != nil {
		return "", err
	}
	said, err := s.refusedOrNot(func() error { return s.insert(30, refused) })
	if err != nil {
		return "", err
	}
	after, err := s.connectionID()
	if err != nil {
		return "", err
	}
	if err := expect(after, before, "connection id"); err != nil {
		return "", err
	}
	return said + " connection=kept", s.expectRows(s.ifAdmitted(), 30)
}

func (s *steps) refusedPrepared() (string, error) {
	statement, err := s.conn.PrepareContext(ctx, "INSERT INTO t (id, note, data) VALUES (?, ?, ?)")
	if err != nil {
		return "", err
	}
	defer statement.Close()
	data := []byte{0, 255, '\'', '\\'}
	if err := s.run("SET @sluice_app = 'driver-refused'"); err != nil {
		return "", err
	}
	said, err := s.refusedOrNot(func() error {
		_, err := statement.Exec(31, greeting, data)
		return err
	})
	if err != nil {
		return "", err
	}
	if err := s.run("SET @sluice_app = 'driver'"); err != nil {
		return "", err
	}
	number := 31 + s.ifAdmitted()
	if _, err := statement.Exec(number, greeting, data); err != nil {
		return "", err
	}
	var note string
	var stored []byte
	if err := s.row(fmt.Sprintf("SELECT note, data FROM t WHERE id = %d", number)).Scan(&note, &stored); err != nil {
		return "", err
	}
	return said + " retry=stored", expect([]any{note, stored}, []any{greeting, data}, "row after the retry")
}

func (s *steps) refusedInTransaction() (string, error) {
	said, err := s.transactionWithRefusal(40, (*sql.Tx).Rollback)
	if err != nil {
		return "", err
	}
	if err := s.expectRows(0, 40, 41); err != nil {
		return "", err
	}
	if _, err := s.transactionWithRefusal(42, (*sql.Tx).Commit); err != nil {
		return "", err
	}
	if err := s.expectRows(s.ifAdmitted(), 42); err != nil {
		return "", err
	}
	return said + " transaction=goes-on", s.expectRows(1, 43)
}

func (s *steps) transactionWithRefusal(number int, end func(*sql.Tx) error) (string, error) {
	transaction, err := s.conn.BeginTx(ctx, nil)
	if err != nil {
		return "", err
	}
	said, err := s.refusedOrNot(func() error {
		_, err := transaction.Exec(insertOf(number, refused))
		return err
	})
	if err != nil {
		return "", err
	}
	if _, err := transaction.Exec(insertOf(number+1, "")); err != nil {
		return "", err
	}
	return said, end(transaction)
}

// The pool replaces what was killed by itself: a statement on the pool sees nothing of it.
func (s *steps) reconnect() (string, error) {
	id, err := s.connectionID()
	if err != nil {
		return "", err
	}
	if _, err := s.pool.Exec(fmt.Sprintf("KILL %d", id)); err != nil {
		return "", err
	}
	time.Sleep(300 * time.Millisecond)
	lost := s.run("SELECT 1")
	if lost == nil {
		return "", errors.New("no error")
	}
	s.conn.Close()
	var count int
	if err := s.pool.QueryRow("SELECT COUNT(*) FROM t WHERE id = 1").Scan(&count); err != nil {
		return "", err
	}
	return fmt.Sprintf("lost=%q", lost), expect(count, 1, "rows on a new connection")
}

// --- words the steps are made of ----------------------------------------------------------------

var ctx = context.Background()

func (s *steps) run(text string) error {
	_, err := s.conn.ExecContext(ctx, text)
	return err
}

func (s *steps) row(text string) *sql.Row { return s.conn.QueryRowContext(ctx, text) }

func (s *steps) insert(number int, comment string) error { return s.run(insertOf(number, comment)) }

func insertOf(number int, comment string) string {
	return fmt.Sprintf("%sINSERT INTO t (id) VALUES (%d)", comment, number)
}

func (s *steps) expectRows(wanted int, numbers ...int) error {
	list := strings.Trim(strings.Join(strings.Fields(fmt.Sprint(numbers)), ","), "[]")
	var count int
	if err := s.row("SELECT COUNT(*) FROM t WHERE id IN (" + list + ")").Scan(&count); err != nil {
		return err
	}
	return expect(count, wanted, "rows")
}

func (s *steps) connectionID() (id int64, err error) {
	err = s.row("SELECT CONNECTION_ID()").Scan(&id)
	return id, err
}

func (s *steps) ifAdmitted() int {
	if s.throughSluice {
		return 0
	}
	return 1
}

func (s *steps) refusedOrNot(attempt func() error) (string, error) {
	if !s.throughSluice {
		return "admitted", attempt()
	}
	return fails(1205, attempt)
}

func fails(errno uint16, attempt func() error) (string, error) {
	err := attempt()
	var seen *mysql.MySQLError
	if !errors.As(err, &seen) {
		return "", fmt.Errorf("not the driver's error: %w", err)
	}
	if errno == 1205 && !(strings.Contains(seen.Message, "[sluice ") && strings.HasSuffix(seen.Message, "executed=no]")) {
		return "", fmt.Errorf("the message is %s", seen.Message)
	}
	return fmt.Sprintf("%T errno=%d sqlstate=%s", seen, seen.Number, seen.SQLState), expect(seen.Number, errno, "errno")
}

func expect(seen, wanted any, what string) error {
	if !reflect.DeepEqual(seen, wanted) {
		return fmt.Errorf("%s: %v instead of %v", what, seen, wanted)
	}
	return nil
}

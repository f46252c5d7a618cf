<?php
// mysqli and PDO, put through the same steps direct and through Sluice:
//
//   steps.php mysqli|pdo HOST PORT USER PASSWORD DATABASE TLS SERVER ROUTE

declare(strict_types=1);

require __DIR__ . '/drivers.php';

const BLOB_BYTES = 4 << 20;
// The rule holds back for one second; clocks and schedulers may shave a little off it.
const HELD_AT_LEAST_S = 0.95;
const GREETING = 'Grüße, 世界';
const HELD = "/*app='driver-held'*/ ";
const REFUSED = "/*app='driver-refused'*/ ";
const NAMES = [
    'connect', 'text', 'prepared', 'commit', 'rollback', 'blob', 'multi', 'error',
    'held', 'refused', 'refused-prepared', 'refused-in-transaction', 'reconnect',
];

final class Steps
{
    private Driver $driver;

    public function __construct(private string $kind, private Target $target)
    {
    }

    public function all(): int
    {
        $failed = 0;
        foreach (NAMES as $name) {
            $step = lcfirst(str_replace('-', '', ucwords($name, '-')));
            try {
                $line = 'ok ' . $this->$step();
            } catch (Throwable $error) {
                $line = 'fail ' . $error::class . ': ' . $error->getMessage();
                $failed = 1;
            }
            echo "step $name ", preg_replace('/\s+/', ' ', $line), "\n";
            if ($failed && $name === 'connect') {
                break;
            }
        }
        return $failed;
    }

    // --- what works everywhere -----------------------------------------------------------------

    private function connect(): string
    {
        $this->driver = $this->connected();
        [[, $cipher]] = $this->driver->rows("SHOW SESSION STATUS LIKE 'Ssl_cipher'");
        expect($cipher !== '', $this->target->tls, 'encrypted');
        [[, $compression]] = $this->driver->rows("SHOW SESSION STATUS LIKE 'Compression'");
        expect($compression === 'ON', $this->target->compress, 'compressed');
        $this->driver->run('DROP TABLE IF EXISTS t');
        $this->driver->run('CREATE TABLE t (id INT PRIMARY KEY, note VARCHAR(100), data LONGBLOB) CHARACTER SET utf8mb4');
        return 'tls=' . ($cipher === '' ? 'no' : 'yes') . ' compressed=' . ($compression === 'ON' ? 'yes' : 'no');
    }

    private function text(): string
    {
        [[$one, $words, $nothing, $amount]] = $this->driver->rows("SELECT 1, '" . GREETING . "', NULL, 12.50");
        expect([$words, $nothing], [GREETING, null], 'row');
        return "$one $words NULL $amount";
    }

    private function prepared(): string
    {
        foreach ([1, 2, 3] as $number) {
            $this->driver->execute('INSERT INTO t (id, note) VALUES (?, ?)', [$number, GREETING . " $number"]);
        }
        $rows = $this->driver->execute('SELECT note FROM t WHERE id >= ? ORDER BY id', [2]);
        expect($rows, [[GREETING . ' 2'], [GREETING . ' 3']], 'rows');
        return 'rows=3 by=server';
    }

    private function commit(): string
    {
        $this->driver->begin();
        $this->insert(10);
        $this->driver->commit();
        expect($this->there(10), 1, 'committed rows');
        return 'rows=1';
    }

    private function rollback(): string
    {
        $this->driver->begin();
        $this->insert(11);
        $this->driver->rollback();
        expect($this->there(11), 0, 'rows rolled back');
        return 'rows=0';
    }

    private function blob(): string
    {
        $sent = implode('', array_map(fn (int $i) => hash('sha256', (string) $i, true), range(1, BLOB_BYTES >> 5)));
        $this->driver->execute('INSERT INTO t (id, data) VALUES (?, ?)', [12, $sent]);
        [[$received, $digest]] = $this->driver->rows('SELECT data, SHA2(data, 256) FROM t WHERE id = 12');
        expect($digest, hash('sha256', $sent), 'digest');
        expect($received === $sent, true, 'bytes came back');
        return 'bytes=' . strlen($received) . ' sha256=' . substr($digest, 0, 16);
    }

    private function multi(): string
    {
        expect($this->driver->several('SELECT 1; SELECT 2; SELECT 3'), [1, 2, 3], 'results');
        return 'results=1,2,3';
    }

    private function error(): string
    {
        return $this->fails(1062, fn () => $this->insert(1));
    }

    // --- what Sluice changes -------------------------------------------------------------------

    private function held(): string
    {
        $started = microtime(true);
        $this->insert(20, HELD);
        $held = microtime(true) - $started >= HELD_AT_LEAST_S;
        expect($this->there(20), 1, 'rows');
        expect($held || !$this->target->throughSluice, true, 'held back');
        return 'held=' . ($held ? 'yes' : 'no') . ' rows=1';
    }

    private function refused(): string
    {
        $before = $this->connectionId();
        $said = $this->refusedOrNot(fn () => $this->insert(30, REFUSED));
        expect($this->connectionId(), $before, 'connection id');
        expect($this->there(30), $this->ifAdmitted(), 'rows');
        return "$said connection=kept";
    }

    private function refusedPrepared(): string
    {
        $text = 'INSERT INTO t (id, note, data) VALUES (?, ?, ?)';
        $data = "\x00\xff'\\";
        $this->driver->run("SET @sluice_app = 'driver-refused'");
        $said = $this->refusedOrNot(fn () => $this->driver->execute($text, [31, GREETING, $data]));
        $this->driver->run("SET @sluice_app = 'driver'");
        $number = 31 + $this->ifAdmitted();
        $this->driver->execute($text, [$number, GREETING, $data]);
        $rows = $this->driver->rows("SELECT note, data FROM t WHERE id = $number");
        expect($rows, [[GREETING, $data]], 'row after the retry');
        return "$said retry=stored";
    }

    private function refusedInTransaction(): string
    {
        $this->driver->begin();
        $said = $this->refusedOrNot(fn () => $this->insert(40, REFUSED));
        $this->insert(41);
        $this->driver->rollback();
        expect($this->there(40) + $this->there(41), 0, 'rows rolled back');
        $this->driver->begin();
        $this->refusedOrNot(fn () => $this->insert(42, REFUSED));
        $this->insert(43);
        $this->driver->commit();
        expect($this->there(42), $this->ifAdmitted(), 'refused rows');
        expect($this->there(43), 1, 'committed rows');
        return "$said transaction=goes-on";
    }

    private function reconnect(): string
    {
        $other = $this->connected();
        $other->run('KILL ' . $this->connectionId());
        usleep(300_000);
        try {
            // What is lost is also warned of, beside the exception.
            @$this->driver->run('SELECT 1');
            throw new RuntimeException('no error');
        } catch (mysqli_sql_exception | PDOException $error) {
            $lost = $error::class;
        }
        $this->driver = $this->connected();
        expect($this->there(1), 1, 'rows on a new connection');
        return "lost=$lost";
    }

    // --- words the steps are made of -----------------------------------------------------------

    private function connected(): Driver
    {
        return $this->kind === 'pdo' ? new WithPdo($this->target) : new WithMysqli($this->target);
    }

    private function insert(int $number, string $comment = ''): void
    {
        $this->driver->run("{$comment}INSERT INTO t (id) VALUES ($number)");
    }

    private function there(int $number): int
    {
        return (int) $this->driver->rows("SELECT COUNT(*) FROM t WHERE id = $number")[0][0];
    }

    private function connectionId(): int
    {
        return (int) $this->driver->rows('SELECT CONNECTION_ID()')[0][0];
    }

    private function ifAdmitted(): int
    {
        return $this->target->throughSluice ? 0 : 1;
    }

    private function refusedOrNot(callable $attempt): string
    {
        if (!$this->target->throughSluice) {
            $attempt();
            return 'admitted';
        }
        return $this->fails(1205, $attempt);
    }

    private function fails(int $errno, callable $attempt): string
    {
        try {
            $attempt();
        } catch (mysqli_sql_exception | PDOException $error) {
            [$seen, $state] = $this->driver->takenApart($error);
            expect($seen, $errno, 'errno');
            $ours = preg_match('/\[sluice .*executed=no\]/', $error->getMessage()) === 1;
            expect($ours, $errno === 1205, $error->getMessage());
            return $error::class . " errno=$seen sqlstate=$state";
        }
        throw new RuntimeException('no error');
    }
}

function expect(mixed $seen, mixed $wanted, string $what): void
{
    if ($seen !== $wanted) {
        throw new RuntimeException("$what: " . var_export($seen, true) . ' instead of ' . var_export($wanted, true));
    }
}

exit((new Steps($argv[1], Target::of(array_slice($argv, 2))))->all());

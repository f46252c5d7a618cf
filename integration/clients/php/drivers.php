<?php
// The two interfaces of PHP to MySQL; both prepare at the server, and both have mysqlnd below them.

declare(strict_types=1);

final class Target
{
    private function __construct(
        public readonly string $host,
        public readonly int $port,
        public readonly string $user,
        public readonly string $password,
        public readonly string $database,
        public readonly bool $tls,
        public readonly bool $compress,
        public readonly bool $throughSluice,
    ) {
    }

    /** HOST PORT USER PASSWORD DATABASE TLS SERVER ROUTE */
    public static function of(array $words): self
    {
        [$host, $port, $user, $password, $database, $tls, , $route] = $words;
        $compress = (getenv('DRIVER_COMPRESSION') ?: 'no') !== 'no';
        return new self($host, (int) $port, $user, $password, $database, $tls === 'yes', $compress, $route === 'sluice');
    }
}

interface Driver
{
    public function run(string $sql): void;

    public function rows(string $sql): array;

    public function execute(string $sql, array $values): array;

    public function several(string $sql): array;

    public function begin(): void;

    public function commit(): void;

    public function rollback(): void;

    /** Error number and SQLSTATE. */
    public function takenApart(Exception $error): array;
}

final class WithMysqli implements Driver
{
    private mysqli $mysqli;
    private array $statements = [];

    public function __construct(Target $target)
    {
        mysqli_report(MYSQLI_REPORT_ERROR | MYSQLI_REPORT_STRICT);
        $this->mysqli = mysqli_init();
        $flags = $target->tls ? MYSQLI_CLIENT_SSL | MYSQLI_CLIENT_SSL_DONT_VERIFY_SERVER_CERT : 0;
        $flags |= $target->compress ? MYSQLI_CLIENT_COMPRESS : 0;
        $this->mysqli->real_connect(
            $target->host, $target->user, $target->password, $target->database, $target->port, null, $flags,
        );
        $this->mysqli->set_charset('utf8mb4');
    }

    public function run(string $sql): void
    {
        $this->mysqli->query($sql);
    }

    public function rows(string $sql): array
    {
        return $this->mysqli->query($sql)->fetch_all();
    }

    public function execute(string $sql, array $values): array
    {
        $statement = $this->statements[$sql] ??= $this->mysqli->prepare($sql);
        $statement->execute($values);
        $result = $statement->get_result();
        return $result === false ? [] : $result->fetch_all();
    }

    public function several(string $sql): array
    {
        $this->mysqli->multi_query($sql);
        $seen = [];
        do {
            $seen[] = (int) $this->mysqli->store_result()->fetch_row()[0];
        } while ($this->mysqli->more_results() && $this->mysqli->next_result());
        return $seen;
    }

    public function begin(): void
    {
        $this->mysqli->begin_transaction();
    }

    public function commit(): void
    {
        $this->mysqli->commit();
    }

    public function rollback(): void
    {
        $this->mysqli->rollback();
    }

    public function takenApart(Exception $error): array
    {
        return [$error->getCode(), $error->getSqlState()];
    }
}

final class WithPdo implements Driver
{
    private PDO $pdo;
    private array $statements = [];

    public function __construct(Target $target)
    {
        $options = [
            PDO::ATTR_ERRMODE => PDO::ERRMODE_EXCEPTION,
            PDO::ATTR_EMULATE_PREPARES => false,
            PDO::ATTR_DEFAULT_FETCH_MODE => PDO::FETCH_NUM,
        ];
        if ($target->compress) {
            $options[PDO::MYSQL_ATTR_COMPRESS] = true;
        }
        if ($target->tls) {
            // TLS is asked for by naming something of it; nothing is verified.
            $options[PDO::MYSQL_ATTR_SSL_CIPHER] = 'DEFAULT';
            $options[PDO::MYSQL_ATTR_SSL_VERIFY_SERVER_CERT] = false;
        }
        $dsn = "mysql:host=$target->host;port=$target->port;dbname=$target->database;charset=utf8mb4";
        $this->pdo = new PDO($dsn, $target->user, $target->password, $options);
    }

    public function run(string $sql): void
    {
        $this->pdo->exec($sql);
    }

    public function rows(string $sql): array
    {
        return $this->pdo->query($sql)->fetchAll();
    }

    public function execute(string $sql, array $values): array
    {
        $statement = $this->statements[$sql] ??= $this->pdo->prepare($sql);
        $statement->execute($values);
        return $statement->columnCount() > 0 ? $statement->fetchAll() : [];
    }

    public function several(string $sql): array
    {
        $this->pdo->setAttribute(PDO::ATTR_EMULATE_PREPARES, true);
        $statement = $this->pdo->query($sql);
        $seen = [];
        do {
            $seen[] = (int) $statement->fetch()[0];
        } while ($statement->nextRowset());
        $this->pdo->setAttribute(PDO::ATTR_EMULATE_PREPARES, false);
        return $seen;
    }

    public function begin(): void
    {
        $this->pdo->beginTransaction();
    }

    public function commit(): void
    {
        $this->pdo->commit();
    }

    public function rollback(): void
    {
        $this->pdo->rollBack();
    }

    public function takenApart(Exception $error): array
    {
        return [$error->errorInfo[1], $error->errorInfo[0]];
    }
}

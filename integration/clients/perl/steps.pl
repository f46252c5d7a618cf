#!/usr/bin/env perl
# DBD::mysql and DBD::MariaDB, put through the same steps direct and through Sluice:
#
#   steps.pl mysql|MariaDB HOST PORT USER PASSWORD DATABASE TLS SERVER ROUTE
use v5.36;
use utf8;
use DBI;
use Digest::SHA qw(sha256 sha256_hex);
use Time::HiRes qw(sleep time);

binmode STDOUT, ':encoding(UTF-8)';
$| = 1;

use constant {
    BLOB_BYTES => 4 << 20,
    # The rule holds back for one second; clocks and schedulers may shave a little off it.
    HELD_AT_LEAST_S => 0.95,
    GREETING => 'Grüße, 世界',
    HELD => "/*app='driver-held'*/ ",
    REFUSED => "/*app='driver-refused'*/ ",
};

my ($driver, $host, $port, $user, $password, $database, $tls, $server, $route) = @ARGV;
my $compress = ($ENV{DRIVER_COMPRESSION} // 'no') ne 'no';
my $through_sluice = $route eq 'sluice';
my $dbh;

my @steps = (
    connect => \&step_connect, text => \&text, prepared => \&prepared, commit => \&commit, rollback => \&rollback,
    blob => \&blob, multi => \&multi, error => \&error, held => \&held, refused => \&refused,
    'refused-prepared' => \&refused_prepared, 'refused-in-transaction' => \&refused_in_transaction,
    reconnect => \&reconnect,
);

my $failed = 0;
while (my ($name, $step) = splice @steps, 0, 2) {
    my $detail = eval { $step->() };
    my $verdict = 'ok';
    if (!defined $detail) {
        ($verdict, $detail, $failed) = ('fail', $@, 1);
    }
    $detail =~ s/\s+/ /g;
    say "step $name $verdict $detail";
    last if $failed && $name eq 'connect';
}
exit $failed;

# --- what works everywhere ----------------------------------------------------------------------

sub connected {
    my $option = $driver eq 'mysql' ? 'mysql' : 'mariadb';
    my $dsn = "dbi:$driver:database=$database;host=$host;port=$port;${option}_multi_statements=1";
    # Nothing is verified: the servers' certificates are made for the test. DBD::mysql over libmariadb cannot
    # insist on TLS, only take it where it is offered.
    $dsn .= ";${option}_ssl=1;${option}_ssl_optional=1" if $tls eq 'yes';
    $dsn .= ";${option}_compression=1" if $compress;
    my %more = $driver eq 'mysql' ? (mysql_enable_utf8mb4 => 1) : ();
    my $dbh = DBI->connect($dsn, $user, $password,
        { RaiseError => 1, PrintError => 0, PrintWarn => 0, AutoCommit => 1, "${option}_server_prepare" => 1, %more });
    return $dbh;
}

sub step_connect {
    $dbh = connected();
    my (undef, $cipher) = $dbh->selectrow_array("SHOW SESSION STATUS LIKE 'Ssl_cipher'");
    my $seen = $cipher ? 'yes' : 'no';
    expect($seen, $tls, 'encrypted');
    my (undef, $compression) = $dbh->selectrow_array("SHOW SESSION STATUS LIKE 'Compression'");
    my $compressed = $compression eq 'ON' ? 'yes' : 'no';
    expect($compressed, $compress ? 'yes' : 'no', 'compressed');
    $dbh->do('DROP TABLE IF EXISTS t');
    $dbh->do('CREATE TABLE t (id INT PRIMARY KEY, note VARCHAR(100), data LONGBLOB) CHARACTER SET utf8mb4');
    return "tls=$seen compressed=$compressed";
}

sub text {
    my @row = $dbh->selectrow_array("SELECT 1, '${\GREETING}', NULL, 12.50");
    expect($row[1], GREETING, 'words');
    expect(defined $row[2] ? 1 : 0, 0, 'NULL');
    return "$row[0] $row[1] NULL $row[3]";
}

sub prepared {
    my $insert = $dbh->prepare('INSERT INTO t (id, note) VALUES (?, ?)');
    $insert->execute($_, GREETING . " $_") for 1 .. 3;
    my $notes = $dbh->selectcol_arrayref('SELECT note FROM t WHERE id >= ? ORDER BY id', undef, 2);
    expect("@$notes", join(' ', GREETING . ' 2', GREETING . ' 3'), 'rows');
    return 'rows=3 by=server';
}

sub commit {
    $dbh->begin_work;
    insert(10);
    $dbh->commit;
    expect(there(10), 1, 'committed rows');
    return 'rows=1';
}

sub rollback {
    $dbh->begin_work;
    insert(11);
    $dbh->rollback;
    expect(there(11), 0, 'rows rolled back');
    return 'rows=0';
}

sub blob {
    my $sent = join '', map { sha256($_) } 1 .. BLOB_BYTES / 32;
    my $insert = $dbh->prepare('INSERT INTO t (id, data) VALUES (?, ?)');
    $insert->bind_param(1, 12);
    $insert->bind_param(2, $sent, DBI::SQL_BLOB());
    $insert->execute;
    my ($received, $digest) = $dbh->selectrow_array('SELECT data, SHA2(data, 256) FROM t WHERE id = 12');
    expect($digest, sha256_hex($sent), 'digest');
    expect($received eq $sent ? 1 : 0, 1, 'bytes came back');
    return 'bytes=' . length($received) . ' sha256=' . substr $digest, 0, 16;
}

# Several statements in one command are text: what is prepared is one statement.
sub multi {
    my $option = $driver eq 'mysql' ? 'mysql' : 'mariadb';
    my $several = $dbh->prepare('SELECT 1; SELECT 2; SELECT 3', { "${option}_server_prepare" => 0 });
    $several->execute;
    my @seen;
    do { push @seen, $several->fetchrow_array } while $several->more_results;
    expect("@seen", '1 2 3', 'results');
    return 'results=1,2,3';
}

sub error {
    return fails(1062, sub { insert(1) });
}

# --- what Sluice changes ------------------------------------------------------------------------

sub held {
    my $started = time;
    insert(20, HELD);
    my $held = time - $started >= HELD_AT_LEAST_S ? 'yes' : 'no';
    expect(there(20), 1, 'rows');
    expect($held, 'yes', 'held back') if $through_sluice;
    return "held=$held rows=1";
}

sub refused {
    my $before = connection_id();
    my $said = refused_or_not(sub { insert(30, REFUSED) });
    expect(connection_id(), $before, 'connection id');
    expect(there(30), $through_sluice ? 0 : 1, 'rows');
    return "$said connection=kept";
}

sub refused_prepared {
    my $data = pack 'C*', 0, 255, 39, 92;
    my $insert = $dbh->prepare('INSERT INTO t (id, note, data) VALUES (?, ?, ?)');
    $insert->bind_param(1, 31);
    $insert->bind_param(2, GREETING);
    $insert->bind_param(3, $data, DBI::SQL_BLOB());
    $dbh->do("SET \@sluice_app = 'driver-refused'");
    my $said = refused_or_not(sub { $insert->execute });
    $dbh->do("SET \@sluice_app = 'driver'");
    my $number = $through_sluice ? 31 : 32;
    $insert->bind_param(1, $number);
    $insert->execute;
    my ($note, $hex) = $dbh->selectrow_array("SELECT note, HEX(data) FROM t WHERE id = $number");
    expect("$note $hex", GREETING . ' 00FF275C', 'row after the retry');
    return "$said retry=stored";
}

sub refused_in_transaction {
    $dbh->begin_work;
    my $said = refused_or_not(sub { insert(40, REFUSED) });
    insert(41);
    $dbh->rollback;
    expect(there(40) + there(41), 0, 'rows rolled back');
    $dbh->begin_work;
    refused_or_not(sub { insert(42, REFUSED) });
    insert(43);
    $dbh->commit;
    expect(there(42), $through_sluice ? 0 : 1, 'refused rows');
    expect(there(43), 1, 'committed rows');
    return "$said transaction=goes-on";
}

sub reconnect {
    my $other = connected();
    $other->do('KILL ' . connection_id());
    sleep 0.3;
    my $lost = eval { $dbh->do('SELECT 1'); 1 } ? die "no error\n" : $dbh->err;
    $dbh->disconnect;
    $dbh = connected();
    expect(there(1), 1, 'rows on a new connection');
    $_->disconnect for $other, $dbh;
    return "lost=$lost";
}

# --- words the steps are made of ----------------------------------------------------------------

sub insert ($number, $comment = '') {
    return $dbh->do("${comment}INSERT INTO t (id) VALUES ($number)");
}

sub there ($number) {
    return $dbh->selectrow_array("SELECT COUNT(*) FROM t WHERE id = $number");
}

sub connection_id {
    return $dbh->selectrow_array('SELECT CONNECTION_ID()');
}

sub refused_or_not ($attempt) {
    if (!$through_sluice) {
        $attempt->();
        return 'admitted';
    }
    my $said = fails(1205, $attempt);
    die "the message is " . $DBI::errstr . "\n" if $DBI::errstr !~ /\[sluice .*executed=no\]/;
    return $said;
}

sub fails ($errno, $attempt) {
    die "no error\n" if eval { $attempt->(); 1 };
    expect($DBI::err, $errno, 'errno');
    my ($type) = $@ =~ /^(DBD::\S+)/;
    return "$type errno=$DBI::err sqlstate=$DBI::state";
}

sub expect ($seen, $wanted, $what) {
    die "$what: $seen instead of $wanted\n" if $seen ne $wanted;
}

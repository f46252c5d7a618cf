# mysql2, put through the same steps direct and through Sluice:
#
#   steps.rb HOST PORT USER PASSWORD DATABASE TLS SERVER ROUTE

require "digest"
require "mysql2"

BLOB_BYTES = 4 << 20
# The rule holds back for one second; clocks and schedulers may shave a little off it.
HELD_AT_LEAST_S = 0.95
GREETING = "Grüße, 世界"
HELD = "/*app='driver-held'*/ "
REFUSED = "/*app='driver-refused'*/ "
NAMES = %w[
  connect text prepared commit rollback blob multi error
  held refused refused-prepared refused-in-transaction reconnect
]

class Steps
  def initialize(host, port, user, password, database, tls, _server, route)
    @tls = tls
    @through_sluice = route == "sluice"
    @compressed = ENV.fetch("DRIVER_COMPRESSION", "no") == "no" ? "no" : "yes"
    flags = Mysql2::Client::MULTI_STATEMENTS
    flags |= Mysql2::Client::COMPRESS if @compressed == "yes"
    @options = {
      host:, port: Integer(port), username: user, password:, database:, encoding: "utf8mb4",
      as: :array, flags:
    }
    # Over libmariadb there is no ssl_mode: TLS is asked for by naming something of it.
    @options[:sslverify] = false if tls == "yes"
  end

  def all
    failed = false
    NAMES.each do |name|
      begin
        line = "ok #{send(name.tr('-', '_'))}"
      rescue StandardError => error
        line = "fail #{error.class}: #{error.message}"
        failed = true
      end
      puts "step #{name} #{line.gsub(/\s+/, ' ')}"
      break if failed && name == "connect"
    end
    failed ? 1 : 0
  end

  private

  # --- what works everywhere --------------------------------------------------------------------

  def connect
    @client = Mysql2::Client.new(@options)
    cipher = rows("SHOW SESSION STATUS LIKE 'Ssl_cipher'").first.last
    seen = cipher.empty? ? "no" : "yes"
    expect(seen, @tls, "encrypted")
    compressed = rows("SHOW SESSION STATUS LIKE 'Compression'").first.last == "ON" ? "yes" : "no"
    expect(compressed, @compressed, "compressed")
    run("DROP TABLE IF EXISTS t")
    run("CREATE TABLE t (id INT PRIMARY KEY, note VARCHAR(100), data LONGBLOB) CHARACTER SET utf8mb4")
    "tls=#{seen} compressed=#{compressed}"
  end

  def text
    one, words, nothing, amount = rows("SELECT 1, '#{GREETING}', NULL, 12.50").first
    expect([words, nothing], [GREETING, nil], "row")
    "#{one} #{words} NULL #{format('%.2f', amount)}"
  end

  def prepared
    insert = @client.prepare("INSERT INTO t (id, note) VALUES (?, ?)")
    (1..3).each { |number| insert.execute(number, "#{GREETING} #{number}") }
    seen = @client.prepare("SELECT note FROM t WHERE id >= ? ORDER BY id").execute(2, as: :array).to_a
    expect(seen, [["#{GREETING} 2"], ["#{GREETING} 3"]], "rows")
    "rows=3 by=server"
  end

  def commit
    run("START TRANSACTION")
    insert(10)
    run("COMMIT")
    expect(there(10), 1, "committed rows")
    "rows=1"
  end

  def rollback
    run("START TRANSACTION")
    insert(11)
    run("ROLLBACK")
    expect(there(11), 0, "rows rolled back")
    "rows=0"
  end

  def blob
    sent = (1..BLOB_BYTES / 32).map { |i| Digest::SHA256.digest(i.to_s) }.join
    @client.prepare("INSERT INTO t (id, data) VALUES (?, ?)").execute(12, sent)
    received, digest = rows("SELECT data, SHA2(data, 256) FROM t WHERE id = 12").first
    expect(digest, Digest::SHA256.hexdigest(sent), "digest")
    expect(received == sent, true, "bytes came back")
    "bytes=#{received.bytesize} sha256=#{digest[0, 16]}"
  end

  def multi
    seen = [rows("SELECT 1; SELECT 2; SELECT 3").first.first]
    seen << @client.store_result.to_a.first.first while @client.next_result
    expect(seen, [1, 2, 3], "results")
    "results=1,2,3"
  end

  def error
    fails(1062) { insert(1) }
  end

  # --- what Sluice changes ----------------------------------------------------------------------

  def held
    started = now
    insert(20, HELD)
    held = now - started >= HELD_AT_LEAST_S
    expect(there(20), 1, "rows")
    expect(held, true, "held back") if @through_sluice
    "held=#{held ? 'yes' : 'no'} rows=1"
  end

  def refused
    before = connection_id
    said = refused_or_not { insert(30, REFUSED) }
    expect(connection_id, before, "connection id")
    expect(there(30), if_admitted, "rows")
    "#{said} connection=kept"
  end

  def refused_prepared
    data = [0, 255, 39, 92].pack("C*")
    insert = @client.prepare("INSERT INTO t (id, note, data) VALUES (?, ?, ?)")
    run("SET @sluice_app = 'driver-refused'")
    said = refused_or_not { insert.execute(31, GREETING, data) }
    run("SET @sluice_app = 'driver'")
    number = 31 + if_admitted
    insert.execute(number, GREETING, data)
    seen = rows("SELECT note, HEX(data) FROM t WHERE id = #{number}").first
    expect(seen, [GREETING, "00FF275C"], "row after the retry")
    "#{said} retry=stored"
  end

  def refused_in_transaction
    run("START TRANSACTION")
    said = refused_or_not { insert(40, REFUSED) }
    insert(41)
    run("ROLLBACK")
    expect(there(40) + there(41), 0, "rows rolled back")
    run("START TRANSACTION")
    refused_or_not { insert(42, REFUSED) }
    insert(43)
    run("COMMIT")
    expect(there(42), if_admitted, "refused rows")
    expect(there(43), 1, "committed rows")
    "#{said} transaction=goes-on"
  end

  def reconnect
    other = Mysql2::Client.new(@options)
    other.query("KILL #{connection_id}")
    sleep 0.3
    begin
      run("SELECT 1")
      raise "no error"
    rescue Mysql2::Error => error
      lost = error.class
    end
    @client.close
    @client = Mysql2::Client.new(@options)
    expect(there(1), 1, "rows on a new connection")
    [other, @client].each(&:close)
    "lost=#{lost}"
  end

  # --- words the steps are made of --------------------------------------------------------------

  def now = Process.clock_gettime(Process::CLOCK_MONOTONIC)

  def run(sql) = @client.query(sql)

  def rows(sql) = @client.query(sql).to_a

  def insert(number, comment = "") = run("#{comment}INSERT INTO t (id) VALUES (#{number})")

  def there(number) = rows("SELECT COUNT(*) FROM t WHERE id = #{number}").first.first

  def connection_id = rows("SELECT CONNECTION_ID()").first.first

  def if_admitted = @through_sluice ? 0 : 1

  def refused_or_not(&attempt)
    return fails(1205, &attempt) if @through_sluice

    attempt.call
    "admitted"
  end

  def fails(errno)
    yield
  rescue Mysql2::Error => error
    expect(error.errno, errno, "errno")
    expect(error.message.match?(/\[sluice .*executed=no\]/), errno == 1205, error.message)
    "#{error.class} errno=#{error.errno} sqlstate=#{error.sql_state}"
  else
    raise "no error"
  end

  def expect(seen, wanted, what)
    raise "#{what}: #{seen.inspect} instead of #{wanted.inspect}" if seen != wanted
  end
end

$stdout.sync = true
exit Steps.new(*ARGV).all

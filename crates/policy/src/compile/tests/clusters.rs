//! Clusters, signals, probes and claims.

use super::*;
use crate::{BackendCompression, ClientCompression, CompressionLevel};
use crate::{BackendTlsMode, ClientTlsMode, Redirect, TlsVersion};

const TWO_CLUSTERS: &str = "\
version: 1
clusters:
  a: { listen: 127.0.0.1:1, primary: a:3306, mode: observe }
  b: { listen: 127.0.0.1:2, primary: b:3306 }
rules:
  - { name: both, permanent: true }
  - { name: only-b, permanent: true, match: { cluster: b } }
  - { name: enforced, permanent: true, mode: enforce }
";

#[test]
fn a_rule_can_be_for_one_cluster_and_takes_over_the_mode_of_each() {
    let config = load(TWO_CLUSTERS).unwrap();
    let rules = |name: &str| -> Vec<(String, u32, Mode)> {
        let rules = &config.cluster(name).unwrap().rules;
        rules.iter().map(|rule| (rule.name.to_string(), rule.index, rule.mode)).collect()
    };
    let rule = |name: &str, index, mode| (name.to_owned(), index, mode);
    assert_eq!(rules("a"), [rule("both", 0, Mode::Observe), rule("enforced", 1, Mode::Enforce)]);
    assert_eq!(
        rules("b"),
        [
            rule("both", 0, Mode::Enforce),
            rule("only-b", 1, Mode::Enforce),
            rule("enforced", 2, Mode::Enforce)
        ]
    );
}

#[test]
fn the_pace_is_adaptive_where_there_is_a_lag_to_go_by() {
    let pacing = |keys: &str| {
        let config =
            load(&with_cluster(&format!("    listen: 127.0.0.1:1\n    primary: db:3306\n{keys}")));
        config.unwrap().clusters[0].controller_config().pacing
    };
    let measured = "    replicas: [r:3306]\n    probe: {user: p}\n";
    let learns = |pacing| matches!(pacing, Pacing::Adaptive(pacing) if pacing.learns_row_costs);
    assert!(learns(pacing(measured)));
    let told = pacing(&measured.replace("p}", "p, row_costs: told}"));
    assert!(matches!(told, Pacing::Adaptive(_)) && !learns(told));
    let by_status = measured.replace("p}", "p, source: replica_status}");
    assert!(matches!(pacing(&by_status), Pacing::Adaptive(_)));
    let binary = |release_per_s| Pacing::Binary(admission::BinaryPacing { release_per_s });
    assert_eq!(pacing(&format!("{measured}    pacing: binary\n")), binary(1_000));
    assert_eq!(pacing("    pacing: adaptive\n    release_per_s: 7\n"), binary(7));
}

#[test]
fn starvation_has_the_defaults_of_the_manual_and_can_be_switched_off() {
    let starvation = |section: &str| {
        load(&format!("{TWO_CLUSTERS}{section}")).map(|config| config.clusters[1].starvation)
    };
    let hours = |hours: u64| Duration::from_secs(hours * 3_600);
    let some = |share, window| Some(crate::Starvation { share, window });
    assert_eq!(starvation("").unwrap(), some(0.014, hours(12)));
    assert_eq!(starvation("starvation: {share: 0.5}\n").unwrap(), some(0.5, hours(12)));
    assert_eq!(starvation("starvation: {window: 1h}\n").unwrap(), some(0.014, hours(1)));
    assert_eq!(starvation("starvation: {share: 0}\n").unwrap(), None);
    for (section, part) in [
        ("starvation: {share: 1.1}", "line 9: starvation.share: 1.1 is not a share"),
        ("starvation: {window: 9s}", "line 9: starvation.window: must be from 10s to 7d"),
        ("starvation: {shares: 1}", "starvation.shares: unknown key; known here: share, window"),
    ] {
        assert_fault(&format!("{TWO_CLUSTERS}{section}\n"), part);
    }
}

#[test]
fn two_listeners_on_one_address_are_a_fault() {
    let same = TWO_CLUSTERS.replace("127.0.0.1:2", "127.0.0.1:1");
    assert_fault(&same, "line 4: clusters.b.listen: clusters.a.listen has the same address");
    let admin = TWO_CLUSTERS.replace("127.0.0.1:2", "127.0.0.1:9307");
    assert_fault(&admin, "admin.listen has the same address");
    let any =
        TWO_CLUSTERS.replace("127.0.0.1:2", "127.0.0.1:0").replace("127.0.0.1:1", "127.0.0.1:0");
    assert_eq!(faults(&any), [""; 0]);
}

const CLUSTER: &str = "    listen: 127.0.0.1:1\n    primary: db:3306\n    probe: {user: p}\n";

#[test]
fn signals_are_built_in_or_custom_and_have_a_scope() {
    let text = format!(
        "{}    replicas: [r:1]\n    signals:\n      lag: {{threshold: 800ms, close_at: 1s, on_no_data: {{hold_last: 30s}}, ignore_slowest: 1, min_replicas: 2}}
      threads_running: {{threshold: 10}}
      shard/threads_running: {{threshold: 20, on_no_data: open}}
      history_list_length: {{threshold: 1000, on: replicas, on_no_data: \"hold_last: 5s\"}}
      connected: {{status: Threads_connected, threshold: 1.5}}
      self/custom: {{query: \"select 1;\", threshold: -3}}
    default_gate: [shard/threads_running, self/threads_running, shard/lag, custom]
",
        with_cluster(CLUSTER)
    );
    let config = load(&text).unwrap_or_else(|faults| panic!("{faults:#?}"));
    let cluster = &config.clusters[0];
    let [lag, running, shard, history, connected, custom] = cluster.signals.as_slice() else {
        panic!("{:?}", cluster.signals)
    };
    assert_eq!(lag.kind, SignalKind::Lag { ignore_slowest: 1, min_replicas: 2 });
    assert_eq!((lag.open_at, lag.close_at), (0.8, 1.0));
    assert_eq!(lag.on_no_data, OnNoData::HoldLast(Duration::from_secs(30)));
    assert_eq!((running.scope, shard.scope), (Scope::Primary, Scope::Replicas));
    assert_eq!(
        (shard.kind.clone(), shard.on_no_data),
        (SignalKind::ThreadsRunning, OnNoData::Open)
    );
    assert_eq!(history.scope, Scope::Replicas);
    assert_eq!(history.on_no_data, OnNoData::HoldLast(Duration::from_secs(5)));
    assert_eq!(connected.kind, SignalKind::Status("Threads_connected".into()));
    assert_eq!(
        (custom.kind.clone(), custom.threshold),
        (SignalKind::Query("select 1".into()), -3.0)
    );
    let gate: Vec<&str> =
        cluster.gate_signals(cluster.default_gate).map(|signal| &*signal.name).collect();
    assert_eq!(gate, ["lag", "threads_running", "shard/threads_running", "self/custom"]);
}

#[test]
fn signals_that_cannot_be_measured_are_refused() {
    let signal = |line: &str| format!("{}    signals: {{{line}}}\n", with_cluster(CLUSTER));
    let cases = [
        ("threads_running: {}", "`threshold` is missing"),
        ("threads_running: {threshold: 5s}", "must be a plain number"),
        ("threads_running: {threshold: .inf}", "must be a finite number"),
        ("lag: {threshold: 1ms}", "must be from 10ms to 1d"),
        ("lag: {open_at: 6s}", "`open_at` must not be above `close_at`"),
        ("lag: {query: select 1}", "a built-in signal has no `query`"),
        ("self/lag: {}", "lag is measured on replicas"),
        ("x: {threshold: 1}", "needs `latency`, `query` or `status`"),
        ("x: {latency: {app: web}}", "`threshold` is missing"),
        ("x: {latency: {app: web}, threshold: 5}", "must be a duration with its unit"),
        ("x: {latency: {app: web}, threshold: 5us}", "must be from"),
        ("x: {latency: {}, threshold: 5ms}", "`app` or `rule` is missing"),
        ("x: {latency: {app: web, percentile: 99}, threshold: 5ms}", "between 0 and 1"),
        ("x: {latency: {app: web, window: 1ms}, threshold: 5ms}", "must be from 1s to 5m"),
        ("x: {latency: {app: web}, query: select 1, threshold: 5ms}", "stands alone"),
        ("shard/x: {latency: {app: web}, threshold: 5ms}", "seen at the primary"),
        (
            "x: {threshold: 1, query: select 1, status: Uptime}",
            "it has two sources, `query` and `status`: leave one out",
        ),
        ("x: {threshold: 1, status: \"a b\"}", "the name of a status variable"),
        ("x: {threshold: 1, query: \" \"}", "must be one query"),
        ("x: {threshold: 1, status: U, ignore_slowest: 1}", "is for `lag` only"),
        ("self/x: {threshold: 1, status: U, on: replicas}", "contradict each other"),
        ("x: {threshold: 1, status: U, on: moon}", "is not one of `primary`, `replicas`"),
        ("none: {threshold: 1, status: U}", "cannot have this name"),
        ("x: {threshold: 1, status: U, on_no_data: maybe}", "is not one of `open`, `closed`"),
        ("x: {threshold: 1, status: U, stale_after: 100ms}", "at least twice `probe_interval`"),
        (
            "threads_running: {threshold: 1}, self/threads_running: {threshold: 2}",
            "measures the same",
        ),
    ];
    for (line, part) in cases {
        assert_fault(&signal(line), part);
    }
    let unprobed =
        with_cluster("    listen: 127.0.0.1:1\n    primary: db:3306\n    replicas: [r:1]\n");
    assert_fault(&unprobed, "`probe` is missing");
}

#[test]
fn a_cluster_without_replicas_needs_no_probe() {
    let config = load(&with_cluster("    listen: 127.0.0.1:1\n    primary: db:3306\n")).unwrap();
    let cluster = &config.clusters[0];
    assert_eq!(cluster.probe, None);
    assert_eq!((&*cluster.signals[0].name, cluster.signals[0].threshold), ("lag", 5.0));
}

#[test]
fn probes_and_secrets_are_checked() {
    let probe = |probe: &str| {
        with_cluster(&format!(
            "    listen: 127.0.0.1:1\n    primary: db:3306\n    probe: {probe}\n"
        ))
    };
    let cases = [
        ("{user: p, password: x}", "name the environment variable in `password_env`"),
        ("{user: p, password_env: A, password_file: b}", "not both"),
        ("{password_env: A}", "`user` is missing"),
        ("{user: p, heartbeat_table: heartbeat}", "must be schema.table"),
        ("{user: p, heartbeat_table: \"a.b`c\"}", "must be schema.table"),
        ("{user: p, source: guess}", "is not one of `heartbeat`, `replica_status`"),
        ("{user: p, source: {query: \"\"}}", "must be one query"),
        ("{user: p, probe_interval: 2m}", "must be from 10ms to 1m"),
        ("{user: p, row_costs: known}", "`known` is not one of `told`, `applied`"),
    ];
    for (line, part) in cases {
        let faults = faults(&probe(line));
        assert!(faults.iter().any(|fault| fault.contains(part)), "{part}: {faults:?}");
    }
    let config = load(&probe(
        "{user: p, password_file: /run/p, heartbeat_table: a.b$, source: {query: select 2}}",
    ));
    let config = config.unwrap();
    let probe = config.clusters[0].probe.as_ref().unwrap();
    assert_eq!(probe.password, Some(Secret::File("/run/p".into())));
    assert_eq!(probe.source, LagSource::Query("select 2".into()));
}

#[test]
fn claims_are_checked() {
    let claim = |text: &str| format!("{TWO_CLUSTERS}identity: {text}\n");
    assert_fault(&claim("{claims: [{apps: [a]}]}"), "`user` is missing");
    assert_fault(&claim("{claims: [{user: a}]}"), "`apps` is missing");
    assert_fault(&claim("{claims: [{user: a, apps: [a], from: x}]}"), "must be an address");
    assert_fault(&claim("{claims: }"), "has no value");
    assert_fault(&claim("{keys: [a, a]}"), "the key is there twice");
    assert_fault(&claim("{keys: [\"a b\"]}"), "a key has letters");
    assert_eq!(faults(&claim("{keys: [], claims: [{user: [a, \"b*\"], apps: []}]}")), [""; 0]);
}

#[test]
fn tls_is_offered_to_clients_and_mirrored_to_servers_unless_told() {
    let config = load(TWO_CLUSTERS).unwrap();
    let cluster = config.cluster("a").unwrap();
    assert_eq!(cluster.client_tls.mode, ClientTlsMode::Preferred);
    assert_eq!(cluster.client_tls.min_version, TlsVersion::V12);
    assert_eq!(cluster.backend_tls.mode, BackendTlsMode::AsClient);
    assert_eq!(cluster.redirect, Redirect::Strip);
    assert_eq!(cluster.client_tls.files().chain(cluster.backend_tls.files()).count(), 0);
}

#[test]
fn tls_settings_are_read_with_the_places_of_their_files() {
    let text = format!(
        "version: 1\nclusters:\n  c:\n{CLUSTER}    client_tls: {{mode: required, min_version: TLSv1.3}}\n    \
         backend_tls:\n      mode: verify_identity\n      ca: ca.pem\n      cert: c.pem\n      key: k.pem\n      \
         server_name: db.example\n    redirect: deny\n"
    );
    let config = load(&text).unwrap();
    let cluster = config.cluster("c").unwrap();
    assert_eq!(cluster.client_tls.mode, ClientTlsMode::Required);
    assert_eq!(cluster.client_tls.min_version, TlsVersion::V13);
    assert_eq!(cluster.backend_tls.mode, BackendTlsMode::VerifyIdentity);
    assert_eq!(cluster.backend_tls.server_name.as_deref(), Some("db.example"));
    assert_eq!(cluster.redirect, Redirect::Deny);
    let files: Vec<_> =
        cluster.backend_tls.files().map(|file| (file.key.as_str(), file.line)).collect();
    assert_eq!(
        files,
        [
            ("clusters.c.backend_tls.cert", 11),
            ("clusters.c.backend_tls.key", 12),
            ("clusters.c.backend_tls.ca", 10)
        ]
    );
}

#[test]
fn tls_settings_that_would_not_do_what_they_say_are_faults() {
    let with = |keys: &str| format!("version: 1\nclusters:\n  c:\n{CLUSTER}    {keys}\n");
    for (keys, fault) in [
        ("backend_tls: {mode: verify_ca}", "backend_tls: `verify_ca` needs `ca`"),
        ("backend_tls: {mode: required, ca: a}", "backend_tls.ca: without effect"),
        ("backend_tls: {mode: required, server_name: a}", "server_name: without effect"),
        ("backend_tls: {mode: verify_identity, ca: a, server_name: 'a b'}", "must be a host name"),
        ("client_tls: {cert: a}", "client_tls: `cert` and `key` come together"),
        ("client_tls: {cert: '', key: b}", "client_tls.cert: must not be empty"),
        ("client_tls: {mode: on_demand}", "`on_demand` is not one of"),
        ("client_tls: {min_version: TLSv1.1}", "`TLSv1.1` is not one of"),
        ("redirect: follow", "`follow` is not one of `strip`, `deny`"),
    ] {
        assert_fault(&with(keys), fault);
    }
}

#[test]
fn compression_is_offered_to_clients_and_not_asked_of_servers_unless_told() {
    let config = load(TWO_CLUSTERS).unwrap();
    let cluster = config.cluster("a").unwrap();
    let all = ClientCompression { zlib: true, zstd: true, uncompressed: true };
    assert_eq!(cluster.client_compression, all);
    assert_eq!(cluster.backend_compression, BackendCompression::Off);
    assert_eq!(cluster.compression_level, CompressionLevel { zlib: 2, zstd: 3 });
}

#[test]
fn compression_settings_are_read() {
    let text = format!(
        "version: 1\nclusters:\n  c:\n{CLUSTER}    client_compression: {{algorithms: [zstd]}}\n    \
         backend_compression: as_client\n    compression_level: {{zlib: 9, zstd: 22}}\n"
    );
    let config = load(&text).unwrap();
    let cluster = config.cluster("c").unwrap();
    let zstd_only = ClientCompression { zlib: false, zstd: true, uncompressed: false };
    assert_eq!(cluster.client_compression, zstd_only);
    assert_eq!(cluster.backend_compression, BackendCompression::AsClient);
    assert_eq!(cluster.compression_level, CompressionLevel { zlib: 9, zstd: 22 });
}

#[test]
fn compression_that_does_not_exist_is_a_fault() {
    let with = |keys: &str| format!("version: 1\nclusters:\n  c:\n{CLUSTER}    {keys}\n");
    for (keys, fault) in [
        ("client_compression: {algorithms: []}", "algorithms: must not be empty"),
        ("client_compression: {algorithms: [zlib, lz4]}", "algorithms[1]: `lz4` is not one of"),
        ("backend_compression: on", "`on` is not one of `off`, `as_client`, `zlib`, `zstd`"),
        ("compression_level: {zlib: 0}", "compression_level.zlib: must be from 1 to 9"),
        ("compression_level: {zstd: 23}", "compression_level.zstd: must be from 1 to 22"),
    ] {
        assert_fault(&with(keys), fault);
    }
    assert_eq!(faults(&with("backend_compression: off")), [""; 0]);
}

#[test]
fn a_port_alone_is_told_what_it_lacks() {
    let primary = "    listen: 127.0.0.1:1\n    primary: 3306\n";
    assert_fault(&with_cluster(primary), "must be a host and a port, like 127.0.0.1:3306");
    let listen = "    listen: 27306\n    primary: db:3306\n";
    assert_fault(&with_cluster(listen), "must be a host and a port, like 127.0.0.1:27306");
    let replicas = "    listen: 127.0.0.1:1\n    primary: db:3306\n    probe: {user: p}\n    \
                    replicas: [r:3306, 3316]\n";
    let faults = faults(&with_cluster(replicas));
    assert_eq!(faults.len(), 1, "{faults:?}");
    assert!(faults[0].contains("replicas[1]: must be a host and a port"), "{faults:?}");
}

#[test]
fn secrets_are_named_with_their_keys_and_rules_in_the_order_of_the_file() {
    let text = TWO_CLUSTERS.replace("b:3306 }", "b:3306, probe: { user: p, password_env: P } }");
    let config = load(&text).unwrap();
    let [secret] = config.secrets.as_slice() else { panic!("{:?}", config.secrets) };
    assert_eq!((secret.key.as_str(), secret.line), ("clusters.b.probe.password_env", 4));
    assert_eq!(secret.secret, crate::Secret::Env("P".into()));
    let names: Vec<&str> = config.rule_names.iter().map(|name| &**name).collect();
    assert_eq!(names, ["both", "only-b", "enforced"]);
}

#[test]
fn a_latency_is_of_apps_classes_and_rules_and_holds_all_but_those_it_protects() {
    let config = load(
        "
version: 1
clusters:
  main:
    listen: 127.0.0.1:1
    primary: db:3306
    signals:
      web_p99: { latency: { app: web, statements: [read] }, threshold: 20ms }
    default_gate: [lag, web_p99]
rules:
  - { name: any, permanent: true }
  - { name: named, gate: web_p99, permanent: true }
",
    )
    .unwrap();
    let cluster = &config.clusters[0];
    assert_eq!(cluster.probe, None, "Sluice sees it itself");
    let (signal, latency) = cluster.latencies().next().unwrap();
    assert_eq!((signal.threshold, signal.on_no_data), (0.02, OnNoData::Open));
    assert!(latency.is_about(b"shop:web", None, Class::Read));
    assert!(!latency.is_about(b"shop:web", None, Class::Write));
    assert!(!latency.is_about(b"etl", None, Class::Read));
    let gate = |rule: u32, app: &[u8]| {
        let rule = cluster.rule(rule).unwrap();
        let Action::Throttle { gate, .. } = rule.action else { panic!("it throttles") };
        let gate = cluster.gate_of(rule, gate, app);
        cluster.gate_signals(gate).map(|signal| &*signal.name).collect::<Vec<_>>()
    };
    assert_eq!(gate(0, b"etl"), ["web_p99", "lag"]);
    assert_eq!(gate(0, b"shop:web"), ["lag"], "not by its own");
    assert_eq!(gate(1, b"shop:web"), ["web_p99"], "unless the rule says so");
}

#[test]
fn rates_are_whole_numbers_and_the_floor_is_not_above_the_cap() {
    let rule = |keys: &str| {
        format!(
            "version: 1\nclusters: {{ a: {{ listen: 127.0.0.1:1, primary: \"db:3306\" }} }}\n\
             rules: [{{ name: r, permanent: true, gate: none, {keys} }}]\n"
        )
    };
    let config = load(&rule("min_rate: 5, max_rate: 100, max_in_flight: 3")).unwrap();
    let Action::Throttle { terms, gated, .. } = config.clusters[0].rule(0).unwrap().action else {
        panic!("it throttles")
    };
    assert_eq!(
        (terms.min_rate, terms.max_rate, terms.max_in_flight),
        (Some(5), Some(100), Some(3))
    );
    assert_eq!(gated, Gated::Yes, "it asks although its gate is open");
    assert_fault(&rule("min_rate: 101, max_rate: 100"), "must not be above `max_rate`");
    assert_fault(&rule("max_in_flight: 0"), "must be from 1 to");
}

#[test]
fn who_may_go_around_is_read_and_needs_somebody_who_looks() {
    let probed = "    listen: 127.0.0.1:1\n    primary: db:3306\n    probe: {user: p}\n";
    let bypass = |keys: &str| {
        let text = with_cluster(&format!("{probed}    bypass: {{ {keys} }}\n"));
        load(&text).unwrap().clusters[0].bypass.clone()
    };
    let unsaid = load(&with_cluster(probed)).unwrap().clusters[0].bypass.clone();
    assert_eq!(unsaid.interval, Some(Duration::from_secs(10)));
    assert_eq!(bypass("watch: false").interval, None);
    let said = bypass("interval: 1m, ignore_users: [dba, backup-*], sluices: 10.0.0.0/24");
    assert_eq!(said.interval, Some(Duration::from_secs(60)));
    assert!(said.ignores(b"dba") && said.ignores(b"backup-7") && !said.ignores(b"etl"));
    let at = |address: &str| said.is_sluice(address.parse().unwrap());
    assert!(at("10.0.0.9") && at("::ffff:10.0.0.9") && !at("10.0.1.9"));
    let unprobed = "    listen: 127.0.0.1:1\n    primary: db:3306\n    bypass: {watch: true}\n";
    assert_fault(&with_cluster(unprobed), "bypass: has no effect: the cluster has no `probe`");
    let often = format!("{probed}    bypass: {{ interval: 1s }}\n");
    assert_fault(&with_cluster(&often), "bypass.interval: must be from 5s to 1h");
}

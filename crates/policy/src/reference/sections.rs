//! Every key of the file.

use super::guard_keys::{GUARD_KEYS, RUNAWAY_KEYS, WATCH_KEYS};
use super::keys::{REQUIRED, Section, Shown, fixed, live};
use super::latency_keys::LATENCY;
use super::network_keys;
use super::replica_keys::REPLICA;
use super::rule_keys::{MATCH_KEYS, RULE_KEYS, SCHEDULE_KEYS};
use super::tls_keys::{BACKEND_TLS_KEYS, CLIENT_TLS_KEYS};
use super::{admin_keys, budget_keys, bypass_keys, compression_keys, identity_keys, insights_keys};
use crate::compile::limits;

/// The file, from the top.
pub(super) const SECTIONS: &[Section] = &[
    Section {
        title: "The file",
        about: "",
        keys: &[
            fixed("version", "The version of this format.", Shown::Words(REQUIRED, "1")),
            live("admin", "The HTTP side.", Shown::Words("see below", ""), ""),
            live("metrics", "What is exported.", Shown::Words("see below", ""), ""),
            live(
                "drain_timeout",
                "How long open transactions may take to finish after SIGTERM.",
                Shown::Time(limits::DRAIN_TIMEOUT),
                "Fewer transactions are cut off, a restart takes longer.",
            ),
            fixed(
                "takeover_socket",
                "A Unix socket by which `sluice run --takeover` gets the listeners of the running process, \
                 which then drains: a restart without a refused connection.",
                Shown::Words("none: it cannot", "an absolute path"),
            ),
            fixed(
                "state_dir",
                "A directory for what must outlive the process: the [journal of rules made at \
                 runtime](RUNTIME-RULES.md), and the [history](HISTORY.md), with the last day of insights and \
                 what is in quarantine or too costly for a budget. One process uses it. Without it the rules are in the table on \
                 each primary only, and everything else in memory.",
                Shown::Words("none", "an absolute path"),
            ),
            fixed(
                "clusters",
                "The clusters by name: a primary and its replicas each. Adding or removing one needs a \
                 restart; what changes inside one is said there.",
                Shown::Words(REQUIRED, "at least one"),
            ),
            live(
                "identity",
                "Who may call itself what.",
                Shown::Words("everybody may claim everything", ""),
                "",
            ),
            live(
                "rules",
                "The rules; the first that matches decides.",
                Shown::Words("none: everything passes", "a list"),
                "",
            ),
            live(
                "starvation",
                "When an identity counts as starved.",
                Shown::Words("see below", ""),
                "",
            ),
            live(
                "guards",
                "What a text may not do: [GUARDS](GUARDS.md).",
                Shown::Words("`[]`", "a list, see below"),
                "",
            ),
            live(
                "insights",
                "What is counted of each digest, app and schema.",
                Shown::Words("see below", ""),
                "",
            ),
            live(
                "history",
                "How much of what happened is kept.",
                Shown::Words("see below", ""),
                "",
            ),
            live(
                "budgets",
                "What statements may use of the server together.",
                Shown::Words("none", "a list"),
                "",
            ),
        ],
    },
    admin_keys::ADMIN,
    admin_keys::ADMIN_TLS,
    admin_keys::ADMIN_TOKENS,
    insights_keys::METRICS,
    insights_keys::STARVATION,
    insights_keys::INSIGHTS,
    insights_keys::HISTORY,
    Section {
        title: "`clusters.NAME`",
        about: "",
        keys: &[
            fixed(
                "listen",
                "Where clients connect.",
                Shown::Words(REQUIRED, "address:port (port 0 is any free one) or unix:/path"),
            ),
            fixed(
                "listen_mode",
                "The permission bits of the socket, where `listen` is one.",
                Shown::Words("`\"0777\"`", "three or four octal digits, in quotes"),
            ),
            fixed(
                "primary",
                "The server that statements go to. Until a restart another one changes nothing: clients and \
                 probes stay, and so do `replicas` that the same file changes.",
                Shown::Words(REQUIRED, "host:port or unix:/path"),
            ),
            live(
                "replicas",
                "The servers whose lag is measured. Without any there is no lag: its signal is open. One \
                 with a threshold or a group of its own is a mapping: see below.",
                Shown::Words("`[]`", "a list of host:port, unix:/path or mappings"),
                "",
            ),
            live(
                "probe",
                "How signals are measured. Needed as soon as there is one to measure.",
                Shown::Words("none", ""),
                "",
            ),
            live(
                "bypass",
                "How sessions that go around Sluice are looked for.",
                Shown::Words("see below", ""),
                "",
            ),
            live(
                "signals",
                "The signals by name. `lag` is there even if it is not named.",
                Shown::Words("`lag`", ""),
                "",
            ),
            live(
                "default_gate",
                "The gate of rules that name none.",
                Shown::Words("`[lag]`", "names of signals, or `none`"),
                "",
            ),
            live(
                "mode",
                "`enforce`, or `observe`: decide and count, change nothing. Rules may say otherwise.",
                Shown::Words("`enforce`", "`enforce`, `observe`"),
                "",
            ),
            live(
                "check_interval",
                "Time until a refused check is repeated, ±25 %.",
                Shown::Time(limits::CHECK_INTERVAL),
                "Rules with a ratio delay for longer.",
            ),
            live(
                "pacing",
                "How statements are let through a contended gate. `adaptive`: work in flight is kept within \
                 what the slowest replica applies in the lag aimed for; gates without `lag`, and clusters \
                 without replicas, are as with `binary`: the plain gate with a ramped release.",
                Shown::Words("`adaptive`", "`adaptive`, `binary`"),
                "",
            ),
            live(
                "release_per_s",
                "Where the pace is not adaptive: checks a second in the first second after a gate opens; it \
                 doubles every second.",
                Shown::Count(limits::RELEASE_PER_S),
                "Queues drain faster, lag returns sooner.",
            ),
            live(
                "max_queue_total",
                "Most waiters of the cluster; one more is refused at once.",
                Shown::Count(limits::MAX_QUEUE_TOTAL),
                "More clients wait instead of being refused; each holds a connection.",
            ),
            live(
                "connect_timeout",
                "How long a connection to the primary may take, until the server has greeted.",
                Shown::Time(limits::CONNECT_TIMEOUT),
                "Clients wait longer for a server that is gone.",
            ),
            live(
                "login_timeout",
                "How long a client may be silent whenever it is its turn during the login. (The server's \
                 own `connect_timeout` counts as well.)",
                Shown::Time(limits::LOGIN_TIMEOUT),
                "Clients that connect and say nothing hold a connection for longer.",
            ),
            live(
                "max_connections",
                "Most client connections at once; one more is told errno 1040.",
                Shown::Count(limits::MAX_CONNECTIONS),
                "More memory and file descriptors: two sockets for each.",
            ),
            live(
                "keepalive",
                "How peers that vanished are found, on both legs. For new connections.",
                Shown::Words("see below", ""),
                "",
            ),
            live(
                "proxy_protocol",
                "Proxies in front of and behind Sluice. For new connections.",
                Shown::Words("see below", ""),
                "",
            ),
            live("client_tls", "TLS with clients.", Shown::Words("see below", ""), ""),
            live(
                "backend_tls",
                "TLS with the primary and, for probes, the replicas.",
                Shown::Words("see below", ""),
                "",
            ),
            live(
                "redirect",
                "What is done when the server sends a client elsewhere, past Sluice (MariaDB's \
                 `redirect_url`, Azure's `Location`): `strip` leaves that out, `deny` refuses the login.",
                Shown::Words("`strip`", "`strip`, `deny`"),
                "",
            ),
            live(
                "client_compression",
                "Compression with clients. For new connections.",
                Shown::Words("see below", ""),
                "",
            ),
            live(
                "backend_compression",
                "Compression with the primary, for new connections: `off`; `as_client`, with what the client uses; \
                 or always. Where the server does not offer it, the leg is not compressed. Worth its CPU only \
                 where the network to the server is slow or paid for by the byte.",
                Shown::Words("`off`", "`off`, `as_client`, `zlib`, `zstd`"),
                "",
            ),
            live(
                "compression_level",
                "How hard Sluice compresses. For new connections.",
                Shown::Words("see below", ""),
                "",
            ),
        ],
    },
    Section {
        title: "`clusters.NAME.replicas[]`",
        about: "A replica that may lag for longer, or less, than the others, in place of its address alone: \
                `- { host: 10.0.0.7, group: analytics, threshold: 30s }`. Each replica's lag is held against its \
                own threshold: the gate over `lag` is shut while any that counts is at or over it, the pace goes \
                by whichever has least room, and the lag of the cluster is that of the replica that is nearest to \
                its threshold. A band (`open_at`, `close_at`) is as wide for it, in proportion.",
        keys: REPLICA,
    },
    Section {
        title: "`clusters.NAME.client_tls`",
        about: "Files are read again when they change. New connections use what is in force then.",
        keys: CLIENT_TLS_KEYS,
    },
    Section { title: "`clusters.NAME.backend_tls`", about: "", keys: BACKEND_TLS_KEYS },
    compression_keys::CLIENT_COMPRESSION,
    compression_keys::COMPRESSION_LEVEL,
    network_keys::KEEPALIVE,
    network_keys::PROXY_PROTOCOL,
    bypass_keys::BYPASS,
    Section {
        title: "`clusters.NAME.probe`",
        about: "",
        keys: &[
            live(
                "user",
                "The MySQL user of the probes: it writes the heartbeat table on the primary and reads it \
                 on the replicas.",
                Shown::Words(REQUIRED, "a name"),
                "",
            ),
            live(
                "password_env",
                "The environment variable with its password.",
                Shown::Words("no password", "a name"),
                "",
            ),
            live(
                "password_file",
                "The same from a file; only one of the two.",
                Shown::Words("no password", "a path"),
                "",
            ),
            live(
                "heartbeat_interval",
                "How often a heartbeat is written: the resolution of lag.",
                Shown::Time(limits::HEARTBEAT_INTERVAL),
                "Fewer writes, coarser lag.",
            ),
            live(
                "probe_interval",
                "How often each server is read.",
                Shown::Time(limits::PROBE_INTERVAL),
                "Fewer reads, later reactions. Half of every `stale_after` at most.",
            ),
            live(
                "heartbeat_table",
                "The table of the heartbeat.",
                Shown::Words("`sluice.heartbeat`", "schema.table of letters, digits, `_`, `$`"),
                "",
            ),
            live(
                "source",
                "Where lag comes from: Sluice's own `heartbeat`, the server's `replica_status`, or \
                 `{query: \"…\"}`, run on each replica, giving seconds. `replica_status` is \
                 `Seconds_Behind_Source`: of direct replicas of the primary only, and 0 while a \
                 source is silent, up to `replica_net_timeout` \
                 ([more](OPERATIONS.md#lag-as-replicas-tell-it)).",
                Shown::Words("`heartbeat`", "see there"),
                "",
            ),
            live(
                "row_costs",
                "What a statement counts as at the adaptive pace. `applied`: what its transaction and its \
                 rows were found to cost the replicas, by looking ten times a second at what their \
                 appliers are at (MySQL 8.0 and later, with `performance_schema`; elsewhere a row \
                 counts as a row). `told`: a row counts as a row, whatever it is.",
                Shown::Words("`applied`", "`applied`, `told`"),
                "",
            ),
        ],
    },
    Section {
        title: "`clusters.NAME.signals.NAME`",
        about: "Built in are `lag`, `threads_running` and `history_list_length`; any other name is a custom \
                signal with `latency`, `query` or `status`. `self/NAME` is measured on the primary, `shard/NAME` on \
                the replicas, where the highest value counts.",
        keys: &[
            live(
                "threshold",
                "The signal is healthy below it. A duration for `lag` and `latency`, a number for the others.",
                Shown::Words(
                    "5s for `lag`, else required",
                    "`lag`: 10ms to 1d; `latency`: 100us to 1h",
                ),
                "The gate closes later.",
            ),
            live(
                "open_at",
                "The signal opens below this: a band keeps it from flapping.",
                Shown::Words("`threshold`", "up to `close_at`"),
                "The gate opens sooner.",
            ),
            live(
                "close_at",
                "The signal closes at or above this.",
                Shown::Words("`threshold`", "from `open_at`"),
                "The gate closes later.",
            ),
            live(
                "stale_after",
                "A value older than this is not used.",
                Shown::Time(limits::STALE_AFTER),
                "A broken probe is noticed later.",
            ),
            live(
                "on_no_data",
                "What the signal says without a usable value: `open`, `closed`, or `{hold_last: 30s}`: what \
                 it last said, for so long, then `closed`.",
                Shown::Words("`closed`; `open` for `latency`", "hold_last: 1ms to 1d"),
                "",
            ),
            live(
                "ignore_slowest",
                "`lag` only: how many of the slowest replicas are left out, never the last one.",
                Shown::Count(limits::IGNORE_SLOWEST),
                "More replicas may fall behind.",
            ),
            live(
                "min_replicas",
                "`lag` only: with fewer replicas that can be measured there is no value.",
                Shown::Count(limits::MIN_REPLICAS),
                "Replicas that are gone shut the gate sooner.",
            ),
            live(
                "latency",
                "Custom signals: a percentile of latencies at the server, as Sluice sees them: `{app, rule, \
                 statements, percentile, window}`, see below. At most 16 in a cluster.",
                Shown::Words("none", "see there"),
                "",
            ),
            live(
                "query",
                "Custom signals: a query that gives one number.",
                Shown::Words("none", "one query"),
                "",
            ),
            live(
                "status",
                "Custom signals: a variable of `SHOW GLOBAL STATUS`.",
                Shown::Words("none", "a name"),
                "",
            ),
            live(
                "on",
                "On which servers it is measured.",
                Shown::Words("`replicas` for `lag`, else `primary`", "`primary`, `replicas`"),
                "",
            ),
        ],
    },
    Section {
        title: "`clusters.NAME.signals.NAME.latency`",
        about: "Whose latencies: statements that meet all of it. While the app is idle there is no value, and \
                the signal is open. A latency of the default gate does not hold the app that it protects; a \
                rule whose own `gate` names it does.",
        keys: LATENCY,
    },
    identity_keys::IDENTITY,
    identity_keys::CLAIMS,
    budget_keys::BUDGETS,
    Section { title: "`rules[]`", about: "", keys: RULE_KEYS },
    Section {
        title: "`rules[].schedule`",
        about: "A rule is in force while the clock of its time zone shows one of its days and hours: hours that \
                daylight saving skips do not occur, hours that it repeats are in force twice. Outside of them \
                the rules behind it decide. Waiters are judged again when it begins and when it ends.",
        keys: SCHEDULE_KEYS,
    },
    Section { title: "`rules[].runaway`", about: "At least one limit.", keys: RUNAWAY_KEYS },
    Section { title: "`rules[].runaway.watch`", about: "", keys: WATCH_KEYS },
    Section {
        title: "`rules[].match`",
        about: "Conditions are ANDed, the values of one are ORed. Without `match` a rule matches everything.",
        keys: MATCH_KEYS,
    },
    Section {
        title: "`guards[]`",
        about: "Each guard that matches is asked about every text that comes, prepared ones when they are \
                prepared; it needs no end. A guard checks at least one thing. Where `mode: observe` holds for the \
                cluster, guards only warn.",
        keys: GUARD_KEYS,
    },
    Section {
        title: "`rules[].error`",
        about: "Either the name of a profile: `retryable` (1205, HY000), `retryable_40001` (1205, 40001), \
                `quota` (1226, 42000), `vitess` (1041, HY000), or these keys:",
        keys: &[
            live(
                "errno",
                "The error code. Codes that make clients drop the connection or believe in a rollback are \
                 faults.",
                Shown::Words(REQUIRED, "1000 to 1999, 3000 to 32767"),
                "",
            ),
            live(
                "sqlstate",
                "The SQLSTATE. Not of the classes 00, 01, 02, 08, 40, 53, 70, XA.",
                Shown::Words("`HY000`", "five digits or capitals"),
                "",
            ),
            live(
                "message",
                "What the message begins with.",
                Shown::Words("`Statement refused`", "up to 120 bytes, one line"),
                "",
            ),
        ],
    },
];

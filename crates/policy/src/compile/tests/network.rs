//! Addresses, limits and the PROXY protocol.

use super::*;
use crate::network::{Keepalive, Listen, SendProxy};

const TCP: &str = "    listen: 127.0.0.1:1\n    primary: db:3306\n";
const UNIX: &str = "    listen: unix:/run/sluice/mysql.sock\n    primary: db:3306\n";

fn cluster(keys: &str) -> crate::ClusterPolicy {
    let text = with_cluster(&format!("{keys}    signals: {{lag: {{threshold: 1s}}}}\n"));
    let config = load(&text).unwrap_or_else(|faults| panic!("{faults:#?}"));
    config.clusters[0].as_ref().clone()
}

#[test]
fn both_ends_may_be_unix_sockets() {
    let keys = "    listen: unix:/run/sluice/mysql.sock\n    listen_mode: \"0660\"\n    \
                primary: unix:/run/mysqld/mysqld.sock\n";
    let policy = cluster(keys);
    assert_eq!(policy.listen, Listen::Unix("/run/sluice/mysql.sock".into()));
    assert_eq!(policy.listen.to_string(), "unix:/run/sluice/mysql.sock");
    assert_eq!(policy.network.listen_mode, 0o660);
    assert_eq!(&*policy.primary, "unix:/run/mysqld/mysqld.sock");
}

#[test]
fn what_is_not_said_has_the_defaults_of_the_reference() {
    let network = cluster(TCP).network;
    let seconds = Duration::from_secs;
    let keepalive =
        Keepalive { idle: seconds(60), interval: seconds(10), count: 3, user_timeout: None };
    assert_eq!(network.keepalive, keepalive);
    assert_eq!((network.connections_max, network.login_timeout), (10_000, seconds(10)));
    assert!(!network.proxy_protocol.is_from("127.0.0.1".parse().unwrap()));
    assert_eq!(network.proxy_protocol.send, SendProxy::None);
}

#[test]
fn limits_and_proxies_are_read() {
    let keys = format!(
        "{TCP}    max_connections: 7\n    login_timeout: 2s\n    keepalive: {{idle: 5s, interval: \
         2s, count: 4, user_timeout: 30s}}\n    proxy_protocol: {{from: [10.0.0.0/8, \"::1\"], \
         timeout: 1s, send: v2}}\n"
    );
    let network = cluster(&keys).network;
    assert_eq!((network.connections_max, network.login_timeout), (7, Duration::from_secs(2)));
    assert_eq!(network.keepalive.user_timeout, Some(Duration::from_secs(30)));
    assert_eq!((network.keepalive.idle, network.keepalive.count), (Duration::from_secs(5), 4));
    let proxies = network.proxy_protocol;
    assert!(proxies.is_from("::1".parse().unwrap()));
    assert!(!proxies.is_from("127.0.0.1".parse().unwrap()));
    assert_eq!((proxies.timeout, proxies.send), (Duration::from_secs(1), SendProxy::V2));
}

#[test]
fn addresses_and_sockets_that_cannot_be_are_faults() {
    let long = format!("/{}", "x".repeat(107));
    let cases = [
        ("unix:run/mysql.sock".to_owned(), "must be absolute"),
        (format!("unix:{long}"), "longer than the 107 bytes"),
        ("/run/mysql.sock".to_owned(), "must be an IP address and a port"),
    ];
    for (listen, fault) in cases {
        let keys = format!("    listen: {listen}\n    primary: db:3306\n");
        assert_fault(&with_cluster(&keys), fault);
    }
    let primary = "    listen: 127.0.0.1:1\n    primary: unix:mysqld.sock\n";
    assert_fault(&with_cluster(primary), "line 5: clusters.main.primary: the path of a socket");
    assert_fault(
        &format!("takeover_socket: sluice.sock\n{}", with_cluster(TCP)),
        "takeover_socket",
    );
}

#[test]
fn keys_without_effect_and_values_out_of_range_are_faults() {
    let cases = [
        (format!("{TCP}    listen_mode: \"0660\"\n"), "`listen` is not a Unix socket"),
        (format!("{UNIX}    listen_mode: \"rw\"\n"), "permission bits in octal"),
        (format!("{UNIX}    listen_mode: \"7777\"\n"), "permission bits in octal"),
        (format!("{UNIX}    proxy_protocol: {{from: 10.0.0.1}}\n"), "whose peers have no address"),
        (format!("{TCP}    proxy_protocol: {{from: []}}\n"), "an empty list matches nothing"),
        (format!("{TCP}    proxy_protocol: {{from: ten}}\n"), "must be an address or a network"),
        (format!("{TCP}    proxy_protocol: {{send: v1}}\n"), "`v1` is not one of `none`, `v2`"),
        (format!("{TCP}    max_connections: 0\n"), "must be from 1 to 1000000"),
        (format!("{TCP}    keepalive: {{idle: 100ms}}\n"), "must be from 1s to 9h"),
        (format!("{TCP}    login_timeout: 1ms\n"), "must be from 10ms to 10m"),
    ];
    for (keys, fault) in cases {
        assert_fault(&with_cluster(&keys), fault);
    }
}

#[test]
fn one_socket_cannot_be_listened_on_twice() {
    let text = "version: 1\nclusters:\n  a: {listen: \"unix:/run/x.sock\", primary: \"db:1\"}\n  \
                b: {listen: \"unix:/run/x.sock\", primary: \"db:1\"}\n";
    assert_fault(text, "clusters.b.listen: clusters.a.listen has the same address");
}

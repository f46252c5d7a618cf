use axum::http::{Method, Request};
use policy::{AdminToken, Secret};

use axum::response::IntoResponse as _;

use super::*;

const TOKEN: &str = "correct horse";
const HERE: &str = "127.0.0.1:9307";

/// A file whose token is ann's, gone with its owner.
struct Ann(std::path::PathBuf);

impl Ann {
    fn new(name: &str) -> Self {
        let file =
            std::env::temp_dir().join(format!("sluice-access-{}-{name}", std::process::id()));
        std::fs::write(&file, TOKEN).unwrap();
        Self(file)
    }

    fn tokens(&self) -> Vec<AdminToken> {
        vec![AdminToken { name: "ann".into(), secret: Secret::File(self.0.clone()) }]
    }
}

impl Drop for Ann {
    fn drop(&mut self) {
        std::fs::remove_file(&self.0).ok();
    }
}

fn access(settings: AdminAccess) -> Access {
    Access::new(&Admin { listen: HERE.parse().unwrap(), tls: None, access: settings })
}

fn only(tokens: Vec<AdminToken>) -> AdminAccess {
    AdminAccess { tokens, ..AdminAccess::default() }
}

/// A request with these headers beside a `Host`, from this machine.
fn asked(method: &Method, headers: &[(&str, &str)]) -> Parts {
    from(HERE, "127.0.0.1:40000", method, headers)
}

fn from(local: &str, peer: &str, method: &Method, headers: &[(&str, &str)]) -> Parts {
    let mut request = Request::builder().method(method).uri("/api/v1/rules");
    if !headers.iter().any(|(name, _)| *name == "host") {
        request = request.header("host", "127.0.0.1:9307");
    }
    for (name, value) in headers {
        request = request.header(*name, *value);
    }
    let (mut parts, ()) = request.body(()).unwrap().into_parts();
    let (peer, local) = (peer.parse().unwrap(), local.parse().unwrap());
    parts.extensions.insert(Caller { peer, local, is_encrypted: false });
    parts
}

fn said(decided: Result<Author, Refusal>) -> String {
    match decided {
        Ok(Author(name)) => name.to_string(),
        Err(refusal) => refusal.error.as_str().to_owned(),
    }
}

#[test]
fn a_change_is_its_tokens_owners() {
    let ann = Ann::new("owner");
    let access = access(only(ann.tokens()));
    let by = |headers: &[(&str, &str)]| said(access.author(&asked(&Method::POST, headers)));
    assert_eq!(by(&[("authorization", "Bearer correct horse")]), "ann");
    assert_eq!(by(&[("authorization", "bearer correct horse"), ("x-author", "bob")]), "ann");
    assert_eq!(by(&[]), "no_token");
    for wrong in ["Bearer ", "Bearer", "correct horse", "Basic Y29ycmVjdCBob3JzZQ==", "Bearer x"] {
        assert_eq!(by(&[("authorization", wrong)]), "wrong_token", "{wrong}");
    }
    let refusal = access.author(&asked(&Method::POST, &[])).unwrap_err().into_response();
    assert_eq!(refusal.status(), 401);
    assert_eq!(refusal.headers()["www-authenticate"], "Bearer realm=\"sluice\"");
}

#[test]
fn without_a_token_in_the_file_nobody_changes_anything() {
    let access = access(AdminAccess::default());
    for headers in [&[][..], &[("authorization", "Bearer "), ("x-a", "b")]] {
        let refusal = access.author(&asked(&Method::POST, headers)).unwrap_err();
        assert_eq!(refusal.error, Error::Forbidden);
        assert!(refusal.remedy.unwrap().contains("`admin.token_env`"));
    }
}

#[test]
fn a_token_that_is_taken_away_is_nobodys() {
    let ann = Ann::new("gone");
    let access = access(only(ann.tokens()));
    let by =
        || said(access.author(&asked(&Method::POST, &[("authorization", "Bearer correct horse")])));
    assert_eq!(by(), "ann");
    std::fs::write(&ann.0, "another horse").unwrap();
    access.read_again();
    assert_eq!(by(), "wrong_token");
    std::fs::remove_file(&ann.0).unwrap();
    access.read_again();
    assert_eq!(by(), "forbidden");
}

#[test]
fn this_machine_needs_no_token_where_the_file_says_so() {
    let ann = Ann::new("here");
    let tokens = ann.tokens();
    let access = access(AdminAccess { loopback_changes: true, ..only(tokens) });
    let by = |parts: &Parts| said(access.author(parts));
    let post = Method::POST;
    assert_eq!(by(&asked(&post, &[])), "loopback");
    assert_eq!(by(&from("[::1]:1", "[::1]:2", &post, &[])), "loopback");
    // A token that is shown counts, also a wrong one.
    assert_eq!(by(&asked(&post, &[("authorization", "Bearer correct horse")])), "ann");
    assert_eq!(by(&asked(&post, &[("authorization", "Bearer x")])), "wrong_token");
    // It is not from here, or who knows.
    assert_eq!(by(&from("0.0.0.0:1", "127.0.0.1:2", &post, &[])), "no_token");
    assert_eq!(by(&from("10.0.0.5:1", "10.0.0.5:2", &post, &[])), "no_token");
    for header in ["x-forwarded-for", "forwarded", "via", "x-real-ip"] {
        assert_eq!(by(&asked(&post, &[(header, "127.0.0.1")])), "no_token", "{header}");
    }
    assert_eq!(by(&asked(&post, &[("host", "neighbour:9307")])), "no_token");
}

#[test]
fn pages_of_other_sites_change_nothing() {
    let ann = Ann::new("sites");
    let tokens = ann.tokens();
    let access = access(AdminAccess { loopback_changes: true, legacy_get: true, ..only(tokens) });
    let foreign = [
        ("origin", "http://evil.example"),
        ("origin", "http://127.0.0.1:9308"),
        ("origin", "null"),
        ("origin", ""),
        ("sec-fetch-site", "cross-site"),
        ("sec-fetch-site", "same-site"),
    ];
    for header in foreign {
        for token in [None, Some(("authorization", "Bearer correct horse"))] {
            let headers: Vec<_> = [header].into_iter().chain(token).collect();
            for method in [Method::POST, Method::GET] {
                let parts = asked(&method, &headers);
                assert_eq!(said(access.legacy_author(&parts)), "forbidden", "{header:?}");
            }
        }
    }
    let rebound = [("host", "evil.example:9307"), ("origin", "http://evil.example:9307")];
    assert_eq!(said(access.author(&asked(&Method::POST, &rebound))), "misdirected");
    let own = [("origin", "http://127.0.0.1:9307"), ("sec-fetch-site", "same-origin")];
    assert_eq!(said(access.author(&asked(&Method::POST, &own))), "loopback");
}

#[test]
fn get_changes_nothing_but_in_old_dialects_where_the_file_says_so() {
    let ann = Ann::new("get");
    let (get, post) = (Method::GET, Method::POST);
    let shown = [("authorization", "Bearer correct horse")];
    let strict = access(AdminAccess { loopback_changes: true, ..only(ann.tokens()) });
    for method in [&get, &Method::HEAD, &Method::OPTIONS] {
        let refusal = strict.legacy_author(&asked(method, &shown)).unwrap_err();
        assert_eq!((refusal.error, refusal.allow), (Error::MethodNotAllowed, Some("POST")));
        assert_eq!(said(strict.author(&asked(method, &shown))), "method_not_allowed");
    }
    let lax = access(AdminAccess { legacy_get: true, ..only(ann.tokens()) });
    assert_eq!(said(lax.author(&asked(&get, &shown))), "method_not_allowed");
    assert_eq!(said(lax.legacy_author(&asked(&get, &shown))), "ann");
    for method in [&Method::HEAD, &Method::OPTIONS] {
        assert_eq!(said(lax.legacy_author(&asked(method, &shown))), "method_not_allowed");
    }
    // What the clients of those dialects cannot send, they need not send from here.
    assert_eq!(said(lax.legacy_author(&asked(&get, &[]))), "loopback");
    assert_eq!(said(lax.legacy_author(&asked(&post, &[]))), "loopback");
    assert_eq!(said(lax.author(&asked(&post, &[]))), "no_token");
    let far = from("10.0.0.5:1", "10.0.0.6:2", &get, &[("host", "10.0.0.5:1")]);
    assert_eq!(said(lax.legacy_author(&far)), "no_token");
    for header in [("user-agent", "Mozilla/5.0 (X11)"), ("referer", "http://evil.example/")] {
        for method in [&get, &post] {
            let parts = asked(method, &[header]);
            assert_eq!(said(lax.legacy_author(&parts)), "forbidden", "{header:?}");
        }
    }
}

/// Whoever compared it held up every later edit, also the one that took it away.
#[test]
fn a_tokens_file_that_hangs_holds_up_no_edit() {
    let ann = Ann::new("hangs");
    let access = std::sync::Arc::new(access(only(ann.tokens())));
    std::fs::remove_file(&ann.0).unwrap();
    assert!(std::process::Command::new("mkfifo").arg(&ann.0).status().unwrap().success());
    let writer = std::fs::OpenOptions::new().read(true).write(true).open(&ann.0).unwrap();
    let reading = std::thread::spawn({
        let access = access.clone();
        move || access.read_again()
    });
    let (done, is_done) = std::sync::mpsc::channel();
    let editing = std::thread::spawn({
        let (access, tokens) = (access.clone(), ann.tokens());
        move || {
            for settings in [only(tokens), AdminAccess::default()] {
                let listen = HERE.parse().unwrap();
                let admin = Admin { listen, tls: None, access: settings };
                access.apply(access.read(&admin).unwrap());
            }
            done.send(()).unwrap();
        }
    });
    let edited = is_done.recv_timeout(Duration::from_secs(10));
    // Whoever reads sees its end, and nobody finds it any more.
    std::fs::remove_file(&ann.0).unwrap();
    drop(writer);
    reading.join().unwrap();
    edited.expect("the edits are in force");
    editing.join().unwrap();
    let by_ann = asked(&Method::POST, &[("authorization", "Bearer correct horse")]);
    assert_eq!(said(access.author(&by_ann)), "forbidden");
}

use policy::BackendTlsMode;

use super::*;

fn backend(server_name: Option<&str>) -> BackendTls {
    BackendTls {
        mode: BackendTlsMode::VerifyIdentity,
        ca: None,
        identity: None,
        server_name: server_name.map(str::to_owned),
    }
}

#[test]
fn the_name_asked_for_is_the_host_of_the_server_unless_told() {
    let name =
        |settings: &BackendTls, address| server_name(settings, address).to_str().into_owned();
    assert_eq!(name(&backend(None), "db-1.example:3306"), "db-1.example");
    assert_eq!(name(&backend(None), "db_1:3306"), "db_1");
    assert_eq!(name(&backend(None), "10.1.2.3:3306"), "10.1.2.3");
    assert_eq!(name(&backend(None), "[::1]:3306"), "::1");
    assert_eq!(name(&backend(None), "unix:/run/mysqld.sock"), "localhost");
    assert_eq!(name(&backend(Some("db.example")), "10.1.2.3:3306"), "db.example");
}

/// A folder that is gone with its owner.
struct Folder(std::path::PathBuf);

impl Folder {
    fn new(name: &str) -> Self {
        let folder = std::env::temp_dir().join(format!("sluice-tls-{}-{name}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        Self(folder)
    }

    /// Writes a certificate and its key.
    fn write(&self) {
        let made = rcgen::generate_simple_self_signed(vec!["db.example".to_owned()]).unwrap();
        std::fs::write(self.0.join("cert.pem"), made.cert.pem()).unwrap();
        std::fs::write(self.0.join("key.pem"), made.signing_key.serialize_pem()).unwrap();
    }

    fn config(&self) -> Result<Config, Vec<Fault>> {
        policy::load(&self.text())
    }

    fn named(&self) -> NamedElsewhere {
        policy::named_by(&self.text())
    }

    fn text(&self) -> String {
        let folder = self.0.display();
        format!(
            "version: 1\nclusters:\n  c:\n    listen: 127.0.0.1:1\n    primary: db:3306\n    \
             client_tls:\n      \
             cert: {folder}/cert.pem\n      key: {folder}/key.pem\n    backend_tls:\n      \
             mode: verify_ca\n      \
             ca: {folder}/cert.pem\n"
        )
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        std::fs::remove_dir_all(&self.0).unwrap();
    }
}

fn places(faults: Vec<Fault>) -> Vec<String> {
    faults.into_iter().map(|fault| format!("{} {}", fault.line, fault.path)).collect()
}

#[test]
fn files_that_cannot_be_used_are_faults_where_they_are_named() {
    let folder = Folder::new("faults");
    let named = folder.named();
    let faults = || FileFaults::of(&named, None).fatal;
    let (cert, ca) = ("7 clusters.c.client_tls.cert", "11 clusters.c.backend_tls.ca");
    let key_place = "8 clusters.c.client_tls.key";
    assert_eq!(places(faults()), [cert, key_place, ca]);
    folder.write();
    assert_eq!(faults(), []);
    let key = std::fs::read(folder.0.join("key.pem")).unwrap();
    folder.write();
    std::fs::write(folder.0.join("key.pem"), key).unwrap();
    assert_eq!(places(faults()), [key_place], "it does not fit");
    std::fs::write(folder.0.join("cert.pem"), "nothing").unwrap();
    assert_eq!(places(faults()), [cert, ca]);
}

#[test]
fn what_cannot_be_used_leaves_in_force_what_was() {
    let folder = Folder::new("kept");
    folder.write();
    let policy = folder.config().unwrap().clusters[0].clone();
    let store = TlsStore::new(&policy);
    let first = store.server_config().unwrap();
    let renew = || store.renew(store.renewal(Settings::of(&policy)));
    std::fs::write(folder.0.join("key.pem"), "nothing").unwrap();
    renew();
    assert!(Arc::ptr_eq(&store.server_config().unwrap(), &first));
    folder.write();
    renew();
    assert!(!Arc::ptr_eq(&store.server_config().unwrap(), &first));
}

/// Whoever had looked at its files put it in force again, for good where an edit names no file any more.
#[test]
fn a_certificate_that_an_edit_drops_is_not_put_back_by_who_looked_at_it_before() {
    let folder = Folder::new("dropped");
    folder.write();
    let mut policy = (*folder.config().unwrap().clusters[0]).clone();
    let store = TlsStore::new(&policy);
    let looked_at = store.renewal(Settings::of(&policy));
    policy.client_tls.identity = None;
    edit(&store, &policy).unwrap();
    let edited = store.server_config().unwrap();
    store.renew(looked_at);
    assert!(Arc::ptr_eq(&store.server_config().unwrap(), &edited));
}

#[test]
fn a_file_that_breaks_is_outlived_by_what_it_said_unless_its_settings_change() {
    let folder = Folder::new("outlived");
    folder.write();
    let in_force = folder.config().unwrap();
    std::fs::write(folder.0.join("cert.pem"), "nothing").unwrap();
    let FileFaults { fatal, outlived } = FileFaults::of(&folder.named(), Some(&in_force));
    assert_eq!(places(fatal), [""; 0]);
    let (cert, ca) = ("7 clusters.c.client_tls.cert", "11 clusters.c.backend_tls.ca");
    assert_eq!(places(outlived), [cert, ca]);
    let mut before = in_force.clone();
    let mut cluster = (*before.clusters[0]).clone();
    cluster.client_tls.identity = None;
    before.clusters[0] = Arc::new(cluster);
    let FileFaults { fatal, outlived } = FileFaults::of(&folder.named(), Some(&before));
    assert_eq!((places(fatal), places(outlived)), (vec![cert.to_owned()], vec![ca.to_owned()]));
}

/// `leg`, whether what its files say is in force, and until when its certificate is valid.
fn legs(store: &TlsStore) -> Vec<(&'static str, bool, Option<u64>)> {
    let view = |view: LegView| (view.leg, view.is_current, view.not_after.map(|at| at.as_secs()));
    store.legs().map(view).collect()
}

/// 4096-01-01, until when certificates made here are valid.
const LATE: Option<u64> = Some(67_090_118_400);

#[test]
fn each_leg_tells_whether_its_files_are_in_force_and_until_when() {
    let folder = Folder::new("views");
    folder.write();
    let mut policy = (*folder.config().unwrap().clusters[0]).clone();
    let store = TlsStore::new(&policy);
    assert_eq!(legs(&store), [("client", true, LATE), ("backend", true, None)]);
    let renew = || store.renew(store.renewal(Settings::of(&policy)));
    std::fs::write(folder.0.join("key.pem"), "nothing").unwrap();
    renew();
    assert_eq!(legs(&store), [("client", false, LATE), ("backend", true, None)]);
    folder.write();
    renew();
    assert_eq!(legs(&store), [("client", true, LATE), ("backend", true, None)]);
    policy.backend_tls.identity = policy.client_tls.identity.take();
    policy.client_tls.mode = ClientTlsMode::Disabled;
    edit(&store, &policy).unwrap();
    assert_eq!(legs(&store), [("backend", true, LATE)]);
}

fn edit(store: &TlsStore, policy: &ClusterPolicy) -> Result<(), NotApplied> {
    store.apply(store.read(policy)?.expect("other settings"));
    Ok(())
}

#[test]
fn settings_whose_files_cannot_be_used_are_not_applied_but_where_the_leg_has_others() {
    let folder = Folder::new("edited");
    folder.write();
    let mut policy = (*folder.config().unwrap().clusters[0]).clone();
    let store = TlsStore::new(&policy);
    assert!(store.read(&policy).unwrap().is_none(), "they are in force");
    std::fs::write(folder.0.join("key.pem"), "nothing").unwrap();
    policy.backend_tls.mode = BackendTlsMode::VerifyIdentity;
    edit(&store, &policy).unwrap();
    assert_eq!(legs(&store), [("client", false, LATE), ("backend", true, None)]);
    policy.client_tls.mode = ClientTlsMode::Required;
    let NotApplied(why) = edit(&store, &policy).unwrap_err();
    assert!(why.starts_with("clusters.c.client_tls.key"), "{why}");
    assert_eq!(store.settings.lock().client.mode, ClientTlsMode::Preferred);
}

#[tokio::test(start_paused = true)]
async fn a_file_that_becomes_again_what_it_was_is_in_force_again() {
    let folder = Folder::new("again");
    folder.write();
    let policy = folder.config().unwrap().clusters[0].clone();
    let store = Arc::new(TlsStore::new(&policy));
    let watching = tokio::spawn({
        let store = store.clone();
        async move { store.watch().await }
    });
    let good = std::fs::read(folder.0.join("cert.pem")).unwrap();
    for (content, expected) in [(&b"nothing"[..], false), (&good, true)] {
        std::fs::write(folder.0.join("cert.pem"), content).unwrap();
        for looks in 0.. {
            if legs(&store)[0].1 == expected {
                break;
            }
            assert!(looks < 10, "still not {expected}");
            tokio::time::sleep(COMPARE_INTERVAL).await;
        }
    }
    watching.abort();
}

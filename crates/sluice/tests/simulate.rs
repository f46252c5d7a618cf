//! `sluice simulate`: what it prints, and how it exits.

use std::path::Path;
use std::process::{Command, Output};

const BINARY: &str = env!("CARGO_BIN_EXE_sluice");

#[expect(clippy::expect_used, reason = "a binary that cannot be started fails the test")]
fn sluice(arguments: &[&str]) -> Output {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let output = Command::new(BINARY).current_dir(root).arg("simulate").args(arguments).output();
    output.expect("the binary starts")
}

#[test]
fn figures_as_the_file_expects_are_status_0_and_json_is_the_same_every_time() {
    let arguments = ["scenarios/steady-binary.yaml", "--format", "json"];
    let (first, second) = (sluice(&arguments), sluice(&arguments));
    assert_eq!(first.status.code(), Some(0), "{first:?}");
    assert_eq!(first.stdout, second.stdout);
    let json: serde_json::Value = serde_json::from_slice(&first.stdout).unwrap();
    assert_eq!(json["name"], "steady-binary");
    assert_eq!(json["pacing"], "binary");
    let other = sluice(&[&arguments[..], &["--seed", "8"]].concat());
    assert_ne!(first.stdout, other.stdout);
}

#[test]
fn a_figure_that_is_not_as_expected_is_status_1_and_named() {
    let output = sluice(&["scenarios/steady.yaml", "--pacing", "binary"]);
    assert_eq!(output.status.code(), Some(1), "{output:?}");
    let errors = String::from_utf8(output.stderr).unwrap();
    assert!(errors.contains("over_threshold is expected in [0, 0.001], and it is 0."), "{errors}");
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(text.contains("steady: pacing binary") && text.contains("online-ddl"), "{text}");
}

#[test]
fn a_file_that_is_missing_or_has_faults_is_status_2() {
    for file in ["scenarios/none.yaml", "proxy-config.yaml"] {
        let output = sluice(&[file]);
        assert_eq!(output.status.code(), Some(2), "{output:?}");
        assert!(output.stdout.is_empty());
        assert!(String::from_utf8(output.stderr).unwrap().starts_with(file));
    }
}

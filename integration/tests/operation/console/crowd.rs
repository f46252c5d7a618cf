//! Ten thousand rules and five thousand identities: the page draws a page of them at a time.

use std::fmt::Write as _;

use integration::scenario::Shared;
use integration::server::Flavour;
use integration::sluice::{Config, SluiceProcess};

use super::browser::Browser;
use super::login;

static SERVER: Shared = Shared::new(Flavour::MySql);

const RULES: u32 = 10_000;
const IDENTITIES: u32 = 5_000;

#[tokio::test]
async fn ten_thousand_rules_and_five_thousand_identities_are_a_page_at_a_time() {
    let servers = SERVER.get().await.unwrap();
    let mut rules = String::new();
    for n in 0..RULES {
        writeln!(
            rules,
            "- {{ name: rule-{n}, match: {{ app: nobody-{n} }}, gate: none, permanent: true }}"
        )
        .unwrap();
    }
    let mut config = Config::new(servers).unwrap().rules(&rules);
    config.top = format!("metrics: {{ max_apps: {} }}", IDENTITIES + 10);
    let sluice = SluiceProcess::start(&config).await.unwrap();
    let mut conn = login(&sluice).await;
    for n in 0..IDENTITIES {
        conn.query(&format!("DO 1 /*app='job-x{n}y'*/")).await.unwrap();
    }
    let browser = Browser::open().await;
    browser.goto(&format!("http://{}/", sluice.admin_addr())).await;
    let note = |panel: &str| format!("document.querySelector('#{panel} .note')?.innerText ?? ''");
    browser.until("all rules", &format!("{}.startsWith('{RULES} ')", note("rules"))).await;
    browser.until("all identities", &format!("parseInt({}) >= {IDENTITIES}", note("apps"))).await;
    let rows = browser.run("return document.querySelectorAll('tr').length").await;
    assert!(rows.as_u64().unwrap() < 120, "{rows} rows are drawn");

    browser.write("#rules input[type=search]", "rule-9876").await;
    let only =
        "[...document.querySelectorAll('#rules td.name')].map((cell) => cell.innerText).join()";
    browser.until("the rule", &format!("{only} === 'rule-9876'")).await;
    browser.write("#apps input[type=search]", "job-x4321y").await;
    let only =
        "[...document.querySelectorAll('#apps tbody a')].map((cell) => cell.innerText).join()";
    browser.until("the identity", &format!("{only} === 'job-x4321y'")).await;
    browser.keep("crowd").await;
}

//! The console in a real browser, in front of a real primary with a replica and load.

#![expect(clippy::unwrap_used, clippy::panic, reason = "helpers of tests fail by panicking")]

use std::time::{Duration, Instant};

use integration::raw::RawConn;
use integration::scenario::{Pending, Refused, connect, wait_for_depth};
use integration::sluice::{Config, SluiceProcess};
use integration::topology::Topology;
use integration::writers::Writers;

use self::browser::{Browser, ENTER, TAB};

mod browser;
mod crowd;

const TOKEN: &str = "correct-horse";
const ENVIRONMENT: [(&str, &str); 1] = [("SLUICE_TEST_TOKEN", TOKEN)];
/// The reason has a tag in it.
const RULES: &str = "
- name: strange
  match: { user: ddl }
  hold: true
  max_delay: 60s
  permanent: true
  reason: '<b>why</b>'
- { name: jobs, match: { user: etl }, gate: [lag], permanent: true }";

/// What refuses besides: a guard, whose reason is a tag as well, and a budget that has room.
const LIMITS: &str = "
guards:
  - { name: where, where_required: deny, reason: '<b>all rows</b>' }
budgets:
  - { name: reports, match: { user: app }, max_concurrency: 4 }";

const WRITE: &str = "INSERT INTO test.console (n) VALUES (1)";

/// What a client may call itself, to see whether it becomes part of the page.
const MARKUP: &str = "<img src=x onerror=\"document.title='broken in'\">";

#[tokio::test]
async fn who_is_on_call_sees_holds_lifts_and_is_told_when_sluice_is_gone() {
    let servers = Topology::mysql(1).await.unwrap();
    let table = "CREATE TABLE test.console (id INT PRIMARY KEY AUTO_INCREMENT, n INT)";
    servers.primary.run_sql(&[table]).await.unwrap();
    let config = Config::new(&servers).unwrap();
    let mut config = config.admin_keys("token_env: SLUICE_TEST_TOKEN").rules(RULES);
    LIMITS.clone_into(&mut config.top);
    let mut sluice = SluiceProcess::start_with(&config, &ENVIRONMENT).await.unwrap();
    let browser = Browser::open().await;
    let load = Writers::start(sluice.listen_addr(), "etl", 3, WRITE).await.unwrap();
    let mut strange = connect(&sluice, "ddl").await.unwrap();
    strange.query(&format!("SET @sluice_app = '{}'", MARKUP.replace('\'', "''"))).await.unwrap();
    let held = Pending::query(strange, WRITE);

    browser.goto(&format!("http://{}/", sluice.admin_addr())).await;
    plots_move(&browser).await;
    a_name_is_text(&browser).await;
    who_is_refused_is_there_with_the_id_to_ask_by(&browser, &sluice).await;
    a_click_holds(&browser, &sluice).await;
    its_countdown_runs(&browser).await;
    browser.keep("overview").await;
    the_keyboard_lifts_it(&browser, &sluice).await;
    a_shown_name_holds_whom_it_is_of(&browser, &sluice).await;
    it_fits(&browser).await;
    everything_has_a_name_and_can_be_read(&browser).await;
    drop((load, held));

    // The same Sluice again, a while later.
    sluice.stop(Duration::from_secs(10)).await.unwrap();
    browser.until("it says that it is lost", "!document.getElementById('lost').hidden").await;
    browser.keep("lost").await;
    let points = browser.run(POINTS).await;
    let sluice = SluiceProcess::start_with(&config, &ENVIRONMENT).await.unwrap();
    browser.until("it goes on by itself", "document.getElementById('lost').hidden").await;
    let held = connect(&sluice, "ddl").await.unwrap();
    let _held = Pending::query(held, WRITE);
    browser.until("it is live", "document.querySelector('#held').innerText.includes('ddl')").await;
    let after = browser.run(POINTS).await;
    assert!(after.as_u64() > points.as_u64(), "the past was lost: {points} points, now {after}");
    let complaints: Vec<String> =
        browser.complaints().await.into_iter().filter(|said| !is_expected(said)).collect();
    assert!(complaints.is_empty(), "{complaints:?}");
}

/// What a page cannot keep a browser from saying: requests to a Sluice that is not there, a wrong
/// token, and panels that this Sluice has nothing for.
fn is_expected(said: &str) -> bool {
    ["ERR_", "status of 401", "/api/v1/insights", "/api/v1/history"]
        .iter()
        .any(|known| said.contains(known))
}

const POINTS: &str = "return document.querySelector('.plot.main').plotted()";

async fn plots_move(browser: &Browser) {
    browser.until("it is live", "document.querySelectorAll('.plot canvas').length === 5").await;
    let served =
        "parseFloat(document.querySelectorAll('.plot')[4].querySelector('b').innerText) > 0";
    browser.until("statements are served", served).await;
    let drawn =
        "[...document.querySelectorAll('.plot canvas')].map((one) => one.toDataURL()).join()";
    browser.run(&format!("window.before = {drawn}")).await;
    let moved = format!("{drawn} !== window.before");
    browser.until("the plots have moved", &moved).await;
    let said = "document.querySelector('.plot.main .canvas').ariaLabel?.includes('lag: now')";
    browser.until("the plot is described", said).await;
}

async fn a_name_is_text(browser: &Browser) {
    let named = "[...document.querySelectorAll('#held td')].map((cell) => cell.innerText)\
                 .find((text) => text.includes('onerror'))";
    let named = browser.until("who is held", named).await;
    assert_eq!(named.as_str().unwrap().trim(), MARKUP);
    browser
        .until("its rule", "document.querySelector('#rules').innerText.includes('<b>why</b>')")
        .await;
    let made = browser.run("return document.querySelectorAll('img, b b, #rules b').length").await;
    assert_eq!(made, 0);
    // Its own page, by its link, and back.
    let link = "[...document.querySelectorAll('#held a')]\
                .find((link) => link.innerText.includes('onerror'))";
    browser.run(&format!("{link}.click()")).await;
    browser.until("its page", "document.querySelector('h1').innerText.includes('onerror')").await;
    // What keeps it, and since when: as the commands tell it, and as text.
    let why = "document.querySelector('#why').innerText";
    let lifts = "what lets it through: the end of the hold, by an edit of rule strange in the file";
    browser.until("why it waits", &format!("{why}.includes('{lifts}')")).await;
    let told = browser.run(&format!("return {why}")).await;
    for part in ["has waited for", "<b>why</b>", "user ddl at 127.0.0.1:", "class write", MARKUP] {
        assert!(told.as_str().unwrap().contains(part), "{part}: {told}");
    }
    let past = "document.querySelector('#history').innerText";
    browser.until("its history", &format!("{past}.includes('has been held since')")).await;
    browser.keep("identity").await;
    assert_eq!(browser.run("return document.querySelectorAll('img, b b, li b').length").await, 0);
    let title = browser.run("return document.title").await;
    assert!(title.as_str().unwrap().ends_with("– Sluice"), "{title}");
    browser.click(".crumb a").await;
    browser.until("the cluster's page", "document.querySelector('#held td') !== null").await;
}

/// Whom a guard refuses nothing holds up, so only this says it; and what budgets and guards have met.
async fn who_is_refused_is_there_with_the_id_to_ask_by(browser: &Browser, sluice: &SluiceProcess) {
    let hidden = "document.querySelector('#refused').hidden";
    browser.until("nobody is refused", hidden).await;
    let mut careless = connect(sluice, "app").await.unwrap();
    // It begins with what turns the rest of a sentence round.
    let named = format!("SET @sluice_app = '\u{202e}{}'", MARKUP.replace('\'', "''"));
    careless.query(&named).await.unwrap();
    let refused = careless.query("DELETE FROM test.console").await.unwrap();
    let id = Refused::of(&refused).unwrap().part("id").unwrap().to_owned();
    let shown = "document.querySelector('#refused').innerText";
    browser.until("who was refused", &format!("{shown}.includes('sluice why {id}')")).await;
    let told = browser.run(&format!("return {shown}")).await;
    for part in [&format!("\u{fffd}{MARKUP}"), "guard where: where_required", "app"] {
        assert!(told.as_str().unwrap().contains(part), "{part}: {told}");
    }
    let guards = "document.querySelector('#guards').innerText";
    browser.until("its guard", &format!("{guards}.includes('<b>all rows</b>')")).await;
    let objected = "document.querySelector('#guards td:nth-child(4)').innerText === '1'";
    browser.until("what it has met", objected).await;
    // A statement at the server takes a quarter of the budget.
    let busy = Pending::query(careless, "SELECT SLEEP(60)");
    let fill = "document.querySelector('#budgets td.bar').innerText === '25 %'";
    browser.until("how full the budget is", fill).await;
    browser.keep("limits").await;
    drop(busy);
    // On its own page too.
    let link = "[...document.querySelectorAll('#refused a')][0]";
    browser.run(&format!("{link}.click()")).await;
    let own = format!("document.querySelector('#own-refused')?.innerText.includes('{id}')");
    browser.until("its own page says so", &own).await;
    assert_eq!(browser.run("return document.querySelectorAll('img, td b').length").await, 0);
    browser.click(".crumb a").await;
    browser.until("the cluster's page", "document.querySelector('#held td') !== null").await;
}

async fn a_click_holds(browser: &Browser, sluice: &SluiceProcess) {
    let app = "[...document.querySelectorAll('#apps button')]\
               .find((one) => one.ariaLabel === 'Hold etl')";
    browser.until("the app is listed", app).await;
    // Without a token first: it asks for one, and a wrong one is none.
    browser.run(&format!("{app}.click()")).await;
    browser.write("dialog input[type=password]", "wrong-horse").await;
    browser.click("dialog button.primary").await;
    browser.until("it is refused", "document.querySelector('dialog .fault').innerText").await;
    browser.write("dialog input[type=password]", TOKEN).await;
    browser.click("dialog button.primary").await;
    browser
        .until(
            "the question",
            "document.querySelector('dialog .sentence')?.innerText.includes('etl')",
        )
        .await;
    let stored = browser
        .run("return JSON.stringify([{...localStorage}, {...sessionStorage}, document.cookie])")
        .await;
    assert!(!stored.as_str().unwrap().contains(TOKEN), "{stored}");
    browser.keep("hold").await;
    browser.write("dialog input[placeholder]", "reports are late").await;
    browser.click("dialog button.primary").await;
    let clicked = Instant::now();
    wait_for_depth(sluice, "runtime:etl", 3).await.unwrap();
    assert!(clicked.elapsed() < Duration::from_secs(1), "{:?}", clicked.elapsed());
    browser.until("it is closed", "!document.querySelector('dialog').open").await;
    browser
        .until("it is told", "document.querySelector('#said').innerText.startsWith('etl: held')")
        .await;
    let mark = "document.querySelector('.mark').innerText.includes('etl: hold')";
    browser.until("it is marked in the time line", mark).await;
}

async fn its_countdown_runs(browser: &Browser) {
    let left =
        "document.querySelector('#rules td.left')?.innerText.match(/^(\\\\d+):(\\\\d\\\\d)$/)";
    let left = left.replace("\\\\", "\\");
    let seconds = format!(
        "(() => {{ const at = {left}; return at && Number(at[1]) * 60 + Number(at[2]) }})()"
    );
    let first = browser.until("a countdown", &seconds).await.as_u64().unwrap();
    assert!((3_500..=3_600).contains(&first), "{first} s");
    let less = format!("{seconds} < {first} - 1");
    browser.until("it runs down", &less).await;
}

async fn the_keyboard_lifts_it(browser: &Browser, sluice: &SluiceProcess) {
    browser.run("document.activeElement.blur()").await;
    let focused = "return document.activeElement.ariaLabel";
    let mut pressed = 0;
    while browser.run(focused).await != "Lift runtime:etl" {
        browser.press(TAB).await;
        pressed += 1;
        assert!(pressed < 150, "the button is not on the way");
    }
    let ring = browser.run("return getComputedStyle(document.activeElement).outlineStyle").await;
    assert_eq!(ring, "solid", "where the focus is can be seen");
    browser.press(ENTER).await;
    browser.until("the question", "document.querySelector('dialog').open").await;
    browser.press(ENTER).await;
    wait_for_depth(sluice, "runtime:etl", 0).await.unwrap();
    browser
        .until("it is gone", "!document.querySelector('#rules').innerText.includes('runtime:etl')")
        .await;
}

/// Counts show a name without its levels that are ids, so a rule for it as it is shown met nobody; and
/// who calls itself `*` had everybody held.
async fn a_shown_name_holds_whom_it_is_of(browser: &Browser, sluice: &SluiceProcess) {
    let mut conn = connect(sluice, "app").await.unwrap();
    for app in ["*", "d666bbfc_169e_11ef_b0b3_0a43f95f28a3:vcopier:online-ddl"] {
        conn.query(&format!("SET @sluice_app = '{app}'")).await.unwrap();
        assert!(conn.query(WRITE).await.unwrap().err().is_none());
    }
    let hold = |app: &str| {
        format!(
            "[...document.querySelectorAll('#apps button')]\
             .find((one) => one.ariaLabel === 'Hold {app}')"
        )
    };
    browser.until("the pattern is listed", &hold("*")).await;
    browser.run(&format!("{}.click()", hold("*"))).await;
    let said = "document.querySelector('dialog p').innerText";
    browser.until("no rule is made", &format!("{said}.includes('it is a pattern')")).await;
    browser.click("dialog button.primary").await;

    let shown = hold("vcopier:online-ddl");
    browser.until("the job is listed", &shown).await;
    browser.run(&format!("{shown}.click()")).await;
    let said = "document.querySelector('dialog .sentence')?.innerText";
    let reach = "every app with the level online-ddl";
    browser.until("whom it is about", &format!("{said}?.includes('{reach}')")).await;
    let names = "return [...document.querySelector('dialog form').elements[1].options]\
                 .map((option) => option.value).join()";
    assert_eq!(browser.run(names).await, "online-ddl,vcopier,vcopier:online-ddl");
    browser.write("dialog input[placeholder]", "the copy is in the way").await;
    browser.click("dialog button.primary").await;
    browser.until("it is made", "!document.querySelector('dialog').open").await;
    let held = Pending::query(conn, WRITE);
    wait_for_depth(sluice, "runtime:online-ddl", 1).await.unwrap();
    // Its own page has that rule.
    let link = "[...document.querySelectorAll('#held a')]\
                .find((link) => link.innerText.endsWith(':vcopier:online-ddl'))";
    browser.until("it is held", link).await;
    browser.run(&format!("{link}.click()")).await;
    let made = "document.querySelector('#own-rules')?.innerText.includes('runtime:online-ddl')";
    browser.until("its rule", made).await;
    browser.click(".crumb a").await;
    browser.until("the cluster's page", "document.querySelector('#held td') !== null").await;
    drop(held);
}

/// Nothing has to be moved sideways: on a phone, and at twice the zoom.
async fn it_fits(browser: &Browser) {
    for (name, width, height, scale) in [("phone", 390, 844, 2), ("zoomed", 640, 450, 2)] {
        browser.screen(width, height, scale).await;
        let drawn = "document.querySelector('.plot.main canvas').clientWidth";
        let fits = format!("innerWidth === {width} && {drawn} < {width}");
        browser.until("it is laid out", &fits).await;
        let wide = browser.run("return document.documentElement.scrollWidth").await;
        assert!(wide.as_u64().unwrap() <= u64::from(width), "{name}: {wide} pixels wide");
        let outside = browser.run(AUDIT).await;
        assert_eq!(outside, serde_json::json!([]), "{name}");
        browser.keep(name).await;
        browser.run("scrollTo(0, document.getElementById('held').offsetTop)").await;
        browser.keep(&format!("{name}-lists")).await;
        browser.run("scrollTo(0, 0)").await;
    }
    browser.screen(1_400, 1_000, 1).await;
}

async fn everything_has_a_name_and_can_be_read(browser: &Browser) {
    for theme in ["dark", "light"] {
        browser.run(&format!("document.documentElement.dataset.theme = '{theme}'")).await;
        let wrong = browser.run(AUDIT).await;
        assert_eq!(wrong, serde_json::json!([]), "{theme}");
        browser.keep(theme).await;
    }
    browser.run("delete document.documentElement.dataset.theme").await;
}

/// What is wrong with the page: things outside the window or without a name, and pale words.
const AUDIT: &str = include_str!("console/audit.js");

/// So that helpers of the other file have it.
pub(crate) async fn login(sluice: &SluiceProcess) -> RawConn {
    connect(sluice, "app").await.unwrap()
}

//! A real browser, headless, with a profile of its own, gone with its owner.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use fantoccini::elements::Element;
use fantoccini::{Client, ClientBuilder, Locator};
use hyper_util::client::legacy::connect::HttpConnector;
use integration::ports::free_port;
use integration::tools::{ToolProcess, program};
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::{sleep, timeout};

/// On a machine that does much else.
const LIMIT: Duration = Duration::from_secs(20);
const POLL: Duration = Duration::from_millis(25);

/// The Tab key and Enter, in the words of WebDriver.
pub(crate) const TAB: &str = "\u{e004}";
pub(crate) const ENTER: &str = "\u{e007}";

pub(crate) struct Browser {
    client: Client,
    port: u16,
    session: String,
    _driver: ToolProcess,
}

impl Browser {
    pub(crate) async fn open() -> Self {
        let port = free_port().unwrap();
        let mut command = Command::new(program("chromedriver").unwrap());
        command.arg(format!("--port={port}"));
        let driver = ToolProcess::spawn_family(&mut command).unwrap();
        let profile = format!("--user-data-dir={}", driver.dir().join("profile").display());
        let flags: Vec<&str> = FLAGS.into_iter().chain([profile.as_str()]).collect();
        let options = json!({
            "goog:chromeOptions": { "args": flags },
            "goog:loggingPrefs": { "browser": "ALL" },
        });
        let capabilities = options.as_object().unwrap().clone();
        let mut builder = ClientBuilder::new(HttpConnector::new());
        builder.capabilities(capabilities);
        let started = Instant::now();
        let client = loop {
            match builder.connect(&format!("http://127.0.0.1:{port}")).await {
                Ok(client) => break client,
                Err(error) if started.elapsed() > LIMIT => {
                    panic!("no browser: {error}\n{}", driver.output())
                }
                Err(_) => sleep(POLL).await,
            }
        };
        let session = client.session_id().await.unwrap().unwrap();
        Self { client, port, session, _driver: driver }
    }

    pub(crate) async fn goto(&self, url: &str) {
        self.client.goto(url).await.unwrap();
    }

    /// What a script returns.
    pub(crate) async fn run(&self, script: &str) -> Value {
        self.client.execute(script, Vec::new()).await.unwrap()
    }

    /// What an expression gives as soon as it is neither false nor nothing.
    pub(crate) async fn until(&self, what: &str, expression: &str) -> Value {
        let started = Instant::now();
        loop {
            let value = self.run(&format!("return {expression}")).await;
            if !matches!(value, Value::Null | Value::Bool(false)) && value != json!("") {
                return value;
            }
            if started.elapsed() > LIMIT {
                self.keep("failed").await;
                let page = self.run("return document.body.innerText").await;
                panic!("not in time: {what}; the page says {page}");
            }
            sleep(POLL).await;
        }
    }

    pub(crate) async fn find(&self, css: &str) -> Element {
        self.client.find(Locator::Css(css)).await.unwrap()
    }

    /// A click by the mouse, where the element is.
    pub(crate) async fn click(&self, css: &str) {
        self.find(css).await.click().await.unwrap();
    }

    pub(crate) async fn write(&self, css: &str, text: &str) {
        // What has just been drawn may still move.
        let started = Instant::now();
        loop {
            let element = self.find(css).await;
            let cleared = element.clear().await;
            match (cleared, element.send_keys(text).await) {
                (Ok(()), Ok(())) => return,
                (_, Err(error)) | (Err(error), _) if started.elapsed() > LIMIT => {
                    self.keep("failed").await;
                    panic!("nothing can be written into {css}: {error}");
                }
                _ => sleep(POLL).await,
            }
        }
    }

    /// A key, for whatever has the focus.
    pub(crate) async fn press(&self, key: &str) {
        self.client.active_element().await.unwrap().send_keys(key).await.unwrap();
    }

    /// A window of this size in the page's own pixels, each of so many of the screen's: twice the
    /// zoom is half the pixels, each of two.
    pub(crate) async fn screen(&self, width: u32, height: u32, scale: u32) {
        let params = json!({
            "width": width, "height": height, "deviceScaleFactor": scale, "mobile": false,
        });
        self.devtools("Emulation.setDeviceMetricsOverride", &params).await;
    }

    /// Errors of scripts, and what the content security policy has stopped.
    pub(crate) async fn complaints(&self) -> Vec<String> {
        let log = self.ask("se/log", &json!({ "type": "browser" })).await;
        let entries = log.pointer("/value").and_then(Value::as_array).cloned().unwrap_or_default();
        let words = entries.iter().filter_map(|entry| entry.get("message").and_then(Value::as_str));
        words.map(str::to_owned).collect()
    }

    /// A picture of the window, in `target/console`.
    pub(crate) async fn keep(&self, name: &str) -> PathBuf {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../target/console");
        std::fs::create_dir_all(&folder).unwrap();
        let path = folder.join(format!("{name}.png"));
        std::fs::write(&path, self.client.screenshot().await.unwrap()).unwrap();
        path
    }

    async fn devtools(&self, command: &str, params: &Value) {
        let answer =
            self.ask("goog/cdp/execute", &json!({ "cmd": command, "params": params })).await;
        assert!(answer.pointer("/value/error").is_none(), "{answer}");
    }

    /// A command of Chromium's driver that WebDriver does not have.
    async fn ask(&self, path: &str, body: &Value) -> Value {
        let body = body.to_string();
        let request = format!(
            "POST /session/{}/{path} HTTP/1.1\r\nHost: 127.0.0.1:{}\r\n\
             Content-Type: application/json\r\nContent-Length: {}\r\n\r\n{body}",
            self.session,
            self.port,
            body.len()
        );
        let mut socket = TcpStream::connect(("127.0.0.1", self.port)).await.unwrap();
        socket.write_all(request.as_bytes()).await.unwrap();
        // It keeps the connection, whatever it is asked.
        let mut answer = Vec::new();
        loop {
            let read = timeout(LIMIT, socket.read_buf(&mut answer)).await.unwrap().unwrap();
            let text = String::from_utf8_lossy(&answer);
            let body = text.split_once("\r\n\r\n").map(|(_, body)| serde_json::from_str(body));
            match body {
                Some(Ok(value)) => return value,
                Some(Err(_)) | None => assert!(read > 0, "the driver has left: {text}"),
            }
        }
    }
}

/// Nothing of it looks for updates or at anybody's account.
const FLAGS: [&str; 11] = [
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-dev-shm-usage",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--force-dark-mode",
    "--window-size=1400,1000",
];

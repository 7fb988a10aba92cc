//! Chromium, driven by the DevTools protocol over a pipe: JSON messages, each ended by a NUL byte.

use std::io::{BufRead, BufReader, Write};
use std::os::unix::process::CommandExt;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

use base64::prelude::{BASE64_STANDARD, Engine};
use rustix::process::{Pid, Signal, kill_process_group};
use tempfile::TempDir;

use crate::support::{Value, json};

/// A command for Chromium with this profile. Chromium has no sandbox for root; names of schools are this
/// machine's, and the certificates there Caddy's own.
pub fn chromium(profile: &TempDir) -> Command {
    let mut command = Command::new("/usr/bin/chromium");
    command
        .args([
            "--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage",
        ])
        .args([
            "--no-first-run", "--disable-background-networking", "--disable-component-update",
        ])
        .args([
            "--host-resolver-rules=MAP *.example 127.0.0.1",
            "--ignore-certificate-errors",
        ])
        .arg(format!("--user-data-dir={}", profile.path().display()))
        .env("HOME", profile.path());
    command
}

/// A browser with one page.
pub struct Browser {
    process: Child,
    input: ChildStdin,
    output: BufReader<ChildStdout>,
    /// The session of the protocol with the page
    page: Option<String>,
    count: u32,
    /// The answer to a web server that asks for a password
    password: Value,
    _profile: TempDir,
}

impl Browser {
    /// A browser that accepts this language.
    pub fn new(language: &str) -> Browser {
        let profile = tempfile::tempdir().unwrap();
        let browser = chromium(&profile);
        let mut shell = Command::new("sh");
        // The protocol has the descriptors 3 and 4.
        let redirected = "exec timeout 300 \"$@\" 3<&0 4>&1 </dev/null >/dev/null 2>&1";
        shell
            .args(["-c", redirected, "sh"])
            .arg(browser.get_program())
            .args(browser.get_args());
        shell.args([
            "--remote-debugging-pipe",
            &format!("--accept-lang={language}"),
        ]);
        shell.env("HOME", profile.path()).process_group(0);
        let mut process = shell
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("sh");
        let input = process.stdin.take().unwrap();
        let output = BufReader::new(process.stdout.take().unwrap());
        let mut browser = Browser {
            process,
            input,
            output,
            page: None,
            count: 0,
            password: json!({"response": "CancelAuth"}),
            _profile: profile,
        };
        let target = browser.call("Target.createTarget", json!({"url": "about:blank"}));
        let attach = json!({"targetId": target["targetId"], "flatten": true});
        let session = browser.call("Target.attachToTarget", attach)["sessionId"].clone();
        browser.page = Some(session.as_str().unwrap().to_owned());
        browser.call("Page.enable", json!({}));
        browser.call("Page.setLifecycleEventsEnabled", json!({"enabled": true}));
        browser
    }

    /// Sends a command of the protocol. Returns its result.
    #[track_caller]
    pub fn call(&mut self, method: &str, params: Value) -> Value {
        self.send(method, params);
        let id = self.count;
        let answer = self.receive(|message| message["id"] == id);
        assert_eq!(answer["error"], Value::Null, "{method}");
        answer["result"].clone()
    }

    fn send(&mut self, method: &str, params: Value) {
        self.count += 1;
        let mut message = json!({"id": self.count, "method": method, "params": params});
        if let Some(page) = &self.page {
            message["sessionId"] = json!(page);
        }
        self.input
            .write_all(format!("{message}\0").as_bytes())
            .unwrap();
    }

    /// From now on, answers as a user does who is asked for a password: with this one, or by closing the question.
    pub fn answer_passwords(&mut self, password: Option<&str>) {
        if let Some(password) = password {
            self.password =
                json!({"response": "ProvideCredentials", "username": "x", "password": password});
        }
        self.call("Fetch.enable", json!({"handleAuthRequests": true}));
    }

    /// The next message that is wanted. Others are skipped.
    #[track_caller]
    fn receive(&mut self, is_wanted: impl Fn(&Value) -> bool) -> Value {
        loop {
            let mut message = Vec::new();
            self.output.read_until(0, &mut message).unwrap();
            assert!(
                message.pop().is_some(),
                "Chromium has ended; this test needs chromium"
            );
            let message: Value = serde_json::from_slice(&message).expect("JSON of Chromium");
            if is_wanted(&message) {
                return message;
            }
            // Those of `answer_passwords`. Their results are skipped.
            let request = &message["params"]["requestId"];
            if message["method"] == "Fetch.authRequired" {
                let answer = json!({"requestId": request, "authChallengeResponse": self.password});
                self.send("Fetch.continueWithAuth", answer);
            } else if message["method"] == "Fetch.requestPaused" {
                self.send("Fetch.continueRequest", json!({"requestId": request}));
            }
        }
    }

    /// Opens a page, and waits until it is loaded.
    #[track_caller]
    pub fn open(&mut self, url: &str) {
        let opened = self.call("Page.navigate", json!({"url": url}));
        assert_eq!(opened["errorText"], Value::Null, "{url}");
        // Events of an earlier page may still arrive.
        self.receive(|message| {
            let event = &message["params"];
            event["name"] == "load" && event["loaderId"] == opened["loaderId"]
        });
    }

    /// The value of an expression in the page, as if a user had caused it; a promise is awaited.
    #[track_caller]
    pub fn evaluate(&mut self, expression: &str) -> Value {
        let result = self.call(
            "Runtime.evaluate",
            json!({
                "expression": expression, "awaitPromise": true, "returnByValue": true,
                "userGesture": true,
            }),
        );
        assert_eq!(result["exceptionDetails"], Value::Null, "{expression}");
        result["result"]["value"].clone()
    }

    /// The text of an expression.
    #[track_caller]
    pub fn text(&mut self, expression: &str) -> String {
        let value = self.evaluate(expression);
        value
            .as_str()
            .unwrap_or_else(|| panic!("{expression}: {value}"))
            .to_owned()
    }

    /// The page from its top to the end of the element with this id, as a PNG.
    pub fn picture(&mut self, width: u32, last: &str) -> Vec<u8> {
        // So high that there is no scroll bar
        let window =
            json!({"width": width, "height": 4000, "deviceScaleFactor": 1, "mobile": false});
        self.call("Emulation.setDeviceMetricsOverride", window);
        let end = format!("document.getElementById('{last}').getBoundingClientRect().bottom");
        let height = self.evaluate(&end);
        let clip = json!({"x": 0, "y": 0, "width": width, "height": height, "scale": 1});
        let picture = self.call(
            "Page.captureScreenshot",
            json!({"format": "png", "clip": clip}),
        );
        BASE64_STANDARD
            .decode(picture["data"].as_str().unwrap())
            .unwrap()
    }
}

impl Drop for Browser {
    fn drop(&mut self) {
        _ = kill_process_group(Pid::from_child(&self.process), Signal::KILL);
        _ = self.process.wait();
    }
}

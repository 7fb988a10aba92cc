//! Asking PHP, with a real one.

use std::fs::{self, File};
use std::net::TcpStream;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant, SystemTime};

use comedor::admin::site::{self, AppUrl, Literals, Site};

use crate::child::alone;
use crate::support::fastcgi::Process;
use crate::support::site::wait_until;
use crate::support::{chmod, files_below, free_port, output, text_of};

const SCRIPT: &str = "<?php session_start(); echo '{\"success\":false}';";
/// A router of PHP's own server that leaves the request to the files
const FILES: &str = "<?php return false;";

fn later() -> Instant {
    Instant::now() + Duration::from_secs(30)
}

/// PHP's own web server on all addresses, as www-data, with one script and a router.
struct Server {
    _process: Process,
    folder: tempfile::TempDir,
    port: u16,
}

impl Server {
    fn start(script: &str, router: &str, options: &str) -> Server {
        let folder = tempfile::tempdir_in("/srv").unwrap();
        let path = folder.path();
        fs::create_dir(path.join("api")).unwrap();
        fs::write(path.join("api/comedor.php"), script).unwrap();
        fs::write(path.join("router.php"), router).unwrap();
        output(Command::new("chown").args(["-R", "www-data:"]).arg(path), "coreutils");
        let port = free_port();
        let mut process = Command::new("setpriv");
        process.args(["--reuid=www-data", "--regid=www-data", "--clear-groups", "php"]);
        process.args(["-d", "session.save_path=/tmp", "-d", "session.name=ENTRE", "-d", options]);
        process.args(["-S", &format!("[::]:{port}"), "-t"]).arg(path).arg(path.join("router.php"));
        process.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        let process = Process(process.spawn().unwrap());
        wait_until("PHP", || TcpStream::connect(("127.0.0.1", port)).is_ok());
        Server { _process: process, folder, port }
    }

    fn script(&self) -> PathBuf {
        self.folder.path().join("api/comedor.php")
    }

    fn ask(&self) -> Result<Site, String> {
        let address = AppUrl::parse(&format!("http://school.example:{}/", self.port)).unwrap();
        site::ask_php(&address, &[self.script()], later())
    }

    /// The files beside the script
    fn files(&self) -> Vec<String> {
        files_below(&self.folder.path().join("api"), &["!", "-name", "comedor.php"])
    }
}

#[test]
fn a_script_that_sends_its_answer_early_is_heard() {
    alone(|| {
        let script = "<?php ob_end_flush(); echo 'x'; flush(); usleep(300000);";
        assert!(Server::start(script, FILES, "output_buffering=0").ask().is_ok());
        // More than a pipe holds
        let script = "<?php ob_end_flush(); echo str_repeat('x', 500000); flush();";
        assert!(Server::start(script, FILES, "output_buffering=0").ask().is_ok());
    });
}

#[test]
fn a_refusal_names_its_cause() {
    alone(|| {
        let endless = "<?php ob_end_flush(); while (1) echo str_repeat('x', 65536);";
        let claims = r#"<?php
        $socket = stream_socket_client("unix://\0" . substr(basename($_SERVER['SCRIPT_NAME']), 0, 40));
        fwrite($socket, "key={$_SERVER['HTTP_X_COMEDOR']}\nnonce=00000000000000000000000000000000\n\n");
        echo 'x';"#;
        for (script, router, options, cause) in [
            (
                SCRIPT, FILES, "disable_functions=session_name",
                "PHP fails while it tells its settings",
            ),
            (endless, FILES, "output_buffering=0", "more than 1048576 bytes"),
            ("<?php sleep(60);", FILES, "a=b", "by 127.0.0.1: no answer in time"),
            (SCRIPT, claims, "a=b", "another program answers"),
        ] {
            let server = Server::start(script, router, options);
            let start = Instant::now();
            let refusal = server.ask().unwrap_err();
            assert!(refusal.contains(cause), "{cause}: {refusal}");
            assert!(start.elapsed() < Duration::from_secs(20), "{cause}");
            assert_eq!(server.files(), [""; 0], "{cause}");
        }
        let server = Server::start(SCRIPT, FILES, "a=b");
        fs::remove_file(server.script()).unwrap();
        fs::remove_dir(server.folder.path().join("api")).unwrap();
        let refusal = server.ask().unwrap_err();
        assert!(refusal.contains("cannot place a page"), "{refusal}");
    });
}

#[test]
fn a_page_that_a_power_failure_left_is_removed() {
    alone(|| {
        let server = Server::start(SCRIPT, FILES, "a=b");
        let number = "0123456789abcdef".repeat(2);
        let page = text_of("src/admin/site/page.php");
        let hour = SystemTime::now() - Duration::from_secs(3600);
        for (name, text, time) in [
            (format!("comedor-{number}.php"), &*page, hour),
            (format!("comedor-{}.php", number.replace('0', "f")), "", hour),
            (format!("comedor-{}.php", number.replace('0', "e")), "<?php // another's", hour),
            (format!("comedor-{}.php", number.replace('0', "d")), &page, SystemTime::now()),
            (format!("comedor-{number}x.php"), &page, hour),
        ] {
            let path = server.script().with_file_name(name);
            fs::write(&path, text).unwrap();
            File::options().write(true).open(&path).unwrap().set_modified(time).unwrap();
        }
        server.ask().unwrap();
        let left: Vec<_> = server.files().iter().map(|name| name[8..10].to_owned()).collect();
        assert_eq!(left, ["01", "d1", "e1"]);
    });
}

#[test]
fn a_script_in_a_closed_folder_is_found_and_read() {
    alone(|| {
        let script = "<?php include __DIR__ . '/../db.php'; if (0) { include 'late.php'; } '/DATA/x/Centros/'; 'x:docente';";
        let server = Server::start(script, FILES, "a=b");
        let folder = server.folder.path();
        fs::write(folder.join("db.php"), "<?php // nothing").unwrap();
        chmod(folder, 0o700);
        let (scripts, is_complete) = site::scripts(later());
        assert!(scripts.contains(&server.script()), "{scripts:?}");
        assert!(is_complete);
        let site = server.ask().unwrap();
        let literals = Literals::read(&site, later()).unwrap();
        assert!(literals.service.as_deref() == Some("x"));
        assert!(literals.data_dir.as_deref() == Some("/DATA/x"));
        assert_eq!(literals.database, None);
        for (file, text) in
            [("api/late.php", "<?php $x = new \\PDO('');"), ("db.php", "<?php MySQLi_connect();")]
        {
            fs::write(folder.join(file), text).unwrap();
            let database = Literals::read(&site, later()).unwrap().database.unwrap();
            assert!(database.contains(file), "{database}");
        }
    });
}

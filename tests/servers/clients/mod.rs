//! Clients as generators make them from openapi.yaml, against the program behind a web server. Each
//! client does the six actions, meets four errors, and reads answers of a later version; then the example
//! of its language logs in with it.

use std::fs::{self, File};
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpListener;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use crate::LIGHTTPD;
use crate::openapi::{BUSY, OPENAPI, TOOLS};
use crate::support::site::{Settings, Site, wait_until};
use crate::support::*;

/// Clients are generated below this folder, each in one of its own.
const CLIENTS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/target/clients");
/// The programs that use them.
const PROGRAMS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/servers/clients");
const VENV: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/target/venv/bin");

/// What the examples print.
const TODAY: &str = "primero: Lentejas\nsegundo: \npostre: Piña\n";

/// The empty folder of a client.
fn folder(name: &str) -> PathBuf {
    let folder = Path::new(CLIENTS).join(name);
    _ = fs::remove_dir_all(&folder);
    fs::create_dir_all(&folder).unwrap();
    folder
}

/// Copies a program of these tests, which uses the client in this folder.
fn copy_program(name: &str, folder: &Path) {
    fs::copy(Path::new(PROGRAMS).join(name), folder.join(name)).unwrap();
}

/// Runs the command of docs/api.md that generates a client with openapi-generator.
fn generate(generator: &str, options: &[&str], folder: &Path) {
    let command = [
        "openapi-generator-cli generate -i openapi.yaml -o comedor -g",
        generator,
    ];
    let command = [&command[..], options].concat().join(" ");
    assert!(
        text_of("docs/api.md").contains(&format!("`{command}`")),
        "{command} in docs/api.md"
    );
    symlink(OPENAPI, folder.join("openapi.yaml")).unwrap();
    run(Command::new("sh")
        .args(["-euc", &command])
        .current_dir(folder));
}

/// The output of a command, which finds what Python's packages installed. It must succeed.
#[track_caller]
fn run(command: &mut Command) -> String {
    let path = format!("{VENV}:{}", std::env::var("PATH").unwrap());
    String::from_utf8(output(command.env("PATH", path), "what tests/run installs")).expect("UTF-8")
}

/// The address of a server that answers a request, by its first line, with the start of a head and a body.
fn server(mut answer: impl FnMut(&str) -> (&'static str, String) + Send + 'static) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    thread::spawn(move || {
        for stream in listener.incoming() {
            let mut stream = BufReader::new(stream.unwrap());
            let lines = stream.by_ref().lines().map_while(Result::ok);
            let request: Vec<_> = lines.take_while(|line| !line.is_empty()).collect();
            let length = request.iter().find_map(|line| {
                let line = line.to_lowercase();
                line.strip_prefix("content-length: ")?.parse().ok()
            });
            let mut body = vec![0; length.unwrap_or(0)];
            stream.read_exact(&mut body).unwrap();
            let (head, body) = answer(request.first().map_or("", String::as_str));
            let length = body.len();
            let answer = format!(
                "HTTP/1.1 {head}\r\nContent-Length: {length}\r\nConnection: close\r\n\r\n{body}"
            );
            stream.get_mut().write_all(answer.as_bytes()).unwrap();
        }
    });
    url
}

/// The address of what may be a later version: its answers have fields, a code and a reason that are not in
/// openapi.yaml.
fn later_version() -> String {
    let types = json!([{"id": "basal", "label": "Menú basal", "color": "#0d6efd", "icon": "x"}]);
    let types = json!({"success": true, "menu_types": types, "count": 1});
    let error = json!({"success": false, "error": "Not now.", "code": "CLOSED", "reason": "closed",
                       "until": "2027-01-07"});
    server(move |request| {
        if request.contains("=get_menu_types") {
            (
                "200 OK\r\nContent-Type: application/json",
                types.to_string(),
            )
        } else {
            (
                "403 Forbidden\r\nContent-Type: application/json",
                error.to_string(),
            )
        }
    })
}

/// The address of a site that accepts a login, is busy for one request, and cannot answer the others, as Apache if a
/// responder ends during a request; and the number of requests after the login.
fn failing_site() -> (String, Arc<AtomicUsize>) {
    let count = Arc::new(AtomicUsize::new(0));
    let counter = Arc::clone(&count);
    let url = server(move |request| {
        if request.contains("/_login.php") {
            return ("200 OK", String::new());
        }
        match counter.fetch_add(1, Ordering::SeqCst) {
            0 => (
                "503 Service Unavailable\r\nContent-Type: application/json\r\nRetry-After: 1",
                BUSY.to_owned(),
            ),
            _ => (
                "503 Service Unavailable\r\nContent-Type: text/html",
                "<h1>Service Unavailable</h1>".to_owned(),
            ),
        }
    });
    (url, count)
}

/// EntreAulas' login, as far as programs see it: the form's fields, at the root of the site; and beside the session's
/// cookie one that has the password.
const FORM: &str = "<?php
    if ($_POST == ['user' => '…', 'password' => '…']) {
        setcookie('auth_user', $_POST['user'], time() + 3600, '/');
        require 'login.php';
        setcookie('auth_pass_b64', base64_encode($_POST['password']), time() + 3600, '/');
    }";

/// The cookies of each request, in lighttpd's log.
const LOG_OF_COOKIES: &str = r#"
    server.modules += ( "mod_accesslog" )
    accesslog.filename = "FOLDER/log/access.log"
    accesslog.format = "%U %{Cookie}i"
"#;

/// A site with a menu of today and a login, and another one whose session a page holds for longer than
/// five seconds.
struct LoggedIn {
    site: Site,
    /// The address of the site
    url: String,
    cookie: String,
    _held: File,
}

impl LoggedIn {
    fn new() -> LoggedIn {
        let mut site = Site::new();
        let log = LOG_OF_COOKIES.replace("FOLDER", &site.path().display().to_string());
        let example = site.fill(LIGHTTPD, Settings::File) + &log;
        site.write("docroot/_login.php", FORM);
        let application = site.path().join("docroot/entreaulas/api");
        fs::create_dir_all(&application).unwrap();
        fs::write(application.join("comedor.php"), "").unwrap();
        site.start_lighttpd("enable", &example);
        let jar = site.path().join("cookies");
        let (_, answer) = site.curl(&["-i", "-c", jar.to_str().unwrap(), &site.url("login.php")]);
        let cookie = answer
            .lines()
            .find_map(|line| line.strip_prefix("Set-Cookie: "));
        let cookie = cookie
            .and_then(|line| line.split(';').next())
            .expect("a cookie")
            .to_owned();
        let plates = json!({"primero": {"name": "Lentejas"}, "postre": {"name": "Piña"}});
        site.call(
            "save_menu",
            Some(json!({"menu_type": "basal", "plates": plates})),
        );
        site.log_in("held", &session(TEACHER));
        let held = File::open(site.path().join("sessions/sess_held")).unwrap();
        held.lock().unwrap();
        let url = site.url("").trim_end_matches('/').to_owned();
        LoggedIn {
            site,
            url,
            cookie,
            _held: held,
        }
    }

    /// Runs a program with its arguments: the address, the two cookies, and the address of a later version.
    fn use_client(&self, program: &mut Command) {
        run(program.args([&self.url, &self.cookie, "PHPSESSID=held", &later_version()]));
    }

    fn copy_example(&self, name: &str, folder: &Path) {
        copy_example(name, &self.url, folder);
    }

    /// The program prints today's menu, and has sent only the session's cookie to the API.
    #[track_caller]
    fn prints_today(&self, program: &mut Command) {
        assert_eq!(run(program), TODAY);
        self.has_received_only_the_session();
    }

    #[track_caller]
    fn has_received_only_the_session(&self) {
        let mut sent = Vec::new();
        wait_until("the log", || {
            let log = fs::read_to_string(self.site.path().join("log/access.log")).unwrap();
            let lines = log.lines().filter_map(|line| line.split_once(' '));
            let to_api = lines.filter(|(path, _)| path.starts_with("/entreaulas/api/comedor.php"));
            sent = to_api.map(|(_, cookies)| cookies.to_owned()).collect();
            !sent.is_empty()
        });
        let is_session =
            |cookies: &String| cookies.starts_with("PHPSESSID=") && !cookies.contains(';');
        assert!(sent.iter().all(is_session), "{sent:?}");
    }
}

/// Writes an example, for the site at `url`, to the folder of its client.
fn copy_example(name: &str, url: &str, folder: &Path) {
    let text = text_of(Path::new("examples").join(name));
    let text = text.replace("https://school.example", url);
    fs::write(folder.join(name), text).unwrap();
}

#[test]
fn python_client_works_and_its_documented_program_repeats_only_busy_requests() {
    let folder = folder("python");
    generate(
        "python",
        &["--additional-properties=packageName=comedor"],
        &folder,
    );
    let python = || {
        let mut python = Command::new(format!("{VENV}/python"));
        python
            .env("PYTHONPATH", folder.join("comedor"))
            .current_dir(&folder);
        python
    };
    let login = LoggedIn::new();
    login.use_client(python().arg(format!("{PROGRAMS}/python.py")));
    login.copy_example("today.py", &folder);
    login.prints_today(python().arg("today.py"));

    // A save that the web server answers with 503 may have been stored.
    let (url, count) = failing_site();
    copy_example("today.py", &url, &folder);
    let failed = python().arg("today.py").output().unwrap();
    let errors = String::from_utf8_lossy(&failed.stderr);
    assert!(errors.contains("(503)"), "{errors}");
    let requests = count.load(Ordering::SeqCst);
    assert_eq!(requests, 2, "repeats a busy request, and no other");
}

#[test]
fn client_of_openapi_python_client_works() {
    let folder = folder("openapi-python-client");
    let command = "openapi-python-client generate --path openapi.yaml --output-path comedor";
    assert!(text_of("docs/api.md").contains(&format!("`{command}`")));
    symlink(OPENAPI, folder.join("openapi.yaml")).unwrap();
    let command = format!("{command} --fail-on-warning");
    run(Command::new("sh")
        .args(["-euc", &command])
        .current_dir(&folder));
    let mut python = Command::new(format!("{VENV}/python"));
    python.env("PYTHONPATH", folder.join("comedor"));
    LoggedIn::new().use_client(python.arg(format!("{PROGRAMS}/openapi_python_client.py")));
}

/// Compiles the programs of this folder, whose client is there.
fn compile_typescript(folder: &Path) {
    symlink(format!("{TOOLS}/node_modules"), folder.join("node_modules")).unwrap();
    fs::write(folder.join("package.json"), r#"{"type": "module"}"#).unwrap();
    copy_program("tsconfig.json", folder);
    run(Command::new("node")
        .arg("node_modules/typescript/bin/tsc")
        .current_dir(folder));
}

#[test]
fn typescript_client_and_its_documented_program_work() {
    let folder = folder("typescript-fetch");
    generate(
        "typescript-fetch",
        &["--additional-properties=importFileExtension=.js"],
        &folder,
    );
    let login = LoggedIn::new();
    copy_program("fetch.ts", &folder);
    login.copy_example("today.ts", &folder);
    compile_typescript(&folder);
    login.use_client(Command::new("node").arg(folder.join("build/fetch.js")));
    login.prints_today(Command::new("node").arg(folder.join("build/today.js")));
}

#[test]
fn client_with_types_of_openapi_typescript_works() {
    let folder = folder("openapi-typescript");
    let generator = format!("{TOOLS}/node_modules/openapi-typescript/bin/cli.js");
    let mut node = Command::new("node");
    run(node
        .args([&generator, OPENAPI, "--output", "openapi.d.ts"])
        .current_dir(&folder));
    copy_program("openapi-typescript.ts", &folder);
    compile_typescript(&folder);
    LoggedIn::new()
        .use_client(Command::new("node").arg(folder.join("build/openapi-typescript.js")));
}

#[test]
fn go_client_and_its_documented_program_work() {
    let folder = folder("go");
    let options = [
        "--additional-properties=packageName=comedor,withGoMod=false,disallowAdditionalPropertiesIfNotPresent=false",
    ];
    generate("go", &options, &folder);
    let login = LoggedIn::new();
    copy_program("client.go", &folder);
    login.copy_example("today.go", &folder);
    fs::write(folder.join("go.mod"), "module example\n\ngo 1.18\n").unwrap();
    let go = |program: &str| {
        let mut go = Command::new("go");
        // Only the standard library: nothing is downloaded.
        go.args(["run", program])
            .env("GOPROXY", "off")
            .current_dir(&folder);
        go
    };
    login.use_client(&mut go("client.go"));
    login.prints_today(&mut go("today.go"));
}

#[test]
fn php_client_and_its_documented_program_work() {
    let folder = folder("php");
    generate("php", &[], &folder);
    // What `composer install` makes of the client's composer.json, with Debian's packages.
    fs::create_dir(folder.join("comedor/vendor")).unwrap();
    copy_program("autoload.php", &folder.join("comedor/vendor"));
    let login = LoggedIn::new();
    let php = |program: &str| {
        let mut php = Command::new("php");
        php.args(["-d", "display_errors=stderr", program])
            .current_dir(&folder);
        php
    };
    login.use_client(&mut php(&format!("{PROGRAMS}/client.php")));
    login.copy_example("today.php", &folder);
    login.prints_today(&mut php("today.php"));
}

/// Java's default library checks the names of fields in each model, unless the option of the document says otherwise.
#[test]
fn java_client_as_documented_rejects_no_unknown_field() {
    let folder = folder("java");
    let option = "--additional-properties=disallowAdditionalPropertiesIfNotPresent=false";
    generate("java", &[option], &folder);
    let models = folder.join("comedor/src/main/java/org/openapitools/client/model");
    let rejecting = |file: &String| {
        let code = fs::read_to_string(models.join(file)).unwrap();
        code.contains("is not defined in the")
    };
    let files = files_below(&models, &["-name", "*.java"]);
    assert!(files.contains(&"Menu.java".to_owned()), "{files:?}");
    assert!(!files.iter().any(rejecting), "{files:?}");
}

#[test]
fn documented_program_of_curl_reads_today_s_menu() {
    let folder = folder("curl");
    let login = LoggedIn::new();
    login.copy_example("today.sh", &folder);
    fs::write(folder.join("password"), "…\n").unwrap();
    let mut program = Command::new("sh");
    program.arg("today.sh").current_dir(&folder);
    let answer: Value = serde_json::from_str(&run(&mut program)).expect("JSON");
    assert_eq!(answer["menu"]["plates"]["primero"]["name"], "Lentejas");
    login.has_received_only_the_session();

    drop(login);
    let without_server = program.output().expect("sh");
    assert!(!without_server.status.success());
    assert_eq!(String::from_utf8_lossy(&without_server.stdout), "");
}

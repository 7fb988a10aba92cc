//! A site: a document root with a PHP frontend, and real web servers for it. They run unprivileged,
//! with the shipped configuration examples; only paths and ports are replaced.

mod client;
mod fastcgi;

use std::env;
use std::fs::{self, File};
use std::os::unix::fs::chown;
use std::os::unix::net::UnixListener;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::{Mutex, OnceLock};
use std::thread::{self, sleep};
use std::time::{Duration, Instant};

use crate::support::fastcgi::{PATIENCE, Process};
use crate::support::*;
#[allow(unused_imports, reason = "a benchmark uses none of these")]
pub use fastcgi::*;
use rustix::process::{Pid, Signal, kill_process, kill_process_group};

const MODULES: &str = "/usr/lib/apache2/modules";
/// The id of Debian's user of web servers, and of its group
const WWW_DATA: u32 = 33;
pub const NOBODY: u32 = 65534;

/// How Apache reaches PHP.
#[derive(Clone, Copy, PartialEq)]
pub enum Php {
    Module,
    Fpm,
    FpmByProxyPassMatch,
}

/// How the program gets its settings.
#[derive(Clone, Copy, PartialEq)]
pub enum Settings {
    File,
    Server,
}

pub fn apache(mpm: &str, php: Php, cgi: &str, settings: Settings) -> Site {
    let mut site = Site::new();
    let example = site.fill("apache.conf.example", settings);
    site.start_apache(mpm, php, cgi, &example);
    site
}

/// Apache with an `.htaccess` file only.
pub fn htaccess(mpm: &str, php: Php, cgi: &str, settings: Settings) -> Site {
    let mut site = Site::new();
    site.start_htaccess(mpm, php, cgi, settings);
    site
}

/// lighttpd with this example of its configuration; with that for FastCGI it starts the program itself.
pub fn lighttpd(example: &str, check_local: &str, settings: Settings) -> Site {
    let mut site = Site::new();
    let example = site.fill(example, settings);
    site.start_lighttpd(check_local, &example);
    site
}

/// A document root with a PHP frontend, the data, the sessions, the program and the running servers.
pub struct Site {
    /// The running program, if it speaks FastCGI
    responder: Mutex<Option<Process>>,
    school: School,
    pub port: u16,
    /// The owner of all files and the user of PHP-FPM: by default the web server's user.
    pub user: u32,
    /// More lines of the pool of PHP-FPM.
    pub fpm_settings: &'static str,
    /// The folder that has the examples of another version.
    pub examples: Option<PathBuf>,
    /// More modules of Apache: by default those that the guide enables.
    pub modules: &'static [&'static str],
    /// Whether servers are process 1 of a PID namespace, which inherits orphaned processes.
    pub is_container: bool,
    processes: Vec<Child>,
    /// Its socket if, as with systemd, it is open while the program is not running
    listener: OnceLock<UnixListener>,
}

impl Site {
    pub fn new() -> Site {
        Site::new_in(&env::temp_dir())
    }

    pub fn new_in(folder: &Path) -> Site {
        let site = Site {
            responder: Mutex::default(),
            school: School::new_in(folder),
            port: free_port(),
            user: WWW_DATA,
            fpm_settings: "",
            examples: None,
            modules: &["actions"],
            is_container: false,
            processes: Vec::new(),
            listener: OnceLock::new(),
        };
        for inner in ["docroot/api", "log", "cgi", "tmp"] {
            fs::create_dir_all(site.path().join(inner)).unwrap();
        }
        for page in ["login.php", "logout.php", "day.php", "api/comedor.php"] {
            let text = text_of(format!(
                "tests/fixtures/site/{}",
                page.trim_start_matches("api/")
            ));
            site.write(&format!("docroot/{page}"), &text);
        }
        program_in(&site.path().join("cgi"), NO_SETTINGS);
        site
    }

    pub fn path(&self) -> &Path {
        self.school.folder()
    }

    pub fn write(&self, name: &str, content: &str) {
        fs::write(self.path().join(name), content).unwrap();
    }

    /// The example with this site's paths. The settings are in `comedor.conf`, or in the example with
    /// its settings uncommented.
    pub fn fill(&self, example: &str, settings: Settings) -> String {
        let folder = self.path().display().to_string();
        let mut example = match &self.examples {
            None => text_of(example),
            Some(folder) => text_of(folder.join(Path::new(example).file_name().unwrap())),
        };
        if settings == Settings::File {
            // Those that a test has written stay.
            if fs::read_to_string(self.path().join("cgi/comedor.conf")).unwrap() == NO_SETTINGS {
                let lines = "COMEDOR_DATA_DIR=FOLDER/data\nCOMEDOR_SESSION_DIR=FOLDER/sessions\n";
                self.write("cgi/comedor.conf", &lines.replace("FOLDER", &folder));
            }
        } else {
            // In a comment that is no setting, a space follows.
            let is_setting = |text: &&str| !text.starts_with(' ') || text.contains("\" => \"");
            let lines = example.lines().map(|line| {
                line.trim_start()
                    .strip_prefix('#')
                    .filter(is_setting)
                    .unwrap_or(line)
            });
            example = lines.flat_map(|line| [line, "\n"]).collect();
        }
        example
            .replace("/usr/lib/cgi-bin", &format!("{folder}/cgi"))
            .replace("/DATA/entreaulas", &format!("{folder}/data"))
            .replace("/run/comedor/", &format!("{folder}/"))
            .replace("/run/lighttpd/", &format!("{folder}/"))
            .replace("/var/log/lighttpd", &format!("{folder}/log"))
            .replace("/var/lib/php/sessions", &format!("{folder}/sessions"))
    }

    /// Apache with these lines in its configuration.
    pub fn start_apache(&mut self, mpm: &str, php: Php, cgi: &str, lines: &str) {
        let (folder, port) = (self.path().display().to_string(), self.port);
        let mpm = format!("mpm_{mpm}");
        let always = [
            "authz_core", "alias", "env", "rewrite", "setenvif", "proxy", "proxy_fcgi",
        ];
        let modules = always.iter().chain(self.modules).copied();
        let modules: String = modules.chain([&*mpm, cgi]).map(module).collect();
        let script_socket = if cgi == "cgid" {
            format!("ScriptSock {folder}/cgisock")
        } else {
            String::new()
        };
        let pages = match php {
            Php::Module => format!(
                "LoadModule php_module {}
                <FilesMatch \"\\.php$\">
                    SetHandler application/x-httpd-php
                </FilesMatch>
                php_value session.save_path {folder}/sessions",
                first_of(MODULES, "libphp").display()
            ),
            Php::Fpm => format!(
                "<FilesMatch \"\\.php$\">
                    SetHandler \"proxy:unix:{folder}/fpm.sock|fcgi://localhost\"
                </FilesMatch>"
            ),
            Php::FpmByProxyPassMatch => {
                let target = format!("unix:{folder}/fpm.sock|fcgi://localhost{folder}/docroot");
                format!("ProxyPassMatch \"^/(.*\\.php(/.*)?)$\" \"{target}\"")
            }
        };
        if php != Php::Module {
            self.start_fpm();
        }
        let configuration = format!(
            "ServerRoot {folder}
            ServerName localhost
            Listen 127.0.0.1:{port}
            PidFile {folder}/apache.pid
            DefaultRuntimeDir {folder}
            ErrorLog {folder}/log/error.log
            {modules}
            {script_socket}
            DocumentRoot {folder}/docroot
            <Directory />
                Require all denied
            </Directory>
            <Directory {folder}/docroot>
                Options FollowSymLinks
                AllowOverride FileInfo AuthConfig Options=ExecCGI
                Require all granted
            </Directory>
            {lines}
            {pages}
            "
        );
        self.write("apache.conf", &configuration);
        self.start(
            "/usr/sbin/apache2",
            &["-DFOREGROUND", "-d", ".", "-f", "apache.conf"],
        );
        self.wait();
    }

    /// Apache with the program as `comedor.cgi` and its settings beside it in the document root, as the example of
    /// `.htaccess` says.
    pub fn start_htaccess(&mut self, mpm: &str, php: Php, cgi: &str, settings: Settings) {
        let example = self.fill("examples/htaccess.example", settings);
        self.write("docroot/api/.htaccess", &example);
        for (from, to) in [("comedor", "comedor.cgi"), ("comedor.conf", "comedor.conf")] {
            let to = self.path().join("docroot/api").join(to);
            fs::rename(self.path().join("cgi").join(from), to).unwrap();
        }
        self.start_apache(mpm, php, cgi, "");
    }

    /// lighttpd, whose PHP asks or does not ask whether there is a file, with these lines in its configuration.
    pub fn start_lighttpd(&mut self, check_local: &str, lines: &str) {
        let (folder, port) = (self.path().display(), self.port);
        let configuration = format!(
            r#"server.bind = "127.0.0.1"
            server.port = {port}
            server.document-root = "{folder}/docroot"
            server.errorlog = "{folder}/log/error.log"
            server.upload-dirs = ( "{folder}/tmp" )
            server.modules = ( "mod_fastcgi" )
            # The program, not the server, must reject these requests.
            server.http-parseopts = ( "url-ctrls-reject" => "disable", "method-get-body" => "enable" )
            fastcgi.server = ( ".php" => ((
                "bin-path" => "/usr/bin/php-cgi -d session.save_path={folder}/sessions",
                "socket" => "{folder}/php.sock", "max-procs" => 1,
                "bin-environment" => ( "PHP_FCGI_CHILDREN" => "4" ), "check-local" => "{check_local}"
            )) )
            {lines}
            "#
        );
        self.write("lighttpd.conf", &configuration);
        self.start("/usr/sbin/lighttpd", &["-D", "-f", "lighttpd.conf"]);
        self.wait();
    }

    /// Starts PHP-FPM as root, as Debian does, and waits until it listens.
    pub fn start_fpm(&mut self) {
        let folder = self.path().display().to_string();
        let (user, more) = (self.user, self.fpm_settings);
        let configuration = format!(
            "[global]\n\
            error_log = {folder}/log/fpm.log\n\
            daemonize = no\n\
            [www]\n\
            listen = {folder}/fpm.sock\n\
            listen.owner = {WWW_DATA}\n\
            listen.group = {WWW_DATA}\n\
            user = {user}\n\
            group = {user}\n\
            pm = static\n\
            pm.max_children = 8\n\
            php_value[session.save_path] = {folder}/sessions\n\
            {more}\n",
        );
        self.write("fpm.conf", &configuration);
        let program = first_of("/usr/sbin", "php-fpm");
        self.start_as(0, program.to_str().unwrap(), &["-y", "fpm.conf"]);
        let log = self.path().join("log/fpm.log");
        wait_until("PHP-FPM", || {
            fs::read_to_string(&log).is_ok_and(|log| log.contains("ready to handle connections"))
        });
    }

    fn start(&mut self, program: &str, arguments: &[&str]) {
        self.start_as(WWW_DATA, program, arguments);
    }

    fn start_as(&mut self, user: u32, program: &str, arguments: &[&str]) {
        self.set_owners();
        let mut command = self.command(user, program, arguments);
        self.processes.push(
            command
                .spawn()
                .expect("setpriv and unshare, of Debian's util-linux"),
        );
    }

    /// Makes www-data or the site's own user the owner of every file.
    fn set_owners(&self) {
        let own: &[&str] = &["cgi", "data", "docroot", "sessions"];
        for (owner, paths) in [(WWW_DATA, &["."][..]), (self.user, own)] {
            let mut chown = Command::new("chown");
            chown
                .current_dir(self.path())
                .args(["-R", &format!("{owner}:{owner}")]);
            output(chown.args(paths), "a run as root");
        }
    }

    /// A server in its own process group.
    fn command(&self, user: u32, program: &str, arguments: &[&str]) -> Command {
        assert!(
            Path::new(program).exists(),
            "{program} is missing; tests/run installs it"
        );
        let name = Path::new(program).file_name().unwrap().display();
        let log = File::create(self.path().join(format!("log/{name}.out"))).unwrap();
        let container: &[&str] = &["unshare", "--pid", "--fork", "--kill-child", "setpriv"];
        let container = if self.is_container && user == WWW_DATA {
            container
        } else {
            &[]
        };
        let (user, group) = (format!("--reuid={user}"), format!("--regid={user}"));
        let mut command = Command::new("setpriv");
        command
            // If a test is killed, its servers end too.
            .arg("--pdeathsig=TERM")
            .args(container)
            .args([&user, &group, "--clear-groups", program])
            .args(arguments)
            .env_clear()
            .env("PATH", "/usr/sbin:/usr/bin:/sbin:/bin")
            .current_dir(self.path())
            .stdin(Stdio::null())
            .stdout(log.try_clone().unwrap())
            .stderr(log)
            .process_group(0);
        command
    }

    pub fn wait(&self) {
        wait_until("the server", || {
            self.curl(&[&self.url("login.php")]).0 == 200
        });
    }

    /// Stops PHP and the web server, which can then be started with another configuration.
    pub fn stop_servers(&mut self) {
        for process in self.processes.iter_mut().rev() {
            let id = Pid::from_child(process);
            _ = kill_process(id, Signal::TERM);
            let started = Instant::now();
            while matches!(process.try_wait(), Ok(None))
                && started.elapsed() < Duration::from_secs(5)
            {
                sleep(Duration::from_millis(5));
            }
            // fcgiwrap does not terminate its child processes.
            _ = kill_process_group(id, Signal::KILL);
            _ = process.wait();
        }
        self.processes.clear();
    }

    /// Writes a session file as the site's PHP does.
    pub fn log_in(&self, id: &str, content: &str) {
        let path = self.school.log_in(id, content);
        chown(path, Some(WWW_DATA), Some(WWW_DATA)).unwrap();
    }

    /// The process started last: the web server or the parent of its container.
    pub fn server_process(&self) -> u32 {
        self.processes.last().expect("a server").id()
    }
}

impl Drop for Site {
    fn drop(&mut self) {
        self.stop_servers();
        if thread::panicking() {
            for log in files_in(&self.path().join("log")) {
                eprintln!(
                    "{}:\n{}",
                    log.display(),
                    fs::read_to_string(&log).unwrap_or_default()
                );
            }
        }
    }
}

pub fn module(name: &str) -> String {
    format!("LoadModule {name}_module {MODULES}/mod_{name}.so\n")
}

pub fn files_in(folder: &Path) -> Vec<PathBuf> {
    fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .collect()
}

/// The file with this start of its name; a version follows, as in that of `php-fpm`.
#[track_caller]
fn first_of(folder: &str, start: &str) -> PathBuf {
    let found = files_below(Path::new(folder), &["-name", &format!("{start}*")]).pop();
    let found = found.unwrap_or_else(|| panic!("no {folder}/{start}*; tests/run installs it"));
    Path::new(folder).join(found)
}

#[track_caller]
pub fn wait_until(what: &str, mut is: impl FnMut() -> bool) {
    let started = Instant::now();
    while !is() {
        assert!(started.elapsed() < PATIENCE, "timeout: {what}");
        sleep(Duration::from_millis(20));
    }
}

//! A site: a document root with a PHP frontend, and real web servers for it. They run unprivileged,
//! with the shipped configuration examples; only paths and ports are replaced.

mod client;
mod fastcgi;

use std::fs::{self, File};
use std::os::unix::fs::chown;
use std::os::unix::net::UnixListener;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::{Mutex, OnceLock, PoisonError};
use std::thread::{self, sleep};
use std::time::{Duration, Instant};

use crate::support::*;
#[allow(unused_imports, reason = "a benchmark uses none of these")]
pub use fastcgi::*;
use rustix::process::{Pid, Signal, kill_process, kill_process_group};
use tempfile::TempDir;

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
    apache_on("apache.conf.example", Site::new(), mpm, php, cgi, settings, "")
}

/// Apache for an existing site, with the example after the lines `more`.
pub fn apache_on(
    example: &str,
    mut site: Site,
    mpm: &str,
    php: Php,
    cgi: &str,
    settings: Settings,
    more: &str,
) -> Site {
    let mut example = site.fill(example, settings);
    if php == Php::FpmByProxyPassMatch {
        example = example.replace("#ProxyPass", "ProxyPass");
    }
    site.write("example.conf", &example);
    let include = format!("{more}Include {}/example.conf\n", site.path().display());
    site.start_apache(mpm, php, cgi, "None", &include);
    site
}

/// Apache as process 1 of a PID namespace, which inherits orphaned processes.
pub fn apache_in_container(mpm: &str, cgi: &str) -> Site {
    let mut site = Site::new();
    site.is_container = true;
    apache_on("apache.conf.example", site, mpm, Php::Fpm, cgi, Settings::File, "")
}

/// Apache with PHP and programs that run as the site's own user. suEXEC only runs programs below
/// `/var/www`.
pub fn apache_with_suexec(mpm: &str, cgi: &str) -> Site {
    let mut site = Site::new_in(Path::new("/var/www"));
    site.user = NOBODY;
    let more = format!("{}SuexecUserGroup #{NOBODY} #{NOBODY}\n", module("suexec"));
    apache_on("apache.conf.example", site, mpm, Php::Fpm, cgi, Settings::File, &more)
}

/// Apache with an `.htaccess` file only: the program as `comedor.cgi` and its settings beside it in
/// the document root, as the example says.
pub fn htaccess(mpm: &str, php: Php, cgi: &str, settings: Settings) -> Site {
    let mut site = Site::new();
    site.write("docroot/api/.htaccess", &site.fill("examples/htaccess.example", settings));
    for (from, to) in [("comedor", "comedor.cgi"), ("comedor.conf", "comedor.conf")] {
        let to = format!("docroot/api/{to}");
        fs::rename(site.path().join("cgi").join(from), site.path().join(to)).unwrap();
    }
    site.has_file_in_docroot = true;
    site.start_apache(mpm, php, cgi, "FileInfo AuthConfig Options=ExecCGI", "");
    site
}

pub fn lighttpd(check_local: &str, settings: Settings) -> Site {
    lighttpd_on("examples/lighttpd.conf.example", Site::new(), check_local, settings, "")
}

/// lighttpd for an existing site, with the example before the lines `more`.
pub fn lighttpd_on(
    example: &str,
    mut site: Site,
    check_local: &str,
    settings: Settings,
    more: &str,
) -> Site {
    site.write("example.conf", &site.fill(example, settings));
    let (folder, port) = (site.path().display(), site.port);
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
        include "{folder}/example.conf"
        {more}
        "#
    );
    site.write("lighttpd.conf", &configuration);
    site.start("lighttpd", "/usr/sbin/lighttpd", &["-D", "-f", "lighttpd.conf"]);
    site.wait();
    site
}

/// A document root with a PHP frontend, the data, the sessions, the program and the running servers.
pub struct Site {
    folder: TempDir,
    pub port: u16,
    /// The owner of all files and the user of PHP-FPM: by default the web server's user.
    user: u32,
    /// More lines of the pool of PHP-FPM.
    pub fpm_settings: &'static str,
    /// More lines for `http` of nginx
    pub upstreams: String,
    is_container: bool,
    processes: Vec<Child>,
    /// The running program, if it speaks FastCGI
    responder: Mutex<Option<Child>>,
    /// Its socket if, as with systemd, it is open while the program is not running
    listener: OnceLock<UnixListener>,
    pub has_file_in_docroot: bool,
}

impl Site {
    pub fn new() -> Site {
        Site::new_in(&std::env::temp_dir())
    }

    fn new_in(folder: &Path) -> Site {
        let folder = tempfile::tempdir_in(folder).unwrap();
        let path = folder.path();
        for inner in
            ["docroot/api", "data/Centros/centro1/Aularios", "sessions", "log", "cgi", "tmp"]
        {
            fs::create_dir_all(path.join(inner)).unwrap();
        }
        for page in ["login.php", "logout.php", "day.php", "api/comedor.php"] {
            let name = page.trim_start_matches("api/");
            let from = format!("{REPOSITORY}/tests/fixtures/site/{name}");
            fs::copy(from, path.join("docroot").join(page)).unwrap();
        }
        program_in(&path.join("cgi"), NO_SETTINGS);
        let aulario = path.join("data/Centros/centro1/Aularios/aula1.json");
        fs::write(aulario, "{\"name\":\"Aula 1\"}").unwrap();
        Site {
            folder,
            port: free_port(),
            user: WWW_DATA,
            fpm_settings: "",
            upstreams: String::new(),
            is_container: false,
            processes: Vec::new(),
            responder: Mutex::default(),
            listener: OnceLock::new(),
            has_file_in_docroot: false,
        }
    }

    pub fn path(&self) -> &Path {
        self.folder.path()
    }

    pub fn write(&self, name: &str, content: &str) {
        fs::write(self.path().join(name), content).unwrap();
    }

    /// The example with this site's paths. The settings are in `comedor.conf`, or in the example with
    /// its settings uncommented.
    pub fn fill(&self, example: &str, settings: Settings) -> String {
        let folder = self.path().display().to_string();
        let file = match settings {
            Settings::File => {
                format!("COMEDOR_DATA_DIR={folder}/data\nCOMEDOR_SESSION_DIR={folder}/sessions\n")
            }
            Settings::Server => NO_SETTINGS.to_owned(),
        };
        self.write("cgi/comedor.conf", &file);
        let example = text_of(example);
        let lines = example.lines().map(|line| {
            let setting = line.trim_start().strip_prefix('#').unwrap_or("").trim_start();
            let starts = [
                "SetEnv", "fastcgi_param", "setenv.", "server.", "\"bin-", "\"COMEDOR_", "\"TZ\"",
                ")",
            ];
            let is_setting = starts.iter().any(|start| setting.starts_with(start));
            if settings == Settings::Server && is_setting { setting } else { line }
        });
        let example: String = lines.flat_map(|line| [line, "\n"]).collect();
        example
            .replace("/usr/lib/cgi-bin", &format!("{folder}/cgi"))
            .replace("/DATA/service", &format!("{folder}/data"))
            .replace("/run/comedor/", &format!("{folder}/"))
            .replace("/run/lighttpd/", &format!("{folder}/"))
            .replace("/var/log/lighttpd", &format!("{folder}/log"))
            .replace("/var/lib/php/sessions", &format!("{folder}/sessions"))
    }

    #[track_caller]
    fn start_apache(
        &mut self,
        mpm: &str,
        php: Php,
        cgi: &str,
        allow_override: &str,
        include: &str,
    ) {
        let (folder, port) = (self.path().display().to_string(), self.port);
        let modules = ["authz_core", "alias", "env", "rewrite", "setenvif", cgi].map(module);
        let script_socket =
            if cgi == "cgid" { format!("ScriptSock {folder}/cgisock") } else { String::new() };
        let php = match php {
            Php::Module => format!(
                "LoadModule php_module {}
                <FilesMatch \"\\.php$\">
                    SetHandler application/x-httpd-php
                </FilesMatch>
                php_admin_value session.save_path {folder}/sessions",
                first_of(MODULES, "libphp").display()
            ),
            Php::Fpm => {
                self.start_fpm("fpm.sock");
                format!(
                    "{}
                    <FilesMatch \"\\.php$\">
                        SetHandler \"proxy:unix:{folder}/fpm.sock|fcgi://localhost\"
                    </FilesMatch>",
                    proxy_modules()
                )
            }
            Php::FpmByProxyPassMatch => {
                let fpm = format!("127.0.0.1:{}", free_port());
                self.start_fpm(&fpm);
                format!(
                    "{}
                    {include}
                    ProxyPassMatch \"^/(.*\\.php(/.*)?)$\" \"fcgi://{fpm}{folder}/docroot/$1\"",
                    proxy_modules()
                )
            }
        };
        let include = if php.contains(include) { "" } else { include };
        let configuration = format!(
            "ServerRoot {folder}
            ServerName localhost
            Listen 127.0.0.1:{port}
            PidFile {folder}/apache.pid
            DefaultRuntimeDir {folder}
            ErrorLog {folder}/log/error.log
            {}{}
            {script_socket}
            DocumentRoot {folder}/docroot
            <Directory />
                Require all denied
            </Directory>
            <Directory {folder}/docroot>
                Options FollowSymLinks
                AllowOverride {allow_override}
                Require all granted
            </Directory>
            {php}
            {include}
            ",
            module(&format!("mpm_{mpm}")),
            modules.concat(),
        );
        self.write("apache.conf", &configuration);
        let configuration = format!("{folder}/apache.conf");
        self.start("apache", "/usr/sbin/apache2", &["-DFOREGROUND", "-f", &configuration]);
        self.wait();
    }

    /// Starts PHP-FPM as root, as Debian does, and waits until it listens.
    #[track_caller]
    pub fn start_fpm(&mut self, listen: &str) {
        let folder = self.path().display().to_string();
        let listen =
            if listen.contains(':') { listen.to_owned() } else { format!("{folder}/{listen}") };
        let configuration = format!(
            "[global]
            error_log = {folder}/log/fpm.log
            daemonize = no
            [www]
            listen = {listen}
            listen.owner = {group}
            listen.group = {group}
            user = {user}
            group = {user}
            pm = static
            pm.max_children = 8
            php_admin_value[session.save_path] = {folder}/sessions
            {more}
            ",
            group = WWW_DATA,
            user = self.user,
            more = self.fpm_settings,
        );
        let lines = configuration.lines().map(|line| format!("{}\n", line.trim_start()));
        self.write("fpm.conf", &lines.collect::<String>());
        let program = first_of("/usr/sbin", "php-fpm");
        let configuration = format!("{folder}/fpm.conf");
        self.start_as(0, "fpm", program.to_str().unwrap(), &["-y", &configuration]);
        let log = self.path().join("log/fpm.log");
        wait_until("PHP-FPM", || {
            fs::read_to_string(&log).is_ok_and(|log| log.contains("ready to handle connections"))
        });
    }

    fn start(&mut self, name: &str, program: &str, arguments: &[&str]) {
        self.start_as(WWW_DATA, name, program, arguments);
    }

    #[track_caller]
    fn start_as(&mut self, user: u32, name: &str, program: &str, arguments: &[&str]) {
        self.set_owners();
        let mut command = self.command(user, name, program, arguments);
        self.processes.push(command.spawn().expect("setpriv and unshare, of Debian's util-linux"));
    }

    /// Makes www-data or the site's own user the owner of every file.
    #[track_caller]
    fn set_owners(&self) {
        let everything = output(Command::new("find").arg(self.path()), "findutils");
        for path in String::from_utf8(everything).unwrap().lines() {
            let own = ["cgi", "data", "docroot", "sessions"].map(|folder| self.path().join(folder));
            let is_own = own.iter().any(|own| Path::new(path).starts_with(own));
            let owner = if is_own { self.user } else { WWW_DATA };
            chown(path, Some(owner), Some(owner)).expect("this test needs to run as root");
        }
        chmod(self.path(), 0o755);
    }

    /// A server in its own process group.
    #[track_caller]
    fn command(&self, user: u32, name: &str, program: &str, arguments: &[&str]) -> Command {
        let log = File::create(self.path().join(format!("log/{name}.out"))).unwrap();
        let container: &[&str] = &["unshare", "--pid", "--fork", "--kill-child", "setpriv"];
        let container = if self.is_container && user == WWW_DATA { container } else { &[] };
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
        assert!(Path::new(program).exists(), "{program} is missing; tests/run installs it");
        command
    }

    #[track_caller]
    pub fn wait(&self) {
        let url = self.url("login.php");
        wait_until("the server", || {
            let status = ["-s", "-o", "/dev/null", "-w", "%{http_code}", &url];
            Command::new("curl").args(status).output().expect("curl").stdout == b"200"
        });
    }

    /// Writes a session file as the site's PHP does.
    pub fn log_in(&self, id: &str, content: &str) {
        let path = self.path().join(format!("sessions/sess_{id}"));
        fs::write(&path, content).unwrap();
        chown(path, Some(WWW_DATA), Some(WWW_DATA)).unwrap();
    }

    /// The process started last: the web server or the parent of its container.
    pub fn server_process(&self) -> u32 {
        self.processes.last().expect("a server").id()
    }
}

impl Drop for Site {
    fn drop(&mut self) {
        let responder = self.responder.get_mut().unwrap_or_else(PoisonError::into_inner);
        for process in self.processes.iter_mut().rev().chain(responder) {
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
        if thread::panicking() {
            for log in files_in(&self.path().join("log")) {
                eprintln!("{}:\n{}", log.display(), fs::read_to_string(&log).unwrap_or_default());
            }
        }
    }
}

pub fn module(name: &str) -> String {
    format!("LoadModule {name}_module {MODULES}/mod_{name}.so\n")
}

fn proxy_modules() -> String {
    ["proxy", "proxy_fcgi"].map(module).concat()
}

pub fn files_in(folder: &Path) -> Vec<PathBuf> {
    fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect()
}

/// The file with this start of its name; a version follows, as in that of `php-fpm`.
#[track_caller]
fn first_of(folder: &str, start: &str) -> PathBuf {
    let starts = |path: &PathBuf| path.file_name().unwrap().to_string_lossy().starts_with(start);
    let found =
        Path::new(folder).exists().then(|| files_in(Path::new(folder)).into_iter().find(starts));
    found.flatten().unwrap_or_else(|| panic!("{folder}/{start}* is missing; tests/run installs it"))
}

#[track_caller]
pub fn wait_until(what: &str, mut is: impl FnMut() -> bool) {
    let started = Instant::now();
    while !is() {
        assert!(started.elapsed() < Duration::from_secs(20), "timeout: {what}");
        sleep(Duration::from_millis(20));
    }
}

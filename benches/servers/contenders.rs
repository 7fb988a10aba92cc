//! The web servers, and the programs that answer the same requests under each of them.

use std::env;
use std::fs::{self, File};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, SystemTime};

use crate::client::{Client, DATE, MENU, READERS, WRITERS, Work};
use crate::support::site::{Php, Settings, Site, files_in};
use crate::support::{ADMIN, REPOSITORY, Value, json, output, session};

/// The one server with every contender.
pub const APACHE_PREFORK: &str = "Apache, prefork and mod_cgi";

pub const FLOOR: &str = "floor, CGI";
pub const FLOOR_MUSL: &str = "floor, CGI, musl";
pub const FLOOR_LATE: &str = "floor, late exit";
pub const FLOOR_FASTCGI: &str = "floor, FastCGI";
/// With kept connections, where the shipped configuration keeps them.
pub const FLOOR_KEPT: &str = "floor, FastCGI, kept";
pub const COMEDOR: &str = "comedor, CGI";
pub const FASTCGI: &str = "comedor, FastCGI";
pub const PHP_CGI: &str = "php-cgi";
pub const PHP_FPM: &str = "PHP-FPM + opcache";
/// With a connection for each request, where the shipped configuration keeps them.
pub const FASTCGI_NEW: &str = "comedor, FastCGI, not kept";
/// Under nginx, with kept connections.
pub const PHP_FPM_KEPT: &str = "PHP-FPM, kept + opcache";
/// The executable that COMEDOR_BASELINE names.
pub const BASELINE: &str = "baseline, FastCGI";
pub const BASELINE_NEW: &str = "baseline, FastCGI, not kept";
pub const BASELINE_CGI: &str = "baseline, CGI";
pub const MOD_PHP: &str = "mod_php + opcache";

/// The page that the program answers.
pub const PAGE: &str = "api/comedor.php";

/// A running server, its contenders with their pages, and those that could not be started with the
/// reason.
pub struct Server {
    pub site: Site,
    pub contenders: Vec<(&'static str, &'static str)>,
    pub missing: Vec<(&'static str, String)>,
}

type Start = fn() -> Server;

/// Each server and the function that starts it, which panics if a part is not installed.
pub const SERVERS: [(&str, Start); 4] = [
    (APACHE_PREFORK, || apache("prefork", Php::Module, "cgi")),
    ("Apache, event and mod_cgid", || {
        apache("event", Php::Fpm, "cgid")
    }),
    ("lighttpd", lighttpd),
    ("nginx", nginx),
];

/// The result of `start`, or the message of its panic.
pub fn attempt<T>(start: impl FnOnce() -> T) -> Result<T, String> {
    catch_unwind(AssertUnwindSafe(start)).map_err(|panic| {
        let text = panic.downcast_ref::<String>().cloned();
        text.or(panic.downcast_ref().map(|text: &&str| text.to_string()))
            .unwrap_or_default()
    })
}

fn apache(mpm: &str, php: Php, cgi: &str) -> Server {
    let (mut site, mut missing) = (site(), Vec::new());
    let folder = site.path().display().to_string();
    let mut more = format!(
        "MaxKeepAliveRequests 0
        <IfModule mpm_prefork_module>
            StartServers 34
            MinSpareServers 2
            MaxSpareServers 34
        </IfModule>
        ScriptAlias /floor {folder}/cgi/floor
        ScriptAlias /floor-late {folder}/cgi/floor
        <Location /floor-late>
            SetEnv EXIT_LATE yes
        </Location>
        <Files floor>
            Require all granted
        </Files>
        "
    );
    let example = fastcgi_example(&site, "examples/apache-fastcgi.conf.example");
    // As the configuration of 1.0.0, which kept connections.
    let baseline = of_baseline(&example).replace(" retry=0>", " enablereuse=on ttl=30 retry=0>");
    more += &(baseline + &example);
    more += &apache_location(&site, "floor-fastcgi", "floor-fastcgi.sock");
    more += &apache_location(&site, "floor-kept", "floor-kept.sock");
    more += "<Proxy \"fcgi://floor-kept\" enablereuse=on ttl=60 retry=0>\n</Proxy>\n";
    more += &apache_location(&site, "fastcgi-new", "comedor.sock");
    more += &apache_location(&site, "new-baseline", "baseline.sock");
    match php_cgi() {
        Ok(program) => {
            more += &format!(
                "ScriptAlias /php-cgi-program {}
                <Directory /usr/bin>
                    <Files php-cgi*>
                        Require all granted
                    </Files>
                </Directory>
                Action php-cgi /php-cgi-program
                <Location /php-cgi>
                    SetHandler php-cgi
                </Location>
                ",
                program.display()
            );
        }
        Err(why) => missing.push((PHP_CGI, why)),
    }
    if php == Php::Module {
        more += "php_admin_value opcache.validate_timestamps 0\n";
        match attempt(|| site.start_fpm()) {
            Ok(()) => more += &apache_location(&site, "php-fpm", "fpm.sock"),
            Err(why) => missing.push((PHP_FPM, why)),
        }
    }
    more += &site.fill("apache.conf.example", Settings::File);
    site.start_apache(mpm, php, cgi, &more);
    site.start_responder();
    let mut contenders = vec![
        (FLOOR, "floor"),
        (FLOOR_LATE, "floor-late"),
        (FLOOR_FASTCGI, "floor-fastcgi"),
        (FLOOR_KEPT, "floor-kept"),
        (COMEDOR, PAGE),
        (FASTCGI, "fastcgi"),
        (FASTCGI_NEW, "fastcgi-new"),
        (PHP_CGI, "php-cgi/comedor.php"),
        (PHP_FPM, "php-fpm/comedor.php"),
    ];
    contenders.extend(start_baseline(&mut site));
    if php == Php::Module {
        contenders.push((MOD_PHP, "mod_php/comedor.php"));
    }
    Server {
        site,
        contenders,
        missing,
    }
}

fn lighttpd() -> Server {
    let (mut site, mut missing) = (site(), Vec::new());
    let folder = site.path().display().to_string();
    if let Err(why) = attempt(|| site.start_fpm()) {
        missing.push((PHP_FPM, why));
    }
    let lines = format!(
        r#"{}
        server.modules += ( "mod_alias" )
        server.max-keep-alive-requests = 65535
        $HTTP["url"] =~ "^/floor$" {{
            alias.url = ( "/floor" => "{folder}/cgi/floor" )
            cgi.assign = ( "" => "" )
        }}
        $HTTP["url"] =~ "^/php-cgi/" {{
            cgi.assign = ( ".php" => "/usr/bin/php-cgi" )
            fastcgi.server = ()
        }}
        $HTTP["url"] =~ "^/php-fpm/" {{
            fastcgi.server = ( ".php" => (( "socket" => "{folder}/fpm.sock" )) )
        }}
        $HTTP["url"] =~ "^/floor-fastcgi" {{
            fastcgi.server = ( "/floor-fastcgi" => ((
                "socket" => "{folder}/floor-fastcgi.sock",
                "check-local" => "disable",
            )) )
        }}
        {}"#,
        site.fill("examples/lighttpd.conf.example", Settings::File),
        fastcgi_example(&site, "examples/lighttpd-fastcgi.conf.example")
    );
    site.start_lighttpd("enable", &lines);
    let contenders = vec![
        (FLOOR, "floor"),
        (FLOOR_FASTCGI, "floor-fastcgi"),
        (COMEDOR, PAGE),
        (FASTCGI, "fastcgi"),
        (PHP_CGI, "php-cgi/comedor.php"),
        (PHP_FPM, "php-fpm/comedor.php"),
    ];
    Server {
        site,
        contenders,
        missing,
    }
}

fn nginx() -> Server {
    let mut site = site();
    // Each kept connection occupies a process.
    site.fpm_settings = "pm.max_children = 40\nphp_admin_value[opcache.validate_timestamps] = 0";
    let folder = site.path().display().to_string();
    let more = format!(
        "keepalive_requests 1000000;
        location ^~ /php-fpm-kept/ {{
            include /etc/nginx/fastcgi_params;
            fastcgi_param SCRIPT_FILENAME $document_root$fastcgi_script_name;
            fastcgi_pass php;
            fastcgi_keep_conn on;
        }}
        location = /floor-fastcgi {{
            include /etc/nginx/fastcgi_params;
            fastcgi_pass unix:{folder}/floor-fastcgi.sock;
        }}
        location = /floor-kept {{
            include /etc/nginx/fastcgi_params;
            fastcgi_pass floor;
            fastcgi_keep_conn on;
        }}
        "
    );
    let upstreams = [
        ("php", "fpm"),
        ("floor", "floor-kept"),
        ("baseline", "baseline"),
    ];
    let upstreams = upstreams.map(|(name, socket)| {
        format!("upstream {name} {{ server unix:{folder}/{socket}.sock; keepalive 16; }}\n")
    });
    let example = site.fill("examples/nginx.conf.example", Settings::File);
    let kept = fastcgi_example(&site, "examples/nginx.conf.example");
    let new = kept
        .replace(
            "fastcgi_pass comedor;",
            &format!("fastcgi_pass unix:{folder}/comedor.sock;"),
        )
        .replace("fastcgi_keep_conn on;", "");
    let baseline =
        of_baseline(&kept) + &of_baseline(&new).replace("~ /baseline", "~ /new-baseline");
    site.start_nginx(&upstreams.concat(), &(example + &baseline + &new + &more));
    site.start_responder();
    let mut contenders = vec![
        (FLOOR_FASTCGI, "floor-fastcgi"),
        (FLOOR_KEPT, "floor-kept"),
        (FASTCGI, PAGE),
        (FASTCGI_NEW, "fastcgi"),
        (PHP_FPM, "php-fpm/comedor.php"),
        (PHP_FPM_KEPT, "php-fpm-kept/comedor.php"),
    ];
    contenders.extend(start_baseline(&mut site));
    Server {
        site,
        contenders,
        missing: Vec::new(),
    }
}

/// The example, for the path `fastcgi` of the site.
fn fastcgi_example(site: &Site, example: &str) -> String {
    let example = site.fill(example, Settings::File);
    example
        .replace("/api/comedor.php", "/fastcgi")
        .replace(r"/api/comedor\.php", "/fastcgi")
}

/// The lines for the path `fastcgi`, for the path `baseline` and the executable of COMEDOR_BASELINE.
fn of_baseline(lines: &str) -> String {
    lines
        .replace("/fastcgi", "/baseline")
        .replace("comedor", "baseline")
}

/// Starts the executable that COMEDOR_BASELINE names, beside the program and with its settings.
fn start_baseline(site: &mut Site) -> Vec<(&'static str, &'static str)> {
    let Some(baseline) = env::var_os("COMEDOR_BASELINE") else {
        return Vec::new();
    };
    fs::copy(baseline, site.path().join("cgi/baseline")).unwrap();
    site.start_with_socket("baseline");
    vec![(BASELINE, "baseline"), (BASELINE_NEW, "new-baseline")]
}

/// Lines for Apache that pass this path of the site to this socket.
fn apache_location(site: &Site, path: &str, socket: &str) -> String {
    let folder = site.path().display();
    format!(
        "<Location /{path}>
            SetHandler \"proxy:unix:{folder}/{socket}|fcgi://{path}\"
        </Location>
        "
    )
}

/// A site with a session for each client, and a copy of the script for each kind of PHP.
fn site() -> Site {
    let mut site = Site::new();
    site.fpm_settings = "php_admin_value[opcache.validate_timestamps] = 0";
    for client in 1..=READERS[2] {
        fs::write(
            site.path().join(format!("sessions/sess_{client}")),
            session(ADMIN),
        )
        .unwrap();
    }
    for aulario in 2..=WRITERS[1] {
        let path = format!("data/Centros/centro1/Aularios/aula{aulario}.json");
        fs::write(site.path().join(path), "{\"name\":\"Aula\"}").unwrap();
    }
    for folder in ["php-cgi", "php-fpm", "php-fpm-kept", "mod_php"] {
        let folder = site.path().join("docroot").join(folder);
        fs::create_dir(&folder).unwrap();
        let script = php_script(&folder);
        // opcache does not cache files younger than two seconds (opcache.file_update_protection).
        let old = SystemTime::now() - Duration::from_secs(3600);
        File::options()
            .append(true)
            .open(&script)
            .unwrap()
            .set_modified(old)
            .unwrap();
        let hits = "<?php $cache = opcache_get_status();
            echo ini_get('opcache.validate_timestamps') ? 'timestamps are checked' :
                $cache['scripts'][__DIR__ . '/comedor.php']['hits'] ?? 0;";
        fs::write(folder.join("hits.php"), hits).unwrap();
    }
    sessions_of_php_cgi(
        &site.path().join("docroot/php-cgi"),
        &site.path().join("sessions"),
    );
    site
}

/// Writes the script to a folder.
pub fn php_script(folder: &Path) -> PathBuf {
    let script = folder.join("comedor.php");
    fs::write(&script, include_str!("../comedor.php")).unwrap();
    script
}

/// Sets the session folder for php-cgi. PHP-FPM and mod_php have it in their configuration.
pub fn sessions_of_php_cgi(folder: &Path, sessions: &Path) {
    let setting = format!("session.save_path = \"{}\"\n", sessions.display());
    fs::write(folder.join(".user.ini"), setting).unwrap();
}

/// The target of Debian's symbolic link.
pub fn php_cgi() -> Result<PathBuf, String> {
    fs::canonicalize("/usr/bin/php-cgi").map_err(|error| format!("/usr/bin/php-cgi: {error}"))
}

/// Compiles the program that only answers with `size` bytes, `floor`, `floor-fastcgi` or `floor-kept`, with `cc`
/// or `musl-gcc`.
pub fn floor(name: &str, compiler: &str, size: usize, to: &Path) -> Result<(), String> {
    attempt(|| {
        let (source, more): (_, &[&str]) = match name {
            "floor" => ("floor", &[]),
            "floor-kept" => ("floor-fastcgi", &["-DKEPT", "-lfcgi"]),
            _ => ("floor-fastcgi", &["-lfcgi"]),
        };
        let source = format!("{REPOSITORY}/benches/{source}.c");
        let mut compiler = Command::new(compiler);
        compiler
            .args(["-O2", "-static", &format!("-DSIZE={size}"), "-o"])
            .arg(to)
            .arg(source);
        compiler.args(more);
        output(&mut compiler, "gcc libc6-dev libfcgi-dev musl-tools");
    })
}

impl Server {
    /// Saves a menu with the program, drops contenders that could not be started, and checks that the
    /// others give the same answer.
    pub fn checked(mut self) -> Server {
        let jar = self.site.path().join("cookies").display().to_string();
        self.site.curl(&["-c", &jar, &self.site.url("login.php")]);
        let sin_gluten = json!({"id": "sin-gluten", "label": "Menú sin gluten"});
        self.site.call("add_menu_type", Some(sin_gluten));
        for (plate, name) in MENU {
            self.site.save(DATE, plate, name);
        }
        let expected = Client::new(&self.site, PAGE, Work::Read, 1).request("");

        for program in ["floor", "floor-fastcgi", "floor-kept"] {
            let is_it = |name: &str| is_floor(name) && floor_program(name) == program;
            let floors: Vec<_> = self
                .contenders
                .iter()
                .filter(|(name, _)| is_it(name))
                .collect();
            let to = self.site.path().join("cgi").join(program);
            match floor(program, "cc", expected.len(), &to) {
                Ok(()) if program == "floor" || floors.is_empty() => (),
                Ok(()) => self.site.start_with_socket(program),
                Err(why) => self
                    .missing
                    .extend(floors.iter().map(|(name, _)| (*name, why.clone()))),
            }
        }
        let answer = |page| Client::new(&self.site, page, Work::Read, 1).request("");
        let is_missing = |name: &str| self.missing.iter().any(|(missing, _)| *missing == name);
        let (mut contenders, mut without_opcache) = (Vec::new(), Vec::new());
        for &(name, page) in self.contenders.iter().filter(|(name, _)| !is_missing(name)) {
            let found = answer(page);
            if is_floor(name) {
                assert_eq!(found.len(), expected.len(), "{name}");
            } else {
                let value = |text| serde_json::from_str::<Value>(text).expect("JSON");
                assert_eq!(value(&found), value(&expected), "{name}");
            }
            if name.ends_with("opcache") {
                answer(page);
                let hits = self
                    .site
                    .curl(&[&self.site.url(&page.replace("comedor", "hits"))]);
                if hits.0 != 200 || hits.1.parse().unwrap_or(0) == 0 {
                    without_opcache.push((name, format!("opcache is off: {hits:?}")));
                    continue;
                }
            }
            contenders.push((name, page));
        }
        self.contenders = contenders;
        self.missing.extend(without_opcache);
        self
    }

    /// Checks that PHP logged nothing: a message per request would make it slower.
    pub fn assert_no_php_messages(&self) {
        for log in files_in(&self.site.path().join("log")) {
            let text = fs::read(&log).unwrap();
            let text = String::from_utf8_lossy(&text);
            let message = text.lines().find(|line| line.contains("PHP "));
            assert_eq!(message, None, "{}", log.display());
        }
    }
}

/// The executable of a floor.
fn floor_program(name: &str) -> &'static str {
    match name {
        FLOOR_FASTCGI => "floor-fastcgi",
        FLOOR_KEPT => "floor-kept",
        _ => "floor",
    }
}

pub fn is_floor(name: &str) -> bool {
    name.starts_with("floor")
}

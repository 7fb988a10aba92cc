use std::path::Path;

use super::code::Code;
use super::directive::all;
use super::php::Handler;
use super::{Fact, Host, Php, Place, Site, Way, apache, application, nginx, php};

const PATH: &str = "/aulas/api/comedor.php";
const CGI: &str = "ScriptAlias /usr/lib/cgi-bin/comedor";
const MODULE: &str = "SetHandler application/x-httpd-php";

fn fact(name: &str, text: &str, file: &str, line: usize, is_admin: bool) -> Fact {
    Fact::of_php(name, text, &Place { file: file.into(), line }, is_admin).unwrap()
}

fn fpm(address: &str) -> Option<Handler> {
    Some(Handler::Fpm(address.to_owned()))
}

/// The last site of a configuration of Apache.
fn of_apache(dump: &str) -> Host<'static> {
    let dump = format!("# In file: /a\n#   1:\nUser web\nDocumentRoot /var/www\n{dump}");
    apache::hosts(Vec::leak(apache::parse(&dump))).pop().unwrap()
}

/// A section of Apache's configuration.
fn section(start: &str, line: &str) -> String {
    let name = start.split(' ').next().unwrap();
    format!("<{start}>\n{line}\n</{name}>\n")
}

fn host(line: &str) -> String {
    section("VirtualHost *:80", line)
}

/// The URL of a site, its address and user, and each path with its folder.
fn shown(Host { site, roots, .. }: &Host) -> String {
    let scheme = if site.is_tls { "https" } else { "http" };
    let Site { name, address, port, user, .. } = site;
    let roots = roots.iter().map(|root| format!(", {}={}", root.path, root.folder.display()));
    format!("{scheme}://{name}:{port} {address} {user}{}", roots.collect::<String>())
}

#[test]
fn sites_of_apache_have_a_name_an_address_and_folders() {
    let tls = section("VirtualHost 192.0.2.1:443 *:80", "SSLEngine On\nAlias /x/ '/srv/x'");
    for (dump, expected) in [
        (
            host("ServerName a.example\nDocumentRoot \"/srv/a b\""),
            "http://a.example:80 127.0.0.1 web, =/srv/a b",
        ),
        (
            "Listen 8080\nListen 443\nServerName https://b.example:8080".to_owned(),
            "http://b.example:8080 127.0.0.1 web, =/var/www",
        ),
        (
            tls + "Alias /y \"/srv/\\\"y\"",
            "https://localhost:443 192.0.2.1 web, /x=/srv/x, /y=/srv/\"y, =/var/www",
        ),
    ] {
        assert_eq!(shown(&of_apache(&dump)), expected);
    }
}

#[test]
fn a_line_of_apache_that_takes_precedence_hides_comedor() {
    let socket = "SetHandler \"proxy:unix:/run/comedor/comedor.sock|fcgi://comedor\"";
    let by_socket = Some(Way::FastCgi("/run/comedor/comedor.sock".into()));
    let php = section("FilesMatch \"\\.php$\"", MODULE);
    let at_path = |line| section(&format!("Location \"{PATH}\""), line);
    let alias = format!("ScriptAlias \"{PATH}\" /usr/lib/cgi-bin/comedor\n");
    let file = Path::new("/var/www/aulas/api/comedor.php");
    for (lines, way) in [
        (alias.clone(), Some(Way::Cgi)),
        (alias.clone() + &php, Some(Way::Cgi)),
        (alias.clone() + &host("Alias /aulas /srv/aulas"), None),
        (alias + &host("Alias /aula /srv/aulas"), Some(Way::Cgi)),
        (at_path(CGI) + &host("Alias /aulas /srv/aulas"), Some(Way::Cgi)),
        (section("Location /api/comedor.php", CGI), None),
        (at_path(socket) + &php, by_socket.clone()),
        (at_path(socket) + &host(&section("Location /aulas", "SetHandler none")), None),
        (host(&at_path(socket)), by_socket),
        ("ScriptAlias /cgi-bin/ /usr/lib/cgi-bin/".to_owned(), None),
    ] {
        assert_eq!((of_apache(&lines).handlers)(PATH, file).comedor, way, "{lines}");
    }
}

#[test]
fn php_of_apache_is_found_with_its_settings() {
    let file = Path::new("/srv/aulas/api/comedor.php");
    let module = |reads_htaccess| Some(Handler::Module { reads_htaccess });
    let php = section("FilesMatch \".+\\.ph(?:ar|p|tml)$\"", MODULE);
    let by_socket = "SetHandler \"proxy:unix:/run/p.sock|fcgi://localhost\"";
    let by_address = section("FilesMatch \\.php$", "SetHandler \"proxy:fcgi://127.0.0.1:9000\"");
    let override_in = |folder, words| section(folder, &format!("AllowOverride {words}"));
    for (lines, handler) in [
        (php.clone(), module(false)),
        (php.clone() + &override_in("Directory /srv", "FileInfo Options"), module(true)),
        (php.clone() + &override_in("Directory /srv/other", "All"), module(false)),
        ("AddHandler application/x-httpd-php .php".to_owned(), module(false)),
        (section("Files \"*.php\"", by_socket), fpm("/run/p.sock")),
        (section("Files ~ \"\\.php$\"", MODULE), module(false)),
        (by_address.clone(), fpm("127.0.0.1:9000")),
        (section("Directory /srv/aulas", &by_address) + &php, module(false)),
        (section("FilesMatch \\.phps$", "SetHandler application/x-httpd-php-source"), None),
    ] {
        assert_eq!((of_apache(&lines).handlers)(PATH, file).php, handler, "{lines}");
    }
    let folder = section("Directory \"/srv\"", " #  8:\n php_admin_value session.save_path \"/s\"");
    let lines = format!("#   7:\n{folder}php_value session.name X\nphp_value memory_limit 1G");
    let expected =
        [fact("session.name", "X", "/a", 8, false), fact("session.save_path", "/s", "/a", 8, true)];
    assert_eq!((of_apache(&lines).handlers)(PATH, file).settings, expected);
    let lines = "# x\nphp_value \"session.name\" 'X Y'\nphp_flag a on";
    let expected = [fact("session.name", "X Y", "/h", 2, false)];
    assert_eq!(apache::htaccess(Path::new("/h"), lines), expected);
}

#[test]
fn expressions_that_may_match_the_path_are_noticed() {
    for (line, is_noticed) in [
        ("ProxyPassMatch ^/(.*\\.php(/.*)?)$ fcgi://127.0.0.1:9000/srv", true),
        ("<LocationMatch \"^/x/api/comedor\">\n</LocationMatch>", true),
        ("<Location ~ \"^/x/api/comedor\">\n</Location>", true),
        ("<Directory /srv>\nRewriteRule .*/comedor - [F]\n</Directory>", true),
        ("RewriteRule ^(.*)$ https://a.example$1 [R]", false),
        ("ScriptAlias /comedor /usr/lib/cgi-bin/comedor", false),
    ] {
        let config = apache::parse(line);
        assert_eq!(all(&config).iter().any(|line| line.may_match()), is_noticed, "{line}");
    }
}

const NGINX: &str = r#"# configuration file /etc/nginx/nginx.conf:
user web; # a comment }
http { upstream php { server unix:/run/p.sock; }
    include sites-*/o*; include /etc/nginx/none.conf; }
# configuration file /etc/nginx/sites-enabled/one:
server { listen [::]:80; listen 192.0.2.1:8443 ssl; server_name _ a.example;
    root "/srv/a";
    location /x/ { alias /srv/x; }
    location ~ "\.php$" {
        include snippets/php.conf;
    }
    include snippets/comedor.conf;
}
# configuration file /etc/nginx/snippets/php.conf:
fastcgi_pass php; fastcgi_param PHP_ADMIN_VALUE "session.save_path=/srv/s
session.name=X";
# configuration file /etc/nginx/snippets/comedor.conf:
location ^~ /aulas/api/comedor.php { fastcgi_pass unix:/run/comedor/comedor.sock; }
"#;

#[test]
fn nginx_is_understood_with_the_files_that_it_includes() {
    let config = nginx::parse(NGINX);
    let [host] = &nginx::hosts(&config)[..] else { panic!() };
    let expected = "https://a.example:8443 192.0.2.1 web, /x=/srv/x, =/srv/a";
    assert_eq!(shown(host), expected);
    let way = Way::FastCgi("/run/comedor/comedor.sock".into());
    let file = Path::new("/srv/a/aulas/api/comedor.php");
    assert_eq!((host.handlers)("/api/comedor.php", file).comedor, None);
    let handlers = (host.handlers)(PATH, file);
    assert_eq!(handlers.comedor, Some(way));
    assert_eq!(handlers.php, fpm("/run/p.sock"));
    let [enabled] = &host.enabled[..] else { panic!() };
    let place = Place { file: "/etc/nginx/snippets/comedor.conf".into(), line: 1 };
    assert_eq!((enabled.path.as_str(), &enabled.place), (PATH, &place));
    let snippet = "/etc/nginx/snippets/php.conf";
    let settings = [
        fact("session.save_path", "/srv/s", snippet, 2, true),
        fact("session.name", "X", snippet, 2, true),
    ];
    assert_eq!(handlers.settings, settings);
}

#[test]
fn the_php_of_nginx_is_that_of_the_location_that_nginx_chooses() {
    let php = |location: &str| {
        let config = nginx::parse(&NGINX.replace("location ~ \"\\.php$\"", location));
        (nginx::hosts(&config)[0].handlers)(PATH, Path::new("/")).php
    };
    let (p, q) = (|| fpm("/run/p.sock"), || fpm("q"));
    for (locations, address) in [
        ("location ~*\\.php$", p()),
        ("location =/aulas/api/comedor.php { fastcgi_pass unix:q:; } location ~ php", q()),
        ("location ^~/aulas { fastcgi_pass q; } location ~ php", q()),
        ("location /aulas { location /aulas/api { deny all; } } location ~ php", p()),
        ("location ^~ /aulas { location /aulas/api { fastcgi_pass q; } } location ~ php", q()),
        // If several expressions can be that of the path, it is unknown.
        ("location ~ ^/uploads/.*\\.php$ { deny all; } location ~ php", p()),
        ("location ~ ^/a/.*\\.php$ { fastcgi_pass php; } location ~ php", p()),
        ("location ~ ^/b/.*\\.php$ { fastcgi_pass q; } location ~ php", None),
    ] {
        assert_eq!(php(locations), address, "{locations}");
    }
}

#[test]
fn pools_and_ini_files_are_parsed_like_php() {
    let file = Path::new("/p");
    let text = "[global]\nuser = no\n[a]\n;user = x\nuser = maestra\nlisten = /run/$pool.sock ; c\n\
                php_admin_value[session.save_path] = \"/srv;s\"\nphp_value[date.timezone]=UTC";
    let Php { user, group, listen, facts, .. } = &php::parse_pools(file, text)[0];
    assert_eq!([user, group, listen], ["maestra", "maestra", "/run/a.sock"]);
    let expected = [
        fact("session.save_path", "/srv;s", "/p", 7, true),
        fact("date.timezone", "UTC", "/p", 8, false),
    ];
    assert_eq!(facts[..], expected);
    let layers = php::facts(file, "session.name = A\n;session.name = B\nsession.name='C' ; D\n");
    assert_eq!(php::in_force(&layers, "session.name").unwrap().text, "C");
    let admin = [&facts[..], &[fact("session.save_path", "/later", "/p", 9, false)]].concat();
    assert_eq!(php::in_force(&admin, "session.save_path").unwrap().text, "/srv;s");
}

#[test]
fn code_is_read_without_comments_and_evaluated_only_if_certain() {
    for (code, expected) in [
        ("session_name('A'); // session_name('B')", "session.name=A"),
        ("/* session_name('B')\n*/ # it's\nsession_name ( \"A\" ) ;", "session.name=A"),
        ("?>don't session_name('A') <?= session_name('B') ?>", "session.name=B"),
        ("INI_SET('session.gc_maxlifetime', 60); ini_set('x', '1G');", "session.gc_maxlifetime=60"),
        ("const Q = '/srv' ?>.<?php session_save_path(Q);", "session.save_path=/srv"),
        ("const P = '/srv'; session_save_path(P . '/s');", "session.save_path=/srv/s"),
        ("define('P', __DIR__); session_save_path(P . '/s');", "session.save_path=/app/api/s"),
        ("$p = '/a'; $p = '/b'; $p = '/c'; session_save_path($p);", "unclear=session.save_path"),
        ("session_name($_GET['x']); session_name();", "unclear=session.name"),
        ("$p = '/a'; if ($p == '/b') session_save_path($p);", "session.save_path=/a"),
        ("$p = '/a'; $p .= '/b'; session_save_path($p);", "unclear=session.save_path"),
        ("ini_set('session.gc_maxlifetime', 2 * 60 * 60);", "session.gc_maxlifetime=7200"),
        ("ini_set('session.gc_maxlifetime', 60 * $x);", "unclear=session.gc_maxlifetime"),
        ("ini_set('session.gc_maxlifetime', 60 + 1);", "unclear=session.gc_maxlifetime"),
        ("ini_set('session.' . 'name', 'A');", "unclear=session.name"),
        ("$d = '1'; session_name($d ? 'A' : 'B');", "unclear=session.name"),
        ("case 1: session_name('A');", "session.name=A"),
        ("A::session_name('x'); $a?->session_name('x');", ""),
        ("$a->session_name('x'); function session_name() {}", ""),
        (
            "session_start(['save_path' => f([1], 2), 'name' => 'A']) && f(['name' => 'B']);",
            "unclear=session.save_path, session.name=A",
        ),
        ("date_default_timezone_set('Europe/Madrid')", "date.timezone=Europe/Madrid"),
        ("session_set_save_handler($handler);", "unclear=session.save_handler"),
        ("in('a:docente'); $f = \"/DATA/a/Centros/$c/x\";", "service=a, data folder=/DATA/a"),
        ("$d = __DIR__ . '/../data/Centros/' . $c;", "data folder=/app/data"),
        ("$d = $base . '/Centros/'; in(\"$x:docente\")", "unclear=data folder, unclear=service"),
        ("new PDO('sqlite:x'); new \\SQLite3('y');", "database=PDO, database=SQLite3"),
        ("session_name('It\\'s \\d\\\\')", "session.name=It's \\d\\"),
        ("echo <<<X\n don't\n  X . 'a'; session_name('A');", "session.name=A"),
        ("$a = <<<'X'\n session_name('B')\nXY\nX; session_name('A');", "session.name=A"),
        ("'unfinished", ""),
        ("<<<X", ""),
    ] {
        let text = format!("<?php {code}");
        let code = Code::parse(Path::new("/app/api/comedor.php"), &text);
        let facts = [code.settings(), code.of_script()].concat();
        let facts = facts.iter().map(|Fact { about, value, .. }| format!("{about}={}", value.text));
        assert_eq!(facts.collect::<Vec<_>>().join(", "), expected, "{text}");
    }
}

#[test]
fn code_that_was_made_to_keep_a_reader_busy_is_read_at_once() {
    let doubling = "$a = 'xxxxxxxxxxxxxxxx';".to_owned()
        + &"$a = $a . $a;".repeat(100)
        + &"$b = $a . $a;".repeat(9);
    for text in [
        "<?php ".to_owned() + &doubling,
        "<?php ".to_owned() + &"//\n".repeat(300_000),
        "<?php ".to_owned() + &"('".repeat(300_000),
        "<?php ".to_owned() + &"session_start([".repeat(10_000),
        "<?php ".to_owned() + &"include 'a'.".repeat(10_000),
        "<?php ".to_owned() + &"<<<X\n".repeat(200_000),
    ] {
        let start = std::time::Instant::now();
        let code = Code::parse(Path::new("/x"), &text);
        _ = (code.settings(), code.of_script(), code.included());
        assert!(start.elapsed().as_secs() < 5, "{}", &text[..40]);
    }
}

#[test]
fn a_zone_that_names_another_file_is_ignored() {
    let is_known = |zone| Fact::of_php("date.timezone", zone, &Place::default(), false).is_some();
    for zone in ["", "UTC", "Europe/Madrid", "America/Argentina/Ushuaia"] {
        assert!(is_known(zone), "{zone}");
    }
    for zone in ["/dev/zero", "..", "../../../tmp/fifo", "Europe/../../x"] {
        assert!(!is_known(zone), "{zone}");
    }
}

#[test]
fn the_number_of_scripts_is_limited() {
    let root = tempfile::tempdir().unwrap();
    for number in 0..20 {
        assert_eq!(application::scripts(root.path()).len(), number.min(11));
        let api = root.path().join(format!("{number}/api"));
        std::fs::create_dir_all(&api).unwrap();
        std::fs::write(api.join("comedor.php"), "").unwrap();
    }
}

#[test]
fn a_large_file_is_no_code() {
    let root = tempfile::tempdir().unwrap();
    let script = root.path().join("api/comedor.php");
    std::fs::create_dir(root.path().join("api")).unwrap();
    for (size, count) in [(1024 * 1024, 1), (1024 * 1024 + 1, 0)] {
        let mut text = b"<?php session_name('A');".to_vec();
        text.resize(size, b' ');
        std::fs::write(&script, text).unwrap();
        assert_eq!(application::facts(&script, root.path(), None).len(), count);
    }
}

#[test]
fn a_file_of_a_folder_counts_for_the_php_that_reads_it_there() {
    let root = tempfile::tempdir().unwrap();
    std::fs::create_dir(root.path().join("other")).unwrap();
    let write = |file, text| std::fs::write(root.path().join(file), text).unwrap();
    write(".htaccess", "php_value session.name H");
    write(".user.ini", "session.name = U");
    write("other/.htaccess", "php_value session.name X");
    write("other/.user.ini", "session.name = X");
    for (handler, expected) in [
        (Handler::Module { reads_htaccess: true }, &["H"][..]),
        (Handler::Module { reads_htaccess: false }, &[]),
        (Handler::Fpm(String::new()), &["U"]),
    ] {
        let script = root.path().join("api/comedor.php");
        let facts = application::facts(&script, root.path(), handler.folder_file());
        let names: Vec<_> = facts.iter().map(|fact| &*fact.value.text).collect();
        assert_eq!(names, expected);
    }
}

//! nginx-routing.conf.example as the balancer of two servers, `norte` and `sur`, which share nothing.

use std::fs;
use std::io::{BufRead, BufReader};
use std::net::{TcpListener, TcpStream};
use std::process::Command;
use std::thread;
use std::time::Duration;

use crate::support::site::{Site, nginx_with_fastcgi, wait_until};
use crate::support::{Value, free_port, json, output, text_of};

const DATE: &str = "2026-03-04";
const EXAMPLE: &str = "examples/nginx-routing.conf.example";

/// nginx with the example. `server_a` and `server_b` are these addresses.
fn balancer(server_a: &str, server_b: &str) -> Site {
    balancer_with(Site::new(), text_of(EXAMPLE), server_a, server_b)
}

fn balancer_with(mut site: Site, mut example: String, server_a: &str, server_b: &str) -> Site {
    for (shipped, here) in [
        ("listen 80 ", format!("listen 127.0.0.1:{} ", site.port)),
        ("10.0.0.11:80;", format!("{server_a};")),
        ("10.0.0.12:80;", format!("{server_b};")),
    ] {
        assert!(example.contains(shipped), "{shipped}");
        example = example.replace(shipped, &here);
    }
    site.start_nginx_only(&format!(
        "proxy_intercept_errors on; error_page 403 413 /x;\n{example}"
    ));
    wait_until("the balancer", || {
        TcpStream::connect(("127.0.0.1", site.port)).is_ok()
    });
    site
}

/// A browser at a host name of the balancer.
struct Browser<'b> {
    balancer: &'b Site,
    host: &'static str,
}

impl Browser<'_> {
    fn origin(&self) -> String {
        format!("http://{}:{}", self.host, self.balancer.port)
    }

    /// The status and body of a request with these arguments of curl.
    #[track_caller]
    fn curl(&self, arguments: &[&str], page: &str) -> (u16, String) {
        self.balancer
            .curl(&[arguments, &[&format!("{}/{page}", self.origin())]].concat())
    }

    /// The cookies of both host names are in one file.
    #[track_caller]
    fn log_in(&self) {
        let jar = self.balancer.path().join("cookies");
        let login = self.curl(&["-c", jar.to_str().unwrap()], "login.php");
        assert_eq!(login, (200, "in".to_owned()));
    }

    fn get_menu(&self) -> (u16, String) {
        let page = format!("api/comedor.php?action=get_menu&aulario=aula1&date={DATE}&menu=basal");
        self.curl(&[], &page)
    }

    /// The name of the first plate.
    #[track_caller]
    fn plate(&self) -> String {
        let (status, answer) = self.get_menu();
        assert_eq!(status, 200, "{answer}");
        let answer: Value = serde_json::from_str(&answer).expect("JSON");
        answer["menu"]["plates"]["primero"]["name"]
            .as_str()
            .unwrap()
            .to_owned()
    }

    /// Saves the host name as that of the first plate, as a page of the school `page` does.
    #[track_caller]
    fn save(&self, page: &Browser) -> (u16, String) {
        let plates = json!({"primero": {"name": self.host}});
        let body = json!({"date": DATE, "menu_type": "basal", "plates": plates}).to_string();
        let origin = format!("Origin: {}", page.origin());
        let arguments = [
            "-H", "Content-Type: application/json", "-H", &origin, "-d", &body,
        ];
        self.curl(&arguments, "api/comedor.php?action=save_menu&aulario=aula1")
    }
}

/// Two servers and their balancer.
fn schools() -> (Site, Site, Site) {
    let (server_a, server_b) = (nginx_with_fastcgi(), nginx_with_fastcgi());
    let address = |site: &Site| format!("127.0.0.1:{}", site.port);
    let balancer = balancer(&address(&server_a), &address(&server_b));
    (server_a, server_b, balancer)
}

/// A browser at each school, not logged in.
fn browsers(balancer: &Site) -> [Browser<'_>; 2] {
    ["norte.school.example", "sur.school.example"].map(|host| Browser { balancer, host })
}

const TYPES: &str = "api/comedor.php?action=get_menu_types&aulario=aula1";

#[track_caller]
fn assert_answer((status, answer): (u16, String), expected: u16, code: &str) {
    assert!(
        status == expected && answer.contains(code),
        "{status} {answer}"
    );
}

#[test]
fn each_school_is_read_and_written_on_its_own_server() {
    let (server_a, server_b, balancer) = schools();
    let [norte, sur] = browsers(&balancer);
    norte.log_in();
    sur.log_in();
    for (school, server) in [(&norte, &server_a), (&sur, &server_b)] {
        assert_answer(school.save(school), 200, "true");
        assert_eq!(server.plates("aula1", DATE)["primero"]["name"], school.host);
    }
    assert_eq!(
        (norte.plate(), sur.plate()),
        (norte.host.to_owned(), sur.host.to_owned())
    );
    // A page of another site cannot save: the program sees the host name that the browser sees.
    assert_answer(norte.save(&sur), 403, "FORBIDDEN");
    // A body over 1 MiB is refused by the program, with JSON.
    let big = balancer.path().join("tmp/big");
    fs::write(&big, " ".repeat(1024 * 1024 + 1)).unwrap();
    let body = format!("@{}", big.display());
    let page = "api/comedor.php?action=save_menu&aulario=aula1";
    assert_answer(
        norte.curl(&["--data-binary", &body], page),
        413,
        "TOO_LARGE",
    );
}

#[test]
fn a_login_at_one_school_is_not_valid_at_another_and_an_unknown_host_name_is_refused() {
    let (_server_a, _server_b, balancer) = schools();
    let [norte, sur] = browsers(&balancer);
    norte.log_in();
    let jar = fs::read_to_string(balancer.path().join("cookies")).unwrap();
    let cookie = format!(
        "Cookie: PHPSESSID={}",
        jar.split_whitespace().last().unwrap()
    );
    assert_answer(norte.curl(&[], TYPES), 200, "true");
    assert_answer(sur.curl(&["-H", &cookie], TYPES), 400, "INVALID_SESSION");
    for host in ["este.school.example", "school.example", "127.0.0.1"] {
        let unknown = Browser {
            balancer: &balancer,
            host,
        };
        assert_answer(unknown.curl(&["-H", &cookie], TYPES), 421, "Misdirected");
    }
    // The name in the request line must not hide the one in Host, which a page may use in links.
    let line = format!("{}/{TYPES}", norte.origin());
    let claims = [
        "--request-target", &line, "-H", "Host: evil.example", "-H", &cookie,
    ];
    assert_answer(norte.curl(&claims, TYPES), 421, "Misdirected");
}

/// The example with https at this port and with these certificates, as its comments say.
fn with_https(port: u16, folder: &str) -> String {
    let only_http = "\n    listen 80 default_server;\n";
    let example = text_of(EXAMPLE);
    assert_eq!(example.matches(only_http).count(), 1);
    let enabled = [
        "#server {", "#    ", "#}", "    #listen 443 ", "    #ssl_certificate",
    ];
    let example = example.replace(only_http, "\n");
    let lines = example.lines().map(|line| {
        let is_enabled = enabled.iter().any(|start| line.starts_with(start));
        line.replacen('#', "", usize::from(is_enabled)) + "\n"
    });
    lines
        .collect::<String>()
        .replace("listen 443 ", &format!("listen 127.0.0.1:{port} "))
        .replace(
            "/etc/ssl/certs/schools.pem",
            &format!("{folder}/schools.pem"),
        )
        .replace(
            "/etc/ssl/private/schools.key",
            &format!("{folder}/schools.key"),
        )
}

#[test]
fn with_https_a_request_by_http_is_redirected_and_only_https_reaches_a_server() {
    let server = nginx_with_fastcgi();
    let (site, port) = (Site::new(), free_port());
    let folder = site.path().display().to_string();
    let mut openssl = Command::new("openssl");
    openssl.current_dir(site.path()).args([
        "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-subj", "/CN=school.example", "-keyout",
        "schools.key", "-out", "schools.pem",
    ]);
    output(&mut openssl, "openssl");
    let address = format!("127.0.0.1:{}", server.port);
    let balancer = balancer_with(site, with_https(port, &folder), &address, "127.0.0.1:1");
    let browser = |host| Browser {
        balancer: &balancer,
        host,
    };
    let norte = browser("norte.school.example");
    let location = format!("Location: https://norte.school.example/{TYPES}\r\n");
    assert_answer(norte.curl(&["-i"], TYPES), 301, &location);
    let unknown = browser("este.school.example");
    assert_answer(unknown.curl(&[], TYPES), 421, "Misdirected");
    let connect = format!("::127.0.0.1:{port}");
    for (host, status, text) in [
        (norte.host, 400, "INVALID_SESSION"),
        (unknown.host, 421, "Misdirected"),
    ] {
        let url = format!("https://{host}/{TYPES}");
        assert_answer(
            balancer.curl(&["--connect-to", &connect, &url]),
            status,
            text,
        );
    }
}

#[test]
fn a_stopped_server_does_not_affect_the_school_of_another_server() {
    let (_server_a, server_b, balancer) = schools();
    let [norte, sur] = browsers(&balancer);
    norte.log_in();
    sur.log_in();
    assert_answer(norte.save(&norte), 200, "true");
    assert_eq!(sur.get_menu().0, 200);
    thread::scope(|scope| {
        let stopped = scope.spawn(|| {
            drop(server_b);
            for _ in 0..20 {
                assert_eq!(sur.get_menu().0, 502);
            }
        });
        while !stopped.is_finished() {
            assert_eq!(norte.plate(), norte.host);
            assert_answer(norte.save(&norte), 200, "true");
        }
    });
}

/// A server that is switched off does not answer, not even with a refusal: its queue of connections
/// is full.
#[test]
fn a_school_whose_server_does_not_answer_gets_504_after_the_timeout_of_a_connection() {
    let server = TcpListener::bind("127.0.0.1:0").unwrap();
    rustix::net::listen(&server, 0).unwrap();
    let address = server.local_addr().unwrap();
    let mut queue = Vec::new();
    while let Ok(stream) = TcpStream::connect_timeout(&address, Duration::from_millis(300)) {
        queue.push(stream);
    }
    let balancer = balancer(&address.to_string(), "127.0.0.1:1");
    let [norte, _] = browsers(&balancer);
    assert_eq!(norte.get_menu().0, 504);
    assert!(text_of(EXAMPLE).contains(" proxy_connect_timeout 2s;"));
    let log = fs::read_to_string(balancer.path().join("log/error.log")).unwrap();
    assert!(
        log.contains("timed out) while connecting to upstream"),
        "{log}"
    );
}

/// The request line and the header fields of the next request. The connection is closed without an
/// answer.
fn head_of_request(server: &TcpListener) -> Vec<String> {
    let (stream, _) = server.accept().unwrap();
    let lines = BufReader::new(&stream).lines().map(Result::unwrap);
    lines.take_while(|line| !line.is_empty()).collect()
}

#[test]
fn a_server_gets_the_real_address_of_the_browser_and_the_host_name_that_it_sent() {
    let server = TcpListener::bind("127.0.0.1:0").unwrap();
    let balancer = balancer(&server.local_addr().unwrap().to_string(), "127.0.0.1:1");
    let [norte, _] = browsers(&balancer);
    let head = thread::spawn(move || head_of_request(&server));
    let claims = [
        "-H", "X-Forwarded-For: 192.0.2.1", "-H", "X-Forwarded-Host: evil.example",
    ];
    let claims = [&claims, ["-H", "X-Forwarded-Proto: https"].as_slice()].concat();
    assert_eq!(norte.curl(&claims, TYPES).0, 502);
    let head = head.join().unwrap();
    let host = format!("{}:{}", norte.host, balancer.port);
    for (name, value) in [
        ("Host", host.as_str()),
        ("X-Forwarded-For", "127.0.0.1"),
        ("X-Forwarded-Host", &host),
        ("X-Forwarded-Proto", "http"),
    ] {
        let prefix = format!("{name}: ");
        let found: Vec<&str> = head
            .iter()
            .filter_map(|line| line.strip_prefix(&prefix))
            .collect();
        assert_eq!(found, [value], "{name}");
    }
}

/// Both addresses of this upstream are one server, which closes the connection after a request.
#[test]
fn a_request_is_not_sent_to_a_second_address() {
    let server = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = server.local_addr().unwrap().to_string();
    let balancer = balancer(&format!("{address}; server {address}"), "127.0.0.1:1");
    let [norte, _] = browsers(&balancer);
    let requests = thread::spawn(move || {
        let heads = std::iter::repeat_with(|| head_of_request(&server));
        let requests = heads.map_while(|head| head.into_iter().next());
        requests
            .map(|line| line[..4].to_owned())
            .collect::<Vec<_>>()
    });
    assert_eq!(norte.save(&norte).0, 502);
    assert_eq!(norte.get_menu().0, 502);
    // The end of the list: a connection without a request.
    TcpStream::connect(&address).unwrap();
    assert_eq!(requests.join().unwrap(), ["POST", "GET "]);
}

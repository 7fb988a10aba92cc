//! The cost of a request in instructions, system calls, page faults and memory, and how it grows with
//! the data of a school. The budgets are those of the executable that is released: run the tests with
//! `COMEDOR_PROGRAM=$(cgi-bin/build)`. They have a tenth of room.

use std::fs;
use std::path::Path;

use rustix::process::{Pid, WaitId, WaitIdOptions, waitid};

use crate::support::fastcgi::{Client, Held, parameters};
use crate::support::redis::Redis;
use crate::support::site::wait_until;
use crate::support::*;

/// Adds the variables that a web server sets for a browser's request.
fn from_browser(request: Cgi) -> Cgi {
    request
        .set("HTTP_ACCEPT", "application/json, text/plain, */*")
        .set("HTTP_ACCEPT_ENCODING", "gzip, deflate, br, zstd")
        .set(
            "HTTP_ACCEPT_LANGUAGE", "es-ES,es;q=0.8,en-US;q=0.5,en;q=0.3",
        )
        .set("HTTP_CONNECTION", "keep-alive")
        .set("HTTP_SEC_FETCH_SITE", "same-origin")
        .set(
            "HTTP_USER_AGENT",
            "Mozilla/5.0 (X11; Linux x86_64; rv:140.0) Gecko/20100101 Firefox/140.0",
        )
        .set(
            "PATH",
            "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
        )
        .set("REMOTE_ADDR", "127.0.0.1")
        .set("REMOTE_PORT", "40000")
        .set("REQUEST_SCHEME", "http")
        .set("REQUEST_URI", "/api/comedor.php?action=get_menu")
        .set("SCRIPT_FILENAME", "/usr/lib/cgi-bin/comedor")
        .set("SERVER_ADDR", "127.0.0.1")
        .set("SERVER_ADMIN", "admin@school.example")
        .set("SERVER_PORT", "80")
        .set("SERVER_SIGNATURE", "")
        .set("SERVER_SOFTWARE", "lighttpd/1.4.69")
}

fn get_menu(school: &School) -> Cgi {
    from_browser(
        school
            .get("get_menu")
            .query("date", DATE)
            .query("menu", "basal"),
    )
}

fn save_menu(school: &School) -> Cgi {
    let plates = json!({
        "primero": {"name": "Lentejas con verduras"}, "segundo": {"name": "Merluza al horno"},
        "postre": {"name": "Fruta de temporada"},
    });
    let body = json!({"date": DATE, "menu_type": "basal", "plates": plates});
    from_browser(school.post("save_menu").json(&body))
}

/// A school with four menu types and a saved menu.
fn school_with_a_menu() -> School {
    let school = School::new();
    school
        .post("add_menu_type")
        .json(&json!({"id": "x", "label": "X"}))
        .run()
        .ok();
    save_menu(&school).run().ok();
    school
}

fn redis_with_a_teacher() -> Redis {
    let redis = Redis::new();
    redis.command(&["SET", "PHPREDIS_SESSION:teacher", &session(TEACHER)]);
    redis
}

fn instructions(request: &Cgi) -> u64 {
    let file = tempfile::NamedTempFile::new().unwrap();
    let out = format!("--callgrind-out-file={}", file.path().display());
    request
        .clone()
        .under(&["valgrind", "-q", "--tool=callgrind", &out])
        .run()
        .ok();
    total(file.path())
}

/// The instructions in a file of callgrind.
fn total(file: &Path) -> u64 {
    let text = fs::read_to_string(file).unwrap();
    let total = text
        .lines()
        .find_map(|line| line.strip_prefix("totals: "))
        .expect("a total");
    total.trim().parse().unwrap()
}

#[test]
fn instructions_and_system_calls_stay_within_budget() {
    let school = school_with_a_menu();
    let redis = redis_with_a_teacher();
    let by_redis = get_menu(&school).set("COMEDOR_SESSION_DIR", redis.socket(""));
    for (name, request, most_instructions, most_calls) in [
        ("get_menu", get_menu(&school), 105_000, 35),
        ("get_menu, session in Redis", by_redis, 118_000, 35),
        (
            "get_menu_types",
            from_browser(school.get("get_menu_types")),
            76_000,
            31,
        ),
        ("save_menu", save_menu(&school), 167_000, 89),
    ] {
        let (instructions, calls) = cost(&request);
        println!("{name}: {instructions} instructions, {calls} system calls");
        assert!(instructions <= most_instructions, "{name}: {instructions}");
        assert!(calls <= most_calls, "{name}: {calls}");
    }
}

/// Page faults without a read from disk, from the start of the process to its end (proc_pid_stat(5)).
fn page_faults(request: &Cgi) -> u64 {
    let child = request.start();
    let pid = Pid::from_raw(child.id() as i32).unwrap();
    // It stays a zombie, whose counts can be read.
    waitid(
        WaitId::Pid(pid),
        WaitIdOptions::EXITED | WaitIdOptions::NOWAIT,
    )
    .unwrap();
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap();
    Answer::of(child).ok();
    let (_, fields) = stat.rsplit_once(") ").unwrap();
    fields.split(' ').nth(7).unwrap().parse().unwrap()
}

#[test]
fn memory_of_a_read_stays_within_budget() {
    let school = school_with_a_menu();
    let request = get_menu(&school);
    // The first brings the executable into memory.
    let faults = [(); 5].map(|()| page_faults(&request))[1..]
        .iter()
        .copied()
        .max()
        .unwrap();
    // Nine tenths are pages of the executable, shared by all processes that run it.
    let mut peak: u64 = 0;
    // Memory peaks before the answer is written (VmHWM, proc_pid_status(5)).
    let answer = request.stopped("write:when=1", |pid| {
        let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
        let line = status
            .lines()
            .find_map(|line| line.strip_prefix("VmHWM:"))
            .unwrap();
        peak = line.trim().trim_end_matches(" kB").parse().unwrap();
    });
    answer.ok();
    println!("get_menu: {faults} page faults, {peak} KiB");
    assert!(faults <= 25, "{faults} page faults");
    assert!(peak <= 650, "{peak} KiB");
}

/// Instructions and system calls.
fn cost(request: &Cgi) -> (u64, u64) {
    let (answer, trace) = request.trace(&[]);
    answer.ok();
    (instructions(request), calls(&trace).len() as u64)
}

/// Those of a read and a write.
fn costs(school: &School) -> [(u64, u64); 2] {
    [get_menu(school), save_menu(school)].map(|request| cost(&request))
}

#[test]
fn cost_is_independent_of_the_number_of_days() {
    let school = school_with_a_menu();
    let day = school.read(DAY);
    let with_one = costs(&school);
    for n in 1..10_000 {
        let (year, month, day_of_month) = (1990 + n / 336, n / 28 % 12 + 1, n % 28 + 1);
        let folder = format!("aula1/Comedor/{year}-{month:02}/{day_of_month:02}");
        school.write(&format!("{folder}/_datos.json"), &day);
    }
    let with_many = costs(&school);
    println!("10,000 days: {with_many:?}, with one {with_one:?}");
    for ((many, many_calls), (one, one_calls)) in with_many.into_iter().zip(with_one) {
        assert!(
            many < one + one / 100,
            "{many} instructions, with one {one}"
        );
        assert_eq!(many_calls, one_calls);
    }
}

/// Checks that instructions grow linearly with `sizes`, by at most `steepest` per unit. System calls
/// may only grow by those that allocate memory, in blocks of increasing size.
#[track_caller]
fn assert_linear(what: &str, sizes: [u64; 3], costs: [(u64, u64); 3], steepest: f64) {
    let slope = |from: usize, to: usize| {
        (costs[to].0 - costs[from].0) as f64 / (sizes[to] - sizes[from]) as f64
    };
    println!(
        "{what}: {sizes:?}, {costs:?}, {:.1} and {:.1} per unit",
        slope(0, 1),
        slope(1, 2)
    );
    assert!(
        slope(1, 2) <= slope(0, 1) * 1.1,
        "{what}: faster than linear"
    );
    assert!(slope(1, 2) <= steepest, "{what}: {}", slope(1, 2));
    assert!(costs[2].1 <= costs[0].1 + 30, "{what}: system calls");
}

#[test]
fn cost_is_linear_in_the_number_of_menu_types() {
    let sizes = [1, 30, 300];
    let costs = sizes.map(|size| {
        let school = School::new();
        let others = (1..size).map(|n| format!("type-{n:03}"));
        let types = others.chain(["basal".to_owned()]);
        let types = types.map(|id| json!({"id": id, "label": "Menú", "color": "#0d6efd"}));
        school.write(TYPES, Value::from_iter(types).to_string());
        save_menu(&school).run().ok();
        self::costs(&school)
    });
    assert_linear(
        "reads, by menu types",
        sizes,
        costs.map(|[read, _]| read),
        9_000.,
    );
    assert_linear(
        "writes, by menu types",
        sizes,
        costs.map(|[_, write]| write),
        9_000.,
    );
}

#[test]
fn cost_is_linear_in_the_size_of_the_session() {
    let school = school_with_a_menu();
    let sizes = [1, 100, 10 * 1024].map(|kib| kib * 1024);
    let costs = sizes.map(|size| {
        let (mut count, mut items) = (0, String::new());
        while (items.len() as u64) < size {
            let item = "s:2:\"id\";i:7;s:4:\"name\";s:12:\"Lentejas 1kg\";";
            items += &format!("i:{count};a:2:{{{item}}}");
            count += 1;
        }
        let basket = format!("basket|a:{count}:{{{items}}}");
        school.log_in("teacher", basket + &session(TEACHER));
        cost(&get_menu(&school))
    });
    assert_linear("reads, by bytes of session", sizes, costs, 60.);
}

/// What one request more costs a worker that stays in memory: the difference between two runs.
fn in_memory(settings: &Cgi, wrapper: &[&str], count: impl Fn() -> u64) -> u64 {
    let settings = settings.clone().set("COMEDOR_WORKERS", "2").under(wrapper);
    let run = |requests: usize| {
        let socket = Held::new();
        let process = socket.spawn(settings.responder());
        // The connection is kept while one of both is free.
        wait_until("the workers", || process.has_started(2));
        let mut client = Client::connect(&socket.path);
        let query = format!("action=get_menu&aulario=aula1&date={DATE}&menu=basal");
        for _ in 0..requests {
            let reply = client.ask(true, &parameters("GET", &query, "PHPSESSID=teacher"), b"");
            assert!(reply.stdout.contains("Lentejas"), "{reply:?}");
        }
        drop(client);
        process.stop();
        count()
    };
    let few = run(20);
    (run(1020) - few) / 1000
}

#[test]
fn a_fastcgi_request_stays_within_its_budget() {
    let folder = tempfile::tempdir().unwrap();
    // A file for each process
    let all = || files_below(folder.path(), &["-type", "f"]);
    let of_all = |count: &dyn Fn(&Path) -> u64| {
        all()
            .iter()
            .map(|name| count(&folder.path().join(name)))
            .sum()
    };
    let path = folder.path().join("trace").display().to_string();
    let out = format!("--callgrind-out-file={path}.%p");
    let callgrind = ["/usr/bin/valgrind", "-q", "--tool=callgrind", &out];
    // The calls on the connection belong to the protocol.
    let connection = "trace=!poll,epoll_wait,epoll_pwait,accept4,recvfrom,sendto,shutdown";
    let strace = ["/usr/bin/strace", "-ff", "-o", &path, "-e", connection];
    let lines = |file: &Path| calls(&fs::read_to_string(file).unwrap()).len() as u64;
    let remove = || {
        all()
            .iter()
            .for_each(|name| fs::remove_file(folder.path().join(name)).unwrap())
    };
    let (school, redis) = (school_with_a_menu(), redis_with_a_teacher());
    let by_file = school.get("");
    let by_redis = by_file.clone().set("COMEDOR_SESSION_DIR", redis.socket(""));
    for (name, settings, most_instructions, most_calls) in [
        ("get_menu", by_file, 89_000, 21),
        ("session in Redis", by_redis, 101_000, 18),
    ] {
        let counted = |count: &dyn Fn(&Path) -> u64| {
            let sum = of_all(count);
            remove();
            sum
        };
        let instructions = in_memory(&settings, &callgrind, || counted(&total));
        let calls = in_memory(&settings, &strace, || counted(&lines));
        println!("{name} by FastCGI: {instructions} instructions, {calls} system calls");
        assert!(instructions <= most_instructions, "{name}: {instructions}");
        assert!(calls <= most_calls, "{name}: {calls}");
    }
}

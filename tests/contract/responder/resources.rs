//! Processor time, memory and file descriptors.

use std::fs;
use std::thread;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Resource, Rlimit, Signal, getrlimit, kill_process, prlimit};

use super::*;
use crate::support::fastcgi::Process;

/// A responder for this request with this number of workers, which have started.
fn started(socket: &Held, request: &Cgi, workers: usize) -> Process {
    let request = request.clone().set("COMEDOR_WORKERS", workers.to_string());
    let process = socket.spawn(request.responder());
    wait_until("the workers", || process.has_started(workers));
    process
}

/// Limits the number of open files of a process, and of those that it starts from now on.
fn limit_files(process: Pid, files: u64) {
    let files = Rlimit {
        current: Some(files),
        ..getrlimit(Resource::Nofile)
    };
    prlimit(Some(process), Resource::Nofile, files).unwrap();
}

#[test]
fn running_out_of_file_descriptors_causes_no_busy_loop() {
    let (school, socket) = (School::new(), Held::new());
    let request = school.get("get_menu_types");
    let process = started(&socket, &request, 2);
    for worker in process.workers() {
        let is_free = |file: &u64| !Path::new(&format!("/proc/{worker}/fd/{file}")).exists();
        limit_files(worker, (0..).find(is_free).unwrap());
    }
    let since = Instant::now();
    let mut client = Client::connect(&socket.path);
    client.send(request.records());
    thread::sleep(Duration::from_millis(1500));
    process
        .workers()
        .into_iter()
        .for_each(|worker| limit_files(worker, 1024));
    assert!(client.reply().stdout.starts_with("Status: 200 "));
    let log = process.stop();
    let lines = log.matches("cannot accept a connection").count() as u64;
    // One per second of each worker, and one at the begin.
    let most = 2 * (since.elapsed().as_secs() + 1);
    assert!((1..=most).contains(&lines), "{most}: {log}");
}

#[test]
fn an_idle_responder_takes_no_processor_time() {
    let (school, socket) = (School::new(), Held::new());
    let process = started(&socket, &school.get(""), 4);
    // The time on a processor (proc_pid_schedstat(5)).
    let time = || {
        let of = |process: Pid| {
            let text = fs::read_to_string(format!("/proc/{process}/schedstat")).unwrap();
            let nanoseconds = text.split_whitespace().next().unwrap();
            Duration::from_nanos(nanoseconds.parse().unwrap())
        };
        let workers: Duration = process.workers().into_iter().map(of).sum();
        of(process.pid()) + workers
    };
    let before = time();
    // The parent has looked at the settings twice or more.
    thread::sleep(Duration::from_millis(1500));
    let taken = time() - before;
    assert!(taken < Duration::from_millis(20), "{taken:?}");
    process.stop();
}

/// Else they would take the processor.
#[test]
fn workers_that_fail_at_their_start_are_replaced_once_per_second() {
    let (school, socket) = (School::new(), Held::new());
    let request = school.get("get_menu_types");
    let process = started(&socket, &request, 16);
    // A new worker then fails to create its epoll set.
    limit_files(process.pid(), 3);
    let workers = process.workers();
    let since = Instant::now();
    for &worker in &workers {
        kill_process(worker, Signal::KILL).unwrap();
    }
    thread::sleep(Duration::from_millis(2500));
    limit_files(process.pid(), 1024);
    request.ask(&socket.path).ok();
    let log = process.stop();
    // Those that are killed are replaced at once. Then one after the other fails.
    let failed = log.matches("is replaced").count();
    let most = 2 * workers.len() + since.elapsed().as_secs() as usize + 1;
    assert!(failed <= most, "{most}: {log}");
}

#[test]
fn idle_workers_take_little_memory_and_large_requests_leave_none() {
    let (school, socket) = (School::new(), Held::new());
    let process = socket.serve(&school);
    wait_until("the workers", || process.has_started(64));
    // A debug build relocates more pages.
    let most = if GIVEN.is_some() { 8 } else { 64 };
    let own = || process.of_workers("RssAnon");
    let idle = own();
    println!("64 idle workers: {idle} KiB");
    assert!(idle <= most * 1024, "{idle} KiB");
    let body =
        json!({"date": DATE, "menu_type": "basal", "x": "y".repeat(1_000_000), "plates": {}});
    let large = school.post("save_menu").json(&body);
    thread::scope(|scope| {
        for _ in 0..10 {
            scope.spawn(|| (0..50).for_each(|_| drop(large.ask(&socket.path).ok())));
        }
    });
    wait_until("the workers", || process.has_started(64));
    let after = own();
    println!("after 500 uploads: {after} KiB");
    wait_until("the memory of before", || own() <= idle + idle / 4 + 1024);
    process.stop();
}

/// The unit allows 1 GiB. Each of the 64 workers can have one at the same time.
#[test]
fn as_many_large_bodies_as_workers_take_512_mib() {
    let (school, socket) = (School::new(), Held::new());
    let many = format!("{{\"plates\":[{}0]}}", "[0],".repeat(262_000));
    // Of as many values as a body may have, those that take most memory.
    let nested = format!("{}0{},", "{\"a\":".repeat(498), "}".repeat(498)).repeat(20);
    let most = format!("{{\"x\":[{nested}0],\"y\":\"{}\"}}", "y".repeat(900_000));
    for (body, code) in [(many, "INVALID_FORMAT"), (most, "MISSING_PARAM")] {
        let save = school.post("save_menu").body("application/json", body);
        // A worker that needs more ends without an answer.
        let limited = save.clone().set("COMEDOR_WORKERS", "1");
        let process = socket.spawn(limited.memory((512 << 20) / 64).responder());
        save.ask(&socket.path).fails(code);
        process.stop();
    }
}

/// `COMEDOR_FASTCGI_REQUESTS=1000000` makes it a long run.
#[test]
fn memory_and_descriptors_do_not_leak() {
    let requests = std::env::var("COMEDOR_FASTCGI_REQUESTS").ok();
    let requests: usize = requests
        .and_then(|count| count.parse().ok())
        .unwrap_or(50_000);
    let (school, socket) = (School::new(), Held::new());
    school.save(save("x"));
    let process = socket.serve(&school);
    let run = |requests: usize| {
        thread::scope(|scope| {
            for client in 0..16 {
                let socket = &socket;
                scope.spawn(move || {
                    let mut connection = Client::connect(&socket.path);
                    for request in 0..requests / 16 {
                        let query = match (client + request) % 5 {
                            0 => TYPES_QUERY.to_owned(),
                            1 => format!("action=get_menu&aulario=aula1&date={DATE}"),
                            2 => "action=get_menu&aulario=missing".to_owned(),
                            3 => "action=unknown&aulario=aula1".to_owned(),
                            _ => format!("action=get_menu&aulario=aula1&x={}", "y".repeat(5000)),
                        };
                        let session = ["PHPSESSID=teacher", "PHPSESSID=none"];
                        let session = session[usize::from(request % 7 == 0)];
                        // Every tenth request is the last of its connection.
                        let keep = request % 10 != 9;
                        connection.connect_again(&socket.path);
                        let reply = connection.ask(keep, &parameters("GET", &query, session), b"");
                        assert!(reply.stdout.starts_with("Status: "), "{reply:?}");
                        if !keep {
                            // Others end in the middle of a request, or are not FastCGI.
                            let mut other = Client::connect(&socket.path);
                            other.send([&begin(true)[..], b"garbage"][request / 10 % 2]);
                            connection = Client::connect(&socket.path);
                        }
                    }
                });
            }
        });
    };
    wait_until("the workers", || process.has_started(64));
    let descriptors = process.descriptors();
    run(requests / 5);
    let memory = process.of_workers("RssAnon");
    run(requests);
    // Without the pages of the executable: a debug build has more of them, and the kernel takes them back.
    let after = process.of_workers("RssAnon");
    println!("requests: {requests}, memory of their own: {memory} KiB, then {after} KiB");
    assert!(after <= memory + 2048, "{memory} KiB, then {after} KiB");
    wait_until("the end of connections", || {
        process.descriptors() <= descriptors
    });
    process.stop();
}

//! What a request may cost. The budgets are those of the executable that is released: run the tests with
//! `COMEDOR_PROGRAM=$(cgi-bin/build)`. The costs are in tests/results.md, "Cost of a request", beside the budgets.

use std::fs;
use std::path::Path;

use rustix::process::{Pid, WaitId, WaitIdOptions, waitid};

use super::{cost, from_browser, get_menu, save_menu, school_with_a_menu, total};
use crate::support::fastcgi::{Client, Held, parameters};
use crate::support::redis::Redis;
use crate::support::site::wait_until;
use crate::support::*;

fn redis_with_a_teacher() -> Redis {
    let redis = Redis::new();
    redis.command(&["SET", "PHPREDIS_SESSION:teacher", &session(TEACHER)]);
    redis
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
        ("save_menu", save_menu(&school), 148_000, 87),
    ] {
        let (instructions, calls) = cost(&request);
        println!(
            "{name}: {instructions} instructions of {most_instructions}, {calls} system calls of {most_calls}"
        );
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
    println!("get_menu: {faults} page faults of 25, {peak} KiB of 650");
    assert!(faults <= 25, "{faults} page faults");
    assert!(peak <= 650, "{peak} KiB");
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
        ("get_menu, session in Redis", by_redis, 101_000, 18),
    ] {
        let counted = |count: &dyn Fn(&Path) -> u64| {
            let sum = of_all(count);
            remove();
            sum
        };
        let instructions = in_memory(&settings, &callgrind, || counted(&total));
        let calls = in_memory(&settings, &strace, || counted(&lines));
        println!(
            "{name} by FastCGI: {instructions} instructions of {most_instructions}, {calls} system calls of {most_calls}"
        );
        assert!(instructions <= most_instructions, "{name}: {instructions}");
        assert!(calls <= most_calls, "{name}: {calls}");
    }
}

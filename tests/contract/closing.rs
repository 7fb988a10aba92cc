//! A connection that a worker does not keep, and a web server that uses it again at the same moment.

use std::io::{ErrorKind, Write};

use crate::support::fastcgi::{Client, Held, begin};
use crate::support::tracer::Tracer;
use crate::support::*;

/// A web server that could send a request does not repeat it: it may be a write.
#[test]
fn request_that_can_be_sent_at_any_call_before_a_connection_is_closed_is_answered() {
    for reads_at_once in [true, false] {
        let outcomes: Vec<Outcome> = (0..)
            .map_while(|moment| next_request_at(moment, reads_at_once))
            .collect();
        let has = |outcome| outcomes.contains(&outcome);
        assert!(!has(Outcome::Lost), "{outcomes:?}");
        assert!(
            has(Outcome::Answered) && has(Outcome::Refused),
            "{outcomes:?}"
        );
    }
}

#[derive(Debug, PartialEq)]
enum Outcome {
    Answered,
    /// It cannot be sent.
    Refused,
    Lost,
}

/// The client sends a request, and the next one before the call of this number after the answer; `None` if the worker
/// makes fewer calls. It reads the first answer at once, or just before it sends the next request. One worker is never
/// half of them, so it keeps no connection.
fn next_request_at(moment: usize, reads_at_once: bool) -> Option<Outcome> {
    let (school, socket) = (School::new(), Held::new());
    let request = school.get("get_menu_types").set("COMEDOR_WORKERS", "1");
    let kept = begin(true);
    let records = [&kept, &request.records()[kept.len()..]].concat();
    let mut client = Client::connect(&socket.path);
    client.send(&records);
    let mut program = Tracer::start(&mut socket.command(request.responder()), &[]);
    let (mut calls, mut is_read, mut sent) = (0, false, None);
    while let Some(stop) = program.next() {
        if stop.result.is_some() || !(is_read || client.has_received()) {
            continue;
        }
        // The worker has closed the connection, and waits for another one.
        if stop.call.name().starts_with("epoll_") {
            break;
        }
        let is_now = calls == moment;
        calls += 1;
        if !is_read && (reads_at_once || is_now) {
            client.reply();
            is_read = true;
        }
        if is_now {
            sent = Some(client.0.write(&records));
        }
    }
    Some(match sent? {
        Err(error) if error.kind() == ErrorKind::BrokenPipe => Outcome::Refused,
        Err(error) => panic!("{error}"),
        Ok(_) if String::from_utf8_lossy(&client.received()).contains("\"success\":true") => {
            Outcome::Answered
        }
        Ok(_) => Outcome::Lost,
    })
}

//! The connection to Redis that a FastCGI process keeps, with a server that misbehaves.

use std::io::Write;
use std::sync::mpsc::channel;
use std::thread;

use crate::support::fastcgi::{Client, Held};
use crate::support::redis::{fake_redis, replies, reply_with, serve, status};
use crate::support::*;

/// A reply that comes late would be the session of another user.
#[test]
fn a_connection_is_not_reused_after_an_error_a_timeout_or_unexpected_bytes() {
    let school = School::new();
    let (sender, connections) = channel();
    let teacher = replies(&session(TEACHER));
    let of_connection = [
        [
            b"$-1\r\n-LOADING Redis is loading\r\n".to_vec(),
            teacher.clone(),
        ],
        [teacher.repeat(2), teacher.clone()],
        // The rest of the reply never comes: the program gives up after its timeout.
        [teacher[..10].to_vec(), teacher.clone()],
        [teacher.clone(), teacher.clone()],
        // As a restart at the worst moment
        [teacher.clone(), teacher[..10].to_vec()],
        // Replies of another kind than Redis sends; then those to the next request would be late.
        [b":0\r\n:0\r\n".to_vec(), teacher.clone()],
        [teacher.clone(), b"$-1\r\n:0\r\n".to_vec()],
    ];
    let save_path = fake_redis(move |number, stream| {
        sender.send(stream.try_clone().unwrap()).unwrap();
        let replies = of_connection[number].clone();
        thread::spawn(move || replies.iter().for_each(|reply| reply_with(&stream, reply)));
    });
    let socket = Held::new();
    let process = serve(&socket, &school, &save_path);
    let mut client = Client::connect(&socket.path);
    for (number, expected) in [500, 200, 500, 200, 200, 500, 200].into_iter().enumerate() {
        assert_eq!(status(&mut client, "aula1", "teacher"), expected);
        let mut connection = connections.try_recv().expect("a new connection");
        // What no request waits for
        if number == 3 {
            connection.write_all(&teacher).unwrap();
        }
    }
    assert_eq!(
        status(&mut client, "aula1", "teacher"),
        400,
        "on the last connection"
    );
    assert!(connections.try_recv().is_err(), "no other connection");
    drop(client);
    process.stop();
}

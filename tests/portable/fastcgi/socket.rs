//! The listening socket.

use std::fs;
use std::net::TcpListener;
use std::os::fd::OwnedFd;
use std::os::linux::net::SocketAddrExt;
use std::os::unix::fs::{FileTypeExt, PermissionsExt};
use std::os::unix::net::{SocketAddr, UnixListener};

use super::*;

#[test]
fn a_socket_is_bound_with_its_mode_unless_another_process_listens() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("socket");
    let bind = || Socket::bind(&path).map_err(|error| error.kind());
    let live = bind().expect("nothing is there");
    let file = fs::symlink_metadata(&path).unwrap();
    assert!(file.file_type().is_socket());
    assert_eq!(file.permissions().mode() & 0o7777, 0o660);
    assert_eq!(bind().err(), Some(io::ErrorKind::AddrInUse));
    drop(live);
    drop(bind().expect("a stale socket is replaced"));
    fs::remove_file(&path).unwrap();
    fs::write(&path, "a file").unwrap();
    assert_eq!(bind().err(), Some(io::ErrorKind::AlreadyExists));
    assert_eq!(fs::read(&path).unwrap(), b"a file");
}

#[test]
fn only_one_of_several_processes_binds_a_stale_socket() {
    let folder = tempfile::tempdir().unwrap();
    let path = &folder.path().join("socket");
    for _ in 0..20 {
        drop(UnixListener::bind(path).unwrap());
        let bound: Vec<_> = thread::scope(|scope| {
            let threads: Vec<_> = (0..4).map(|_| scope.spawn(move || Socket::bind(path))).collect();
            threads.into_iter().filter_map(|thread| thread.join().unwrap().ok()).collect()
        });
        assert_eq!(bound.len(), 1);
        fs::remove_file(path).unwrap();
    }
}

#[test]
fn a_socket_without_a_file_is_rejected() {
    let name = format!("comedor-test-{}", std::process::id());
    let address = SocketAddr::from_abstract_name(name).unwrap();
    for socket in [
        OwnedFd::from(TcpListener::bind("127.0.0.1:0").unwrap()),
        OwnedFd::from(UnixListener::bind_addr(&address).unwrap()),
    ] {
        let error = Socket::new(socket).expect_err("a refusal").to_string();
        assert!(error.contains("Unix socket with a path"), "{error}");
    }
}

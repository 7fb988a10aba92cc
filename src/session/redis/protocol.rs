//! Commands and replies in the protocol RESP2 (<https://redis.io/docs/latest/develop/reference/protocol-spec/>).

use std::io::{self, BufRead, ErrorKind, Read};

use super::RedisFault;
use crate::sys::shared_file::MAX_SIZE;

/// The buffer for replies, and the maximum length of a line: a length, a status or an error, each of some hundred bytes
/// at most.
pub const BLOCK: usize = 4096;

/// The kind of a reply, by its first byte. No reply to the commands in use is an array.
#[derive(Clone, Copy, Debug, PartialEq)]
#[repr(u8)]
pub enum Kind {
    SimpleString = b'+',
    Integer = b':',
    BulkString = b'$',
}

/// The first byte of an error, which can be the reply to any command
const ERROR: u8 = b'-';

/// The length of the null bulk string
const NULL: &str = "-1";

/// Commands, and the kind of the reply to each.
#[derive(Default)]
pub struct Commands {
    pub bytes: Vec<u8>,
    pub replies: Vec<Kind>,
}

impl Commands {
    pub fn push(&mut self, reply: Kind, words: &[&str]) {
        self.bytes.extend(format!("*{}\r\n", words.len()).bytes());
        for word in words {
            self.bytes
                .extend(format!("${}\r\n{word}\r\n", word.len()).bytes());
        }
        self.replies.push(reply);
    }
}

/// The reply to a command.
#[derive(Debug, PartialEq)]
pub enum Reply {
    /// A simple string or an integer: the server has done what the command says.
    Done,
    /// The bulk string of a key
    Value(Vec<u8>),
    /// The null bulk string: the key does not exist.
    Null,
}

impl Reply {
    /// Reads a reply of this kind. A reply of another kind is a fault: the server may have sent a surplus one, so that
    /// the others are late. Allocates at most a block for a length that the server only claims.
    pub fn read(input: &mut impl BufRead, kind: Kind) -> Result<Reply, RedisFault> {
        let first = *input.fill_buf()?.first().ok_or_else(end_of_file)?;
        if first != kind as u8 && first != ERROR {
            return Err(RedisFault::NotRedis);
        }
        let text = read_line(input)?;
        if first == ERROR {
            return Err(RedisFault::refused(&text));
        }
        match kind {
            Kind::SimpleString | Kind::Integer => Ok(Reply::Done),
            Kind::BulkString if text == NULL => Ok(Reply::Null),
            Kind::BulkString => {
                let length = text.parse().map_err(|_| RedisFault::NotRedis)?;
                read_bulk_string(input, length).map(Reply::Value)
            }
        }
    }
}

/// The rest of a line after its first byte.
fn read_line(input: &mut impl BufRead) -> Result<String, RedisFault> {
    let mut line = Vec::new();
    input.take(BLOCK as u64).read_until(b'\n', &mut line)?;
    if !line.ends_with(b"\n") && line.len() < BLOCK {
        return Err(end_of_file());
    }
    let text = line[1..]
        .strip_suffix(b"\r\n")
        .ok_or(RedisFault::NotRedis)?;
    Ok(String::from_utf8_lossy(text).into_owned())
}

fn read_bulk_string(input: &mut impl BufRead, length: u64) -> Result<Vec<u8>, RedisFault> {
    if length > MAX_SIZE {
        return Err(RedisFault::TooLarge);
    }
    let with_line_end = length + 2;
    let mut value = Vec::with_capacity(BLOCK.min(with_line_end as usize));
    if (input.take(with_line_end).read_to_end(&mut value)? as u64) < with_line_end {
        return Err(end_of_file());
    }
    if !value.ends_with(b"\r\n") {
        return Err(RedisFault::NotRedis);
    }
    value.truncate(length as usize);
    Ok(value)
}

fn end_of_file() -> RedisFault {
    io::Error::from(ErrorKind::UnexpectedEof).into()
}

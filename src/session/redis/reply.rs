//! The replies of a Redis server (RESP2, <https://redis.io/docs/latest/develop/reference/protocol-spec/>).
//! No reply to the commands in use is an array.

use super::Fault;
use crate::shared_file::MAX_SIZE;

/// The maximum length of a line, such as an error
const MAX_LINE: usize = 4096;

/// The reply to a command.
#[derive(Debug, PartialEq)]
pub enum Reply {
    /// `OK`, or another status
    Status,
    Error(String),
    Integer(i64),
    /// The value of a key; `None` if the key does not exist
    Value(Option<Vec<u8>>),
}

/// Removes the first reply from `bytes`. `None` if it is incomplete. Allocates nothing for a length
/// that the server only claims.
pub fn take(bytes: &mut Vec<u8>) -> Result<Option<Reply>, Fault> {
    let Some((&kind, after)) = bytes.split_first() else { return Ok(None) };
    if !b"+-:$".contains(&kind) {
        return Err(Fault::NotRedis);
    }
    let Some(length) = after.windows(2).take(MAX_LINE).position(|pair| pair == b"\r\n") else {
        return if after.len() > MAX_LINE { Err(Fault::NotRedis) } else { Ok(None) };
    };
    let line = String::from_utf8_lossy(&after[..length]).into_owned();
    let start = 1 + length + 2;
    let (reply, end) = match kind {
        b'+' => (Reply::Status, start),
        b'-' => (Reply::Error(line), start),
        b':' => (Reply::Integer(line.parse().map_err(|_| Fault::NotRedis)?), start),
        _ if line == "-1" => (Reply::Value(None), start),
        _ => {
            let length: u64 = line.parse().map_err(|_| Fault::NotRedis)?;
            if length > MAX_SIZE {
                return Err(Fault::TooLarge);
            }
            return take_value(bytes, start, start + length as usize);
        }
    };
    bytes.drain(..end);
    Ok(Some(reply))
}

/// The value in `start..end` of `bytes`, not copied, because it may have megabytes.
fn take_value(bytes: &mut Vec<u8>, start: usize, end: usize) -> Result<Option<Reply>, Fault> {
    match bytes.get(end..end + 2) {
        None => return Ok(None),
        Some(b"\r\n") => {}
        Some(_) => return Err(Fault::NotRedis),
    }
    let rest = bytes.split_off(end + 2);
    let mut value = std::mem::replace(bytes, rest);
    value.truncate(end);
    value.drain(..start);
    Ok(Some(Reply::Value(Some(value))))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn replies_are_taken_one_by_one() {
        let mut bytes =
            b"+OK\r\n-NOAUTH Authentication required.\r\n:-1\r\n$4\r\na\r\nb\r\n$0\r\n\r\n$-1\r\n$3\r\nab"
                .to_vec();
        for reply in [
            Reply::Status,
            Reply::Error("NOAUTH Authentication required.".to_owned()),
            Reply::Integer(-1),
            Reply::Value(Some(b"a\r\nb".to_vec())),
            Reply::Value(Some(Vec::new())),
            Reply::Value(None),
        ] {
            assert_eq!(take(&mut bytes).unwrap(), Some(reply));
        }
        assert_eq!(take(&mut bytes).unwrap(), None);
        assert_eq!(bytes, b"$3\r\nab", "an incomplete reply stays");
    }
}

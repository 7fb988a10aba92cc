//! The replies of a Redis server (RESP2, <https://redis.io/docs/latest/develop/reference/protocol-spec/>).
//! No reply to the commands in use is an array.

use super::RedisFault;
use crate::sys::shared_file::MAX_SIZE;

/// The maximum length of a line, such as an error
const MAX_LINE: usize = 4096;

/// The value of a key; `None` if it does not exist, and in the reply to any other command.
pub type Reply = Option<Vec<u8>>;

/// Removes the first reply from `bytes`: `+` status, `:` integer or `$` value, as `kind` says, or an
/// error. `None` if it is incomplete. Allocates nothing for a length that the server only claims.
pub fn take(bytes: &mut Vec<u8>, kind: u8) -> Result<Option<Reply>, RedisFault> {
    let Some((&first, after)) = bytes.split_first() else { return Ok(None) };
    if first != kind && first != b'-' {
        return Err(RedisFault::NotRedis);
    }
    let Some(length) = after.windows(2).take(MAX_LINE).position(|pair| pair == b"\r\n") else {
        return if after.len() > MAX_LINE { Err(RedisFault::NotRedis) } else { Ok(None) };
    };
    let line = String::from_utf8_lossy(&after[..length]);
    if first == b'-' {
        return Err(RedisFault::refused(&line));
    }
    let start = 1 + length + 2;
    if first != b'$' || line == "-1" {
        bytes.drain(..start);
        return Ok(Some(None));
    }
    let length: u64 = line.parse().map_err(|_| RedisFault::NotRedis)?;
    if length > MAX_SIZE {
        return Err(RedisFault::TooLarge);
    }
    let end = start + length as usize;
    match bytes.get(end..end + 2) {
        None => return Ok(None),
        Some(b"\r\n") => {}
        Some(_) => return Err(RedisFault::NotRedis),
    }
    // The value is not copied, because it may have megabytes.
    let rest = bytes.split_off(end + 2);
    let mut value = std::mem::replace(bytes, rest);
    value.truncate(end);
    value.drain(..start);
    Ok(Some(Some(value)))
}

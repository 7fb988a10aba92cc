//! PHP's `session.save_path`: a folder of files, or phpredis's address of a server.

use std::ffi::OsStr;
use std::fmt;
use std::num::IntErrorKind;
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;

use super::cookie::MAX_ID;
use crate::cgi::origin::host_and_port;
use crate::php::form::Form;
use crate::php::json::Value;
use crate::php::text::parse_digits;

/// Where PHP keeps its sessions.
#[derive(Debug, PartialEq)]
pub enum SavePath {
    Files(SessionFolder),
    Redis(RedisServer),
}

/// `folder`, `N;folder` or `N;MODE;folder` (ext/session/mod_files.c, `PS_OPEN_FUNC(files)`).
#[derive(Clone, Debug, PartialEq)]
pub struct SessionFolder {
    /// The number of folders between `folder` and a file, one for each of the id's first characters.
    pub depth: usize,
    pub folder: PathBuf,
}

/// `tcp://host:port?…` or `unix:///path?…` (redis_session.c, `PS_OPEN_FUNC(redis)`). Its login is never printed.
#[derive(Clone, PartialEq)]
pub struct RedisServer {
    pub address: Address,
    /// The arguments of `AUTH`: a password, or a user and a password
    pub login: Option<Vec<String>>,
    pub database: Option<u32>,
    /// The part of a key before the session id
    pub prefix: String,
}

#[derive(Clone, PartialEq)]
pub enum Address {
    Tcp { host: String, port: u16 },
    Unix(PathBuf),
}

/// The prefix of phpredis
const PREFIX: &str = "PHPREDIS_SESSION:";

impl SavePath {
    const EXPECTED: &str = "a session.save_path (/folder, N;/folder or N;MODE;/folder), or phpredis's \
         address of one server without TLS (tcp://host:port?… or unix:///path?…, docs/several-servers.md#the-setting)";

    /// Parses PHP's setting; the error says what it must be. A relative folder, for PHP relative to that of the
    /// page, is invalid.
    pub fn parse(value: &[u8]) -> Result<SavePath, &'static str> {
        if value.starts_with(b"tcp://") || value.starts_with(b"unix://") {
            let server = str::from_utf8(value).ok().and_then(RedisServer::parse);
            return server.map(SavePath::Redis).ok_or(SavePath::EXPECTED);
        }
        SessionFolder::parse(value).map(SavePath::Files)
    }
}

impl SessionFolder {
    /// What a depth must be that PHP takes as one, although no session can have a file then.
    const EXPECTED_DEPTH: &str = "a session.save_path of at most 255 levels (the N of N;/folder): PHP's session \
         ids have at most 256 characters, and each level takes one";

    fn parse(value: &[u8]) -> Result<SessionFolder, &'static str> {
        let parts: Vec<&[u8]> = value.splitn(3, |&byte| byte == b';').collect();
        let default_depth: &[u8] = b"0";
        let default_mode: &[u8] = b"0600";
        let (depth, mode, folder) = match *parts {
            [folder] => (default_depth, default_mode, folder),
            [depth, folder] => (depth, default_mode, folder),
            [depth, mode, folder] => (depth, mode, folder),
            _ => return Err(SavePath::EXPECTED),
        };
        let depth = number(depth, 10).ok_or(SavePath::EXPECTED)?;
        let mode = number(mode, 8).ok_or(SavePath::EXPECTED)?;
        if mode > 0o7777 || !folder.starts_with(b"/") {
            return Err(SavePath::EXPECTED);
        }
        const { assert!(MAX_ID == 256) };
        if depth >= MAX_ID {
            return Err(SessionFolder::EXPECTED_DEPTH);
        }
        Ok(SessionFolder {
            depth,
            folder: PathBuf::from(OsStr::from_bytes(folder)),
        })
    }
}

/// The number in `digits`, or the largest one if it is larger.
fn number(digits: &[u8], radix: u32) -> Option<usize> {
    match usize::from_str_radix(str::from_utf8(digits).ok()?, radix) {
        Err(error) if *error.kind() == IntErrorKind::PosOverflow => Some(usize::MAX),
        number => number.ok(),
    }
}

impl RedisServer {
    /// Other parameters (timeouts, weight, persistent connections) do not change where a session is
    /// and are ignored. For PHP, a `#` after the `?` is a part of the parameters.
    fn parse(text: &str) -> Option<RedisServer> {
        // phpredis separates servers by commas and blanks, in the parameters too.
        if text.contains([',', ' ', '\t', '\n', '\r', '\x0b', '\x0c']) {
            return None;
        }
        let (address, query) = text.split_once('?').unwrap_or((text, ""));
        if address.contains('#') {
            return None;
        }
        let address = match address.split_once("://")? {
            ("unix", path) if path.starts_with('/') => Address::Unix(path.into()),
            ("tcp", address) => tcp(address)?,
            _ => return None,
        };
        let prefix = PREFIX.to_owned();
        let mut server = RedisServer {
            address,
            login: None,
            database: None,
            prefix,
        };
        let parameters = Form::from_body(query.as_bytes())?.nested(usize::MAX)?;
        for (name, value) in parameters.iter() {
            match name {
                // The servers of a Redis Cluster, which is not supported.
                "seed" => return None,
                "auth" => server.login = Some(login(value)?),
                "database" => server.database = Some(parse_digits(value.as_str()?)?),
                "prefix" => server.prefix = value.as_str()?.to_owned(),
                _ => {}
            }
        }
        Some(server)
    }
}

/// `host:port`. PHP ignores a path after it. PHP also ignores a user and a password before the host;
/// they are rejected here, because they look as if they had an effect.
fn tcp(address: &str) -> Option<Address> {
    let (authority, _path) = address.split_once('/').unwrap_or((address, ""));
    let (host, port) = host_and_port(authority);
    let ip = host
        .strip_prefix('[')
        .and_then(|host| host.strip_suffix(']'));
    let host = ip.or((!host.contains(':')).then_some(host))?;
    if host.is_empty() || host.contains(['[', ']', '@']) {
        return None;
    }
    let port = port.map_or(Some(6379), |port| {
        parse_digits(port).filter(|port| *port > 0)
    })?;
    Some(Address::Tcp {
        host: host.to_owned(),
        port,
    })
}

/// `auth=password`, or a list or map of a user and a password, or of a password (`redis_extract_auth_info`).
fn login(auth: &Value) -> Option<Vec<String>> {
    if let Some(password) = auth.as_str() {
        return Some(vec![password.to_owned()]);
    }
    let fields = auth.as_map()?;
    let field = |name, index| {
        let field = fields.get(name).or_else(|| fields.get(index));
        field.and_then(Value::as_str).map(str::to_owned)
    };
    match fields.len() {
        1 => Some(vec![field("pass", "0")?]),
        2 => Some(vec![field("user", "0")?, field("pass", "1")?]),
        _ => None,
    }
}

/// Formatted as a save_path, without the login.
impl fmt::Display for RedisServer {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        match &self.address {
            Address::Tcp { host, port } if host.contains(':') => write!(f, "tcp://[{host}]:{port}"),
            Address::Tcp { host, port } => write!(f, "tcp://{host}:{port}"),
            Address::Unix(path) => write!(f, "unix://{}", path.display()),
        }?;
        let login = self.login.is_some().then(|| "auth=…".to_owned());
        let database = self.database.map(|database| format!("database={database}"));
        let prefix = (self.prefix != PREFIX).then(|| format!("prefix={}", self.prefix));
        let mut separator = '?';
        for parameter in [login, database, prefix].into_iter().flatten() {
            write!(f, "{separator}{parameter}")?;
            separator = '&';
        }
        Ok(())
    }
}

impl fmt::Debug for RedisServer {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn save_path_of_files_is_parsed_like_php() {
        for (value, depth, folder) in [
            ("/p", 0, "/p"),
            ("2;/p", 2, "/p"),
            ("1;0600;/p", 1, "/p"),
            ("1;600;/p;q", 1, "/p;q"),
            ("255;7777;/p", 255, "/p"),
        ] {
            let files = SessionFolder {
                depth,
                folder: PathBuf::from(folder),
            };
            assert_eq!(
                SavePath::parse(value.as_bytes()),
                Ok(SavePath::Files(files)),
                "{value}"
            );
        }
        let huge = "9".repeat(30);
        let huge_mode = format!("1;{huge};/p");
        let huge_depth = format!("{huge};/p");
        for bad in [
            "", "x;/p", "-1;/p", "2;", "p", "2;p", "1;0999;/p", "1;17777;/p", "1;0600;", ";/p",
            &huge_mode,
        ] {
            assert_eq!(
                SavePath::parse(bad.as_bytes()),
                Err(SavePath::EXPECTED),
                "{bad}"
            );
        }
        for deep in ["256;/p", "256;0600;/p", &huge_depth] {
            let expected = Err(SessionFolder::EXPECTED_DEPTH);
            assert_eq!(SavePath::parse(deep.as_bytes()), expected, "{deep}");
        }
    }

    #[test]
    fn address_of_redis_is_parsed_like_phpredis() {
        for (value, displayed) in [
            ("tcp://127.0.0.1", "tcp://127.0.0.1:6379"),
            (
                "tcp://redis.example:7000?weight=2&timeout=2.5",
                "tcp://redis.example:7000",
            ),
            (
                "tcp://h?prefix=a:&auth=secret&database=2",
                "tcp://h:6379?auth=…&database=2&prefix=a:",
            ),
            ("tcp://h?prefix=", "tcp://h:6379?prefix="),
            ("tcp://h?auth[]=secret", "tcp://h:6379?auth=…"),
            ("tcp://h?auth[pass]=secret", "tcp://h:6379?auth=…"),
            ("tcp://h?auth[]=user&auth[]=secret", "tcp://h:6379?auth=…"),
            (
                "tcp://h?auth[pass]=secret&auth[user]=x", "tcp://h:6379?auth=…",
            ),
            ("tcp://[::1]", "tcp://[::1]:6379"),
            ("tcp://[::1]:7000/5", "tcp://[::1]:7000"),
            (
                "unix:///run/redis/redis.sock?persistent=1",
                "unix:///run/redis/redis.sock",
            ),
        ] {
            let parsed = SavePath::parse(value.as_bytes());
            assert_eq!(format!("{parsed:?}"), format!("Ok(Redis({displayed}))"));
        }
    }

    #[test]
    fn other_servers_are_refused() {
        for value in [
            "tcp://a:1,tcp://b:1", "tcp://a:1 tcp://b:1", "tcp://?seed[]=a:1&seed[]=b:1",
            "tcp://a:1?seed[]=b:1", "tls://a:1", "rediss://a:1", "tcp://", "tcp://:6379",
            "tcp://h:x", "tcp://h:+1", "tcp://h:0", "tcp://h:65536", "tcp://u:p@h",
            "tcp://::1:6379", "tcp://[::1", "tcp://[::1]x", "tcp://[::1]]", "tcp://[x]x",
            "tcp://[]", "tcp://h#x?database=1", "unix://run/redis.sock", "tcp://h?database=x",
            "tcp://h?database=-1", "tcp://h?database=%2B1", "tcp://h?prefix[]=x",
            "tcp://h?auth[]=a&auth[]=b&auth[]=c", "tcp://h?auth[user]=a", "tcp://h?auth=%ff",
        ] {
            assert_eq!(
                SavePath::parse(value.as_bytes()),
                Err(SavePath::EXPECTED),
                "{value}"
            );
        }
    }
}

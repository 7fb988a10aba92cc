//! PHP's `session.save_path`: a folder of files, or phpredis's address of a server.

use std::ffi::OsStr;
use std::fmt;
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;

use super::settings::parse_number;
use crate::cgi::form::Form;
use crate::json::Value;

/// Where PHP keeps its sessions.
#[derive(Debug, PartialEq)]
pub enum SavePath {
    Files(SessionFolder),
    Redis(RedisServer),
}

/// `folder`, `N;folder` or `N;MODE;folder` (ext/session/mod_files.c, `PS_OPEN_FUNC(files)`).
#[derive(Clone, Debug, PartialEq)]
pub struct SessionFolder {
    /// The number of folders between `folder` and a session file, each named by one character of
    /// the id.
    pub depth: usize,
    pub folder: PathBuf,
}

/// `tcp://host:port?…` or `unix:///path?…` (phpredis, redis_session.c, `PS_OPEN_FUNC(redis)`). The
/// login is never printed.
#[derive(Clone, PartialEq)]
pub struct RedisServer {
    pub address: Address,
    pub login: Option<Login>,
    pub database: Option<u32>,
    /// The part of a key before the session id
    pub prefix: String,
}

#[derive(Clone, PartialEq)]
pub enum Address {
    Tcp { host: String, port: u16 },
    Unix(PathBuf),
}

/// The arguments of `AUTH`
#[derive(Clone, PartialEq)]
pub struct Login {
    pub user: Option<String>,
    pub password: String,
}

/// The prefix of phpredis
const PREFIX: &str = "PHPREDIS_SESSION:";

const INVALID: &str =
    "must be a session.save_path (/folder, N;/folder, N;MODE;/folder, tcp://… or unix://…)";
const INVALID_ADDRESS: &str =
    "must be a session.save_path of phpredis (tcp://host:port?… or unix:///path?…)";
const INVALID_PARAMETERS: &str = "must have parameters of phpredis: auth=password, auth[]=user&auth[]=password, \
     database=number, prefix=text";

impl SavePath {
    /// Parses PHP's setting. A relative folder is invalid, because for PHP it is relative to the
    /// folder of the page. The error says what the value must be.
    pub fn parse(value: &[u8]) -> Result<SavePath, &'static str> {
        let is = |scheme: &str| value.starts_with(scheme.as_bytes());
        if is("tcp://") || is("unix://") {
            let text = str::from_utf8(value).map_err(|_| INVALID_ADDRESS)?;
            return RedisServer::parse(text).map(SavePath::Redis);
        }
        if is("tls://") || is("ssl://") || is("rediss://") {
            return Err("must start with tcp:// or unix://: TLS is not supported, use stunnel");
        }
        SessionFolder::parse(value).map(SavePath::Files).ok_or(INVALID)
    }
}

impl SessionFolder {
    fn parse(value: &[u8]) -> Option<SessionFolder> {
        let mut parts = value.splitn(3, |&byte| byte == b';');
        let (depth, mode, folder) = match (parts.next(), parts.next(), parts.next()) {
            (Some(folder), None, None) => (b"0".as_slice(), b"0".as_slice(), folder),
            (Some(depth), Some(folder), None) => (depth, b"0".as_slice(), folder),
            (Some(depth), Some(mode), Some(folder)) => (depth, mode, folder),
            _ => return None,
        };
        let digits = |bytes, radix| u32::from_str_radix(str::from_utf8(bytes).ok()?, radix).ok();
        digits(mode, 8).filter(|&mode| mode <= 0o7777)?;
        if !folder.starts_with(b"/") {
            return None;
        }
        Some(SessionFolder {
            depth: usize::try_from(digits(depth, 10)?).ok()?,
            folder: PathBuf::from(OsStr::from_bytes(folder)),
        })
    }
}

impl RedisServer {
    /// Other parameters (timeouts, weight, persistent connections) do not change where a session is
    /// and are ignored. For PHP, a `#` after the `?` is a part of the parameters.
    fn parse(text: &str) -> Result<RedisServer, &'static str> {
        // phpredis separates servers by commas and blanks, in the parameters too.
        if text.contains([',', ' ', '\t', '\n', '\r', '\x0b', '\x0c']) {
            return Err(
                "must name one Redis server: lists of servers are not supported; in a password, \
                 write %2C for a comma and %20 for a space",
            );
        }
        let (address, query) = text.split_once('?').unwrap_or((text, ""));
        let address = match address.split_once("://") {
            Some(("unix", path)) if path.starts_with('/') && !path.contains('#') => {
                Some(Address::Unix(path.into()))
            }
            Some(("tcp", address)) => host_and_port(address),
            _ => None,
        };
        let parameters = Form::from_body(query.as_bytes()).ok_or(INVALID_PARAMETERS)?.nested();
        if parameters.get("seed").is_some() {
            return Err("must name one Redis server: Redis Cluster (seed[]) is not supported");
        }
        let address = address.ok_or(INVALID_ADDRESS)?;
        let text = |name| match parameters.get(name) {
            None => Ok(None),
            Some(Value::String(text)) => Ok(Some(text.as_str())),
            Some(_) => Err(INVALID_PARAMETERS),
        };
        let database = text("database")?.map(|text| parse_number(text).ok_or(INVALID_PARAMETERS));
        Ok(RedisServer {
            address,
            login: parameters.get("auth").map(login).transpose()?,
            database: database.transpose()?,
            prefix: text("prefix")?.unwrap_or(PREFIX).to_owned(),
        })
    }
}

/// `host:port`. PHP ignores a path after it. PHP also ignores a user and a password before the host;
/// they are rejected here, because they look as if they had an effect.
fn host_and_port(address: &str) -> Option<Address> {
    let (authority, _path) = address.split_once('/').unwrap_or((address, ""));
    let (host, port) = match authority.strip_prefix('[').and_then(|rest| rest.split_once(']')) {
        Some((host, "")) => (host, None),
        Some((host, port)) => (host, Some(port.strip_prefix(':')?)),
        None => match authority.split_once(':') {
            Some((host, port)) => (host, Some(port)),
            None => (authority, None),
        },
    };
    let port = port.map_or(Some(6379), |port| parse_number(port).filter(|port| *port > 0))?;
    let is_host = !host.is_empty() && !address.contains(['@', '#']);
    is_host.then(|| Address::Tcp { host: host.to_owned(), port })
}

/// `auth=password`, or a list or map of a user and a password or of a password alone
/// (`redis_extract_auth_info`).
fn login(auth: &Value) -> Result<Login, &'static str> {
    let fields = match auth {
        Value::String(password) => return Ok(Login { user: None, password: password.to_owned() }),
        Value::Map(fields) => fields,
        _ => return Err(INVALID_PARAMETERS),
    };
    let field = |name, index| {
        let field = fields.get(name).or_else(|| fields.get(index)).and_then(Value::as_str);
        field.map(str::to_owned).ok_or(INVALID_PARAMETERS)
    };
    match fields.len() {
        1 => Ok(Login { user: None, password: field("pass", "0")? }),
        2 => Ok(Login { user: Some(field("user", "0")?), password: field("pass", "1")? }),
        _ => Err(INVALID_PARAMETERS),
    }
}

/// As a save_path, without the login.
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
        for (parameter, mark) in [login, database, prefix].into_iter().flatten().zip("?&&".chars())
        {
            write!(f, "{mark}{parameter}")?;
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
        for (value, depth, folder) in
            [("/p", 0, "/p"), ("2;/p", 2, "/p"), ("1;0600;/p", 1, "/p"), ("1;600;/p;q", 1, "/p;q")]
        {
            let files = SessionFolder { depth, folder: PathBuf::from(folder) };
            assert_eq!(SavePath::parse(value.as_bytes()), Ok(SavePath::Files(files)), "{value}");
        }
        for bad in ["", "x;/p", "-1;/p", "2;", "p", "2;p", "1;0999;/p", "1;0600;", ";/p"] {
            assert_eq!(SavePath::parse(bad.as_bytes()), Err(INVALID), "{bad}");
        }
    }

    fn redis(value: &str) -> RedisServer {
        match SavePath::parse(value.as_bytes()) {
            Ok(SavePath::Redis(server)) => server,
            other => panic!("{value}: {other:?}"),
        }
    }

    #[test]
    fn address_of_redis_is_parsed_like_phpredis() {
        for (value, shown) in [
            ("tcp://127.0.0.1", "tcp://127.0.0.1:6379"),
            ("tcp://redis.example:7000?weight=2&timeout=2.5", "tcp://redis.example:7000"),
            (
                "tcp://h?prefix=a:&auth=secret&database=2",
                "tcp://h:6379?auth=…&database=2&prefix=a:",
            ),
            ("tcp://h?prefix=", "tcp://h:6379?prefix="),
            ("tcp://[::1]", "tcp://[::1]:6379"),
            ("tcp://[::1]:7000/5", "tcp://[::1]:7000"),
            ("unix:///run/redis/redis.sock?persistent=1", "unix:///run/redis/redis.sock"),
        ] {
            assert_eq!(redis(value).to_string(), shown);
        }
    }

    #[test]
    fn other_servers_are_refused_with_the_reason() {
        for (value, part) in [
            ("tcp://a:1,tcp://b:1", "lists of servers"),
            ("tcp://a:1 tcp://b:1", "lists of servers"),
            ("tcp://?seed[]=a:1&seed[]=b:1", "Redis Cluster"),
            ("tls://a:1", "use stunnel"),
            ("rediss://a:1", "use stunnel"),
            ("tcp://", "tcp://host:port"),
            ("tcp://:6379", "tcp://host:port"),
            ("tcp://h:x", "tcp://host:port"),
            ("tcp://h:0", "tcp://host:port"),
            ("tcp://h:65536", "tcp://host:port"),
            ("tcp://u:p@h", "tcp://host:port"),
            ("tcp://::1:6379", "tcp://host:port"),
            ("tcp://h#x?database=1", "tcp://host:port"),
            ("unix://run/redis.sock", "unix:///path"),
            ("tcp://h?database=x", "database=number"),
            ("tcp://h?database=-1", "database=number"),
            ("tcp://h?prefix[]=x", "prefix=text"),
            ("tcp://h?auth[]=a&auth[]=b&auth[]=c", "auth[]=user"),
            ("tcp://h?auth[user]=a", "auth[]=user"),
            ("tcp://h?auth=%ff", "auth=password"),
        ] {
            let problem = SavePath::parse(value.as_bytes()).unwrap_err();
            assert!(problem.contains(part), "{value}: {problem}");
        }
    }
}

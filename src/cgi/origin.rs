//! The site that a request comes from: the headers `Origin` (Fetch standard), `Sec-Fetch-Site` (Fetch Metadata) and, of
//! old browsers, `Referer`. A browser sends the session cookie with a form of another site too; no page can forge these.

use std::net::{Ipv4Addr, Ipv6Addr};

use super::{Method, Variables};
use crate::php::text::parse_digits;

/// An origin in lower case and without its scheme's default port, so that equal origins are equal text.
#[derive(Debug, Hash, PartialEq)]
pub struct Origin(String);

/// What the `Origin` of a request means for its response: pages of trusted origins may send requests and read
/// the answers (CORS protocol, Fetch standard).
#[derive(Debug)]
pub struct Cors<'t> {
    /// The trusted origin that the request comes from
    pub origin: Option<&'t Origin>,
    /// Whether any origin is trusted, so that responses differ by origin
    pub varies: bool,
}

impl<'t> Cors<'t> {
    pub fn new(variables: &Variables, trusted: &'t [Origin]) -> Cors<'t> {
        let sent = variables.meta("HTTP_ORIGIN").and_then(Origin::sent);
        Cors {
            origin: trusted
                .iter()
                .find(|trusted| Some(*trusted) == sent.as_ref()),
            varies: !trusted.is_empty(),
        }
    }

    /// Whether a browser asks if a page may send a request. It sends no cookie with this question.
    pub fn is_preflight(&self, variables: &Variables) -> bool {
        self.origin.is_some()
            && variables.method() == Method::Options
            && variables
                .meta("HTTP_ACCESS_CONTROL_REQUEST_METHOD")
                .is_some()
    }
}

/// The headers that say where a request comes from
const HEADERS: [&str; 3] = ["HTTP_SEC_FETCH_SITE", "HTTP_ORIGIN", "HTTP_REFERER"];

/// Whether the request comes from a page of another site that is not among `trusted`.
///
/// Browsers send `Sec-Fetch-Site` only over HTTPS and to localhost: without it, or with `none`, for a request that no page
/// made, `Origin` must match the requested host. Any other value than `same-origin` is another site, and so is a repeated
/// header, which no browser sends. Browsers before 2020 send neither header with a form, but `Referer`. A request with none
/// of the three does not come from a browser and is accepted.
pub fn is_another_site(variables: &Variables, trusted: &[Origin]) -> bool {
    if HEADERS.iter().any(|header| variables.is_repeated(header)) {
        return true;
    }
    if Cors::new(variables, trusted).origin.is_some() {
        return false;
    }
    let is_foreign = |origin: Option<Origin>| {
        !origin.is_some_and(|origin| origin.is_own(variables) || trusted.contains(&origin))
    };
    match (
        variables.meta("HTTP_SEC_FETCH_SITE"),
        variables.meta("HTTP_ORIGIN"),
    ) {
        (Some(b"same-origin"), _) | (Some(b"none"), None) => false,
        (Some(b"none") | None, Some(origin)) => is_foreign(Origin::sent(origin)),
        (None, None) => variables
            .meta("HTTP_REFERER")
            .is_some_and(|url| is_foreign(Origin::of_url(url))),
        _ => true,
    }
}

impl Origin {
    /// The origin in the header `Origin`. `None` if it is malformed, or `null`.
    fn sent(header: &[u8]) -> Option<Origin> {
        let (scheme, site) = str::from_utf8(header).ok()?.split_once("://")?;
        let scheme = scheme.to_ascii_lowercase();
        let default_port = match scheme.as_str() {
            "http" => "80",
            "https" => "443",
            _ => "",
        };
        let site = authority(site, default_port)?;
        Some(Origin(format!("{scheme}://{site}")))
    }

    /// The origin of the address in the header `Referer`. `None` if it has none.
    fn of_url(header: &[u8]) -> Option<Origin> {
        let start = header.windows(3).position(|bytes| bytes == b"://")? + 3;
        let is_end = |byte: &u8| matches!(byte, b'/' | b'?' | b'#');
        let length = header[start..].iter().position(is_end);
        Origin::sent(&header[..length.map_or(header.len(), |length| start + length)])
    }

    /// An origin of a setting, spelled as a browser sends it (URL standard, "host serializing"). `None` for
    /// one that no browser sends, such as one with a path, a `*` or letters beyond ASCII.
    pub fn of_setting(text: &str) -> Option<Origin> {
        let origin = Origin::sent(text.as_bytes())?;
        let (scheme, site) = origin.0.split_once("://")?;
        let (host, _) = host_and_port(site);
        if !matches!(scheme, "http" | "https") {
            return None;
        }
        let address = host
            .strip_prefix('[')
            .and_then(|host| host.strip_suffix(']'));
        match address {
            Some(address) => {
                let address = serialized(address.parse().ok()?);
                Some(Origin(origin.0.replace(host, &address)))
            }
            None => is_name(host).then_some(origin),
        }
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Whether it matches the requested host. The scheme is not compared, because a proxy may
    /// terminate TLS; for the same reason the default port may be 80 or 443.
    fn is_own(&self, variables: &Variables) -> bool {
        let host = variables
            .meta("HTTP_HOST")
            .or_else(|| variables.meta("SERVER_NAME"));
        let host = str::from_utf8(host.unwrap_or_default()).unwrap_or_default();
        let site = self.0.split_once("://").map(|(_, site)| site);
        site.is_some()
            && ["80", "443"]
                .iter()
                .any(|port| authority(host, port).as_deref() == site)
    }
}

/// Whether a browser sends `host` as it is. One that "ends in a number" (URL standard) is an IPv4
/// address, which browsers write with four decimal numbers.
fn is_name(host: &str) -> bool {
    // No name of DNS has a `_`, but one of a local network can.
    let is_valid = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'-' | b'_');
    let last = host
        .strip_suffix('.')
        .unwrap_or(host)
        .rsplit('.')
        .next()
        .unwrap_or_default();
    let is_number = match last.strip_prefix("0x") {
        Some(digits) => digits.bytes().all(|byte| byte.is_ascii_hexdigit()),
        None => !last.is_empty() && last.bytes().all(|byte| byte.is_ascii_digit()),
    };
    host.bytes().all(is_valid) && (!is_number || host.parse::<Ipv4Addr>().is_ok())
}

/// An address in brackets. Browsers write an IPv4-mapped one with hexadecimal digits.
fn serialized(address: Ipv6Addr) -> String {
    match (address.to_ipv4_mapped(), address.segments()) {
        (Some(_), [.., high, low]) => format!("[::ffff:{high:x}:{low:x}]"),
        _ => format!("[{address}]"),
    }
}

/// `host` or `host:port` in lower case and without the `default` port. `None` if it is malformed.
fn authority(text: &str, default: &str) -> Option<String> {
    let (host, port) = host_and_port(text);
    let is_address = host.starts_with('[') && host.ends_with(']');
    let is_host =
        !host.is_empty() && !host.contains(['/', ' ', '@']) && (is_address || !host.contains(':'));
    // A browser drops leading zeros.
    let is_port = |port: &str| !port.starts_with('0') && parse_digits::<u16>(port).is_some();
    if !is_host || !port.is_none_or(is_port) {
        return None;
    }
    let text = if port == Some(default) { host } else { text };
    Some(text.to_ascii_lowercase())
}

/// The parts of `host:port`; the port may be missing.
pub fn host_and_port(text: &str) -> (&str, Option<&str>) {
    match text.rsplit_once(':') {
        // Colons in brackets belong to an IPv6 address.
        Some((host, port)) if !port.ends_with(']') => (host, Some(port)),
        _ => (text, None),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_repeated_header_is_of_another_site_whatever_it_says() {
        let is_another_site = |pairs: &[(&str, &str)]| {
            let pairs = pairs
                .iter()
                .map(|(name, value)| (name.as_bytes(), value.as_bytes()));
            super::is_another_site(&Variables::of_parameters(pairs), &[])
        };
        for (name, value) in [
            ("HTTP_SEC_FETCH_SITE", "same-origin"),
            ("HTTP_ORIGIN", "http://school.example"),
            ("HTTP_REFERER", "http://school.example/"),
        ] {
            let host = ("HTTP_HOST", "school.example");
            assert!(!is_another_site(&[host, (name, value)]), "{name}");
            assert!(
                is_another_site(&[host, (name, value), (name, value)]),
                "{name}"
            );
        }
    }

    #[test]
    fn trusted_origins_are_spelled_as_browsers_do() {
        for (text, origin) in [
            ("https://menus.example", "https://menus.example"),
            ("HTTPS://Menus.Example:443", "https://menus.example"),
            ("http://menus.example:80", "http://menus.example"),
            ("https://menus.example:80", "https://menus.example:80"),
            ("http://localhost:65535", "http://localhost:65535"),
            (
                "https://xn--mens-1ra.example", "https://xn--mens-1ra.example",
            ),
            ("https://menus.example.", "https://menus.example."),
            ("https://2.example", "https://2.example"),
            ("http://My_NAS:8080", "http://my_nas:8080"),
            ("http://192.168.1.10:8080", "http://192.168.1.10:8080"),
            ("http://[::1]:80", "http://[::1]"),
            (
                "http://[2001:DB8:0:0:0:0:0:1]:8080", "http://[2001:db8::1]:8080",
            ),
            ("http://[::ffff:192.168.1.10]", "http://[::ffff:c0a8:10a]"),
        ] {
            let parsed = Origin::of_setting(text);
            assert_eq!(parsed, Some(Origin(origin.to_owned())), "{text}");
        }
        for text in [
            "", "*", "null", "menus.example", "://x", "https://", "https:///", "https://:443",
            "ftp://menus.example", "https://*.school.example", "https://menús.example",
            "https://menus%2eexample", "https://menus.example/", "https://menus.example?x",
            "https://menus.example#x", "https://a?x", "https://user@menus.example",
            "https://menus.example:", "https://menus.example:x", "https://menus.example:+1",
            "https://menus.example:0443", "https://menus.example:65536",
            "https://menus.example:1:2", "https://menus .example", "http://127.1",
            "http://0x7f.0.0.1", "http://127.0.0.0x1", "http://127.0.0.1.", "http://192.168.1.010",
            "http://256.1.1.1", "http://[::1", "http://::1", "http://[::1%25eth0]",
            "http://[1.2.3.4]", "http://[]", "http://[menus", "http://menus]",
        ] {
            assert_eq!(Origin::of_setting(text), None, "{text}");
        }
    }
}

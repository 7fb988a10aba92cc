//! The site that a write comes from: the headers `Origin` (Fetch standard) and `Sec-Fetch-Site`
//! (Fetch Metadata). A browser sends the session cookie also with a form of another site; a page
//! cannot forge these headers.

use crate::cgi::Request;

/// Whether the request comes from a page of another site that is not among `trusted`.
///
/// Browsers send `Sec-Fetch-Site` only over HTTPS and to localhost; without it `Origin` must match
/// the requested host. A request with neither header does not come from a browser and is accepted.
pub fn is_another_site(request: &Request, trusted: &[String]) -> bool {
    let origin = request.origin.and_then(|origin| normal(str::from_utf8(origin).ok()?));
    if origin.as_ref().is_some_and(|origin| trusted.contains(origin)) {
        return false;
    }
    match request.sec_fetch_site {
        Some(b"cross-site" | b"same-site") => true,
        Some(b"same-origin" | b"none") => false,
        _ => request.origin.is_some() && !origin.is_some_and(|origin| is_own(&origin, request)),
    }
}

/// Whether `origin` matches the requested host. The scheme is not compared, because a proxy may
/// terminate TLS; for the same reason the default port may be 80 or 443.
fn is_own(origin: &str, request: &Request) -> bool {
    let host = str::from_utf8(request.host.unwrap_or_default()).unwrap_or_default();
    let site = origin.split_once("://").map(|(_, site)| site);
    site.is_some() && ["", "80", "443"].iter().any(|port| authority(host, port).as_deref() == site)
}

/// An origin in lower case and without its scheme's default port, so that equal origins are equal
/// strings. `None` if it is malformed, or `null`.
pub fn normal(origin: &str) -> Option<String> {
    let (scheme, site) = origin.split_once("://")?;
    let scheme = scheme.to_ascii_lowercase();
    let default_port = match scheme.as_str() {
        "http" => "80",
        "https" => "443",
        _ => "",
    };
    Some(format!("{scheme}://{}", authority(site, default_port)?))
}

/// `host` or `host:port` in lower case and without the `default` port. `None` if it is malformed.
fn authority(text: &str, default: &str) -> Option<String> {
    let (host, port) = match text.rsplit_once(':') {
        // Colons in brackets belong to an IPv6 address.
        Some((host, port)) if !port.ends_with(']') => (host, Some(port)),
        _ => (text, None),
    };
    let is_address = host.starts_with('[') && host.ends_with(']');
    let is_host =
        !host.is_empty() && !host.contains(['/', ' ', '@']) && (is_address || !host.contains(':'));
    let is_port = |port: &str| !port.is_empty() && port.bytes().all(|byte| byte.is_ascii_digit());
    if !is_host || !port.is_none_or(is_port) {
        return None;
    }
    let text = if port == Some(default) { host } else { text };
    Some(text.to_ascii_lowercase())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cgi::Variables;

    #[test]
    fn only_requests_of_the_same_site_and_trusted_sites_are_accepted() {
        let trusted = [normal("https://Menus.example:443").unwrap()];
        for (site, origin, host, refused) in [
            ("", "", "school.example", false),
            ("same-origin", "https://evil.example", "school.example", false),
            ("none", "", "school.example", false),
            ("cross-site", "", "school.example", true),
            ("same-site", "https://school.example", "school.example", true),
            ("cross-site", "https://menus.example", "school.example", false),
            ("", "https://menus.example", "school.example", false),
            ("", "http://menus.example", "school.example", true),
            ("", "http://school.example", "School.example", false),
            ("", "https://school.example", "school.example:443", false),
            ("", "http://school.example:80", "school.example", false),
            ("", "http://school.example:8080", "school.example", true),
            ("", "http://school.example:8080", "school.example:8080", false),
            ("", "http://school.example.evil.example", "school.example", true),
            ("", "null", "school.example", true),
            ("", "null", "null", true),
            ("", "http://", "", true),
            ("", "http://menus.example:443", "school.example", true),
            ("", "https://menus.example:80", "school.example", true),
            ("", "https://menus.example:443", "school.example", false),
            ("", "http://school.example:8080:80", "school.example:8080", true),
            ("", "http://school.example:8080:80", "school.example", true),
            ("", "http://school.example:80:80", "school.example:80", true),
            ("", "http://school.example:", "school.example", true),
            ("", "http://school.example:443", "school.example", true),
            ("", "http://school.example:443", "school.example:443", false),
            ("", "https://school.example", "school.example:80", false),
            ("", "http://[::1]:8080", "[::1]:8080", false),
            ("", "http://[::1]", "[::1]:80", false),
            ("", "http://[::1]", "[::2]", true),
            ("", "http://school.example", "school.example:x:80", true),
            ("unknown", "http://evil.example", "school.example", true),
        ] {
            let variables = Variables::from_pairs([
                ("HTTP_SEC_FETCH_SITE", site),
                ("HTTP_ORIGIN", origin),
                ("HTTP_HOST", host),
            ]);
            let request = Request::from_variables(&variables).unwrap();
            let case = format!("{site} {origin} {host}");
            assert_eq!(is_another_site(&request, &trusted), refused, "{case}");
        }
    }
}

//! Which site a write comes from (the Fetch standard's `Origin`, Fetch Metadata's
//! `Sec-Fetch-Site`). A browser sends the session's cookie along with what another site
//! makes it post; these headers tell the two apart, and no page can forge them.

use crate::cgi::Request;

/// Whether the request comes from a page of another site that is not among `trusted`.
///
/// Browsers send `Sec-Fetch-Site` over HTTPS and to localhost only; elsewhere `Origin` must be
/// the host that was asked. Without either no browser sent it, and it passes.
pub fn is_another_site(request: &Request, trusted: &[String]) -> bool {
    let origin = request.origin.map(|origin| String::from_utf8_lossy(origin));
    let normal = origin.as_deref().and_then(normal);
    if normal.is_some_and(|origin| trusted.contains(&origin)) {
        return false;
    }
    match request.sec_fetch_site {
        Some(b"cross-site" | b"same-site") => true,
        Some(b"same-origin" | b"none") => false,
        _ => origin.is_some_and(|origin| {
            let host = String::from_utf8_lossy(request.host.unwrap_or_default());
            let own = authority(&host);
            own.is_empty()
                || origin.split_once("://").is_none_or(|(_, site)| authority(site) != own)
        }),
    }
}

/// An origin in the form in which two can be compared: lower case, without a default port.
/// `None` for what is no origin, `null` included.
pub fn normal(origin: &str) -> Option<String> {
    let (scheme, host) = origin.split_once("://")?;
    let host = authority(host);
    (!host.is_empty() && !host.contains(['/', ' ', '@']))
        .then(|| format!("{}://{host}", scheme.to_ascii_lowercase()))
}

/// Host and port, lower-cased. The port of either scheme counts as default: behind a proxy
/// that ends TLS the host's own scheme is not known.
fn authority(host: &str) -> String {
    let host = host.to_ascii_lowercase();
    let without_port = host.strip_suffix(":80").or(host.strip_suffix(":443"));
    without_port.map(str::to_owned).unwrap_or(host)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cgi::Variables;

    #[test]
    fn only_the_own_site_and_trusted_ones_pass() {
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
            ("unheard-of", "http://evil.example", "school.example", true),
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

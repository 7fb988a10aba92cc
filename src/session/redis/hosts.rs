//! The addresses of a host, without the name services of glibc: they are plug-ins (nsswitch.conf(5)), which a static
//! executable cannot rely on.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::path::Path;

use crate::sys::shared_file;
use crate::sys::waits::Waits;

/// The addresses of `host`: itself if it is an address, or its addresses in `/etc/hosts`.
pub fn addresses(host: &str, waits: Waits) -> Vec<IpAddr> {
    if let Ok(address) = host.parse() {
        return vec![address];
    }
    let hosts = shared_file::read_followed(Path::new("/etc/hosts"), waits);
    let hosts = hosts.map(|read| read.bytes).unwrap_or_default();
    let listed = listed(&String::from_utf8_lossy(&hosts), host);
    if listed.is_empty() && host.eq_ignore_ascii_case("localhost") {
        return vec![Ipv4Addr::LOCALHOST.into(), Ipv6Addr::LOCALHOST.into()];
    }
    listed
}

/// The addresses of `host` in the text of `/etc/hosts` (hosts(5)).
fn listed(hosts: &str, host: &str) -> Vec<IpAddr> {
    let entries = hosts.lines().filter_map(|line| {
        let mut fields = line.split('#').next()?.split_ascii_whitespace();
        let address = fields.next()?.parse().ok()?;
        fields
            .any(|name| name.eq_ignore_ascii_case(host))
            .then_some(address)
    });
    entries.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_found_in_etc_hosts() {
        let hosts = "127.0.0.1 localhost\n# 10.0.0.1 cache\n10.0.0.2\tcache.example cache # the cache\n\
                     ::1 localhost ip6-localhost\nx cache\n\n10.0.0.3 Cache\r\n10.0.0.4 mycache";
        for (host, addresses) in [
            ("localhost", ["127.0.0.1", "::1"].as_slice()),
            ("CACHE", &["10.0.0.2", "10.0.0.3"]),
            ("cache.example", &["10.0.0.2"]),
            ("10.0.0.2", &[]),
            ("the", &[]),
            ("", &[]),
        ] {
            let addresses: Vec<IpAddr> = addresses.iter().map(|ip| ip.parse().unwrap()).collect();
            assert_eq!(listed(hosts, host), addresses, "{host}");
        }
        assert_eq!(
            addresses("::1", Waits::ALWAYS),
            ["::1".parse::<IpAddr>().unwrap()]
        );
        assert!(!addresses("localhost", Waits::ALWAYS).is_empty());
    }
}

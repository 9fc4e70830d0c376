//! Which addresses are spoken to: a chart's source must not be a way to this machine or to a cloud's metadata.

use std::{
    net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr},
    str::FromStr,
    sync::Arc,
};

use ipnet::IpNet;
use reqwest::{
    Url,
    dns::{Addrs, Name, Resolve, Resolving},
    redirect::{Action, Attempt},
};

/// How often an answer may send on to another address.
const REDIRECTS: usize = 5;

/// Metadata services that are no link-local addresses: Azure, Alibaba Cloud, Oracle Cloud.
const METADATA: [Ipv4Addr; 3] =
    [Ipv4Addr::new(168, 63, 129, 16), Ipv4Addr::new(100, 100, 100, 200), Ipv4Addr::new(192, 0, 0, 192)];

/// The same over IPv6, by their leading 16-bit groups: AWS (instance, container and pod identity), Google Cloud.
const METADATA_V6: [[u16; 2]; 2] = [[0xfd00, 0x0ec2], [0xfd20, 0x00ce]];

/// Why an address is not spoken to. The text names a host and no more of an address, whose query may be a signature.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum Refusal {
    /// The host is, or its name leads to, an address of this machine, its links or a metadata service.
    #[error(
        "{host} is {address}, a loopback, link-local or metadata address; chartSources.allowedAddresses has to list it"
    )]
    Address { host: String, address: IpAddr },
    /// Neither HTTPS nor a registry that is spoken to over plain HTTP.
    #[error("{host} would be spoken to over {scheme}; only https is")]
    Scheme { host: String, scheme: String },
    /// It carries a user part.
    #[error("the address of {host} holds a user part")]
    User { host: String },
    /// It names no host.
    #[error("an address names no host")]
    NoHost,
    /// It goes on and on.
    #[error("more than {REDIRECTS} redirects, the last to {host}")]
    Redirects { host: String },
}

/// Which addresses may be spoken to.
#[derive(Clone, Debug)]
pub(crate) struct Guard {
    rule: Rule,
    plain_http: Arc<[String]>,
}

#[derive(Clone, Debug)]
enum Rule {
    /// The installation's own registry, which its administrator chose.
    Any,
    /// Nothing local but these.
    Outside(Arc<[IpNet]>),
}

impl Guard {
    /// Lets every address pass.
    pub(crate) fn any(plain_http: &[String]) -> Self {
        Self { rule: Rule::Any, plain_http: plain_http.into() }
    }

    /// Lets pass what is not local, and these addresses or networks.
    ///
    /// # Errors
    /// The entry that is neither an address nor a network.
    pub(crate) fn outside(plain_http: &[String], allowed: &[String]) -> Result<Self, String> {
        let stated = allowed.iter().map(|text| text.trim()).filter(|text| !text.is_empty());
        let nets: Vec<IpNet> = stated.map(network).collect::<Result<_, _>>()?;
        Ok(Self { rule: Rule::Outside(nets.into()), plain_http: plain_http.into() })
    }

    /// Whether a `host[:port]` is spoken to over plain HTTP.
    pub(crate) fn is_plain(&self, host: &str) -> bool {
        self.plain_http.iter().any(|plain| plain == host)
    }

    /// Whether this address may be asked at all. A name is judged again once it is resolved.
    pub(crate) fn admit(&self, url: &Url) -> Result<(), Refusal> {
        let host = host_of(url).ok_or(Refusal::NoHost)?;
        if !url.username().is_empty() || url.password().is_some() {
            return Err(Refusal::User { host });
        }
        let plain = url.scheme() == "http" && self.is_plain(&host);
        if url.scheme() != "https" && !plain {
            return Err(Refusal::Scheme { host, scheme: url.scheme().to_owned() });
        }
        // A connection to a literal address is made without asking the resolver.
        let literal = url.host_str().and_then(|text| text.trim_matches(['[', ']']).parse::<IpAddr>().ok());
        match literal.filter(|address| !self.allows(*address)) {
            Some(address) => Err(Refusal::Address { host, address }),
            None => Ok(()),
        }
    }

    /// What to do with a redirect: go there if it may be asked itself.
    pub(crate) fn redirect(&self, attempt: Attempt<'_>) -> Action {
        if attempt.previous().len() > REDIRECTS {
            let host = host_of(attempt.url()).unwrap_or_default();
            return attempt.error(Refusal::Redirects { host });
        }
        match self.admit(attempt.url()) {
            Ok(()) => attempt.follow(),
            Err(refusal) => attempt.error(refusal),
        }
    }

    fn allows(&self, address: IpAddr) -> bool {
        match &self.rule {
            Rule::Any => true,
            Rule::Outside(allowed) => {
                let listed = |net: &IpNet| net.contains(&address) || net.contains(&inner(address));
                !is_local(inner(address)) || allowed.iter().any(listed)
            }
        }
    }
}

impl Resolve for Guard {
    fn resolve(&self, name: Name) -> Resolving {
        let guard = self.clone();
        Box::pin(async move {
            let host = name.as_str().to_owned();
            let found: Vec<SocketAddr> = tokio::net::lookup_host((host.as_str(), 0)).await?.collect();
            let refused = found.iter().map(SocketAddr::ip).find(|address| !guard.allows(*address));
            let allowed: Vec<SocketAddr> = found.into_iter().filter(|found| guard.allows(found.ip())).collect();
            match (allowed.is_empty(), refused) {
                (true, Some(address)) => Err(Refusal::Address { host, address }.into()),
                (true, None) | (false, _) => Ok(Box::new(allowed.into_iter()) as Addrs),
            }
        })
    }
}

/// `host[:port]`, the port where the address states one.
pub(crate) fn host_of(url: &Url) -> Option<String> {
    let host = url.host_str()?;
    Some(url.port().map_or_else(|| host.to_owned(), |port| format!("{host}:{port}")))
}

fn network(text: &str) -> Result<IpNet, String> {
    IpNet::from_str(text)
        .or_else(|_| IpAddr::from_str(text).map(IpNet::from))
        .map_err(|_| format!("chartSources.allowedAddresses: {text:?} is neither an address nor a network"))
}

/// The IPv4 address within an IPv6 one that leads to it: mapped, compatible, NAT64 or 6to4.
fn inner(address: IpAddr) -> IpAddr {
    let IpAddr::V6(v6) = address else { return address };
    let groups = v6.segments();
    let v4 = |high: u16, low: u16| IpAddr::V4(Ipv4Addr::from_bits(u32::from(high) << 16 | u32::from(low)));
    match groups {
        [0, 0, 0, 0, 0, 0xffff, high, low] | [0x64, 0xff9b, 0, 0, 0, 0, high, low] | [0x2002, high, low, ..] => {
            v4(high, low)
        }
        [0, 0, 0, 0, 0, 0, high, low] if high != 0 => v4(high, low),
        _ => address,
    }
}

fn is_local(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(v4) => {
            // The whole of 0.0.0.0/8 means this machine to some systems.
            v4.is_loopback()
                || v4.is_link_local()
                || v4.octets()[0] == 0
                || v4.is_broadcast()
                || v4.is_multicast()
                || METADATA.contains(&v4)
        }
        IpAddr::V6(v6) => {
            v6 == Ipv6Addr::UNSPECIFIED
                || v6.is_loopback()
                || v6.is_unicast_link_local()
                || v6.is_multicast()
                || METADATA_V6.iter().any(|prefix| v6.segments().starts_with(prefix))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rstest::rstest;

    fn admit(guard: &Guard, url: &str) -> Result<(), Refusal> {
        guard.admit(&url.parse().unwrap())
    }

    #[rstest]
    #[case::loopback("127.0.0.1")]
    #[case::all_of_loopback("127.9.9.9")]
    #[case::this_machine("0.0.0.0")]
    #[case::ec2_metadata("169.254.169.254")]
    #[case::eks_pod_identity("169.254.170.23")]
    #[case::azure("168.63.129.16")]
    #[case::alibaba("100.100.100.200")]
    #[case::oracle("192.0.0.192")]
    #[case::in_decimal("2130706433")]
    #[case::in_octal("0177.0.0.1")]
    #[case::in_hex("0x7f.1")]
    #[case::v6_loopback("[::1]")]
    #[case::v6_unspecified("[::]")]
    #[case::v6_link_local("[fe80::1]")]
    #[case::v6_mapped("[::ffff:169.254.169.254]")]
    #[case::v6_compatible("[::127.0.0.1]")]
    #[case::nat64("[64:ff9b::a9fe:a9fe]")]
    #[case::six_to_four("[2002:7f00:1::]")]
    #[case::v6_ec2("[fd00:ec2::254]")]
    #[case::v6_pod_identity("[fd00:ec2::23]")]
    #[case::v6_google("[fd20:ce::254]")]
    #[case::multicast("224.0.0.1")]
    fn a_local_address_is_refused_however_it_is_written(#[case] host: &str) {
        let guard = Guard::outside(&[], &[]).unwrap();
        for path in ["", ":5000/v2/", "/index.yaml?a=b"] {
            let refused = admit(&guard, &format!("https://{host}{path}"));
            assert!(matches!(refused, Err(Refusal::Address { .. })), "{host}{path}: {refused:?}");
        }
        assert!(admit(&Guard::any(&[]), &format!("https://{host}/")).is_ok());
    }

    #[rstest]
    #[case::public("8.8.8.8")]
    #[case::private("10.245.0.1:5000")]
    #[case::shared("100.64.0.1")]
    #[case::private_172("172.16.0.1")]
    #[case::v6_private("[fd00:ec3::1]")]
    #[case::v6_public("[2600::1]")]
    #[case::name("charts.example.com")]
    fn any_other_address_passes(#[case] host: &str) {
        assert_eq!(admit(&Guard::outside(&[], &[]).unwrap(), &format!("https://{host}/")), Ok(()));
    }

    #[test]
    fn what_the_installation_lists_passes_as_address_or_network() {
        let listed = ["127.0.0.1".to_owned(), "fd00:ec2::/32".to_owned(), " ".to_owned()];
        let guard = Guard::outside(&[], &listed).unwrap();
        for host in ["127.0.0.1", "[::ffff:127.0.0.1]", "[fd00:ec2::254]"] {
            assert_eq!(admit(&guard, &format!("https://{host}/")), Ok(()), "{host}");
        }
        for host in ["127.0.0.2", "[::1]", "169.254.169.254"] {
            assert!(admit(&guard, &format!("https://{host}/")).is_err(), "{host}");
        }
        let error = Guard::outside(&[], &["localhost".to_owned()]).unwrap_err();
        assert!(error.contains("allowedAddresses: \"localhost\""), "{error}");
    }

    #[test]
    fn plain_http_goes_to_listed_hosts_only_and_nothing_else_is_spoken() {
        let guard = Guard::any(&["r.example.com:5000".to_owned()]);
        assert_eq!(admit(&guard, "http://r.example.com:5000/v2/"), Ok(()));
        for url in ["http://r.example.com/", "http://other.example.com:5000/", "ftp://r.example.com:5000/"] {
            assert!(matches!(admit(&guard, url), Err(Refusal::Scheme { .. })), "{url}");
        }
        let refused = admit(&guard, "https://u:hidden@r.example.com/hidden?hidden").unwrap_err();
        assert_eq!(refused.to_string(), "the address of r.example.com holds a user part");
        assert_eq!(admit(&guard, "file:///etc/passwd"), Err(Refusal::NoHost));
    }

    #[tokio::test]
    async fn a_name_that_leads_to_a_local_address_is_refused_once_it_is_resolved() {
        let guard = Guard::outside(&[], &[]).unwrap();
        assert_eq!(admit(&guard, "https://localhost/"), Ok(()), "a name alone says nothing");
        let Err(refused) = guard.resolve("localhost".parse().unwrap()).await else { panic!("it was resolved") };
        assert!(refused.downcast_ref::<Refusal>().is_some_and(|refusal| matches!(refusal, Refusal::Address { .. })));
        let allowed = Guard::outside(&[], &["127.0.0.0/8".to_owned(), "::1".to_owned()]).unwrap();
        assert!(allowed.resolve("localhost".parse().unwrap()).await.is_ok_and(|mut found| found.next().is_some()));
    }
}

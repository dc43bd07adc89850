//! Listener addresses, and which of them may be open without security.

use std::collections::HashMap;
use std::net::IpAddr;

use super::values::Values;
use super::{Config, key};

/// One `PLAINTEXT://host:port`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Endpoint {
    /// Host name or address; empty for every address of the machine.
    pub host: String,
    /// Port; 0 picks a free one.
    pub port: u16,
}

impl Endpoint {
    /// The host to bind to.
    pub fn bind_host(&self) -> &str {
        if self.host.is_empty() { "0.0.0.0" } else { &self.host }
    }
}

/// An address that cannot or may not be used.
#[derive(Debug, thiserror::Error)]
pub enum ListenerError {
    /// The list has no entry.
    #[error("expected at least one listener in {0}")]
    None(&'static str),
    /// Not a listener.
    #[error("expected PLAINTEXT://host:port in {key}, got {text:?}")]
    NotAListener {
        /// The configuration key that names it.
        key: &'static str,
        /// The entry of the list, as given.
        text: String,
    },
    /// A security protocol that does not exist yet.
    #[error("listener {text:?} in {key}: only PLAINTEXT is supported yet")]
    NotPlaintext {
        /// The configuration key that names it.
        key: &'static str,
        /// The entry of the list, as given.
        text: String,
    },
    /// A name where routes and ids need an address.
    #[error("expected an IP address in {key}, got {text:?}")]
    NotAnAddress {
        /// The configuration key that names it.
        key: &'static str,
        /// The value, as given.
        text: String,
    },
    /// Not a list of name servers.
    #[error("expected host:port;host:port in {key}, got {text:?}")]
    NotNameServers {
        /// The configuration key that names them.
        key: &'static str,
        /// The value, as given.
        text: String,
    },
    /// An open door to the network.
    #[error(
        "{key} {address} is reachable from other machines and has no security; \
         set allow.insecure.listeners=true to open it anyway"
    )]
    Insecure {
        /// The configuration key that names it.
        key: &'static str,
        /// Host or IP address, without a port.
        address: String,
    },
    /// Clients would be told an address they cannot connect to.
    #[error("{key} {address} is not an address clients can connect to; set {set}")]
    NotConnectable {
        /// The configuration key that names it.
        key: &'static str,
        /// Host or IP address, without a port.
        address: String,
        /// What to set.
        set: &'static str,
    },
    /// Two of the node's own doors on one port.
    #[error("{first} and {second} are both on port {port}; move one of them")]
    OnePort {
        /// The door that comes first.
        first: &'static str,
        /// The one that finds its port taken.
        second: &'static str,
        /// Their port.
        port: u16,
    },
    /// The VIP port would lie below the first port.
    #[error(
        "rocketmq.listenPort {0} leaves no room for the VIP port, which is two below it; \
         expected 3 to 65535, or 0 for free ports"
    )]
    NoVipPort(u16),
    /// One advertised address per listener.
    #[error("expected {expected} addresses in advertised.listeners, got {actual}")]
    AdvertisedCount {
        /// The listeners.
        expected: usize,
        /// The advertised ones.
        actual: usize,
    },
}

/// Reads a list of listeners.
pub fn parse(key: &'static str, text: &str) -> Result<Vec<Endpoint>, ListenerError> {
    let entries = super::key::list(text);
    if entries.is_empty() {
        return Err(ListenerError::None(key));
    }
    entries.into_iter().map(|entry| parse_one(key, entry)).collect()
}

fn parse_one(key: &'static str, text: &str) -> Result<Endpoint, ListenerError> {
    let not_a_listener = || ListenerError::NotAListener { key, text: text.to_owned() };
    let (protocol, address) = text.split_once("://").ok_or_else(not_a_listener)?;
    if !protocol.eq_ignore_ascii_case("PLAINTEXT") {
        return Err(ListenerError::NotPlaintext { key, text: text.to_owned() });
    }
    let (host, port) = address.rsplit_once(':').ok_or_else(not_a_listener)?;
    let host = host.strip_prefix('[').and_then(|host| host.strip_suffix(']')).unwrap_or(host);
    let port = port.parse().map_err(|_| not_a_listener())?;
    Ok(Endpoint { host: host.to_owned(), port })
}

/// Reads one IP address.
pub fn address(values: &Values, key: &'static str) -> Result<IpAddr, ListenerError> {
    let text = values.text(key).unwrap_or_default();
    text.parse().map_err(|_| ListenerError::NotAnAddress { key, text: text.to_owned() })
}

/// Refuses addresses beyond loopback, unless they are allowed by name, and unreachable ones.
pub fn check_exposure(config: &Config) -> Result<(), super::StartConfigError> {
    let allowed: bool = config.values.parse("allow.insecure.listeners")?;
    let kafka = config.listeners.iter().map(|endpoint| ("listeners", endpoint.bind_host()));
    let bind = config.rocketmq.bind_address.to_string();
    let http = config.http.0.to_string();
    for (key, host) in kafka.chain([("rocketmq.bindAddress", &*bind), ("http.host", &*http)]) {
        if !allowed && !is_loopback(host) {
            return Err(ListenerError::Insecure { key, address: host.to_owned() }.into());
        }
    }
    let shown = config.advertised.as_ref().unwrap_or(&config.listeners);
    if shown.len() != config.listeners.len() {
        let (expected, actual) = (config.listeners.len(), shown.len());
        return Err(ListenerError::AdvertisedCount { expected, actual }.into());
    }
    for endpoint in shown {
        if is_unspecified(endpoint.bind_host()) {
            let address = endpoint.bind_host().to_owned();
            let set = "advertised.listeners";
            return Err(ListenerError::NotConnectable { key: "listeners", address, set }.into());
        }
    }
    if config.rocketmq.broker_ip.is_unspecified() {
        let address = config.rocketmq.broker_ip.to_string();
        let (key, set) = ("rocketmq.brokerIP1", "it to this machine's address");
        return Err(ListenerError::NotConnectable { key, address, set }.into());
    }
    Ok(())
}

/// Refuses doors of the node that would be in each other's way: two on one port of one address.
pub fn check_ports(config: &Config) -> Result<(), ListenerError> {
    let rocketmq = &config.rocketmq;
    let vip = match rocketmq.listen_port {
        0 => 0,
        port @ 1..3 => return Err(ListenerError::NoVipPort(port)),
        port => port - 2,
    };
    let (bind, http) = (rocketmq.bind_address.to_string(), config.http.0.to_string());
    let kafka = config.listeners.iter();
    let mut doors: Vec<(&'static str, &str, u16)> =
        kafka.map(|endpoint| ("listeners", endpoint.bind_host(), endpoint.port)).collect();
    doors.extend([
        ("rocketmq.namesrvListenPort", &*bind, rocketmq.namesrv_port),
        ("rocketmq.listenPort", &*bind, rocketmq.listen_port),
        ("the VIP port of rocketmq.listenPort", &*bind, vip),
        ("http.port", &*http, config.http.1),
    ]);
    while let Some((second, host, port)) = doors.pop() {
        let same = |(_, other, taken): &&(_, &str, u16)| {
            *taken == port && (*other == host || is_unspecified(other) || is_unspecified(host))
        };
        if let Some((first, ..)) = doors.iter().find(same).filter(|_| port != 0) {
            return Err(ListenerError::OnePort { first, second, port });
        }
    }
    Ok(())
}

/// The name servers that clients shall ask; empty when none are set.
///
/// Errors: `NotNameServers`.
pub fn name_servers(values: &Values) -> Result<Vec<String>, ListenerError> {
    const KEY: &str = "rocketmq.namesrvAddr";
    let text = values.text(KEY).unwrap_or_default();
    let addresses = text.split(';').map(str::trim).filter(|address| !address.is_empty());
    let addresses: Vec<String> = addresses.map(str::to_owned).collect();
    let is_address = |address: &String| {
        let is_plain = |c: char| c.is_ascii_alphanumeric() || ".-_:[]".contains(c);
        address.rsplit_once(':').is_some_and(|(host, port)| {
            !host.is_empty()
                && host.chars().all(is_plain)
                && port.parse::<u16>().is_ok_and(|p| p > 0)
        })
    };
    if !addresses.iter().all(is_address) {
        return Err(ListenerError::NotNameServers { key: KEY, text: text.to_owned() });
    }
    Ok(addresses)
}

fn is_loopback(host: &str) -> bool {
    host.eq_ignore_ascii_case("localhost")
        || host.parse::<IpAddr>().is_ok_and(|address| address.is_loopback())
}

fn is_unspecified(host: &str) -> bool {
    host.parse::<IpAddr>().is_ok_and(|address| address.is_unspecified())
}

/// Reads `max.connections.per.ip.overrides`: `address:count` separated by commas.
///
/// Errors: what is wrong, for numbers in Java's words. Unlike Kafka it takes addresses only, so that
/// nobody waits for a name server.
pub fn overrides_per_address(text: &str) -> Result<HashMap<IpAddr, usize>, String> {
    let mut overrides = HashMap::new();
    for pair in key::list(text) {
        let Some((address, count)) = pair.rsplit_once(':') else {
            return Err(format!("begin 0, end -1, length {}", pair.len()));
        };
        let bare = address.strip_prefix('[').and_then(|rest| rest.strip_suffix(']'));
        let bare: IpAddr = bare.unwrap_or(address).parse().map_err(|_| {
            format!("expected an IP address before the last colon, got \"{address}\"")
        })?;
        let count: i32 =
            count.trim().parse().map_err(|_| format!("For input string: \"{count}\""))?;
        overrides.insert(bare.to_canonical(), usize::try_from(count).unwrap_or_default());
    }
    Ok(overrides)
}

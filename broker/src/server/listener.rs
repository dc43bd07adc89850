//! Listening sockets and the loop that accepts their connections, within bounds.

use std::collections::HashMap;
use std::fmt;
use std::future::Future;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use dashmap::DashMap;
use parking_lot::Mutex;
use tokio::net::{TcpListener, TcpStream, lookup_host};
use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::config::listener::overrides_per_address;
use crate::node::Node;

/// A bound that was raised is seen after so long even if nothing else happens.
const LOOK_AGAIN_AFTER: Duration = Duration::from_secs(1);

/// An address that cannot be listened on.
#[derive(Debug, thiserror::Error)]
#[error("cannot listen on {host}:{port} ({what}): {source}; {advice}")]
pub struct BindError {
    /// What would be served there.
    pub what: &'static str,
    /// The host.
    pub host: String,
    /// The port.
    pub port: u16,
    /// What the system says.
    pub source: std::io::Error,
    /// Which option moves it.
    pub advice: String,
}

/// Binds `host:port` for `what`; `option` is the key that moves it.
pub async fn bind(
    what: &'static str,
    host: &str,
    port: u16,
    option: &str,
) -> Result<TcpListener, BindError> {
    let bound = async {
        let addresses = lookup_host((host, port)).await?.collect::<Vec<_>>();
        TcpListener::bind(&addresses[..]).await
    };
    bound.await.map_err(|source| {
        let advice = match source.kind() {
            std::io::ErrorKind::AddrInUse => format!("the port is taken: move it with {option}"),
            _ => format!("set another address with {option}"),
        };
        BindError { what, host: host.to_owned(), port, source, advice }
    })
}

/// How many connections there may be at once, and how many new ones a second.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Bounds {
    /// In all.
    pub all: usize,
    /// From one address.
    pub per_address: usize,
    /// From these addresses.
    pub of_addresses: Arc<HashMap<IpAddr, usize>>,
    /// New ones a second; see [`CreationRate`].
    pub new_per_second: u32,
}

impl Bounds {
    /// Without a bound of how fast they come.
    pub fn new(all: usize, per_address: usize) -> Self {
        Self { all, per_address, of_addresses: Arc::default(), new_per_second: u32::MAX }
    }

    fn of(&self, address: IpAddr) -> usize {
        // What comes over IPv6 from an IPv4 address is that address.
        self.of_addresses.get(&address.to_canonical()).copied().unwrap_or(self.per_address)
    }
}

/// Counts connections against bounds that may change.
pub struct ConnectionLimits {
    bounds: Box<dyn Fn() -> Bounds + Send + Sync>,
    all: AtomicUsize,
    per_address: DashMap<IpAddr, usize>,
    rate: Mutex<CreationRate>,
    /// Rung when a connection has ended.
    ended: Notify,
}

impl fmt::Debug for ConnectionLimits {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let all = self.all.load(Ordering::Relaxed);
        f.debug_struct("ConnectionLimits").field("all", &all).finish_non_exhaustive()
    }
}

impl ConnectionLimits {
    /// Counts against what `bounds` says whenever somebody comes.
    pub fn new(bounds: impl Fn() -> Bounds + Send + Sync + 'static) -> Arc<Self> {
        Arc::new(Self {
            bounds: Box::new(bounds),
            all: AtomicUsize::new(0),
            per_address: DashMap::new(),
            rate: Mutex::default(),
            ended: Notify::new(),
        })
    }

    /// What `max.connections`, `max.connections.per.ip`, its overrides and
    /// `max.connection.creation.rate` say at that moment, `all_max` at most.
    pub fn of_kafka(node: Arc<Node>, all_max: usize) -> Arc<Self> {
        let read = Mutex::new((String::new(), Arc::default()));
        Self::new(move || {
            let image = node.controller.image();
            let values = image.values();
            // Values were checked when they were set.
            let bound = |key| values.parse(key).unwrap_or(usize::MAX);
            let text = values.text("max.connections.per.ip.overrides").unwrap_or_default();
            let mut read = read.lock();
            if read.0 != text {
                *read = (text.to_owned(), overrides_per_address(text).unwrap_or_default().into());
            }
            Bounds {
                all: bound("max.connections").min(all_max),
                per_address: bound("max.connections.per.ip"),
                of_addresses: read.1.clone(),
                new_per_second: values.parse("max.connection.creation.rate").unwrap_or(u32::MAX),
            }
        })
    }

    /// Waits until another connection may come, by the rate at that moment.
    async fn pace(&self) {
        loop {
            let per_second = (self.bounds)().new_per_second;
            let wait = self.rate.lock().wait(per_second, Instant::now());
            if wait.is_zero() {
                return;
            }
            tokio::time::sleep(wait.min(LOOK_AGAIN_AFTER)).await;
        }
    }

    /// Waits until there is room for one more, which is counted until what it returns is dropped.
    async fn place(self: &Arc<Self>) -> Place {
        loop {
            let ended = self.ended.notified();
            tokio::pin!(ended);
            ended.as_mut().enable();
            let max = (self.bounds)().all;
            let entered = self.all.fetch_update(Ordering::AcqRel, Ordering::Acquire, |count| {
                (count < max).then_some(count + 1)
            });
            if entered.is_ok() {
                return Place(self.clone());
            }
            // Whether it rang or the time is over, the count is looked at again.
            let _ = tokio::time::timeout(LOOK_AGAIN_AFTER, ended).await;
        }
    }

    /// Counts a connection from `address`, until what it returns is dropped; `None` when there are
    /// too many from there.
    fn enter(self: &Arc<Self>, address: IpAddr) -> Option<AddressPlace> {
        let mut count = self.per_address.entry(address).or_default();
        if *count >= (self.bounds)().of(address) {
            return None;
        }
        *count += 1;
        Some(AddressPlace { limits: self.clone(), address })
    }
}

/// Lets connections come at a rate, and for ten seconds' worth of it at once when none came for so
/// long: Kafka measures over that time (`quota.window.num`).
#[derive(Debug, Default)]
struct CreationRate {
    /// When all that came would have come at the rate.
    paid_until: Option<Instant>,
}

impl CreationRate {
    /// How long the next one has to wait; zero when it may come, which is counted.
    fn wait(&mut self, per_second: u32, now: Instant) -> Duration {
        const AT_ONCE: Duration = Duration::from_secs(10);
        if per_second == u32::MAX {
            self.paid_until = None;
            return Duration::ZERO;
        }
        let from = self.paid_until.map_or(now, |until| until.max(now));
        let until = from + Duration::from_secs(1) / per_second.max(1);
        let wait = until.saturating_duration_since(now + AT_ONCE);
        if wait.is_zero() {
            self.paid_until = Some(until);
        }
        wait
    }
}

/// One connection, counted with all.
struct Place(Arc<ConnectionLimits>);

impl Drop for Place {
    fn drop(&mut self) {
        self.0.all.fetch_sub(1, Ordering::AcqRel);
        self.0.ended.notify_waiters();
    }
}

/// One connection, counted with those of its address.
struct AddressPlace {
    limits: Arc<ConnectionLimits>,
    address: IpAddr,
}

impl Drop for AddressPlace {
    fn drop(&mut self) {
        if let Some(mut count) = self.limits.per_address.get_mut(&self.address) {
            *count = count.saturating_sub(1);
        }
        self.limits.per_address.remove_if(&self.address, |_, count| *count == 0);
    }
}

/// When a node stops.
#[derive(Clone, Debug, Default)]
pub struct Stop {
    /// Nothing new is begun any more; what was begun is answered.
    pub begun: CancellationToken,
    /// What has not ended by then is cut off.
    pub over: CancellationToken,
}

/// Accepts connections until the node stops, each served by its own task under `tasks`.
///
/// At the bound of all connections the next one waits; beyond the bound of one address its
/// connection is closed (`max.connections`, `max.connections.per.ip`). Faster than
/// `max.connection.creation.rate` nobody is served.
pub async fn accept<F>(
    listener: TcpListener,
    limits: Arc<ConnectionLimits>,
    stop: Stop,
    tasks: TaskTracker,
    serve: impl Fn(TcpStream, SocketAddr) -> F,
) where
    F: Future<Output = ()> + Send + 'static,
{
    /// Out of descriptors, most likely: some will come free.
    const PAUSE_AFTER_ERROR: Duration = Duration::from_millis(50);
    loop {
        let accepted = tokio::select! {
            () = stop.begun.cancelled() => return,
            accepted = listener.accept() => accepted,
        };
        let (socket, peer) = match accepted {
            Ok(accepted) => accepted,
            Err(error) => {
                tracing::warn!(%error, "cannot accept a connection");
                tokio::time::sleep(PAUSE_AFTER_ERROR).await;
                continue;
            }
        };
        let Some(address) = limits.enter(peer.ip()) else {
            tracing::debug!(%peer, "closed: too many connections from this address");
            continue;
        };
        // Nobody else is accepted meanwhile; the others wait in the system's queue.
        let place = tokio::select! {
            () = stop.begun.cancelled() => return,
            place = limits.place() => place,
        };
        tokio::select! {
            () = stop.begun.cancelled() => return,
            () = limits.pace() => {}
        }
        // Boxed before it is taken along: a future that holds another by value has room for it twice.
        let (served, over) = (Box::pin(serve(socket, peer)), stop.over.clone());
        tasks.spawn(async move {
            tokio::select! {
                () = served => {}
                () = over.cancelled() => tracing::debug!(%peer, "cut off: the node has stopped"),
            }
            drop((place, address));
        });
    }
}

#[cfg(test)]
mod tests;

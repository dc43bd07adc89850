//! Listening sockets and the loop that accepts their connections, within bounds.

use std::future::Future;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use dashmap::DashMap;
use tokio::net::{TcpListener, TcpStream, lookup_host};
use tokio::sync::Semaphore;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

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

/// How many connections there may be.
#[derive(Debug)]
pub struct ConnectionLimits {
    all: Arc<Semaphore>,
    per_address_max: usize,
    per_address: DashMap<IpAddr, usize>,
}

impl ConnectionLimits {
    /// At most `all` connections, and `per_address` from one address.
    pub fn new(all: i32, per_address: i32) -> Arc<Self> {
        let bound = |max: i32| usize::try_from(max).unwrap_or_default();
        Arc::new(Self {
            all: Arc::new(Semaphore::new(bound(all).min(Semaphore::MAX_PERMITS))),
            per_address_max: bound(per_address),
            per_address: DashMap::new(),
        })
    }

    /// Counts a connection from `address`, until what it returns is dropped; `None` when there are
    /// too many from there.
    fn enter(self: &Arc<Self>, address: IpAddr) -> Option<AddressPlace> {
        let mut count = self.per_address.entry(address).or_default();
        if *count >= self.per_address_max {
            return None;
        }
        *count += 1;
        Some(AddressPlace { limits: self.clone(), address })
    }
}

/// One counted connection.
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

/// Accepts connections until `stopping`, each served by its own task under `tasks`.
///
/// At the bound of all connections nothing more is accepted; beyond the bound of one address its
/// connection is closed (`max.connections`, `max.connections.per.ip`).
pub async fn accept<F>(
    listener: TcpListener,
    limits: Arc<ConnectionLimits>,
    stopping: CancellationToken,
    tasks: TaskTracker,
    serve: impl Fn(TcpStream, SocketAddr) -> F,
) where
    F: Future<Output = ()> + Send + 'static,
{
    /// Out of descriptors, most likely: some will come free.
    const PAUSE_AFTER_ERROR: Duration = Duration::from_millis(50);
    loop {
        let next = async {
            let place = limits.all.clone().acquire_owned().await;
            (place, listener.accept().await)
        };
        let (place, accepted) = tokio::select! {
            () = stopping.cancelled() => return,
            next = next => next,
        };
        let (Ok(place), accepted) = (place, accepted) else { return };
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
        let served = serve(socket, peer);
        tasks.spawn(async move {
            served.await;
            drop((place, address));
        });
    }
}

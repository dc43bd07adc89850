//! Metrics that Kafka's clients push (KIP-714): who is asked for what, and what they sent last.
//!
//! ```text
//! get ─▶ the client's instance id, what is asked of it (subscription id) and how often
//! push ─▶ refused: too early, another subscription, too large … ; taken: shown on the HTTP port
//! ```
//!
//! Served only with `telemetry.receiver=metrics`. A client is known while its connection lives and it is heard of;
//! what it sent is shown as long, and for a while longer. Source: ClientMetricsManager, ClientMetricsInstance.

mod clients;
mod otlp;
mod received;
pub mod subscriptions;

use std::fmt;
use std::sync::{Arc, OnceLock};

use duolog_log_core::record::{Compression, RecordError};
use parking_lot::Mutex;

use self::clients::Clients;
pub use self::clients::{Got, Refusal};
use self::otlp::Sample;
use self::received::Received;
use self::subscriptions::{Attributes, Subscriptions};
use crate::clock;
use crate::heavy::BatchReading;
use crate::kafka::codec::{Str, Uuid};
use crate::limits::TELEMETRY_SAMPLES_MAX;

/// What is known of the other end of a Kafka connection beyond its address.
#[derive(Debug, Default)]
pub struct ClientConnection {
    /// Name and version of its software, once it has said so (KIP-511).
    software: OnceLock<(Str, Str)>,
    /// The client that was first heard of here.
    client: OnceLock<Uuid>,
}

impl ClientConnection {
    /// Notes what software the client says it is; the first word counts.
    pub fn set_software(&self, name: Str, version: Str) {
        // It may have said so before.
        let _ = self.software.set((name, version));
    }

    /// Name and version of the client's software.
    pub fn software(&self) -> Option<&(Str, Str)> {
        self.software.get()
    }
}

/// A push.
#[derive(Debug)]
pub struct Push {
    /// The client's instance id.
    pub client: Uuid,
    /// What it believes to be asked for.
    pub subscription: i32,
    /// It is its last one.
    pub terminating: bool,
    /// The codec's number.
    pub compression: i8,
    /// `MetricsData`, compressed.
    pub metrics: bytes::Bytes,
}

/// See the module.
#[derive(Debug)]
pub struct Telemetry {
    max_bytes: i32,
    clients: Mutex<Clients>,
    received: Mutex<Received>,
}

impl Telemetry {
    /// With `telemetry.max.bytes`.
    pub fn new(max_bytes: i32) -> Self {
        Self { max_bytes, clients: Mutex::default(), received: Mutex::default() }
    }

    /// The largest push, compressed.
    pub fn max_bytes(&self) -> i32 {
        self.max_bytes
    }

    /// What a client is asked for; `new` is its id if it has none yet.
    pub fn get(
        &self,
        subscriptions: &Arc<Subscriptions>,
        attributes: Attributes,
        connection: &ClientConnection,
        client: Uuid,
    ) -> Result<Got, Refusal> {
        let now = clock::tick_ms();
        let mut clients = self.clients.lock();
        let known = clients.know(subscriptions, client, attributes, now);
        if known.is_new {
            // A connection is that of one client.
            let _ = connection.client.set(client);
        }
        clients.get(client, now)
    }

    /// Takes a push, or says why not.
    pub async fn push(
        &self,
        subscriptions: &Arc<Subscriptions>,
        attributes: Attributes,
        connection: &ClientConnection,
        reading: &BatchReading,
        push: Push,
    ) -> Result<(), Refusal> {
        let now = clock::tick_ms();
        let interval_ms = {
            let mut clients = self.clients.lock();
            let known = clients.know(subscriptions, push.client, attributes.clone(), now);
            if known.is_new {
                let _ = connection.client.set(push.client);
            }
            clients.push(&push, self.max_bytes, now)?
        };
        if push.metrics.is_empty() {
            return Ok(());
        }
        let compression = u8::try_from(push.compression).unwrap_or(u8::MAX);
        let compression =
            Compression::from_id(compression).map_err(|_| Refusal::UnsupportedCompression)?;
        let (samples, left_out) = self.read(reading, compression, push.metrics).await?;
        let client = push.client;
        self.received.lock().take(client, &attributes, samples, left_out, interval_ms, now);
        Ok(())
    }

    async fn read(
        &self,
        reading: &BatchReading,
        compression: Compression,
        metrics: bytes::Bytes,
    ) -> Result<(Vec<Sample>, u64), Refusal> {
        let shared = metrics.clone();
        let read = reading.read(&metrics, move |decompressor, limit| {
            let plain = decompressor.decompress(compression, &shared, limit)?;
            Ok::<_, RecordError>(otlp::read(plain, TELEMETRY_SAMPLES_MAX))
        });
        match read.await {
            Ok(Ok(samples)) => Ok(samples),
            Ok(Err(error)) => Err(Refusal::Unreadable(error.to_string())),
            Err(error) => Err(Refusal::Unreadable(error.to_string())),
        }
    }

    /// A connection has ended, and with it what was known of its client.
    pub fn disconnected(&self, connection: &ClientConnection) {
        if let Some(client) = connection.client.get() {
            self.clients.lock().forget(*client);
        }
    }

    /// Writes what clients sent as Prometheus text.
    pub fn render(&self, out: &mut String) -> fmt::Result {
        self.received.lock().render(out, clock::tick_ms())
    }
}

/// Pushes for tests.
#[cfg(test)]
pub(crate) mod testing {
    pub(crate) use super::otlp::tests::gauge;
}

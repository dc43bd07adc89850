//! Transaction coordinators, as one kind of coordinator.

use std::sync::{Arc, Weak};

use duolog_coordinator::txn::kafka::config::TxnConfig;
use duolog_coordinator::txn::kafka::error::TxnError;
use duolog_coordinator::txn::kafka::response::Notice;
use duolog_coordinator::txn::kafka::shard::TxnShard;
use duolog_log_core::event::Events;

use super::Transactions;
use crate::config::Config;
use crate::controller::{Controller, names};
use crate::coordinators::env::Env;
use crate::coordinators::kind::Kind;
use crate::partitions::Partitions;

/// Transaction coordinators.
pub(super) struct Transactional {
    env: Env,
    config: TxnConfig,
    partitions: Arc<Partitions>,
    /// Who writes the markers.
    writer: Weak<Transactions>,
}

impl Transactional {
    pub(super) fn new(
        config: &Config,
        controller: Arc<Controller>,
        partitions: Arc<Partitions>,
        events: Arc<Events>,
        writer: Weak<Transactions>,
    ) -> Self {
        Self { env: Env::new(controller, events), config: txn_config(config), partitions, writer }
    }
}

impl Kind for Transactional {
    type Machine = TxnShard;
    type Memory = ();
    const TOPIC: &'static str = names::TRANSACTIONS_TOPIC;
    const CONTENT: &'static str = "transactions";

    fn env(&self) -> &Env {
        &self.env
    }

    fn machine(&self) -> TxnShard {
        let epoch = self.partitions.shared().leader_epoch().0;
        TxnShard::new(self.config, epoch, self.env.events.clone())
    }

    fn loading() -> TxnError {
        TxnError::CoordinatorLoadInProgress
    }

    fn tell(&self, _: i32, notice: Notice, (): &mut ()) {
        let Notice::WriteMarkers(markers) = notice;
        if let Some(writer) = self.writer.upgrade() {
            self.env.handle.spawn(writer.complete(markers));
        }
    }
}

/// The node's settings in the coordinators' terms.
fn txn_config(config: &Config) -> TxnConfig {
    let transactions = &config.transactions;
    TxnConfig {
        timeout_max_ms: transactions.timeout_max_ms,
        abort_interval_ms: transactions.abort_interval_ms,
        id_expiration_ms: transactions.id_expiration_ms,
        expiration_interval_ms: transactions.expiration_interval_ms,
    }
}

#[cfg(test)]
mod tests;

//! Coordinators of half messages, as one kind of coordinator.

use std::sync::{Arc, OnceLock, Weak};

use duolog_coordinator::delivery::StoredMessage;
use duolog_coordinator::txn::rocketmq::check_back::CheckConfig;
use duolog_coordinator::txn::rocketmq::error::HalfError;
use duolog_coordinator::txn::rocketmq::event::Notice;
use duolog_coordinator::txn::rocketmq::shard::HalfShard;
use duolog_log_core::event::EventKind;
use duolog_log_core::gate::GatePoint;

use super::CheckSink;
use crate::controller::names;
use crate::coordinators::courier::{Carries, Courier};
use crate::coordinators::env::Env;
use crate::coordinators::kind::Kind;
use crate::partitions::append::Flush;

/// Coordinators of half messages.
pub(super) struct Prepared {
    env: Env,
    flush: Flush,
    config: CheckConfig,
    checks: Arc<OnceLock<Arc<dyn CheckSink>>>,
    courier: Weak<Courier<Self>>,
}

impl Prepared {
    pub(super) fn new(
        env: Env,
        flush: Flush,
        config: CheckConfig,
        checks: Arc<OnceLock<Arc<dyn CheckSink>>>,
        courier: Weak<Courier<Self>>,
    ) -> Self {
        Self { env, flush, config, checks, courier }
    }
}

impl Kind for Prepared {
    type Machine = HalfShard;
    type Memory = ();
    const TOPIC: &'static str = names::HALF_TOPIC;
    const CONTENT: &'static str = "half messages";

    fn env(&self) -> &Env {
        &self.env
    }

    fn machine(&self) -> HalfShard {
        HalfShard::new(self.config)
    }

    fn loading() -> HalfError {
        HalfError::Loading
    }

    fn flush(&self) -> Flush {
        self.flush
    }

    fn tell(&self, index: i32, notice: Notice, (): &mut ()) {
        match notice {
            Notice::Round => {
                if let Some(checks) = self.checks.get() {
                    checks.round(index);
                }
            }
            Notice::Deliver(target) => {
                if let Some(courier) = self.courier.upgrade() {
                    courier.deliver(index, target);
                }
            }
            Notice::Trim(offset) => {
                if let Some(courier) = self.courier.upgrade() {
                    courier.trim(index, offset);
                }
            }
        }
    }
}

impl Carries for Prepared {
    const GATE: GatePoint = GatePoint::HalfDeliver;
    const EVENT: EventKind = EventKind::HalfDeliver;

    /// Its producer made it when it was sent.
    fn timestamp_ms(message: &StoredMessage, _now_ms: i64) -> i64 {
        message.timestamp_ms
    }
}

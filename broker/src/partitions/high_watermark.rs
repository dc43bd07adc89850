//! The gate `hw.advance.before`: while it holds, the log grows and is acknowledged to whoever asked for no
//! more than the leader, but readers and `acks=all` see the high watermark where it was.
//!
//! ```text
//! free ──the HW rises, a gate is armed──▶ held at the old HW ──let go──▶ free, or held further on
//! ```
//!
//! A rise that a gate drops or fails is not seen before the next one.

use std::sync::Arc;

use duolog_log_core::event::EventKind;
use duolog_log_core::gate::GatePoint;
use duolog_log_core::ids::Offset;
use duolog_log_core::replication::effect::Effect;

use super::Partition;
use super::task::{Command, Owner};
use crate::instruments::Passage;

/// How far others may see the high watermark.
#[derive(Debug, Default)]
pub(super) struct HighWatermarkGate {
    held_at: Option<Offset>,
}

impl HighWatermarkGate {
    /// Nobody sees the HW or the LSO beyond this.
    pub(super) fn limit(&self) -> Offset {
        self.held_at.unwrap_or(Offset(i64::MAX))
    }

    /// Whether `effect` has not happened for others yet.
    pub(super) fn hides(&self, effect: &Effect) -> bool {
        match effect {
            Effect::HighWatermarkAdvanced { to, .. }
            | Effect::LastStableOffsetAdvanced { to, .. } => *to > self.limit(),
            Effect::LeaderElected { .. }
            | Effect::ProposeIsr(_)
            | Effect::IsrChanged { .. }
            | Effect::RaiseLogStart { .. }
            | Effect::Truncated { .. } => false,
        }
    }
}

impl Owner {
    /// Asks the gate whether others may see that the high watermark has risen from `from`.
    pub(super) fn hold_high_watermark(&mut self, partition: &Arc<Partition>, from: Offset) {
        let to = self.replica.high_watermark();
        if to == from {
            return;
        }
        if partition.shared.instruments.gates.is_idle() {
            self.watermark.held_at = None;
            return;
        }
        self.watermark.held_at.get_or_insert(from);
        let held = partition.clone();
        partition.shared.runtime.spawn(async move {
            if held.gate(GatePoint::HighWatermarkBefore, to.0).await == Passage::Go {
                held.command(Command::HighWatermarkFree(to));
            }
        });
    }

    /// The gate lets others see the high watermark at `to`.
    pub(super) fn high_watermark_free(&mut self, partition: &Partition, to: Offset) {
        if self.watermark.held_at.is_none_or(|held_at| to <= held_at) {
            return;
        }
        self.watermark.held_at = Some(to).filter(|to| *to < self.replica.high_watermark());
        partition.emit(EventKind::HighWatermarkAdvanced, Some(to.0), None);
        let stable = self.replica.last_stable_offset().min(to);
        if stable.0 > partition.offsets().last_stable {
            partition.emit(EventKind::LastStableOffsetAdvanced, Some(stable.0), None);
        }
        self.publish(partition);
        self.settle();
    }
}

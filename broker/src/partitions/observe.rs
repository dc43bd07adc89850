//! What a partition tells those who watch it: gates, events, counters.

use std::sync::Arc;

use duolog_log_core::event::{Event, EventKind};
use duolog_log_core::gate::{GatePoint, GateSubject};
use duolog_log_core::ids::Offset;
use duolog_log_core::log::Appended;
use duolog_log_core::replication::effect::Effect;

use super::Partition;
use crate::clock;
use crate::controller::names;
use crate::instruments::Passage;

impl Partition {
    pub(super) async fn gate(&self, point: GatePoint, offset: i64) -> Passage {
        let subject = GateSubject {
            topic: Some(&self.topic),
            partition: Some(self.index),
            offset: Some(Offset(offset)),
            client: None,
        };
        self.shared.instruments.pass(point, subject).await
    }

    /// Whether anybody listens to events.
    pub(super) fn is_heard(&self) -> bool {
        self.shared.instruments.events.is_listening()
    }

    pub(super) fn emit(&self, kind: EventKind, offset: Option<i64>, cause: Option<&str>) {
        self.shared.instruments.events.emit(|| {
            let mut event = Event::new(kind, clock::now_ms()).at(&self.topic, self.index);
            event.offset = offset.map(Offset);
            event.cause = cause.map(Arc::from);
            event.epoch(self.shared.leader_epoch())
        });
    }

    /// Tells what a replica's effect means to those who watch.
    pub(super) fn tell(&self, effect: &Effect) {
        match effect {
            Effect::LeaderElected { start_offset, .. } => {
                self.emit(EventKind::LeaderElect, Some(start_offset.0), None);
            }
            Effect::HighWatermarkAdvanced { to, .. } => {
                self.emit(EventKind::HighWatermarkAdvanced, Some(to.0), None);
            }
            Effect::LastStableOffsetAdvanced { to, .. } => {
                self.emit(EventKind::LastStableOffsetAdvanced, Some(to.0), None);
            }
            Effect::Truncated { log_end_offset } => {
                self.emit(EventKind::LogTruncate, Some(log_end_offset.0), None);
            }
            // The only replica is the whole ISR, and follows nobody.
            Effect::ProposeIsr(_) | Effect::IsrChanged { .. } | Effect::RaiseLogStart { .. } => {}
        }
    }

    pub(super) fn count_appended(&self, appended: &Appended, bytes: usize) {
        if !names::is_own(&self.topic) {
            let records = appended.last_offset - appended.base_offset + 1;
            self.shared.metrics.records_in.add(u64::try_from(records).unwrap_or_default());
            self.shared.metrics.bytes_in.add(bytes as u64);
        }
        self.published.add_bytes(bytes as u64);
        self.emit(EventKind::ProduceAppended, Some(appended.last_offset), None);
    }
}

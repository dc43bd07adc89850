//! Time: transactions that last too long, ids that nobody uses any more.

use duolog_log_core::event::EventKind;

use super::init::fenced;
use super::{Outcome, TxnShard};
use crate::record::transaction::{Record, TransactionalId, TxnState, TxnValue};
use crate::shard::TimerChange;
use crate::time::Now;
use crate::txn::kafka::event::{Event, Timer};

impl TxnShard {
    /// Aborts a transaction under a higher epoch, so that its producer learns of it.
    pub(super) fn timed_out(&mut self, id: &TransactionalId, now: Now, out: &mut Outcome) {
        let Some(value) = self.ids.get(id) else { return };
        if value.state != TxnState::Ongoing {
            return;
        }
        let aborted = fenced(value, now);
        self.causes.insert(id.clone(), "timed out");
        self.tell(EventKind::TxnFence, id, now, "timed out");
        self.store(id, aborted, now, out);
        // Should the log refuse, the next look is as Kafka's.
        let again = now.after(self.config.abort_interval_ms.max(1));
        out.timers.push(TimerChange::Set(Timer::Timeout(id.clone()), again));
    }

    pub(super) fn look_for_expired(&mut self, now: Now, out: &mut Outcome) {
        let expired = self.ids.iter().filter(|(_, value)| self.is_expired(value, now));
        out.follow_ups.extend(expired.map(|(id, _)| (None, Event::Expire(id.clone()))));
        self.looks_for_expired = false;
        if !self.ids.is_empty() {
            self.begin_to_look_for_expired(now, out);
        }
    }

    pub(super) fn expire(&mut self, id: &TransactionalId, now: Now, out: &mut Outcome) {
        if self.ids.get(id).is_some_and(|value| self.is_expired(value, now)) {
            self.last_epochs.remove(id);
            out.records.push(Record { id: id.clone(), value: None });
        }
    }

    fn is_expired(&self, value: &TxnValue, now: Now) -> bool {
        value.state.is_idle()
            && value.updated_ms <= now.wall_ms.saturating_sub(self.config.id_expiration_ms)
    }
}

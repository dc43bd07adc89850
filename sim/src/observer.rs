//! Who watches a run: trace, checker and counts together.

use duolog_log_core::event::EventKind;
use duolog_log_core::ids::{LeaderEpoch, NodeId};

use crate::checker::Checker;
use crate::coverage::Coverage;
use crate::trace::{Happening, Trace};

/// See the module.
#[derive(Debug)]
pub struct Observer {
    pub trace: Trace,
    pub checker: Checker,
    pub coverage: Coverage,
}

impl Observer {
    /// An event at `node` that names an offset and an epoch.
    pub fn event(
        &mut self,
        (now_ms, node): (i64, NodeId),
        kind: EventKind,
        (offset, epoch): (i64, LeaderEpoch),
        cause: impl FnOnce() -> String,
    ) {
        self.trace.emit(Happening { now_ms, node, kind, offset, epoch }, cause);
    }

    /// A fault at `node`.
    pub fn fault(&mut self, at: (i64, NodeId), kind: EventKind, cause: impl FnOnce() -> String) {
        self.event(at, kind, (-1, LeaderEpoch::UNKNOWN), cause);
    }
}

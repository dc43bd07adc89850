//! What all coordinators of one kind have in common.

use std::fmt;
use std::sync::Arc;

use duolog_coordinator::time::Now;
use duolog_log_core::event::Events;
use tokio::runtime::Handle;
use tokio_util::sync::CancellationToken;

use super::timer::Timer;
use crate::clock;
use crate::config::Config;
use crate::controller::Controller;
use crate::instruments::Instruments;
use crate::partitions::Partitions;

/// What all coordinators of a node are made of.
#[derive(Clone)]
pub struct Parts {
    /// The node's.
    pub config: Arc<Config>,
    /// Who creates their topics.
    pub controller: Arc<Controller>,
    /// Where their logs lie, and those that they write to for others.
    pub partitions: Arc<Partitions>,
    /// Events and gates.
    pub instruments: Arc<Instruments>,
    /// The end of it all.
    pub stopping: CancellationToken,
}

impl fmt::Debug for Parts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Parts").finish_non_exhaustive()
    }
}

/// Shared by all shards.
pub(super) struct Env {
    pub(super) events: Arc<Events>,
    pub(super) controller: Arc<Controller>,
    pub(super) timer: Timer,
    /// Where appends and loads run.
    pub(super) handle: Handle,
}

impl Env {
    /// Call it inside the runtime that shards shall run on.
    pub(super) fn new(controller: Arc<Controller>, events: Arc<Events>) -> Self {
        Self { events, controller, timer: Timer::default(), handle: Handle::current() }
    }
}

/// This process's clocks, read once per input.
pub(super) fn now() -> Now {
    Now { wall_ms: clock::now_ms(), tick_ms: clock::tick_ms() }
}

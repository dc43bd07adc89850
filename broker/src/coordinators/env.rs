//! What all coordinators of one kind have in common.

use std::sync::Arc;

use duolog_coordinator::time::Now;
use duolog_log_core::event::Events;
use tokio::runtime::Handle;

use super::timer::Timer;
use crate::clock;
use crate::controller::Controller;

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

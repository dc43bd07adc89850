//! What readers see of a log at one moment, published by its writer and never waited for.
//!
//! An append only raises the view's log end. Anything else (a roll, a new tail chunk, a moved log
//! start, a truncation) publishes another view. A truncation first raises the generation: a read
//! that began before it and ends after it may hold bytes that were overwritten, sees so, and starts
//! again. When the log moves to another folder, its readers follow to what its writer and readers
//! share there.

use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};

use arc_swap::ArcSwap;

use super::LogError;
use super::tail::{Tail, TailBudget};
use crate::replication::epochs::LeaderEpochs;
use crate::storage::segment::Segment;

/// See the module.
#[derive(Debug)]
pub(super) struct View {
    /// By base offset; the last one is active.
    pub(super) segments: Arc<[Arc<Segment>]>,
    pub(super) tail: Tail,
    pub(super) log_start: i64,
    /// Exclusive; rises while the view lasts.
    log_end: AtomicI64,
    pub(super) epochs: Arc<LeaderEpochs>,
    generation: u64,
}

impl View {
    pub(super) fn log_end(&self) -> i64 {
        self.log_end.load(Ordering::Acquire)
    }

    /// The index of the segment that holds `offset`, or of the first one.
    pub(super) fn segment_index(&self, offset: i64) -> usize {
        self.segments.partition_point(|s| s.base_offset <= offset).saturating_sub(1)
    }

    /// Errors: `OffsetOutOfRange` unless `offset` lies from the log start to the log end.
    pub(super) fn check_range(&self, offset: i64) -> Result<(), LogError> {
        let (log_start_offset, log_end_offset) = (self.log_start, self.log_end());
        if offset < log_start_offset || offset > log_end_offset {
            return Err(LogError::OffsetOutOfRange { offset, log_start_offset, log_end_offset });
        }
        Ok(())
    }
}

/// What a log's writer and its readers share.
#[derive(Debug)]
pub(super) struct Shared {
    view: ArcSwap<View>,
    generation: AtomicU64,
    closed: AtomicBool,
    /// Set once the log is in another folder: all that comes later is there only.
    successor: OnceLock<Arc<Shared>>,
    pub(super) tag_budget: Arc<TailBudget>,
    pub(super) key_budget: Arc<TailBudget>,
}

/// The parts of a view that the writer decides.
#[derive(Debug)]
pub(super) struct ViewParts {
    pub(super) segments: Arc<[Arc<Segment>]>,
    pub(super) tail: Tail,
    pub(super) log_start: i64,
    pub(super) log_end: i64,
    pub(super) epochs: Arc<LeaderEpochs>,
}

impl ViewParts {
    fn into_view(self, generation: u64) -> View {
        View {
            segments: self.segments,
            tail: self.tail,
            log_start: self.log_start,
            log_end: AtomicI64::new(self.log_end),
            epochs: self.epochs,
            generation,
        }
    }
}

impl Shared {
    pub(super) fn new(
        parts: ViewParts,
        tag_budget: Arc<TailBudget>,
        key_budget: Arc<TailBudget>,
    ) -> Self {
        Self {
            view: ArcSwap::from_pointee(parts.into_view(0)),
            generation: AtomicU64::new(0),
            closed: AtomicBool::new(false),
            successor: OnceLock::new(),
            tag_budget,
            key_budget,
        }
    }

    pub(super) fn load(&self) -> Arc<View> {
        self.newest().view.load_full()
    }

    /// What stands for the log now.
    fn newest(&self) -> &Self {
        let mut newest = self;
        while let Some(successor) = newest.successor.get() {
            newest = successor;
        }
        newest
    }

    /// Lets whoever reads here read there from now on.
    pub(super) fn succeed_by(&self, successor: Arc<Self>) {
        // A log moves once: its writer is another one then.
        _ = self.successor.set(successor);
    }

    pub(super) fn generation(&self) -> u64 {
        self.generation.load(Ordering::Acquire)
    }

    /// Raises the log end of the present view.
    pub(super) fn publish_log_end(&self, log_end: i64) {
        self.view.load().log_end.store(log_end, Ordering::Release);
    }

    /// Replaces the view.
    pub(super) fn publish(&self, parts: ViewParts) {
        self.view.store(Arc::new(parts.into_view(self.generation())));
    }

    /// Replaces the view and lets reads of older ones start again. The files may change after
    /// this, not before.
    pub(super) fn publish_truncation(&self, parts: ViewParts) {
        let generation = self.generation() + 1;
        self.view.store(Arc::new(parts.into_view(generation)));
        self.generation.store(generation, Ordering::SeqCst);
    }

    pub(super) fn close(&self) {
        self.closed.store(true, Ordering::Release);
    }

    /// Reads through the present view until what was read belongs together.
    ///
    /// Errors: `Closed`, and those of `read` when they are not due to files that went meanwhile.
    pub(super) fn read<T>(
        &self,
        read: impl Fn(&View) -> Result<T, LogError>,
    ) -> Result<T, LogError> {
        loop {
            let shared = self.newest();
            if shared.closed.load(Ordering::Acquire) {
                return Err(LogError::Closed);
            }
            let view = shared.view.load_full();
            let result = read(&view);
            std::sync::atomic::fence(Ordering::SeqCst);
            let is_current = Arc::ptr_eq(&view, &shared.load());
            let is_whole = view.generation >= shared.generation();
            // An older view is as good, as long as nothing that it leads to was cut or removed.
            if is_whole && (result.is_ok() || is_current) {
                return result;
            }
        }
    }
}

//! What is promised, held against what happens. The checker sees everything at once, which no node can.
//!
//! Checked at every step:
//!
//! 1. start ≤ LSO ≤ HW ≤ LEO; a leader's HW never goes back; the machine and the log agree on where the log ends.
//! 2. A replica's log below its HW is what was committed there: logs agree below the HW.
//! 3. One epoch has one leader, and only that one acknowledges in it.
//! 4. What is acknowledged with `acks=all` is committed, on an ISR of at least `min.insync.replicas`.
//! 5. Committed means: a leader's HW has passed it. A leader elected without doubt has every committed record. So
//!    nothing acknowledged is lost, and no consumer sees what later vanishes.
//! 6. A dead process loses nothing that it wrote, a power cut nothing that was synced.
//! 7. A producer with idempotence finds each record once in the end, as long as it kept its epoch.
//!
//! A committed record may be lost in two ways only, and then every replica may differ there:
//!
//! - An unclean election, allowed by config, made a replica leader that lacks it; or it was committed by an older
//!   leader that had not heard of that election yet.
//! - Every replica that the coordinator counts (ISR, eligible, in doubt: see `replication::election`) has forgotten it
//!   in a power cut. One that keeps it is enough. Without fsync an acknowledgement promises replicas, not disks, as in
//!   Kafka; with `flush.messages=1` nothing is forgotten at all.

use std::collections::{BTreeMap, BTreeSet};

use duolog_log_core::ids::{LeaderEpoch, NodeId};
use duolog_log_core::replication::election::{Election, PartitionState};
use duolog_log_core::replication::partition::{Partition, Role};

use crate::coverage::Coverage;

mod shadow;

pub use shadow::{Entry, Shadow};

/// A record below some leader's HW.
#[derive(Clone, Debug)]
struct Committed {
    entry: Entry,
    /// What was committed here before it was lost as permitted.
    earlier: Vec<Entry>,
    /// Nodes that had it and forgot it in a power cut.
    forgotten: BTreeSet<NodeId>,
    /// Whether it may be missing from now on.
    forfeited: bool,
    acknowledged: bool,
}

impl Committed {
    const fn new(entry: Entry) -> Self {
        Self {
            entry,
            earlier: Vec::new(),
            forgotten: BTreeSet::new(),
            forfeited: false,
            acknowledged: false,
        }
    }

    fn allows(&self, entry: Entry) -> bool {
        self.entry == entry || self.earlier.contains(&entry)
    }
}

/// How a node came to stop.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stop {
    /// All of it is on disk.
    Clean,
    /// The process died between two calls to the disk.
    Process,
    /// The process died inside a call.
    InsideCall,
    /// The machine lost power; up to this offset (exclusive) all had been synced.
    Power {
        /// Exclusive.
        synced: i64,
    },
}

/// See the module.
#[derive(Debug)]
pub struct Checker {
    shadows: BTreeMap<NodeId, Shadow>,
    committed: Vec<Committed>,
    leaders: BTreeMap<LeaderEpoch, NodeId>,
    leader_watermarks: BTreeMap<NodeId, (LeaderEpoch, i64)>,
    state: PartitionState,
    /// The newest leader epoch that came from an unclean election.
    unclean: Option<LeaderEpoch>,
    /// Whether that leader, or one after it, has begun to lead.
    unclean_settled: bool,
    violation: Option<String>,
    pub(crate) lost_uncleanly: u64,
    pub(crate) lost_by_power: u64,
}

impl Checker {
    /// A checker of a new partition.
    #[must_use]
    pub fn new(state: PartitionState) -> Self {
        Self {
            shadows: state.replicas.iter().map(|node| (*node, Shadow::default())).collect(),
            committed: Vec::new(),
            leaders: BTreeMap::new(),
            leader_watermarks: BTreeMap::new(),
            state,
            unclean: None,
            unclean_settled: true,
            violation: None,
            lost_uncleanly: 0,
            lost_by_power: 0,
        }
    }

    /// The first broken promise.
    #[must_use]
    pub fn violation(&self) -> Option<&str> {
        self.violation.as_deref()
    }

    /// Reports a broken promise; the first one stands.
    pub fn violate(&mut self, what: impl FnOnce() -> String) {
        if self.violation.is_none() {
            self.violation = Some(what());
        }
    }

    /// Adds what was lost as permitted.
    pub fn count(&self, coverage: &mut Coverage) {
        coverage.lost_uncleanly += self.lost_uncleanly;
        coverage.lost_by_power += self.lost_by_power;
    }

    /// What is known of a node's log.
    #[must_use]
    pub fn shadow(&self, node: NodeId) -> Option<&Shadow> {
        self.shadows.get(&node)
    }

    /// Whether anything committed was lost as permitted.
    #[must_use]
    pub fn has_losses(&self) -> bool {
        self.committed.iter().any(|committed| committed.forfeited || !committed.earlier.is_empty())
    }

    /// `node` wrote `entries` at its log end, which was `offset`.
    pub fn appended(&mut self, node: NodeId, offset: i64, entries: &[Entry]) {
        let Some(shadow) = self.shadows.get_mut(&node) else { return };
        let end = shadow.end();
        if end != offset {
            self.violate(|| format!("node {node} wrote at {offset}, its log ended at {end}"));
            return;
        }
        shadow.extend(entries);
        for (at, entry) in (offset..).zip(entries) {
            if let Some(committed) = committed_at(&mut self.committed, at)
                && committed.entry == *entry
            {
                committed.forgotten.remove(&node);
            }
        }
    }

    /// `node` cut its log to `end` (exclusive).
    pub fn truncated(&mut self, node: NodeId, end: i64) {
        if let Some(shadow) = self.shadows.get_mut(&node) {
            shadow.truncate(end);
        }
    }

    /// `node` dropped its log and goes on at `offset`.
    pub fn started_anew(&mut self, node: NodeId, offset: i64) {
        self.shadows.insert(node, Shadow::starting_at(offset));
    }

    /// The log of `node` starts at `start` now.
    pub fn start_moved(&mut self, node: NodeId, start: i64) {
        if let Some(shadow) = self.shadows.get_mut(&node) {
            shadow.start_moved(start);
        }
    }

    /// `node` opened its log again and found `found`.
    pub fn reopened(&mut self, node: NodeId, stop: Stop, found: Shadow) {
        let before = self.shadows.insert(node, found.clone()).unwrap_or_default();
        match stop {
            Stop::Clean | Stop::Process => {
                if let Some(offset) = before.first_difference(&found) {
                    self.violate(|| {
                        format!(
                            "node {node} lost its record at {offset}, though only its process died"
                        )
                    });
                }
            }
            Stop::InsideCall => {}
            Stop::Power { synced } => {
                if let Some(offset) = before.first_difference(&found)
                    && offset < synced
                    && offset < before.end()
                {
                    self.violate(|| {
                        format!("node {node} forgot its record at {offset}, synced up to {synced}")
                    });
                }
                for (offset, committed) in (0_i64..).zip(&mut self.committed) {
                    let had = before.at(offset) == Some(committed.entry);
                    if had && found.at(offset) != Some(committed.entry) {
                        committed.forgotten.insert(node);
                    }
                }
                self.forfeit_forgotten();
            }
        }
    }

    /// The coordinator holds another state, and how its leader was found if that is new.
    pub fn state_changed(&mut self, state: &PartitionState, election: Option<Election>) {
        if state.leader_epoch < self.state.leader_epoch {
            self.violate(|| format!("leader epoch {} comes after a newer one", state.leader_epoch));
        }
        self.state = state.clone();
        if election == Some(Election::Unclean) {
            self.unclean = Some(state.leader_epoch);
            self.unclean_settled = false;
        }
        self.forfeit_forgotten();
    }

    /// `node` begins to lead in `epoch`, with this HW.
    pub fn led(&mut self, node: NodeId, epoch: LeaderEpoch, high_watermark: i64) {
        if let Some(other) = self.leaders.insert(epoch, node) {
            self.violate(|| format!("nodes {other} and {node} both lead in epoch {epoch}"));
        }
        // One that hears late that it was elected is fenced by what is newer.
        if epoch < self.state.leader_epoch {
            return;
        }
        let Some(shadow) = self.shadows.get(&node) else { return };
        let is_unclean =
            self.unclean.is_some_and(|unclean| unclean <= epoch) && !self.unclean_settled;
        let mut lost = None;
        for (offset, committed) in (0_i64..).zip(&mut self.committed) {
            let differs = offset >= shadow.start() && shadow.at(offset) != Some(committed.entry);
            if !differs || committed.forfeited {
                continue;
            }
            if is_unclean {
                committed.forfeited = true;
                self.lost_uncleanly += 1;
            } else if lost.is_none() {
                lost = Some((offset, committed.acknowledged, committed.entry, shadow.at(offset)));
            }
        }
        self.unclean_settled |= is_unclean;
        if let Some((offset, acknowledged, entry, found)) = lost {
            let how = if acknowledged { "acknowledged" } else { "committed" };
            self.violate(|| {
                format!(
                    "node {node} leads in epoch {epoch} without the {how} record at {offset}: \
                     {entry:?} was there, {found:?} is"
                )
            });
            return;
        }
        // What it knew to be committed, also from a leader that nobody else listened to any more.
        self.commit(node, 0, high_watermark);
    }

    /// The HW of `node` rose from `from` to `to`.
    pub fn high_watermark(&mut self, node: NodeId, replica: &Partition, (from, to): (i64, i64)) {
        let epoch = replica.leader_epoch();
        if self.is_superseded(epoch) {
            return;
        }
        if replica.role() == Role::Leader {
            self.commit(node, from, to);
            return;
        }
        let Some(shadow) = self.shadows.get(&node) else { return };
        let start = shadow.start().max(from);
        let committed = |at: i64| usize::try_from(at).ok().and_then(|at| self.committed.get(at));
        let wrong = (start..to).find(|at| match (committed(*at), shadow.at(*at)) {
            (Some(committed), Some(found)) => !committed.allows(found),
            _ => true,
        });
        if let Some(at) = wrong {
            let expected = committed(at).map(|committed| committed.entry);
            let found = shadow.at(at);
            self.violate(|| {
                format!("node {node} has {found:?} at {at}, below its HW {to}; {expected:?} is committed")
            });
        }
    }

    /// `node` acknowledges a batch with `acks=all`.
    pub fn acknowledged(&mut self, node: NodeId, replica: &Partition, offset: i64, values: &[u64]) {
        let (epoch, in_sync) = (replica.leader_epoch(), replica.in_sync_replicas().count());
        self.acknowledged_in(node, epoch, offset, values);
        let required = self.state.min_insync_replicas.min(self.state.replicas.len());
        if in_sync < required {
            self.violate(|| format!("node {node} acknowledged {offset} with {in_sync} in sync"));
        }
    }

    /// `node` acknowledges, in `epoch`, what it wrote at `offset`.
    pub fn acknowledged_in(
        &mut self,
        node: NodeId,
        epoch: LeaderEpoch,
        offset: i64,
        values: &[u64],
    ) {
        if self.leaders.get(&epoch) != Some(&node) {
            self.violate(|| {
                format!("node {node} acknowledged in epoch {epoch}, which it never led")
            });
        }
        if self.is_superseded(epoch) {
            return;
        }
        for (at, value) in (offset..).zip(values) {
            match committed_at(&mut self.committed, at) {
                Some(committed) if committed.entry.value == *value => committed.acknowledged = true,
                Some(committed) if committed.forfeited => {}
                _ => self.violate(|| {
                    format!(
                        "node {node} acknowledged {at} in epoch {epoch}, which is not committed"
                    )
                }),
            }
        }
    }

    /// A consumer got `entry` at `offset` from `node`, which leads in `epoch`.
    pub fn consumed(&mut self, node: NodeId, epoch: LeaderEpoch, offset: i64, entry: Entry) {
        if self.is_superseded(epoch) {
            return;
        }
        let committed = committed_at(&mut self.committed, offset);
        if !committed.is_some_and(|committed| committed.allows(entry)) {
            self.violate(|| {
                format!("a consumer saw {entry:?} at {offset} on node {node}, not committed")
            });
        }
    }

    /// Looks at one replica after a step; its log ends at `log_end`.
    pub fn look(&mut self, node: NodeId, replica: &Partition, log_end: i64) {
        let (start, stable) = (replica.log_start_offset().0, replica.last_stable_offset().0);
        let (watermark, end) = (replica.high_watermark().0, replica.log_end_offset().0);
        let is_ordered =
            start <= stable && stable <= watermark && watermark <= end && end <= log_end;
        if !is_ordered {
            self.violate(|| {
                format!("node {node}: start {start}, LSO {stable}, HW {watermark}, LEO {end}, log {log_end}")
            });
        }
        let shadow_end = self.shadows.get(&node).map_or(0, Shadow::end);
        if shadow_end != log_end {
            self.violate(|| {
                format!("node {node}: log ends at {log_end}, wrote up to {shadow_end}")
            });
        }
        if replica.role() != Role::Leader {
            self.leader_watermarks.remove(&node);
            return;
        }
        let now = (replica.leader_epoch(), watermark);
        if let Some(before) = self.leader_watermarks.insert(node, now)
            && before.0 == now.0
            && before.1 > now.1
        {
            self.violate(|| {
                format!("the HW of leader {node} went back from {} to {watermark}", before.1)
            });
        }
    }

    /// Whether an unclean election came after this epoch: then nothing in it is promised any more.
    fn is_superseded(&self, epoch: LeaderEpoch) -> bool {
        self.unclean.is_some_and(|unclean| unclean > epoch)
    }

    fn commit(&mut self, node: NodeId, from: i64, to: i64) {
        let Some(shadow) = self.shadows.get(&node) else { return };
        let mut wrong = None;
        for at in from.max(shadow.start())..to {
            let Some(entry) = shadow.at(at) else {
                wrong = Some(format!("node {node} has no record at {at}, below its HW {to}"));
                break;
            };
            let next = i64::try_from(self.committed.len()).unwrap_or(i64::MAX);
            match committed_at(&mut self.committed, at) {
                Some(committed) if committed.entry == entry => {}
                Some(committed) if committed.forfeited => {
                    let mut earlier = std::mem::take(&mut committed.earlier);
                    earlier.push(committed.entry);
                    *committed = Committed { earlier, ..Committed::new(entry) };
                }
                Some(committed) => {
                    let other = committed.entry;
                    wrong = Some(format!("node {node} commits {entry:?} at {at}, {other:?} was"));
                    break;
                }
                None if at == next => self.committed.push(Committed::new(entry)),
                None => {
                    wrong = Some(format!("node {node} commits {at}, {next} is not committed yet"));
                    break;
                }
            }
        }
        if let Some(wrong) = wrong {
            self.violate(|| wrong);
        }
    }

    /// What every replica that counts has forgotten may be missing from now on.
    fn forfeit_forgotten(&mut self) {
        let trusted: BTreeSet<_> = self.state.isr.union(&self.state.eligible).copied().collect();
        let in_doubt = &self.state.last_known;
        for (offset, committed) in (0_i64..).zip(&mut self.committed) {
            if committed.forfeited || committed.forgotten.is_empty() {
                continue;
            }
            let lacks = |node: &NodeId| {
                let shadow = self.shadows.get(node);
                !shadow.is_some_and(|shadow| shadow.at(offset) == Some(committed.entry))
            };
            if trusted.is_subset(&committed.forgotten) && in_doubt.iter().all(lacks) {
                committed.forfeited = true;
                self.lost_by_power += 1;
            }
        }
    }

    /// At the end, with every node well: each has every committed record.
    pub fn check_healed(&mut self) {
        let mut missing = None;
        for (node, shadow) in &self.shadows {
            for (offset, committed) in (0_i64..).zip(&self.committed) {
                let found = shadow.at(offset);
                if offset >= shadow.start()
                    && !committed.forfeited
                    && found != Some(committed.entry)
                {
                    missing = Some(format!("in the end node {node} has {found:?} at {offset}"));
                }
            }
        }
        if let Some(missing) = missing {
            self.violate(|| missing);
        }
    }
}

fn committed_at(committed: &mut [Committed], offset: i64) -> Option<&mut Committed> {
    usize::try_from(offset).ok().and_then(|at| committed.get_mut(at))
}

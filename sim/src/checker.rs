//! What is promised, held against what happens. The checker sees everything at once, which no node can.
//!
//! Checked at every step:
//!
//! 1. start ≤ LSO ≤ HW ≤ LEO; a leader's HW never goes back; the machine and the log agree on where the log ends.
//! 2. A replica's log below its HW is what was committed there: logs agree below the HW.
//! 3. One epoch has one leader, and only that one acknowledges in it.
//! 4. What is acknowledged with `acks=all` is committed, on an ISR of at least `min.insync.replicas` as that was in the
//!    version of the partition's state by which the leader acts at that moment.
//! 5. Committed means: a leader's HW has passed it. Every replica that may be elected without doubt (ISR, eligible) has
//!    every committed record from its log start on, and a leader elected without doubt has them too. So nothing
//!    acknowledged is lost, and no consumer sees what later vanishes.
//!    A consumer that reads only what is committed sees nothing of an open transaction, and of each ended one it is told
//!    rightly how it ended.
//! 6. A dead process loses nothing that it wrote, a power cut nothing that was synced.
//! 7. A producer with idempotence finds each record once in the end, as long as it kept its epoch.
//!
//! A committed record may be lost in two ways only, and then every replica may differ there:
//!
//! - An unclean election, allowed by config, made a replica leader that lacks it; or it was committed by an older
//!   leader that had not heard of that election yet.
//! - Every replica that the coordinator counts (ISR, eligible, in doubt: see `replication::election`) has forgotten it
//!   in a power cut, be it before a leader that had heard of none counted it. One that keeps it is enough. Without fsync an acknowledgement promises replicas, not disks, as in
//!   Kafka; with `flush.messages=1` nothing is forgotten at all.

use std::collections::{BTreeMap, BTreeSet};

use duolog_log_core::ids::{LeaderEpoch, NodeId};
use duolog_log_core::record::TransactionOutcome;
use duolog_log_core::replication::election::{Election, PartitionState};
use duolog_log_core::replication::partition::{Partition, Role};

use crate::coverage::Coverage;

mod committed;
mod shadow;
#[cfg(test)]
mod tests;

use committed::{Committed, committed_at};
pub use shadow::{Entry, Shadow};

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
    /// How many replicas had to be in sync, by version of the state.
    required: BTreeMap<i32, usize>,
    /// Nodes that lost something in a power cut of which the coordinator does not know yet: what they have claimed
    /// before may still be counted.
    doubtful: BTreeSet<NodeId>,
    /// What nodes had and forgot in a power cut, by offset: a leader may still commit it by what they claimed before.
    forgotten: BTreeMap<NodeId, BTreeMap<i64, Entry>>,
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
            shadows: BTreeMap::new(),
            committed: Vec::new(),
            leaders: BTreeMap::new(),
            leader_watermarks: BTreeMap::new(),
            required: BTreeMap::from([(state.partition_epoch, state.required_replicas())]),
            state,
            doubtful: BTreeSet::new(),
            forgotten: BTreeMap::new(),
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
            if let Some(forgotten) = self.forgotten.get_mut(&node)
                && forgotten.get(&at) == Some(entry)
            {
                forgotten.remove(&at);
            }
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
        self.check_still_holds(node, end);
    }

    /// `node` dropped its log and goes on at `offset`.
    pub fn started_anew(&mut self, node: NodeId, offset: i64) {
        self.shadows.insert(node, Shadow::starting_at(offset));
        self.check_still_holds(node, offset);
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
            Stop::InsideCall => self.check_still_holds(node, 0),
            Stop::Power { synced } => {
                if let Some(offset) = before.first_difference(&found)
                    && offset < synced
                    && offset < before.end()
                {
                    self.violate(|| {
                        format!("node {node} forgot its record at {offset}, synced up to {synced}")
                    });
                }
                if found.end() < before.end() {
                    self.doubtful.insert(node);
                }
                let had =
                    (before.start()..before.end()).filter_map(|at| Some((at, before.at(at)?)));
                let gone = had.filter(|(at, entry)| found.at(*at) != Some(*entry));
                self.forgotten.entry(node).or_default().extend(gone);
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

    /// The coordinator knows that the log of `node` is in doubt: what an earlier run claimed counts no more.
    pub fn doubt_told(&mut self, node: NodeId) {
        self.doubtful.remove(&node);
    }

    /// The coordinator holds another state, and how its leader was found if that is new.
    pub fn state_changed(&mut self, state: &PartitionState, election: Option<Election>) {
        if state.leader_epoch < self.state.leader_epoch {
            self.violate(|| format!("leader epoch {} comes after a newer one", state.leader_epoch));
        }
        let before = self.trusted();
        self.required.insert(state.partition_epoch, state.required_replicas());
        self.state = state.clone();
        if election == Some(Election::Unclean) {
            self.unclean = Some(state.leader_epoch);
            self.unclean_settled = false;
        }
        self.forfeit_forgotten();
        for node in self.trusted().difference(&before) {
            self.check_still_holds(*node, 0);
        }
    }

    /// `node` begins to lead in `epoch`, with this HW.
    pub fn led(&mut self, node: NodeId, epoch: LeaderEpoch, high_watermark: i64) {
        if let Some(other) = self.leaders.insert(epoch, node) {
            self.violate(|| format!("nodes {other} and {node} both lead in epoch {epoch}"));
        }
        // One that hears late that it was elected is fenced by what is newer; unless that is its own, from a change of
        // the replicas: then what it writes before it hears of that stays.
        if epoch < self.state.leader_epoch && self.state.leader != Some(node) {
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
        // What has been written since is not known there yet.
        let version = replica.partition_epoch().and_then(|version| self.required.get(&version));
        let required = version.copied().unwrap_or(self.state.required_replicas());
        if in_sync < required {
            self.violate(|| {
                format!("node {node} acknowledged {offset} with {in_sync} in sync of {required}")
            });
        }
    }

    /// `node` acknowledges with `acks=1` what it wrote in `epoch`: that promises nothing but one leader an epoch.
    pub fn acknowledged_alone(&mut self, node: NodeId, epoch: LeaderEpoch) {
        if self.leaders.get(&epoch) != Some(&node) {
            self.violate(|| {
                format!("node {node} acknowledged in epoch {epoch}, which it never led")
            });
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
        self.acknowledged_alone(node, epoch);
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

    /// A consumer that reads only what is committed was told `told` of the transaction of the record at `offset`; it read
    /// below the HW `high_watermark` of `node`, which leads in `epoch`.
    pub fn consumed_in_transaction(
        &mut self,
        node: NodeId,
        epoch: LeaderEpoch,
        (offset, high_watermark): (i64, i64),
        told: TransactionOutcome,
    ) {
        if self.is_superseded(epoch) {
            return;
        }
        let log = self.shadows.get(&node);
        let outcome = log.and_then(|log| log.outcome_at(offset, high_watermark));
        if outcome != Some(told) {
            self.violate(|| {
                format!(
                    "a consumer was told {told:?} of the transaction at {offset} on node {node}, \
                     which is {outcome:?}"
                )
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

    /// At the end, with every node well: each has every committed record.
    pub fn check_healed(&mut self) {
        let mut missing = None;
        for (node, shadow) in &self.shadows {
            if !self.state.replicas.contains(node) {
                continue;
            }
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

//! What is committed, who must have it, and when it may be lost.

use std::collections::{BTreeMap, BTreeSet};

use duolog_log_core::ids::NodeId;

use super::{Checker, Entry, Stop};

/// A record below some leader's HW.
#[derive(Clone, Debug)]
pub(super) struct Committed {
    pub(super) entry: Entry,
    /// What was committed here before it was lost as permitted.
    pub(super) earlier: Vec<Entry>,
    /// Nodes that had it and forgot it in a power cut, also before it was committed.
    pub(super) forgotten: BTreeSet<NodeId>,
    /// Whether it may be missing from now on.
    pub(super) forfeited: bool,
    pub(super) acknowledged: bool,
}

impl Committed {
    pub(super) const fn new(entry: Entry) -> Self {
        Self {
            entry,
            earlier: Vec::new(),
            forgotten: BTreeSet::new(),
            forfeited: false,
            acknowledged: false,
        }
    }

    pub(super) fn allows(&self, entry: Entry) -> bool {
        self.entry == entry || self.earlier.contains(&entry)
    }
}

impl Checker {
    /// Who may be elected without doubt, as the coordinator holds it.
    pub(super) fn trusted(&self) -> BTreeSet<NodeId> {
        self.state.isr.union(&self.state.eligible).copied().collect()
    }

    /// Looks whether `node`, which may be elected without doubt, has what is committed in `from..to`, from its log
    /// start on. What it forgot in a power cut it need not have, until the coordinator knows that it is in doubt.
    ///
    /// Until the leader of an unclean election has begun to lead it is not known yet what that election cost.
    pub(super) fn check_holds(&mut self, node: NodeId, from: i64, to: i64) {
        if !self.unclean_settled || self.doubtful.contains(&node) {
            return;
        }
        let Some(shadow) = self.shadows.get(&node) else { return };
        let from = from.max(shadow.start());
        let missing = (from..to).find_map(|at| {
            let committed = self.committed.get(usize::try_from(at).ok()?)?;
            let is_excused = committed.forfeited || committed.forgotten.contains(&node);
            let has_it = shadow.at(at) == Some(committed.entry);
            (!is_excused && !has_it).then_some((at, committed.entry, shadow.at(at)))
        });
        if let Some((at, entry, found)) = missing {
            self.violate(|| {
                format!(
                    "node {node} may be elected without the committed record at {at}: \
                     {entry:?} was there, {found:?} is"
                )
            });
        }
    }

    /// As [`Self::check_holds`], for all that is committed from `from` on, if `node` may be elected without doubt.
    pub(super) fn check_still_holds(&mut self, node: NodeId, from: i64) {
        if self.trusted().contains(&node) {
            self.check_holds(node, from, self.committed_end());
        }
    }

    fn committed_end(&self) -> i64 {
        i64::try_from(self.committed.len()).unwrap_or(i64::MAX)
    }

    /// `node` has opened its log again, and believes that all below `high_watermark` is committed.
    pub fn restarted_at(&mut self, node: NodeId, stop: Stop, high_watermark: i64) {
        // After an unclean election its log below the HW may be that of the other side, until it has asked.
        if stop == Stop::InsideCall || self.unclean.is_some() {
            return;
        }
        let Some(shadow) = self.shadows.get(&node) else { return };
        let wrong = (shadow.start()..high_watermark).find(|at| {
            let committed = usize::try_from(*at).ok().and_then(|at| self.committed.get(at));
            !committed.is_some_and(|committed| {
                committed.forfeited || shadow.at(*at).is_some_and(|found| committed.allows(found))
            })
        });
        if let Some(at) = wrong {
            let found = shadow.at(at);
            self.violate(|| {
                format!(
                    "node {node} came back with {found:?} at {at}, below its HW {high_watermark}"
                )
            });
        }
    }

    /// Whether another log is not the beginning or the continuation of that of `node`.
    #[must_use]
    pub fn is_parted(&self, node: NodeId) -> bool {
        let Some(own) = self.shadows.get(&node) else { return false };
        self.shadows.iter().any(|(other, log)| {
            let common_end = own.end().min(log.end());
            let parts = own.first_difference(log).is_some_and(|at| at < common_end);
            *other != node && parts
        })
    }

    pub(super) fn commit(&mut self, node: NodeId, from: i64, to: i64) {
        let Some(shadow) = self.shadows.get(&node) else { return };
        let mut wrong = None;
        for at in from.max(shadow.start())..to {
            let Some(entry) = shadow.at(at) else {
                wrong = Some(format!("node {node} has no record at {at}, below its HW {to}"));
                break;
            };
            let next = i64::try_from(self.committed.len()).unwrap_or(i64::MAX);
            let forgot = |(node, all): (&NodeId, &BTreeMap<i64, Entry>)| {
                (all.get(&at) == Some(&entry)).then_some(*node)
            };
            let forgotten = || self.forgotten.iter().filter_map(forgot).collect();
            let new = || Committed { forgotten: forgotten(), ..Committed::new(entry) };
            match committed_at(&mut self.committed, at) {
                Some(committed) if committed.entry == entry => {}
                Some(committed) if committed.forfeited => {
                    let mut earlier = std::mem::take(&mut committed.earlier);
                    earlier.push(committed.entry);
                    *committed = Committed { earlier, ..new() };
                }
                Some(committed) => {
                    let other = committed.entry;
                    wrong = Some(format!("node {node} commits {entry:?} at {at}, {other:?} was"));
                    break;
                }
                None if at == next => self.committed.push(new()),
                None => {
                    wrong = Some(format!("node {node} commits {at}, {next} is not committed yet"));
                    break;
                }
            }
        }
        if let Some(wrong) = wrong {
            self.violate(|| wrong);
        }
        for trusted in self.trusted() {
            self.check_holds(trusted, from, to);
        }
    }

    /// What every replica that counts has forgotten may be missing from now on.
    pub(super) fn forfeit_forgotten(&mut self) {
        let trusted = self.trusted();
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
}

pub(super) fn committed_at(committed: &mut [Committed], offset: i64) -> Option<&mut Committed> {
    usize::try_from(offset).ok().and_then(|at| committed.get_mut(at))
}

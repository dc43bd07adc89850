//! What becomes of a message: it arrives, late, twice or never.

use duolog_log_core::ids::NodeId;

use crate::coverage::Coverage;
use crate::message::Address;
use crate::plan::Plan;
use crate::random::Random;

/// What a cut off node cannot reach.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CutOff {
    /// Nobody.
    All,
    /// The coordinator, in both directions.
    Coordinator,
    /// Other nodes, in both directions.
    Nodes,
    /// Nobody hears it, but it hears all.
    Outgoing,
}

/// The links between all.
#[derive(Debug)]
pub struct Network {
    lost_per_mille: u64,
    doubled_per_mille: u64,
    late_per_mille: u64,
    cuts: Vec<(NodeId, CutOff, i64)>,
}

impl Network {
    pub fn new(plan: &Plan) -> Self {
        Self {
            lost_per_mille: plan.lost_per_mille,
            doubled_per_mille: plan.doubled_per_mille,
            late_per_mille: plan.late_per_mille,
            cuts: Vec::new(),
        }
    }

    /// Nothing goes wrong any more.
    pub fn heal(&mut self) {
        *self = Self { lost_per_mille: 0, doubled_per_mille: 0, late_per_mille: 0, cuts: vec![] };
    }

    /// Cuts `node` off until `until_ms`.
    pub fn cut_off(&mut self, node: NodeId, what: CutOff, until_ms: i64) {
        self.cuts.push((node, what, until_ms));
    }

    /// After how many milliseconds a message sent now arrives: not at all, once or twice.
    pub fn delays(
        &mut self,
        (from, to): (Address, Address),
        now_ms: i64,
        random: &mut Random,
        coverage: &mut Coverage,
    ) -> Vec<i64> {
        self.cuts.retain(|(.., until_ms)| *until_ms > now_ms);
        let is_cut = self.cuts.iter().any(|(node, what, _)| cuts(*node, *what, from, to));
        if is_cut || random.happens(self.lost_per_mille) {
            coverage.messages_lost += 1;
            return Vec::new();
        }
        let mut delay = || {
            if random.happens(self.late_per_mille) {
                coverage.messages_late += 1;
                random.between(50, 900)
            } else {
                random.between(1, 12)
            }
        };
        let first = delay();
        if random.happens(self.doubled_per_mille) {
            coverage.messages_doubled += 1;
            return vec![first, first + random.between(0, 300)];
        }
        vec![first]
    }
}

fn cuts(node: NodeId, what: CutOff, from: Address, to: Address) -> bool {
    let node = Address::Node(node);
    let is_node = |address| matches!(address, Address::Node(_));
    match what {
        CutOff::All => from == node || to == node,
        CutOff::Outgoing => from == node,
        CutOff::Coordinator => {
            (from == node && to == Address::Coordinator)
                || (to == node && from == Address::Coordinator)
        }
        CutOff::Nodes => (from == node && is_node(to)) || (to == node && is_node(from)),
    }
}

//! What a seed decides before the first step.

use duolog_log_core::ids::NodeId;
use duolog_log_core::replication::election::UncleanElection;
use duolog_log_core::replication::partition::TruncationRule;

use crate::random::Random;

/// Bounds of the simulated protocol, in virtual milliseconds. Shorter than real ones in the same proportion, so that a
/// few seconds hold many elections.
pub mod timing {
    /// A follower that got nothing asks again after this.
    pub const FETCH_WAIT_MS: i64 = 40;
    /// A question without an answer is asked again after this.
    pub const REQUEST_TIMEOUT_MS: i64 = 150;
    /// A node looks after its log and its ISR this often.
    pub const UPKEEP_MS: i64 = 50;
    /// A node tells the coordinator that it is there this often.
    pub const HEARTBEAT_MS: i64 = 80;
    /// Without heartbeats for so long a node is taken for dead.
    pub const SESSION_MS: i64 = 400;
    /// `replica.lag.time.max.ms`.
    pub const REPLICA_LAG_TIME_MAX_MS: i64 = 200;
    /// The checkpoints of HW, recovery point and log start are written this often.
    pub const CHECKPOINT_MS: i64 = 500;
    /// An unclean election comes after so long without a leader.
    pub const UNCLEAN_AFTER_MS: i64 = 300;
    /// Faults go on for this long.
    pub const CHAOS_MS: i64 = 6_000;
    /// A run that is calm but for one blow goes on for this long.
    pub const CALM_MS: i64 = 350;
    /// Then all must be well again within this.
    pub const HEAL_MS: i64 = 8_000;
}

/// When a node syncs what it wrote.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FlushPolicy {
    /// Only with the checkpoints, as by default.
    WithCheckpoints,
    /// Once a record has waited this long (`flush.ms`).
    AfterMs(i64),
    /// Before anybody is told (`flush.messages=1`).
    EveryAppend,
}

/// A fault planted into the rules on purpose, to see that the checker finds it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Planted {
    /// A follower cuts its log to its own HW instead of the end of the last common epoch.
    TruncateToHighWatermark,
    /// A leader advances the HW over a shrunk ISR before the coordinator has written it.
    ShrinkBelievedAtOnce,
    /// A leader acknowledges what waits when it hears of a newer epoch.
    AcknowledgeAfterNewerEpoch,
    /// A leader counts a replica as in sync as soon as it has asked for that.
    GrowthBelievedAtOnce,
    /// A process that died has lost its log's epochs.
    EpochsForgottenAfterCrash,
    /// The coordinator lets replicas leave, and counts those who come as in sync, as soon as a move begins.
    LeavesBeforeInSync,
    /// Nodes act on a lower `min.insync.replicas` before the coordinator has written it.
    MinimumBelievedAtOnce,
}

impl Planted {
    /// All of them.
    pub const ALL: [Self; 7] = [
        Self::TruncateToHighWatermark,
        Self::ShrinkBelievedAtOnce,
        Self::AcknowledgeAfterNewerEpoch,
        Self::GrowthBelievedAtOnce,
        Self::EpochsForgottenAfterCrash,
        Self::LeavesBeforeInSync,
        Self::MinimumBelievedAtOnce,
    ];

    /// As said on a command line.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::TruncateToHighWatermark => "truncate-to-hw",
            Self::ShrinkBelievedAtOnce => "shrink-at-once",
            Self::AcknowledgeAfterNewerEpoch => "ack-after-newer-epoch",
            Self::GrowthBelievedAtOnce => "growth-at-once",
            Self::EpochsForgottenAfterCrash => "forget-epochs",
            Self::LeavesBeforeInSync => "leave-before-in-sync",
            Self::MinimumBelievedAtOnce => "minimum-at-once",
        }
    }
}

/// One thing that goes wrong at one step of a run in which nothing else does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Blow {
    /// Before which step: counted from 0.
    pub step: u64,
    /// What happens.
    pub kind: BlowKind,
}

/// See [`Blow`]. All of them end with another leader.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BlowKind {
    /// The next replica leads instead.
    MoveLeader,
    /// The leader's process dies.
    KillLeader,
    /// The leader's machine loses power.
    CutPowerOfLeader,
    /// The leader's session ends, and it does not know.
    EndSessionOfLeader,
    /// Another node takes the leader's place among the replicas.
    ReplaceLeader,
}

impl BlowKind {
    /// All of them.
    pub const ALL: [Self; 5] = [
        Self::MoveLeader,
        Self::KillLeader,
        Self::CutPowerOfLeader,
        Self::EndSessionOfLeader,
        Self::ReplaceLeader,
    ];
}

/// What a seed decides.
#[derive(Clone, Debug)]
pub struct Plan {
    /// Three to five to begin with; the first is the preferred leader.
    pub replicas: Vec<NodeId>,
    /// These, and others to which the partition may be moved.
    pub nodes: Vec<NodeId>,
    /// `min.insync.replicas` at the start; it is changed later.
    pub min_insync_replicas: usize,
    /// How followers find where logs part.
    pub truncation: TruncationRule,
    /// `unclean.leader.election.enable` at the start; it may be flipped later.
    pub unclean: UncleanElection,
    /// Whether it is flipped.
    pub flips_unclean: bool,
    /// The flush policy at the start; it may be flipped later.
    pub flush: FlushPolicy,
    /// Whether a node can tell a dead process from a power cut. If not, both leave its log in doubt.
    pub knows_boots: bool,
    /// Of a thousand messages so many are lost.
    pub lost_per_mille: u64,
    /// Of a thousand messages so many come twice.
    pub doubled_per_mille: u64,
    /// Of a thousand messages so many are very late.
    pub late_per_mille: u64,
    /// The mean time between two faults.
    pub fault_every_ms: i64,
    /// `segment.bytes`.
    pub segment_bytes: u32,
    /// `retention.bytes`; -1 for no bound.
    pub retention_bytes: i64,
    /// Until then faults go on, in virtual milliseconds.
    pub chaos_ms: i64,
    /// The one thing that is to happen, if all else is to go well.
    pub blow: Option<Blow>,
    /// The fault in the rules, if any.
    pub planted: Option<Planted>,
}

impl Plan {
    /// Draws a plan.
    #[must_use]
    pub fn draw(random: &mut Random, planted: Option<Planted>) -> Self {
        let count = random.choose(&[3, 3, 3, 4, 5]).unwrap_or(3);
        let others = random.choose(&[1, 2]).unwrap_or(1);
        let min_insync_replicas = random.choose(&[1, 2, 2, 2, 3]).unwrap_or(2);
        let truncation = match planted {
            Some(Planted::TruncateToHighWatermark) => TruncationRule::HighWatermark,
            _ if random.happens(250) => TruncationRule::AskFirst,
            _ => TruncationRule::OnFetch,
        };
        let unclean = match random.happens(150) {
            true => UncleanElection::Allowed,
            false => UncleanElection::Refused,
        };
        let flush = [
            FlushPolicy::WithCheckpoints,
            FlushPolicy::WithCheckpoints,
            FlushPolicy::AfterMs(100),
            FlushPolicy::EveryAppend,
        ];
        Self {
            replicas: (1..=count).map(NodeId).collect(),
            nodes: (1..=count + others).map(NodeId).collect(),
            min_insync_replicas,
            truncation,
            unclean,
            flips_unclean: random.happens(150),
            flush: random.choose(&flush).unwrap_or(FlushPolicy::WithCheckpoints),
            knows_boots: random.happens(500),
            lost_per_mille: random.choose(&[0, 5, 20, 60]).unwrap_or(0),
            doubled_per_mille: random.choose(&[0, 10, 30]).unwrap_or(0),
            late_per_mille: random.choose(&[0, 20, 60]).unwrap_or(0),
            fault_every_ms: random.choose(&[80, 150, 300]).unwrap_or(150),
            segment_bytes: random.choose(&[600, 2_000, 1 << 20]).unwrap_or(2_000),
            retention_bytes: random.choose(&[-1, -1, -1, 4_000]).unwrap_or(-1),
            chaos_ms: timing::CHAOS_MS,
            blow: None,
            planted,
        }
    }

    /// The same plan with nothing but one blow in a short run.
    #[must_use]
    pub fn calm_but_for(mut self, blow: Blow) -> Self {
        self.blow = Some(blow);
        self.chaos_ms = timing::CALM_MS;
        (self.lost_per_mille, self.doubled_per_mille, self.late_per_mille) = (0, 0, 0);
        self
    }
}

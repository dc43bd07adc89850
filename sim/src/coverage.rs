//! What runs have exercised: a suite that never met a case proves nothing about it.

use std::fmt;

macro_rules! counts {
    ($($(#[$doc:meta])* $name:ident = $words:literal),+ $(,)?) => {
        /// How often each thing happened.
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
        pub struct Coverage { $($(#[$doc])* pub $name: u64),+ }

        impl Coverage {
            /// Adds what another run has exercised.
            pub fn add(&mut self, other: &Self) {
                $(self.$name += other.$name;)+
            }

            /// Every count with its words.
            #[must_use]
            pub fn counts(&self) -> Vec<(&'static str, u64)> {
                vec![$(($words, self.$name)),+]
            }
        }
    };
}

counts! {
    /// Leaders elected without loss.
    clean_elections = "clean elections",
    /// From replicas outside the ISR that had everything.
    eligible_elections = "elections of eligible replicas",
    /// By the most complete of the logs in doubt.
    doubtful_elections = "elections among logs in doubt",
    /// With possible loss, as allowed.
    unclean_elections = "unclean elections",
    /// A leader replaced while it was well.
    moves = "moves of a healthy leader",
    /// Of these, to the preferred one.
    preferred_elections = "elections of the preferred leader",
    /// Unclean election allowed or refused from now on.
    unclean_flips = "switches of unclean election",
    /// Other replicas wished for (KIP-455).
    reassignments = "reassignments begun",
    /// By a wish for yet others.
    reassignments_replaced = "reassignments replaced",
    /// Taken back.
    reassignments_cancelled = "reassignments cancelled",
    /// Because nobody who would stay was in sync.
    reassignments_refused = "reassignments or cancellations refused",
    /// All of the target in sync.
    reassignments_completed = "reassignments completed",
    /// Replicas that began empty and joined the ISR.
    caught_up_from_nothing = "new replicas caught up into the ISR",
    /// Replicas that are none any more.
    replicas_removed = "replicas removed",
    /// That led at that moment.
    leaders_removed = "leaders removed",
    /// By a node that heard of its removal.
    logs_dropped = "logs dropped by removed replicas",
    /// Fetches of nodes that are no replica.
    strangers_refused = "fetches of removed replicas refused",
    /// `min.insync.replicas` raised or lowered.
    minimum_changes = "changes of min.insync.replicas",
    /// Written under one minimum, acknowledged under another.
    acks_across_minimum = "acks=all that a changed minimum decided",
    /// Logs cut.
    truncations = "truncations",
    /// Logs started anew elsewhere.
    restarts_elsewhere = "logs started anew",
    /// Fetches answered with where the logs part.
    divergences = "divergences",
    /// Fetches that had no place in the leader's log.
    out_of_range = "fetches out of range",
    /// OffsetForLeaderEpoch questions answered.
    epoch_questions = "epoch ends asked for",
    /// Requests refused for their leader epoch.
    fenced = "requests fenced by leader epoch",
    /// Fetches refused for their broker epoch.
    stale_runs = "fetches of an earlier run refused",
    /// Replicas that left the ISR.
    isr_shrinks = "ISR shrinks",
    /// Replicas that joined it.
    isr_growths = "ISR growths",
    /// Proposals that the coordinator refused.
    isr_refusals = "ISR proposals refused",
    /// Acknowledged with `acks=all`.
    acknowledged = "acks=all acknowledged",
    /// Acknowledged with `acks=1`.
    acknowledged_by_leader = "acks=1 acknowledged",
    /// Written with `acks=0`.
    unacknowledged = "acks=0 written",
    /// Refused, before or after the append.
    too_few_replicas = "acks=all refused for too few replicas",
    /// Answered by what was written before.
    duplicates = "repeated sends recognised",
    /// Records read below the HW.
    records_read = "records consumed",
    /// Of committed transactions, read below the LSO.
    committed_read = "records of committed transactions consumed",
    /// Of aborted ones.
    aborted_left_out = "records of aborted transactions left out",
    /// Of a leader.
    unstable_steps = "steps with the LSO below the HW",
    /// Log starts moved by DeleteRecords.
    deletions = "log starts raised",
    /// Segments dropped by retention.
    segments_dropped = "segments dropped",
    /// Log starts moved by retention.
    retentions = "log starts raised by retention",
    /// Log starts that moved while another replica's log was parted from this one.
    starts_while_parted = "log starts raised while logs are parted",
    /// Messages that never came.
    messages_lost = "messages lost",
    /// Messages that came twice.
    messages_doubled = "messages doubled",
    /// Messages that later ones overtook.
    messages_late = "messages late",
    /// Messages that arrived after one that was sent later on the same link.
    messages_overtaken = "messages out of order",
    /// The coordinator answered nobody for a while.
    coordinator_stalls = "stalls of the coordinator",
    /// Clocks set forward or back.
    clock_jumps = "jumps of a node's clock",
    /// Nodes cut off for a while.
    isolations = "nodes cut off",
    /// Sessions ended by the coordinator.
    sessions_expired = "sessions expired",
    /// Processes that died.
    process_crashes = "process crashes",
    /// Machines that lost power.
    power_losses = "power losses",
    /// Crashes in the middle of a call to the disk.
    crashes_in_a_call = "crashes inside a disk call",
    /// Writes of which nothing was left.
    writes_lost = "unsynced writes lost",
    /// Writes of which a part was left.
    writes_torn = "unsynced writes torn",
    /// Writes that a full disk refused.
    disk_full = "writes refused by a full disk",
    /// Disks full for longer than a replica may lag.
    long_full_disks = "disks full for long",
    /// Replicas that left the ISR with a full disk and joined it again.
    full_disks_rejoined = "replicas back in the ISR after a full disk",
    /// Calls that a broken disk refused.
    disk_errors = "disk errors",
    /// Nodes slowed down.
    slow_disks = "slow disks",
    /// Committed records lost to an unclean election, as permitted.
    lost_uncleanly = "committed records lost uncleanly (permitted)",
    /// Committed records lost because every replica that counted forgot them, as permitted.
    lost_by_power = "committed records lost by every disk (permitted)",
    /// Messages and timers handled.
    steps = "steps",
}

/// So many seeds exercise everything.
pub const SEEDS_FOR_ALL: u64 = 1_000;

impl Coverage {
    /// What was never exercised by `seeds` runs, of those that so many must exercise.
    #[must_use]
    pub fn missed(&self, seeds: u64) -> Vec<&'static str> {
        let counts = self.counts().into_iter();
        counts.filter(|(_, n)| seeds >= SEEDS_FOR_ALL && *n == 0).map(|(words, _)| words).collect()
    }
}

impl fmt::Display for Coverage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (words, count) in self.counts() {
            writeln!(f, "{count:>12}  {words}")?;
        }
        Ok(())
    }
}

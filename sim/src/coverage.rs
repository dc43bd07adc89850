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
    /// Refused, before or after the append.
    too_few_replicas = "acks=all refused for too few replicas",
    /// Answered by what was written before.
    duplicates = "repeated sends recognised",
    /// Records read below the HW.
    records_read = "records consumed",
    /// Log starts moved by DeleteRecords.
    deletions = "log starts raised",
    /// Segments dropped by retention.
    segments_dropped = "segments dropped",
    /// Messages that never came.
    messages_lost = "messages lost",
    /// Messages that came twice.
    messages_doubled = "messages doubled",
    /// Messages that later ones overtook.
    messages_late = "messages late",
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

impl fmt::Display for Coverage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (words, count) in self.counts() {
            writeln!(f, "{count:>12}  {words}")?;
        }
        Ok(())
    }
}

//! Offsets of partitions and lag of groups as Prometheus text.

use std::fmt::{self, Write};

use duolog_coordinator::group::image::GroupImage;

use crate::metrics::{escape, header};
use crate::node::Node;
use crate::partitions::{Offsets, Partition};

/// One log at one moment.
struct LogFigures {
    /// The labels of its series.
    labels: String,
    offsets: Offsets,
    bytes: i64,
}

/// One number of a log as a gauge.
type Figure = (&'static str, &'static str, fn(&LogFigures) -> i64);

const FIGURES: [Figure; 5] = [
    ("duolog_log_start_offset", "Earliest readable offset.", |log| log.offsets.log_start),
    ("duolog_log_end_offset", "Next offset to be written.", |log| log.offsets.log_end),
    ("duolog_high_watermark", "First offset that is not committed.", |log| {
        log.offsets.high_watermark
    }),
    ("duolog_last_stable_offset", "First offset that read_committed does not see.", |log| {
        log.offsets.last_stable
    }),
    ("duolog_log_bytes", "Bytes of all segments.", |log| log.bytes),
];

impl LogFigures {
    fn of(partition: &Partition) -> Self {
        let (topic, index) = (escape(&partition.topic), partition.index);
        Self {
            labels: format!("topic=\"{topic}\",partition=\"{index}\""),
            offsets: partition.offsets(),
            bytes: i64::try_from(partition.bytes()).unwrap_or(i64::MAX),
        }
    }
}

/// Writes the figures of every log that was opened, and of every group.
pub fn render(node: &Node, out: &mut String) -> fmt::Result {
    // Positions first: a log end that is read later is never behind them (case B136).
    let groups = positions(node);
    let mut partitions = node.partitions.all();
    partitions.retain(|partition| partition.was_opened());
    partitions.sort_by(|a, b| (&a.topic, a.index).cmp(&(&b.topic, b.index)));
    let logs: Vec<_> = partitions.iter().map(|partition| LogFigures::of(partition)).collect();
    for (name, help, value) in FIGURES {
        header(out, name, help, "gauge")?;
        for log in &logs {
            writeln!(out, "{name}{{{}}} {}", log.labels, value(log))?;
        }
    }
    for (name, help, bytes) in [
        ("duolog_request_memory_bytes", "Room that large requests take.", node.requests.used()),
        ("duolog_answer_memory_bytes", "Answers not taken yet.", node.answers.used() as u64),
    ] {
        header(out, name, help, "gauge")?;
        writeln!(out, "{name} {bytes}")?;
    }
    let name = "duolog_log_dir_offline";
    header(out, name, "Whether a log directory cannot be used.", "gauge")?;
    for dir in node.partitions.shared().log_dirs.all() {
        let path = escape(&dir.path().display().to_string());
        writeln!(out, "{name}{{dir=\"{path}\"}} {}", i32::from(!dir.is_online()))?;
    }
    if let Some((open, on_their_way)) = node.halves.figures() {
        let name = "duolog_half_messages";
        header(out, name, "Half messages that are not settled.", "gauge")?;
        writeln!(out, "{name}{{state=\"open\"}} {open}")?;
        writeln!(out, "{name}{{state=\"decided\"}} {on_their_way}")?;
    }
    header(out, "duolog_groups", "Groups by type and state.", "gauge")?;
    for ((group_type, state), count) in node.coordinators.census() {
        writeln!(out, "duolog_groups{{type=\"{group_type}\",state=\"{state}\"}} {count}")?;
    }
    for (name, help, count) in [
        ("duolog_messages_in_hand", "Popped messages.", node.inflight.flight_count()),
        ("duolog_dead_on_their_way", "Dead letters.", node.inflight.on_their_way_count()),
        ("duolog_timers_waiting", "Messages that wait.", node.timers.waiting_count()),
        ("duolog_timers_on_their_way", "Due messages.", node.timers.on_their_way_count()),
    ] {
        header(out, name, help, "gauge")?;
        writeln!(out, "{name} {count}")?;
    }
    let (offset, lag) = ("duolog_group_offset", "duolog_group_lag");
    header(out, offset, "Committed position.", "gauge")?;
    for position in &groups {
        writeln!(out, "{offset}{{{}}} {}", position.labels(), position.offset)?;
    }
    header(out, lag, "Records between the position and the end for readers.", "gauge")?;
    for position in &groups {
        // Nothing is said of a topic that is not there any more (case B133).
        if let Some(lag_records) = position.lag(node) {
            writeln!(out, "{lag}{{{}}} {lag_records}", position.labels())?;
        }
    }
    Ok(())
}

struct Position {
    group: String,
    topic: String,
    partition: i32,
    offset: i64,
    reads_stable: bool,
}

impl Position {
    fn labels(&self) -> String {
        let (group, topic) = (escape(&self.group), escape(&self.topic));
        format!("group=\"{group}\",topic=\"{topic}\",partition=\"{}\"", self.partition)
    }

    fn lag(&self, node: &Node) -> Option<i64> {
        let topic = node.controller.image().topic(&self.topic)?.id;
        let partition = node.partitions.find(topic, self.partition)?;
        let offsets = partition.offsets();
        let end = if self.reads_stable { offsets.last_stable } else { offsets.high_watermark };
        // A negative position, which Kafka keeps as it is, counts from nowhere.
        let counts = partition.offsets_are_known() && self.offset >= 0;
        counts.then(|| end.saturating_sub(self.offset).max(0))
    }
}

fn positions(node: &Node) -> Vec<Position> {
    let mut positions = Vec::new();
    node.coordinators.for_each_group(|group, image: &GroupImage| {
        for (topic, partitions) in &image.offsets {
            positions.extend(partitions.iter().map(|(partition, value)| Position {
                group: group.to_owned(),
                topic: topic.to_string(),
                partition: *partition,
                offset: value.offset,
                reads_stable: image.is_rocketmq(),
            }));
        }
    });
    positions
        .sort_by(|a, b| (&a.group, &a.topic, a.partition).cmp(&(&b.group, &b.topic, b.partition)));
    positions
}

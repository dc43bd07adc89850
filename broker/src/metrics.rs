//! Counters and latencies, cheap enough for every request, printed as Prometheus text.

use std::fmt::{self, Write};
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};
use std::time::Instant;

use duolog_bridge::request_code::{self, REQUEST_CODES};

use crate::kafka::codec::ApiKey;

/// Upper bounds of the latency buckets in microseconds; the last bucket has none.
const BUCKETS_US: [u64; 14] = [
    50, 100, 250, 500, 1_000, 2_500, 5_000, 10_000, 25_000, 50_000, 100_000, 250_000, 1_000_000,
    10_000_000,
];

/// A number that only rises.
#[derive(Debug, Default)]
pub struct Counter(AtomicU64);

impl Counter {
    /// Adds `count`.
    pub fn add(&self, count: u64) {
        self.0.fetch_add(count, Ordering::Relaxed);
    }

    /// The sum so far.
    pub fn value(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

/// Requests of one kind.
#[derive(Debug, Default)]
pub struct Series {
    requests: Counter,
    request_bytes: Counter,
    response_bytes: Counter,
    duration_us: Counter,
    buckets: [Counter; BUCKETS_US.len() + 1],
}

impl Series {
    /// Counts a request of `bytes` and starts its clock.
    pub fn start(self: &Arc<Self>, bytes: usize) -> ApiTimer {
        self.requests.add(1);
        self.request_bytes.add(bytes as u64);
        ApiTimer { series: self.clone(), started: Instant::now() }
    }
}

/// The clock of one request.
#[derive(Debug)]
pub struct ApiTimer {
    series: Arc<Series>,
    started: Instant,
}

impl ApiTimer {
    /// The answer of `bytes` has been written.
    pub fn finish(self, bytes: usize) {
        let us = u64::try_from(self.started.elapsed().as_micros()).unwrap_or(u64::MAX);
        self.series.response_bytes.add(bytes as u64);
        self.series.duration_us.add(us);
        let bucket = BUCKETS_US.partition_point(|bound| *bound < us);
        if let Some(bucket) = self.series.buckets.get(bucket) {
            bucket.add(1);
        }
    }
}

/// Records that left for consumers of one protocol.
#[derive(Debug, Default)]
pub struct Delivered {
    /// Since the node started.
    pub records: Counter,
    /// Their bytes, without what the protocol puts around them.
    pub bytes: Counter,
}

impl Delivered {
    /// Counts `records` of together `bytes`.
    pub fn add(&self, records: u64, bytes: u64) {
        self.records.add(records);
        self.bytes.add(bytes);
    }
}

/// One series for each kind of request.
#[derive(Debug)]
struct PerKind<const KINDS: usize>([Arc<Series>; KINDS]);

impl<const KINDS: usize> Default for PerKind<KINDS> {
    fn default() -> Self {
        Self(std::array::from_fn(|_| Arc::default()))
    }
}

/// Everything that is counted on a node.
#[derive(Debug, Default)]
pub struct Metrics {
    kafka: PerKind<{ ApiKey::ALL.len() }>,
    /// In the order of `REQUEST_CODES`; the last one is that of all other codes.
    rocketmq: PerKind<{ REQUEST_CODES.len() + 1 }>,
    /// Open connections of each listener's kind.
    pub kafka_connections: AtomicI64,
    /// Open connections to the RocketMQ ports.
    pub rocketmq_connections: AtomicI64,
    /// Records that clients appended, both protocols; the node's own (positions, metadata) are not among them.
    pub records_in: Counter,
    /// Their bytes.
    pub bytes_in: Counter,
    /// What left for Kafka's consumers: batches as they lie.
    pub kafka_out: Delivered,
    /// What left for RocketMQ's consumers: records, not compressed.
    pub rocketmq_out: Delivered,
}

impl Metrics {
    /// The series of a Kafka API.
    pub fn kafka(&self, key: ApiKey) -> &Arc<Series> {
        let index = ApiKey::ALL.binary_search(&key).unwrap_or_default();
        #[expect(clippy::indexing_slicing, reason = "one series for each key of ALL")]
        &self.kafka.0[index]
    }

    /// The series of a RocketMQ request code, served or not; unknown ones share one, so that no
    /// client can make series.
    pub fn rocketmq(&self, code: i32) -> &Arc<Series> {
        let known = request_code::position(code);
        #[expect(clippy::indexing_slicing, reason = "one series for each known code, and one")]
        &self.rocketmq.0[known.unwrap_or(REQUEST_CODES.len())]
    }

    /// Records that left for consumers of both protocols.
    pub fn records_out(&self) -> u64 {
        self.kafka_out.records.value() + self.rocketmq_out.records.value()
    }

    /// Record bytes that left for consumers of both protocols.
    pub fn bytes_out(&self) -> u64 {
        self.kafka_out.bytes.value() + self.rocketmq_out.bytes.value()
    }

    /// Writes the node-wide series as Prometheus text.
    pub fn render(&self, out: &mut String) -> fmt::Result {
        let kafka = ApiKey::ALL.iter().zip(&self.kafka.0).map(|(key, series)| {
            (format!("protocol=\"kafka\",api=\"{}\"", key.name()), series.clone())
        });
        let names = REQUEST_CODES.iter().map(|(_, name)| *name).chain(["unknown"]);
        let rocketmq = names.zip(&self.rocketmq.0).map(|(name, series)| {
            (format!("protocol=\"rocketmq\",api=\"{name}\""), series.clone())
        });
        let series: Vec<_> =
            kafka.chain(rocketmq).filter(|(_, series)| series.requests.value() > 0).collect();
        render_series(out, &series)?;
        let totals = [
            ("duolog_records_in_total", "Records that clients appended.", &self.records_in),
            ("duolog_bytes_in_total", "Record bytes that clients appended.", &self.bytes_in),
        ];
        for (name, help, counter) in totals {
            header(out, name, help, "counter")?;
            writeln!(out, "{name} {}", counter.value())?;
        }
        self.render_delivered(out)?;
        header(out, "duolog_connections", "Open connections.", "gauge")?;
        for (protocol, count) in
            [("kafka", &self.kafka_connections), ("rocketmq", &self.rocketmq_connections)]
        {
            let count = count.load(Ordering::Relaxed);
            writeln!(out, "duolog_connections{{protocol=\"{protocol}\"}} {count}")?;
        }
        Ok(())
    }
}

impl Metrics {
    fn render_delivered(&self, out: &mut String) -> fmt::Result {
        type Value = fn(&Delivered) -> &Counter;
        let totals: [(&str, &str, Value); 2] = [
            ("duolog_records_out_total", "Records that left for consumers.", |out| &out.records),
            ("duolog_bytes_out_total", "Record bytes that left for consumers.", |out| &out.bytes),
        ];
        for (name, help, value) in totals {
            header(out, name, help, "counter")?;
            for (protocol, delivered) in
                [("kafka", &self.kafka_out), ("rocketmq", &self.rocketmq_out)]
            {
                writeln!(out, "{name}{{protocol=\"{protocol}\"}} {}", value(delivered).value())?;
            }
        }
        Ok(())
    }
}

fn render_series(out: &mut String, series: &[(String, Arc<Series>)]) -> fmt::Result {
    type Value = fn(&Series) -> u64;
    let counters: [(&str, &str, Value); 3] = [
        ("duolog_requests_total", "Requests read.", |series| series.requests.value()),
        ("duolog_request_bytes_total", "Bytes of requests.", |series| series.request_bytes.value()),
        ("duolog_response_bytes_total", "Bytes of answers.", |series| {
            series.response_bytes.value()
        }),
    ];
    for (name, help, value) in counters {
        header(out, name, help, "counter")?;
        for (labels, series) in series {
            writeln!(out, "{name}{{{labels}}} {}", value(series))?;
        }
    }
    let name = "duolog_request_duration_seconds";
    header(out, name, "From a whole request to its written answer.", "histogram")?;
    for (labels, series) in series {
        let mut count = 0;
        for (index, bucket) in series.buckets.iter().enumerate() {
            count += bucket.value();
            let bound = BUCKETS_US
                .get(index)
                .map_or_else(|| "+Inf".to_owned(), |us| (*us as f64 / 1e6).to_string());
            writeln!(out, "{name}_bucket{{{labels},le=\"{bound}\"}} {count}")?;
        }
        let seconds = series.duration_us.value() as f64 / 1e6;
        writeln!(out, "{name}_sum{{{labels}}} {seconds}\n{name}_count{{{labels}}} {count}")?;
    }
    Ok(())
}

/// The two comment lines before a metric's values.
pub fn header(out: &mut String, name: &str, help: &str, kind: &str) -> fmt::Result {
    writeln!(out, "# HELP {name} {help}\n# TYPE {name} {kind}")
}

/// A label's value with what the text format reserves escaped.
pub fn escape(value: &str) -> String {
    value.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n")
}

#[cfg(test)]
mod tests;

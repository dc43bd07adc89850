//! How many records per second, over the spans that RocketMQ's tools print.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use duolog_bridge::backend::RuntimeCounters;
use parking_lot::Mutex;
use tokio_util::sync::CancellationToken;

use crate::clock;
use crate::metrics::Metrics;

/// Spans in seconds.
const SPANS: [usize; 3] = [10, 60, 600];

const DAY_MS: i64 = 24 * 60 * 60 * 1000;

/// Records in and out at one second.
type Totals = [u64; 2];

#[derive(Debug, Default)]
struct Samples {
    /// One a second, the newest last; one more than the longest span.
    totals: VecDeque<Totals>,
    /// Totals when yesterday and when today began.
    mornings: [Totals; 2],
    day: i64,
}

/// Samples of the node's counters.
#[derive(Debug)]
pub struct Rates {
    started_ms: i64,
    samples: Mutex<Samples>,
}

impl Rates {
    /// Samples `metrics` once a second until `stopping`.
    pub fn start(metrics: Arc<Metrics>, stopping: CancellationToken) -> Arc<Self> {
        let now_ms = clock::now_ms();
        let samples = Samples { day: now_ms.div_euclid(DAY_MS), ..Samples::default() };
        let rates = Arc::new(Self { started_ms: now_ms, samples: Mutex::new(samples) });
        let sampled = rates.clone();
        tokio::spawn(async move {
            let mut seconds = tokio::time::interval(Duration::from_secs(1));
            loop {
                tokio::select! {
                    () = stopping.cancelled() => return,
                    _ = seconds.tick() => {
                        let totals = [metrics.records_in.value(), metrics.records_out()];
                        sampled.samples.lock().add(totals, clock::now_ms());
                    }
                }
            }
        });
        rates
    }

    /// When sampling began.
    pub fn started_ms(&self) -> i64 {
        self.started_ms
    }

    /// Fills in the rates and the totals of the mornings.
    pub fn fill(&self, counters: &mut RuntimeCounters) {
        let samples = self.samples.lock();
        for (at, seconds) in SPANS.into_iter().enumerate() {
            let [records_in, records_out] = samples.per_second(seconds);
            if let Some(rate) = counters.records_in_per_second.get_mut(at) {
                *rate = records_in;
            }
            if let Some(rate) = counters.records_out_per_second.get_mut(at) {
                *rate = records_out;
            }
        }
        let [[in_yesterday, out_yesterday], [in_today, out_today]] = samples.mornings;
        counters.records_in_mornings = [in_yesterday, in_today];
        counters.records_out_mornings = [out_yesterday, out_today];
    }
}

impl Samples {
    fn add(&mut self, totals: Totals, now_ms: i64) {
        let day = now_ms.div_euclid(DAY_MS);
        if day != self.day {
            self.day = day;
            self.mornings = [self.mornings[1], totals];
        }
        self.totals.push_back(totals);
        if self.totals.len() > SPANS.iter().copied().max().unwrap_or_default() + 1 {
            self.totals.pop_front();
        }
    }

    /// Averages over the last `seconds`, or over as long as there are samples.
    fn per_second(&self, seconds: usize) -> [f64; 2] {
        let newest = self.totals.len().saturating_sub(1);
        let first = newest.saturating_sub(seconds);
        let span = (newest - first) as f64;
        match (self.totals.get(first), self.totals.get(newest)) {
            (Some(before), Some(now)) if span > 0.0 => {
                let rate = |before: u64, now: u64| now.saturating_sub(before) as f64 / span;
                [rate(before[0], now[0]), rate(before[1], now[1])]
            }
            _ => [0.0, 0.0],
        }
    }
}

#[cfg(test)]
mod tests;

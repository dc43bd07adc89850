//! What clients have sent last, for the HTTP port.
//!
//! Clients, series and names are so many at most, and what a client sent is forgotten some intervals after its last
//! push: no client makes more of it than there is room for.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::fmt::{self, Write};

use super::otlp::{Kind, Label, Sample};
use super::subscriptions::{Attributes, SELECTORS};
use crate::kafka::codec::Uuid;
use crate::limits::{
    TELEMETRY_CLIENT_SERIES_MAX, TELEMETRY_NAMES_MAX, TELEMETRY_SERIES_MAX, TELEMETRY_TEXT_MAX,
};
use crate::metrics::{escape, header};

/// What a client sent is shown for so long after its last push, or for three of its intervals.
const SHOWN_MS: i64 = 60_000;

/// Before every name that a client gave.
const PREFIX: &str = "client_";

/// Name and labels of one number.
type Key = (String, String);

#[derive(Debug)]
struct Series {
    kind: Kind,
    value: f64,
}

#[derive(Debug, Default)]
struct Client {
    series: BTreeMap<Key, Series>,
    until: i64,
}

/// See the module.
#[derive(Debug, Default)]
pub(super) struct Received {
    clients: HashMap<Uuid, Client>,
    pushes: u64,
    left_out: u64,
}

impl Received {
    /// Takes what one push brought; `left_out` counts what it had beyond.
    pub(super) fn take(
        &mut self,
        id: Uuid,
        attributes: &Attributes,
        samples: Vec<Sample>,
        left_out: u64,
        interval_ms: i32,
        now: i64,
    ) {
        self.forget_silent(now);
        self.pushes += 1;
        self.left_out += left_out;
        let mut names = self.names();
        let mut room = TELEMETRY_SERIES_MAX.saturating_sub(self.series());
        let client = self.clients.entry(id).or_default();
        client.until = now.saturating_add(SHOWN_MS.max(i64::from(interval_ms).saturating_mul(3)));
        for sample in samples {
            let name = format!("{PREFIX}{}", legal(&sample.name));
            let labels = labels(attributes, sample.labels);
            if name.len() + labels.len() > TELEMETRY_TEXT_MAX {
                self.left_out += 1;
                continue;
            }
            let key = (name, labels);
            if let Some(series) = client.series.get_mut(&key) {
                series.kind = sample.kind;
                series.value = match sample.kind {
                    Kind::Delta => series.value + sample.value,
                    Kind::Gauge | Kind::Total => sample.value,
                };
                continue;
            }
            let has_name = names.contains(&key.0) || names.len() < TELEMETRY_NAMES_MAX;
            if !has_name || room == 0 || client.series.len() >= TELEMETRY_CLIENT_SERIES_MAX {
                self.left_out += 1;
                continue;
            }
            room -= 1;
            names.insert(key.0.clone());
            client.series.insert(key, Series { kind: sample.kind, value: sample.value });
        }
    }

    fn forget_silent(&mut self, now: i64) {
        self.clients.retain(|_, client| client.until > now);
    }

    fn names(&self) -> BTreeSet<String> {
        let keys = self.clients.values().flat_map(|client| client.series.keys());
        let mut names = BTreeSet::new();
        for (name, _) in keys {
            if !names.contains(name) {
                names.insert(name.clone());
            }
        }
        names
    }

    fn series(&self) -> usize {
        self.clients.values().map(|client| client.series.len()).sum()
    }

    pub(super) fn render(&mut self, out: &mut String, now: i64) -> fmt::Result {
        self.forget_silent(now);
        let clients = self.clients.values();
        let figures: [(&str, &str, &str, u64); 4] = [
            (
                "duolog_telemetry_clients",
                "Clients whose pushed metrics are shown.",
                "gauge",
                self.clients.len() as u64,
            ),
            ("duolog_telemetry_series", "Series that they pushed.", "gauge", self.series() as u64),
            ("duolog_telemetry_pushes_total", "Pushes taken.", "counter", self.pushes),
            (
                "duolog_telemetry_left_out_total",
                "Pushed numbers that there was no room for.",
                "counter",
                self.left_out,
            ),
        ];
        for (name, help, kind, value) in figures {
            header(out, name, help, kind)?;
            writeln!(out, "{name} {value}")?;
        }
        let mut by_name: BTreeMap<&str, Vec<(&str, &Series)>> = BTreeMap::new();
        for ((name, labels), series) in clients.flat_map(|client| &client.series) {
            by_name.entry(name.as_str()).or_default().push((labels.as_str(), series));
        }
        for (name, mut all) in by_name {
            all.sort_by_key(|(labels, _)| *labels);
            let rises = all.iter().all(|(_, series)| series.kind != Kind::Gauge);
            header(out, name, "Pushed by clients.", if rises { "counter" } else { "gauge" })?;
            for (labels, series) in all {
                writeln!(out, "{name}{{{labels}}} {}", series.value)?;
            }
        }
        Ok(())
    }
}

/// Who the client is, and its own attributes, the first of each name.
fn labels(attributes: &Attributes, own: Vec<Label>) -> String {
    let known = SELECTORS.iter().filter_map(|name| {
        // The port changes with every connection and tells nothing.
        let value = attributes.get(name).filter(|_| *name != "client_source_port")?;
        Some(((*name).to_owned(), value.clone()))
    });
    let mut all: BTreeMap<String, String> = BTreeMap::new();
    for (name, value) in known.chain(own.into_iter().map(|(name, value)| (legal(&name), value))) {
        all.entry(name).or_insert(value);
    }
    let texts: Vec<String> =
        all.into_iter().map(|(name, value)| format!("{name}=\"{}\"", escape(&value))).collect();
    texts.join(",")
}

/// A name with `_` for all that no name may have.
fn legal(name: &str) -> String {
    let is_legal = |character: char| character.is_ascii_alphanumeric() || character == '_';
    let mut legal: String = name.chars().map(|it| if is_legal(it) { it } else { '_' }).collect();
    if legal.starts_with(|first: char| first.is_ascii_digit()) || legal.is_empty() {
        legal.insert(0, '_');
    }
    legal
}

#[cfg(test)]
mod tests;

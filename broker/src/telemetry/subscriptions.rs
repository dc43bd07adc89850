//! What clients are asked for: the settings of client-metrics resources, resolved.
//!
//! Source: ClientMetricsConfigs, ClientMetricsManager.

use std::collections::{BTreeMap, BTreeSet};

use duolog_coordinator::pattern;
use regex::Regex;

use crate::config::change::ChangeError;
use crate::config::key;
use crate::config::topic::Overrides;

/// Key of the names' prefixes that are asked for; [`ALL`] is every one.
const METRICS: &str = "metrics";
/// Key of the time between two pushes.
pub const INTERVAL_MS: &str = "interval.ms";
/// Key of the selectors that a client has to match, all of them.
const MATCH: &str = "match";

/// Every metric.
pub const ALL: &str = "*";

/// Where nothing is set.
pub const DEFAULT_INTERVAL_MS: i32 = 300_000;
const INTERVALS_MS: std::ops::RangeInclusive<i32> = 100..=3_600_000;

/// What may be said of a client in [`MATCH`].
pub const SELECTORS: [&str; 6] = [
    "client_id",
    "client_instance_id",
    "client_software_name",
    "client_software_version",
    "client_source_address",
    "client_source_port",
];

/// A client, by selector.
pub type Attributes = BTreeMap<&'static str, String>;

/// One client-metrics resource.
#[derive(Debug)]
struct Subscription {
    metrics: BTreeSet<String>,
    interval_ms: i32,
    matches: BTreeMap<&'static str, Regex>,
}

/// All of them.
#[derive(Debug, Default)]
pub struct Subscriptions(BTreeMap<String, Subscription>);

/// What one client is asked for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Wanted {
    /// Prefixes of names.
    pub metrics: Vec<String>,
    /// Time between two pushes.
    pub interval_ms: i32,
}

impl Subscriptions {
    /// Those that these settings mean. Settings were checked before they were stored; one that this
    /// version cannot read any more asks nobody.
    pub fn resolve<'a>(resources: impl Iterator<Item = (&'a str, &'a Overrides)>) -> Self {
        let read = resources
            .filter_map(|(name, values)| Some((name.to_owned(), Subscription::read(values).ok()?)));
        Self(read.collect())
    }

    /// What a client is asked for: all that is asked of whom it matches, as often as the most
    /// frequent of them.
    pub fn wanted(&self, client: &Attributes) -> Wanted {
        let mut metrics = BTreeSet::new();
        let mut interval_ms = DEFAULT_INTERVAL_MS;
        for subscription in self.0.values().filter(|subscription| subscription.is_for(client)) {
            metrics.extend(subscription.metrics.iter().cloned());
            interval_ms = interval_ms.min(subscription.interval_ms);
        }
        if metrics.contains(ALL) {
            metrics = BTreeSet::from([ALL.to_owned()]);
        }
        Wanted { metrics: metrics.into_iter().collect(), interval_ms }
    }
}

impl Subscription {
    fn read(values: &Overrides) -> Result<Self, ChangeError> {
        let text = |name: &str| values.get(name).map(String::as_str).unwrap_or_default();
        let interval_ms = match values.get(INTERVAL_MS) {
            None => DEFAULT_INTERVAL_MS,
            Some(value) => value.trim().parse().map_err(|_| {
                ChangeError::InvalidConfig(format!(
                    "Invalid value {value} for configuration {INTERVAL_MS}: Not a number of type INT"
                ))
            })?,
        };
        if !INTERVALS_MS.contains(&interval_ms) {
            return Err(ChangeError::InvalidRequest(format!(
                "Invalid value {interval_ms} for {INTERVAL_MS}, interval must be between 100 and \
                 3600000 (1 hour)"
            )));
        }
        let matches = key::list(text(MATCH)).into_iter().map(selector);
        Ok(Self {
            metrics: key::list(text(METRICS)).into_iter().map(str::to_owned).collect(),
            interval_ms,
            matches: matches.collect::<Result<_, _>>()?,
        })
    }

    fn is_for(&self, client: &Attributes) -> bool {
        self.matches.iter().all(|(selector, pattern)| {
            client.get(selector).is_some_and(|value| pattern.is_match(value))
        })
    }
}

/// `selector=pattern`; a later one of the same selector takes an earlier one's place.
fn selector(text: &str) -> Result<(&'static str, Regex), ChangeError> {
    let illegal = || ChangeError::InvalidConfig(format!("Illegal client matching pattern: {text}"));
    let (name, pattern) = text.split_once('=').ok_or_else(illegal)?;
    if pattern.is_empty() || pattern.contains('=') {
        return Err(illegal());
    }
    let known = SELECTORS.iter().copied().find(|known| *known == name.trim());
    let known = known.ok_or_else(illegal)?;
    Ok((known, pattern::whole(pattern.trim()).map_err(|_| illegal())?))
}

/// Whether these may be a resource's settings. Errors in Kafka's words.
pub fn check(name: &str, values: &Overrides) -> Result<(), ChangeError> {
    if name.is_empty() {
        let text = "Subscription name can't be empty";
        return Err(ChangeError::InvalidRequest(text.to_owned()));
    }
    for key in values.keys() {
        if key::client_metrics_key(key).is_none() {
            let text = format!("Unknown client metrics configuration: {key}");
            return Err(ChangeError::InvalidRequest(text));
        }
    }
    Subscription::read(values).map(drop)
}

#[cfg(test)]
mod tests;

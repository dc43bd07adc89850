//! What DescribeConfigs and `duolog` show of a configuration: value, origin, synonyms (KIP-226).

use super::key::{self, Key, Kind};
use super::topic::{self, Overrides};
use super::values::{Source, Values};

/// Where a shown value comes from; the numbers of DescribeConfigs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Origin {
    /// The topic's own override.
    Topic = 1,
    /// Set on the running node.
    DynamicBroker = 2,
    /// File, environment, flag or profile.
    StaticBroker = 4,
    /// Nobody set it.
    Default = 5,
}

impl From<Source> for Origin {
    fn from(source: Source) -> Self {
        match source {
            Source::Dynamic => Self::DynamicBroker,
            Source::Profile | Source::File | Source::Environment | Source::Flag => {
                Self::StaticBroker
            }
        }
    }
}

/// A key that also says something about an entry's value, the strongest first.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Synonym {
    /// Its name.
    pub name: &'static str,
    /// Its own value, in its own unit.
    pub value: Option<String>,
    /// Who set it.
    pub origin: Origin,
}

/// One key as shown to a user.
#[derive(Clone, Debug)]
pub struct Entry {
    /// The key.
    pub key: &'static Key,
    /// The value in force; `None` for Kafka's null and for every secret.
    pub value: Option<String>,
    /// Where the value comes from.
    pub origin: Origin,
    /// All that was set for it, the one in force first, its default last.
    pub synonyms: Vec<Synonym>,
}

/// Every key of a topic with `overrides`, in order of name.
pub fn topic(values: &Values, overrides: &Overrides) -> Vec<Entry> {
    key::topic_keys().iter().map(|key| topic_entry(values, overrides, key)).collect()
}

/// Every key of the node, in order of name.
pub fn broker(values: &Values) -> Vec<Entry> {
    key::broker_keys()
        .iter()
        .map(|key| {
            let synonyms = broker_synonyms(values, key);
            entry(key, values.text(key.name).map(str::to_owned), synonyms)
        })
        .collect()
}

fn topic_entry(values: &Values, overrides: &Overrides, key: &'static Key) -> Entry {
    let mut synonyms = Vec::new();
    let own = overrides.get(key.name);
    if let Some(value) = own {
        let value = Some(value.clone());
        synonyms.push(Synonym { name: key.name, value, origin: Origin::Topic });
    }
    let broker_keys = key.synonyms.iter().filter_map(|name| key::broker_key(name));
    for broker_key in broker_keys.clone() {
        if values.set_value(broker_key.name).is_some() {
            synonyms.extend(broker_synonyms(values, broker_key).into_iter().take(1));
        }
    }
    // The default that stands when nobody sets anything is shown under its own broker key.
    let mut broker_keys = broker_keys;
    if let Some(broker_key) = broker_keys.rfind(|key| key.default.is_some()) {
        let value = broker_key.default.map(str::to_owned);
        synonyms.push(Synonym { name: broker_key.name, value, origin: Origin::Default });
    }
    let value = own.cloned().or_else(|| topic::default_value(values, key));
    entry(key, value, synonyms)
}

fn broker_synonyms(values: &Values, key: &'static Key) -> Vec<Synonym> {
    let set = values.set_value(key.name).map(|(value, source)| Synonym {
        name: key.name,
        value: Some(value.to_owned()),
        origin: source.into(),
    });
    let default = key.default.map(|value| Synonym {
        name: key.name,
        value: Some(value.to_owned()),
        origin: Origin::Default,
    });
    set.into_iter().chain(default).collect()
}

fn entry(key: &'static Key, value: Option<String>, mut synonyms: Vec<Synonym>) -> Entry {
    let origin = synonyms.first().map_or(Origin::Default, |first| first.origin);
    let secret = key.kind == Kind::Password;
    if secret {
        synonyms.iter_mut().for_each(|synonym| synonym.value = None);
    }
    Entry { key, value: value.filter(|_| !secret), origin, synonyms }
}

#[cfg(test)]
mod tests;

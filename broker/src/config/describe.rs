//! What DescribeConfigs and `duolog` show of a configuration: value, origin, synonyms (KIP-226).

use super::key::{self, Key, Kind};
use super::topic::{self, Overrides};
use super::values::Values;

/// Where a shown value comes from; the numbers of DescribeConfigs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Origin {
    /// The topic's own override.
    Topic = 1,
    /// Set for this node while it runs.
    DynamicBroker = 2,
    /// Set for all nodes while they run.
    DynamicDefaultBroker = 3,
    /// File, environment, flag or profile.
    StaticBroker = 4,
    /// Nobody set it.
    Default = 5,
    /// Set for a client-metrics resource.
    ClientMetrics = 7,
    /// The group's own override.
    Group = 8,
}

/// A key that also says something about an entry's value, the strongest first.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Synonym {
    /// Its name.
    pub name: &'static str,
    /// Its own value, in its own unit; `None` for every secret.
    pub value: Option<String>,
    /// Who set it.
    pub origin: Origin,
}

/// One key as shown to a user.
#[derive(Clone, Debug)]
pub struct Entry {
    /// Its name, type, default and documentation.
    pub key: &'static Key,
    /// The value in force; `None` for Kafka's null and for every secret.
    pub value: Option<String>,
    /// Where the value comes from.
    pub origin: Origin,
    /// All that was set for it, the one in force first, its default last. As in Kafka empty when
    /// only a key that weighs less than the first synonym was set, as `log.retention.hours` for
    /// `retention.ms`.
    pub synonyms: Vec<Synonym>,
}

/// The node's configuration in its layers.
#[derive(Clone, Copy, Debug)]
pub struct Layers<'a> {
    /// All layers as they work together.
    pub values: &'a Values,
    /// What was set at start.
    pub fixed: &'a Values,
    /// What is set for this node while it runs.
    pub node: Option<&'a Overrides>,
    /// What is set for all nodes while they run.
    pub cluster: Option<&'a Overrides>,
}

impl Layers<'_> {
    /// Every key of a topic with `overrides`, in order of name.
    pub fn topic(&self, overrides: &Overrides) -> Vec<Entry> {
        let of = |key| self.override_entry(Origin::Topic, overrides, key);
        key::topic_keys().iter().map(of).collect()
    }

    /// Every key of a group with `overrides`, in order of name.
    pub fn group(&self, overrides: &Overrides) -> Vec<Entry> {
        let of = |key| self.override_entry(Origin::Group, overrides, key);
        key::group_keys().iter().map(of).collect()
    }

    /// Every key of a client-metrics resource with these values, in order of name.
    pub fn client_metrics(&self, values: &Overrides) -> Vec<Entry> {
        let of = |key| self.override_entry(Origin::ClientMetrics, values, key);
        key::client_metrics_keys().iter().map(of).collect()
    }

    /// Every key of the node, in order of name.
    pub fn broker(&self) -> Vec<Entry> {
        key::broker_keys()
            .iter()
            .map(|key| {
                let value = self.values.text(key.name).map(str::to_owned);
                entry(key, value, self.synonyms(key.name, family(key.name)))
            })
            .collect()
    }

    /// A key of a topic or a group, whose own values have this `origin`.
    fn override_entry(&self, origin: Origin, overrides: &Overrides, key: &'static Key) -> Entry {
        let own = overrides.get(key.name);
        let set = own.map(|value| Synonym { name: key.name, value: Some(value.clone()), origin });
        let defaults = match key.synonyms.first() {
            Some(first) => self.synonyms(first, family(first)),
            None if origin == Origin::Group => {
                let value = key.default.map(str::to_owned);
                vec![Synonym { name: key.name, value, origin: Origin::Default }]
            }
            None => Vec::new(),
        };
        let value = own.cloned().or_else(|| topic::default_value(self.values, key));
        entry(key, value, set.into_iter().chain(defaults).collect())
    }

    /// What was set for `names`, by layer and within one by their order, from the first that
    /// belongs to `name` itself on (`ConfigHelper.configSynonyms`).
    fn synonyms(&self, name: &str, names: Vec<&'static str>) -> Vec<Synonym> {
        let layers = [
            Origin::DynamicBroker,
            Origin::DynamicDefaultBroker,
            Origin::StaticBroker,
            Origin::Default,
        ];
        layers
            .into_iter()
            .flat_map(|origin| {
                names.iter().filter_map(move |name| {
                    Some(Synonym { name, value: Some(self.in_layer(origin, name)?), origin })
                })
            })
            .skip_while(|synonym| synonym.name != name)
            .collect()
    }

    fn in_layer(&self, layer: Origin, name: &str) -> Option<String> {
        match layer {
            Origin::Topic | Origin::ClientMetrics | Origin::Group => None,
            Origin::DynamicBroker => self.node?.get(name).cloned(),
            Origin::DynamicDefaultBroker => self.cluster?.get(name).cloned(),
            Origin::StaticBroker => Some(self.fixed.set_value(name)?.0.to_owned()),
            Origin::Default => Some(key::broker_key(name)?.default?.to_owned()),
        }
    }
}

/// What is set for all nodes while they run, and nothing else, in order of name.
pub fn cluster(overrides: &Overrides) -> Vec<Entry> {
    overrides
        .iter()
        .filter_map(|(name, value)| {
            let key = key::broker_key(name)?;
            let value = Some(value.clone());
            let origin = Origin::DynamicDefaultBroker;
            let set = Synonym { name: key.name, value: value.clone(), origin };
            Some(entry(key, value, vec![set]))
        })
        .collect()
}

/// The broker keys that give the same setting as `name` in some unit, the first set wins.
fn family(name: &'static str) -> Vec<&'static str> {
    let stem = |name: &'static str| name.rsplit_once('.').map(|(stem, _unit)| stem);
    let of_topic = key::topic_keys().iter().find(|key| key.synonyms.contains(&name));
    let Some(key) = of_topic else { return vec![name] };
    key.synonyms.iter().copied().filter(|other| stem(other) == stem(name)).collect()
}

fn entry(key: &'static Key, value: Option<String>, mut synonyms: Vec<Synonym>) -> Entry {
    let origin = synonyms.first().map_or(Origin::Default, |first| first.origin);
    let secret = key.kind == Kind::Password;
    for synonym in &mut synonyms {
        synonym.value = synonym.value.take().filter(|_| !secret).map(|value| shown(key, &value));
    }
    let value = value.filter(|_| !secret).map(|value| shown(key, &value));
    Entry { key, value, origin, synonyms }
}

/// A value as Kafka prints it after parsing.
fn shown(key: &Key, value: &str) -> String {
    match key.kind {
        Kind::Boolean => value.trim().to_ascii_lowercase(),
        Kind::Short | Kind::Int | Kind::Long => value.trim().to_owned(),
        Kind::Double => match value.trim().parse::<f64>() {
            Ok(number) => format!("{number:?}"),
            Err(_) => value.to_owned(),
        },
        Kind::List => key::list(value).join(","),
        Kind::String | Kind::Class | Kind::Password => value.to_owned(),
    }
}

#[cfg(test)]
mod tests;

//! Changes of a configuration that is kept as overrides (KIP-339), checked before they are stored.

mod together;

use super::key::{self, Key, Kind};
use super::topic::{self, Overrides};
use super::values::Values;
use crate::telemetry::subscriptions;

/// What becomes of one key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Change {
    /// It has this value.
    Set(String),
    /// It goes back to its default.
    Delete,
    /// The parts of this list are added to it, those that it does not have.
    Append(String),
    /// The parts of this list are taken out of it.
    Subtract(String),
}

/// A key and its change.
pub type KeyChange = (String, Change);

/// What is to be done to the settings of a resource.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Alteration {
    /// Some keys change, the others stay.
    Keys(Vec<KeyChange>),
    /// These are all; every other key goes back to its default.
    Whole(Overrides),
}

impl From<Vec<KeyChange>> for Alteration {
    fn from(changes: Vec<KeyChange>) -> Self {
        Self::Keys(changes)
    }
}

impl Alteration {
    /// The changes that were asked for one by one.
    pub fn named(&self) -> &[KeyChange] {
        match self {
            Self::Keys(changes) => changes,
            Self::Whole(_) => &[],
        }
    }

    /// The changes that this means for `held`.
    pub fn changes(&self, held: &Overrides) -> Vec<KeyChange> {
        match self {
            Self::Keys(changes) => changes.clone(),
            Self::Whole(wanted) => {
                let gone = held.keys().filter(|name| !wanted.contains_key(*name));
                let gone = gone.map(|name| (name.clone(), Change::Delete));
                let set = wanted.iter();
                let set = set.map(|(name, value)| (name.clone(), Change::Set(value.clone())));
                gone.chain(set).collect()
            }
        }
    }
}

/// Why a change is refused, in Kafka's words.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ChangeError {
    /// An unknown key, a value that it does not take, or one that nothing acts on yet.
    #[error("{0}")]
    InvalidConfig(String),
    /// A key of the node that only its start reads, or a value of the node that its key does not
    /// take.
    #[error("{0}")]
    InvalidRequest(String),
}

/// The overrides of a topic after `changes`, all of them; `values` are the node's, for defaults.
///
/// Source: `ConfigurationControlManager.incrementalAlterConfigResource`.
pub fn topic(
    values: &Values,
    overrides: &Overrides,
    changes: &[KeyChange],
) -> Result<Overrides, ChangeError> {
    let known = |name: &str| {
        let key = key::topic_key(name);
        Known { key, default: key.and_then(|key| topic::default_value(values, key)) }
    };
    let check = |name: &str, value: &str, _: Option<&'static Key>| {
        topic::check_override(name, value).map_err(ChangeError::InvalidConfig)
    };
    let after = changed(overrides, changes, known, check)?;
    topic::check_together(values, &after).map_err(ChangeError::InvalidConfig)?;
    Ok(after)
}

/// The bounds that the node sets to a group's own values.
const GROUP_BOUNDS: [(&str, &str, &str); 3] = [
    (
        "consumer.assignment.interval.ms",
        "group.consumer.min.assignment.interval.ms",
        "group.consumer.max.assignment.interval.ms",
    ),
    (
        "consumer.heartbeat.interval.ms",
        "group.consumer.min.heartbeat.interval.ms",
        "group.consumer.max.heartbeat.interval.ms",
    ),
    (
        "consumer.session.timeout.ms",
        "group.consumer.min.session.timeout.ms",
        "group.consumer.max.session.timeout.ms",
    ),
];

/// The overrides of a group after `changes`, all of them; `values` are the node's, for bounds.
///
/// Source: `GroupConfig.validate`.
pub fn group(
    values: &Values,
    overrides: &Overrides,
    changes: &[KeyChange],
) -> Result<Overrides, ChangeError> {
    let known = |name: &str| {
        let key = key::group_key(name);
        Known { key, default: key.and_then(|key| topic::default_value(values, key)) }
    };
    let check = |name: &str, value: &str, key: Option<&'static Key>| {
        let unknown = || format!("Unknown group config name: {name}");
        let checked = key.ok_or_else(unknown).and_then(|key| key.check_named(value));
        checked.map_err(ChangeError::InvalidConfig)
    };
    let after = changed(overrides, changes, known, check)?;
    let number = |text: Option<&str>| text.and_then(|text| text.trim().parse::<i64>().ok());
    for (name, min, max) in GROUP_BOUNDS {
        let Some(value) = number(after.get(name).map(String::as_str)) else { continue };
        let (least, most) = (number(values.text(min)), number(values.text(max)));
        let broken = if least.is_some_and(|least| value < least) {
            format!("{name} must be greater than or equal to {min}")
        } else if most.is_some_and(|most| value > most) {
            format!("{name} must be less than or equal to {max}")
        } else {
            continue;
        };
        return Err(ChangeError::InvalidConfig(broken));
    }
    Ok(after)
}

/// The settings of the client-metrics resource `name` after `changes`, all of them.
///
/// As in Kafka no key of them can be appended to. Source: `ClientMetricsConfigs.validate`.
pub fn client_metrics(
    name: &str,
    overrides: &Overrides,
    changes: &[KeyChange],
) -> Result<Overrides, ChangeError> {
    let known = |_: &str| Known { key: None, default: None };
    let after = changed(overrides, changes, known, |_, _, _| Ok(()))?;
    subscriptions::check(name, &after)?;
    Ok(after)
}

/// The dynamic values of one node or of all after `changes`, all of them; `values` are those in
/// force.
///
/// Source: `DynamicBrokerConfig.validate`; unlike Kafka's, it takes no key that nobody knows.
pub fn broker(
    values: &Values,
    overrides: &Overrides,
    changes: &[KeyChange],
) -> Result<Overrides, ChangeError> {
    let fixed: Vec<&str> = changes
        .iter()
        .filter(|(name, _)| key::broker_key(name).is_some_and(|key| !key.is_dynamic()))
        .map(|(name, _)| name.as_str())
        .collect();
    if !fixed.is_empty() {
        return Err(ChangeError::InvalidRequest(format!(
            "Cannot update these configs dynamically: [{}]",
            fixed.join(", ")
        )));
    }
    let known = |name: &str| Known {
        key: key::broker_key(name),
        default: values.text(name).map(str::to_owned),
    };
    let after = changed(overrides, changes, known, |name, value, key| {
        let Some(key) = key else {
            return Err(ChangeError::InvalidConfig(format!("Unknown broker config name: {name}")));
        };
        key.check_named(value).map_err(|text| {
            if key.acts {
                ChangeError::InvalidRequest(text)
            } else {
                ChangeError::InvalidConfig(text)
            }
        })
    })?;
    let set = changes.iter().filter(|(_, change)| *change != Change::Delete);
    for (name, _) in set {
        together::check(values, &after, name).map_err(ChangeError::InvalidRequest)?;
    }
    Ok(after)
}

/// What is known of a key that is to be changed.
struct Known {
    key: Option<&'static Key>,
    /// Its value where the resource sets none.
    default: Option<String>,
}

/// `overrides` after `changes`, each new value checked.
fn changed(
    overrides: &Overrides,
    changes: &[KeyChange],
    known: impl Fn(&str) -> Known,
    check: impl Fn(&str, &str, Option<&'static Key>) -> Result<(), ChangeError>,
) -> Result<Overrides, ChangeError> {
    let mut after = overrides.clone();
    check_lists(changes, |name| known(name).key)?;
    for (name, change) in changes {
        let Known { key, default } = known(name);
        apply(&mut after, name, change, default);
        if let (Some(value), false) = (after.get(name), *change == Change::Delete) {
            check(name, value, key)?;
        }
    }
    Ok(after)
}

/// Refuses to add to what is no list, or to take from it.
///
/// Kafka does so before it looks at values, and at the name of what they are for.
pub fn check_lists(
    changes: &[KeyChange],
    key: impl Fn(&str) -> Option<&'static Key>,
) -> Result<(), ChangeError> {
    for (name, change) in changes {
        let word = match change {
            Change::Set(_) | Change::Delete => continue,
            Change::Append(_) => "APPEND",
            Change::Subtract(_) => "SUBTRACT",
        };
        if key(name).is_none_or(|key| key.kind != Kind::List) {
            return Err(ChangeError::InvalidConfig(format!(
                "Can't {word} to key {name} because its type is not LIST."
            )));
        }
    }
    Ok(())
}

fn apply(overrides: &mut Overrides, name: &str, change: &Change, default: Option<String>) {
    let parts = match change {
        Change::Set(value) => {
            overrides.insert(name.to_owned(), value.clone());
            return;
        }
        Change::Delete => {
            overrides.remove(name);
            return;
        }
        Change::Append(parts) | Change::Subtract(parts) => parts,
    };
    let held = overrides.get(name).cloned().or(default).unwrap_or_default();
    let mut list = key::list(&held);
    for part in key::list(parts) {
        match change {
            Change::Subtract(_) => list.retain(|held| *held != part),
            _ if list.contains(&part) => {}
            _ => list.push(part),
        }
    }
    overrides.insert(name.to_owned(), list.join(","));
}

#[cfg(test)]
mod tests;

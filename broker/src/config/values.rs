//! Where the values come from: file, environment, flags, in rising priority; a profile below all.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use super::key::{self, Key};

/// Who set a value. Later ones win.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Source {
    /// `--profile`.
    Profile,
    /// The file of `--config`.
    File,
    /// A variable `DUOLOG_…`.
    Environment,
    /// `--set` or `--data-dir`.
    Flag,
    /// IncrementalAlterConfigs on the running node.
    Dynamic,
}

/// A configuration that cannot be used, and what to do about it.
#[derive(Debug, thiserror::Error)]
pub enum ConfigError {
    /// No such key.
    #[error("unknown config key {key:?} ({origin}){}", suggestion(*.nearest))]
    UnknownKey {
        /// As it was given.
        key: String,
        /// Where it was given.
        origin: String,
        /// The known key most like it.
        nearest: Option<&'static str>,
    },
    /// A value that its key does not take.
    #[error("invalid value {value:?} for {key} ({origin}): {reason}")]
    InvalidValue {
        /// A known configuration key.
        key: &'static str,
        /// The value as given.
        value: String,
        /// Where it was given.
        origin: String,
        /// Why it is refused.
        reason: String,
    },
    /// `--set` without `=`.
    #[error("expected --set key=value, got {0:?}")]
    NotAnAssignment(String),
    /// The file of `--config` cannot be read.
    #[error("cannot read config file {}: {source}", path.display())]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// What the operating system says.
        source: std::io::Error,
    },
    /// The file of `--config` is not TOML.
    #[error(
        "config file {} is not valid TOML, which is expected here and not Kafka's .properties: {source}",
        path.display()
    )]
    NotToml {
        /// The file.
        path: PathBuf,
        /// Where and why.
        source: Box<toml::de::Error>,
    },
}

fn suggestion(nearest: Option<&'static str>) -> String {
    nearest.map(|key| format!("; did you mean {key:?}?")).unwrap_or_default()
}

/// The values that were set, checked against the tables of known keys.
#[derive(Clone, Debug, Default)]
pub struct Values {
    set: BTreeMap<&'static str, (String, Source)>,
}

/// Server timings of `--profile fast`: everything that a person would otherwise sit and wait for.
const FAST: &[(&str, &str)] = &[
    ("group.initial.rebalance.delay.ms", "0"),
    ("group.min.session.timeout.ms", "500"),
    ("log.cleaner.backoff.ms", "1000"),
    ("log.retention.check.interval.ms", "1000"),
    ("log.segment.delete.delay.ms", "1000"),
    ("offsets.retention.check.interval.ms", "10000"),
    ("replica.high.watermark.checkpoint.interval.ms", "1000"),
    ("rocketmq.channelExpiredTimeout", "30000"),
    ("rocketmq.transactionCheckInterval", "3000"),
    ("rocketmq.transactionTimeOut", "1000"),
];

impl Values {
    /// Sets the short timings of `--profile fast`.
    pub fn set_fast_profile(&mut self) -> Result<(), ConfigError> {
        FAST.iter().try_for_each(|(key, value)| {
            self.set(key, value, Source::Profile, &|| "--profile fast".to_owned())
        })
    }

    /// Sets what the TOML file at `path` says. Tables and dotted or quoted keys are alike.
    pub fn set_from_file(&mut self, path: &Path) -> Result<(), ConfigError> {
        let text = std::fs::read_to_string(path)
            .map_err(|source| ConfigError::Unreadable { path: path.to_owned(), source })?;
        let table: toml::Table = text.parse().map_err(|source| ConfigError::NotToml {
            path: path.to_owned(),
            source: Box::new(source),
        })?;
        let mut flat = Vec::new();
        flatten("", &table, &mut flat);
        flat.iter().try_for_each(|(key, value)| {
            self.set(key, value, Source::File, &|| format!("file {}", path.display()))
        })
    }

    /// Sets what the variables with the prefix `DUOLOG_` say.
    pub fn set_from_environment(
        &mut self,
        variables: impl Iterator<Item = (String, String)>,
    ) -> Result<(), ConfigError> {
        for (variable, value) in variables {
            let Some(name) = variable.strip_prefix("DUOLOG_") else { continue };
            let known = key::broker_keys().iter().find(|key| variable_name(key) == name);
            let key = known
                .map_or_else(|| name.to_lowercase().replace('_', "."), |key| key.name.to_owned());
            self.set(&key, &value, Source::Environment, &|| format!("environment {variable}"))?;
        }
        Ok(())
    }

    /// Sets what one `--set key=value` says.
    pub fn set_from_flag(&mut self, assignment: &str) -> Result<(), ConfigError> {
        let Some((key, value)) = assignment.split_once('=') else {
            return Err(ConfigError::NotAnAssignment(assignment.to_owned()));
        };
        self.set(key.trim(), value.trim(), Source::Flag, &|| "--set".to_owned())
    }

    /// Sets one value, unless a higher source has set it; `origin` names the place for a refusal.
    pub fn set(
        &mut self,
        name: &str,
        value: &str,
        source: Source,
        origin: &dyn Fn() -> String,
    ) -> Result<(), ConfigError> {
        let Some(key) = key::broker_key(name) else {
            return Err(ConfigError::UnknownKey {
                key: name.to_owned(),
                origin: origin(),
                nearest: key::nearest(key::broker_keys(), name),
            });
        };
        key.check(value).map_err(|reason| ConfigError::InvalidValue {
            key: key.name,
            value: value.to_owned(),
            origin: origin(),
            reason,
        })?;
        let held = self.set.get(key.name).map(|(_, source)| *source);
        if held.is_none_or(|held| held <= source) {
            self.set.insert(key.name, (value.to_owned(), source));
        }
        Ok(())
    }

    /// Sets the directory of the data, as `--data-dir` does.
    ///
    /// Errors: `InvalidValue` when another flag names a directory too; neither is the later one.
    pub fn set_data_dir(&mut self, path: &Path) -> Result<(), ConfigError> {
        for key in ["log.dirs", "log.dir"] {
            if let Some((value, Source::Flag)) = self.set_value(key) {
                let (value, origin) = (value.to_owned(), "--set".to_owned());
                let reason = format!("--data-dir says {}; give one of the two", path.display());
                return Err(ConfigError::InvalidValue { key, value, origin, reason });
            }
        }
        let origin = || "--data-dir".to_owned();
        self.set("log.dirs", &path.display().to_string(), Source::Flag, &origin)
    }

    /// Takes away what was set for `name` on the running node.
    pub fn unset_dynamic(&mut self, name: &str) {
        if self.set.get(name).is_some_and(|(_, source)| *source == Source::Dynamic) {
            self.set.remove(name);
        }
    }

    /// What was set for `name`, and by whom; `None` when its default stands.
    pub fn set_value(&self, name: &str) -> Option<(&str, Source)> {
        self.set.get(name).map(|(value, source)| (value.as_str(), *source))
    }

    /// The value of `name`: what was set, else its default; `None` is Kafka's null.
    pub fn text(&self, name: &str) -> Option<&str> {
        match self.set.get(name) {
            Some((value, _)) if value == "null" => None,
            Some((value, _)) => Some(value),
            None => key::broker_key(name).and_then(|key| key.default),
        }
    }

    /// The value of `name` as a number or bool.
    ///
    /// Errors: `InvalidValue` when it is null or not such a value.
    pub fn parse<T: std::str::FromStr>(&self, name: &'static str) -> Result<T, ConfigError> {
        let value = self.text(name).unwrap_or("null");
        value.trim().to_ascii_lowercase().parse().map_err(|_| ConfigError::InvalidValue {
            key: name,
            value: value.to_owned(),
            origin: "read at start".to_owned(),
            reason: format!("expected a value of type {}", std::any::type_name::<T>()),
        })
    }

    /// The first of `names` that was set, multiplied by its unit; else `None`.
    pub fn first_set(&self, names: &[(&'static str, i64)]) -> Result<Option<i64>, ConfigError> {
        for &(name, unit) in names {
            if self.set_value(name).is_some() {
                let value: i64 = self.parse(name)?;
                return Ok(Some(if value < 0 { value } else { value.saturating_mul(unit) }));
            }
        }
        Ok(None)
    }
}

/// The part of a key's variable behind `DUOLOG_`.
fn variable_name(key: &Key) -> String {
    key.name.to_ascii_uppercase().replace(['.', '-'], "_")
}

fn flatten(prefix: &str, table: &toml::Table, flat: &mut Vec<(String, String)>) {
    for (name, value) in table {
        let key = if prefix.is_empty() { name.clone() } else { format!("{prefix}.{name}") };
        match value {
            toml::Value::Table(table) => flatten(&key, table, flat),
            toml::Value::Array(parts) => {
                let parts: Vec<String> = parts.iter().map(plain).collect();
                flat.push((key, parts.join(",")));
            }
            value => flat.push((key, plain(value))),
        }
    }
}

fn plain(value: &toml::Value) -> String {
    match value {
        toml::Value::String(text) => text.clone(),
        value => value.to_string(),
    }
}

#[cfg(test)]
mod tests;

//! The tables of known configuration keys: Kafka's, RocketMQ's (prefix `rocketmq.`), a topic's, a
//! group's and those of client metrics.
//!
//! A key that nothing acts on yet is known none the less, and accepted at its default only: a
//! setting is never silently without effect. Sources: `KafkaConfig`, `LogConfig` (Kafka 4.3.1);
//! `BrokerConfig`, `MessageStoreConfig`, `NamesrvConfig` (RocketMQ 5.5.0).

use std::sync::LazyLock;

/// The type of a value, as DescribeConfigs names it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// `true` or `false`.
    Boolean,
    /// A 16-bit number.
    Short,
    /// A 32-bit number.
    Int,
    /// A 64-bit number.
    Long,
    /// A floating point number.
    Double,
    /// Free text.
    String,
    /// Texts separated by commas.
    List,
    /// A Java class name.
    Class,
    /// A secret: never printed.
    Password,
}

/// Whether a running node may be given another value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Update {
    /// Only at start.
    ReadOnly,
    /// By IncrementalAlterConfigs, for the whole cluster.
    ClusterWide,
    /// By IncrementalAlterConfigs, for one node.
    PerBroker,
    /// A topic's own.
    Topic,
    /// A group's own.
    Group,
    /// A client-metrics resource's own.
    ClientMetrics,
}

/// Which values a key takes, beyond being of its [`Kind`].
#[derive(Clone, Debug, PartialEq)]
pub enum Valid {
    /// Any.
    Any,
    /// Any but the empty text.
    NonEmpty,
    /// From `min` to `max`, both inclusive, or exactly `or`.
    Range {
        /// The least value.
        min: f64,
        /// The greatest value; infinite when unbounded.
        max: f64,
        /// One value outside the range that is allowed too.
        or: Option<f64>,
    },
    /// One of these texts (each of them, for a list).
    OneOf(Vec<&'static str>),
    /// One of these texts, in capitals or not.
    OneOfAnyCase(Vec<&'static str>),
}

/// One known configuration key.
#[derive(Clone, Debug)]
pub struct Key {
    /// As in a config file; RocketMQ's with the prefix `rocketmq.`.
    pub name: &'static str,
    /// Whether this build acts on it. If not, only the default is accepted.
    pub acts: bool,
    /// Type of the value.
    pub kind: Kind,
    /// Value when nothing sets it; `None` is Kafka's null.
    pub default: Option<&'static str>,
    /// Allowed values.
    pub valid: Valid,
    /// `high`, `medium` or `low`, as in Kafka's own documentation.
    pub importance: &'static str,
    /// When it may change.
    pub update: Update,
    /// For a topic's key: the broker keys that give its default, the first one set wins.
    pub synonyms: Vec<&'static str>,
}

static BROKER: LazyLock<Vec<Key>> = LazyLock::new(|| {
    let tables = [include_str!("kafka.tsv"), include_str!("rocketmq.tsv")];
    let mut keys: Vec<Key> = tables.into_iter().flat_map(parse_table).collect();
    keys.sort_by_key(|key| key.name);
    keys
});

static TOPIC: LazyLock<Vec<Key>> =
    LazyLock::new(|| parse_table(include_str!("topic.tsv")).collect());

static GROUP: LazyLock<Vec<Key>> =
    LazyLock::new(|| parse_table(include_str!("group.tsv")).collect());

static CLIENT_METRICS: LazyLock<Vec<Key>> =
    LazyLock::new(|| parse_table(include_str!("client_metrics.tsv")).collect());

/// Every key of a client-metrics resource, in order of their names.
pub fn client_metrics_keys() -> &'static [Key] {
    &CLIENT_METRICS
}

/// Looks up a client-metrics resource's key by its exact name.
pub fn client_metrics_key(name: &str) -> Option<&'static Key> {
    find(&CLIENT_METRICS, name)
}

/// Every key of a group, in order of their names.
pub fn group_keys() -> &'static [Key] {
    &GROUP
}

/// Looks up a group's key by its exact name.
pub fn group_key(name: &str) -> Option<&'static Key> {
    find(&GROUP, name)
}

/// Every key of the node, Kafka's and RocketMQ's, in order of their names.
pub fn broker_keys() -> &'static [Key] {
    &BROKER
}

/// Every key of a topic, in order of their names.
pub fn topic_keys() -> &'static [Key] {
    &TOPIC
}

/// Looks up a node's key by its exact name.
pub fn broker_key(name: &str) -> Option<&'static Key> {
    find(&BROKER, name)
}

/// Looks up a topic's key by its exact name.
pub fn topic_key(name: &str) -> Option<&'static Key> {
    find(&TOPIC, name)
}

fn find(keys: &'static [Key], name: &str) -> Option<&'static Key> {
    let at = keys.binary_search_by_key(&name, |key| key.name).ok()?;
    keys.get(at)
}

/// The key of `keys` whose name is most like `name`, for a refusal's text.
pub fn nearest(keys: &'static [Key], name: &str) -> Option<&'static str> {
    keys.iter()
        .map(|key| (strsim::jaro_winkler(name, key.name), key.name))
        .filter(|(likeness, _)| *likeness > 0.7)
        .max_by(|a, b| a.0.total_cmp(&b.0))
        .map(|(_, name)| name)
}

impl Key {
    /// Whether `value` may be set: of the right type, in range, and acted on or the default.
    ///
    /// Errors with the reason, worded as Kafka's `ConfigDef` does where it has one.
    pub fn check(&self, value: &str) -> Result<(), String> {
        if self.same_as_default(value) {
            return Ok(());
        }
        self.check_kind(value)?;
        self.check_range(value)?;
        if self.acts {
            return Ok(());
        }
        Err(format!(
            "this version does not act on it yet, so only its default {} is accepted",
            self.default.unwrap_or("null")
        ))
    }

    /// As [`Self::check`], but the text names value and key as Kafka's `ConfigException` does: of a
    /// list the part that is wrong, a fraction as Java writes it.
    pub fn check_named(&self, value: &str) -> Result<(), String> {
        self.check(value).map_err(|reason| {
            let blamed = match (&self.valid, self.kind) {
                (Valid::OneOf(texts), Kind::List) => {
                    let mut parts = list(value).into_iter();
                    parts.find(|part| !texts.contains(part)).unwrap_or(value).to_owned()
                }
                (_, Kind::Double) => match value.trim().parse::<f64>() {
                    Ok(number) => format!("{number:?}"),
                    Err(_) => value.to_owned(),
                },
                _ => value.to_owned(),
            };
            format!("Invalid value {blamed} for configuration {}: {reason}", self.name)
        })
    }

    /// Whether a running node takes another value: those that topics take their defaults from, since
    /// topics are resolved anew when one changes, and those that are read at each use.
    pub fn is_dynamic(&self) -> bool {
        const READ_AT_USE: [&str; 12] = [
            "group.consumer.assignment.interval.ms",
            "log.cleaner.backoff.ms",
            "log.cleaner.dedupe.buffer.size",
            "log.cleaner.io.buffer.load.factor",
            "log.cleaner.io.max.bytes.per.second",
            "log.cleaner.threads",
            "max.connection.creation.rate",
            "max.connections",
            "max.connections.per.ip",
            "max.connections.per.ip.overrides",
            "producer.id.expiration.ms",
            "transaction.partition.verification.enable",
        ];
        let changes = matches!(self.update, Update::ClusterWide | Update::PerBroker);
        let defaults = || topic_keys().iter().any(|key| key.synonyms.contains(&self.name));
        let is_rocketmqs = self.name.starts_with("rocketmq.");
        changes && (is_rocketmqs || READ_AT_USE.contains(&self.name) || defaults())
    }

    fn check_kind(&self, value: &str) -> Result<(), String> {
        let value = value.trim();
        let (parses, kind) = match self.kind {
            Kind::Boolean if matches!(value.to_ascii_lowercase().as_str(), "true" | "false") => {
                return Ok(());
            }
            Kind::Boolean => return Err("Expected value to be either true or false".to_owned()),
            Kind::Short => (value.parse::<i16>().is_ok(), "SHORT"),
            Kind::Int => (value.parse::<i32>().is_ok(), "INT"),
            Kind::Long => (value.parse::<i64>().is_ok(), "LONG"),
            Kind::Double => (value.parse::<f64>().is_ok(), "DOUBLE"),
            Kind::String | Kind::List | Kind::Class | Kind::Password => return Ok(()),
        };
        if parses { Ok(()) } else { Err(format!("Not a number of type {kind}")) }
    }

    fn check_range(&self, value: &str) -> Result<(), String> {
        match &self.valid {
            Valid::Any => Ok(()),
            Valid::NonEmpty if value.is_empty() => Err("String must be non-empty".to_owned()),
            Valid::NonEmpty => Ok(()),
            Valid::Range { min, max, or } => {
                let number: f64 = value.trim().parse().map_err(|_| "Not a number".to_owned())?;
                if or.is_some_and(|or| or.total_cmp(&number).is_eq()) {
                    return Ok(());
                }
                if let Some(or) = or.filter(|_| !(*min..=*max).contains(&number)) {
                    return Err(format!("Value must be between {min} and {max} or equal to {or}"));
                }
                if number < *min {
                    Err(format!("Value must be at least {min}"))
                } else if number > *max {
                    Err(format!("Value must be no more than {max}"))
                } else {
                    Ok(())
                }
            }
            Valid::OneOfAnyCase(texts) => {
                if texts.iter().any(|text| text.eq_ignore_ascii_case(value)) {
                    Ok(())
                } else {
                    let texts = texts.join(", ");
                    Err(format!("String must be one of (case insensitive): {texts}"))
                }
            }
            Valid::OneOf(texts) => {
                let parts = if self.kind == Kind::List { list(value) } else { vec![value] };
                if parts.iter().all(|part| texts.contains(part)) {
                    Ok(())
                } else {
                    Err(format!("String must be one of: {}", texts.join(", ")))
                }
            }
        }
    }

    fn same_as_default(&self, value: &str) -> bool {
        let Some(default) = self.default else { return value.is_empty() || value == "null" };
        match self.kind {
            Kind::Boolean => value.trim().eq_ignore_ascii_case(default),
            Kind::Short | Kind::Int | Kind::Long => value.trim() == default,
            Kind::Double => value.trim().parse::<f64>().ok() == default.parse().ok(),
            Kind::List => list(value) == list(default),
            Kind::String | Kind::Class | Kind::Password => value == default,
        }
    }
}

/// The parts of a list value: separated by commas, trimmed; an empty text has none.
pub fn list(value: &str) -> Vec<&str> {
    value.split(',').map(str::trim).filter(|part| !part.is_empty()).collect()
}

fn parse_table(table: &'static str) -> impl Iterator<Item = Key> {
    table.lines().filter(|line| !line.starts_with('#')).filter_map(parse_line)
}

/// Reads one line of a table; a test holds that no line is dropped here.
fn parse_line(line: &'static str) -> Option<Key> {
    let mut columns = line.split('\t');
    let name = columns.next()?;
    let acts = columns.next()? == "yes";
    let kind = match columns.next()? {
        "boolean" => Kind::Boolean,
        "short" => Kind::Short,
        "int" => Kind::Int,
        "long" => Kind::Long,
        "double" => Kind::Double,
        "string" => Kind::String,
        "list" => Kind::List,
        "class" => Kind::Class,
        "password" => Kind::Password,
        _ => return None,
    };
    let default = Some(columns.next()?).filter(|default| *default != "null");
    let valid = parse_valid(columns.next()?)?;
    let importance = columns.next()?;
    let update = match columns.next()? {
        "read-only" => Update::ReadOnly,
        "cluster-wide" => Update::ClusterWide,
        "per-broker" => Update::PerBroker,
        "topic" => Update::Topic,
        "group" => Update::Group,
        "client-metrics" => Update::ClientMetrics,
        _ => return None,
    };
    let synonyms = columns.next().map(list).unwrap_or_default();
    Some(Key { name, acts, kind, default, valid, importance, update, synonyms })
}

fn parse_valid(text: &'static str) -> Option<Valid> {
    if text.is_empty() || text == "non-null string" {
        return Some(Valid::Any);
    }
    if text.starts_with("non-empty") {
        return Some(Valid::NonEmpty);
    }
    if let Some(texts) = text.strip_prefix("(case insensitive) [") {
        return Some(Valid::OneOfAnyCase(list(texts.strip_suffix(']')?)));
    }
    let Some((body, tail)) = text.strip_prefix('[').and_then(|text| text.split_once(']')) else {
        // Patterns of replica lists: only the default passes, for nothing acts on them.
        return Some(Valid::Any);
    };
    let Some((min, max)) = body.split_once(",...") else {
        return Some(Valid::OneOf(list(body))).filter(|_| tail.is_empty()).or(Some(Valid::Any));
    };
    let max = match max.strip_prefix(',') {
        Some(max) => max.parse().ok()?,
        None => f64::INFINITY,
    };
    let or = match tail.strip_prefix(" or ") {
        Some(or) => Some(or.parse().ok()?),
        None => None,
    };
    Some(Valid::Range { min: min.parse().ok()?, max, or })
}

#[cfg(test)]
mod tests;

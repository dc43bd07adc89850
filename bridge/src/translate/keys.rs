//! The keys by which messages are found: the words of `KEYS`, and `UNIQ_KEY`.

use duolog_log_core::record::Record;
use duolog_log_core::storage::keys::KeyRule;

use super::message::{Door, Writer, hex_of, origin, properties_into, seen};
use super::properties::{KEYS, Properties, UNIQ_KEY, is_text, java_hash};

/// Whose records are found by key: a topic's `rmq.key.index`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum KeyIndex {
    /// Of both protocols.
    #[default]
    All,
    /// RocketMQ producers' alone: the keys of Kafka's cost no memory and no file.
    Rmq,
}

impl KeyIndex {
    /// By the value of the topic's switch `rmq.key.index`.
    #[must_use]
    pub fn from_name(name: &str) -> Option<Self> {
        match name {
            "all" => Some(Self::All),
            "rmq" => Some(Self::Rmq),
            _ => None,
        }
    }

    /// The rule by which an index of keys is made.
    #[must_use]
    pub fn rule(self) -> KeyRule<'static> {
        match self {
            Self::All => KeyRule { id: b'Y', keys_of: &all_hashes },
            Self::Rmq => KeyRule { id: b'R', keys_of: &rmq_hashes },
        }
    }

    /// Has the record this key, as the view has it?
    pub(crate) fn has_key(
        self,
        record: &Record<'_>,
        door: Door,
        key: &str,
        properties: &mut Vec<u8>,
    ) -> bool {
        let is_rocketmq = origin(record.headers).is_some();
        if !is_rocketmq && self == Self::Rmq {
            return false;
        }
        properties.clear();
        properties_into(record, Writer { is_rocketmq, door }, properties);
        let Ok(text) = std::str::from_utf8(properties) else { return false };
        Properties(text).iter().any(|(name, value)| match name {
            KEYS => value.split(' ').any(|word| word == key),
            UNIQ_KEY => value == key,
            _ => false,
        })
    }
}

/// The hash by which records with a key are found: Java's of its text.
#[must_use]
pub fn key_hash(key: &str) -> u32 {
    java_hash(key).cast_unsigned()
}

fn rmq_hashes(record: &Record<'_>, found: &mut dyn FnMut(u32)) {
    if origin(record.headers).is_some() {
        header_hashes(record, found);
    }
}

fn all_hashes(record: &Record<'_>, found: &mut dyn FnMut(u32)) {
    header_hashes(record, found);
    // The key of a RocketMQ producer's record is a copy of one of its properties.
    if let Some(key) = record.key
        && origin(record.headers).is_none()
    {
        word_hashes(key, found);
    }
}

/// Of each header with keys, though the view has the last of a name alone: whoever looks compares the
/// keys themselves.
fn header_hashes(record: &Record<'_>, found: &mut dyn FnMut(u32)) {
    for header in seen(record.headers) {
        if [KEYS.as_bytes(), UNIQ_KEY.as_bytes()].contains(&header.key)
            && let Some(value) = header.value
        {
            word_hashes(value, found);
        }
    }
}

fn word_hashes(bytes: &[u8], found: &mut dyn FnMut(u32)) {
    match std::str::from_utf8(bytes) {
        Ok(text) if is_text(bytes) => {
            text.split(' ').for_each(|word| found(key_hash(word)));
            // A unique key is one, whatever it holds.
            if text.contains(' ') {
                found(key_hash(text));
            }
        }
        _ => found(key_hash(&String::from_utf8_lossy(&hex_of(bytes)))),
    }
}

#[cfg(test)]
mod tests;

//! The headers of the hot requests, read in one pass over the fields.
//!
//! Other requests ask for their fields by name; see [`RemotingCommand::field`].

use super::command::RemotingCommand;
use super::fields::{FieldError, FieldValue, parse_field};

/// Fields of a header by their place in a table of names.
struct Slots<'a, const N: usize> {
    names: &'static [&'static str; N],
    values: [Option<&'a str>; N],
}

impl<'a, const N: usize> Slots<'a, N> {
    fn read(
        command: &'a RemotingCommand,
        names: &'static [&'static str; N],
        place: impl Fn(&str) -> Option<usize>,
    ) -> Self {
        let mut values = [None; N];
        for (name, value) in command.ext_fields.iter() {
            if let Some(slot) = place(name).and_then(|place| values.get_mut(place)) {
                *slot = Some(value);
            }
        }
        Self { names, values }
    }

    fn name(&self, place: usize) -> &'static str {
        self.names.get(place).copied().unwrap_or_default()
    }

    fn optional<T: FieldValue<'a>>(&self, place: usize) -> Result<Option<T>, FieldError> {
        match self.values.get(place).copied().flatten() {
            Some(text) => parse_field(self.name(place), text).map(Some),
            None => Ok(None),
        }
    }

    fn required<T: FieldValue<'a>>(&self, place: usize) -> Result<T, FieldError> {
        self.optional(place)?.ok_or(FieldError::Missing { name: self.name(place) })
    }
}

fn place_in(names: &[&str], name: &str) -> Option<usize> {
    names.iter().position(|known| *known == name)
}

/// `a` is 0, `b` is 1.
fn letter_place(name: &str) -> Option<usize> {
    match name.as_bytes() {
        [letter @ b'a'..=b'n'] => Some(usize::from(letter - b'a')),
        _ => None,
    }
}

/// How a send names its fields.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SendForm {
    /// Under full names: codes 10 and 324 (SendMessageRequestHeader).
    Words,
    /// Under one letter each: codes 310, 320 and 325 (SendMessageRequestHeaderV2).
    Letters,
}

const SEND_LETTERS: [&str; 14] =
    ["a", "b", "c", "d", "e", "f", "g", "h", "i", "j", "k", "l", "m", "n"];

const SEND_WORDS: [&str; 14] = [
    "producerGroup",
    "topic",
    "defaultTopic",
    "defaultTopicQueueNums",
    "queueId",
    "sysFlag",
    "bornTimestamp",
    "flag",
    "properties",
    "reconsumeTimes",
    "unitMode",
    "maxReconsumeTimes",
    "batch",
    "bname",
];

/// What a send says besides its body.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SendHeader<'a> {
    /// The producer's group.
    pub producer_group: &'a str,
    /// Not on the wire: it was sent back too often.
    pub is_dead_letter: bool,
    /// RocketMQ's name of the topic.
    pub topic: &'a str,
    /// The topic whose configuration a new one takes over, mostly TBW102.
    pub default_topic: &'a str,
    /// Queues that a new topic shall have.
    pub default_topic_queue_nums: i32,
    /// 0-based; negative lets the broker choose.
    pub queue_id: i32,
    /// MessageSysFlag.
    pub sys_flag: i32,
    /// Milliseconds since 1970.
    pub born_timestamp_ms: i64,
    /// The user's flag.
    pub flag: i32,
    /// The property string; empty if there was none.
    pub properties: &'a str,
    /// How often the message was sent back.
    pub reconsume_times: i32,
    /// Unit mode.
    pub unit_mode: bool,
    /// The consumer's limit of `reconsume_times`.
    pub max_reconsume_times: Option<i32>,
    /// The body is a batch.
    pub batch: bool,
    /// The broker's name, from clients since 4.9.5 and 5.0.1.
    pub broker_name: Option<&'a str>,
}

impl<'a> SendHeader<'a> {
    /// Reads the header of a send.
    ///
    /// # Errors
    /// A field is missing or malformed; the text names it.
    pub fn decode(command: &'a RemotingCommand, form: SendForm) -> Result<Self, FieldError> {
        let slots = match form {
            SendForm::Words => {
                Slots::read(command, &SEND_WORDS, |name| place_in(&SEND_WORDS, name))
            }
            SendForm::Letters => Slots::read(command, &SEND_LETTERS, letter_place),
        };
        Ok(Self {
            producer_group: slots.required(0)?,
            is_dead_letter: false,
            topic: slots.required(1)?,
            default_topic: slots.required(2)?,
            default_topic_queue_nums: slots.required(3)?,
            queue_id: slots.required(4)?,
            sys_flag: slots.required(5)?,
            born_timestamp_ms: slots.required(6)?,
            flag: slots.required(7)?,
            properties: slots.optional(8)?.unwrap_or_default(),
            reconsume_times: slots.optional(9)?.unwrap_or_default(),
            unit_mode: slots.optional(10)?.unwrap_or_default(),
            max_reconsume_times: slots.optional(11)?,
            batch: slots.optional(12)?.unwrap_or_default(),
            broker_name: slots.optional(13)?,
        })
    }
}

const PULL_NAMES: [&str; 13] = [
    "consumerGroup",
    "topic",
    "queueId",
    "queueOffset",
    "maxMsgNums",
    "sysFlag",
    "commitOffset",
    "suspendTimeoutMillis",
    "subscription",
    "subVersion",
    "expressionType",
    "maxMsgBytes",
    "bname",
];

/// What a pull asks for (PullMessageRequestHeader; codes 11 and 361).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PullHeader<'a> {
    /// The consumer's group.
    pub consumer_group: &'a str,
    /// RocketMQ's name of the topic.
    pub topic: &'a str,
    /// 0-based.
    pub queue_id: i32,
    /// First offset wanted; inclusive.
    pub queue_offset: i64,
    /// Messages wanted at most.
    pub max_msg_nums: i32,
    /// PullSysFlag.
    pub sys_flag: i32,
    /// Position to commit, if the flag says so.
    pub commit_offset: i64,
    /// How long the pull may be held, in milliseconds.
    pub suspend_timeout_ms: i64,
    /// The expression, if the flag says that it came along.
    pub subscription: Option<&'a str>,
    /// Version of the subscription.
    pub sub_version: i64,
    /// TAG or SQL92; TAG if it did not come (clients before 4.1).
    pub expression_type: Option<&'a str>,
    /// Bytes wanted at most.
    pub max_msg_bytes: Option<i32>,
    /// The broker's name, from clients since 4.9.5 and 5.0.1.
    pub broker_name: Option<&'a str>,
}

impl<'a> PullHeader<'a> {
    /// Reads the header of a pull.
    ///
    /// # Errors
    /// A field is missing or malformed; the text names it.
    pub fn decode(command: &'a RemotingCommand) -> Result<Self, FieldError> {
        let slots = Slots::read(command, &PULL_NAMES, |name| place_in(&PULL_NAMES, name));
        Ok(Self {
            consumer_group: slots.required(0)?,
            topic: slots.required(1)?,
            queue_id: slots.required(2)?,
            queue_offset: slots.required(3)?,
            max_msg_nums: slots.required(4)?,
            sys_flag: slots.required(5)?,
            commit_offset: slots.required(6)?,
            suspend_timeout_ms: slots.required(7)?,
            subscription: slots.optional(8)?,
            sub_version: slots.required(9)?,
            expression_type: slots.optional(10)?,
            max_msg_bytes: slots.optional(11)?,
            broker_name: slots.optional(12)?,
        })
    }
}

#[cfg(test)]
mod tests;

//! What a group subscribes to: names, regular expressions, and what there is of it.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use duolog_log_core::ids::TopicId;
use regex::Regex;

use super::{Draft, Wish};
use crate::error::{GroupError, Refusal};
use crate::group::context::Context;
use crate::group::image::consumer::ConsumerImage;
use crate::limits::REGEX_BYTES_MAX;
use crate::record::consumer::{ConsumerFact, MemberMetadata, ResolvedRegex};

/// Whether the member wants other topics than before.
pub(super) fn wish(before: &MemberMetadata, after: &MemberMetadata) -> Wish {
    if before.topics == after.topics && before.regex == after.regex {
        Wish::Same
    } else {
        Wish::Changed
    }
}

/// The existing topics that a member wants.
pub(super) fn wanted(
    image: &ConsumerImage,
    metadata: &MemberMetadata,
    cx: &Context<'_>,
) -> BTreeSet<TopicId> {
    let topic = |name: &Arc<str>| Some(cx.known.metadata.topic(name)?.id);
    image.subscription(metadata).filter_map(topic).collect()
}

/// A number that is another one, most likely, when a subscribed topic comes, goes, grows or is made
/// anew; 0 if there is none. FNV-1a over names, ids and counts.
pub(super) fn hash(image: &ConsumerImage, cx: &Context<'_>) -> i64 {
    const OFFSET_BASIS: u64 = 0xCBF2_9CE4_8422_2325;
    const PRIME: u64 = 0x0100_0000_01B3;
    let mut hash = 0;
    let mut add = |bytes: &[u8]| {
        let start = if hash == 0 { OFFSET_BASIS } else { hash };
        hash = bytes.iter().fold(start, |hash, byte| (hash ^ u64::from(*byte)).wrapping_mul(PRIME));
    };
    for name in image.subscribed_topics() {
        if let Some(topic) = cx.known.metadata.topic(&name) {
            add(name.as_bytes());
            add(&topic.id.0);
            add(&topic.partitions.to_be_bytes());
        }
    }
    hash.cast_signed()
}

/// Forgets what a regular expression means if nobody subscribes to it any more.
pub(super) fn drop_regex(draft: &mut Draft<'_>, regex: &Arc<str>) {
    if draft.regexes.contains_key(regex) && draft.regex_subscribers(regex) == 0 {
        draft.decide(ConsumerFact::Regex(regex.clone(), None));
    }
}

/// Resolves the regular expressions that were not yet, or all if there is news of topics.
///
/// Errors: one that is new and cannot be read.
pub(super) fn resolve(
    draft: &mut Draft<'_>,
    is_news: bool,
    cx: &Context<'_>,
) -> Result<(), Refusal> {
    let subscribed = draft.members.values().map(|member| member.metadata.regex.clone());
    let subscribed: BTreeSet<Arc<str>> = subscribed.filter(|regex| !regex.is_empty()).collect();
    let mut compiled = BTreeMap::new();
    for regex in subscribed {
        if is_news || !draft.regexes.contains_key(&regex) {
            let is_known = draft.regexes.contains_key(&regex);
            match compile(&regex) {
                Ok(matches) => compiled.insert(regex, (matches, BTreeSet::new())),
                // It was readable when it was stored; its last meaning stays.
                Err(_) if is_known => continue,
                Err(refusal) => return Err(refusal),
            };
        }
    }
    if compiled.is_empty() {
        return Ok(());
    }
    cx.known.metadata.for_each_topic(&mut |name| {
        for (matches, topics) in compiled.values_mut() {
            if matches.is_match(name) {
                topics.insert(name.clone());
            }
        }
    });
    for (regex, (_, topics)) in compiled {
        if draft.regexes.get(&regex).is_none_or(|known| known.topics != topics) {
            let version = i64::try_from(cx.known.version).unwrap_or(i64::MAX);
            let resolved = ResolvedRegex { topics, version, resolved_ms: cx.now.wall_ms };
            draft.decide(ConsumerFact::Regex(regex, Some(resolved)));
        }
    }
    Ok(())
}

/// An RE2 expression that a whole name must match.
fn compile(text: &str) -> Result<Regex, Refusal> {
    let refuse = |why: &str| {
        let text =
            format!("SubscribedTopicRegex `{text}` is not a valid regular expression: {why}.");
        Refusal::new(GroupError::InvalidRegularExpression, text)
    };
    if text.len() > REGEX_BYTES_MAX {
        return Err(refuse(&format!("longer than {REGEX_BYTES_MAX} bytes")));
    }
    // By itself first: a parenthesis of its own must not pair with the one around it.
    let whole = Regex::new(text).and_then(|_| Regex::new(&format!(r"\A(?:{text})\z")));
    whole.map_err(|error| {
        let reason = error.to_string();
        refuse(reason.lines().last().unwrap_or_default().trim_start_matches("error: "))
    })
}

//! What a group subscribes to: names, regular expressions, and what there is of it.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use duolog_log_core::ids::TopicId;
use regex::Regex;
use twox_hash::XxHash3_64;

use super::{Draft, Wish};
use crate::error::{GroupError, Refusal};
use crate::group::context::Context;
use crate::group::image::consumer::ConsumerImage;
use crate::group::metadata::TopicShape;
use crate::pattern;
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

/// Kafka's hash of the existing topics that are subscribed to, in order of their names; 0 if there
/// is none (KIP-1101). Source: `Utils.computeGroupHash`.
pub(super) fn hash(image: &ConsumerImage, cx: &Context<'_>) -> i64 {
    let names = image.subscribed_topics();
    let there = names.iter().filter_map(|name| Some((name, cx.known.metadata.topic(name)?)));
    let hashes: Vec<u8> =
        there.flat_map(|(name, topic)| topic_hash(name, &topic).to_le_bytes()).collect();
    if hashes.is_empty() {
        return 0;
    }
    XxHash3_64::oneshot(&hashes).cast_signed()
}

/// Id, name, and how many partitions. Of partitions only the index: no node here has a rack.
/// Source: `Utils.computeTopicHash`, and hash4j's `HashStream` for how text goes in: its UTF-16
/// units, then how many there are.
fn topic_hash(name: &str, topic: &TopicShape) -> u64 {
    const LAYOUT: u8 = 0;
    let (high, low) = topic.id.0.split_at(8);
    let mut bytes = vec![LAYOUT];
    bytes.extend(high.iter().rev().chain(low.iter().rev()));
    bytes.extend(name.encode_utf16().flat_map(u16::to_le_bytes));
    let units = i32::try_from(name.encode_utf16().count()).unwrap_or(i32::MAX);
    bytes.extend(units.to_le_bytes());
    bytes.extend(topic.partitions.to_le_bytes());
    bytes.extend((0..topic.partitions).flat_map(i32::to_le_bytes));
    XxHash3_64::oneshot(&bytes)
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
    pattern::whole(text).map_err(|why| {
        let text =
            format!("SubscribedTopicRegex `{text}` is not a valid regular expression: {why}.");
        Refusal::new(GroupError::InvalidRegularExpression, text)
    })
}

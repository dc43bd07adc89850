//! A decision in the making: records, and the image as they make it.

use std::borrow::Cow;
use std::ops::Deref;

use crate::group::context::Context;
use crate::group::image::consumer::ConsumerImage;
use crate::record::Record;
use crate::record::consumer::ConsumerFact;

/// The image is copied with the first record only; a draft that is dropped has decided nothing.
#[derive(Debug)]
pub(in crate::group) struct Draft<'a> {
    image: Cow<'a, ConsumerImage>,
    records: Vec<Record>,
    facts: Vec<ConsumerFact>,
}

impl<'a> Draft<'a> {
    /// A decision about the group as it is.
    pub(in crate::group) fn of(image: &'a ConsumerImage) -> Self {
        Self { image: Cow::Borrowed(image), records: Vec::new(), facts: Vec::new() }
    }

    /// A decision about a group that is to be; `records` come before all others.
    pub(in crate::group) fn new(records: Vec<Record>) -> Self {
        Self { image: Cow::Owned(ConsumerImage::default()), records, facts: Vec::new() }
    }

    /// Adds one fact, true from here on.
    pub(super) fn decide(&mut self, fact: ConsumerFact) {
        let left = self.image.to_mut().apply(fact.clone());
        assert!(left, "a group is ended by its tombstones alone");
        self.facts.push(fact);
    }

    /// Hands all records over.
    pub(in crate::group) fn commit(self, cx: &mut Context<'_>) {
        for record in self.records {
            cx.decide(record);
        }
        for fact in self.facts {
            cx.decide(Record::Consumer { group: cx.group.clone(), fact });
        }
    }
}

impl Deref for Draft<'_> {
    type Target = ConsumerImage;

    fn deref(&self) -> &ConsumerImage {
        &self.image
    }
}

//! One group: its stored and its live half.

use crate::group::context::Context;
use crate::group::event::Timer;
use crate::group::image::GroupImage;
use crate::group::kafka::classic::ClassicGroup;
use crate::group::kafka::consumer;
use crate::group::response::{GroupState, Notice};
use crate::group::rocketmq::membership::Membership;

/// One group: what the log has of it, and what lives.
#[derive(Debug, Default)]
pub(super) struct Group {
    pub(super) image: GroupImage,
    pub(super) live: Live,
}

/// The live half of a group.
#[derive(Debug, Default)]
pub(super) enum Live {
    /// The stored half says all.
    #[default]
    Idle,
    /// Kafka members, or ids given to such.
    Classic(Box<ClassicGroup>),
    /// Members of a consumer group, which are stored but for their timers.
    Consumer(Box<consumer::Live>),
    /// RocketMQ members, or what is kept of them for a while.
    RocketMq(Box<Membership>),
}

impl Group {
    /// State as Kafka's tools know it.
    pub(super) fn state(&self) -> GroupState {
        match (&self.image.consumer, &self.live) {
            (Some(image), _) => image.state(),
            (None, Live::Classic(classic)) => classic.state(),
            (None, Live::RocketMq(members)) if members.has_members() => GroupState::Stable,
            (None, Live::Consumer(_) | Live::RocketMq(_) | Live::Idle) => GroupState::Empty,
        }
    }

    pub(super) fn has_kafka_members(&self) -> bool {
        self.has_consumers() || matches!(&self.live, Live::Classic(classic) if classic.is_held())
    }

    /// Whether it is a consumer group that has members.
    pub(super) fn has_consumers(&self) -> bool {
        self.image.consumer.as_ref().is_some_and(|image| !image.members.is_empty())
    }

    pub(super) fn has_rocketmq_members(&self) -> bool {
        matches!(&self.live, Live::RocketMq(members) if members.has_members())
    }

    /// Whether it is nothing but positions that wait for their transaction, if there are any.
    pub(super) fn is_bare(&self) -> bool {
        self.image.is_empty() && matches!(self.live, Live::Idle)
    }

    /// The classic group's live half, made from the stored one if nothing of the kind lives.
    /// The caller has seen to it that no RocketMQ member does.
    pub(super) fn classic(&mut self, cx: &mut Context<'_>) -> &mut ClassicGroup {
        if !matches!(self.live, Live::Classic(_)) {
            self.end_consumers(cx);
            if matches!(self.live, Live::RocketMq(_)) {
                cx.cancel(Timer::Consumers(cx.group.clone()));
                cx.out.notices.push(Notice::ConsumerGroup { group: cx.group.clone(), view: None });
            }
            let value = self.image.classic.as_ref();
            self.live = Live::Classic(Box::new(ClassicGroup::from_value(value)));
        }
        match &mut self.live {
            Live::Classic(classic) => classic,
            Live::Idle | Live::Consumer(_) | Live::RocketMq(_) => unreachable!("made above"),
        }
    }
}

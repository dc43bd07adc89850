//! ConsumerGroupDescribe (key 69).

use std::sync::Arc;

use super::target;
use crate::group::config::Assignor;
use crate::group::image::consumer::ConsumerImage;
use crate::group::response::{DescribedConsumer, DescribedConsumerGroup};

/// The group as it is stored.
pub(in crate::group) fn describe(
    image: &ConsumerImage,
    assignors: &[Assignor],
) -> DescribedConsumerGroup {
    let members = image.members.iter().map(|(id, member)| DescribedConsumer {
        id: id.clone(),
        member: member.clone(),
        target: image.target(id),
    });
    DescribedConsumerGroup {
        state: image.state(),
        epoch: image.epoch.epoch,
        target_epoch: image.target_epoch.epoch,
        assignor: Arc::from(target::preferred(image, assignors).name()),
        members: members.collect(),
    }
}

//! DescribeGroups (key 15), ListGroups (key 16).

use std::sync::Arc;

use bytes::Bytes;

use super::{ClassicGroup, Phase};
use crate::group::event::GroupId;
use crate::group::response::{DescribedGroup, DescribedMember};

impl ClassicGroup {
    /// Members' metadata and the protocol are told of a stable group only.
    pub(in crate::group) fn describe(&self, group: &GroupId) -> DescribedGroup {
        let stable = self.phase == Phase::Stable;
        let members = self.members.iter().map(|(id, member)| DescribedMember {
            member: id.clone(),
            instance: member.instance.clone(),
            client_id: member.client_id.clone(),
            client_host: member.client_host.clone(),
            metadata: if stable { member.metadata(self.protocol.as_ref()) } else { Bytes::new() },
            assignment: member.assignment.clone(),
        });
        DescribedGroup {
            group: group.clone(),
            error: None,
            error_message: None,
            state: self.state(),
            protocol_type: self.protocol_type.clone().unwrap_or_default(),
            protocol: self.protocol.clone().filter(|_| stable).unwrap_or_else(|| Arc::from("")),
            members: members.collect(),
        }
    }
}

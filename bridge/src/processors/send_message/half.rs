//! What a send has to be for its message to be stored as a half message.

use std::sync::Arc;

use super::Call;
use crate::backend::{Backend, NewHalf, NewRecord, Topic};
use crate::remoting::SendHeader;
use crate::translate::half::{IMMUNITY, PRODUCER_GROUP, is_half};
use crate::translate::properties::Properties;

/// The properties that a half message is handled by.
pub(super) struct Half<'a> {
    group: Option<&'a str>,
    immunity: Option<&'a str>,
}

impl<'a> Half<'a> {
    /// `None`: it is a message like any other.
    pub(super) fn new(header: &SendHeader<'a>) -> Option<Self> {
        let properties = Properties(header.properties);
        is_half(header.properties, header.reconsume_times).then(|| Self {
            group: properties.get(PRODUCER_GROUP),
            immunity: properties.get(IMMUNITY),
        })
    }

    pub(super) fn of<B: Backend>(
        self,
        call: &Call<B>,
        header: &SendHeader<'_>,
        topic: &Topic,
        queue_id: i32,
        record: NewRecord,
    ) -> NewHalf {
        NewHalf {
            topic: Arc::clone(&topic.name),
            queue_id,
            group: Arc::from(self.group.unwrap_or(header.producer_group)),
            client_id: Arc::from(call.session.client_id().unwrap_or_default()),
            born_ms: header.born_timestamp_ms,
            immunity: self.immunity.map(str::to_owned),
            record,
        }
    }
}

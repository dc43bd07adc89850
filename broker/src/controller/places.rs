//! What is noted of partitions that move to other log directories.

use duolog_log_core::ids::TopicId;

use super::record::{MetadataRecord, Places};
use super::{Controller, ControllerError};
use crate::data_dir::DirectoryId;

impl Controller {
    /// Notes that a copy in the directory `target` is about to take the partition's place; `None`: that it
    /// is not any more.
    pub(crate) async fn note_move(
        &self,
        topic: TopicId,
        index: i32,
        target: Option<DirectoryId>,
    ) -> Result<(), ControllerError> {
        self.change_places(topic, move |places| {
            match target {
                Some(target) => places.moves.insert(index, target),
                None => places.moves.remove(&index),
            };
        })
        .await
    }

    /// Notes that the partition is in `dir`, and nowhere else any more.
    pub(crate) async fn note_moved(
        &self,
        topic: TopicId,
        index: i32,
        dir: DirectoryId,
    ) -> Result<(), ControllerError> {
        self.change_places(topic, move |places| {
            places.moves.remove(&index);
            let at = usize::try_from(index).unwrap_or(usize::MAX);
            if let Some(held) = places.dirs.get_mut(at) {
                *held = dir;
            }
        })
        .await
    }

    /// Nothing is noted of a topic that is gone.
    async fn change_places(
        &self,
        topic: TopicId,
        change: impl FnOnce(&mut Places) + Send + 'static,
    ) -> Result<(), ControllerError> {
        self.change(move |image| {
            let Some(held) = image.topic_by_id(topic).and_then(|_| image.places(topic)) else {
                return Ok((Vec::new(), ()));
            };
            let mut places = held.clone();
            change(&mut places);
            if places == *held {
                return Ok((Vec::new(), ()));
            }
            Ok((vec![MetadataRecord::Places { id: topic, places: Some(places) }], ()))
        })
        .await
    }
}

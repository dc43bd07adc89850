//! In which log directory a partition is: by its folder, else by what the metadata notes.
//!
//! A partition without a folder, which was never written, is where it was placed when it was made. The
//! note is what tells it from one whose folder is in a directory that is offline. A node that has had
//! one directory only notes nothing: there everything is where the metadata log is.

use std::sync::Arc;

use duolog_log_core::storage::checkpoint::read_topic_id;

use super::{Shared, folder};
use crate::controller::image::{Image, Topic};
use crate::controller::record::{MetadataRecord, Places};
use crate::data_dir::DirectoryId;
use crate::log_dirs::LogDir;

/// A start that would have to guess.
#[derive(Debug, thiserror::Error)]
pub enum PlacementError {
    /// One partition in two directories.
    #[error(
        "duplicate log directories for {folder} are found in both {first} and {second}: remove one of \
         the two, that in the directory which failed most recently if one did"
    )]
    TwoFolders {
        /// The name of both.
        folder: String,
        /// One.
        first: String,
        /// The other.
        second: String,
    },
}

impl Shared {
    /// Where partition `index` of `topic` is. One that cannot be reached is in a directory that is
    /// not online.
    pub(super) fn place_of(
        &self,
        topic: &Topic,
        index: i32,
        places: Option<&Places>,
    ) -> Arc<LogDir> {
        let dirs = &self.log_dirs;
        if places.is_none() && dirs.all().len() == 1 {
            return dirs.metadata().clone();
        }
        let at = usize::try_from(index).unwrap_or(usize::MAX);
        let noted = places.and_then(|places| places.dirs.get(at));
        let noted = noted.map_or(dirs.metadata(), |id| dirs.by_id(*id));
        let target = places.and_then(|places| places.moves.get(&index));
        let found = self.folders_of(topic, index, noted);
        if let Some(target) = target.map(|id| dirs.by_id(*id)) {
            // It may have been written there since.
            let may_be_there = !target.is_online() || is_among(&found, target);
            if may_be_there {
                return target.clone();
            }
        }
        match found.first() {
            Some(_) if is_among(&found, noted) => noted.clone(),
            Some(first) => first.clone(),
            None => noted.clone(),
        }
    }

    /// The directories in which the last run left a folder of the partition.
    fn folders_of(&self, topic: &Topic, index: i32, noted: &Arc<LogDir>) -> Vec<Arc<LogDir>> {
        if !self.hints_mean(topic.id) {
            return Vec::new();
        }
        let name = folder(&topic.name, index);
        let holds = |dir: &&Arc<LogDir>| dir.hints().folders().contains(&name);
        let mut found: Vec<_> = self.log_dirs.online().filter(holds).cloned().collect();
        if found.len() > 1 || !is_among(&found, noted) {
            // It may be that of a topic which was deleted while its directory was offline.
            found.retain(|dir| {
                let id = read_topic_id(&**self.log_dirs.disk(), &dir.path().join(&name));
                id.ok().flatten().is_none_or(|id| id == topic.id)
            });
        }
        found
    }

    /// Sees at start where all partitions are. Returns what is to be noted. Blocks.
    ///
    /// Errors: a partition is in two directories.
    pub(crate) fn settle(&self, image: &Image) -> Result<Vec<MetadataRecord>, PlacementError> {
        let mut notes = Vec::new();
        for topic in image.topics() {
            let held = image.places(topic.id);
            if held.is_none() && self.log_dirs.all().len() == 1 {
                continue;
            }
            let places = self.settle_topic(topic, held)?;
            if held != Some(&places) {
                let places = Some(places);
                notes.push(MetadataRecord::Places { id: topic.id, places });
            }
        }
        Ok(notes)
    }

    fn settle_topic(&self, topic: &Topic, held: Option<&Places>) -> Result<Places, PlacementError> {
        let mut places = Places::default();
        for (index, at) in (0..topic.partition_count()).zip(0..) {
            let place = self.place_of(topic, index, held);
            let target = held.and_then(|held| held.moves.get(&index));
            let found = self.folders_of(topic, index, &place);
            if let (Some(first), Some(second)) = (found.first(), found.get(1))
                && target.is_none_or(|target| *target != place.id())
            {
                return Err(PlacementError::TwoFolders {
                    folder: folder(&topic.name, index),
                    first: first.path().display().to_string(),
                    second: second.path().display().to_string(),
                });
            }
            let noted = held.and_then(|held| held.dirs.get(at)).copied();
            if place.is_online() {
                places.dirs.push(place.id());
                let may_have_left = found.len() > 1 || self.log_dirs.has_offline();
                if target == Some(&place.id()) && may_have_left {
                    // What the move has left is told from a second place by this: until a start finds
                    // it gone, however often one is interrupted before it is.
                    places.moves.insert(index, place.id());
                }
            } else {
                places.dirs.push(noted.unwrap_or(DirectoryId::ZERO));
                places.moves.extend(target.map(|target| (index, *target)));
            }
        }
        Ok(places)
    }
}

fn is_among(dirs: &[Arc<LogDir>], dir: &Arc<LogDir>) -> bool {
    dirs.iter().any(|held| Arc::ptr_eq(held, dir))
}

//! Deleting topics: the change, then the folders, then forgetting that there is something to do.

use std::collections::HashSet;
use std::sync::Arc;

use duolog_log_core::ids::TopicId;
use parking_lot::Mutex;
use tokio::sync::Notify;

use super::record::MetadataRecord;
use super::{Controller, ControllerError};
use crate::partitions::deletion;

/// Which deletions are under way.
#[derive(Debug, Default)]
pub(super) struct Deletions {
    running: Mutex<HashSet<TopicId>>,
    ended: Notify,
}

/// A deletion that is under way, until dropped.
#[derive(Debug)]
struct Running<'a> {
    deletions: &'a Deletions,
    topic: TopicId,
}

impl Drop for Running<'_> {
    fn drop(&mut self) {
        self.deletions.running.lock().remove(&self.topic);
        self.deletions.ended.notify_waiters();
    }
}

impl Deletions {
    /// `None` when somebody else is at it.
    fn begin(&self, topic: TopicId) -> Option<Running<'_>> {
        let is_first = self.running.lock().insert(topic);
        is_first.then_some(Running { deletions: self, topic })
    }

    fn is_running(&self, topic: TopicId) -> bool {
        self.running.lock().contains(&topic)
    }
}

impl Controller {
    /// Deletes a topic: it is gone once this returns, and so are its folders under their names,
    /// unless the disk refused; what is in them goes in the background. Once begun this comes to
    /// its end, also when the caller no longer waits.
    pub async fn delete_topic(self: &Arc<Self>, topic: TopicId) -> Result<(), ControllerError> {
        self.delete_topic_and(topic, |_| {}).await
    }

    /// As [`Self::delete_topic`]; `gone` hears the name when the topic is gone and before another
    /// one may have it.
    pub async fn delete_topic_and(
        self: &Arc<Self>,
        topic: TopicId,
        gone: impl FnOnce(Arc<str>) + Send + 'static,
    ) -> Result<(), ControllerError> {
        let controller = self.clone();
        let deletion = tokio::spawn(async move { controller.delete(topic, gone).await });
        let failed =
            |error: tokio::task::JoinError| ControllerError::NotWritable(error.to_string());
        deletion.await.map_err(failed)?
    }

    async fn delete(
        &self,
        topic: TopicId,
        gone: impl FnOnce(Arc<str>),
    ) -> Result<(), ControllerError> {
        // Before the topic is gone: a creation that finds it gone must find this too.
        let running = self.deletions.begin(topic).ok_or(ControllerError::UnknownTopicId)?;
        let name = self
            .change(move |image| {
                let topic = image.topic_by_id(topic).ok_or(ControllerError::UnknownTopicId)?;
                let name = topic.name.clone();
                let records = vec![
                    MetadataRecord::Topic { name: name.clone(), topic: None },
                    MetadataRecord::DeletedTopic { id: topic.id, name: Some(name.clone()) },
                ];
                Ok((records, name))
            })
            .await?;
        gone(name);
        let ended = self.partitions.remove_topic(topic);
        match deletion::delete_folders(&self.partitions, &ended).await {
            Ok(()) => self.forget_deleted(vec![topic]).await?,
            // The note stays, and with it the name is refused, until another try succeeds.
            Err(error) => tracing::error!(%topic, %error, "the topic's folders cannot be deleted"),
        }
        drop(running);
        Ok(())
    }

    /// Waits until no topic of one of these names is on its way out. One that was left half deleted
    /// by an earlier error is tried again.
    pub(super) async fn deletions_ended(self: &Arc<Self>, names: &[Arc<str>]) {
        loop {
            let ended = self.deletions.ended.notified();
            tokio::pin!(ended);
            ended.as_mut().enable();
            let image = self.image.load_full();
            if image.deleted().is_empty() {
                return;
            }
            let names: HashSet<&Arc<str>> = names.iter().collect();
            let mut deleted = image.deleted().iter().filter(|(_, name)| names.contains(name));
            let Some((topic, name)) = deleted.next() else { return };
            if self.deletions.is_running(*topic) {
                ended.await;
            } else if !self.delete_leftovers(*topic, name.clone()).await {
                return;
            }
        }
    }

    /// Tries again what earlier errors left of deleted topics.
    pub(crate) async fn delete_what_is_left(self: &Arc<Self>) {
        let image = self.image.load_full();
        for (topic, name) in image.deleted() {
            if !self.deletions.is_running(*topic)
                && !self.delete_leftovers(*topic, name.clone()).await
            {
                return;
            }
        }
    }

    /// Tries again to rename the folders of a deleted topic; returns whether they are gone.
    async fn delete_leftovers(self: &Arc<Self>, topic: TopicId, name: Arc<str>) -> bool {
        let controller = self.clone();
        let deletion = tokio::spawn(async move {
            let Some(_running) = controller.deletions.begin(topic) else { return true };
            if !controller.image.load().deleted().contains_key(&topic) {
                // Done meanwhile: the folders of that name may be another topic's.
                return true;
            }
            match deletion::delete_leftovers(&controller.partitions, topic, name).await {
                Ok(()) => controller.forget_deleted(vec![topic]).await.is_ok(),
                Err(error) => {
                    tracing::error!(%topic, %error, "the topic's folders cannot be deleted");
                    false
                }
            }
        });
        deletion.await.unwrap_or(false)
    }

    /// Notes that nothing of these deleted topics is left under their names.
    pub(crate) async fn forget_deleted(&self, topics: Vec<TopicId>) -> Result<(), ControllerError> {
        self.change(move |image| {
            let known = topics.into_iter().filter(|topic| image.deleted().contains_key(topic));
            let records = known.map(|id| MetadataRecord::DeletedTopic { id, name: None }).collect();
            Ok((records, ()))
        })
        .await
    }
}

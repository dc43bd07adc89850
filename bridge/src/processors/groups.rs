//! Groups' configurations, made when first asked for.

use std::sync::Arc;

use super::Refusal;
use super::rules::{self, RETRY_PREFIX};
use super::topics::{plain_topic, stored_name};
use crate::backend::{Backend, PERM_READ, PERM_WRITE, SubscriptionGroup};
use crate::dispatch::Shared;

impl<B: Backend> Shared<B> {
    /// A group's configuration; the default one, stored, for a new group with a legal name.
    /// `None`: there is none, and none is made. Source: findSubscriptionGroupConfig.
    pub(crate) async fn group_config(
        &self,
        group: &str,
    ) -> Result<Option<Arc<SubscriptionGroup>>, Refusal> {
        if let Some(config) = self.backend.subscription_group(group) {
            return Ok(Some(config));
        }
        let auto_create = self.backend.config().auto_create_subscription_group;
        if !auto_create || rules::validate_group(group).is_err() {
            return Ok(None);
        }
        let config = SubscriptionGroup::with_defaults(Arc::from(group));
        self.backend.put_subscription_group(config.clone()).await?;
        Ok(Some(Arc::new(config)))
    }

    /// Makes a group's retry topic, by which tools find the group.
    pub(crate) async fn create_retry_topic(
        &self,
        config: &SubscriptionGroup,
        sys_flag: i32,
    ) -> Result<(), Refusal> {
        let name = format!("{RETRY_PREFIX}{}", config.name);
        if config.retry_queues < 1 || self.topic(&name).is_some() {
            return Ok(());
        }
        let perm = PERM_READ | PERM_WRITE;
        let spec = plain_topic(stored_name(&name)?, config.retry_queues, perm, sys_flag);
        self.backend.create_topic(spec).await?;
        Ok(())
    }
}

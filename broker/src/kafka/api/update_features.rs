//! UpdateFeatures: key 57, v0–v2. The levels of features come with the version of this node: the one
//! that a feature has is confirmed, any other refused, and with it the whole request.
//!
//! Leaves out: other levels. Source: KIP-584, KIP-778; FeatureControlManager.updateFeatures.

use std::ops::RangeInclusive;

use super::admin::{Decided, Refused, fields};
use super::{Context, Handler};
use crate::kafka::codec::messages::update_features_request::FeatureUpdateKey;
use crate::kafka::codec::messages::{UpdateFeaturesRequest, UpdateFeaturesResponse};
use crate::kafka::errors::ErrorCode;
use crate::kafka::features::FEATURES;

/// The API.
pub(super) struct UpdateFeatures;

/// `FeatureUpdate.UpgradeType`: upgrade, safe downgrade, unsafe downgrade.
const UPGRADE_TYPES: RangeInclusive<i8> = 1..=3;

/// What Kafka 4.3 knows besides; each is at level 0 here.
const OTHERS: [&str; 7] = [
    "eligible.leader.replicas.version",
    "group.version",
    "kraft.version",
    "metadata.version",
    "share.version",
    "streams.version",
    "transaction.version",
];

impl Handler for UpdateFeatures {
    type Request = UpdateFeaturesRequest;
    type Response = UpdateFeaturesResponse;
    const VERSIONS: RangeInclusive<i16> = 0..=2;

    async fn handle(context: &Context, request: UpdateFeaturesRequest) -> UpdateFeaturesResponse {
        let decide = |update| decide(context.node.id(), update);
        let outcome: Decided = request.feature_updates.iter().try_for_each(decide);
        let (error_code, error_message) = fields(&outcome);
        UpdateFeaturesResponse { error_code, error_message, ..UpdateFeaturesResponse::default() }
    }
}

fn decide(node: i32, update: &FeatureUpdateKey) -> Decided {
    let (name, level) = (&*update.feature, update.max_version_level);
    let known = FEATURES.iter().find(|feature| feature.name == name);
    let finalized = known.map_or(0, |feature| feature.finalized);
    let is_known = known.is_some() || OTHERS.contains(&name);
    let reason = if !UPGRADE_TYPES.contains(&update.upgrade_type) {
        "The controller does not support the given upgrade type.".to_owned()
    } else if is_known && level == finalized {
        return Ok(());
    } else if known.is_some() {
        format!("This node keeps it at level {finalized}.")
    } else if level != 0 {
        format!("Local controller {node} does not support this feature.")
    } else {
        format!("Feature {name} not found.")
    };
    Err(Refused::new(
        ErrorCode::InvalidUpdateVersion,
        format!(
            "The update failed for all features since the following feature had an error: \
             Invalid update version {level} for feature {name}. {reason}"
        ),
    ))
}

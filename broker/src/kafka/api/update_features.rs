//! UpdateFeatures: key 57, v0–v2. Changes levels of features, all that are named or none; the metadata
//! log keeps them.
//!
//! Leaves out: features that are not built, which may only be off. Source: KIP-584, KIP-778, KIP-1022;
//! FeatureControlManager.updateFeatures.

use std::collections::BTreeSet;
use std::ops::RangeInclusive;

use super::admin::{Decided, Refused, fields};
use super::{Context, Handler};
use crate::kafka::codec::messages::update_features_request::FeatureUpdateKey;
use crate::kafka::codec::messages::update_features_response::UpdatableFeatureResult;
use crate::kafka::codec::messages::{UpdateFeaturesRequest, UpdateFeaturesResponse};
use crate::kafka::errors::ErrorCode;
use crate::kafka::features::{FeatureUpdate, SAFE_DOWNGRADE, UPGRADE};

/// The API.
pub(super) struct UpdateFeatures;

/// The only version that knows no types of upgrades.
const DOWNGRADE_ALLOWED_IN: i16 = 0;

/// The last version that answers each feature.
const RESULTS_TO: i16 = 1;

/// What Kafka says beside no error.
const NO_ERROR: &str = "NONE";

impl Handler for UpdateFeatures {
    type Request = UpdateFeaturesRequest;
    type Response = UpdateFeaturesResponse;
    const VERSIONS: RangeInclusive<i16> = 0..=2;

    async fn handle(context: &Context, request: UpdateFeaturesRequest) -> UpdateFeaturesResponse {
        let asked = &request.feature_updates;
        let updates = asked.iter().map(|update| read(context.version, update)).collect();
        let controller = &context.node.controller;
        let done = controller.update_features(context.node.id(), updates, request.validate_only);
        let outcome: Decided = done.await.map_err(Refused::from);
        let (error_code, error_message) = fields(&outcome);
        let names: BTreeSet<_> = asked.iter().map(|update| update.feature.clone()).collect();
        let results = names.into_iter().map(|feature| UpdatableFeatureResult {
            feature,
            error_code: ErrorCode::None.code(),
            error_message: Some(NO_ERROR.into()),
        });
        let answered = outcome.is_ok() && context.version <= RESULTS_TO;
        UpdateFeaturesResponse {
            error_code,
            error_message,
            results: results.filter(|_| answered).collect(),
            ..UpdateFeaturesResponse::default()
        }
    }
}

fn read(version: i16, update: &FeatureUpdateKey) -> FeatureUpdate {
    FeatureUpdate {
        name: update.feature.to_string(),
        level: update.max_version_level,
        upgrade_type: match (version, update.allow_downgrade) {
            (DOWNGRADE_ALLOWED_IN, true) => SAFE_DOWNGRADE,
            (DOWNGRADE_ALLOWED_IN, false) => UPGRADE,
            _ => update.upgrade_type,
        },
    }
}

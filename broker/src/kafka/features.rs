//! Features that are whole, with their levels (KIP-584, KIP-1022). What is not whole is not listed.
//!
//! The level in force is in the metadata log once somebody has changed it; until then it is the highest.
//! Source: FeatureControlManager.updateFeature, QuorumFeatures.reasonNotSupported.

use std::ops::RangeInclusive;

use crate::controller::image::Image;

/// One feature.
#[derive(Clone, Copy, Debug)]
pub struct Feature {
    /// Kafka's name of it.
    pub name: &'static str,
    /// Lowest level that is known; 0: it may be off.
    pub min: i16,
    /// Highest level that is known: the one of a new cluster.
    pub max: i16,
}

/// Level 1: the consumer protocol (KIP-848).
pub const GROUP_VERSION: Feature = Feature { name: "group.version", min: 0, max: 1 };

/// Level 2: transactions whose every end raises the producer's epoch (KIP-890).
pub const TRANSACTION_VERSION: Feature = Feature { name: "transaction.version", min: 0, max: 2 };

/// Every feature, by name.
pub const FEATURES: &[Feature] = &[GROUP_VERSION, TRANSACTION_VERSION];

/// What Kafka 4.3 knows besides; each is at level 0 here.
const OTHERS: [&str; 5] = [
    "eligible.leader.replicas.version",
    "kraft.version",
    "metadata.version",
    "share.version",
    "streams.version",
];

/// `FeatureUpdate.UpgradeType`.
pub const UPGRADE: i8 = 1;
/// Only when nothing is lost by it; no level of these features loses anything.
pub const SAFE_DOWNGRADE: i8 = 2;
/// All that there are, the unsafe downgrade too.
const UPGRADE_TYPES: RangeInclusive<i8> = 1..=3;

impl Feature {
    /// The level in force.
    pub fn level(&self, image: &Image) -> i16 {
        image.feature_level(self.name).unwrap_or(self.max)
    }
}

/// A level that a feature is to have.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FeatureUpdate {
    /// Its name, as sent.
    pub name: String,
    /// The new level.
    pub level: i16,
    /// `FeatureUpdate.UpgradeType`.
    pub upgrade_type: i8,
}

impl FeatureUpdate {
    /// Whether it may be done on `node`. Errors: why not, in Kafka's words.
    pub fn check(&self, image: &Image, node: i32) -> Result<(), String> {
        let known = FEATURES.iter().find(|feature| feature.name == self.name);
        let current = known.map_or(0, |feature| feature.level(image));
        let reason = if !UPGRADE_TYPES.contains(&self.upgrade_type) {
            "The controller does not support the given upgrade type.".to_owned()
        } else if self.level < 0 {
            "A feature version cannot be less than 0.".to_owned()
        } else if let Some(reason) = not_supported(known, self.level, node) {
            reason
        } else if self.level < current && self.upgrade_type == UPGRADE {
            "Can't downgrade the version of this feature without setting the upgrade type to either \
             safe or unsafe downgrade."
                .to_owned()
        } else if self.level > current && self.upgrade_type != UPGRADE {
            "Can't downgrade to a newer version.".to_owned()
        } else if known.is_none() && !OTHERS.contains(&&*self.name) {
            format!("Feature {} not found.", self.name)
        } else {
            return Ok(());
        };
        Err(format!(
            "The update failed for all features since the following feature had an error: \
             Invalid update version {} for feature {}. {reason}",
            self.level, self.name
        ))
    }
}

/// What is not known may only be off.
fn not_supported(known: Option<&Feature>, level: i16, node: i32) -> Option<String> {
    match known {
        Some(Feature { min, max, .. }) if !(*min..=*max).contains(&level) => {
            Some(format!("Local controller {node} only supports versions {min}-{max}"))
        }
        None if level != 0 => {
            Some(format!("Local controller {node} does not support this feature."))
        }
        _ => None,
    }
}

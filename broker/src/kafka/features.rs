//! Features that are whole, with their levels (KIP-584, KIP-1022). What is not whole is not listed.

/// One feature.
#[derive(Clone, Copy, Debug)]
pub struct Feature {
    /// Kafka's name of it.
    pub name: &'static str,
    /// Lowest level that is known; 0: it may be off.
    pub min: i16,
    /// Highest level that is known.
    pub max: i16,
    /// The level in force.
    pub finalized: i16,
}

/// Every feature, by name.
pub const FEATURES: &[Feature] = &[
    // Level 1: the consumer protocol (KIP-848).
    Feature { name: "group.version", min: 0, max: 1, finalized: 1 },
    // Level 2: transactions whose every end raises the producer's epoch (KIP-890).
    Feature { name: "transaction.version", min: 0, max: 2, finalized: 2 },
];

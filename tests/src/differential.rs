//! The same raw Kafka requests to Duolog and to a real Kafka: what they answer is compared after what no two
//! servers have in common is masked.
//!
//! A run is a seed ([`plan`]) or a script ([`script`]); each request is JSON by the field names of Kafka's own
//! schemas ([`wire`]). What differs on purpose stands in [`known`], with the reason that docs/differences.md
//! gives.

#[path = "../../broker/build/schema.rs"]
mod schema;
pub mod wire;

pub mod batches;
mod bindings;
pub mod compare;
pub mod known;
pub mod plan;
pub mod run;
pub mod script;
pub mod side;

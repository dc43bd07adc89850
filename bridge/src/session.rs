//! Connections, as far as the protocol knows them.

/// Names one connection for the life of the process. Never given twice.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SessionId(pub u64);

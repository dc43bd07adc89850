//! What a client may do, as a set of bits (KIP-430): everything, as long as nobody is kept out.

/// The client did not ask.
pub const NOT_ASKED: i32 = i32::MIN;

/// A bit per `AclOperation`.
const fn bits(operations: &[u8]) -> i32 {
    let mut set = 0;
    let mut index = 0;
    while index < operations.len() {
        #[expect(clippy::indexing_slicing, reason = "const: the index is below the length")]
        let operation = operations[index];
        set |= 1 << operation;
        index += 1;
    }
    set
}

const READ: u8 = 3;
const WRITE: u8 = 4;
const CREATE: u8 = 5;
const DELETE: u8 = 6;
const ALTER: u8 = 7;
const DESCRIBE: u8 = 8;
const CLUSTER_ACTION: u8 = 9;
const DESCRIBE_CONFIGS: u8 = 10;
const ALTER_CONFIGS: u8 = 11;
const IDEMPOTENT_WRITE: u8 = 12;

/// On a topic.
pub const TOPIC: i32 =
    bits(&[READ, WRITE, CREATE, DELETE, ALTER, DESCRIBE, DESCRIBE_CONFIGS, ALTER_CONFIGS]);

/// On the cluster.
pub const CLUSTER: i32 = bits(&[
    CREATE,
    ALTER,
    DESCRIBE,
    CLUSTER_ACTION,
    DESCRIBE_CONFIGS,
    ALTER_CONFIGS,
    IDEMPOTENT_WRITE,
]);

/// On a group.
pub const GROUP: i32 = bits(&[READ, DELETE, DESCRIBE, DESCRIBE_CONFIGS, ALTER_CONFIGS]);

//! What sets groups and transactions apart for those who drive their coordinators.

use std::fmt::Debug;

use duolog_coordinator::runtime::Runtime;
use duolog_coordinator::shard::Shard as Machine;
use duolog_coordinator::time::Now;

use super::env::Env;
use crate::partitions::append::Flush;

/// The refusals of a kind of coordinator.
pub(super) type Error<K> = <<K as Kind>::Machine as Machine>::Error;

/// The inputs of a kind of coordinator.
pub(super) type Event<K> = <<K as Kind>::Machine as Machine>::Event;

/// One kind of coordinator.
pub(super) trait Kind: Send + Sync + Sized + 'static {
    /// What decides.
    type Machine: Machine<
            Key: Send,
            Event: Clone + Send,
            Response: Send,
            Error: Send,
            Record: Send,
            Timer: Send,
            Notice: Send,
        > + Debug
        + Send;

    /// What is kept of one coordinator beside its machine.
    type Memory: Default + Send;

    /// Its internal topic.
    const TOPIC: &'static str;

    /// What its log holds, in words.
    const CONTENT: &'static str;

    /// What all coordinators of this kind share.
    fn env(&self) -> &Env;

    /// A machine that has read nothing yet.
    fn machine(&self) -> Self::Machine;

    /// The refusal while the log is being read.
    fn loading() -> Error<Self>;

    /// How soon the records of a decision have to be on disk.
    fn flush(&self) -> Flush {
        Flush::Topic
    }

    /// Takes news of coordinator `index`; must not lead back into a coordinator.
    fn tell(
        &self,
        index: i32,
        notice: <Self::Machine as Machine>::Notice,
        memory: &mut Self::Memory,
    );

    /// The log was read: brings in what happened meanwhile.
    fn loaded(&self, _runtime: &mut Runtime<Self::Machine>, _memory: &mut Self::Memory, _now: Now) {
    }

    /// The machine is about to decide something: tells it what it has to know first.
    fn before_input(
        &self,
        _runtime: &mut Runtime<Self::Machine>,
        _memory: &mut Self::Memory,
        _now: Now,
    ) {
    }

    /// The machine is given up.
    fn ended(&self, _memory: &mut Self::Memory) {}
}

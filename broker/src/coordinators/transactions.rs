//! Transactions: what requests ask of their coordinators, and what those have written for them.
//!
//! A decision to end a transaction comes back as a notice; its markers are then written, as often
//! as it takes, by one task for each transaction. Read the modules in this order.

mod kind;
mod markers;

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use duolog_coordinator::record::transaction::Partitions as PartitionSet;
use duolog_coordinator::record::transaction::{ProducerIdAndEpoch, TransactionalId};
use duolog_coordinator::shard::Answer;
use duolog_coordinator::txn::kafka::error::TxnError;
use duolog_coordinator::txn::kafka::event::{
    AddPartitions, EndTxn, Event, InitProducerId, ListTransactions,
};
use duolog_coordinator::txn::kafka::response::{Described, Listed, Response};
use duolog_coordinator::txn::kafka::shard::TxnShard;
use duolog_log_core::gate::{GatePoint, GateSubject};
use duolog_log_core::ids::TopicId;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use self::kind::Transactional;
pub use self::markers::{Mark, MarkError};
use super::service::{Cleanup, Service, TopicSettings};
use super::{Coordinators, Parts};
use crate::controller::image::Topic;
use crate::controller::{Controller, ControllerError};
use crate::instruments::{Instruments, Passage};
use crate::partitions::Partitions;

/// `add.partitions.to.txn.retry.backoff.ms`.
const ADD_RETRY_DELAY: Duration = Duration::from_millis(20);

/// `add.partitions.to.txn.retry.backoff.max.ms`.
const ADD_RETRY_LIMIT: Duration = Duration::from_millis(100);

/// All transaction coordinators of this node.
pub struct Transactions {
    service: Service<Transactional>,
    controller: Arc<Controller>,
    partitions: Arc<Partitions>,
    groups: Arc<Coordinators>,
    instruments: Arc<Instruments>,
    stopping: CancellationToken,
}

impl fmt::Debug for Transactions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Transactions").field("service", &self.service).finish_non_exhaustive()
    }
}

/// The value of an answer of the kind that its request has.
macro_rules! answer_of {
    ($answer:expr, $kind:pat => $value:expr) => {
        match $answer? {
            $kind => Ok($value),
            other => unreachable!("a coordinator answers in kind, not with {other:?}"),
        }
    };
}

impl Transactions {
    /// No coordinators yet. Call it inside the runtime that they shall run on.
    pub fn new(parts: Parts, groups: Arc<Coordinators>) -> Arc<Self> {
        let Parts { config, controller, partitions, instruments, stopping } = parts;
        let topic = TopicSettings {
            partitions: config.transactions.topic_partitions,
            segment_bytes: config.transactions.topic_segment_bytes,
            cleanup: Cleanup::Compacted,
        };
        Arc::new_cyclic(|this| {
            let kind = Transactional::new(
                &config,
                controller.clone(),
                partitions.clone(),
                instruments.events.clone(),
                this.clone(),
            );
            Self {
                service: Service::new(kind, partitions.clone(), topic, stopping.clone()),
                controller,
                partitions,
                groups,
                instruments,
                stopping,
            }
        })
    }

    /// Begins to read the transactions that the last run left, and to look at the clock. Once.
    pub fn start(self: &Arc<Self>) {
        let transactions = self.clone();
        self.service.handle().spawn(async move { transactions.service.run().await });
        let _ = self.service.shards();
    }

    /// Ends all coordinators if `__transaction_state` itself was deleted.
    pub fn topic_deleted(&self, topic: TopicId) {
        self.service.topic_deleted(topic);
    }

    /// `__transaction_state`, created on first need.
    ///
    /// Errors: it cannot be created.
    pub async fn state_topic(&self) -> Result<Arc<Topic>, ControllerError> {
        self.service.topic().await
    }

    /// Sees to it that a transactional id has a coordinator, creating `__transaction_state` on first
    /// need, and that it has read its log, as far as that takes no more than a few seconds.
    ///
    /// Errors: `CoordinatorNotAvailable` if there cannot be one; `CoordinatorLoadInProgress`.
    pub async fn prepare(&self, id: &str) -> Result<(), TxnError> {
        self.service.ready_shard(id).await.map(drop)
    }

    /// InitProducerId with a transactional id.
    pub async fn init_producer_id(
        &self,
        mut init: InitProducerId,
    ) -> Result<ProducerIdAndEpoch, TxnError> {
        loop {
            let id = init.id.clone();
            match self.ask(&id, Event::InitProducerId(init.clone())).await? {
                Response::ProducerId(producer) => return Ok(producer),
                Response::NeedsProducerId if init.fresh.is_none() => {
                    init.fresh = Some(self.fresh_producer_id().await?);
                }
                other => unreachable!("a coordinator answers in kind, not with {other:?}"),
            }
        }
    }

    /// Adds partitions to a transaction. Gate `txn.add`, at each partition.
    pub async fn add_partitions(&self, add: AddPartitions) -> Result<(), TxnError> {
        if !self.instruments.gates.is_idle() {
            for (topic, indexes) in &add.partitions {
                for index in indexes {
                    let subject = GateSubject {
                        topic: Some(topic),
                        partition: Some(*index),
                        client: Some(&add.id),
                        ..GateSubject::default()
                    };
                    self.pass(GatePoint::TxnAdd, subject).await?;
                }
            }
        }
        let id = add.id.clone();
        let answer = self.ask(&id, Event::AddPartitions(add)).await;
        answer_of!(answer, Response::Added => ())
    }

    /// As [`Self::add_partitions`], if need be a little later: a producer of transactions v2 begins
    /// the next one while the markers of the last are being written.
    pub async fn add_patiently(&self, add: &AddPartitions) -> Result<(), TxnError> {
        let deadline = Instant::now() + ADD_RETRY_LIMIT;
        loop {
            match self.add_partitions(add.clone()).await {
                Err(TxnError::ConcurrentTransactions)
                    if Instant::now() + ADD_RETRY_DELAY < deadline =>
                {
                    tokio::time::sleep(ADD_RETRY_DELAY).await;
                }
                answer => return answer,
            }
        }
    }

    /// Which of the partitions are in the transaction.
    pub async fn verify_partitions(&self, add: AddPartitions) -> Result<PartitionSet, TxnError> {
        let id = add.id.clone();
        let answer = self.ask(&id, Event::VerifyPartitions(add)).await;
        answer_of!(answer, Response::Verified(partitions) => partitions)
    }

    /// EndTxn: returns once it is stored how the transaction ends, with what the producer has from
    /// then on. Gate `txn.end.recv`.
    pub async fn end(&self, mut end: EndTxn) -> Result<ProducerIdAndEpoch, TxnError> {
        let subject = GateSubject { client: Some(&end.id), ..GateSubject::default() };
        self.pass(GatePoint::TxnEndReceived, subject).await?;
        loop {
            let id = end.id.clone();
            match self.ask(&id, Event::EndTxn(end.clone())).await? {
                Response::Ended(producer) => return Ok(producer),
                Response::NeedsProducerId if end.fresh.is_none() => {
                    end.fresh = Some(self.fresh_producer_id().await?);
                }
                other => unreachable!("a coordinator answers in kind, not with {other:?}"),
            }
        }
    }

    /// DescribeTransactions, one of its ids.
    pub async fn describe(&self, id: TransactionalId) -> Result<Described, TxnError> {
        let answer = self.ask(&id, Event::Describe(id.clone())).await;
        answer_of!(answer, Response::Described(described) => described)
    }

    /// ListTransactions: those of all coordinators, by id.
    ///
    /// Errors: one of them is not ready. A list that lacks some would pass for the whole.
    pub async fn list(&self, list: ListTransactions) -> Result<Vec<Listed>, TxnError> {
        let mut all = Vec::new();
        for answer in self.service.ask_all(&Event::List(list)).await {
            let part: Result<Vec<_>, TxnError> =
                answer_of!(answer, Response::Listed(listed) => listed);
            all.extend(part?);
        }
        all.sort_by(|a, b| a.id.cmp(&b.id));
        Ok(all)
    }

    async fn ask(&self, id: &str, event: Event) -> Answer<TxnShard> {
        self.service.ask(id, event).await
    }

    async fn fresh_producer_id(&self) -> Result<i64, TxnError> {
        self.controller.next_producer_id().await.map_err(|error| {
            tracing::warn!(%error, "no producer id for a transaction");
            TxnError::CoordinatorNotAvailable
        })
    }

    /// Stays at `point` for as long as a gate says.
    ///
    /// Errors: a gate makes the request fail; one that it drops gets no answer before the node
    /// stops.
    async fn pass(&self, point: GatePoint, subject: GateSubject<'_>) -> Result<(), TxnError> {
        match self.instruments.pass(point, subject).await {
            Passage::Go => Ok(()),
            Passage::Fail => Err(TxnError::CoordinatorNotAvailable),
            Passage::Drop => {
                self.stopping.cancelled().await;
                Err(TxnError::NotCoordinator)
            }
        }
    }
}

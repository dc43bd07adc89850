//! A leader among clients and followers.

use bytes::Bytes;
use duolog_log_core::event::EventKind;
use duolog_log_core::ids::{LeaderEpoch, Offset};
use duolog_log_core::log::{AppendBatch, AppendOrigin, Appended, LogError, Novelty, ReadMinimum};
use duolog_log_core::record::{BatchHeader, TransactionOutcome};
use duolog_log_core::replication::partition::{
    AckState, Acks, EpochQuestion, FetchAnswer, FetchQuestion, ReplicationError, Role,
};

use super::{Process, Step};
use crate::checker::Entry;
use crate::message::{Address, Isolation, Kind, Message, Outcome, ProduceRequest};
use crate::{storage, values};

/// How much a follower or a consumer gets at once.
const READ_BYTES_MAX: usize = 600;

/// An append whose answer waits for other replicas.
pub struct Waiting {
    required: Offset,
    base_offset: i64,
    epoch: LeaderEpoch,
    attempt: u64,
    values: Vec<u64>,
    client: Address,
    /// `min.insync.replicas` when it was written.
    minimum: usize,
}

impl Process {
    pub(super) fn produce(
        &mut self,
        request: ProduceRequest,
        client: Address,
        step: &mut Step<'_>,
    ) -> Result<(), LogError> {
        let (attempt, acks) = (request.attempt, request.acks);
        let answer = |step: &mut Step<'_>, outcome| {
            if acks != Acks::None {
                step.send(client, Message::Produced { attempt, outcome });
            }
        };
        if let Err(refusal) = self.admit(acks) {
            if let ReplicationError::NotEnoughReplicas { .. } = refusal {
                step.seen.coverage.too_few_replicas += 1;
            }
            answer(step, Outcome::Retry);
            return Ok(());
        }
        let epoch = self.replica.leader_epoch();
        let appended = match self.write(&request, step)? {
            Ok(appended) => appended,
            Err(outcome) => {
                answer(step, outcome);
                return Ok(());
            }
        };
        let values = request.values;
        if appended.novelty == Novelty::New {
            let entries: Vec<_> = values.iter().map(|&value| Entry { epoch, value }).collect();
            step.seen.checker.appended(step.node, appended.base_offset, &entries);
            step.event(EventKind::ProduceAppended, (appended.last_offset, epoch), || {
                format!("{} with acks={}", values::names(&values), acks_name(acks))
            });
        } else {
            step.seen.coverage.duplicates += 1;
        }
        self.log_grew(step)?;
        let base_offset = Offset(appended.base_offset);
        match acks {
            Acks::None => step.seen.coverage.unacknowledged += 1,
            Acks::Leader => {
                step.seen.coverage.acknowledged_by_leader += 1;
                step.seen.checker.acknowledged_alone(step.node, epoch);
                step.event(EventKind::ProduceAcknowledged, (appended.last_offset, epoch), || {
                    format!("{} acknowledged by the leader alone", values::names(&values))
                });
                answer(step, Outcome::Acknowledged(base_offset));
            }
            Acks::All => self.waiting.push(Waiting {
                required: Offset(appended.last_offset).plus(1),
                base_offset: appended.base_offset,
                epoch,
                attempt,
                values,
                client,
                minimum: self.replica.min_insync_replicas(),
            }),
        }
        Ok(())
    }

    /// Appends, or says what to answer instead.
    fn write(
        &mut self,
        request: &ProduceRequest,
        step: &mut Step<'_>,
    ) -> Result<Result<Appended, Outcome>, LogError> {
        let Some(bytes) = storage::batch(request, step.now_ms) else {
            return Ok(Err(Outcome::Retry));
        };
        let origin = match request.kind {
            Kind::Plain | Kind::Transactional => AppendOrigin::Client,
            Kind::Marker { .. } => AppendOrigin::Coordinator,
        };
        let batch = AppendBatch { bytes, origin };
        let epoch = self.replica.leader_epoch();
        Ok(match self.log.append_as_leader(vec![batch], epoch, step.now_ms).pop() {
            Some(Ok(appended)) => Ok(appended),
            Some(Err(
                LogError::OutOfOrderSequence { .. }
                | LogError::InvalidProducerEpoch { .. }
                | LogError::CoordinatorFenced { .. },
            )) => Err(Outcome::OutOfSequence),
            Some(Err(LogError::StorageFull(_))) | None => {
                step.seen.coverage.disk_full += 1;
                Err(Outcome::Retry)
            }
            Some(Err(error)) => return Err(error),
        })
    }

    fn admit(&self, acks: Acks) -> Result<(), ReplicationError> {
        if self.broker_epoch.is_none() {
            return self.replica.check_leader();
        }
        self.replica.admit(acks)
    }

    /// Answers whoever has what it waits for.
    pub(super) fn settle(&mut self, step: &mut Step<'_>) {
        let mut waiting = std::mem::take(&mut self.waiting);
        waiting.retain(|one| {
            let state = self.replica.ack_state(one.required, one.epoch);
            let is_decided =
                matches!(state, AckState::Acknowledged | AckState::NotEnoughReplicasAfterAppend);
            if is_decided && one.minimum != self.replica.min_insync_replicas() {
                step.seen.coverage.acks_across_minimum += 1;
            }
            let outcome = match state {
                AckState::Waiting => return true,
                AckState::Acknowledged => {
                    let (offset, values) = (one.base_offset, &one.values);
                    step.seen.checker.acknowledged(step.node, &self.replica, offset, values);
                    acknowledged(one, step)
                }
                AckState::NotEnoughReplicasAfterAppend => {
                    step.seen.coverage.too_few_replicas += 1;
                    Outcome::Retry
                }
                AckState::NotLeader => Outcome::Retry,
            };
            step.send(one.client, Message::Produced { attempt: one.attempt, outcome });
            false
        });
        self.waiting = waiting;
    }

    /// A planted fault: what waits is acknowledged although this node leads no more.
    pub(super) fn acknowledge_all(&mut self, step: &mut Step<'_>) {
        for one in std::mem::take(&mut self.waiting) {
            step.seen.checker.acknowledged_in(step.node, one.epoch, one.base_offset, &one.values);
            let outcome = acknowledged(&one, step);
            step.send(one.client, Message::Produced { attempt: one.attempt, outcome });
        }
    }

    pub(super) fn answer_fetch(
        &mut self,
        question: &FetchQuestion,
        from: Address,
        step: &mut Step<'_>,
    ) -> Result<(), LogError> {
        let epochs = self.epochs();
        step.event(
            EventKind::ReplicaFetch,
            (question.fetch_offset.0, question.leader_epoch),
            || match question.last_fetched_epoch {
                Some(epoch) => format!("node {} asks, its last epoch is {epoch}", question.replica),
                None => format!("node {} asks", question.replica),
            },
        );
        let answer = self.replica.answer_fetch(question, &epochs, step.clock_ms);
        let coverage = &mut step.seen.coverage;
        match answer {
            Ok(FetchAnswer::Diverging(_)) => coverage.divergences += 1,
            Ok(FetchAnswer::OutOfRange { .. }) => coverage.out_of_range += 1,
            Err(ReplicationError::StaleBrokerEpoch { .. }) => coverage.stale_runs += 1,
            Err(ReplicationError::UnknownReplica(_)) => coverage.strangers_refused += 1,
            Err(_) => coverage.fenced += 1,
            Ok(FetchAnswer::Records { .. }) => {}
        }
        let answer = match answer {
            Ok(answer @ FetchAnswer::Records { .. }) => {
                let end = self.replica.log_end_offset().0;
                Ok((answer, self.read_batches(question.fetch_offset.0, end, step)?))
            }
            Ok(answer) => Ok((answer, Vec::new())),
            Err(error) => Err(error),
        };
        step.send(from, Message::FetchAnswered(*question, answer));
        Ok(())
    }

    pub(super) fn answer_epoch_end(
        &self,
        question: EpochQuestion,
        from: Address,
        step: &mut Step<'_>,
    ) {
        let answer = self.replica.answer_epoch_end(question, &self.epochs());
        step.seen.coverage.epoch_questions += 1;
        step.send(from, Message::EpochEndAnswered(question, answer));
    }

    pub(super) fn read(
        &self,
        (offset, isolation): (i64, Isolation),
        client: Address,
        step: &mut Step<'_>,
    ) -> Result<(), LogError> {
        if self.replica.role() != Role::Leader || self.broker_epoch.is_none() {
            step.send(client, Message::WasRead { offset, next_offset: None });
            return Ok(());
        }
        let end = match isolation {
            Isolation::ReadUncommitted => self.replica.high_watermark().0,
            Isolation::ReadCommitted => self.replica.last_stable_offset().0,
        };
        let from = offset.max(self.replica.log_start_offset().0);
        let mut next = from;
        if from < end {
            for bytes in self.read_batches(from, end, step)? {
                next = self.deliver(&bytes, (from, end), isolation, step)?;
            }
            let epoch = self.replica.leader_epoch();
            step.event(EventKind::Deliver, (next - 1, epoch), || format!("from {from}"));
        }
        step.send(client, Message::WasRead { offset, next_offset: Some(next) });
        Ok(())
    }

    /// Gives one batch, from `from` on, to a consumer that may see what is below `end`; returns the offset after it.
    fn deliver(
        &self,
        bytes: &Bytes,
        (from, end): (i64, i64),
        isolation: Isolation,
        step: &mut Step<'_>,
    ) -> Result<i64, LogError> {
        let (node, epoch) = (step.node, self.replica.leader_epoch());
        let header = BatchHeader::parse(bytes)?;
        let aborted = self.log.reader().aborted_transactions(from, end)?;
        let is_of_transaction = isolation == Isolation::ReadCommitted
            && header.is_transactional()
            && !header.is_control();
        let entries = storage::entries_of(bytes).unwrap_or_default();
        for (at, entry) in (header.base_offset..).zip(entries).filter(|(at, _)| *at >= from) {
            step.seen.checker.consumed(node, epoch, at, entry);
            step.seen.coverage.records_read += 1;
            if is_of_transaction {
                let is_aborted = aborted.iter().any(|txn| {
                    txn.producer_id == header.producer_id.0
                        && (txn.first_offset..=txn.last_offset).contains(&at)
                });
                let coverage = &mut step.seen.coverage;
                let (told, count) = match is_aborted {
                    true => (TransactionOutcome::Abort, &mut coverage.aborted_left_out),
                    false => (TransactionOutcome::Commit, &mut coverage.committed_read),
                };
                *count += 1;
                let high_watermark = self.replica.high_watermark().0;
                let checker = &mut step.seen.checker;
                checker.consumed_in_transaction(node, epoch, (at, high_watermark), told);
            }
        }
        Ok(header.next_offset())
    }

    fn read_batches(
        &self,
        from: i64,
        end: i64,
        step: &mut Step<'_>,
    ) -> Result<Vec<Bytes>, LogError> {
        let read = self.log.reader().read(from, READ_BYTES_MAX, end, ReadMinimum::OneBatch)?;
        Ok(storage::split(&read.pieces).unwrap_or_else(|| {
            step.seen.checker.violate(|| format!("node {} reads torn batches", step.node));
            Vec::new()
        }))
    }
}

fn acknowledged(one: &Waiting, step: &mut Step<'_>) -> Outcome {
    step.seen.coverage.acknowledged += 1;
    step.event(EventKind::ProduceAcknowledged, (one.required.0 - 1, one.epoch), || {
        format!("{} acknowledged by the whole ISR", values::names(&one.values))
    });
    Outcome::Acknowledged(Offset(one.base_offset))
}

const fn acks_name(acks: Acks) -> &'static str {
    match acks {
        Acks::None => "0",
        Acks::Leader => "1",
        Acks::All => "all",
    }
}

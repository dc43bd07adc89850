//! A shard whose state is easily told.

use super::*;

/// Sets itself anew whenever it rings, at once.
pub(super) const FOR_EVER: &str = "for ever";
/// Stops [`SECOND_OF_TWO`] when it rings.
pub(super) const FIRST_OF_TWO: &str = "first of two";
pub(super) const SECOND_OF_TWO: &str = "second of two";

/// A shard of named registers, each of which keeps the sum of what was added to it.
#[derive(Debug, Default)]
pub(super) struct Sums {
    pub(super) stored: BTreeMap<&'static str, i64>,
    /// Adds seen live since the key was last reverted.
    pub(super) live: BTreeMap<&'static str, i64>,
    pub(super) parked: Vec<(RequestId, &'static str)>,
    /// By producer.
    pub(super) promised: Vec<(i64, (&'static str, i64))>,
}

#[derive(Clone, Debug)]
pub(super) enum Ask {
    /// Answers the sum after the addition.
    Add(&'static str, i64),
    /// Answers the stored sum.
    Read(&'static str),
    /// Answers the number of registers.
    Count,
    /// Waits for the next `Add` to the register.
    Park(&'static str),
    /// Adds one at each of so many steps, then answers.
    Climb(&'static str, i64),
    /// Too large to be encoded.
    Oversize(&'static str),
    /// Adds once the transaction of that producer commits.
    Promise(&'static str, i64, i64),
    /// Ends the transaction of that producer.
    End(i64, TransactionOutcome),
    /// Sets a timer.
    Wind(&'static str, i64),
    /// Stops a timer.
    Unwind(&'static str),
    Rang(&'static str),
}

impl Shard for Sums {
    type Key = &'static str;
    type Event = Ask;
    type Response = i64;
    type Error = AppendError;
    type Record = (&'static str, i64);
    type Timer = &'static str;
    type Notice = &'static str;

    fn key(event: &Ask) -> Option<&&'static str> {
        match event {
            Ask::Add(key, _)
            | Ask::Read(key)
            | Ask::Park(key)
            | Ask::Climb(key, _)
            | Ask::Oversize(key)
            | Ask::Promise(key, ..)
            | Ask::Wind(key, _)
            | Ask::Unwind(key)
            | Ask::Rang(key) => Some(key),
            Ask::Count | Ask::End(..) => None,
        }
    }

    fn fired(timer: &'static str) -> Ask {
        Ask::Rang(timer)
    }

    fn handle(&mut self, request: Option<RequestId>, event: Ask, now: Now) -> Outcome<Self> {
        let mut out = Outcome::default();
        match event {
            Ask::Add(key, amount) => {
                out.records.push((key, amount));
                out.undo = Undo::Group;
                *self.live.entry(key).or_default() += 1;
                let sum = self.stored.get(key).copied().unwrap_or(0) + amount;
                let parked = self.parked.extract_if(.., |(_, parked)| *parked == key);
                out.responses.extend(parked.map(|(request, _)| (request, Ok(sum))));
                out.respond(request, Ok(sum));
            }
            Ask::Climb(key, steps) => {
                out.records.push((key, 1));
                if steps > 1 {
                    out.follow_ups.push((request, Ask::Climb(key, steps - 1)));
                } else {
                    out.respond(request, Ok(0));
                }
            }
            Ask::Read(key) => {
                out.respond(request, Ok(self.stored.get(key).copied().unwrap_or(0)));
            }
            Ask::Count => out.respond(request, Ok(self.stored.len() as i64)),
            Ask::Park(key) => self.parked.push((request.expect("a request"), key)),
            Ask::Oversize(key) => {
                out.records.push((key, i64::MAX));
                out.undo = Undo::Group;
                out.respond(request, Ok(0));
            }
            Ask::Promise(key, amount, producer_id) => {
                out.records.push((key, amount));
                let producer = ProducerIdAndEpoch { id: producer_id, epoch: 0 };
                out.batch = BatchForm::InTransaction { producer, verified: Verified::Unasked };
                out.respond(request, Ok(0));
            }
            Ask::End(producer_id, outcome) => {
                out.batch = BatchForm::End(TransactionEnd {
                    producer: ProducerIdAndEpoch { id: producer_id, epoch: 0 },
                    outcome,
                    coordinator_epoch: 0,
                    version: TxnVersion::V1,
                });
                out.respond(request, Ok(0));
            }
            Ask::Wind(key, delay_ms) => {
                out.timers.push(TimerChange::Set(key, now.after(delay_ms)));
                out.respond(request, Ok(0));
            }
            Ask::Unwind(key) => {
                out.timers.push(TimerChange::Cancel(key));
                out.respond(request, Ok(0));
            }
            Ask::Rang(key) => {
                if key == FOR_EVER {
                    out.timers.push(TimerChange::Set(FOR_EVER, now.after(0)));
                }
                // The first of a pair stops the second.
                if key == FIRST_OF_TWO {
                    out.timers.push(TimerChange::Cancel(SECOND_OF_TWO));
                }
                out.notices.push(key);
            }
        }
        out
    }

    fn replay(&mut self, (key, amount): (&'static str, i64), _: Offset) {
        *self.stored.entry(key).or_default() += amount;
    }

    fn replay_in_transaction(&mut self, producer_id: i64, record: (&'static str, i64), _: Offset) {
        self.promised.push((producer_id, record));
    }

    fn replay_end(&mut self, producer_id: i64, outcome: TransactionOutcome) {
        let ended: Vec<_> = self.promised.extract_if(.., |(id, _)| *id == producer_id).collect();
        for (_, record) in ended {
            if outcome == TransactionOutcome::Commit {
                self.replay(record, Offset(0));
            }
        }
    }

    fn loaded(&mut self, _: Now) -> Outcome<Self> {
        Outcome::default()
    }

    fn revert(&mut self, key: &&'static str, error: &AppendError, _: Now) -> Outcome<Self> {
        self.live.remove(key);
        let mut out = Outcome::default();
        let parked = self.parked.extract_if(.., |(_, parked)| parked == key);
        out.responses.extend(parked.map(|(request, _)| (request, Err(*error))));
        out
    }

    fn while_loading(event: &Ask) -> Result<i64, AppendError> {
        match event {
            Ask::Count => Ok(-1),
            _ => Err(AppendError::NotEnoughReplicas),
        }
    }

    fn resigned() -> AppendError {
        AppendError::NotLeader
    }

    fn overloaded() -> AppendError {
        AppendError::NotEnoughReplicas
    }

    fn encode((key, amount): &(&'static str, i64)) -> Result<RecordBytes, AppendError> {
        if *amount == i64::MAX {
            return Err(AppendError::TooLarge);
        }
        let value = Some(Bytes::from(amount.to_string()));
        Ok(RecordBytes { key: Bytes::from_static(key.as_bytes()), value })
    }

    fn decode(
        key: &Bytes,
        value: Option<&Bytes>,
    ) -> Result<Option<(&'static str, i64)>, RecordError> {
        let key = match &key[..] {
            b"a" => "a",
            b"b" => "b",
            _ => return Ok(None),
        };
        let text = std::str::from_utf8(value.ok_or(RecordError::Null("amount"))?);
        let amount = text.ok().and_then(|text| text.parse().ok());
        Ok(Some((key, amount.ok_or(RecordError::NotUtf8("amount"))?)))
    }
}

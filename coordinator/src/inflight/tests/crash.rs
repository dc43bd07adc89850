//! A crash at every record of random runs.

use super::*;

#[derive(Clone, Debug)]
enum Step {
    Take(usize),
    Settle(usize),
    Delay(usize, i64),
    Pass(i64),
    Fail,
    Bury,
    Restart,
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        4 => (1_usize..6).prop_map(Step::Take),
        4 => any::<usize>().prop_map(Step::Settle),
        2 => (any::<usize>(), 0_i64..2_000).prop_map(|(which, ms)| Step::Delay(which, ms)),
        3 => (0_i64..1_500).prop_map(Step::Pass),
        1 => Just(Step::Fail),
        1 => Just(Step::Bury),
        1 => Just(Step::Restart),
    ]
}

/// What a client believes to have.
#[derive(Default)]
struct Hands {
    /// By offset: the name of the last delivery.
    held: BTreeMap<i64, i64>,
    deliveries: BTreeMap<i64, u16>,
    settled: BTreeSet<i64>,
    buried: BTreeSet<i64>,
}

impl Hands {
    fn take(&mut self, bench: &mut Bench, count: usize) -> Result<(), TestCaseError> {
        let plan = bench.plan(count);
        let take = bench.take_of(&plan, count, None);
        let popped_ms = take.lease.popped_ms;
        let fresh: Vec<_> = take.fresh.iter().flat_map(|it| it.offsets.clone()).collect();
        match bench.ask(Ask::Take(take)) {
            Ok(Response::Taken(true)) => {}
            Err(InflightError::NotAvailable) => return Ok(()),
            other => return Err(TestCaseError::fail(format!("{other:?}"))),
        }
        for (offset, times) in plan.again.into_iter().chain(fresh.into_iter().map(|o| (o, 1))) {
            prop_assert!(!self.settled.contains(&offset) && !self.buried.contains(&offset));
            let before = self.deliveries.insert(offset, times).unwrap_or_default();
            prop_assert_eq!(times, before + 1);
            self.held.insert(offset, popped_ms);
        }
        Ok(())
    }

    fn step(&mut self, bench: &mut Bench, step: &Step) -> Result<(), TestCaseError> {
        match step {
            Step::Take(count) => self.take(bench, *count)?,
            Step::Settle(which) => {
                let index = which % self.held.len().max(1);
                let Some((&offset, &popped_ms)) = self.held.iter().nth(index) else {
                    return Ok(());
                };
                let (offsets, state) = (set(&[offset]), DeliveryState::Acknowledged);
                match bench.ask(Ask::Settle { offsets, popped_ms, state }) {
                    Ok(answer) => {
                        prop_assert_eq!(answer, Response::Settled(1));
                        self.held.remove(&offset);
                        self.settled.insert(offset);
                    }
                    Err(error) => prop_assert_eq!(error, InflightError::NotAvailable),
                }
            }
            Step::Delay(which, ms) => {
                let index = which % self.held.len().max(1);
                let Some((&offset, &popped_ms)) = self.held.iter().nth(index) else {
                    return Ok(());
                };
                let lease = bench.lease(*ms);
                match bench.ask(Ask::Delay { offset, popped_ms, lease }) {
                    Ok(answer) => {
                        prop_assert_eq!(answer, Response::Delayed(true));
                        self.held.insert(offset, lease.popped_ms);
                    }
                    Err(error) => prop_assert_eq!(error, InflightError::NotAvailable),
                }
            }
            Step::Pass(ms) => _ = bench.pass(*ms),
            Step::Fail => bench.failure = Some(AppendError::NotEnoughReplicas),
            Step::Bury => {
                for (offset, times) in bench.runtime.shard().dead(&share("g"), bench.now.wall_ms, 9)
                {
                    prop_assert_eq!(times, 3);
                    if bench.bury(offset) == Ok(Response::Buried(true)) {
                        self.held.remove(&offset);
                        prop_assert!(self.buried.insert(offset), "buried once");
                    }
                }
            }
            Step::Restart => {}
        }
        Ok(())
    }
}

proptest! {
    /// Whatever is done in whatever order and whatever appends fail: what was settled is never
    /// delivered again, deliveries count up by one, nothing is lost, and each message is copied to the
    /// dead letters once at most. What a replay knows is what the live machine knew, at every batch.
    #[test]
    fn replayed_state_equals_live_state_at_every_record(
        steps in prop::collection::vec(step(), 1..80),
    ) {
        let mut bench = Bench::new();
        bench.open(0);
        let mut hands = Hands::default();
        let mut copies = Vec::new();
        for step in steps {
            hands.step(&mut bench, &step)?;
            copies.extend(bench.deliver());
            prop_assert_eq!(durable(&load(InflightShard::new(), &bench.log, bench.now)), durable(&bench.runtime));
            if matches!(step, Step::Restart) {
                bench = bench.restarted();
            }
        }
        bench.failure = None;
        // Every crash between two batches leaves a state that serves.
        for end in bench.ends.clone() {
            let runtime = load(InflightShard::new(), &bench.log[..end], bench.now);
            let windows = runtime.shard().windows().map(|(_, window)| window.len()).sum::<usize>();
            prop_assert_eq!(windows, runtime.shard().flight_count());
        }
        // All that is not done is there to be delivered, or dead.
        bench.pass(10_000);
        let plan = bench.plan(usize::MAX);
        let dead = bench.runtime.shard().dead(&share("g"), bench.now.wall_ms, usize::MAX);
        let there: BTreeSet<i64> = plan.again.iter().chain(&dead).map(|(offset, _)| *offset).collect();
        let done = hands.settled.union(&hands.buried).copied().collect::<BTreeSet<_>>();
        let all: BTreeSet<i64> = (0..plan.next).collect();
        prop_assert!(there.is_disjoint(&done));
        prop_assert_eq!(there.union(&done).copied().collect::<BTreeSet<_>>(), all);
        copies.extend(bench.deliver());
        let copies: Vec<i64> = copies.iter().map(|name| name.parse().unwrap()).collect();
        let different: BTreeSet<i64> = copies.iter().copied().collect();
        prop_assert_eq!(copies.len(), different.len());
        prop_assert_eq!(different, hands.buried);
    }
}

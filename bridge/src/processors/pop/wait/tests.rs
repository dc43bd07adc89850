use super::*;
use crate::backend::SubscriptionGroup;
use crate::fake::{Client, FakeBackend};

/// All queues of t, for g.
fn all_of(backend: &FakeBackend, queues: i32) -> (Asked, Target) {
    let topic = backend.add_topic("t", queues);
    let group = SubscriptionGroup::with_defaults("g".into());
    let asked = Asked { group: "g".into(), name: "t".into(), queue_id: -1 };
    (asked, Target { topic, group: group.into() })
}

/// Each look takes a second and finds nothing, though the log goes on, for a hundred times.
#[derive(Default)]
struct Busy {
    looks: usize,
}

impl Look for Busy {
    async fn queue(&mut self, _queue_id: i32) -> Result<Wait, Refusal> {
        tokio::time::advance(Duration::from_secs(1)).await;
        self.looks += 1;
        Ok(if self.looks < 100 { Wait::Log(-1) } else { Wait::Ready })
    }

    fn is_done(&self) -> bool {
        false
    }

    fn has_found(&self) -> bool {
        false
    }
}

#[tokio::test(start_paused = true)]
async fn the_time_ends_a_wait_though_each_look_finds_the_log_gone_on() {
    let backend = FakeBackend::new();
    let (asked, target) = all_of(&backend, 1);
    backend.write_tagged("t", 0, &[("A", "a")]);
    let shared = Client::new(backend).dispatcher.shared();
    let mut busy = Busy::default();
    let time = Some(Duration::from_secs(15));
    let ended = look(&shared, &asked, &target, time, &mut busy).await;
    assert_eq!((ended, busy.looks), (Ok(Ended::TimeUp), 15));
    let mut busy = Busy::default();
    let time = Some(Duration::from_millis(1));
    let ended = look(&shared, &asked, &target, time, &mut busy).await;
    assert_eq!((ended, busy.looks), (Ok(Ended::TimeUp), 1), "the first look is always had");
}

//! Groups of stock consumers that join and leave: who is assigned what, and that each record
//! reaches its owner.

use std::collections::BTreeSet;
use std::time::Duration;

use anyhow::{Context, ensure};

use crate::stock::Driver;
use crate::wait;

/// Partitions, or queues, of the topics here.
pub const PARTITIONS: i32 = 16;
/// Has RocketMQ's consumers look for other members by themselves every ten minutes only, and not every 20 s.
pub const HEEDFUL: &str = "-Drocketmq.client.rebalance.waitInterval=600000";
/// Has them look for their queues every second.
pub const EAGER: &str = "-Drocketmq.client.rebalance.waitInterval=1000";
/// With [`HEEDFUL`] consumers this proves that notices work, however busy the machine.
const REBALANCE_LIMIT: Duration = Duration::from_secs(120);
const DELIVERY_LIMIT: Duration = Duration::from_secs(120);

/// How the partitions must be shared.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Share {
    /// RocketMQ's AVG: consecutive queues, the first members one more.
    Average,
    /// RocketMQ's AVG_BY_CIRCLE: dealt in turn.
    Circle,
    /// The consumer protocol (KIP-848): as many for each as Average, whichever.
    Uniform,
    /// Kafka's range assignor with members in an order that only the coordinator knows: the sizes
    /// of Average.
    Range,
    /// Whatever assignor of Kafka's classic protocol the clients have: as many for each as Average.
    Even,
}

impl Share {
    fn strategy(self) -> &'static str {
        match self {
            Self::Average => "strategy=AVG",
            Self::Circle => "strategy=CIRCLE",
            Self::Uniform => "c.group.protocol=consumer",
            Self::Range | Self::Even => "c.heartbeat.interval.ms=300",
        }
    }

    /// The partitions of each of `members` members, in the order of their names.
    fn expected(self, members: i32) -> Vec<BTreeSet<i32>> {
        let all = 0..PARTITIONS;
        let (least, more) = (PARTITIONS / members, PARTITIONS % members);
        let first = |member: i32| member * least + member.min(more);
        let of = |member: i32| match self {
            Self::Circle => all.clone().filter(|queue| queue % members == member).collect(),
            Self::Average | Self::Range | Self::Uniform | Self::Even => {
                (first(member)..first(member + 1)).collect()
            }
        };
        (0..members).map(of).collect()
    }

    fn check(self, found: &[BTreeSet<i32>]) -> anyhow::Result<()> {
        let mut expected = self.expected(i32::try_from(found.len())?);
        let mut found = found.to_vec();
        if matches!(self, Self::Uniform | Self::Even) {
            let sizes = |of: &[BTreeSet<i32>]| {
                let mut sizes: Vec<usize> = of.iter().map(BTreeSet::len).collect();
                sizes.sort_unstable();
                sizes
            };
            let all: BTreeSet<i32> = found.iter().flatten().copied().collect();
            let fits = sizes(&found) == sizes(&expected) && all.len() == PARTITIONS as usize;
            ensure!(fits, "assigned {found:?}");
            return Ok(());
        }
        if self == Self::Range {
            expected.sort();
            found.sort();
        }
        ensure!(found == expected, "assigned {found:?} not {expected:?}");
        Ok(())
    }
}

/// Members of one group, one for each driver, joining and leaving on a topic of 16 partitions: 16,
/// 8/8, 6/5/5, 8/8, 16. At every stage a record is written to each partition through the first
/// driver and must reach its owner.
pub fn join_and_leave(
    drivers: &mut [Driver],
    group: &str,
    topic: &str,
    share: Share,
) -> anyhow::Result<()> {
    let kafka = matches!(share, Share::Range | Share::Uniform | Share::Even);
    let topics = if kafka { "topics" } else { "topic" };
    let writer = drivers.first_mut().context("a driver")?;
    writer.call(&format!("producer id={topic}"))?;
    let count = drivers.len();
    for (stage, members) in (1..=count).chain((1..count).rev()).enumerate() {
        if stage < count {
            let driver = drivers.get_mut(members - 1).context("a driver")?;
            let member = name(group, members - 1);
            driver.call(&format!(
                "join name={member} group={group} {topics}={topic} {}",
                share.strategy()
            ))?;
        } else {
            let driver = drivers.get_mut(members).context("a driver")?;
            driver.call(&format!("leave name={}", name(group, members)))?;
        }
        let assigned = settle(drivers, group, members, share)
            .with_context(|| format!("{group}: {members} members"))?;
        deliver(drivers, group, topic, stage, &assigned)
            .with_context(|| format!("{group}: {members} members"))?;
    }
    let writer = drivers.first_mut().context("a driver")?;
    writer.call(&format!("leave name={}", name(group, 0)))?;
    writer.call(&format!("close id={topic}"))?;
    Ok(())
}

fn name(group: &str, member: usize) -> String {
    format!("{group}_m{member}")
}

/// Fails unless every record that [`join_and_leave`] wrote with so many drivers came exactly once.
pub fn each_came_once(drivers: &[Driver]) -> anyhow::Result<()> {
    let events = drivers.iter().flat_map(|driver| driver.events().clone());
    let mut seen: Vec<String> =
        events.filter_map(|event| event["value"].as_str().map(str::to_owned)).collect();
    seen.sort();
    let written = (0..2 * drivers.len() - 1)
        .flat_map(|stage| (0..PARTITIONS).map(move |partition| body(stage, partition)));
    ensure!(seen == written.collect::<Vec<_>>(), "came: {seen:?}");
    Ok(())
}

/// What is written to a partition at a stage, in hex.
fn body(stage: usize, partition: i32) -> String {
    format!("{stage:02x}{partition:02x}")
}

/// Waits until the members have what the share says, and gives it.
fn settle(
    drivers: &mut [Driver],
    group: &str,
    members: usize,
    share: Share,
) -> anyhow::Result<Vec<BTreeSet<i32>>> {
    wait::until("the group settles", REBALANCE_LIMIT, || {
        let mut assigned = Vec::new();
        for (member, driver) in drivers.iter_mut().enumerate().take(members) {
            let names = driver.assignment(&name(group, member))?;
            let numbers = names.iter().map(|name| {
                let number = name.rsplit('-').next().unwrap_or_default();
                number.parse().with_context(|| name.clone())
            });
            assigned.push(numbers.collect::<anyhow::Result<BTreeSet<i32>>>()?);
        }
        share.check(&assigned)?;
        Ok(assigned)
    })
}

/// Writes one record to each partition and waits until each has reached the member that owns it,
/// and no other.
fn deliver(
    drivers: &mut [Driver],
    group: &str,
    topic: &str,
    stage: usize,
    assigned: &[BTreeSet<i32>],
) -> anyhow::Result<()> {
    let writer = drivers.first_mut().context("a driver")?;
    for partition in 0..PARTITIONS {
        let body = body(stage, partition);
        let place = format!("partition={partition} queue={partition} value={body} body={body}");
        writer.tell(&format!("send id={topic} topic={topic} {place}"))?;
    }
    for answer in writer.call(&format!("flush id={topic}"))? {
        ensure!(answer["offset"].is_i64(), "{answer}");
    }
    wait::until("each record reaches its owner", DELIVERY_LIMIT, || {
        for partition in 0..PARTITIONS {
            let body = body(stage, partition);
            let owners: BTreeSet<usize> = drivers
                .iter()
                .enumerate()
                .filter(|(member, driver)| {
                    let member = name(group, *member);
                    let mut events = driver.events().clone().into_iter();
                    events.any(|event| event["member"] == *member && event["value"] == *body)
                })
                .map(|(member, _)| member)
                .collect();
            let owner = assigned.iter().position(|queues| queues.contains(&partition));
            let owner = BTreeSet::from([owner.context("an owner")?]);
            ensure!(owners == owner, "partition {partition}: at {owners:?} instead of {owner:?}");
        }
        Ok(())
    })
}

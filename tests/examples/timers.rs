//! Very many messages that wait for their time, on a running node: what they cost, and how late they come.
//!
//! `timers NAMESRV BROKER PID [COUNT] [RATE] [LEAD_S]`: COUNT messages (1,000,000) are sent, in no order of their times, to be
//! due RATE a second (10,000) from LEAD_S seconds (120) after the start on. PID is the node's process.

use std::collections::VecDeque;
use std::fmt::Write as _;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use anyhow::{Context, bail, ensure};
use bytes::{Buf, Bytes};
use duolog_tests::raw_client::{Connection, RemotingFrame};
use duolog_tests::topics::create_rocketmq_topic;

const TOPIC: &str = "many_timers";
const QUEUES: i32 = 4;
const SENDERS: u64 = 4;
/// Requests of a sender that wait for their answers.
const WINDOW: usize = 256;
/// Result codes of a pull (ResponseCode).
const FOUND: i64 = 0;
const NOT_FOUND: i64 = 19;
const LIMIT: Duration = Duration::from_secs(300);
/// After the time of the last message nothing is waited for longer.
const LATE_MS_MAX: i64 = 120_000;

fn now_ms() -> i64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).expect("after 1970");
    i64::try_from(since.as_millis()).expect("before the year 292 million")
}

/// Resident memory in MiB and CPU seconds of a process.
fn usage(pid: &str) -> anyhow::Result<(f64, f64)> {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status"))?;
    let line = status.lines().find(|line| line.starts_with("VmRSS:")).context("VmRSS")?;
    let kib: f64 = line.split_whitespace().nth(1).context("a number")?.parse()?;
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat"))?;
    let (_, rest) = stat.rsplit_once(')').context("a name")?;
    let ticks: Vec<f64> =
        rest.split_whitespace().skip(11).take(2).filter_map(|word| word.parse().ok()).collect();
    Ok((kib / 1024.0, ticks.iter().sum::<f64>() / 100.0))
}

struct Plan {
    count: u64,
    first_due_ms: i64,
    rate: u64,
}

impl Plan {
    fn last_due_ms(&self) -> i64 {
        self.first_due_ms + i64::try_from(self.count * 1000 / self.rate).expect("some minutes")
    }

    /// The time of the n-th message that is sent: all times, in no order.
    fn due_ms(&self, number: u64) -> i64 {
        let place = (number * 514_229) % self.count;
        self.first_due_ms + i64::try_from(place * 1000 / self.rate).expect("some minutes")
    }
}

fn send(broker: &str, plan: &Plan, sender: u64) -> anyhow::Result<()> {
    let mut connection = Connection::open(broker, LIMIT)?;
    let mut open = 0;
    let take = |connection: &mut Connection, open: &mut usize, left: usize| -> anyhow::Result<()> {
        while *open > left {
            let answer = RemotingFrame::parse(connection.receive_frame()?)?;
            ensure!(answer.code()? == 0, "{answer:?}");
            *open -= 1;
        }
        Ok(())
    };
    for number in (sender..plan.count).step_by(usize::try_from(SENDERS)?) {
        let due = plan.due_ms(number);
        let mut properties = String::new();
        write!(properties, "UNIQ_KEY\u{1}{number:032X}\u{2}TIMER_DELIVER_MS\u{1}{due}\u{2}")?;
        let queue = (number % u64::from(QUEUES.unsigned_abs())).to_string();
        let born = now_ms().to_string();
        let fields = [
            ("a", "timing"),
            ("b", TOPIC),
            ("c", "TBW102"),
            ("d", "4"),
            ("e", queue.as_str()),
            ("f", "0"),
            ("g", &born),
            ("h", "0"),
            ("i", &properties),
        ];
        let body = format!("{number} {due}");
        let frame = RemotingFrame::request(310, 1, &fields, body.as_bytes());
        connection.send_frame(&frame.payload())?;
        open += 1;
        take(&mut connection, &mut open, WINDOW)?;
    }
    take(&mut connection, &mut open, 0)
}

/// How late messages were, in ms: at the log, and at the client.
#[derive(Default)]
struct Lags {
    stored: Vec<i64>,
    seen: Vec<i64>,
}

fn pull(
    broker: &str,
    queue: i32,
    count: usize,
    until_ms: i64,
    seen: &[AtomicU64],
) -> anyhow::Result<Lags> {
    let mut connection = Connection::open(broker, LIMIT)?;
    let (mut lags, mut offset) = (Lags::default(), 0_i64);
    while lags.seen.len() < count {
        ensure!(now_ms() < until_ms, "{} of {count} came from queue {queue}", lags.seen.len());
        let (queue, at) = (queue.to_string(), offset.to_string());
        let fields = [
            ("consumerGroup", "timing"),
            ("topic", TOPIC),
            ("queueId", &queue),
            ("queueOffset", &at),
            ("maxMsgNums", "32"),
            // It may wait, and brings its subscription along.
            ("sysFlag", "6"),
            ("commitOffset", "0"),
            ("suspendTimeoutMillis", "15000"),
            ("subscription", "*"),
            ("subVersion", "0"),
            ("expressionType", "TAG"),
        ];
        let answer = connection.remoting(11, &fields, b"")?;
        match answer.code()? {
            FOUND => {}
            NOT_FOUND => continue,
            code => bail!("code {code}: {answer:?}"),
        }
        let now = now_ms();
        let mut rest = answer.body.clone();
        while rest.has_remaining() {
            let message = rest.split_to(usize::try_from((&rest[..4]).get_u32())?);
            let (stored_ms, body) = taken_apart(&message);
            let (number, due) = body.split_once(' ').context("our body")?;
            let place = seen.get(number.parse::<usize>()?).context("a number of ours")?;
            ensure!(place.fetch_add(1, Ordering::Relaxed) == 0, "{number} came twice");
            let due: i64 = due.parse()?;
            lags.stored.push(stored_ms - due);
            lags.seen.push(now - due);
        }
        offset = answer.field("nextBeginOffset").context("the next offset")?.parse()?;
    }
    Ok(lags)
}

/// All messages, from all queues.
fn pull_all(broker: &str, plan: &Plan) -> anyhow::Result<Lags> {
    let (count, until_ms) = (plan.count, plan.last_due_ms() + LATE_MS_MAX);
    let seen: Vec<AtomicU64> = (0..count).map(|_| AtomicU64::new(0)).collect();
    let each = usize::try_from(count / u64::from(QUEUES.unsigned_abs()))?;
    thread::scope(|scope| {
        let pullers: Vec<_> = (0..QUEUES)
            .map(|queue| {
                let seen = &seen;
                scope.spawn(move || pull(broker, queue, each, until_ms, seen))
            })
            .collect();
        let mut all = Lags::default();
        for puller in pullers {
            let lags = puller.join().expect("no panic")?;
            all.stored.extend(lags.stored);
            all.seen.extend(lags.seen);
        }
        Ok(all)
    })
}

/// Store time and body of a stored message.
fn taken_apart(message: &Bytes) -> (i64, String) {
    let stored_ms = (&message[56..64]).get_i64();
    let length = (&message[84..88]).get_u32() as usize;
    (stored_ms, String::from_utf8_lossy(&message[88..88 + length]).into_owned())
}

fn print(what: &str, mut lags: Vec<i64>) {
    lags.sort_unstable();
    let at = |part: f64| lags[((lags.len() - 1) as f64 * part) as usize];
    println!(
        "{what}: min {} ms, p50 {} ms, p99 {} ms, max {} ms",
        at(0.0),
        at(0.5),
        at(0.99),
        at(1.0)
    );
}

fn main() -> anyhow::Result<()> {
    let words: VecDeque<String> = std::env::args().skip(1).collect();
    let word = |index: usize| words.get(index).map(String::as_str);
    let number = |index: usize, default: u64| word(index).map_or(Ok(default), str::parse);
    let namesrv = word(0).context("the name server's address")?;
    let broker = word(1).context("the broker's address")?;
    let pid = word(2).context("the node's process id")?;
    let (count, rate) = (number(3, 1_000_000)?, number(4, 10_000)?);
    let lead_ms = i64::try_from(number(5, 120)? * 1000)?;
    create_rocketmq_topic(broker, namesrv, TOPIC, QUEUES)?;
    let plan = &Plan { count, first_due_ms: now_ms() + lead_ms, rate };
    let (rss, cpu) = usage(pid)?;
    println!("before: {rss:.0} MiB");
    let start = Instant::now();
    thread::scope(|scope| {
        let senders: Vec<_> =
            (0..SENDERS).map(|sender| scope.spawn(move || send(broker, plan, sender))).collect();
        senders.into_iter().try_for_each(|sender| sender.join().expect("no panic"))
    })?;
    let (waiting_rss, sent_cpu) = usage(pid)?;
    println!(
        "{count} sent in {:.1} s, {:.1} s before the first is due: {waiting_rss:.0} MiB, {:.1} CPU-s",
        start.elapsed().as_secs_f64(),
        (plan.first_due_ms - now_ms()) as f64 / 1000.0,
        sent_cpu - cpu
    );
    ensure!(now_ms() < plan.first_due_ms, "sending took too long: give more LEAD_S");
    let lags = pull_all(broker, plan)?;
    let (rss, end_cpu) = usage(pid)?;
    println!("all came: {rss:.0} MiB, {:.1} CPU-s", end_cpu - sent_cpu);
    print("stored after their time", lags.stored);
    print("seen after their time", lags.seen);
    Ok(())
}

//! A RocketMQ producer with its journal. It has no sequences: a send whose answer was lost is sent again as a new one.

use std::collections::HashMap;

use anyhow::{Context, ensure};
use duolog_tests::cluster::Node;
use duolog_tests::raw_client::{Connection, RemotingFrame};

use super::{LIMIT, Load, ROCKETMQ_TOPIC};

const WINDOW: usize = 16;
const AFTER_RESTART: usize = 10;
const SEND_MESSAGE_V2: i32 = 310;

pub struct RocketmqProducer {
    pub queue: i32,
    /// For each message: the queue offset acknowledged, and how often it was sent.
    journal: Vec<(Option<i64>, usize)>,
    next_opaque: i32,
}

impl RocketmqProducer {
    pub fn new(queue: i32) -> Self {
        Self { queue, journal: Vec::new(), next_opaque: 1 }
    }

    fn text(&self, message: usize) -> String {
        format!("rocketmq {} {message}", self.queue)
    }

    /// Sends until the connection breaks.
    pub fn run(&mut self, address: &str, load: &Load) {
        // Every error here is the kill; the journal holds what is to be judged.
        let _ = self.send_until_broken(address, load);
    }

    fn send_until_broken(&mut self, address: &str, load: &Load) -> anyhow::Result<()> {
        let mut connection = Connection::open(address, LIMIT)?;
        let mut unanswered = HashMap::new();
        while !load.stopped() {
            while unanswered.len() < WINDOW {
                self.journal.push((None, 0));
                load.sent();
                self.send(&mut connection, self.journal.len() - 1, &mut unanswered)?;
            }
            self.receive(&mut connection, &mut unanswered)?;
            load.answered();
        }
        Ok(())
    }

    fn send(
        &mut self,
        connection: &mut Connection,
        message: usize,
        unanswered: &mut HashMap<i64, usize>,
    ) -> anyhow::Result<()> {
        self.next_opaque += 1;
        let queue = self.queue.to_string();
        let fields = [
            ("a", "crash-producers"),
            ("b", ROCKETMQ_TOPIC),
            ("c", "TBW102"),
            ("d", "4"),
            ("e", queue.as_str()),
            ("f", "0"),
            ("g", "1"),
            ("h", "0"),
            ("i", "KEYS\u{1}crash\u{2}"),
            ("j", "0"),
            ("k", "false"),
            ("m", "false"),
            ("n", "broker-a"),
        ];
        let text = self.text(message);
        let frame =
            RemotingFrame::request(SEND_MESSAGE_V2, self.next_opaque, &fields, text.as_bytes());
        unanswered.insert(i64::from(self.next_opaque), message);
        self.journal.get_mut(message).context("a message of ours")?.1 += 1;
        connection.send_frame(&frame.payload())
    }

    fn receive(
        &mut self,
        connection: &mut Connection,
        unanswered: &mut HashMap<i64, usize>,
    ) -> anyhow::Result<()> {
        let answer = RemotingFrame::parse(connection.receive_frame()?)?;
        let opaque = answer.header["opaque"].as_i64().context("opaque")?;
        let message = unanswered.remove(&opaque).context("an unasked answer")?;
        ensure!(answer.code()? == 0, "message {message}: {}", answer.header);
        let offset = answer.field("queueOffset").context("queueOffset")?.parse()?;
        self.journal.get_mut(message).context("a message of ours")?.0 = Some(offset);
        Ok(())
    }

    /// Sends again what was not answered, and a few more.
    pub fn finish(&mut self, node: &Node) -> anyhow::Result<()> {
        let mut connection = Connection::open(&node.broker(), LIMIT)?;
        self.journal.resize(self.journal.len() + AFTER_RESTART, (None, 0));
        let mut unanswered = HashMap::new();
        for message in 0..self.journal.len() {
            if self.journal.get(message).is_some_and(|(offset, _)| offset.is_none()) {
                self.send(&mut connection, message, &mut unanswered)?;
            }
        }
        while !unanswered.is_empty() {
            self.receive(&mut connection, &mut unanswered)?;
        }
        Ok(())
    }

    /// At least once: every message is where it was acknowledged; a second copy only of one whose answer was lost.
    pub fn judge(&self, stored: &[(i64, Vec<u8>)]) -> anyhow::Result<()> {
        let mut copies: HashMap<&[u8], usize> = HashMap::new();
        for (_, value) in stored {
            *copies.entry(value).or_default() += 1;
        }
        let known: usize = (0..self.journal.len())
            .map(|message| copies.get(self.text(message).as_bytes()).copied().unwrap_or(0))
            .sum();
        ensure!(known == stored.len(), "queue {} holds what nobody sent", self.queue);
        for (message, (offset, sent)) in self.journal.iter().enumerate() {
            let text = self.text(message);
            let offset = offset.context("all were acknowledged in the end")?;
            let at = usize::try_from(offset)?;
            let found = stored.get(at).context("an offset beyond the end")?;
            ensure!(*found == (offset, text.clone().into_bytes()), "{text} is not at {offset}");
            let copies = copies.get(text.as_bytes()).copied().unwrap_or(0);
            ensure!(copies <= *sent, "{text}: sent {sent} times, stored {copies} times");
        }
        Ok(())
    }
}

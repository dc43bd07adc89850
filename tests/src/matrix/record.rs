//! What the cells are filled with.

use crate::hex::hex;

/// How a RocketMQ client sends; Kafka clients know one way only.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    Sync,
    Async,
    Oneway,
    Batch,
}

impl Mode {
    fn word(self) -> &'static str {
        match self {
            Self::Sync => "sync",
            Self::Async => "async",
            Self::Oneway => "oneway",
            Self::Batch => "batch",
        }
    }
}

/// A record as its producer gives it to the client.
#[derive(Clone, Debug)]
pub struct Record {
    pub partition: i32,
    /// Where it must end up.
    pub offset: i64,
    /// Kafka only: the record's timestamp; RocketMQ clients set their own.
    pub timestamp: Option<i64>,
    /// Kafka: the record key; RocketMQ: KEYS.
    pub key: Option<Vec<u8>>,
    /// `None`: a tombstone.
    pub value: Option<Vec<u8>>,
    /// Kafka: headers in order; RocketMQ: user properties.
    pub headers: Vec<(String, Option<Vec<u8>>)>,
    pub tags: Option<String>,
    pub flag: i32,
    pub mode: Mode,
    is_kafka: bool,
}

impl Record {
    /// The words of `send` behind `id=` and `topic=`.
    pub fn command(&self) -> String {
        if self.is_kafka { self.kafka_command() } else { self.rocketmq_command() }
    }

    fn kafka_command(&self) -> String {
        let mut words = format!("partition={}", self.partition);
        if let Some(timestamp) = self.timestamp {
            words += &format!(" ts={timestamp}");
        }
        for (word, bytes) in [("key", &self.key), ("value", &self.value)] {
            if let Some(bytes) = bytes {
                words += &format!(" {word}={}", hex(bytes));
            }
        }
        for (name, value) in &self.headers {
            let value = value.as_deref().map_or("-".to_owned(), hex);
            words += &format!(" h={}:{value}", hex(name.as_bytes()));
        }
        words
    }

    fn rocketmq_command(&self) -> String {
        let body = self.value.as_deref().unwrap_or_default();
        let mut words = format!(
            "queue={} mode={} flag={} body={}",
            self.partition,
            self.mode.word(),
            self.flag,
            hex(body)
        );
        if let Some(keys) = &self.key {
            words += &format!(" keys={}", hex(keys));
        }
        if let Some(tags) = &self.tags {
            words += &format!(" tags={tags}");
        }
        for (name, value) in &self.headers {
            let value = hex(value.as_deref().unwrap_or_default());
            words += &format!(" p={}:{value}", hex(name.as_bytes()));
        }
        words
    }

    fn key(mut self, key: &[u8]) -> Self {
        self.key = Some(key.to_vec());
        self
    }

    fn value(mut self, value: impl AsRef<[u8]>) -> Self {
        self.value = Some(value.as_ref().to_vec());
        self
    }

    fn header(mut self, name: &str, value: &[u8]) -> Self {
        self.headers.push((name.to_owned(), Some(value.to_vec())));
        self
    }

    fn null_header(mut self, name: &str) -> Self {
        self.headers.push((name.to_owned(), None));
        self
    }

    fn tags(mut self, tags: &str) -> Self {
        self.tags = Some(tags.to_owned());
        self
    }

    fn mode(mut self, mode: Mode) -> Self {
        self.mode = mode;
        self
    }
}

/// Appends records, numbering the offsets of each partition.
struct Writer {
    records: Vec<Record>,
    is_kafka: bool,
}

impl Writer {
    fn next(&self, partition: i32) -> Record {
        let offset = self.records.iter().filter(|one| one.partition == partition).count();
        let offset = i64::try_from(offset).expect("a small number");
        Record {
            partition,
            offset,
            timestamp: self.is_kafka.then_some(1_700_000_000_000 + 1000 * offset),
            key: None,
            value: None,
            headers: Vec::new(),
            tags: None,
            flag: 0,
            mode: Mode::Sync,
            is_kafka: self.is_kafka,
        }
    }

    fn add(&mut self, partition: i32, fill: impl FnOnce(Record) -> Record) {
        let record = fill(self.next(partition));
        self.records.push(record);
    }
}

/// Text of that many bytes that compresses well.
fn prose(bytes: usize) -> Vec<u8> {
    "one log, two protocols; ".bytes().cycle().take(bytes).collect()
}

/// Bytes that do not compress (xorshift).
fn noise(bytes: usize) -> Vec<u8> {
    let mut state = 0x9E37_79B9_7F4A_7C15_u64;
    let next = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state.to_be_bytes()[0]
    };
    std::iter::repeat_with(next).take(bytes).collect()
}

/// What a Kafka producer writes: every shape of key, value and header that the mapping speaks of,
/// then enough small records that a pull of 32 messages cannot hold them.
pub fn of_kafka() -> Vec<Record> {
    let mut w = Writer { records: Vec::new(), is_kafka: true };
    w.add(0, |r| {
        r.key(b"order-0")
            .value("first")
            .header("TAGS", b"red")
            .header("city", "Zürich 東京".as_bytes())
    });
    w.add(0, |r| r.value(prose(5000)).header("TAGS", b"blue"));
    w.add(0, |r| r.key(&[0xFF, 0x00, 0xFE]).value("a key that is no text"));
    w.add(0, |r| r.key(b"order-0"));
    w.add(0, |r| r.key(b"empty value").value(""));
    w.add(0, |r| r.value("twice").header("step", b"1").header("other", b"x").header("step", b"2"));
    w.add(0, |r| r.value("null header").null_header("gone").header("stays", b"here"));
    w.add(0, |r| r.value("binary header").header("blob", &[0x80, 0x81, 0x00]));
    w.add(0, |r| {
        r.value("reserved").header("DELAY", b"3").header("TRAN_MSG", b"true").header("mine", b"1")
    });
    w.add(0, |r| r.key(b"record key").value("KEYS header").header("KEYS", b"header key"));
    w.add(0, |r| r.value("separators").header("a\u{1}b", b"c").header("d", b"e\x02f"));
    w.add(0, |r| {
        r.key("schlüssel".as_bytes()).value(noise(20_000)).header("TAGS", "grün".as_bytes())
    });
    w.add(0, |r| r.key(b"a\x01b").value("separator in the key"));
    for number in 0..200 {
        w.add(1, |r| r.key(format!("k{}", number % 7).as_bytes()).value(format!("value {number}")));
    }
    w.records
}

/// What a RocketMQ producer writes: bodies over and under the 4 KiB from which clients compress, by
/// every way to send.
pub fn of_rocketmq() -> Vec<Record> {
    let mut w = Writer { records: Vec::new(), is_kafka: false };
    w.add(0, |r| {
        r.key(b"order-0").value(prose(5000)).tags("red").header("city", "Zürich 東京".as_bytes())
    });
    w.add(0, |r| r.value(prose(5001)).mode(Mode::Async));
    w.add(0, |r| Record { flag: 7, ..r.key(b"k1 k2").value(noise(20_000)).tags("blue") });
    w.add(0, |r| r.value("small").header("a", b"1").header("b", b"2"));
    w.add(0, |r| r.key("schlüssel".as_bytes()).value("async").tags("grün").mode(Mode::Async));
    for number in 0..40 {
        w.add(1, |r| r.key(format!("k{number}").as_bytes()).value(format!("body {number}")));
    }
    w.add(1, |r| r.value(prose(6000)).tags("red").mode(Mode::Oneway));
    for number in 0..8 {
        w.add(0, |r| {
            r.key(format!("b{number}").as_bytes())
                .value(format!("in a batch {number}"))
                .tags("batch")
                .header("n", number.to_string().as_bytes())
                .mode(Mode::Batch)
        });
    }
    w.records
}

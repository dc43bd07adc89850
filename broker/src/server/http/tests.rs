//! The HTTP port by raw sockets, against a whole node.

use std::collections::BTreeSet;
use std::net::SocketAddr;
use std::time::Duration;

use duolog_log_core::testing::mem_disk::MemDisk;
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::{TcpListener, TcpStream};
use tokio_util::task::TaskTracker;

use super::*;
use crate::config::Config;
use crate::config::args::ServeArgs;
use crate::config::topic::Overrides;
use crate::controller::topics::{Door, IfExists, NewTopic};
use crate::kafka::codec::messages::ProduceResponse;
use crate::kafka::codec::messages::produce_request::PartitionProduceData;
use crate::testing::Told;
use crate::testing::served::{
    Attempts, LIMIT, TestNode, arguments, batch, eventually, produce_request,
};

/// Shorter than a node's, so that tests need less; long enough for a whole request on a loaded machine.
const IMPATIENT: Patience = Patience {
    header: Duration::from_secs(4),
    connection: Duration::from_secs(6),
    last_answer: Duration::from_millis(500),
};

/// Whether the node was started with `--control`.
#[derive(PartialEq, Eq)]
enum Control {
    Open,
    Closed,
}

/// A request that waits for the rest of its body.
const STALLED: &[u8] =
    b"POST /gates HTTP/1.1\r\ncontent-type: application/json\r\ncontent-length: 6\r\n\r\n\"li";

struct Http {
    node: TestNode,
    address: SocketAddr,
    tasks: TaskTracker,
}

impl Http {
    async fn start(control: Control, patience: Patience) -> Self {
        Self::start_with(control, patience, &[]).await
    }

    async fn start_with(control: Control, patience: Patience, settings: &[&str]) -> Self {
        let feed = Arc::new(EventFeed::default());
        let sink = Box::new(Sink(feed.clone()));
        let args = ServeArgs { control: control == Control::Open, ..arguments(settings) };
        let config = Config::load(&args, std::iter::empty()).expect("a configuration");
        let node =
            TestNode::start_heard(MemDisk::new(), config.into(), Told::default(), sink).await;
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
        let address = listener.local_addr().expect("bound");
        let tasks = TaskTracker::new();
        let stop = Stop { begun: node.node.stopping.clone(), ..Stop::default() };
        tasks.spawn(serve(node.node.clone(), feed, listener, stop, tasks.clone(), patience));
        Self { node, address, tasks }
    }

    /// Sends `request` as it is and reads all that comes until the node closes.
    async fn raw(&self, request: &[u8]) -> String {
        let mut socket = TcpStream::connect(self.address).await.expect("listening");
        // The node may refuse before it has read everything.
        let _ = socket.write_all(request).await;
        read_all(&mut socket).await
    }

    async fn get(&self, path: &str) -> (u16, String) {
        parted(
            &self
                .raw(
                    format!("GET {path} HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n")
                        .as_bytes(),
                )
                .await,
        )
    }

    async fn post(&self, path: &str, body: &str) -> (u16, String) {
        let head = format!(
            "POST {path} HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\
             content-type: application/json\r\ncontent-length: {}\r\n\r\n{body}",
            body.len()
        );
        parted(&self.raw(head.as_bytes()).await)
    }

    async fn gates(&self, request: Value) -> Value {
        let (status, body) = self.post("/gates", &request.to_string()).await;
        assert_eq!(status, 200, "{body}");
        serde_json::from_str(&body).expect("json")
    }

    async fn stop(self) {
        self.node.node.stopping.cancel();
        self.tasks.close();
        tokio::time::timeout(LIMIT, self.tasks.wait()).await.expect("connections end");
        self.node.stop().await;
    }
}

async fn read_all(socket: &mut TcpStream) -> String {
    let mut bytes = Vec::new();
    let read = tokio::time::timeout(LIMIT, socket.read_to_end(&mut bytes)).await;
    // A close with unread input is a reset.
    let _ = read.expect("an answer or a close in time");
    String::from_utf8(bytes).expect("text")
}

/// Status and body of an answer; 0 when there was none.
fn parted(answer: &str) -> (u16, String) {
    let status = answer.split(' ').nth(1).and_then(|status| status.parse().ok()).unwrap_or(0);
    let body = answer.split_once("\r\n\r\n").map(|(_, body)| body).unwrap_or_default();
    (status, body.to_owned())
}

/// One sample of the text format: name, labels, value.
type Sample = (String, Vec<(String, String)>, f64);

fn sample(line: &str) -> Sample {
    let (series, value) = line.rsplit_once(' ').expect("a value");
    let value = value.parse().expect("a number");
    let Some((name, labels)) = series.split_once('{') else {
        return (series.to_owned(), Vec::new(), value);
    };
    let mut rest = labels.strip_suffix('}').expect("closed");
    let mut labels = Vec::new();
    while !rest.is_empty() {
        let (label, quoted) = rest.split_once("=\"").expect("a quoted label");
        let mut text = String::new();
        let mut letters = quoted.char_indices();
        let end = loop {
            match letters.next().expect("a closing quote") {
                (at, '"') => break at,
                (_, '\\') => match letters.next().expect("an escaped letter").1 {
                    'n' => text.push('\n'),
                    letter @ ('\\' | '"') => text.push(letter),
                    other => panic!("\\{other} is no escape"),
                },
                (_, letter) => text.push(letter),
            }
        };
        labels.push((label.to_owned(), text));
        rest = quoted[end + 1..].strip_prefix(',').unwrap_or_default();
    }
    (name.to_owned(), labels, value)
}

/// Checks the text format: every series once, under its HELP and TYPE, all of one metric together, histograms whole.
/// Returns the samples.
fn checked(text: &str) -> Vec<Sample> {
    let mut samples = Vec::new();
    let (mut metric, mut kind) = (String::new(), String::new());
    let (mut metrics, mut series) = (BTreeSet::new(), BTreeSet::new());
    for line in text.lines() {
        if let Some(help) = line.strip_prefix("# HELP ") {
            let (name, words) = help.split_once(' ').expect("help has words");
            assert!(!words.is_empty() && metrics.insert(name.to_owned()), "{name} comes again");
            metric = name.to_owned();
            kind.clear();
        } else if let Some(typed) = line.strip_prefix("# TYPE ") {
            let (name, what) = typed.split_once(' ').expect("a type");
            assert_eq!(name, metric);
            assert!(["counter", "gauge", "histogram"].contains(&what), "{typed}");
            kind = what.to_owned();
        } else {
            let (name, labels, value) = sample(line);
            let suffix =
                name.strip_prefix(&metric).unwrap_or_else(|| panic!("{line} is not {metric}'s"));
            match kind.as_str() {
                "histogram" => assert!(["_bucket", "_sum", "_count"].contains(&suffix), "{line}"),
                "counter" => assert!(suffix.is_empty() && name.ends_with("_total"), "{line}"),
                _ => assert!(suffix.is_empty() && kind == "gauge", "{line}"),
            }
            assert!(series.insert((name.clone(), labels.clone())), "{line} comes again");
            samples.push((name, labels, value));
        }
    }
    assert!(text.ends_with('\n'));
    samples
}

fn value(samples: &[Sample], name: &str, labels: &[(&str, &str)]) -> Option<f64> {
    let wanted: Vec<_> = labels.iter().map(|(k, v)| ((*k).to_owned(), (*v).to_owned())).collect();
    samples.iter().find(|(n, l, _)| n == name && *l == wanted).map(|(_, _, value)| *value)
}

#[tokio::test(flavor = "multi_thread")]
async fn metrics_are_valid_text_with_the_documented_names() {
    let http = Http::start(Control::Closed, Patience::default()).await;
    http.node.create_topic("t", &[]).await;
    let mut client = http.node.connect().await;
    let records = batch(&["a", "b", "c"]);
    let bytes = records.len() as f64;
    client.produce("t", 1, records).await;
    let commit = duolog_coordinator::group::event::CommitQueueOffset {
        group: "g\"\\\n".into(),
        topic: "t".into(),
        queue: 0,
        offset: 1,
    };
    let event = duolog_coordinator::group::event::Event::CommitQueueOffset(commit);
    http.node.node.open_coordinators().await.expect("coordinators");
    http.node.node.coordinators.request("g\"\\\n", event).await.expect("committed");
    let produce = [("protocol", "kafka"), ("api", "Produce")];
    let attempts = Attempts::at("the answered request is counted");
    let (text, samples) = loop {
        let (status, text) = http.get("/metrics").await;
        assert_eq!(status, 200);
        let samples = checked(&text);
        if value(&samples, "duolog_request_duration_seconds_count", &produce) == Some(1.0) {
            break (text, samples);
        }
        // That is noted behind the answer.
        attempts.again().await;
    };
    let of = |name: &str, labels: &[(&str, &str)]| {
        value(&samples, name, labels).unwrap_or_else(|| panic!("{name} {labels:?} in {text}"))
    };
    assert_eq!(of("duolog_requests_total", &produce), 1.0);
    assert!(of("duolog_request_bytes_total", &produce) > bytes);
    assert!(of("duolog_response_bytes_total", &produce) > 0.0);
    assert_eq!(of("duolog_request_duration_seconds_count", &produce), 1.0);
    let last = [("protocol", "kafka"), ("api", "Produce"), ("le", "+Inf")];
    assert_eq!(of("duolog_request_duration_seconds_bucket", &last), 1.0);
    assert!(of("duolog_bytes_in_total", &[]) >= bytes);
    assert!(of("duolog_records_in_total", &[]) >= 3.0);
    for protocol in ["kafka", "rocketmq"] {
        for name in ["duolog_records_out_total", "duolog_bytes_out_total", "duolog_connections"] {
            of(name, &[("protocol", protocol)]);
        }
    }
    let at = [("topic", "t"), ("partition", "0")];
    for (name, expected) in [
        ("duolog_log_start_offset", 0.0),
        ("duolog_log_end_offset", 3.0),
        ("duolog_high_watermark", 3.0),
        ("duolog_last_stable_offset", 3.0),
        ("duolog_log_bytes", bytes),
    ] {
        assert_eq!(of(name, &at), expected, "{name}");
    }
    let paper = include_str!("../../../../docs/metrics.md");
    let documented: BTreeSet<&str> = paper
        .lines()
        .filter_map(|line| line.strip_prefix("| `"))
        .filter_map(|line| line.split_once('`').map(|(name, _)| name))
        .collect();
    let types = text.lines().filter_map(|line| line.strip_prefix("# TYPE "));
    let served: BTreeSet<&str> = types.filter_map(|line| line.split(' ').next()).collect();
    assert_eq!(served, documented, "docs/metrics.md");
    let position = [("group", "g\"\\\n"), ("topic", "t"), ("partition", "0")];
    assert_eq!(of("duolog_group_offset", &position), 1.0);
    assert_eq!(of("duolog_group_lag", &position), 2.0);
    http.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn without_control_there_are_metrics_only() {
    let http = Http::start(Control::Closed, Patience::default()).await;
    for path in ["/", "/metric", "/events", "/gates", "/metrics/"] {
        let (status, body) = http.get(path).await;
        assert_eq!(
            (status, body.as_str()),
            (
                404,
                "nothing is here; expected GET /metrics, GET /rocketmq/nsaddr (GET /events and POST /gates are there with --control)\n"
            ),
            "{path}"
        );
    }
    assert_eq!(http.post("/gates", "\"list\"").await.0, 404);
    assert_eq!(http.post("/metrics", "").await.0, 405);
    assert_eq!(http.get("/metrics").await.0, 200);
    http.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn gates_are_armed_listed_and_released_with_control() {
    let http = Http::start(Control::Open, Patience::default()).await;
    http.node.create_topic("t", &[]).await;
    let arm = json!({ "arm": { "point": "produce.ack.before", "action": "hold", "topic": "t" } });
    let gate = http.gates(arm).await["gate"].clone();
    let mut client = http.node.connect().await;
    let producing = client.produce("t", 1, batch(&["v"]));
    let releasing = async {
        let hits = || async { http.gates(json!("list")).await["gates"][0]["hits"].clone() };
        tokio::time::timeout(LIMIT, async { while hits().await != 1 {} }).await.expect("caught");
        assert_eq!(http.gates(json!({ "release": gate })).await, json!({ "released": true }));
    };
    let (answer, ()) = tokio::join!(producing, releasing);
    assert_eq!(answer, (0, 0));
    assert_eq!(http.gates(json!("list")).await, json!({ "gates": [] }));
    assert_eq!(http.gates(json!({ "release": 99 })).await, json!({ "released": false }));
    let unknown = json!({ "arm": { "point": "nowhere", "action": "hold" } }).to_string();
    let (status, body) = http.post("/gates", &unknown).await;
    assert!(status == 400 && body.contains("produce.ack.before"), "{status} {body}");
    http.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn events_are_streamed_as_lines_and_cost_nothing_once_nobody_listens() {
    let http = Http::start(Control::Open, IMPATIENT).await;
    http.node.create_topic("t", &[]).await;
    let events = http.node.node.instruments.events.clone();
    assert!(!events.is_listening());
    let mut socket = TcpStream::connect(http.address).await.expect("listening");
    socket.write_all(b"GET /events HTTP/1.1\r\nhost: x\r\n\r\n").await.expect("written");
    eventually("somebody listens", || events.is_listening()).await;
    // A stream outlives the patience for other requests.
    let mut other = TcpStream::connect(http.address).await.expect("listening");
    other.write_all(STALLED).await.expect("written");
    read_all(&mut other).await;
    http.node.connect().await.produce("t", 1, batch(&["v"])).await;
    let mut lines = BufReader::new(socket).lines();
    let appended = async {
        loop {
            let line = lines.next_line().await.expect("read").expect("the stream goes on");
            if let Ok(event) = serde_json::from_str::<Value>(&line)
                && event["kind"] == "produce.append"
            {
                return event;
            }
        }
    };
    let event = tokio::time::timeout(LIMIT, appended).await.expect("in time");
    assert_eq!((&event["topic"], &event["partition"]), (&json!("t"), &json!(0)));
    assert_eq!((&event["offset"], &event["epoch"]), (&json!(0), &json!(0)));
    assert_eq!(event["node"], 1);
    for field in ["seq", "time", "protocol", "client", "cause"] {
        assert!(event.get(field).is_some(), "{field}");
    }
    drop(lines);
    eventually("nobody listens", || !events.is_listening()).await;
    http.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_no_request_or_too_large_is_refused() {
    let http = Http::start(Control::Open, Patience::default()).await;
    let many_headers = format!("GET /metrics HTTP/1.1\r\n{}\r\n", "x: y\r\n".repeat(200));
    let long_header = format!("GET /metrics HTTP/1.1\r\nx: {}\r\n\r\n", "y".repeat(100_000));
    let long_path = format!("GET /{} HTTP/1.1\r\n\r\n", "y".repeat(100_000));
    let rows: [(&str, &[u8], &[u16]); 7] = [
        ("TLS", b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03\r\n\r\n", &[0, 400]),
        ("nonsense", b"\x00\x00\x00\x10nonsense\r\n\r\n", &[0, 400]),
        ("no version", b"GET /metrics\r\n\r\n", &[0, 400]),
        ("a length that is none", b"POST /gates HTTP/1.1\r\ncontent-length: x\r\n\r\n", &[400]),
        ("many headers", many_headers.as_bytes(), &[431]),
        ("a long header", long_header.as_bytes(), &[0, 431]),
        ("a long path", long_path.as_bytes(), &[0, 414, 431]),
    ];
    for (what, request, statuses) in rows {
        let (status, _) = parted(&http.raw(request).await);
        assert!(statuses.contains(&status), "{what}: {status}");
    }
    let body = |text: &str| text.to_owned();
    let bodies = [
        ("not json", body("{"), 400),
        ("json of another shape", body("{\"arm\":{\"point\":1}}"), 422),
        ("two requests", body("{\"release\":1,\"x\":2}"), 400),
        ("an unknown word", body("\"everything\""), 422),
        ("too long", format!("\"{}\"", "x".repeat(HTTP_BODY_BYTES_MAX)), 413),
    ];
    for (what, body, expected) in bodies {
        assert_eq!(http.post("/gates", &body).await.0, expected, "{what}");
    }
    let bare = b"POST /gates HTTP/1.1\r\nconnection: close\r\ncontent-length: 6\r\n\r\n\"list\"";
    assert_eq!(parted(&http.raw(bare).await).0, 415, "no content type");
    assert!(http.node.node.instruments.gates.is_idle(), "a refused request changes nothing");
    assert_eq!(http.get("/metrics").await.0, 200);
    http.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn slow_clients_are_let_go_and_hold_up_nobody() {
    let http = Http::start(Control::Open, IMPATIENT).await;
    let starts: [&[u8]; 4] = [b"", b"GET /met", b"GET /metrics HTTP/1.1\r\nhost:", STALLED];
    let mut slow = Vec::new();
    for start in starts.into_iter().cycle().take(40) {
        let mut socket = TcpStream::connect(http.address).await.expect("listening");
        socket.write_all(start).await.expect("written");
        slow.push(socket);
    }
    assert_eq!(http.get("/metrics").await.0, 200, "others are served meanwhile");
    for mut socket in slow {
        read_all(&mut socket).await;
    }
    // More clients than there are places: the others wait, and come to be served.
    let mut held = Vec::new();
    for _ in 0..HTTP_CONNECTIONS_MAX {
        held.push(TcpStream::connect(http.address).await.expect("listening"));
    }
    assert_eq!(http.get("/metrics").await.0, 200);
    drop(held);
    http.stop().await;
}

/// As stock clients ask: `nsaddr`, or with the name of their unit behind it.
#[tokio::test(flavor = "multi_thread")]
async fn clients_that_know_no_name_server_are_told_them() {
    for (settings, expected) in [
        (&[][..], "127.0.0.1:9876"),
        (&["rocketmq.brokerIP1=10.1.2.3", "rocketmq.namesrvListenPort=7"], "10.1.2.3:7"),
        (&["rocketmq.namesrvAddr=a.b:1; [::1]:9876;"], "a.b:1;[::1]:9876"),
    ] {
        let http = Http::start_with(Control::Closed, Patience::default(), settings).await;
        for path in ["/rocketmq/nsaddr", "/rocketmq/nsaddr-unit?nofix=1", "/rocketmq/other"] {
            assert_eq!(http.get(path).await, (200, expected.to_owned()), "{path}");
        }
        for path in ["/rocketmq", "/rocketmq/", "/rocketmq/a/b", "/nsaddr"] {
            assert_eq!(http.get(path).await.0, 404, "{path}");
        }
        http.stop().await;
    }
}

/// What a scrape costs: `--nocapture` shows the figure.
#[tokio::test(flavor = "multi_thread")]
async fn every_log_that_was_written_is_shown_in_one_scrape() {
    const PARTITIONS: i32 = 2_000;
    let http = Http::start(Control::Closed, Patience::default()).await;
    let topic = NewTopic {
        name: "many".into(),
        partitions: PARTITIONS,
        overrides: Overrides::new(),
        door: Door::Kafka,
    };
    http.node.node.controller.create_topic(topic, IfExists::Refuse).await.expect("created");
    let mut request = produce_request("many", 1, batch(&["v"]).freeze());
    let first = request.topic_data[0].partition_data[0].clone();
    request.topic_data[0].partition_data =
        (0..PARTITIONS).map(|index| PartitionProduceData { index, ..first.clone() }).collect();
    let _: ProduceResponse = http.node.connect().await.call(9, &request).await;
    let start = std::time::Instant::now();
    let (status, text) = http.get("/metrics").await;
    println!("{} bytes of {PARTITIONS} partitions in {:?}", text.len(), start.elapsed());
    assert_eq!(status, 200);
    let samples = checked(&text);
    let of_topic = |sample: &&Sample| {
        let (name, labels, value) = *sample;
        let many = labels.iter().any(|label| label.1 == "many");
        name == "duolog_log_end_offset" && many && *value == 1.0
    };
    assert_eq!(samples.iter().filter(of_topic).count(), PARTITIONS as usize);
    http.stop().await;
}

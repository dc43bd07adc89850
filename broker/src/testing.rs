//! A node on a temporary directory, for tests within this crate.

pub mod rocketmq;
pub mod served;

use std::future::Future;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use duolog_coordinator::error::GroupError;
use duolog_log_core::event::{Event, EventKind, EventSink, Events};
use duolog_log_core::ids::NodeId;
use duolog_log_core::storage::file_disk::FileDisk;
use tempfile::TempDir;
use tokio::runtime::Runtime;

use crate::config::Config;
use crate::config::args::ServeArgs;
use crate::kafka::api::{self, Context, Reply};
use crate::kafka::codec::{Message, RequestHeader, decode_response, encode_request};
use crate::node::Node;

/// A condition that has not come true by then never will, however busy the machine.
const LIMIT: Duration = Duration::from_secs(120);

/// What the node has told so far.
#[derive(Clone, Default)]
pub struct Told(Arc<Mutex<Vec<Event>>>);

impl Told {
    pub fn events(&self) -> Vec<Event> {
        self.0.lock().expect("events").clone()
    }

    /// Those of one kind that concern a topic, if they concern one.
    pub fn of(&self, kind: EventKind, topic: &str) -> Vec<Event> {
        let mut events = self.events();
        events.retain(|event| {
            event.kind == kind && event.topic.as_deref().is_none_or(|name| name == topic)
        });
        events
    }
}

impl EventSink for Told {
    fn accept(&self, event: &Event) {
        self.0.lock().expect("events").push(event.clone());
    }
}

/// Waits until the coordinator of a group has read its log, which requests do for some seconds only.
pub async fn coordinator_of(group: &str, node: &Node) {
    let start = Instant::now();
    while let Err(error) = node.coordinators.prepare(group).await {
        assert_eq!(error, GroupError::CoordinatorLoadInProgress);
        assert!(start.elapsed() < LIMIT, "its log is not read within {LIMIT:?}");
    }
}

/// A node with a runtime of one thread: what it spawns goes on only while [`Self::run`] waits.
pub struct Bench {
    pub node: Arc<Node>,
    pub told: Told,
    runtime: Runtime,
    dir: TempDir,
    settings: Vec<String>,
}

impl Bench {
    pub fn new() -> Self {
        Self::with(&[])
    }

    /// `settings` as of `--set`.
    pub fn with(settings: &[&str]) -> Self {
        let dir = tempfile::tempdir().expect("a directory");
        Self::on(dir, settings.iter().map(|&setting| setting.to_owned()).collect())
    }

    fn on(dir: TempDir, settings: Vec<String>) -> Self {
        let args = ServeArgs {
            data_dir: Some(dir.path().join("data")),
            assignments: settings.clone(),
            ..ServeArgs::default()
        };
        let config = Config::load(&args, std::iter::empty()).expect("settings");
        let runtime =
            tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
        let told = Told::default();
        let events = Events::new(NodeId(1), Box::new(told.clone()));
        events.listen();
        let disk = Arc::new(FileDisk::new(64, 16));
        let node = runtime.block_on(Node::start(Arc::new(config), disk, events)).expect("a node");
        node.set_advertised(vec![("127.0.0.1".into(), 9092)]);
        Self { node, told, runtime, dir, settings }
    }

    /// Waits for `work`; what the node has spawned goes on meanwhile.
    pub fn run<F: Future>(&self, work: F) -> F::Output {
        self.runtime.block_on(async { tokio::time::timeout(LIMIT, work).await }).expect("in time")
    }

    /// Lets the node go on until `condition` gives a value.
    pub fn until<T>(&self, what: &str, mut condition: impl FnMut(&Self) -> Option<T>) -> T {
        let start = Instant::now();
        loop {
            if let Some(value) = condition(self) {
                return value;
            }
            assert!(start.elapsed() < LIMIT, "{what}: not within {LIMIT:?}");
            self.runtime.block_on(async { tokio::time::sleep(Duration::from_millis(1)).await });
        }
    }

    /// One request over the whole way but the socket.
    pub fn call<Q: Message, A: Message>(&self, version: i16, request: &Q) -> A {
        self.run(self.ask(version, request))
    }

    /// As [`Self::call`], to be waited for elsewhere.
    pub fn ask<Q: Message, A: Message>(
        &self,
        version: i16,
        request: &Q,
    ) -> impl Future<Output = A> + Send + use<Q, A> {
        let frame = encode_request(7, Some(&"bench".into()), version, request).expect("a request");
        let (header, body) =
            RequestHeader::decode(&frame.to_bytes().slice(4..)).expect("a request");
        let api = api::find(&self.node.config, &header).expect("an API of the table");
        let context = Context {
            node: self.node.clone(),
            version: header.api_version,
            correlation_id: header.correlation_id,
            client_id: header.client_id,
            peer: ([127, 0, 0, 1], 4711).into(),
            listener: 0,
            connection: Arc::default(),
        };
        let running = api.run(context, body);
        async move {
            let Ok(Reply::Now(frame)) = running.await else { panic!("an answer") };
            let (correlation_id, answer) =
                decode_response(&frame.to_bytes().slice(4..), version).expect("a response");
            assert_eq!(correlation_id, 7);
            answer
        }
    }

    /// Puts work of the test beside the node's.
    pub fn spawn<F>(&self, work: F) -> tokio::task::JoinHandle<F::Output>
    where
        F: Future<Output: Send> + Send + 'static,
    {
        self.runtime.spawn(work)
    }

    /// Stops the node cleanly and starts another on its data.
    pub fn restart(self) -> Self {
        let Self { node, runtime, dir, settings, .. } = self;
        runtime.block_on(node.stop());
        drop(node);
        drop(runtime);
        Self::on(dir, settings)
    }

    /// The folders of data.
    pub fn folders(&self) -> Vec<String> {
        let entries = std::fs::read_dir(self.dir.path().join("data")).expect("a directory");
        let names = entries.map(|entry| entry.expect("an entry"));
        names
            .filter(|entry| entry.path().is_dir())
            .map(|entry| entry.file_name().to_string_lossy().into_owned())
            .collect()
    }
}

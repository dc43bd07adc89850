mod dynamic;
mod effects;

use super::*;

fn load(assignments: &[&str]) -> Result<Config, StartConfigError> {
    let assignments = assignments.iter().map(|text| (*text).to_owned()).collect();
    Config::load(&ServeArgs { assignments, ..ServeArgs::default() }, std::iter::empty())
}

#[test]
fn defaults_serve_on_loopback_with_the_documented_ports_and_names() {
    let config = load(&[]).expect("the defaults are valid");
    let kafka = Endpoint { host: "127.0.0.1".to_owned(), port: 9092 };
    assert_eq!(config.listeners, [kafka]);
    assert_eq!((config.rocketmq.listen_port, config.rocketmq.namesrv_port), (10911, 9876));
    assert_eq!(config.http.1, 9464);
    assert_eq!(config.rocketmq.broker_name, "broker-a");
    assert_eq!(config.rocketmq.cluster_name, "DefaultCluster");
    assert_eq!((config.node_id, config.num_partitions), (1, 1));
    assert_eq!(config.group.initial_rebalance_delay_ms, 3000);
    assert_eq!(config.group.offsets_topic_partitions, 50);
    assert_eq!(config.rocketmq.flush_disk_type, FlushDiskType::Async);
    let here = std::env::current_dir().expect("a directory");
    assert_eq!(config.log_dirs, [here.join("duolog-data")]);
}

#[test]
fn an_address_beyond_loopback_must_be_allowed_by_name() {
    let open = "listeners=PLAINTEXT://192.0.2.1:9092";
    let error = load(&[open]).expect_err("no security").to_string();
    assert!(error.contains("allow.insecure.listeners=true"), "{error}");
    load(&[open, "allow.insecure.listeners=true"]).expect("allowed by name");
    let error = load(&["rocketmq.bindAddress=0.0.0.0"]).expect_err("no security").to_string();
    assert!(error.contains("rocketmq.bindAddress 0.0.0.0"), "{error}");
    let every = ["listeners=PLAINTEXT://:9092", "allow.insecure.listeners=true"];
    let error = load(&every).expect_err("clients cannot connect to 0.0.0.0").to_string();
    assert!(error.contains("set advertised.listeners"), "{error}");
    load(&[every[0], every[1], "advertised.listeners=PLAINTEXT://192.0.2.1:9092"]).expect("valid");
}

#[test]
fn listeners_are_plaintext_host_and_port() {
    for (text, wanted) in [
        ("SSL://127.0.0.1:9092", "only PLAINTEXT"),
        ("127.0.0.1:9092", "expected PLAINTEXT://host:port"),
        ("PLAINTEXT://127.0.0.1", "expected PLAINTEXT://host:port"),
        ("PLAINTEXT://127.0.0.1:99999", "expected PLAINTEXT://host:port"),
        ("", "at least one listener"),
    ] {
        let error = load(&[&format!("listeners={text}")]).expect_err(text).to_string();
        assert!(error.contains(wanted), "{error}");
    }
    let config = load(&["listeners=PLAINTEXT://[::1]:0"]).expect("valid");
    assert_eq!(config.listeners, [Endpoint { host: "::1".to_owned(), port: 0 }]);
    let error = load(&["rocketmq.brokerIP1=broker.example"]).expect_err("a name").to_string();
    assert!(error.contains("expected an IP address"), "{error}");
}

#[test]
fn the_fast_profile_shortens_timings_only_where_nothing_else_is_set() {
    let args = ServeArgs {
        profile: Some(Profile::Fast),
        assignments: vec!["group.min.session.timeout.ms=700".to_owned()],
        ..ServeArgs::default()
    };
    let config = Config::load(&args, std::iter::empty()).expect("valid");
    assert_eq!(config.group.initial_rebalance_delay_ms, 0);
    assert_eq!(config.group.min_session_timeout_ms, 700);
}

#[test]
fn log_directories_are_absolute_and_each_is_given_once() {
    let config = load(&["log.dirs=/a, b/c"]).expect("valid");
    let here = std::env::current_dir().expect("a directory");
    assert_eq!(config.log_dirs, [PathBuf::from("/a"), here.join("b/c")]);
    let error = load(&["log.dirs=/a,/b,/a"]).expect_err("twice").to_string();
    assert!(error.contains("duplicate log directory found: /a"), "{error}");
    let error = load(&["log.dirs= ,"]).expect_err("none").to_string();
    assert!(error.contains("at least one log directory"), "{error}");
    let args = ServeArgs { data_dir: Some("/x".into()), ..ServeArgs::default() };
    let config = Config::load(&args, std::iter::empty()).expect("valid");
    assert_eq!(config.data_dir(), Path::new("/x"));
    for key in ["log.dirs", "log.dir"] {
        let args = ServeArgs { assignments: vec![format!("{key}=/y")], ..args.clone() };
        let error = Config::load(&args, std::iter::empty()).expect_err("two flags").to_string();
        assert!(error.contains("--data-dir says /x; give one of the two"), "{error}");
        // A flag wins over the environment as everywhere.
        let variable = format!("DUOLOG_{}", key.to_uppercase().replace('.', "_"));
        let args = ServeArgs { assignments: Vec::new(), ..args };
        let config = Config::load(&args, [(variable, "/y".to_owned())].into_iter());
        assert_eq!(config.expect("valid").data_dir(), Path::new("/x"));
    }
}

#[test]
fn doors_of_one_node_do_not_share_a_port() {
    for (setting, wanted) in [
        ("http.port=9092", "listeners and http.port are both on port 9092"),
        (
            "rocketmq.listenPort=9878",
            "rocketmq.namesrvListenPort and the VIP port of rocketmq.listenPort are both on port \
             9876",
        ),
        ("rocketmq.listenPort=2", "expected 3 to 65535"),
        ("listeners=PLAINTEXT://127.0.0.1:1,PLAINTEXT://127.0.0.1:1", "listeners and listeners"),
    ] {
        let error = load(&[setting]).expect_err(setting).to_string();
        assert!(error.contains(wanted), "{error}");
    }
    load(&["rocketmq.listenPort=0", "rocketmq.namesrvListenPort=0", "http.port=0"]).expect("free");
    load(&["listeners=PLAINTEXT://127.0.0.2:9876"]).expect("another address");
}

#[test]
fn a_properties_file_is_answered_with_what_is_expected() {
    let dir = tempfile::tempdir().expect("a directory");
    let path = dir.path().join("server.properties");
    std::fs::write(&path, "log.dirs=/data\nlisteners=PLAINTEXT://:9092\n").expect("written");
    let args = ServeArgs { config: Some(path), ..ServeArgs::default() };
    let error = Config::load(&args, std::iter::empty()).expect_err("no TOML").to_string();
    assert!(error.contains("not Kafka's .properties"), "{error}");
}

#[test]
fn name_servers_are_addresses() {
    for (text, expected) in [
        ("", &[][..]),
        ("a:1", &["a:1"]),
        ("10.0.0.1:9876; [::1]:1 ;", &["10.0.0.1:9876", "[::1]:1"]),
    ] {
        let config = load(&[&format!("rocketmq.namesrvAddr={text}")]).expect(text);
        assert_eq!(config.rocketmq.name_servers, expected);
    }
    for text in ["a", "a:", ":1", "a:0", "a:65536", "a:1,b:2", "a:1 b:2", "http://a:1"] {
        let error = load(&[&format!("rocketmq.namesrvAddr={text}")]).expect_err(text).to_string();
        assert!(error.contains("expected host:port;host:port in rocketmq.namesrvAddr"), "{error}");
    }
}

#[test]
fn the_http_port_and_the_older_name_of_the_data_directory_are_taken() {
    let config = load(&["http.host=127.0.0.2", "http.port=4711", "log.dir=/y"]).expect("valid");
    assert_eq!(config.http, ([127, 0, 0, 2].into(), 4711));
    assert_eq!(config.data_dir(), Path::new("/y"));
    let both = load(&["log.dir=/y", "log.dirs=/z"]).expect("valid");
    assert_eq!(both.data_dir(), Path::new("/z"), "as in Kafka, log.dirs wins");
}

#[test]
fn room_for_requests_holds_the_largest_and_is_a_part_of_the_memory_unless_said() {
    let config = load(&[]).expect("valid");
    let memory = crate::system::memory_bytes();
    assert!(config.connections.requests_bytes_max >= 2 * 104_857_600);
    assert!(config.connections.requests_bytes_max <= (memory / 2).max(2 * 104_857_600));
    let set = load(&["queued.max.request.bytes=200000000"]).expect("valid");
    assert_eq!(set.connections.requests_bytes_max, 200_000_000);
    let error = load(&["queued.max.request.bytes=1000"]).expect_err("too little").to_string();
    assert!(error.contains("at least socket.request.max.bytes, 104857600"), "{error}");
}

/// Every key that is said to act is set to something by a test. It is in the tests' sources by name: alone in quotes,
/// or before a value.
#[test]
fn every_key_that_acts_is_set_by_a_test() {
    /// One node holds one replica whatever the factor is.
    const WITHOUT_EFFECT: [&str; 3] = [
        "offsets.topic.replication.factor",
        "transaction.state.log.replication.factor",
        "transaction.state.log.min.isr",
    ];
    let root = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("the workspace");
    let mut sources = String::new();
    for folder in ["broker/src", "tests/src", "tests/it"] {
        read_tests(&root.join(folder), &mut sources);
    }
    let keys = key::broker_keys().iter().chain(key::topic_keys()).filter(|key| key.acts);
    let unset: Vec<_> = keys
        .map(|key| key.name)
        .filter(|name| !WITHOUT_EFFECT.contains(name) && !is_a_default(name))
        .filter(|name| {
            let set = [format!("\"{name}\""), format!("\"{name}=")];
            !set.iter().any(|text| sources.contains(text))
        })
        .collect();
    assert!(unset.is_empty(), "{unset:?}");
}

/// Defaults of topics are set by `every_key_of_a_topic_and_every_default_of_the_node_reaches_it`, all of them.
fn is_a_default(name: &str) -> bool {
    key::topic_keys().iter().any(|key| key.synonyms.contains(&name))
}

fn read_tests(folder: &std::path::Path, sources: &mut String) {
    for entry in std::fs::read_dir(folder).expect("a folder") {
        let path = entry.expect("an entry").path();
        if path.is_dir() {
            read_tests(&path, sources);
        } else if path.extension().is_some_and(|end| end == "rs") {
            let text = std::fs::read_to_string(&path).expect("text");
            // Tests beside the code begin at their module.
            let is_test = path.components().any(|part| part.as_os_str() == "tests")
                || path.ends_with("tests.rs");
            let begin = if is_test { 0 } else { text.find("mod tests {").unwrap_or(text.len()) };
            sources.push_str(&text[begin..]);
        }
    }
}

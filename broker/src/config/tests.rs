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
    assert_eq!(config.data_dir, PathBuf::from("duolog-data"));
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
fn one_data_directory_is_taken() {
    let error = load(&["log.dirs=/a,/b"]).expect_err("two").to_string();
    assert!(error.contains("expected one directory"), "{error}");
    let args = ServeArgs { data_dir: Some("/x".into()), ..ServeArgs::default() };
    let config = Config::load(&args, std::iter::empty()).expect("valid");
    assert_eq!(config.data_dir, PathBuf::from("/x"));
}

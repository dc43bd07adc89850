use super::*;

fn id(number: u32) -> Uuid {
    let mut id = [0; 16];
    id[..4].copy_from_slice(&number.to_be_bytes());
    duolog_log_core::ids::TopicId(id)
}

fn who(name: &str) -> Attributes {
    Attributes::from([("client_id", name.to_owned())])
}

fn sample(name: &str, kind: Kind, value: f64) -> Sample {
    let labels = vec![("topic".to_owned(), "a\"b".to_owned())];
    Sample { name: name.into(), kind, labels, value }
}

fn shown(received: &mut Received, now: i64) -> Vec<String> {
    let mut text = String::new();
    received.render(&mut text, now).expect("rendered");
    let lines = text.lines().filter(|line| line.contains("client_") && !line.starts_with("# HELP"));
    lines.map(str::to_owned).collect()
}

#[test]
fn levels_are_the_last_and_additions_are_added_up() {
    let mut received = Received::default();
    let push = |level, added| {
        vec![sample("a.level", Kind::Gauge, level), sample("a.sum", Kind::Delta, added)]
    };
    received.take(id(1), &who("c"), push(5.0, 2.0), 0, 1000, 0);
    received.take(id(1), &who("c"), push(4.0, 3.0), 0, 1000, 1);
    assert_eq!(
        shown(&mut received, 2),
        [
            "# TYPE client_a_level gauge",
            r#"client_a_level{client_id="c",topic="a\"b"} 4"#,
            "# TYPE client_a_sum counter",
            r#"client_a_sum{client_id="c",topic="a\"b"} 5"#,
        ]
    );
    assert_eq!(shown(&mut received, 60_000).len(), 4);
    assert_eq!(shown(&mut received, 60_001).len(), 0, "silent for too long");
}

#[test]
fn no_attribute_of_a_client_says_who_another_is() {
    let mut sent = sample("a", Kind::Gauge, 1.0);
    sent.labels = vec![("client_id".into(), "other".into()), ("x-y".into(), "1".into())];
    let mut received = Received::default();
    received.take(id(1), &who("c"), vec![sent], 0, 1000, 0);
    assert_eq!(shown(&mut received, 1)[1], r#"client_a{client_id="c",x_y="1"} 1"#);
}

#[test]
fn series_names_and_texts_are_so_many_at_most() {
    let mut received = Received::default();
    let many = |prefix: &str, count: usize| -> Vec<Sample> {
        (0..count).map(|it| sample(&format!("{prefix}{it}"), Kind::Gauge, 0.0)).collect()
    };
    received.take(id(0), &who("c"), many("n", TELEMETRY_NAMES_MAX + 1), 0, 1000, 0);
    assert_eq!(received.names().len(), TELEMETRY_NAMES_MAX.min(TELEMETRY_CLIENT_SERIES_MAX));
    assert!(received.left_out >= 1);
    let before = received.left_out;
    received.take(id(0), &who("c"), many(&"x".repeat(TELEMETRY_TEXT_MAX), 1), 7, 1000, 0);
    assert_eq!(received.left_out, before + 8);
    let mut number = 1;
    while received.series() < TELEMETRY_SERIES_MAX {
        received.take(id(number), &who("c"), many("n", TELEMETRY_NAMES_MAX), 0, 1000, 0);
        number += 1;
        assert!(number < 10_000, "there is an end");
    }
    received.take(id(number), &who("c"), many("n", 1), 0, 1000, 0);
    assert_eq!(received.series(), TELEMETRY_SERIES_MAX);
}

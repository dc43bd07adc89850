//! Random logs, compacted again and again, beside a plain map.

use proptest::prelude::*;

use super::*;

#[derive(Clone, Debug)]
enum Step {
    Append { records: Vec<(u8, Option<u8>)>, compression: usize },
    Roll,
    Compact { keys: usize },
    Later,
    Reopen,
}

fn step() -> impl Strategy<Value = Step> {
    let record = (0..12_u8, prop::option::weighted(0.8, any::<u8>()));
    prop_oneof![
        6 => (prop::collection::vec(record, 1..5), 0..Compression::ALL.len())
            .prop_map(|(records, compression)| Step::Append { records, compression }),
        2 => Just(Step::Roll),
        3 => (1..20_usize).prop_map(|keys| Step::Compact { keys }),
        1 => Just(Step::Later),
        1 => Just(Step::Reopen),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 128, ..ProptestConfig::default() })]
    #[test]
    fn every_key_has_its_newest_value(steps in prop::collection::vec(step(), 1..60)) {
        let disk = data_disk();
        let mut log = open(&disk, compacting(400));
        let (mut now_ms, mut checkpoint) = (NOW_MS, None);
        let mut newest: BTreeMap<String, (i64, Option<String>)> = BTreeMap::new();
        for step in steps {
            match step {
                Step::Append { records, compression } => {
                    let texts: Vec<(String, Option<String>)> = records
                        .iter()
                        .map(|(key, value)| (key.to_string(), value.map(|v| v.to_string())))
                        .collect();
                    let keyed: Vec<Keyed<'_>> =
                        texts.iter().map(|(k, v)| (k.as_str(), v.as_deref())).collect();
                    let compression = Compression::ALL[compression];
                    let params = BatchParams { compression, ..BatchParams::default() };
                    let base = append(&mut log, keyed_with(params, &keyed)).unwrap().base_offset;
                    for (offset, (key, value)) in (base..).zip(texts) {
                        newest.insert(key, (offset, value));
                    }
                }
                Step::Roll => log.roll(now_ms).unwrap(),
                Step::Compact { keys } => {
                    let memory = MapMemory { bytes: keys * 24, ..MEMORY };
                    let done = compact_with(&mut log, checkpoint, now_ms, memory).unwrap();
                    checkpoint = done.map(|(end, _)| end).or(checkpoint);
                }
                Step::Later => now_ms += HOUR_MS,
                Step::Reopen => {
                    log.close();
                    log = open(&disk, compacting(400));
                }
            }
            let found = content(&log);
            prop_assert!(found.windows(2).all(|pair| pair[0].0 < pair[1].0));
            let mut seen: BTreeMap<String, (i64, Option<String>)> = BTreeMap::new();
            for (offset, key, value) in found {
                seen.insert(key, (offset, value));
            }
            for (key, expected) in &newest {
                match seen.get(key) {
                    Some(found) => prop_assert_eq!(found, expected),
                    // Only a tombstone may be gone, and then with all before it.
                    None => prop_assert_eq!(&expected.1, &None),
                }
            }
            prop_assert_eq!(log.log_start_offset(), 0);
        }
    }
}

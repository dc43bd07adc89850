use super::*;

#[test]
fn figures_as_texts() {
    let counters = RuntimeCounters {
        started_ms: 1000,
        records_in: 10,
        records_out: 8,
        records_in_mornings: [1, 4],
        records_out_mornings: [0, 2],
        bytes_in: 55,
        records_in_per_second: [1.0, 2.5, 0.0],
        disk_used_ratio: 0.456,
        disk_bytes: [3 << 30, 1536],
        data_dir: "/data".into(),
        ..RuntimeCounters::default()
    };
    let table = table(&counters, 1000 + 90_061_000);
    for (name, value) in [
        ("runtime", "[ 1 days, 1 hours, 1 minutes, 1 seconds ]"),
        ("msgPutTotalTodayNow", "10"),
        ("msgPutTotalTodayMorning", "4"),
        ("msgPutTotalYesterdayMorning", "1"),
        ("msgGetTotalTodayNow", "8"),
        ("putMessageAverageSize", "5.5"),
        ("putTps", "1.0 2.5 0.0"),
        ("earliestMessageTimeStamp", "-1"),
        ("commitLogDiskRatio", "0.46"),
        ("commitLogDiskRatio_/data", "0.46"),
        ("consumeQueueDiskRatio", "0.46"),
        ("commitLogDirCapacity", "Total : 3.0 GiB, Free : 1.5 KiB."),
        ("commitLogMaxOffset", "55"),
        ("ackThreadPoolQueueSize", "0"),
        ("brokerVersionDesc", "V5_5_0"),
        ("brokerActive", "true"),
    ] {
        assert_eq!(table.get(name).map(String::as_str), Some(value), "{name}");
    }
}

#[test]
fn sizes_as_texts() {
    for (bytes, text) in [
        (0, "0 B"),
        (1023, "1023 B"),
        (1024, "1.0 KiB"),
        (5 << 40, "5.0 TiB"),
        (u64::MAX, "16.0 EiB"),
    ] {
        assert_eq!(size_text(bytes), text);
    }
}

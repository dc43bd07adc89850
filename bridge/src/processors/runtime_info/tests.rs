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
        ..RuntimeCounters::default()
    };
    let table = table(&counters, 1000 + 90_061_000);
    for (name, value) in [
        ("runtime", "[ 1 days, 1 hours, 1 minutes, 1 seconds ]"),
        ("msgPutTotalTodayNow", "10"),
        ("msgPutTotalTodayMorning", "4"),
        ("msgPutTotalYesterdayMorning", "1"),
        ("msgGetTotalTodayNow", "8"),
        ("putMessageAverageSize", "5"),
        ("putTps", "1.0 2.5 0.0"),
        ("earliestMessageTimeStamp", "-1"),
        ("commitLogDiskRatio", "0.46"),
        ("brokerVersionDesc", "V5_5_0"),
        ("brokerActive", "true"),
    ] {
        assert_eq!(table.get(name).map(String::as_str), Some(value), "{name}");
    }
}

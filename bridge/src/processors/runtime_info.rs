//! GET_BROKER_RUNTIME_INFO: code 28. Figures of the node as texts; clusterList and brokerStatus
//! print them.
//! Figures of parts that are not here (page cache lock, thread pools, timers) are there with the
//! value of an idle one, since tools parse them without looking. The commit log is all logs together.
//! Leaves out: latencies, failures, and pulls that found or missed, which are not counted.
//! Source: AdminBrokerProcessor.prepareRuntimeInfo, StoreStatsService.getRuntimeInfo.

use std::collections::BTreeMap;

use super::{Call, Outcome};
use crate::backend::{Backend, RuntimeCounters};
use crate::bodies::KVTable;

/// MQVersion of the answers' `version` field.
const VERSION: &str = "V5_5_0";

/// Figures that nothing here moves.
const IDLE: &[(&str, &str)] = &[
    ("EndTransactionQueueSize", "0"),
    ("EndTransactionThreadPoolQueueCapacity", "100000"),
    ("ackThreadPoolQueueCapacity", "100000"),
    ("ackThreadPoolQueueHeadWaitTimeMills", "0"),
    ("ackThreadPoolQueueSize", "0"),
    ("brokerActive", "true"),
    ("brokerVersionDesc", VERSION),
    ("commitLogMinOffset", "0"),
    ("dispatchBehindBytes", "0"),
    ("dispatchMaxBuffer", "0"),
    ("litePullThreadPoolQueueCapacity", "100000"),
    ("litePullThreadPoolQueueHeadWaitTimeMills", "0"),
    ("litePullThreadPoolQueueSize", "0"),
    ("pageCacheLockTimeMills", "0"),
    ("pullThreadPoolQueueCapacity", "100000"),
    ("pullThreadPoolQueueHeadWaitTimeMills", "0"),
    ("pullThreadPoolQueueSize", "0"),
    ("queryThreadPoolQueueCapacity", "20000"),
    ("queryThreadPoolQueueHeadWaitTimeMills", "0"),
    ("queryThreadPoolQueueSize", "0"),
    ("remainHowManyDataToFlush", "0 B"),
    ("remainTransientStoreBufferNumbs", "2147483647"),
    ("sendThreadPoolQueueCapacity", "10000"),
    ("sendThreadPoolQueueHeadWaitTimeMills", "0"),
    ("sendThreadPoolQueueSize", "0"),
    ("startAcceptSendRequestTimeStamp", "0"),
    ("timerCongestNum", "0"),
    ("timerDequeueTps", "0.0"),
    ("timerEnqueueTps", "0.0"),
    ("timerOffsetBehind", "0"),
    ("timerReadBehind", "0"),
];

pub(crate) async fn handle<B: Backend>(call: Call<B>) -> Outcome {
    let counters = call.backend().counters().await;
    let body = KVTable { table: table(&counters, call.backend().now_ms()) };
    Ok(call.reply.ok().with_body(body.encode()))
}

fn table(counters: &RuntimeCounters, now_ms: i64) -> BTreeMap<String, String> {
    let fixed = IDLE.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
    let mut table: BTreeMap<String, String> = fixed.collect();
    let mut put = |name: &str, value: String| table.insert(name.to_owned(), value);
    let [in_yesterday, in_today] = counters.records_in_mornings;
    let [out_yesterday, out_today] = counters.records_out_mornings;
    let average = counters.bytes_in as f64 / counters.records_in.max(1) as f64;
    let disk_ratio = format!("{:.2}", counters.disk_used_ratio);
    let [disk_bytes, free_bytes] = counters.disk_bytes.map(size_text);
    put("bootTimestamp", counters.started_ms.to_string());
    put("runtime", duration_text(now_ms.saturating_sub(counters.started_ms)));
    put("msgPutTotalYesterdayMorning", in_yesterday.to_string());
    put("msgPutTotalTodayMorning", in_today.to_string());
    put("msgPutTotalTodayNow", counters.records_in.to_string());
    put("msgGetTotalYesterdayMorning", out_yesterday.to_string());
    put("msgGetTotalTodayMorning", out_today.to_string());
    put("msgGetTotalTodayNow", counters.records_out.to_string());
    put("putMessageTimesTotal", counters.records_in.to_string());
    put("putMessageSizeTotal", counters.bytes_in.to_string());
    // As Java writes a double.
    put("putMessageAverageSize", format!("{average:?}"));
    put("putTps", rates_text(counters.records_in_per_second));
    put("getTransferredTps", rates_text(counters.records_out_per_second));
    put("earliestMessageTimeStamp", counters.earliest_append_ms.unwrap_or(-1).to_string());
    put("commitLogMaxOffset", counters.bytes_in.to_string());
    put("commitLogDirCapacity", format!("Total : {disk_bytes}, Free : {free_bytes}."));
    put(&format!("commitLogDiskRatio_{}", counters.data_dir), disk_ratio.clone());
    put("commitLogDiskRatio", disk_ratio.clone());
    put("consumeQueueDiskRatio", disk_ratio);
    put("dataDirectory", counters.data_dir.clone());
    table
}

/// As MixAll.humanReadableByteCount with units of 1024.
fn size_text(bytes: u64) -> String {
    let mut size = bytes as f64;
    if size < 1024.0 {
        return format!("{bytes} B");
    }
    let mut unit = ' ';
    for next in "KMGTPE".chars() {
        if size < 1024.0 {
            break;
        }
        size /= 1024.0;
        unit = next;
    }
    format!("{size:.1} {unit}iB")
}

/// As StoreStatsService prints a rate over 10, 60 and 600 seconds.
fn rates_text(rates: [f64; 3]) -> String {
    rates.map(|rate| format!("{rate:.1}")).join(" ")
}

/// As StoreStatsService.getFormatRuntime.
fn duration_text(ms: i64) -> String {
    let seconds = ms.max(0) / 1000;
    let (days, hours) = (seconds / 86_400, seconds / 3600 % 24);
    let (minutes, seconds) = (seconds / 60 % 60, seconds % 60);
    format!("[ {days} days, {hours} hours, {minutes} minutes, {seconds} seconds ]")
}

#[cfg(test)]
mod tests;

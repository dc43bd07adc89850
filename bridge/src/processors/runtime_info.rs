//! GET_BROKER_RUNTIME_INFO: code 28. Figures of the node as texts; clusterList and brokerStatus
//! print them.
//! Figures of parts that are not here (page cache lock, thread pools, timers) are there with the
//! value of an idle one, since tools parse them without looking.
//! Source: AdminBrokerProcessor.prepareRuntimeInfo, StoreStatsService.getRuntimeInfo.

use std::collections::BTreeMap;

use super::{Call, Outcome};
use crate::backend::{Backend, RuntimeCounters};
use crate::bodies::KVTable;

/// MQVersion of the answers' `version` field.
const VERSION: &str = "V5_5_0";

/// Figures that nothing here moves.
const IDLE: &[(&str, &str)] = &[
    ("brokerActive", "true"),
    ("brokerVersionDesc", VERSION),
    ("dispatchBehindBytes", "0"),
    ("pageCacheLockTimeMills", "0"),
    ("pullThreadPoolQueueHeadWaitTimeMills", "0"),
    ("pullThreadPoolQueueSize", "0"),
    ("remainHowManyDataToFlush", "0 B"),
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
    let average = counters.bytes_in.checked_div(counters.records_in).unwrap_or(0);
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
    put("putMessageAverageSize", average.to_string());
    put("putTps", rates_text(counters.records_in_per_second));
    put("getTransferredTps", rates_text(counters.records_out_per_second));
    put("earliestMessageTimeStamp", counters.earliest_append_ms.unwrap_or(-1).to_string());
    put("commitLogDiskRatio", format!("{:.2}", counters.disk_used_ratio));
    put("dataDirectory", counters.data_dir.clone());
    table
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

//! What the values of a node must be besides right each alone, in the words of Kafka 4.3.1.
//!
//! Source: AbstractKafkaConfig.validateValues, DynamicBrokerConfig's reconfigurables.

use crate::config::listener::overrides_per_address;
use crate::config::topic::Overrides;
use crate::config::values::Values;

/// Least memory of a cleaner.
const CLEANER_BYTES_MIN: i64 = 1024 * 1024;

/// Checks the new value of `name` in `after`, beside the `values` that were in force until now.
pub(super) fn check(values: &Values, after: &Overrides, name: &str) -> Result<(), String> {
    let before = |name: &str| values.text(name).and_then(|text| text.trim().parse::<i64>().ok());
    let Some(text) = after.get(name) else { return Ok(()) };
    let number = |name: &str| match after.get(name) {
        Some(text) => text.trim().parse::<i64>().ok(),
        None => before(name),
    };
    let value = number(name).unwrap_or_default();
    match name {
        "log.retention.ms" if value == 0 => Err(format!(
            "requirement failed: {name} must be unlimited (-1) or, greater than or equal to 1"
        )),
        "log.roll.ms" if value < 1 => {
            Err(format!("requirement failed: {name} must be greater than or equal to 1"))
        }
        "log.cleaner.threads" => cleaner_threads(value, before(name).unwrap_or(1)),
        "log.cleaner.dedupe.buffer.size" => {
            let threads = number("log.cleaner.threads").unwrap_or(1).max(1);
            if value / threads > CLEANER_BYTES_MIN {
                return Ok(());
            }
            Err(format!("requirement failed: {name} must be at least 1MB per cleaner thread."))
        }
        "max.connection.creation.rate" if value < 1 => {
            Err(refused(&format!("Invalid {name} {value}")))
        }
        "max.connections.per.ip.overrides" => overrides_per_address(text)
            .map(drop)
            .map_err(|reason| format!("Error parsing configuration property '{name}': {reason}")),
        "group.consumer.assignment.interval.ms" => {
            let least = "group.consumer.min.assignment.interval.ms";
            let most = "group.consumer.max.assignment.interval.ms";
            if before(least).is_some_and(|least| value < least) {
                Err(format!("{name} must be greater than or equal to {least}"))
            } else if before(most).is_some_and(|most| value > most) {
                Err(format!("{name} must be less than or equal to {most}"))
            } else {
                Ok(())
            }
        }
        _ => Ok(()),
    }
}

/// So many at most become more or fewer at once.
fn cleaner_threads(value: i64, before: i64) -> Result<(), String> {
    if value < 1 {
        // The memory of each is asked for first.
        return Err("/ by zero".to_owned());
    }
    if value < before / 2 {
        return Err(refused(&format!(
            "Log cleaner threads cannot be reduced to less than half the current value {before}"
        )));
    }
    if value > before.saturating_mul(2) {
        return Err(refused(&format!(
            "Log cleaner threads cannot be increased to more than double the current value {before}"
        )));
    }
    Ok(())
}

/// A refusal by what is to be reconfigured, as Kafka wraps it.
fn refused(text: &str) -> String {
    format!(
        "Invalid value org.apache.kafka.common.config.ConfigException: {text} for configuration \
         Invalid dynamic configuration"
    )
}

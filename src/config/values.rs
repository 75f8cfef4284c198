//! From text to values: durations, numbers, choices, names.
//! Called by `resolve` and `routes`; pure, and each refusal says what to write instead.

use std::net::SocketAddr;
use std::ops::RangeInclusive;
use std::time::Duration;

use super::errors::{Fault, fault, suggest};
use crate::core::level::LevelTable;

/// Kafka's limit on the length of a topic name.
const TOPIC_MAX: usize = 249;
/// The longest thing that is put behind `name`: "-dead-letter".
const NAME_MAX: usize = TOPIC_MAX - "-dead-letter".len();
/// `group.instance.id` and `transactional.id` are built around it.
const INSTANCE_MAX: usize = 100;
/// Longer waits are slips of the pen, and some clocks cannot count to their end.
const LONGEST: Duration = Duration::from_secs(10 * 366 * 24 * 60 * 60);

/// A positive duration such as `30s` or `1h 30m`.
pub(super) fn duration(text: &str) -> Result<Duration, Fault> {
    const NEXT: &str = "write a number and a unit, such as 500ms, 30s, 5m, 24h or 7d";
    match humantime::parse_duration(text) {
        Err(error) => Err(fault(format!("{text:?} is not a duration ({error})"), NEXT)),
        Ok(Duration::ZERO) => Err(fault(format!("{text:?} is no time at all"), NEXT)),
        Ok(duration) if duration > LONGEST => {
            Err(fault(format!("{text:?} is longer than ten years"), NEXT))
        }
        Ok(duration) => Ok(duration),
    }
}

/// A whole number within `range`.
pub(super) fn whole(text: &str, range: RangeInclusive<i64>) -> Result<i64, Fault> {
    let number = text
        .parse::<i64>()
        .ok()
        .filter(|number| range.contains(number));
    number.ok_or_else(|| {
        let (low, high) = range.into_inner();
        fault(
            format!("{text:?} is not a whole number from {low} to {high}"),
            "write one within these limits",
        )
    })
}

/// A positive number of partitions.
pub(super) fn partitions(text: &str) -> Result<i32, Fault> {
    whole(text, 1..=100_000).map(|number| i32::try_from(number).unwrap_or(1))
}

/// -1 (the broker decides) or the number of replicas.
pub(super) fn replication_factor(text: &str) -> Result<i32, Fault> {
    match text.parse::<i16>() {
        Ok(factor) if factor == -1 || factor >= 1 => Ok(i32::from(factor)),
        _ => Err(fault(
            format!("{text:?} is not a replication factor"),
            "write 1 or more, or -1 for the broker's default",
        )),
    }
}

/// `true` or `false`.
pub(super) fn truth(text: &str) -> Result<bool, Fault> {
    choice(text, &[("true", true), ("false", false)])
}

/// One of a few words.
pub(super) fn choice<T: Copy>(text: &str, choices: &[(&str, T)]) -> Result<T, Fault> {
    let found = choices.iter().find(|(word, _)| *word == text);
    found.map(|(_, value)| *value).ok_or_else(|| {
        let words: Vec<_> = choices.iter().map(|(word, _)| *word).collect();
        let all = || format!("write {}", words.join(" or "));
        fault(
            format!("{text:?} is not one of: {}", words.join(", ")),
            suggest(text, words.iter().copied(), all),
        )
    })
}

/// Delays divided by spaces, such as `10s 30s 1m`.
pub(super) fn retry(text: &str) -> Result<Vec<Duration>, Fault> {
    const NEXT: &str = "write delays divided by spaces, such as \"10s 30s 1m\"";
    let entries: Vec<_> = text.split_whitespace().collect();
    match LevelTable::from_list(&entries) {
        Ok(table) => Ok(table.iter().map(|(_, delay)| delay).collect()),
        Err(errors) if entries.is_empty() => {
            drop(errors);
            Err(fault("there is no delay", NEXT))
        }
        Err(errors) => {
            let all: Vec<_> = errors
                .iter()
                .map(|e| format!("entry {} {:?}: {}", e.level, e.text, e.reason))
                .collect();
            Err(fault(all.join(", "), NEXT))
        }
    }
}

/// An address to listen on; `off` for none.
pub(super) fn http(text: &str) -> Result<Option<SocketAddr>, Fault> {
    if text == "off" {
        return Ok(None);
    }
    text.parse().map(Some).map_err(|_| {
        fault(
            format!("{text:?} is not an address"),
            "write IP:PORT, such as 127.0.0.1:9464 or 0.0.0.0:9464, or off",
        )
    })
}

/// A topic name that Kafka takes.
pub(super) fn topic(text: &str) -> Result<String, Fault> {
    let next = "use 1 to 249 of the characters A-Z a-z 0-9 . _ -";
    match text {
        "." | ".." => Err(fault(format!("{text:?} is not a topic name"), next)),
        _ => legal(text, TOPIC_MAX, "a topic name", next),
    }
}

/// What our topics, groups and transactional ids begin with.
pub(super) fn name(text: &str) -> Result<String, Fault> {
    if text.starts_with("__") {
        let what = format!("{text:?} would name topics as Kafka names its own");
        return Err(fault(what, "let it begin with something else than __"));
    }
    let next = format!("use 1 to {NAME_MAX} of the characters A-Z a-z 0-9 . _ -");
    legal(text, NAME_MAX, "a name that topics can begin with", next)
}

/// The name of a process that keeps its place over a restart.
pub(super) fn instance(text: &str) -> Result<String, Fault> {
    let next = format!("use 1 to {INSTANCE_MAX} of the characters A-Z a-z 0-9 . _ -");
    legal(text, INSTANCE_MAX, "an instance id", next)
}

fn legal(text: &str, max: usize, thing: &str, next: impl Into<String>) -> Result<String, Fault> {
    let bad = text
        .chars()
        .find(|c| !(c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '-')));
    let what = match bad {
        Some(bad) => format!("{text:?} is not {thing} because of {bad:?}"),
        None if text.is_empty() => format!("empty text is not {thing}"),
        None if text.len() > max => format!("{} characters are too many for {thing}", text.len()),
        None => return Ok(text.to_owned()),
    };
    Err(fault(what, next))
}

#[cfg(test)]
mod tests;

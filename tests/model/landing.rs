//! What is checked of each record at the moment it lands: never early, and only where it may go.

use std::time::Duration;

use delayd::core::level::Level;
use delayd::core::level_queue::PendingMode;
use delayd::core::record::{Partition, Record, Source};
use delayd::core::time::Timestamp;

use crate::kafka::{Checked, DEAD, Entry, Kafka, Out, SCHEDULE};
use crate::message::Expected;

pub(crate) fn check(kafka: &Kafka, out: &Out) -> Checked {
    let before = kafka.entry(&out.from)?;
    let waited = &*out.from.partition.topic == SCHEDULE;
    match (waited, &*out.to.topic) {
        // A target that is away when the router delivers at once.
        (false, SCHEDULE) if text(&out.record, "delayd-attempt").is_some() => {
            parked_again(kafka, out)
        }
        (false, SCHEDULE) => scheduled(kafka, out, before),
        (true, SCHEDULE) => parked_again(kafka, out),
        (_, DEAD) => dead_lettered(kafka, out, before),
        (false, _) => delivered_at_once(kafka, out, before),
        (true, _) => delivered(kafka, out, before),
    }
}

fn scheduled(kafka: &Kafka, out: &Out, before: &Entry) -> Checked {
    let message = &kafka.messages[before.number];
    let accepted_at = number(&out.record, "delayd-accepted-at")?;
    // With CreateTime it is the producer's word, or the clock at the first try.
    let believed = accepted_at == before.stamp || message.ingress == Some(4);
    let due = number(&out.record, "delayd-due")?;
    // A decision holds until it is out; and a worker may know the table before, not an older one.
    let may_be = kafka.tables[before.version.saturating_sub(1)..]
        .iter()
        .any(|table| {
            let level = u32::try_from(message.level())
                .ok()
                .and_then(Level::new)
                .map(|level| level.min(table.last()));
            let delay = level.and_then(|level| Some((level.partition(), table.delay(level)?)));
            delay.is_some_and(|(partition, delay)| {
                partition == out.to.partition && due == accepted_at.plus(delay)
            })
        });
    ensure(believed && may_be, || {
        format!(
            "{} waits in {} until {due}, accepted at {accepted_at}",
            out.from, out.to
        )
    })
}

fn parked_again(kafka: &Kafka, out: &Out) -> Checked {
    let target = text(&out.record, "REAL_TOPIC").unwrap_or_default();
    let due = number(&out.record, "delayd-due")?;
    let away = kafka.away.contains_key(&target);
    let names = [
        "delayd-due",
        "delayd-attempt",
        "delayd-id",
        "delayd-queued-at",
    ];
    let once = names.iter().all(|name| {
        out.record
            .headers
            .iter()
            .filter(|h| h.key == name.as_bytes())
            .count()
            == 1
    });
    let (queued_at, level) = (
        number(&out.record, "delayd-queued-at")?,
        Level::of_partition(out.to.partition),
    );
    let waits = queued_at.plus(Duration::from_millis(1)) <= due;
    let by_its_level = kafka
        .tables
        .iter()
        .any(|table| level.and_then(|level| table.delay(level)) == Some(due.since(queued_at)));
    ensure(away && once && waits && by_its_level, || {
        format!(
            "{} was parked again in {}, but {target} is there",
            out.from, out.to
        )
    })
}

fn dead_lettered(kafka: &Kafka, out: &Out, before: &Entry) -> Checked {
    let message = &kafka.messages[before.number];
    let reason = text(&out.record, "delayd-error").unwrap_or_default();
    let source = text(&out.record, "delayd-source");
    let (right, away) = match message.expected() {
        Expected::Refused(reasons) => (reasons.contains(&reason.as_str()), !kafka.away.is_empty()),
        Expected::At(topic, _) => (false, kafka.away.contains_key(topic)),
    };
    let unavailable = reason == "target_unavailable" && away;
    ensure(
        (right || unavailable) && source == Some(out.from.to_string()),
        || {
            format!(
                "{} is a dead letter for {reason:?}, expected {:?}",
                out.from,
                message.expected()
            )
        },
    )
}

fn delivered_at_once(kafka: &Kafka, out: &Out, before: &Entry) -> Checked {
    let message = &kafka.messages[before.number];
    ensure(message.level() == 0, || {
        format!(
            "early: {} was delivered at once, level {:?}",
            out.from, message.level
        )
    })?;
    at_its_target(kafka, out, before)
}

fn delivered(kafka: &Kafka, out: &Out, before: &Entry) -> Checked {
    let due = earliest(kafka, before, out.from.partition.partition)?;
    let now = Timestamp(kafka.clock);
    ensure(now >= due, || {
        format!("early: {} was delivered at {now}, due {due}", out.from)
    })?;
    at_its_target(kafka, out, before)
}

/// The earliest time at which this waiting record may leave, by any table since it was queued.
fn earliest(kafka: &Kafka, entry: &Entry, queue: i32) -> Checked<Timestamp> {
    let (due, queued_at) = (
        number(&entry.record, "delayd-due")?,
        number(&entry.record, "delayd-queued-at")?,
    );
    if kafka.pending == PendingMode::Keep || text(&entry.record, "delayd-attempt").is_some() {
        return Ok(due);
    }
    let tables = kafka.tables[entry.version.saturating_sub(1)..].iter();
    let delays = tables.filter_map(|table| table.delay(Level::of_partition(queue)?));
    Ok(delays
        .map(|delay| queued_at.plus(delay))
        .min()
        .map_or(due, |shortened| due.min(shortened)))
}

/// When a worker that knows `version` of the table must let this head go.
pub(crate) fn due(kafka: &Kafka, entry: &Entry, queue: &Partition, version: usize) -> Timestamp {
    let found = (
        number(&entry.record, "delayd-due"),
        number(&entry.record, "delayd-queued-at"),
    );
    let (Ok(due), Ok(queued_at)) = found else {
        return Timestamp(i64::MIN);
    };
    let fixed =
        kafka.pending == PendingMode::Keep || text(&entry.record, "delayd-attempt").is_some();
    match Level::of_partition(queue.partition).and_then(|level| kafka.tables[version].delay(level))
    {
        Some(delay) if !fixed => due.min(queued_at.plus(delay)),
        _ => due,
    }
}

fn at_its_target(kafka: &Kafka, out: &Out, before: &Entry) -> Checked {
    let message = &kafka.messages[before.number];
    let Expected::At(topic, partition) = message.expected() else {
        return Err(format!(
            "{} was delivered to {}, expected {:?}",
            out.from,
            out.to,
            message.expected()
        ));
    };
    let right = topic == &*out.to.topic && partition.is_none_or(|p| p == out.to.partition);
    ensure(right, || {
        format!(
            "{} was delivered to {}, expected {topic} {partition:?}",
            out.from, out.to
        )
    })?;
    let sent = message.record(before.number);
    let traces = |record: &Record| {
        record
            .headers
            .iter()
            .filter(|h| h.key == b"trace")
            .cloned()
            .collect::<Vec<_>>()
    };
    let same = (&sent.key, &sent.value, traces(&sent))
        == (&out.record.key, &out.record.value, traces(&out.record));
    ensure(same, || {
        format!("{} was delivered changed: {:?}", out.from, out.record)
    })?;
    let origin = origin(kafka, &out.from)?.to_string();
    ensure(text(&out.record, "delayd-id") == Some(origin), || {
        format!("{} lost its id", out.from)
    })
}

/// The ingress record that this one was.
pub(crate) fn origin<'k>(kafka: &'k Kafka, source: &'k Source) -> Checked<&'k Source> {
    match &kafka.entry(source)?.from {
        Some(before) => origin(kafka, before),
        None => Ok(source),
    }
}

pub(crate) fn text(record: &Record, name: &str) -> Option<String> {
    let value = record
        .headers
        .iter()
        .rev()
        .find(|h| h.key == name.as_bytes())?
        .value
        .as_ref()?;
    Some(String::from_utf8_lossy(value).into_owned())
}

fn number(record: &Record, name: &str) -> Checked<Timestamp> {
    let number = text(record, name).and_then(|text| text.parse().ok());
    number
        .map(Timestamp)
        .ok_or(format!("{name} is missing: {record:?}"))
}

pub(crate) fn ensure(holds: bool, why: impl FnOnce() -> String) -> Checked {
    if holds { Ok(()) } else { Err(why()) }
}

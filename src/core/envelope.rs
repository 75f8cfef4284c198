//! What delayd writes around a message while it waits, and what it leaves on it at delivery.
//! Called by `route` (wrap), `level_queue` (read) and `flow` (the record that goes out);
//! must never trust a schedule record: somebody else may have written it.

use std::borrow::Cow;
use std::time::Duration;

use super::level::{Level, parse_i32};
use super::record::*;
use super::time::Timestamp;

/// Where a message is going.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Target {
    /// The real topic.
    pub topic: String,
    /// The partition, where it is fixed; otherwise the key decides.
    pub partition: Option<i32>,
}

/// Everything delayd knows of a message that waits.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Envelope {
    /// Where it is going.
    pub target: Target,
    /// Its identity.
    pub id: Vec<u8>,
    /// When Kafka took it.
    pub accepted_at: Timestamp,
    /// The ingress record's own timestamp.
    pub timestamp: Option<Timestamp>,
    /// When this wait ends.
    pub due: Timestamp,
    /// When this wait began.
    pub queued_at: Timestamp,
    /// How often the target was away.
    pub attempt: u32,
}

/// What happens to the headers of delayd and RocketMQ at delivery.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HeaderMode {
    /// They stay, as every RocketMQ release does it.
    Keep,
    /// They are removed.
    Strip,
}

/// A header on its way out: borrowed where nothing changed.
pub type OutHeader<'a> = (&'a [u8], Option<Cow<'a, [u8]>>);

impl Envelope {
    /// Reads the envelope of a schedule record.
    ///
    /// # Errors
    /// In words, what is missing or cannot be meant.
    pub fn read(record: &Record) -> Result<Envelope, String> {
        let topic = record.text(REAL_TOPIC).ok_or("REAL_TOPIC is missing")?;
        let topic = std::str::from_utf8(topic).ok().filter(|t| is_topic_name(t));
        let due = time(record, DUE)?.ok_or("delayd-due is missing")?;
        Ok(Envelope {
            target: Target {
                topic: topic
                    .ok_or("REAL_TOPIC is not the name of a topic")?
                    .to_owned(),
                partition: partition(record)?,
            },
            id: record.text(ID).ok_or("delayd-id is missing")?.to_vec(),
            accepted_at: time(record, ACCEPTED_AT)?.ok_or("delayd-accepted-at is missing")?,
            timestamp: time(record, TIMESTAMP)?,
            due,
            queued_at: time(record, QUEUED_AT)?.ok_or("delayd-queued-at is missing")?,
            attempt: attempt(record)?,
        })
    }

    /// The headers of the record while it waits. `REAL_TOPIC`, `REAL_QID` and the level stand in
    /// the record already: `route` has put them there.
    pub fn waiting<'a>(&'a self, record: &'a Record) -> Vec<OutHeader<'a>> {
        let mut headers = untouched(record, |key| !is_internal(key));
        self.push_facts(&mut headers);
        headers.push(number(QUEUED_AT, self.queued_at.0));
        if self.attempt > 0 {
            headers.push(number(ATTEMPT, i64::from(self.attempt)));
        }
        headers
    }

    /// The headers of the record at its delivery.
    pub fn delivered<'a>(&'a self, record: &'a Record, mode: HeaderMode) -> Vec<OutHeader<'a>> {
        if mode == HeaderMode::Strip {
            let rocketmq = [DELAY_LEVEL, DELAY, REAL_TOPIC, REAL_QID];
            return untouched(record, |key| {
                !is_internal(key) && !rocketmq.iter().any(|name| key == name.as_bytes())
            });
        }
        let mut headers = untouched(record, |key| !is_internal(key));
        self.push_facts(&mut headers);
        headers
    }

    fn push_facts<'a>(&'a self, headers: &mut Vec<OutHeader<'a>>) {
        headers.push((ID.as_bytes(), Some(Cow::Borrowed(&self.id))));
        headers.push(number(ACCEPTED_AT, self.accepted_at.0));
        if let Some(timestamp) = self.timestamp {
            headers.push(number(TIMESTAMP, timestamp.0));
        }
        headers.push(number(DUE, self.due.0));
    }

    /// The envelope of the next wait, because the target was away.
    pub fn reparked(&self, now: Timestamp, delay: Duration) -> Envelope {
        Envelope {
            due: now.plus(delay),
            queued_at: now,
            attempt: self.attempt.saturating_add(1),
            ..self.clone()
        }
    }

    /// When the wait that the producer asked for was over; `waited` is the delay of its level.
    pub fn first_due(&self, waited: Duration) -> Timestamp {
        if self.attempt == 0 {
            self.due
        } else {
            self.accepted_at.plus(waited)
        }
    }
}

/// The level that a waiting record was sent with, if any.
pub fn level_of(record: &Record) -> Option<Level> {
    let value = record.text(DELAY_LEVEL).or_else(|| record.text(DELAY))?;
    u32::try_from(parse_i32(value)?).ok().and_then(Level::new)
}

pub(super) fn untouched(record: &Record, keep: impl Fn(&[u8]) -> bool) -> Vec<OutHeader<'_>> {
    let mut headers = Vec::with_capacity(record.headers.len() + 7);
    let kept = record.headers.iter().filter(|h| keep(&h.key));
    headers.extend(kept.map(|h| (h.key.as_slice(), h.value.as_deref().map(Cow::Borrowed))));
    headers
}

fn number<'a>(name: &'static str, value: i64) -> OutHeader<'a> {
    (
        name.as_bytes(),
        Some(Cow::Owned(value.to_string().into_bytes())),
    )
}

/// A header that only delayd may set.
fn is_internal(key: &[u8]) -> bool {
    key.starts_with(PREFIX)
}

/// A time in a header: digits only, so never negative. `None` if it is absent.
fn time(record: &Record, name: &str) -> Result<Option<Timestamp>, String> {
    let Some(value) = record.text(name) else {
        return Ok(None);
    };
    let text = std::str::from_utf8(value)
        .ok()
        .filter(|t| t.bytes().all(|b| b.is_ascii_digit()));
    let time = text
        .and_then(|t| t.parse().ok())
        .ok_or(format!("{name} is not a time in unix ms"))?;
    Ok(Some(time))
}

fn partition(record: &Record) -> Result<Option<i32>, String> {
    let Some(value) = record.text(REAL_QID) else {
        return Ok(None);
    };
    let number = parse_i32(value)
        .filter(|n| *n >= 0)
        .ok_or("REAL_QID is not a partition")?;
    Ok(Some(number))
}

fn attempt(record: &Record) -> Result<u32, String> {
    let Some(value) = record.text(ATTEMPT) else {
        return Ok(0);
    };
    parse_i32(value)
        .and_then(|n| u32::try_from(n).ok())
        .ok_or_else(|| "delayd-attempt is not a count".to_owned())
}

/// What Kafka accepts as the name of a topic.
pub fn is_topic_name(name: &str) -> bool {
    let legal = |b: u8| b.is_ascii_alphanumeric() || b"._-".contains(&b);
    (1..=249).contains(&name.len()) && name != "." && name != ".." && name.bytes().all(legal)
}

#[cfg(test)]
mod tests;

//! A Kafka record as plain bytes, and the names of the headers that delayd reads and writes.
//! Used by all of `core` and `flow`; must not interpret keys or values, and must not name rdkafka.

use std::fmt;
use std::sync::Arc;

use super::time::Timestamp;

/// The level, as producers set it.
pub const DELAY_LEVEL: &str = "delayLevel";
/// The level, as RocketMQ names it; read when `delayLevel` is absent or empty.
pub const DELAY: &str = "DELAY";
/// The topic that the message is really for.
pub const REAL_TOPIC: &str = "REAL_TOPIC";
/// The partition of the real topic, where it is fixed.
pub const REAL_QID: &str = "REAL_QID";
/// Every header of ours begins so.
pub const PREFIX: &[u8] = b"delayd-";
/// The message's identity, kept over re-parks.
pub const ID: &str = "delayd-id";
/// When Kafka took the message, unix ms.
pub const ACCEPTED_AT: &str = "delayd-accepted-at";
/// The ingress record's own timestamp, unix ms.
pub const TIMESTAMP: &str = "delayd-timestamp";
/// When this wait ends, unix ms: authoritative.
pub const DUE: &str = "delayd-due";
/// When this wait began, unix ms.
pub const QUEUED_AT: &str = "delayd-queued-at";
/// How often the target was away.
pub const ATTEMPT: &str = "delayd-attempt";
/// Why a record is in the dead-letter topic.
pub const ERROR: &str = "delayd-error";
/// The same, in words.
pub const ERROR_DETAIL: &str = "delayd-error-detail";
/// Where a dead letter was read: topic-partition-offset.
pub const SOURCE: &str = "delayd-source";

/// One header. Keys are bytes, because a producer may send any.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Header {
    /// The key, usually UTF-8.
    pub key: Vec<u8>,
    /// The value; `None` is Kafka's null, which is not the same as empty.
    pub value: Option<Vec<u8>>,
}

/// Key, value and headers of a record.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Record {
    /// `None` is null.
    pub key: Option<Vec<u8>>,
    /// `None` is null, a tombstone.
    pub value: Option<Vec<u8>>,
    /// In the producer's order, duplicates included.
    pub headers: Vec<Header>,
}

impl Record {
    /// The last header of this name, which is the one that counts.
    pub fn last(&self, name: &str) -> Option<&Header> {
        self.headers.iter().rev().find(|h| h.key == name.as_bytes())
    }

    /// The value of the last header of this name, unless it is null or empty.
    pub fn text(&self, name: &str) -> Option<&[u8]> {
        self.last(name)
            .and_then(|h| h.value.as_deref())
            .filter(|value| !value.is_empty())
    }

    /// Replaces the last header of this name where it stands, or adds one at the end.
    pub fn set(&mut self, name: &str, value: impl Into<Vec<u8>>) {
        let value = Some(value.into());
        match self
            .headers
            .iter_mut()
            .rev()
            .find(|h| h.key == name.as_bytes())
        {
            Some(header) => header.value = value,
            None => self.headers.push(Header {
                key: name.into(),
                value,
            }),
        }
    }

    /// Removes every header of this name.
    pub fn remove(&mut self, name: &str) {
        self.headers.retain(|h| h.key != name.as_bytes());
    }

    /// About how many bytes the record takes on a topic.
    pub fn size(&self) -> usize {
        let headers = self
            .headers
            .iter()
            .map(|h| 4 + h.key.len() + length(&h.value));
        16 + length(&self.key) + length(&self.value) + headers.sum::<usize>()
    }
}

fn length(bytes: &Option<Vec<u8>>) -> usize {
    bytes.as_ref().map_or(0, Vec::len)
}

/// A partition of a topic: an ingress partition or a level queue.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Partition {
    /// The topic's name, shared by the records read from it.
    pub topic: Arc<str>,
    /// From 0.
    pub partition: i32,
}

impl fmt::Display for Partition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}-{}", self.topic, self.partition)
    }
}

/// Where a record was read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Source {
    /// The partition.
    pub partition: Partition,
    /// The record's offset in it.
    pub offset: i64,
}

impl fmt::Display for Source {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}-{}", self.partition, self.offset)
    }
}

/// A record's timestamp, with who gave it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stamp {
    /// The broker, when it appended the record.
    Append(Timestamp),
    /// The producer: only its word.
    Create(Timestamp),
    /// Nobody.
    Missing,
}

impl Stamp {
    /// The time, whoever gave it.
    pub fn time(self) -> Option<Timestamp> {
        match self {
            Stamp::Append(time) | Stamp::Create(time) => Some(time),
            Stamp::Missing => None,
        }
    }
}

/// A record as it was read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Arrival {
    /// Where.
    pub source: Source,
    /// When.
    pub stamp: Stamp,
    /// What.
    pub record: Record,
}

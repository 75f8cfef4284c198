//! What producers send in the model, and what must become of it, said without delayd's own code.

use delayd::core::partitioner::partition_of;
use delayd::core::record::{Header, Partition, Record, Stamp};
use delayd::core::time::Timestamp;
use proptest::prelude::*;

use crate::kafka::partition;

/// Ingress partitions: two topics with LogAppendTime, one with CreateTime.
pub(crate) const INGRESS: [(&str, i32); 5] = [
    ("orders-delayed", 0),
    ("orders-delayed", 1),
    ("delayd-ingress", 0),
    ("delayd-ingress", 1),
    ("created", 0),
];

/// One message of a producer.
#[derive(Debug, Clone)]
pub(crate) struct Message {
    /// Which of `INGRESS`; `None` if somebody wrote it into the first schedule queue himself.
    pub ingress: Option<usize>,
    pub level: Option<&'static str>,
    /// `REAL_TOPIC` and `REAL_QID`.
    pub target: Option<&'static str>,
    pub qid: Option<&'static str>,
    pub key: Option<u8>,
    /// How far the producer's clock is ahead.
    pub ahead: i64,
    pub large: bool,
}

/// What must become of a message.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Expected {
    /// Refused for one of these reasons.
    Refused(&'static [&'static str]),
    /// Delivered to this topic and partition, if that is fixed.
    At(&'static str, Option<i32>),
}

impl Message {
    /// Where it is appended.
    pub(crate) fn partition(&self) -> Partition {
        let (topic, number) = self
            .ingress
            .map_or((crate::kafka::SCHEDULE, 0), |ingress| INGRESS[ingress]);
        partition(topic, number)
    }

    pub(crate) fn stamp(&self, clock: i64) -> Stamp {
        match self.ingress {
            Some(4) => Stamp::Create(Timestamp(clock + self.ahead)),
            _ => Stamp::Append(Timestamp(clock)),
        }
    }

    pub(crate) fn record(&self, number: usize) -> Record {
        let header = |key: &str, value: Option<&str>| Header {
            key: key.into(),
            value: value.map(Into::into),
        };
        let mut headers = vec![header("trace", Some("a"))];
        headers.extend(self.level.map(|level| header("delayLevel", Some(level))));
        headers.extend(self.target.map(|target| header("REAL_TOPIC", Some(target))));
        headers.extend(self.qid.map(|qid| header("REAL_QID", Some(qid))));
        headers.push(header("delayd-due", Some("1")));
        headers.push(header("trace", None));
        let padding = if self.large { 2_000 } else { 0 };
        let value = format!("message {number}{}", ".".repeat(padding));
        Record {
            key: self.key.map(|key| vec![key]),
            value: Some(value.into()),
            headers,
        }
    }

    /// The number of the level that it asks for; 0 is at once.
    pub(crate) fn level(&self) -> i64 {
        self.level
            .and_then(|level| level.parse().ok())
            .unwrap_or(0)
            .max(0)
    }

    /// What must become of it while no target is away.
    pub(crate) fn expected(&self) -> Expected {
        let Some(ingress) = self.ingress else {
            return Expected::Refused(&["bad_record"]);
        };
        if self.level == Some("abc") {
            return Expected::Refused(&["bad_level"]);
        }
        let fixed = match INGRESS[ingress].0 {
            "orders-delayed" => Some("orders"),
            "created" => Some("audit"),
            _ => None,
        };
        let qid = self.qid.filter(|_| fixed.is_none());
        let topic = match (fixed.or(self.target), qid) {
            (_, Some("x")) => {
                return Expected::Refused(&["bad_partition", "no_target", "bad_target"]);
            }
            (None, _) => return Expected::Refused(&["no_target"]),
            (Some("."), _) => return Expected::Refused(&["bad_target"]),
            (Some("created"), _) => return Expected::Refused(&["target_is_ingress"]),
            (Some(topic), _) => topic,
        };
        let count = if topic == "orders" { 2 } else { 1 };
        let partition = qid.and_then(|qid| qid.parse().ok());
        match partition {
            Some(partition) if partition >= count => {
                return Expected::Refused(&["no_such_partition", "too_large"]);
            }
            _ if self.large && topic == "audit" => return Expected::Refused(&["too_large"]),
            _ => {}
        }
        Expected::At(
            topic,
            partition.or(self.key.map(|key| partition_of(&[key], count))),
        )
    }
}

prop_compose! {
    pub(crate) fn message()(
        ingress in prop_oneof![20 => (0..INGRESS.len()).prop_map(Some), 1 => Just(None)],
        level in proptest::sample::select(vec![
            Some("1"), Some("2"), Some("3"), Some("1"), Some("2"), Some("5"), Some("99"), None, Some("0"), Some("-1"), Some(""), Some("abc"),
        ]),
        target in proptest::sample::select(vec![Some("orders"), Some("audit"), Some("orders"), Some("."), Some("created"), None]),
        qid in proptest::sample::select(vec![None, None, None, Some("0"), Some("1"), Some("9"), Some("x")]),
        key in proptest::option::of(0..4_u8),
        ahead in -3_000..3_000_i64,
        large in proptest::bool::weighted(0.1),
    ) -> Message {
        Message { ingress, level, target, qid, key, ahead, large }
    }
}

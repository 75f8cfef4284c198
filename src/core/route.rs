//! The first decision about a message: wait in a level queue, go on at once, or be refused.
//! Called by `flow::router` for every ingress record; pure: `now` is the broker's clock, and what
//! is true of topics comes in as `Rules`.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use super::dead_letter::{Obituary, Reason};
use super::envelope::{Envelope, Target, is_topic_name};
use super::ingress::{OwnTopics, Route, TargetPartition};
use super::level::{Level, LevelTable, Wanted, parse_i32};
use super::record::*;
use super::time::Timestamp;

/// Everything the decision depends on beside the message and the time.
#[derive(Debug, Clone)]
pub struct Rules {
    /// In order; the first that matches counts.
    pub routes: Vec<Route>,
    /// The level table in force.
    pub table: Arc<LevelTable>,
    /// Topics that are never a target.
    pub own: OwnTopics,
    /// How long an ingress topic keeps its records: an older CreateTime is not plausible.
    pub retention: HashMap<String, Duration>,
}

/// What becomes of an ingress record.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Decision {
    /// It waits in the queue of this level.
    Schedule {
        /// The level, after clamping.
        level: Level,
        /// Whether it was asked for a level beyond the table.
        clamped: bool,
        /// What to write around it.
        envelope: Envelope,
    },
    /// It goes to its real topic at once.
    Deliver(Envelope),
    /// It is refused.
    Refuse(Obituary),
}

/// A decision, with what it had to assume.
#[derive(Debug)]
pub struct Routed {
    /// What becomes of the record.
    pub decision: Decision,
    /// Whether its CreateTime could not be believed, so that the broker's clock stands in for it.
    pub implausible: bool,
}

impl Rules {
    /// Decides about one record. What the decision changes in the record's own headers (a clamped
    /// level, the target) is changed in place; refused records stay as they came.
    pub fn decide(
        &self,
        source: &Source,
        stamp: Stamp,
        record: &mut Record,
        now: Timestamp,
    ) -> Routed {
        let (accepted_at, implausible) = self.accepted_at(source, stamp, now);
        let decision = self
            .try_decide(source, stamp, record, accepted_at)
            .unwrap_or_else(Decision::Refuse);
        Routed {
            decision,
            implausible,
        }
    }

    fn try_decide(
        &self,
        source: &Source,
        stamp: Stamp,
        record: &mut Record,
        accepted_at: Timestamp,
    ) -> Result<Decision, Obituary> {
        check_header_keys(record)?;
        let route = self
            .routes
            .iter()
            .find(|r| r.from.matches(&source.partition.topic));
        let wanted = self.wanted(record, route)?;
        let target = self.target(source, record, route)?;

        record.set(REAL_TOPIC, target.topic.as_bytes());
        match target.partition {
            Some(partition) => record.set(REAL_QID, partition.to_string()),
            None => record.remove(REAL_QID),
        }
        let id = record
            .text(ID)
            .map_or_else(|| source.to_string().into_bytes(), <[u8]>::to_vec);
        let envelope = Envelope {
            target,
            id,
            accepted_at,
            timestamp: stamp.time(),
            due: accepted_at,
            queued_at: accepted_at,
            attempt: 0,
        };
        let (level, clamped) = match wanted {
            Wanted::Level(level) => (level, false),
            Wanted::Clamped(level) => (level, true),
            Wanted::Now | Wanted::Bad(_) => return Ok(Decision::Deliver(envelope)),
        };
        write_level(record, level, clamped);
        let delay = self.table.delay(level).unwrap_or_default();
        let envelope = Envelope {
            due: accepted_at.plus(delay),
            ..envelope
        };
        Ok(Decision::Schedule {
            level,
            clamped,
            envelope,
        })
    }

    /// When Kafka took the message: the broker's word, or the producer's where it is believable.
    fn accepted_at(&self, source: &Source, stamp: Stamp, now: Timestamp) -> (Timestamp, bool) {
        const KAFKAS_DEFAULT: Duration = Duration::from_secs(7 * 86_400);
        match stamp {
            Stamp::Append(time) => (time, false),
            Stamp::Create(time) => {
                let kept = self
                    .retention
                    .get(&*source.partition.topic)
                    .copied()
                    .unwrap_or(KAFKAS_DEFAULT);
                if time <= now && time >= now.minus(kept) {
                    (time, false)
                } else {
                    (now, true)
                }
            }
            Stamp::Missing => (now, true),
        }
    }

    fn wanted(&self, record: &Record, route: Option<&Route>) -> Result<Wanted, Obituary> {
        let value = record.text(DELAY_LEVEL).or_else(|| record.text(DELAY));
        let wanted = match (value, route.and_then(|r| r.level)) {
            (Some(value), _) => self.table.wanted(value),
            (None, Some(level)) => self.table.wanted(level.number().to_string().as_bytes()),
            (None, None) => Wanted::Now,
        };
        match wanted {
            Wanted::Bad(detail) => Err(Obituary::new(Reason::BadLevel, detail)),
            good => Ok(good),
        }
    }

    fn target(
        &self,
        source: &Source,
        record: &Record,
        route: Option<&Route>,
    ) -> Result<Target, Obituary> {
        let fixed = route.and_then(|r| r.target(&source.partition.topic));
        let partition = match (&fixed, route.map(|r| r.partition)) {
            (_, Some(TargetPartition::Same)) => Some(source.partition.partition),
            (None, _) => requested_partition(record)?,
            (Some(_), _) => None,
        };
        let topic = match fixed {
            Some(topic) => topic,
            None => named_topic(record)?,
        };
        self.check_target(&topic)?;
        Ok(Target { topic, partition })
    }

    /// Whether a message may be sent there at all.
    ///
    /// # Errors
    /// The reason for the dead-letter topic.
    pub fn check_target(&self, topic: &str) -> Result<(), Obituary> {
        let refuse = |reason, what: &str| Err(Obituary::new(reason, format!("{topic:?} {what}")));
        if !is_topic_name(topic) {
            return refuse(
                Reason::BadTarget,
                "is not the name of a topic: 1 to 249 of letters, digits, '.', '_' and '-'",
            );
        }
        if self.own.contains(topic) {
            return refuse(
                Reason::TargetIsInternal,
                "belongs to delayd or to Kafka itself",
            );
        }
        if self.routes.iter().any(|r| r.from.matches(topic)) {
            return refuse(
                Reason::TargetIsIngress,
                "is an ingress topic: the message would be delayed twice",
            );
        }
        Ok(())
    }
}

fn check_header_keys(record: &Record) -> Result<(), Obituary> {
    match record
        .headers
        .iter()
        .find(|h| std::str::from_utf8(&h.key).is_err())
    {
        None => Ok(()),
        Some(header) => Err(Obituary::new(
            Reason::BadHeaderKey,
            format!(
                "the header key \"{}\" is not UTF-8",
                header.key.escape_ascii()
            ),
        )),
    }
}

fn named_topic(record: &Record) -> Result<String, Obituary> {
    let value = record.text(REAL_TOPIC).ok_or_else(|| {
        Obituary::new(
            Reason::NoTarget,
            "no route names a real topic, and the header REAL_TOPIC is absent or empty",
        )
    })?;
    match std::str::from_utf8(value) {
        Ok(topic) => Ok(topic.to_owned()),
        Err(_) => Err(Obituary::new(
            Reason::BadTarget,
            format!("REAL_TOPIC \"{}\" is not UTF-8", shown(value)),
        )),
    }
}

fn requested_partition(record: &Record) -> Result<Option<i32>, Obituary> {
    let Some(value) = record.text(REAL_QID) else {
        return Ok(None);
    };
    match parse_i32(value) {
        Some(partition) if partition >= 0 => Ok(Some(partition)),
        _ => Err(Obituary::new(
            Reason::BadPartition,
            format!(
                "REAL_QID must be a partition number as text; got \"{}\"",
                shown(value)
            ),
        )),
    }
}

/// The level header says what really happens: a clamped level is rewritten where it stands, a
/// level that came from the route is added. A level within the table keeps its bytes.
fn write_level(record: &mut Record, level: Level, clamped: bool) {
    let name = [DELAY_LEVEL, DELAY]
        .into_iter()
        .find(|name| record.text(name).is_some());
    if clamped || name.is_none() {
        record.set(name.unwrap_or(DELAY_LEVEL), level.to_string());
    }
}

fn shown(value: &[u8]) -> String {
    value[..value.len().min(64)].escape_ascii().to_string()
}

#[cfg(test)]
mod tests;

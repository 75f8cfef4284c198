//! What becomes of one record on its way out, and how that changes when Kafka refuses it.
//! Called by `flow::dispatch`; pure: the refusal, the time and the level table come in as arguments.

use std::borrow::Cow;
use std::time::Duration;

use super::dead_letter::{Obituary, Reason, Trim};
use super::envelope::{Envelope, HeaderMode, OutHeader, level_of};
use super::ingress::OwnTopics;
use super::level::{Level, LevelTable};
use super::level_queue::Waiting;
use super::record::{Arrival, Record, Source};
use super::route::{Decision, Rules};
use super::time::Timestamp;

/// The longest wait for a partition that has no leader: it usually has one again soon.
const LEADERLESS_WAIT: Duration = Duration::from_secs(30);

/// A record on its way out.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Shipment<'a> {
    /// Where it was read.
    pub source: &'a Source,
    /// The record, with the headers of its producer.
    pub record: &'a Record,
    /// Where it goes next.
    pub fate: Fate,
    /// The partition of that topic, once it is chosen.
    pub partition: Option<i32>,
}

/// Where a record goes next.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Fate {
    /// Into the queue of a level.
    Schedule(Level, Envelope),
    /// To its real topic.
    Deliver(Envelope),
    /// To the dead-letter topic.
    Refuse(Obituary),
}

/// Why a record could not be produced where its fate says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Refusal {
    /// It is too large, and it was alone in its batch.
    TooLarge,
    /// The topic takes no such record, ever.
    Never(Reason, String),
    /// The topic cannot be written now.
    Away {
        /// Only a leader is missing.
        leaderless: bool,
        /// In words.
        why: String,
    },
}

/// What to do with a message whose target is away.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RetryPolicy {
    /// The wait before each further attempt; the last one repeats. Never empty.
    pub ladder: Vec<Duration>,
    /// After this the message is dead-lettered.
    pub retry_for: Duration,
}

impl<'a> Shipment<'a> {
    /// A record that is to meet `fate`.
    pub fn new(source: &'a Source, record: &'a Record, fate: Fate) -> Shipment<'a> {
        Shipment {
            source,
            record,
            fate,
            partition: None,
        }
    }

    /// The shipment of an ingress record, as it was decided.
    pub fn routed(arrival: &'a Arrival, decision: &Decision) -> Shipment<'a> {
        let fate = match decision {
            Decision::Schedule {
                level, envelope, ..
            } => Fate::Schedule(*level, envelope.clone()),
            Decision::Deliver(envelope) => Fate::Deliver(envelope.clone()),
            Decision::Refuse(obituary) => Fate::Refuse(obituary.clone()),
        };
        Shipment::new(&arrival.source, &arrival.record, fate)
    }

    /// The shipment of a record whose wait is over.
    pub fn due(waiting: &'a Waiting, rules: &Rules) -> Shipment<'a> {
        let fate = match &waiting.envelope {
            Err(detail) => Fate::Refuse(Obituary::new(Reason::BadRecord, detail.as_str())),
            // Routes may have changed meanwhile, or somebody else wrote this record.
            Ok(envelope) => match rules.check_target(&envelope.target.topic) {
                // A shorter table may have ended the wait before the recorded time.
                Ok(()) => Fate::Deliver(Envelope {
                    due: waiting.due,
                    ..envelope.clone()
                }),
                Err(obituary) => Fate::Refuse(obituary),
            },
        };
        Shipment::new(&waiting.source, &waiting.record, fate)
    }

    /// The partition that the fate itself decides: a level's queue, or one that the producer fixed.
    pub fn fixed_partition(&self) -> Option<i32> {
        match &self.fate {
            Fate::Schedule(level, _) => Some(level.partition()),
            Fate::Deliver(envelope) => envelope.target.partition,
            Fate::Refuse(_) => None,
        }
    }

    /// The topic it is produced to.
    pub fn topic<'t>(&'t self, own: &'t OwnTopics) -> &'t str {
        match &self.fate {
            Fate::Schedule(..) => &own.schedule,
            Fate::Deliver(envelope) => &envelope.target.topic,
            Fate::Refuse(_) => &own.dead_letter,
        }
    }

    /// Key and value as they are produced. A pointer has a key all the same: a compacted topic
    /// takes nothing without one.
    pub fn key_and_value(&self) -> (Option<Cow<'_, [u8]>>, Option<&[u8]>) {
        match &self.fate {
            Fate::Refuse(obituary) if obituary.trim == Trim::ToPointer => {
                (Some(Cow::Owned(self.source.to_string().into_bytes())), None)
            }
            _ => (
                self.record.key.as_deref().map(Cow::Borrowed),
                self.record.value.as_deref(),
            ),
        }
    }

    /// The headers as they are produced.
    pub fn headers(&self, mode: HeaderMode) -> Vec<OutHeader<'_>> {
        match &self.fate {
            Fate::Schedule(_, envelope) => envelope.waiting(self.record),
            Fate::Deliver(envelope) => envelope.delivered(self.record, mode),
            Fate::Refuse(obituary) => obituary.headers(self.record, self.source),
        }
    }

    /// Changes the fate, because Kafka refused the record where it was going.
    pub fn refused(
        &mut self,
        refusal: Refusal,
        policy: &RetryPolicy,
        table: &LevelTable,
        now: Timestamp,
    ) {
        self.fate = match (&self.fate, refusal) {
            (Fate::Refuse(obituary), Refusal::TooLarge | Refusal::Never(..)) => {
                Fate::Refuse(trimmed(obituary))
            }
            (_, Refusal::TooLarge) => {
                let detail = format!("{} bytes are more than the topic takes", self.record.size());
                Fate::Refuse(Obituary::new(Reason::TooLarge, detail))
            }
            (_, Refusal::Never(reason, why)) => Fate::Refuse(Obituary::new(reason, why)),
            (Fate::Deliver(envelope), Refusal::Away { leaderless, why }) => {
                self.wait_again(envelope, leaderless, why, policy, table, now)
            }
            // Topics of ours are away: that is Kafka's trouble, not the record's.
            (own, _) => own.clone(),
        };
        self.partition = None;
    }

    fn wait_again(
        &self,
        envelope: &Envelope,
        leaderless: bool,
        why: String,
        policy: &RetryPolicy,
        table: &LevelTable,
        now: Timestamp,
    ) -> Fate {
        let waited = level_of(self.record).and_then(|level| table.delay(level.min(table.last())));
        let away_for = now.since(envelope.first_due(waited.unwrap_or_default()));
        // Time in which nobody tried says nothing about the target.
        let tried_enough = envelope.attempt as usize >= policy.ladder.len();
        if tried_enough && away_for >= policy.retry_for {
            let tried = humantime::format_duration(Duration::from_secs(away_for.as_secs()));
            return Fate::Refuse(Obituary::new(
                Reason::TargetUnavailable,
                format!("{why}; tried for {tried}"),
            ));
        }
        let (level, delay) = policy.level(envelope.attempt, leaderless, table);
        Fate::Schedule(level, envelope.reparked(now, delay))
    }
}

impl RetryPolicy {
    /// The level at hand for the next wait: the one nearest to the ladder's step.
    fn level(&self, attempt: u32, leaderless: bool, table: &LevelTable) -> (Level, Duration) {
        let step = self.ladder.get(attempt as usize).or(self.ladder.last());
        let nearest = table.nearest(step.copied().unwrap_or(LEADERLESS_WAIT));
        if !leaderless || nearest.1 <= LEADERLESS_WAIT {
            return nearest;
        }
        let short = table.iter().filter(|(_, delay)| *delay <= LEADERLESS_WAIT);
        short.max_by_key(|(_, delay)| *delay).unwrap_or(nearest)
    }
}

fn trimmed(obituary: &Obituary) -> Obituary {
    let trim = match obituary.trim {
        Trim::Nothing => Trim::Detail,
        Trim::Detail | Trim::ToPointer => Trim::ToPointer,
    };
    Obituary {
        trim,
        ..obituary.clone()
    }
}

#[cfg(test)]
mod tests;

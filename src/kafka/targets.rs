//! What is known of the topics that records are produced to: partitions, leaders, recent silence.
//! Called by `flow::dispatch` before every transaction, because a partition without a leader must
//! not enter one: the coordinator could not finish it, and all other targets would wait.

use std::collections::HashMap;
use std::time::{Duration, Instant};

use rdkafka::error::RDKafkaErrorCode;
use rdkafka::producer::{BaseProducer, Producer};

use super::acks::Acks;
use crate::core::partitioner::partition_of;

/// How old an answer may be. A leader's loss must be seen within two seconds.
const FRESH: Duration = Duration::from_secs(1);
/// How long a partition that did not answer is left alone: twice the time after which a broker's
/// loss shows in the metadata.
const SILENCE: Duration = Duration::from_secs(18);
/// How long a topic that refused to be written is left alone.
const REFUSED: Duration = Duration::from_secs(30);
/// From so many topics on, one question about all is cheaper than one about each.
const MANY: usize = 16;
const ASK: Duration = Duration::from_secs(2);

/// Where a record can go now.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Place {
    /// To this partition.
    Partition(i32),
    /// Nowhere: the topic has no such partition.
    NoSuchPartition(String),
    /// Nowhere now.
    Away {
        /// Only a leader is missing.
        leaderless: bool,
        /// In words.
        why: String,
    },
    /// Kafka itself does not answer.
    Unreachable,
}

#[derive(Debug)]
struct Topic {
    asked: Instant,
    state: State,
}

#[derive(Debug)]
enum State {
    /// Whether each partition has a leader.
    Partitions(Vec<bool>),
    Away(String),
}

/// The topics that this worker produces to.
#[derive(Debug, Default)]
pub struct Targets {
    topics: HashMap<String, Topic>,
    silent: HashMap<(String, i32), Instant>,
    refused: HashMap<String, (Instant, String)>,
    turn: usize,
}

impl Targets {
    /// The partition for a record with this key, or the one that is fixed.
    pub fn place(
        &mut self,
        client: &BaseProducer<Acks>,
        topic: &str,
        fixed: Option<i32>,
        key: Option<&[u8]>,
    ) -> Place {
        self.forget_old_trouble();
        if let Some((_, why)) = self.refused.get(topic) {
            return Place::Away {
                leaderless: false,
                why: why.clone(),
            };
        }
        // A partition that seems not to exist may just have been added.
        if fixed.is_some_and(|partition| self.lacks(topic, partition)) {
            self.topics.remove(topic);
        }
        if !self.refresh(client, topic) {
            return Place::Unreachable;
        }
        let leaders = match self.topics.get(topic).map(|t| &t.state) {
            Some(State::Partitions(leaders)) => leaders,
            Some(State::Away(why)) => {
                return Place::Away {
                    leaderless: false,
                    why: why.clone(),
                };
            }
            None => return Place::Unreachable,
        };
        let count = i32::try_from(leaders.len()).unwrap_or(i32::MAX);
        let usable = |partition: i32| {
            leaders.get(partition as usize).copied().unwrap_or(false)
                && !self.silent.contains_key(&(topic.to_owned(), partition))
        };
        let chosen = match (fixed, key) {
            (Some(partition), _) if partition >= count => {
                return Place::NoSuchPartition(format!(
                    "topic {topic} has {count} partitions, so there is no {partition}"
                ));
            }
            (Some(partition), _) => partition,
            (None, Some(key)) => partition_of(key, count),
            (None, None) => {
                // In turn over the partitions that can take it.
                self.turn = self.turn.wrapping_add(1);
                let first = (self.turn % leaders.len().max(1)) as i32;
                (0..count)
                    .map(|i| (first + i) % count)
                    .find(|p| usable(*p))
                    .unwrap_or(first)
            }
        };
        if usable(chosen) {
            return Place::Partition(chosen);
        }
        Place::Away {
            leaderless: true,
            why: format!("partition {chosen} of {topic} has no leader"),
        }
    }

    fn lacks(&self, topic: &str, partition: i32) -> bool {
        let known = self.topics.get(topic).map(|topic| &topic.state);
        matches!(known, Some(State::Partitions(leaders)) if partition as usize >= leaders.len())
    }

    /// Leaves a partition alone for a while, because it did not answer. `false` if Kafka itself
    /// does not answer: then that says nothing about the partition.
    pub fn note_silent(
        &mut self,
        client: &BaseProducer<Acks>,
        topic: &str,
        partition: i32,
    ) -> bool {
        if self.silent.contains_key(&(topic.to_owned(), partition)) {
            return true;
        }
        self.topics.remove(topic);
        let reachable = self.refresh(client, topic);
        if reachable {
            self.silent
                .insert((topic.to_owned(), partition), Instant::now());
        }
        reachable
    }

    /// Leaves a topic alone for a while, because it cannot be written.
    pub fn note_refused(&mut self, topic: &str, why: &str) {
        self.topics.remove(topic);
        self.refused
            .insert(topic.to_owned(), (Instant::now(), why.to_owned()));
    }

    fn forget_old_trouble(&mut self) {
        self.silent.retain(|_, since| since.elapsed() < SILENCE);
        self.refused
            .retain(|_, (since, _)| since.elapsed() < REFUSED);
    }

    /// Makes sure that what is known of `topic` is fresh; `false` if Kafka does not answer.
    fn refresh(&mut self, client: &BaseProducer<Acks>, topic: &str) -> bool {
        if self
            .topics
            .get(topic)
            .is_some_and(|t| t.asked.elapsed() < FRESH)
        {
            return true;
        }
        // Topics that nobody has written to for a while are not asked for again.
        self.topics.retain(|_, t| t.asked.elapsed() < 10 * FRESH);
        let all = self.topics.len() >= MANY;
        let Ok(answer) = client.client().fetch_metadata((!all).then_some(topic), ASK) else {
            return false;
        };
        let asked = Instant::now();
        for found in answer.topics() {
            if found.name() == topic || self.topics.contains_key(found.name()) {
                self.topics.insert(
                    found.name().to_owned(),
                    Topic {
                        asked,
                        state: state_of(found),
                    },
                );
            }
        }
        self.topics
            .entry(topic.to_owned())
            .or_insert_with(|| Topic {
                asked,
                state: missing(topic),
            });
        true
    }
}

fn state_of(topic: &rdkafka::metadata::MetadataTopic) -> State {
    match topic.error().map(RDKafkaErrorCode::from) {
        // Some of its partitions have no leader: the others can be written.
        None | Some(RDKafkaErrorCode::LeaderNotAvailable) if !topic.partitions().is_empty() => {
            let mut leaders: Vec<(i32, bool)> = topic
                .partitions()
                .iter()
                .map(|p| (p.id(), p.leader() >= 0))
                .collect();
            leaders.sort_unstable();
            State::Partitions(leaders.into_iter().map(|(_, led)| led).collect())
        }
        Some(RDKafkaErrorCode::TopicAuthorizationFailed) => {
            State::Away(format!("not authorized for topic {}", topic.name()))
        }
        _ => missing(topic.name()),
    }
}

fn missing(topic: &str) -> State {
    State::Away(format!("topic {topic} does not exist"))
}

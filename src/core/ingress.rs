//! Which topics delayd reads, where their messages go, and which topics it keeps for itself.
//! Built by `config`, asked by `route`; knows nothing of messages.

use regex::Regex;

use super::level::Level;
use super::record::Partition;

/// Which ingress topics a route reads, and where their messages go.
#[derive(Debug, Clone)]
pub struct Route {
    /// The ingress topics.
    pub from: Ingress,
    /// The real topic; with a pattern, `$1` is its first group. `None`: the header `REAL_TOPIC` names it.
    pub to: Option<String>,
    /// The level of messages that carry none.
    pub level: Option<Level>,
    /// Which partition of the real topic.
    pub partition: TargetPartition,
}

/// The ingress side of a route.
#[derive(Debug, Clone)]
pub enum Ingress {
    /// One topic.
    Topic(String),
    /// Every topic that matches.
    Pattern(Regex),
}

/// How the partition of the real topic is chosen.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TargetPartition {
    /// By the key.
    Key,
    /// The one that the message had in the ingress topic.
    Same,
}

impl Ingress {
    /// Whether this route reads `topic`.
    pub fn matches(&self, topic: &str) -> bool {
        match self {
            Ingress::Topic(name) => name == topic,
            Ingress::Pattern(pattern) => pattern.is_match(topic),
        }
    }
}

impl Route {
    /// The real topic of messages from `from`, where the route names one.
    pub(super) fn target(&self, from: &str) -> Option<String> {
        let to = self.to.as_deref()?;
        match &self.from {
            Ingress::Topic(_) => Some(to.to_owned()),
            Ingress::Pattern(pattern) => pattern.captures(from).map(|groups| {
                let mut target = String::new();
                groups.expand(to, &mut target);
                target
            }),
        }
    }
}

/// The topics that delayd keeps for itself: never a target.
#[derive(Debug, Clone)]
pub struct OwnTopics {
    /// The schedule topic; its shards and imports begin with this name and an underscore.
    pub schedule: String,
    /// Dead letters.
    pub dead_letter: String,
    /// Clock probes.
    pub clock: String,
}

impl OwnTopics {
    /// The level of the queue that this partition is; 0 if it is none.
    pub fn level_of(&self, partition: &Partition) -> u32 {
        if *partition.topic != self.schedule {
            return 0;
        }
        Level::of_partition(partition.partition).map_or(0, Level::number)
    }

    /// Whether a message must never be sent to `topic`.
    pub fn contains(&self, topic: &str) -> bool {
        let shard = topic.strip_prefix(self.schedule.as_str());
        topic.starts_with("__")
            || topic == self.dead_letter
            || topic == self.clock
            || shard.is_some_and(|rest| rest.is_empty() || rest.starts_with('_'))
    }
}

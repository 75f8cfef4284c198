//! The keys of delayd.toml that hold one value, with their variables and flags.
//! Read by `file`, `variables` and `resolve`; the one list of names, so that no two places disagree.

use std::collections::BTreeMap;

use super::errors::Origin;
use super::kafka::Side;

/// What a key holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    Text,
    Integer,
    Boolean,
}

impl Kind {
    /// In words, as errors name it.
    pub(super) fn expected(self) -> &'static str {
        match self {
            Kind::Text => "text in quotes",
            Kind::Integer => "a whole number without quotes",
            Kind::Boolean => "true or false without quotes",
        }
    }
}

/// One key: its path in delayd.toml, its variable, what it holds.
#[derive(Debug)]
pub(super) struct Key {
    pub(super) path: &'static str,
    pub(super) variable: &'static str,
    pub(super) kind: Kind,
}

const fn key(path: &'static str, variable: &'static str, kind: Kind) -> Key {
    Key {
        path,
        variable,
        kind,
    }
}

/// Every key that holds one value.
pub(super) const KEYS: &[Key] = &[
    key("name", "DELAYD_NAME", Kind::Text),
    key("guarantee", "DELAYD_GUARANTEE", Kind::Text),
    key("workers", "DELAYD_WORKERS", Kind::Integer),
    key("instance_id", "DELAYD_INSTANCE_ID", Kind::Text),
    key("leave", "DELAYD_LEAVE", Kind::Boolean),
    key("headers", "DELAYD_HEADERS", Kind::Text),
    key("pending", "DELAYD_PENDING", Kind::Text),
    key("retry", "DELAYD_RETRY", Kind::Text),
    key("retry_for", "DELAYD_RETRY_FOR", Kind::Text),
    key("keep", "DELAYD_KEEP", Kind::Text),
    key("create_topics", "DELAYD_CREATE_TOPICS", Kind::Boolean),
    key("wait", "DELAYD_WAIT", Kind::Text),
    key("topics.schedule", "DELAYD_SCHEDULE_TOPIC", Kind::Text),
    key(
        "topics.partitions",
        "DELAYD_TOPIC_PARTITIONS",
        Kind::Integer,
    ),
    key(
        "topics.replication_factor",
        "DELAYD_REPLICATION_FACTOR",
        Kind::Integer,
    ),
    key("http.listen", "DELAYD_HTTP", Kind::Text),
];

/// The key with this path.
pub(super) fn find(path: &str) -> Option<&'static Key> {
    KEYS.iter().find(|key| key.path == path)
}

/// What may stand in the table `prefix` ("" is the top), tables included.
pub(super) fn children(prefix: &str) -> Vec<&'static str> {
    let mut names: Vec<_> = KEYS
        .iter()
        .filter_map(|key| match prefix {
            "" => key.path.split('.').next(),
            _ => key.path.strip_prefix(prefix)?.strip_prefix('.'),
        })
        .collect();
    if prefix.is_empty() {
        names.extend(["kafka", "route"]);
    }
    names.dedup();
    names
}

/// A value as text and where it was written. No `Debug`: it may be a password.
#[derive(Clone)]
pub(super) struct Setting {
    pub(super) value: String,
    pub(super) origin: Origin,
}

/// A `[[route]]` as it was written.
pub(super) struct RouteText {
    pub(super) origin: Origin,
    pub(super) from: Option<Setting>,
    pub(super) to: Option<Setting>,
    pub(super) level: Option<Setting>,
    pub(super) partition: Option<Setting>,
}

/// All sources laid over each other: a stronger one replaces what a weaker one set.
#[derive(Default)]
pub(super) struct Layers {
    /// By path, as in [`KEYS`].
    pub(super) values: BTreeMap<&'static str, Setting>,
    /// By librdkafka's own name of the key, never an alias.
    pub(super) kafka: BTreeMap<(Side, String), Setting>,
    pub(super) routes: Vec<RouteText>,
}

#[cfg(test)]
mod tests;

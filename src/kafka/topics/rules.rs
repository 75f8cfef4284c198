//! What delayd's topics must be like: the settings they are created with, and those that would
//! lose messages. Pure; called through `topics`.

use std::collections::{BTreeMap, HashMap};
use std::time::Duration;

use super::Needed;
use crate::config::Config;
use crate::core::ingress::Ingress;

/// The schedule topic that this configuration needs.
pub fn schedule(config: &Config) -> Needed {
    let log_append = ("message.timestamp.type", "LogAppendTime");
    let levels = i32::try_from(config.levels.count()).unwrap_or(i32::MAX);
    Needed {
        name: config.topics.schedule.clone(),
        partitions: levels,
        grows: true,
        settings: vec![
            ("cleanup.policy", "delete"),
            log_append,
            ("retention.ms", "-1"),
            ("retention.bytes", "-1"),
        ],
    }
}

/// The topics that this configuration needs. Ingress topics that a pattern matches are not ours
/// to create.
pub fn needed(config: &Config) -> Vec<Needed> {
    let log_append = ("message.timestamp.type", "LogAppendTime");
    let mut topics = vec![
        schedule(config),
        Needed {
            name: config.dead_letter(),
            partitions: config.topics.partitions,
            grows: false,
            settings: vec![],
        },
        Needed {
            name: config.clock(),
            partitions: 1,
            grows: false,
            settings: vec![
                ("cleanup.policy", "delete"),
                log_append,
                ("retention.ms", "300000"),
                ("segment.ms", "300000"),
            ],
        },
    ];
    for route in &config.routes {
        if let Ingress::Topic(name) = &route.from {
            topics.push(Needed {
                name: name.clone(),
                partitions: config.topics.partitions,
                grows: false,
                settings: vec![log_append],
            });
        }
    }
    topics
}

/// What is dangerous about the settings of the schedule topic: each with its cure.
pub fn dangers(config: &Config, settings: &BTreeMap<String, String>) -> Vec<String> {
    let topic = &config.topics.schedule;
    let cure = |setting: &str| {
        format!(
            "kafka-configs.sh --alter --entity-type topics --entity-name {topic} --add-config {setting}"
        )
    };
    let mut dangers = Vec::new();
    let value = |key: &str| settings.get(key).map_or("", String::as_str);
    if value("cleanup.policy").contains("compact") {
        dangers.push(format!(
            "topic {topic} is compacted: of two messages with one key, one would vanish; run: {}",
            cure("cleanup.policy=delete")
        ));
    }
    if value("message.timestamp.type") == "CreateTime" {
        dangers.push(format!(
            "topic {topic} has CreateTime: waits could not be checked; run: {}",
            cure("message.timestamp.type=LogAppendTime")
        ));
    }
    let longest = config
        .levels
        .iter()
        .map(|(_, delay)| delay)
        .max()
        .unwrap_or_default();
    let keeps = value("retention.ms")
        .parse::<i64>()
        .ok()
        .and_then(|ms| u64::try_from(ms).ok())
        .map(Duration::from_millis);
    if keeps.is_some_and(|keeps| keeps <= longest) {
        let longest = humantime::format_duration(longest);
        dangers.push(format!(
            "topic {topic} deletes messages before the longest delay ({longest}) is over; run: {}",
            cure("retention.ms=-1")
        ));
    }
    if value("retention.bytes")
        .parse::<i64>()
        .is_ok_and(|bytes| bytes >= 0)
    {
        dangers.push(format!(
            "topic {topic} deletes messages when it grows large; run: {}",
            cure("retention.bytes=-1")
        ));
    }
    dangers
}

/// How long each ingress topic keeps its records.
pub fn retention(
    settings: &HashMap<String, BTreeMap<String, String>>,
) -> HashMap<String, Duration> {
    let kept = |values: &BTreeMap<String, String>| match values
        .get("retention.ms")?
        .parse::<i64>()
        .ok()?
    {
        ms if ms < 0 => Some(Duration::MAX),
        ms => Some(Duration::from_millis(ms.unsigned_abs())),
    };
    settings
        .iter()
        .filter_map(|(topic, values)| Some((topic.clone(), kept(values)?)))
        .collect()
}

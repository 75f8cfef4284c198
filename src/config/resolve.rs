//! From the finished layers to a `Config`: every value parsed, every rule between values checked.
//! Called by `Config::load`; goes on after a fault with the default, so that all faults show at once.

use std::net::{Ipv4Addr, SocketAddr};
use std::path::PathBuf;
use std::time::Duration;

use super::errors::{Fault, Problems};
use super::keys::Layers;
use super::routes::{self, Own};
use super::{Config, Guarantee, HeaderMode, PendingMode, Topics, kafka, values};
use crate::core::level::LevelTable;

const DAY: Duration = Duration::from_secs(24 * 60 * 60);

/// RocketMQ's shape of a retry ladder, from seconds to minutes.
const RETRY: [u64; 7] = [10, 30, 60, 120, 180, 300, 600];

/// The configuration; worthless if `problems` are not empty afterwards.
pub(super) fn resolve(
    layers: &Layers,
    levels: LevelTable,
    levels_path: Option<PathBuf>,
    problems: &mut Problems,
) -> Config {
    let mut config = Config {
        levels_path,
        kafka: kafka::resolve(&layers.kafka, problems),
        ..defaults(levels)
    };
    single_values(&mut config, layers, problems);
    check_own_topics(&config, layers, problems);
    let own = Own {
        ingress: config.ingress(),
        internal: [
            ("schedule", config.topics.schedule.clone()),
            ("dead-letter", config.dead_letter()),
            ("clock", config.clock()),
        ],
    };
    config.warnings = config.levels.warnings();
    if let Some(path) = &config.levels_path {
        config
            .warnings
            .iter_mut()
            .for_each(|w| *w = format!("{}: {w}", path.display()));
    }
    config.routes = routes::resolve(
        &layers.routes,
        &own,
        &config.levels,
        problems,
        &mut config.warnings,
    );
    if config.leave && config.instance_id.is_none() {
        config.warnings.push(
            "leave has no effect without instance_id: such a process always leaves".to_owned(),
        );
    }
    config
}

fn defaults(levels: LevelTable) -> Config {
    Config {
        name: "delayd".to_owned(),
        guarantee: Guarantee::ExactlyOnce,
        workers: 2,
        instance_id: None,
        leave: false,
        headers: HeaderMode::Keep,
        pending: PendingMode::Shorten,
        retry: RETRY.map(Duration::from_secs).to_vec(),
        retry_for: DAY,
        keep: DAY,
        topics: Topics {
            schedule: "SCHEDULE_TOPIC_XXXX".to_owned(),
            partitions: 4,
            replication_factor: -1,
        },
        routes: Vec::new(),
        kafka: kafka::KafkaSettings::default(),
        http: Some(SocketAddr::from((Ipv4Addr::LOCALHOST, 9464))),
        create_topics: false,
        wait: Duration::from_secs(5 * 60),
        levels,
        levels_path: None,
        warnings: Vec::new(),
    }
}

fn single_values(config: &mut Config, layers: &Layers, problems: &mut Problems) {
    let mut set = Setter { layers, problems };
    set.with("name", &mut config.name, values::name);
    set.with("guarantee", &mut config.guarantee, |text| {
        values::choice(
            text,
            &[
                ("exactly-once", Guarantee::ExactlyOnce),
                ("at-least-once", Guarantee::AtLeastOnce),
            ],
        )
    });
    set.with("workers", &mut config.workers, |text| {
        values::whole(text, 1..=64).map(|number| usize::try_from(number).unwrap_or(1))
    });
    set.with("instance_id", &mut config.instance_id, |text| {
        values::instance(text).map(Some)
    });
    set.with("leave", &mut config.leave, values::truth);
    set.with("headers", &mut config.headers, |text| {
        values::choice(
            text,
            &[("keep", HeaderMode::Keep), ("strip", HeaderMode::Strip)],
        )
    });
    set.with("pending", &mut config.pending, |text| {
        values::choice(
            text,
            &[
                ("shorten", PendingMode::Shorten),
                ("keep", PendingMode::Keep),
            ],
        )
    });
    set.with("retry", &mut config.retry, values::retry);
    set.with("retry_for", &mut config.retry_for, values::duration);
    set.with("keep", &mut config.keep, values::duration);
    set.with(
        "topics.schedule",
        &mut config.topics.schedule,
        values::topic,
    );
    set.with(
        "topics.partitions",
        &mut config.topics.partitions,
        values::partitions,
    );
    set.with(
        "topics.replication_factor",
        &mut config.topics.replication_factor,
        values::replication_factor,
    );
    set.with("http.listen", &mut config.http, values::http);
    set.with("create_topics", &mut config.create_topics, values::truth);
    set.with("wait", &mut config.wait, values::duration);
}

struct Setter<'a> {
    layers: &'a Layers,
    problems: &'a mut Problems,
}

impl Setter<'_> {
    /// Replaces the default in `place` by what was written under `path`, if anything was.
    fn with<T>(&mut self, path: &str, place: &mut T, parse: impl FnOnce(&str) -> Result<T, Fault>) {
        let Some(setting) = self.layers.values.get(path) else {
            return;
        };
        match parse(&setting.value) {
            Ok(value) => *place = value,
            Err(fault) => self.problems.add_fault(setting.origin.clone(), path, fault),
        }
    }
}

fn check_own_topics(config: &Config, layers: &Layers, problems: &mut Problems) {
    let schedule = &config.topics.schedule;
    let Some(setting) = layers
        .values
        .get("topics.schedule")
        .or_else(|| layers.values.get("name"))
    else {
        return;
    };
    let others = [config.ingress(), config.dead_letter(), config.clock()];
    let what = if others.contains(schedule) {
        format!("topics.schedule: {schedule:?} is another topic of delayd's own")
    } else if schedule.starts_with("__") {
        format!("topics.schedule: {schedule:?} would be a topic of Kafka's own")
    } else {
        return;
    };
    problems.add(setting.origin.clone(), what, "choose another name");
}

#[cfg(test)]
mod tests;

//! What delayd was told: defaults, delayd.toml, variables and flags made into one checked `Config`.
//! Called once by `main` (and `load_levels` on SIGHUP); must not talk to Kafka nor show a secret.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::core::envelope::HeaderMode;
use crate::core::ingress::Route;
use crate::core::level::LevelTable;
use crate::core::level_queue::PendingMode;

mod document;
mod errors;
mod file;
mod guards;
mod kafka;
mod keys;
mod levels;
mod resolve;
mod routes;
mod values;
mod variables;

pub use errors::{ConfigErrors, Origin, Problem};
pub use kafka::{KafkaSettings, is_secret};
pub use levels::load_levels;

use document::Document;
use errors::Problems;

const CONFIG_VARIABLE: &str = "DELAYD_CONFIG";
const LEVELS_VARIABLE: &str = "DELAYD_LEVELS";

/// Everything that can be configured, checked.
#[derive(Debug, Clone)]
pub struct Config {
    /// Prefix of topics, groups and transactional ids.
    pub name: String,
    /// What a crash may repeat.
    pub guarantee: Guarantee,
    /// Threads that share the levels of this process.
    pub workers: usize,
    /// The place that this process keeps over a restart.
    pub instance_id: Option<String>,
    /// Whether SIGTERM gives that place up.
    pub leave: bool,
    /// What becomes of delayd's headers on delivery.
    pub headers: HeaderMode,
    /// What a shorter level does to messages that wait already.
    pub pending: PendingMode,
    /// How long to wait for a target that is away, by attempt; never empty.
    pub retry: Vec<Duration>,
    /// When to give such a target up.
    pub retry_for: Duration,
    /// How long delivered records stay in the schedule topic.
    pub keep: Duration,
    /// Topics of our own.
    pub topics: Topics,
    /// From where to where; the built-in route is the last unless a route replaces it.
    pub routes: Vec<Route>,
    /// Settings for librdkafka.
    pub kafka: KafkaSettings,
    /// Where probes and metrics are served, if at all.
    pub http: Option<SocketAddr>,
    /// Whether to create missing topics.
    pub create_topics: bool,
    /// How long to wait for Kafka at the start.
    pub wait: Duration,
    /// The level table.
    pub levels: LevelTable,
    /// The file that it came from; `None`: RocketMQ's table.
    pub levels_path: Option<PathBuf>,
    /// What is odd but allowed.
    pub warnings: Vec<String>,
}

/// What a crash may repeat.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Guarantee {
    /// Nothing: delivery and progress are one transaction.
    ExactlyOnce,
    /// What was in flight.
    AtLeastOnce,
}

impl Guarantee {
    /// As it is configured.
    pub fn name(self) -> &'static str {
        match self {
            Guarantee::ExactlyOnce => "exactly-once",
            Guarantee::AtLeastOnce => "at-least-once",
        }
    }
}

/// Topics of our own.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Topics {
    /// The topic whose partitions are the level queues.
    pub schedule: String,
    /// Partitions of the other topics that delayd creates.
    pub partitions: i32,
    /// Replicas of topics that delayd creates; -1: the broker's default.
    pub replication_factor: i32,
}

/// What the command line said; everything may be absent. Texts are checked with the rest.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct CommonFlags {
    /// `--config`
    pub config: Option<PathBuf>,
    /// `--levels`
    pub levels: Option<PathBuf>,
    /// `--bootstrap-server`
    pub bootstrap_server: Option<String>,
    /// `--name`
    pub name: Option<String>,
    /// `--guarantee`
    pub guarantee: Option<String>,
    /// `--workers`
    pub workers: Option<String>,
    /// `--instance-id`
    pub instance_id: Option<String>,
    /// `--leave`
    pub leave: bool,
    /// `--create-topics`
    pub create_topics: bool,
    /// `--http`
    pub http: Option<String>,
    /// `--wait`
    pub wait: Option<String>,
}

/// What a process finds around it, as data, so that tests need not change their own process.
#[derive(Clone)]
pub struct Surroundings {
    /// The environment.
    pub variables: Vec<(String, String)>,
    /// Where `delayd.toml` and `levels.toml` are looked for; empty: the working directory.
    pub directory: PathBuf,
}

impl Surroundings {
    /// Those of this process.
    pub fn of_this_process() -> Surroundings {
        // A value that is not UTF-8 keeps a mark, by which the loader refuses it.
        let variables = std::env::vars_os().filter_map(|(name, value)| {
            Some((
                name.into_string().ok()?,
                value.to_string_lossy().into_owned(),
            ))
        });
        Surroundings {
            variables: variables.collect(),
            directory: PathBuf::new(),
        }
    }

    fn variable(&self, name: &str) -> Option<&str> {
        let found = self
            .variables
            .iter()
            .find(|(n, value)| n == name && !value.is_empty());
        found.map(|(_, value)| value.as_str())
    }
}

impl Config {
    /// Reads all sources of this process.
    ///
    /// # Errors
    /// Everything that is wrong with them, at once.
    pub fn load(flags: &CommonFlags) -> Result<Config, ConfigErrors> {
        Config::load_from(flags, &Surroundings::of_this_process())
    }

    /// Reads all sources, weakest first: defaults, delayd.toml, variables, flags.
    ///
    /// # Errors
    /// Everything that is wrong with them, at once.
    pub fn load_from(flags: &CommonFlags, around: &Surroundings) -> Result<Config, ConfigErrors> {
        let mut problems = Problems::default();
        let mut layers = keys::Layers::default();
        let config = Place::find(
            flags.config.as_deref(),
            "--config",
            CONFIG_VARIABLE,
            "delayd.toml",
            around,
        );
        if let Some(document) = config.read(&mut problems) {
            file::read(&document, &mut layers, &mut problems);
        }
        variables::read(&around.variables, &mut layers, &mut problems);
        variables::read_flags(flags, &mut layers);
        let levels = Place::find(
            flags.levels.as_deref(),
            "--levels",
            LEVELS_VARIABLE,
            "levels.toml",
            around,
        );
        let document = levels.read(&mut problems);
        let levels_path = document.as_ref().map(|_| levels.path);
        let table = document.and_then(|document| levels::read(&document, &mut problems));
        let table = table.unwrap_or_else(levels::rocketmq);
        let config = resolve::resolve(&layers, table, levels_path, &mut problems);
        problems.or(config)
    }

    /// The defaults alone, whatever this process finds around it.
    ///
    /// # Errors
    /// Never, unless a default is wrong.
    pub fn built_in() -> Result<Config, ConfigErrors> {
        let mut problems = Problems::default();
        let config = resolve::resolve(
            &keys::Layers::default(),
            levels::rocketmq(),
            None,
            &mut problems,
        );
        problems.or(config)
    }

    /// The built-in ingress topic.
    pub fn ingress(&self) -> String {
        format!("{}-ingress", self.name)
    }

    /// Where unusable messages go.
    pub fn dead_letter(&self) -> String {
        format!("{}-dead-letter", self.name)
    }

    /// The topic of the clock's probes.
    pub fn clock(&self) -> String {
        format!("{}-clock", self.name)
    }

    /// The consumer group of the routers.
    pub fn router_group(&self) -> String {
        format!("{}-router", self.name)
    }

    /// The consumer group of the scanners.
    pub fn scanner_group(&self) -> String {
        format!("{}-scanner", self.name)
    }
}

/// A file to read: one that was named must be there, the default one may be missing.
struct Place {
    path: PathBuf,
    named_by: Option<Origin>,
}

impl Place {
    fn find(
        given: Option<&Path>,
        flag: &'static str,
        variable: &str,
        default: &str,
        around: &Surroundings,
    ) -> Place {
        let by_variable = || {
            Some((
                Path::new(around.variable(variable)?),
                Origin::Variable(variable.to_owned()),
            ))
        };
        let named = given
            .map(|path| (path, Origin::Flag(flag)))
            .or_else(by_variable);
        match named {
            Some((path, origin)) => Place {
                path: around.directory.join(path),
                named_by: Some(origin),
            },
            None => Place {
                path: around.directory.join(default),
                named_by: None,
            },
        }
    }

    fn read(&self, problems: &mut Problems) -> Option<Document> {
        let error = match Document::read(&self.path) {
            Ok(document) => return Some(document),
            Err(error) => error,
        };
        if self.named_by.is_none() && error.kind() == std::io::ErrorKind::NotFound {
            return None;
        }
        let origin = self
            .named_by
            .clone()
            .unwrap_or_else(|| Origin::File(self.path.clone()));
        let what = format!("cannot read {:?}: {error}", self.path.display().to_string());
        problems.add(origin, what, "name a TOML file that exists and may be read");
        None
    }
}

#[cfg(test)]
mod tests;

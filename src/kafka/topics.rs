//! The topics that delayd needs: what they must be like, creating them, and checking them.
//! Called by `app` at start and at a reload, and by the commands `topics create` and `check`.

mod rules;

use std::collections::{BTreeMap, HashMap};
use std::time::Duration;

use anyhow::{Context as _, anyhow, bail};
use rdkafka::admin::{
    AdminClient, AdminOptions, NewPartitions, NewTopic, ResourceSpecifier, TopicReplication,
};
use rdkafka::config::FromClientConfigAndContext;
use rdkafka::error::RDKafkaErrorCode;
use serde::Serialize;

use super::acks::Quiet;
use super::{convert, settings};
use crate::config::Config;
use crate::core::record::Partition;

pub use rules::{dangers, needed, retention, schedule};

const ASK: Duration = Duration::from_secs(10);

/// A topic as delayd needs it.
#[derive(Debug, Clone)]
pub struct Needed {
    /// Its name.
    pub name: String,
    /// At least so many partitions.
    pub partitions: i32,
    /// Whether more partitions are added where there are fewer: only to level queues.
    pub grows: bool,
    /// The settings it is created with.
    pub settings: Vec<(&'static str, &'static str)>,
}

/// What was done about a topic, or found of it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum State {
    /// It did not exist and was created.
    Created,
    /// It had fewer partitions than the level table needs.
    Grown {
        /// So many.
        from: i32,
    },
    /// It was there.
    Exists,
    /// It does not exist.
    Missing,
}

/// A topic and its state.
#[derive(Debug, Clone, Serialize)]
pub struct Report {
    /// The topic.
    pub topic: String,
    /// How many partitions it has, or needs.
    pub partitions: i32,
    /// What was done or found.
    pub state: State,
}

/// Questions and orders about topics.
pub struct Topics {
    admin: AdminClient<Quiet>,
    replication: i32,
}

impl std::fmt::Debug for Topics {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Topics").finish_non_exhaustive()
    }
}

impl Topics {
    /// A client for `config`.
    pub fn new(config: &Config) -> anyhow::Result<Topics> {
        let client = settings::admin(config);
        let admin = AdminClient::from_config_and_context(&client, Quiet)
            .context("cannot create an admin client")?;
        Ok(Topics {
            admin,
            replication: config.topics.replication_factor,
        })
    }

    /// The number of partitions of every topic.
    pub fn partitions(&self, timeout: Duration) -> anyhow::Result<HashMap<String, i32>> {
        let metadata =
            tokio::task::block_in_place(|| self.admin.inner().fetch_metadata(None, timeout))?;
        let counts = metadata.topics().iter().map(|t| {
            (
                t.name().to_owned(),
                i32::try_from(t.partitions().len()).unwrap_or(i32::MAX),
            )
        });
        Ok(counts.collect())
    }

    /// What there is of the needed topics.
    pub fn find(&self, needed: &[Needed]) -> anyhow::Result<Vec<Report>> {
        let there = self.partitions(ASK)?;
        let report = |need: &Needed| match there.get(&need.name) {
            Some(&partitions) if partitions > 0 => Report {
                topic: need.name.clone(),
                partitions,
                state: State::Exists,
            },
            _ => Report {
                topic: need.name.clone(),
                partitions: need.partitions,
                state: State::Missing,
            },
        };
        Ok(needed.iter().map(report).collect())
    }

    /// Creates what is missing (if `create`) and adds the partitions that new levels need.
    pub async fn ensure(&self, needed: &[Needed], create: bool) -> anyhow::Result<Vec<Report>> {
        let mut reports = self.find(needed)?;
        for (need, report) in needed.iter().zip(&mut reports) {
            match report.state {
                State::Missing if create => self.create(need, report).await?,
                State::Exists if need.grows && report.partitions < need.partitions => {
                    self.grow(need, report).await?
                }
                _ => {}
            }
        }
        Ok(reports)
    }

    async fn create(&self, need: &Needed, report: &mut Report) -> anyhow::Result<()> {
        let mut topic = NewTopic::new(
            &need.name,
            need.partitions,
            TopicReplication::Fixed(self.replication),
        );
        for (key, value) in &need.settings {
            topic = topic.set(key, value);
        }
        let results = self.admin.create_topics(&[topic], &options()).await;
        let result = results
            .with_context(|| format!("cannot create topic {}", need.name))?
            .pop();
        match result {
            Some(Ok(_)) => report.state = State::Created,
            // Somebody else was quicker: that is what we wanted.
            Some(Err((_, RDKafkaErrorCode::TopicAlreadyExists))) => report.state = State::Exists,
            Some(Err((name, code))) => bail!("cannot create topic {name}: {code}"),
            None => bail!("cannot create topic {}: Kafka did not answer", need.name),
        }
        Ok(())
    }

    async fn grow(&self, need: &Needed, report: &mut Report) -> anyhow::Result<()> {
        let count = usize::try_from(need.partitions)?;
        let results = self
            .admin
            .create_partitions(&[NewPartitions::new(&need.name, count)], &options())
            .await;
        let result = results
            .with_context(|| format!("cannot add partitions to topic {}", need.name))?
            .pop();
        match result {
            // Somebody else was quicker: that is what we wanted.
            Some(Ok(_) | Err((_, RDKafkaErrorCode::InvalidPartitions))) => {}
            Some(Err((name, code))) => {
                bail!("cannot add partitions to topic {name}, which needs {count}: {code}")
            }
            None => bail!(
                "cannot add partitions to topic {}: Kafka did not answer",
                need.name
            ),
        }
        report.state = State::Grown {
            from: report.partitions,
        };
        report.partitions = need.partitions;
        Ok(())
    }

    /// The settings of topics, as Kafka has them.
    pub async fn settings(
        &self,
        topics: &[String],
    ) -> anyhow::Result<HashMap<String, BTreeMap<String, String>>> {
        let asked: Vec<_> = topics.iter().map(|t| ResourceSpecifier::Topic(t)).collect();
        let answers = self
            .admin
            .describe_configs(&asked, &options())
            .await
            .context("cannot read the settings of topics")?;
        let mut found = HashMap::new();
        for (topic, answer) in topics.iter().zip(answers) {
            let resource = answer
                .map_err(|code| anyhow!("cannot read the settings of topic {topic}: {code}"))?;
            let entries = resource
                .entries
                .into_iter()
                .filter_map(|e| Some((e.name, e.value?)));
            found.insert(topic.clone(), entries.collect());
        }
        Ok(found)
    }

    /// Deletes the records of partitions below the given offsets.
    pub async fn delete_records(&self, below: &BTreeMap<Partition, i64>) -> anyhow::Result<()> {
        let offsets = convert::offsets(below.iter());
        let deleted = self.admin.delete_records(&offsets, &options()).await;
        let deleted = deleted.context("cannot delete delivered records")?;
        for element in deleted.elements() {
            let partition = format!("{}-{}", element.topic(), element.partition());
            element
                .error()
                .with_context(|| format!("cannot delete delivered records of {partition}"))?;
        }
        Ok(())
    }
}

fn options() -> AdminOptions {
    AdminOptions::new()
        .request_timeout(Some(ASK))
        .operation_timeout(Some(ASK))
}

//! Both guarantees behind one face: a batch and its offsets go out together.
//! Called by `flow::dispatch`. Exactly-once opens a new transactional id when one is stuck;
//! at-least-once commits after every record is acknowledged.

use std::collections::BTreeMap;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use anyhow::Context as _;
use rdkafka::ClientConfig;
use rdkafka::producer::BaseProducer;
use tracing::debug;

use super::acks::Acks;
use super::consumer::GroupConsumer;
use super::convert;
use super::producer::{Batch, Outcome, Sender};
use super::settings::{self, Role};
use super::targets::{Place, Targets};
use super::txn::Transactions;
use crate::config::{Config, Guarantee};
use crate::core::envelope::HeaderMode;
use crate::core::fate::Shipment;
use crate::core::ingress::OwnTopics;
use crate::core::record::Partition;
use crate::ops::shutdown::StopFlag;

/// How long the id of an earlier run may take: it can be stuck with a partition that has no leader.
const OLD_ID: Duration = Duration::from_secs(4);
const NEW_ID: Duration = Duration::from_secs(20);

/// A worker's producer.
#[derive(Debug)]
pub struct Delivery {
    config: ClientConfig,
    /// Without the suffix of an id that replaced a stuck one. `None`: at-least-once.
    base_id: Option<String>,
    own: OwnTopics,
    mode: HeaderMode,
    stop: StopFlag,
    /// `None` only while it is being replaced.
    kind: Option<Kind>,
    targets: Targets,
}

#[derive(Debug)]
enum Kind {
    ExactlyOnce(Transactions),
    AtLeastOnce(Sender),
}

impl Kind {
    fn sender(&self) -> &Sender {
        match self {
            Kind::ExactlyOnce(transactions) => transactions.sender(),
            Kind::AtLeastOnce(sender) => sender,
        }
    }
}

impl Delivery {
    /// Opens worker `n`'s producer. An id of an earlier run is taken over first, which ends the
    /// transaction that a crash may have left open.
    pub fn open(
        config: &Config,
        role: Role,
        n: usize,
        own: OwnTopics,
        stop: StopFlag,
    ) -> anyhow::Result<Delivery> {
        let exactly_once = config.guarantee == Guarantee::ExactlyOnce;
        let mut delivery = Delivery {
            config: settings::producer(config),
            base_id: exactly_once.then(|| transactional_id(config, role, n)),
            own,
            mode: config.headers,
            stop,
            kind: None,
            targets: Targets::default(),
        };
        let first = delivery.connect(delivery.base_id.clone(), OLD_ID);
        match first {
            Ok(kind) => delivery.kind = Some(kind),
            Err(error) => {
                debug!(%error, "cannot take over the transactional id, trying a fresh one");
                delivery.reopen()?;
            }
        }
        Ok(delivery)
    }

    /// Replaces the producer by a fresh one, under a fresh transactional id: the old one may be
    /// stuck for as long as a partition in its transaction has no leader.
    pub fn reopen(&mut self) -> anyhow::Result<()> {
        self.kind = None; // really gone before a successor exists
        let fresh = self
            .base_id
            .as_ref()
            .map(|base| format!("{base}~{}", unix_nanos() / 1_000_000));
        self.kind = Some(self.connect(fresh, NEW_ID)?);
        Ok(())
    }

    fn connect(&self, id: Option<String>, limit: Duration) -> anyhow::Result<Kind> {
        let mut config = self.config.clone();
        if let Some(id) = &id {
            config.set("transactional.id", id);
        }
        let producer: BaseProducer<Acks> = config
            .create_with_context(Acks::default())
            .context("cannot create a producer")?;
        let patience = Duration::from_millis(settings::patience_ms(&self.config));
        let sender = Sender::new(producer, self.own.clone(), self.mode, patience);
        match id {
            None => Ok(Kind::AtLeastOnce(sender)),
            Some(id) => {
                let opened = Transactions::open(sender, limit, self.stop.clone());
                let opened =
                    opened.with_context(|| format!("cannot use transactional id {id:?}"))?;
                Ok(Kind::ExactlyOnce(opened))
            }
        }
    }

    /// Where a record for this topic can go now.
    pub fn place(&mut self, topic: &str, fixed: Option<i32>, key: Option<&[u8]>) -> Place {
        match &self.kind {
            Some(kind) => self
                .targets
                .place(kind.sender().producer(), topic, fixed, key),
            None => Place::Unreachable,
        }
    }

    /// Notes that a partition did not answer; `false` if that is Kafka's trouble as a whole.
    pub fn note_silent(&mut self, topic: &str, partition: i32) -> bool {
        let Some(kind) = &self.kind else { return false };
        self.targets
            .note_silent(kind.sender().producer(), topic, partition)
    }

    /// Notes that a topic cannot be written now.
    pub fn note_refused(&mut self, topic: &str, why: &str) {
        self.targets.note_refused(topic, why);
    }

    /// Whether records acknowledged by a failed attempt stay delivered.
    pub fn keeps_acknowledged(&self) -> bool {
        self.base_id.is_none()
    }

    /// Whether this record could be produced in a transaction of its own. Nothing of it stays.
    pub fn can_hold(&mut self, shipment: &Shipment<'_>) -> bool {
        let batch = Batch {
            shipments: std::slice::from_ref(shipment),
            acknowledged: &[None],
        };
        match &mut self.kind {
            Some(Kind::ExactlyOnce(transactions)) => transactions.can_hold(&batch) != Some(false),
            Some(Kind::AtLeastOnce(_)) | None => true,
        }
    }

    /// Whether a record's size is what the broker sees.
    pub fn is_uncompressed(&self) -> bool {
        self.config
            .get("compression.type")
            .is_none_or(|codec| codec == "none")
    }

    /// Sends the batch; when all of it is in Kafka, so are the offsets.
    pub fn attempt(
        &mut self,
        batch: &Batch<'_>,
        offsets: &BTreeMap<Partition, i64>,
        consumer: &GroupConsumer,
    ) -> anyhow::Result<Outcome> {
        match &mut self.kind {
            Some(Kind::ExactlyOnce(transactions)) => Ok(transactions.attempt(
                batch,
                &convert::offsets(offsets.iter()),
                &consumer.group()?,
            )),
            Some(Kind::AtLeastOnce(sender)) => {
                let sent = sender.send_all(batch);
                if sent.is_unfinished() {
                    return Ok(Outcome::Broken {
                        commit_called: false,
                        why: "records are neither acknowledged nor refused".to_owned(),
                        answers: sent.answers,
                    });
                }
                if sent.any_refused() || sent.cut {
                    return Ok(Outcome::Refused(sent.answers));
                }
                consumer.progress(offsets);
                Ok(Outcome::Committed(sent.stamps()))
            }
            None => Ok(Outcome::Broken {
                commit_called: false,
                why: "no producer".to_owned(),
                answers: Vec::new(),
            }),
        }
    }
}

/// Stable with an instance id, so that a restart fences its own past; otherwise never used before.
fn transactional_id(config: &Config, role: Role, n: usize) -> String {
    let instance = match &config.instance_id {
        Some(instance) => instance.clone(),
        None => format!("{:x}-{:x}", std::process::id(), unix_nanos()),
    };
    format!("{}-{instance}-{}-{n}", config.name, role.name())
}

fn unix_nanos() -> u128 {
    SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .unwrap_or_default()
        .as_nanos()
}

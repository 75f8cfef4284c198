//! Gets a batch out: chooses partitions, attempts the transaction, and judges what Kafka refuses,
//! until every record is delivered, parked again or dead-lettered together with its offset.
//! Called by the router's and the scanner's loop; knows nothing of where the batch came from.

mod judge;

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use anyhow::bail;
use tracing::{debug, info, warn};

use super::worker::{Place as Worker, Shared};
use crate::core::fate::{Fate, RetryPolicy, Shipment};
use crate::core::ingress::OwnTopics;
use crate::core::record::{Partition, Stamp};
use crate::core::time::Timestamp;
use crate::kafka::acks::Ack;
use crate::kafka::consumer::GroupConsumer;
use crate::kafka::delivery::Delivery;
use crate::kafka::producer::{Batch, Outcome};

/// A batch that needs longer goes back to its queues, so that the group does not lose this member.
const LONGEST: Duration = Duration::from_secs(60);
/// How long to wait before asking a Kafka again that does not answer.
const PAUSE: Duration = Duration::from_millis(200);
/// How long the fate of a commit may stay unknown.
const UNKNOWN: Duration = Duration::from_secs(30);

/// How a batch ended.
#[derive(Debug, PartialEq, Eq)]
pub enum Dispatched {
    /// All of it is out, and its offsets are committed.
    Done,
    /// None of its offsets are committed; it belongs back in its queues.
    RolledBack,
}

/// A worker's way out to Kafka.
#[derive(Debug)]
pub struct Dispatcher<'s> {
    shared: &'s Shared,
    worker: &'s Worker,
    delivery: Delivery,
    policy: RetryPolicy,
    own: OwnTopics,
}

/// What earlier attempts at the same batch have shown.
struct Trial {
    started: Instant,
    /// Acknowledged for good (at-least-once).
    acknowledged: Vec<Option<Stamp>>,
    /// How often in a row everything came back without anybody to blame.
    blameless: u32,
}

impl<'s> Dispatcher<'s> {
    /// Opens the worker's producer.
    pub fn open(shared: &'s Shared, worker: &'s Worker) -> anyhow::Result<Dispatcher<'s>> {
        let own = shared.own_topics();
        let delivery = Delivery::open(
            &shared.config,
            worker.role,
            worker.number,
            own.clone(),
            shared.stop.clone(),
        )?;
        let policy = RetryPolicy {
            ladder: shared.config.retry.clone(),
            retry_for: shared.config.retry_for,
        };
        Ok(Dispatcher {
            shared,
            worker,
            delivery,
            policy,
            own,
        })
    }

    /// Gets `shipments` out, and `offsets` committed with them.
    pub fn dispatch(
        &mut self,
        mut shipments: Vec<Shipment<'_>>,
        offsets: &BTreeMap<Partition, i64>,
        consumer: &GroupConsumer,
    ) -> anyhow::Result<Dispatched> {
        let mut trial = Trial::new(shipments.len());
        while !self.shared.stop.is_set() && trial.started.elapsed() < LONGEST {
            self.worker.component.beat();
            if let Err(why) = self.choose_partitions(&mut shipments, &trial) {
                self.wait_for_kafka(&why);
                if trial.any_acknowledged() {
                    continue; // giving up here would send those again
                }
                return Ok(Dispatched::RolledBack);
            }
            let batch = Batch {
                shipments: &shipments,
                acknowledged: &trial.acknowledged,
            };
            match self.delivery.attempt(&batch, offsets, consumer)? {
                Outcome::Committed(stamps) => {
                    self.count(&shipments, &stamps);
                    return Ok(Dispatched::Done);
                }
                Outcome::Refused(answers) => {
                    self.shared.metrics.transaction_aborted();
                    if let Err(why) = self.judge(&mut shipments, &mut trial, &answers) {
                        self.wait_for_kafka(&why);
                        if !trial.any_acknowledged() {
                            return Ok(Dispatched::RolledBack);
                        }
                    }
                }
                Outcome::RolledBack(why) => {
                    debug!(worker = self.worker.name(), why, "transaction aborted");
                    self.shared.metrics.transaction_aborted();
                    return Ok(Dispatched::RolledBack);
                }
                Outcome::Broken {
                    commit_called,
                    why,
                    answers,
                } => {
                    self.replace_producer(&why)?;
                    self.note_silence(&shipments, &answers);
                    if commit_called && self.was_committed(offsets, consumer)? {
                        self.count(&shipments, &vec![Stamp::Missing; shipments.len()]);
                        return Ok(Dispatched::Done);
                    }
                    return Ok(Dispatched::RolledBack);
                }
            }
        }
        Ok(Dispatched::RolledBack)
    }

    fn wait_for_kafka(&self, why: &str) {
        self.worker
            .component
            .not_ready(format!("waiting for Kafka: {why}"));
        self.shared.stop.wait(PAUSE);
    }

    /// The id may be stuck with a partition that lost its leader: a fresh one is not.
    fn replace_producer(&mut self, why: &str) -> anyhow::Result<()> {
        if self.shared.stop.is_set() {
            return Ok(());
        }
        warn!(
            worker = self.worker.name(),
            why, "transaction cannot be finished, opening a new producer"
        );
        self.worker
            .component
            .not_ready(format!("opening a new producer: {why}"));
        self.shared.metrics.producer_replaced();
        self.delivery.reopen()?;
        info!(worker = self.worker.name(), "new producer opened");
        Ok(())
    }

    /// Settles a commit whose answer was lost by asking the group; never by sending again.
    fn was_committed(
        &self,
        offsets: &BTreeMap<Partition, i64>,
        consumer: &GroupConsumer,
    ) -> anyhow::Result<bool> {
        let asked = Instant::now();
        let committed = loop {
            match consumer.committed(offsets.keys()) {
                Ok(committed) => break committed,
                Err(error) if asked.elapsed() < UNKNOWN && !self.shared.stop.is_set() => {
                    self.worker.component.beat();
                    debug!(%error, "the fate of a commit is still unknown");
                    self.shared.stop.wait(PAUSE);
                }
                Err(error) => return Err(error.context("the fate of a commit is unknown")),
            }
        };
        let reached = |(partition, offset): (&Partition, &i64)| {
            committed
                .get(partition)
                .copied()
                .flatten()
                .is_some_and(|c| c >= *offset)
        };
        let count = offsets.iter().filter(|entry| reached(*entry)).count();
        match count {
            0 => Ok(false),
            all if all == offsets.len() => Ok(true),
            // Somebody else has moved some of them on: read anew from what is committed.
            _ => bail!("some of the offsets of a transaction are committed and some are not"),
        }
    }

    fn count(&self, shipments: &[Shipment<'_>], stamps: &[Stamp]) {
        let mut delivered: BTreeMap<u32, Vec<Duration>> = BTreeMap::new();
        for (shipment, stamp) in shipments.iter().zip(stamps) {
            match &shipment.fate {
                Fate::Schedule(_, envelope) if envelope.attempt > 0 => {
                    self.shared.metrics.reparked()
                }
                Fate::Schedule(level, _) => self.shared.metrics.scheduled(level.number(), 1),
                Fate::Refuse(obituary) => self.shared.metrics.dead_letter(obituary.reason.code()),
                Fate::Deliver(envelope) => {
                    let at = match stamp {
                        Stamp::Append(at) => *at,
                        Stamp::Create(_) | Stamp::Missing => self.now(),
                    };
                    let level = self.own.level_of(&shipment.source.partition);
                    delivered
                        .entry(level)
                        .or_default()
                        .push(at.since(envelope.due));
                }
            }
        }
        for (level, lateness) in delivered {
            self.shared.metrics.delivered_many(level, &lateness);
        }
    }

    fn now(&self) -> Timestamp {
        // No worker starts before the clock is known.
        self.shared.clock.now().unwrap_or(Timestamp(0))
    }
}

impl Trial {
    fn new(count: usize) -> Trial {
        Trial {
            started: Instant::now(),
            acknowledged: vec![None; count],
            blameless: 0,
        }
    }

    fn any_acknowledged(&self) -> bool {
        self.acknowledged.iter().any(Option::is_some)
    }

    fn keep(&mut self, answers: &[Option<Ack>]) {
        for (place, answer) in self.acknowledged.iter_mut().zip(answers) {
            if let Some(Ok(stamp)) = answer {
                *place = Some(*stamp);
            }
        }
    }
}

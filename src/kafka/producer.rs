//! Sends a batch of shipments and waits for Kafka's answer to each. Used by both guarantees:
//! `txn` wraps it in a transaction, at-least-once uses it as it is. Never drains with a timeout:
//! rdkafka would spin, and its flush costs 100 ms.

use std::fmt;
use std::time::{Duration, Instant};

use rdkafka::error::{KafkaError, RDKafkaErrorCode};
use rdkafka::producer::{BaseProducer, BaseRecord, Producer, PurgeConfig};

use super::acks::{Ack, Acks};
use super::convert;
use super::error::{Blame, blame};
use crate::core::envelope::HeaderMode;
use crate::core::fate::Shipment;
use crate::core::ingress::OwnTopics;
use crate::core::record::Stamp;

/// How often the answers are looked at while waiting for them.
const LOOK: Duration = Duration::from_micros(200);
/// How long purged records may need to come back.
const PURGING: Duration = Duration::from_secs(1);

/// What became of a batch.
#[derive(Debug)]
pub enum Outcome {
    /// All of it is in Kafka, and so are the offsets. When each record was appended.
    Committed(Vec<Stamp>),
    /// Kafka refused some. With exactly-once nothing happened; with at-least-once what is
    /// acknowledged must not be sent again. An answer for each record, where there is one.
    Refused(Vec<Option<Ack>>),
    /// Nothing happened.
    RolledBack(String),
    /// The producer is unusable.
    Broken {
        /// Whether the transaction may have been committed all the same.
        commit_called: bool,
        /// In words.
        why: String,
        /// What was answered all the same: it tells which partitions are silent.
        answers: Vec<Option<Ack>>,
    },
}

/// Shipments, and which of them to send how.
#[derive(Debug)]
pub struct Batch<'a> {
    /// In order.
    pub shipments: &'a [Shipment<'a>],
    /// Already acknowledged in an earlier attempt (at-least-once): not sent again.
    pub acknowledged: &'a [Option<Stamp>],
    /// Sent alone, with nothing else in flight: only so does a refusal prove anything.
    pub alone: &'a [bool],
}

/// What came back.
#[derive(Debug)]
pub struct Sent {
    /// The answer for each shipment, where there is one.
    pub answers: Vec<Option<Ack>>,
    /// Whether some did not answer in time and were purged.
    pub purged: bool,
}

impl Sent {
    /// Whether Kafka refused anything.
    pub fn any_refused(&self) -> bool {
        self.answers
            .iter()
            .any(|answer| matches!(answer, Some(Err(_))))
    }

    /// When each record was appended.
    pub fn stamps(&self) -> Vec<Stamp> {
        self.answers
            .iter()
            .map(|answer| answer.and_then(Result::ok).unwrap_or(Stamp::Missing))
            .collect()
    }
}

/// A producer that sends batches.
pub struct Sender {
    producer: BaseProducer<Acks>,
    own: OwnTopics,
    mode: HeaderMode,
    patience: Duration,
}

impl fmt::Debug for Sender {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Sender")
            .field("patience", &self.patience)
            .finish_non_exhaustive()
    }
}

impl Sender {
    /// A sender over `producer`; `patience` bounds the wait for the answers to a batch and must be
    /// longer than the producer's own `message.timeout.ms`.
    pub fn new(
        producer: BaseProducer<Acks>,
        own: OwnTopics,
        mode: HeaderMode,
        patience: Duration,
    ) -> Sender {
        Sender {
            producer,
            own,
            mode,
            patience,
        }
    }

    /// The producer inside.
    pub fn producer(&self) -> &BaseProducer<Acks> {
        &self.producer
    }

    /// Sends the batch in order and waits until each record is answered.
    pub fn send_all(&self, batch: &Batch<'_>) -> Sent {
        let deadline = Instant::now() + self.patience;
        let mut answers = Answers::new(batch);
        for (index, shipment) in batch.shipments.iter().enumerate() {
            if answers.known(index) {
                continue;
            }
            if batch.alone[index] {
                self.drain(&mut answers, deadline);
            }
            if let Err(blame) = self.send(index, shipment, &mut answers, deadline) {
                answers.add(index, Err(blame));
            }
            if batch.alone[index] {
                self.drain(&mut answers, deadline);
            }
            // One refusal dooms a transaction: the rest need not be sent.
            if answers.any_refused() {
                break;
            }
        }
        self.drain(&mut answers, deadline);
        Sent {
            answers: answers.acks,
            purged: answers.purged,
        }
    }

    fn send(
        &self,
        index: usize,
        shipment: &Shipment<'_>,
        answers: &mut Answers,
        deadline: Instant,
    ) -> Result<(), Blame> {
        let (key, value) = shipment.key_and_value();
        let mut record =
            BaseRecord::<[u8], [u8], usize>::with_opaque_to(shipment.topic(&self.own), index)
                .headers(convert::headers_of(shipment, self.mode));
        record.key = key.as_deref();
        record.payload = value;
        record.partition = shipment.partition;
        loop {
            match self.producer.send(record) {
                Ok(()) => return Ok(()),
                Err((KafkaError::MessageProduction(RDKafkaErrorCode::QueueFull), back))
                    if Instant::now() < deadline =>
                {
                    record = back;
                    self.look(answers);
                    std::thread::sleep(LOOK);
                }
                Err((error, _)) => {
                    return Err(error.rdkafka_error_code().map_or(Blame::Nobody, blame));
                }
            }
        }
    }

    /// Waits until nothing is in flight; at the deadline it purges what is left.
    fn drain(&self, answers: &mut Answers, deadline: Instant) {
        loop {
            self.look(answers);
            let late = Instant::now().saturating_duration_since(deadline);
            if self.producer.in_flight_count() == 0 || late > PURGING {
                return;
            }
            if !late.is_zero() && !answers.purged {
                answers.purged = true;
                self.producer
                    .purge(PurgeConfig::default().queue().inflight());
            }
            std::thread::sleep(LOOK);
        }
    }

    /// `poll` serves one event a call, and an event holds many answers.
    fn look(&self, answers: &mut Answers) {
        loop {
            self.producer.poll(Duration::ZERO);
            let new = self.producer.context().take();
            if new.is_empty() {
                return;
            }
            new.into_iter()
                .for_each(|(index, ack)| answers.add(index, ack));
        }
    }
}

struct Answers {
    acks: Vec<Option<Ack>>,
    refused: usize,
    purged: bool,
}

impl Answers {
    fn new(batch: &Batch<'_>) -> Answers {
        Answers {
            acks: batch
                .acknowledged
                .iter()
                .map(|stamp| stamp.map(Ok))
                .collect(),
            refused: 0,
            purged: false,
        }
    }

    fn known(&self, index: usize) -> bool {
        self.acks[index].is_some()
    }

    fn any_refused(&self) -> bool {
        self.refused > 0
    }

    fn add(&mut self, index: usize, ack: Ack) {
        // What only comes back because it was purged had been silent for too long.
        let ack = match ack {
            Err(Blame::Nobody) if self.purged => Err(Blame::Silent),
            ack => ack,
        };
        self.refused += usize::from(ack.is_err());
        if let Some(place) = self.acks.get_mut(index) {
            *place = Some(ack);
        }
    }
}

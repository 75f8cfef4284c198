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
use super::lots::{Caps, Lots};
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
}

/// What came back.
#[derive(Debug)]
pub struct Sent {
    /// The answer for each shipment, where there is one.
    pub answers: Vec<Option<Ack>>,
    /// Whether some did not answer in time and were purged.
    pub purged: bool,
    /// Whether the time was over before all were sent, though Kafka answers.
    pub cut: bool,
}

impl Sent {
    /// Whether even purged records did not come back: their answers may still come, and would be
    /// taken for those of the next batch.
    pub fn is_unfinished(&self) -> bool {
        self.purged && !self.any_refused()
    }

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
    caps: Caps,
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
            caps: Caps::default(),
        }
    }

    /// The producer inside.
    pub fn producer(&self) -> &BaseProducer<Acks> {
        &self.producer
    }

    /// Sends the batch in order and waits until each record is answered.
    pub fn send_all(&mut self, batch: &Batch<'_>) -> Sent {
        let mut flight = Flight::new(batch);
        let mut lots = Lots::default();
        let mut cut = false;
        for (index, shipment) in batch.shipments.iter().enumerate() {
            if flight.answers[index].is_some() {
                continue;
            }
            let (topic, bytes) = (shipment.topic(&self.own), shipment.record.size());
            if lots.is_full(&self.caps, topic, bytes) {
                self.drain(&mut flight);
                lots.close();
            }
            cut = flight.started.elapsed() > self.patience;
            // One refusal dooms a transaction: the rest need not be sent.
            if cut || flight.refused > 0 {
                break;
            }
            lots.add(index, topic, bytes);
            if let Err(blame) = self.send(index, shipment, &mut flight) {
                flight.add(index, Err(blame));
            }
        }
        self.drain(&mut flight);
        self.convict(batch, &lots, &mut flight);
        Sent {
            answers: flight.answers,
            purged: flight.purged,
            cut,
        }
    }

    /// A suspect that was alone in its lot is guilty; otherwise the next lots are smaller.
    fn convict(&mut self, batch: &Batch<'_>, lots: &Lots, flight: &mut Flight) {
        for (index, answer) in flight.answers.iter_mut().enumerate() {
            let Some(Err(Blame::Suspect(guilt))) = *answer else {
                continue;
            };
            match lots.lot_of(index) {
                (_, 1) => *answer = Some(Err(Blame::Guilty(guilt))),
                (bytes, _) => {
                    let topic = batch.shipments[index].topic(&self.own);
                    self.caps.lower(topic, bytes, guilt);
                }
            }
        }
    }

    fn send(
        &self,
        index: usize,
        shipment: &Shipment<'_>,
        flight: &mut Flight,
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
                    if flight.last_answer.elapsed() < self.patience =>
                {
                    record = back;
                    self.look(flight);
                    std::thread::sleep(LOOK);
                }
                Err((error, _)) => {
                    return Err(error.rdkafka_error_code().map_or(Blame::Nobody, blame));
                }
            }
        }
    }

    /// Waits until nothing is in flight; purges what is left when no answer comes any more.
    fn drain(&self, flight: &mut Flight) {
        loop {
            self.look(flight);
            let silent = flight.last_answer.elapsed();
            if self.producer.in_flight_count() == 0 || silent > self.patience + PURGING {
                return;
            }
            if silent > self.patience && !flight.purged {
                flight.purged = true;
                let everything = PurgeConfig::default().queue().inflight();
                self.producer.purge(everything);
            }
            std::thread::sleep(LOOK);
        }
    }

    /// `poll` serves one event a call, and an event holds many answers.
    fn look(&self, flight: &mut Flight) {
        loop {
            self.producer.poll(Duration::ZERO);
            let new = self.producer.context().take();
            if new.is_empty() {
                return;
            }
            new.into_iter()
                .for_each(|(index, ack)| flight.add(index, ack));
        }
    }
}

/// One batch on its way.
struct Flight {
    answers: Vec<Option<Ack>>,
    refused: usize,
    purged: bool,
    started: Instant,
    last_answer: Instant,
}

impl Flight {
    fn new(batch: &Batch<'_>) -> Flight {
        let acknowledged = batch.acknowledged.iter();
        Flight {
            answers: acknowledged.map(|stamp| stamp.map(Ok)).collect(),
            refused: 0,
            purged: false,
            started: Instant::now(),
            last_answer: Instant::now(),
        }
    }

    fn add(&mut self, index: usize, ack: Ack) {
        // What only comes back because it was purged had been silent for too long.
        let ack = match ack {
            Err(Blame::Nobody) if self.purged => Err(Blame::Silent),
            ack => ack,
        };
        self.refused += usize::from(ack.is_err());
        if !self.purged {
            self.last_answer = Instant::now();
        }
        if let Some(place) = self.answers.get_mut(index) {
            *place = Some(ack);
        }
    }
}

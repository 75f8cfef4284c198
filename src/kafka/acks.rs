//! Collects what Kafka answers for each produced record. Called by librdkafka from within `poll`
//! on the producer's own thread, and read there; never blocks and never decides.

use std::sync::{Mutex, PoisonError};

use rdkafka::config::RDKafkaLogLevel;
use rdkafka::consumer::ConsumerContext;
use rdkafka::error::KafkaError;
use rdkafka::message::DeliveryResult;
use rdkafka::producer::ProducerContext;
use rdkafka::{ClientContext, Message};
use tracing::debug;

use super::convert;
use super::error::{Blame, blame};
use crate::core::record::Stamp;

/// The answer for one record: who stamped it when, or whose fault it is that it failed.
pub type Ack = Result<Stamp, Blame>;

/// The answers of one producer since they were last taken, by index in the batch.
#[derive(Debug, Default)]
pub struct Acks {
    answers: Mutex<Vec<(usize, Ack)>>,
}

impl Acks {
    /// Takes the answers that have come.
    pub(super) fn take(&self) -> Vec<(usize, Ack)> {
        std::mem::take(&mut *self.answers.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

impl ProducerContext for Acks {
    type DeliveryOpaque = usize;

    fn delivery(&self, result: &DeliveryResult<'_>, index: usize) {
        let ack = match result {
            Ok(message) => Ok(convert::stamp(message.timestamp())),
            Err((error, message)) => {
                debug!(topic = message.topic(), partition = message.partition(), %error, "not produced");
                Err(error.rdkafka_error_code().map_or(Blame::Nobody, blame))
            }
        };
        self.answers
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .push((index, ack));
    }
}

impl ClientContext for Acks {
    fn log(&self, level: RDKafkaLogLevel, facility: &str, message: &str) {
        log(level, facility, message);
    }

    fn error(&self, error: KafkaError, reason: &str) {
        debug!(target: "librdkafka", %error, reason);
    }
}

/// librdkafka repeats itself while Kafka is away; delayd says in its own words what it waits for.
pub(super) fn log(level: RDKafkaLogLevel, facility: &str, message: &str) {
    debug!(target: "librdkafka", ?level, facility, message);
}

/// The context of clients that only ask: they have nothing to say that their answers do not.
#[derive(Debug, Clone, Copy)]
pub(super) struct Quiet;

impl ClientContext for Quiet {
    fn log(&self, level: RDKafkaLogLevel, facility: &str, message: &str) {
        log(level, facility, message);
    }

    fn error(&self, error: KafkaError, reason: &str) {
        debug!(target: "librdkafka", %error, reason);
    }
}

impl ConsumerContext for Quiet {}

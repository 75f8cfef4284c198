//! Exactly once: records and the offsets they came from, in one Kafka transaction.
//! Called by `flow::dispatch`. Every call has a limit and looks at the stop flag; a transaction
//! that cannot be finished makes the producer unusable, and the caller opens a new one.

use std::time::{Duration, Instant};

use rdkafka::TopicPartitionList;
use rdkafka::consumer::ConsumerGroupMetadata;
use rdkafka::error::{KafkaError, KafkaResult, RDKafkaErrorCode};
use rdkafka::producer::{BaseProducer, Producer};
use tracing::debug;

use super::acks::{Ack, Acks};
use super::error::{Severity, severity};
use super::producer::{Batch, Outcome, Sender, Sent};
use crate::ops::shutdown::StopFlag;

/// How long one call may take; repeated until `STUCK`.
const CALL: Duration = Duration::from_secs(1);
/// After this a transaction is taken for stuck, as it is when a partition in it lost its leader.
const STUCK: Duration = Duration::from_secs(3);

/// A producer with a transactional id.
#[derive(Debug)]
pub struct Transactions {
    sender: Sender,
    stop: StopFlag,
}

/// Why a transaction ended without a commit.
enum Ended {
    /// Nothing happened; the producer is fine.
    Aborted(String),
    /// The producer is unusable.
    Broken {
        commit_called: bool,
        why: String,
        answers: Vec<Option<Ack>>,
    },
}

impl Transactions {
    /// Takes over the producer's transactional id and fences all earlier users of it.
    ///
    /// # Errors
    /// If that takes longer than `limit`, or the id is not to be had.
    pub fn open(sender: Sender, limit: Duration, stop: StopFlag) -> KafkaResult<Transactions> {
        let producer = sender.producer();
        let deadline = Instant::now() + limit;
        loop {
            match producer.init_transactions(CALL) {
                Ok(()) => break,
                Err(error)
                    if severity(&error) == Severity::Retriable
                        && Instant::now() < deadline
                        && !stop.is_set() => {}
                Err(error) => return Err(error),
            }
        }
        Ok(Transactions { sender, stop })
    }

    /// The sender inside.
    pub fn sender(&self) -> &Sender {
        &self.sender
    }

    /// Sends all shipments and commits `offsets` with them: both or neither.
    pub fn attempt(
        &mut self,
        batch: &Batch<'_>,
        offsets: &TopicPartitionList,
        group: &ConsumerGroupMetadata,
    ) -> Outcome {
        match self.try_attempt(batch, offsets, group) {
            Ok(outcome) => outcome,
            Err(Ended::Aborted(why)) => Outcome::RolledBack(why),
            Err(Ended::Broken {
                commit_called,
                why,
                answers,
            }) => Outcome::Broken {
                commit_called,
                why,
                answers,
            },
        }
    }

    fn try_attempt(
        &mut self,
        batch: &Batch<'_>,
        offsets: &TopicPartitionList,
        group: &ConsumerGroupMetadata,
    ) -> Result<Outcome, Ended> {
        self.begin()?;
        // Offsets first: a stale generation shows before anything is produced, and the wait for
        // the previous commit is shorter here than at the first record.
        let named = self.until_stuck(|p| p.send_offsets_to_transaction(offsets, group, CALL));
        self.or_abort(named)?;
        let sent = self.send(batch)?;
        if sent.any_refused() {
            return match self.abort() {
                Ok(()) => Ok(Outcome::Refused(sent.answers)),
                Err(ended) => Err(ended.with_answers(sent.answers)),
            };
        }
        if sent.cut {
            self.abort()?;
            return Err(Ended::Aborted("the batch took too long".to_owned()));
        }
        self.commit()?;
        Ok(Outcome::Committed(sent.stamps()))
    }

    /// Whether a transaction can hold this batch at all. Nothing of it stays. `None`: the producer
    /// is unusable.
    pub fn can_hold(&mut self, batch: &Batch<'_>) -> Option<bool> {
        let tried = self.begin().and_then(|()| {
            let sent = self.send(batch)?;
            self.abort()?;
            Ok(!sent.any_refused())
        });
        match tried {
            Ok(held) => Some(held),
            Err(Ended::Aborted(_)) => Some(false),
            Err(Ended::Broken { .. }) => None,
        }
    }

    fn begin(&self) -> Result<(), Ended> {
        let begun = self.sender.producer().begin_transaction();
        begun.map_err(|error| broken(false, &error))
    }

    fn send(&mut self, batch: &Batch<'_>) -> Result<Sent, Ended> {
        let sent = self.sender.send_all(batch);
        if !sent.purged {
            return Ok(sent);
        }
        Err(Ended::Broken {
            commit_called: false,
            why: "a partition does not answer".to_owned(),
            answers: sent.answers,
        })
    }

    fn commit(&self) -> Result<(), Ended> {
        match self.until_stuck(|p| p.commit_transaction(CALL)) {
            Ok(()) => Ok(()),
            Err(error) if severity(&error) == Severity::Abortable => {
                self.abort().map_err(Ended::after_commit)?;
                Err(Ended::Aborted(error.to_string()))
            }
            Err(error) => Err(broken(true, &error)),
        }
    }

    /// Turns the failure of an offsets call into an abort, where that is possible.
    fn or_abort(&self, result: KafkaResult<()>) -> Result<(), Ended> {
        match result {
            Ok(()) => Ok(()),
            Err(error) if severity(&error) == Severity::Abortable => {
                self.abort()?;
                Err(Ended::Aborted(error.to_string()))
            }
            Err(error) => Err(broken(false, &error)),
        }
    }

    /// Nothing is in flight here, so nothing has to be purged.
    fn abort(&self) -> Result<(), Ended> {
        self.until_stuck(|p| p.abort_transaction(CALL))
            .map_err(|error| broken(false, &error))
    }

    /// Repeats a call while its error says that this may help, until the limit.
    fn until_stuck(
        &self,
        call: impl Fn(&BaseProducer<Acks>) -> KafkaResult<()>,
    ) -> KafkaResult<()> {
        let started = Instant::now();
        loop {
            let result = call(self.sender.producer());
            let Err(error) = &result else { return result };
            let give_up =
                started.elapsed() > STUCK || self.stop.is_set() && started.elapsed() > CALL;
            if severity(error) != Severity::Retriable || give_up {
                return result;
            }
            debug!(%error, "transaction call repeated");
            // CONCURRENT_TRANSACTIONS answers at once: do not spin.
            if error.rdkafka_error_code() == Some(RDKafkaErrorCode::ConcurrentTransactions) {
                std::thread::sleep(Duration::from_millis(5));
            }
        }
    }
}

impl Ended {
    fn with_answers(self, answers: Vec<Option<Ack>>) -> Ended {
        match self {
            Ended::Broken {
                commit_called, why, ..
            } => Ended::Broken {
                commit_called,
                why,
                answers,
            },
            aborted @ Ended::Aborted(_) => aborted,
        }
    }

    /// A commit was asked for, so that its fate must be asked for, too.
    fn after_commit(self) -> Ended {
        match self {
            Ended::Broken { why, answers, .. } => Ended::Broken {
                commit_called: true,
                why,
                answers,
            },
            aborted @ Ended::Aborted(_) => aborted,
        }
    }
}

fn broken(commit_called: bool, error: &KafkaError) -> Ended {
    Ended::Broken {
        commit_called,
        why: error.to_string(),
        answers: Vec::new(),
    }
}

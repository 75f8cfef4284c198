//! Whose fault it is that a record cannot be produced, and what becomes of it then.
//! Called by `dispatch` before and after each attempt; sends nothing that stays.

use std::collections::BTreeSet;

use tracing::debug;

use super::{Dispatcher, Trial};
use crate::core::dead_letter::Reason;
use crate::core::fate::{Fate, Refusal, Shipment};
use crate::kafka::acks::Ack;
use crate::kafka::error::{Blame, Guilt};
use crate::kafka::targets::Place;

impl Dispatcher<'_> {
    /// Gives every record a partition that can take it now; what has none changes its fate.
    /// Fails if Kafka, or a topic of our own, is away: then nothing can be done for any record.
    pub(super) fn choose_partitions(
        &mut self,
        shipments: &mut [Shipment<'_>],
        trial: &Trial,
    ) -> Result<(), String> {
        for (index, shipment) in shipments.iter_mut().enumerate() {
            while trial.acknowledged[index].is_none() {
                let place = self.delivery.place(
                    shipment.topic(&self.own),
                    shipment.fixed_partition(),
                    shipment.record.key.as_deref(),
                );
                let refusal = match place {
                    Place::Partition(partition) => {
                        shipment.partition = Some(partition);
                        break;
                    }
                    Place::Unreachable => return Err("Kafka does not answer".to_owned()),
                    Place::Away { why, .. } | Place::NoSuchPartition(why)
                        if !matches!(shipment.fate, Fate::Deliver(_)) =>
                    {
                        return Err(why);
                    }
                    Place::Away { leaderless, why } => Refusal::Away { leaderless, why },
                    Place::NoSuchPartition(why) => Refusal::Never(Reason::NoSuchPartition, why),
                };
                self.refuse(shipment, refusal);
            }
        }
        Ok(())
    }

    fn refuse(&self, shipment: &mut Shipment<'_>, refusal: Refusal) {
        debug!(source = %shipment.source, ?refusal, "record cannot go there");
        let table = self.shared.table();
        shipment.refused(refusal, &self.policy, &table, self.now());
    }

    /// Finds out whose fault the refusals are. Fails if it is Kafka's as a whole.
    pub(super) fn judge(
        &mut self,
        shipments: &mut [Shipment<'_>],
        trial: &mut Trial,
        answers: &[Option<Ack>],
    ) -> Result<(), String> {
        if self.delivery.keeps_acknowledged() {
            trial.keep(answers);
        }
        let mut blamed = false;
        for (index, answer) in answers.iter().enumerate() {
            let Some(Err(blame)) = answer else { continue };
            blamed |= *blame != Blame::Nobody;
            match *blame {
                Blame::Guilty(guilt) => self.convict(shipments, trial, index, guilt),
                Blame::Name => self.refuse(
                    &mut shipments[index],
                    never("Kafka refuses the topic's name"),
                ),
                Blame::Topic(why) => self.topic_refuses(&mut shipments[index], why)?,
                Blame::Silent => self.partition_is_silent(&mut shipments[index])?,
                // Sent again in smaller lots, or simply again.
                Blame::Suspect(_) | Blame::Nobody => {}
            }
        }
        trial.blameless = if blamed { 0 } else { trial.blameless + 1 };
        match trial.blameless {
            0 | 1 => Ok(()),
            _ => self.find_culprit(shipments),
        }
    }

    /// What is true of a record too large for its topic is true of larger ones, too.
    fn convict(&self, shipments: &mut [Shipment<'_>], trial: &Trial, index: usize, guilt: Guilt) {
        if guilt == Guilt::Content {
            return self.refuse(
                &mut shipments[index],
                never("the topic refuses the content of this record"),
            );
        }
        let limit = shipments[index].record.size();
        let topic = shipments[index].topic(&self.own).to_owned();
        self.refuse(&mut shipments[index], Refusal::TooLarge);
        if !self.delivery.is_uncompressed() {
            return;
        }
        for (other, shipment) in shipments.iter_mut().enumerate() {
            let undecided =
                trial.acknowledged[other].is_none() && !matches!(shipment.fate, Fate::Refuse(_));
            if undecided && shipment.record.size() >= limit && shipment.topic(&self.own) == topic {
                self.refuse(shipment, Refusal::TooLarge);
            }
        }
    }

    /// A topic that must not be written fails a whole transaction, and Kafka does not say which it
    /// is: so each is tried alone, in a transaction that is rolled back.
    fn find_culprit(&mut self, shipments: &[Shipment<'_>]) -> Result<(), String> {
        let mut tried = BTreeSet::new();
        let mut found = false;
        for shipment in shipments {
            let topic = shipment.topic(&self.own);
            let deliverable = matches!(shipment.fate, Fate::Deliver(_));
            if !deliverable || !tried.insert(topic.to_owned()) || self.delivery.can_hold(shipment) {
                continue;
            }
            let why = format!("topic {topic} cannot be written: is this principal authorized to?");
            self.delivery.note_refused(topic, &why);
            found = true;
        }
        if found {
            Ok(())
        } else {
            Err("records are not acknowledged".to_owned())
        }
    }

    fn topic_refuses(&mut self, shipment: &mut Shipment<'_>, why: &str) -> Result<(), String> {
        let topic = shipment.topic(&self.own).to_owned();
        let why = format!("topic {topic}: {why}");
        if !matches!(shipment.fate, Fate::Deliver(_)) {
            return Err(why);
        }
        self.delivery.note_refused(&topic, &why);
        self.refuse(
            shipment,
            Refusal::Away {
                leaderless: false,
                why,
            },
        );
        Ok(())
    }

    fn partition_is_silent(&mut self, shipment: &mut Shipment<'_>) -> Result<(), String> {
        let topic = shipment.topic(&self.own).to_owned();
        let partition = shipment.partition.unwrap_or_default();
        let why = format!("partition {partition} of topic {topic} does not answer");
        let deliverable = matches!(shipment.fate, Fate::Deliver(_));
        if !deliverable || !self.delivery.note_silent(&topic, partition) {
            return Err(why);
        }
        self.refuse(
            shipment,
            Refusal::Away {
                leaderless: true,
                why,
            },
        );
        Ok(())
    }

    /// Leaves the partitions alone that held up a transaction, so that the next one is not held up too.
    pub(super) fn note_silence(&mut self, shipments: &[Shipment<'_>], answers: &[Option<Ack>]) {
        for (shipment, answer) in shipments.iter().zip(answers) {
            let deliverable = matches!(shipment.fate, Fate::Deliver(_));
            if let (Some(Err(Blame::Silent)), Some(partition), true) =
                (answer, shipment.partition, deliverable)
            {
                self.delivery
                    .note_silent(shipment.topic(&self.own), partition);
            }
        }
    }
}

fn never(why: &str) -> Refusal {
    Refusal::Never(Reason::BadTarget, why.to_owned())
}

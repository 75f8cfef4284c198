//! Whose fault it is that a record cannot be produced, and what becomes of it then.
//! Called by `dispatch` before and after each attempt; sends nothing itself.

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
        let mut nobodys = None;
        for (index, answer) in answers.iter().enumerate() {
            let Some(Err(blame)) = answer else { continue };
            let shipment = &mut shipments[index];
            match *blame {
                Blame::Suspect(guilt) if trial.alone[index] => {
                    let refusal = match guilt {
                        Guilt::Size => Refusal::TooLarge,
                        Guilt::Content => Refusal::Never(
                            Reason::BadTarget,
                            "the topic refuses the content of this record".to_owned(),
                        ),
                    };
                    self.refuse(shipment, refusal);
                }
                Blame::Suspect(_) => trial.alone[index] = true,
                Blame::Name => self.refuse(
                    shipment,
                    Refusal::Never(
                        Reason::BadTarget,
                        "Kafka refuses the topic's name".to_owned(),
                    ),
                ),
                Blame::Topic(why) => self.topic_refuses(shipment, why)?,
                Blame::Silent => self.partition_is_silent(shipment)?,
                Blame::Nobody => nobodys = Some("records were not acknowledged".to_owned()),
            }
        }
        nobodys.map_or(Ok(()), Err)
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

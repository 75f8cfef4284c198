//! Two workers over one Kafka, driven by a history of steps, and what must hold when all is quiet.

use std::collections::BTreeMap;

use delayd::core::level::LevelTable;
use delayd::core::record::Source;
use delayd::core::time::Timestamp;

use crate::kafka::{Checked, DEAD, Ending, Entry, Kafka, SCHEDULE, TARGETS, partition};
use crate::landing::{ensure, origin, text};
use crate::message::{INGRESS, Message};
use crate::steps::{Setting, Step, TABLES};
use crate::worker::Worker;

pub(crate) struct World {
    pub kafka: Kafka,
    workers: [Worker; 2],
    behind: i64,
}

/// Plays a history to its end and beyond, until all is quiet.
pub(crate) fn play(setting: &Setting, steps: &[Step]) -> Checked {
    let mut world = World::new(setting);
    for (number, step) in steps.iter().enumerate() {
        world
            .step(step)
            .map_err(|why| format!("at step {number}: {why}"))?;
    }
    world.settle()?;
    world.everything_arrived()?;
    world.everything_is_in_order()
}

impl World {
    pub(crate) fn new(setting: &Setting) -> World {
        let mut kafka = Kafka::new(setting.exactly_once, setting.pending, table(0));
        for (topic, number) in INGRESS {
            kafka.open(partition(topic, number));
        }
        World {
            kafka,
            workers: [Worker::new(0, 0), Worker::new(1, 0)],
            behind: 0,
        }
    }

    fn now(&self) -> Timestamp {
        Timestamp(self.kafka.clock - self.behind)
    }

    pub(crate) fn step(&mut self, step: &Step) -> Checked {
        let now = self.now();
        self.kafka.set_back |= matches!(
            step,
            Step::BrokerClock { .. } | Step::Behind { .. } | Step::Edit { .. }
        );
        match step {
            Step::Append(messages) => messages.iter().for_each(|message| self.append(message)),
            Step::Pass { ms } | Step::BrokerClock { ms } => self.kafka.clock += ms,
            Step::Route { worker, ending } => {
                let _: bool = self.workers[*worker].route(&mut self.kafka, now, *ending)?;
            }
            Step::Scan { worker, ending } => {
                let _: bool = self.workers[*worker].scan(&mut self.kafka, now, *ending)?;
            }
            Step::Crash { worker } => self.crash(*worker),
            Step::Rebalance { owners } => {
                self.rebalance(|number, _| usize::from(owners >> (number % 16) & 1))
            }
            Step::Stall { worker } => {
                self.rebalance(|_, owner| if owner == *worker { 1 - worker } else { owner });
                self.workers[*worker].stalled = true;
            }
            Step::Behind { ms } => self.behind = *ms,
            Step::Away { target, leaderless } => drop(
                self.kafka
                    .away
                    .insert(TARGETS[*target].0.to_owned(), *leaderless),
            ),
            Step::Back { target } => drop(self.kafka.away.remove(TARGETS[*target].0)),
            Step::Edit { table, late } => self.edit(*table, *late),
        }
        Ok(())
    }

    fn append(&mut self, message: &Message) {
        let number = self.kafka.messages.len();
        let stamp = message
            .stamp(self.kafka.clock)
            .time()
            .unwrap_or(Timestamp(0));
        let version = self.kafka.tables.len() - 1;
        let entry = Entry {
            stamp,
            record: message.record(number),
            number,
            from: None,
            version,
        };
        self.kafka.append(&message.partition(), entry);
        self.kafka.messages.push(message.clone());
    }

    /// Nothing that it held is out; what it owned is owned anew.
    fn crash(&mut self, worker: usize) {
        self.workers[worker] = Worker::new(worker, self.kafka.tables.len() - 1);
        let owned: Vec<_> = self
            .kafka
            .owners
            .iter()
            .filter(|(_, grant)| grant.0 == worker)
            .map(|(p, _)| p.clone())
            .collect();
        owned
            .iter()
            .for_each(|partition| self.kafka.give(partition, worker));
    }

    fn rebalance(&mut self, owner: impl Fn(usize, usize) -> usize) {
        let owners: Vec<_> = self
            .kafka
            .owners
            .iter()
            .map(|(p, grant)| (p.clone(), grant.0))
            .collect();
        for (number, (partition, before)) in owners.iter().enumerate() {
            let after = owner(number, *before);
            if after != *before {
                self.kafka.give(partition, after);
            }
        }
    }

    fn edit(&mut self, number: usize, late: Option<usize>) {
        let before = self.kafka.tables.len() - 1;
        self.kafka.edit(table(number));
        for (worker, reloaded) in self.workers.iter_mut().enumerate() {
            let version = if late == Some(worker) {
                before
            } else {
                before + 1
            };
            reloaded.reload(&self.kafka, version);
        }
    }

    /// Every trouble is over; time passes until nothing is pending.
    pub(crate) fn settle(&mut self) -> Checked {
        self.kafka.away.clear();
        for _ in 0..500 {
            let now = self.now();
            for worker in &mut self.workers {
                worker.reload(&self.kafka, self.kafka.tables.len() - 1);
                while worker.route(&mut self.kafka, now, Ending::Commit)? || worker.stalled {}
                while worker.scan(&mut self.kafka, now, Ending::Commit)? {}
            }
            if self.pending().is_none() && self.workers.iter().all(|worker| worker.held() == 0) {
                return Ok(());
            }
            self.kafka.clock += 1_000;
        }
        Err(format!(
            "{} is never delivered",
            self.pending()
                .map_or("something held".to_owned(), |source| source.to_string())
        ))
    }

    fn pending(&self) -> Option<Source> {
        self.kafka.owners.keys().find_map(|partition| {
            let committed = self.kafka.committed.get(partition).copied().unwrap_or(0);
            let (offset, _) = self.kafka.next(partition, committed)?;
            Some(Source {
                partition: partition.clone(),
                offset,
            })
        })
    }

    /// Never lost; never twice, or at least once: only what a crash may repeat.
    fn everything_arrived(&self) -> Checked {
        let mut arrived = vec![0; self.kafka.messages.len()];
        let mut repeats = vec![0; self.kafka.messages.len()];
        for (partition, log) in &self.kafka.logs {
            let ended = &*partition.topic == DEAD
                || TARGETS
                    .iter()
                    .any(|(target, _)| *target == &*partition.topic);
            for (offset, entry) in log
                .iter()
                .enumerate()
                .filter_map(|(o, entry)| Some((o, entry.as_ref()?)))
            {
                arrived[entry.number] += usize::from(ended);
                let handled = self
                    .kafka
                    .handled
                    .get(&(partition.clone(), offset as i64))
                    .copied()
                    .unwrap_or(0);
                repeats[entry.number] += handled.saturating_sub(1);
            }
        }
        for (number, (arrived, repeats)) in arrived.iter().zip(&repeats).enumerate() {
            let message = &self.kafka.messages[number];
            ensure(*arrived >= 1, || {
                format!("lost: message {number} is nowhere: {message:?}")
            })?;
            ensure(*arrived <= 1 + repeats, || {
                format!("twice: message {number} arrived {arrived} times: {message:?}")
            })?;
        }
        Ok(())
    }

    /// Of one ingress partition, level queue and target partition, but for those parked again.
    fn everything_is_in_order(&self) -> Checked {
        let targets = self
            .kafka
            .logs
            .iter()
            .filter(|(p, _)| TARGETS.iter().any(|(target, _)| *target == &*p.topic));
        for (target, log) in targets {
            let mut seen: BTreeMap<_, Vec<i64>> = BTreeMap::new();
            for entry in log.iter().flatten() {
                let Some(from) = &entry.from else { continue };
                let origin = origin(&self.kafka, from)?;
                let parked_again =
                    text(&self.kafka.entry(from)?.record, "delayd-attempt").is_some();
                if parked_again || self.repeated(from, origin) {
                    continue;
                }
                let queue =
                    (&*from.partition.topic == SCHEDULE).then_some(from.partition.partition);
                let offsets = seen.entry((origin.partition.clone(), queue)).or_default();
                let in_order = offsets.last().is_none_or(|last| *last < origin.offset);
                ensure(in_order, || {
                    format!(
                        "out of order in {target}: {origin} comes after {offsets:?} by queue {queue:?}"
                    )
                })?;
                offsets.push(origin.offset);
            }
        }
        Ok(())
    }
}

impl World {
    /// At least once: a repeat may meet another partition, another table, or a target that is away.
    fn repeated(&self, from: &Source, origin: &Source) -> bool {
        let times = |source: &Source| {
            self.kafka
                .handled
                .get(&(source.partition.clone(), source.offset))
                .copied()
                .unwrap_or(0)
        };
        times(from) > 1 || times(origin) > 1
    }
}

fn table(number: usize) -> LevelTable {
    LevelTable::from_list(TABLES[number]).expect("a table")
}

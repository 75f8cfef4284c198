//! One process: a router and a scanner over `core`, in the shape of `src/flow`, with the simulated
//! Kafka in place of the real one. What it holds is lost when it crashes.

use std::collections::BTreeMap;
use std::sync::Arc;

use delayd::core::fate::Shipment;
use delayd::core::level_queue::{LevelQueue, Waiting};
use delayd::core::merge::merged;
use delayd::core::planner::{Limits, Planner};
use delayd::core::record::{Arrival, Partition, Source, Stamp};
use delayd::core::route::Routed;
use delayd::core::time::Timestamp;

use crate::kafka::{Checked, Dispatched, Ending, Grant, Kafka, Out, own};
use crate::landing::{due, ensure};
use crate::shape::{is_queue, outgoing, policy, rules};

/// Small, so that short histories reach every limit.
const FULL: Limits = Limits {
    records: 8,
    bytes: 1 << 20,
};
const CHUNK: usize = 3;

#[derive(Debug)]
pub(crate) struct Worker {
    id: usize,
    /// Which level table it knows.
    pub version: usize,
    /// It does not hear of the next rebalance.
    pub stalled: bool,
    grants: BTreeMap<Partition, Grant>,
    positions: BTreeMap<Partition, i64>,
    held: Vec<(Arrival, Routed)>,
    planner: Planner,
    limits: Limits,
}

impl Worker {
    pub(crate) fn new(id: usize, version: usize) -> Worker {
        Worker {
            id,
            version,
            stalled: false,
            grants: BTreeMap::new(),
            positions: BTreeMap::new(),
            held: Vec::new(),
            planner: Planner::default(),
            limits: FULL,
        }
    }

    /// As `Scanner::follow_reload`.
    pub(crate) fn reload(&mut self, kafka: &Kafka, version: usize) {
        self.version = version;
        let table = &kafka.tables[version];
        self.planner
            .queues_mut()
            .for_each(|queue| queue.follow(table, kafka.pending));
    }

    /// Follows the group: what is held of a partition that was revoked belongs to its new owner.
    fn turn(&mut self, kafka: &Kafka) {
        if std::mem::take(&mut self.stalled) {
            return;
        }
        let (planner, held, positions) = (&mut self.planner, &mut self.held, &mut self.positions);
        self.grants.retain(|partition, grant| {
            let kept = kafka.owners.get(partition) == Some(grant);
            if !kept {
                planner.remove(partition);
                positions.remove(partition);
                held.retain(|(arrival, _)| arrival.source.partition != *partition);
            }
            kept
        });
        for (partition, grant) in kafka.owners.iter().filter(|(_, grant)| grant.0 == self.id) {
            if self.grants.insert(partition.clone(), *grant).is_none() {
                let committed = kafka.committed.get(partition).copied().unwrap_or(0);
                self.positions.insert(partition.clone(), committed);
                if is_queue(partition) {
                    self.planner
                        .add(LevelQueue::new(partition.clone(), Some(committed)));
                }
            }
        }
    }

    /// One turn of the router. Says whether there was anything to do.
    pub(crate) fn route(
        &mut self,
        kafka: &mut Kafka,
        now: Timestamp,
        ending: Ending,
    ) -> Checked<bool> {
        self.turn(kafka);
        if self.held.is_empty() {
            self.collect(kafka, now);
        }
        if self.held.is_empty() {
            return Ok(false);
        }
        let held = std::mem::take(&mut self.held);
        let mut offsets = BTreeMap::new();
        for (arrival, _) in &held {
            let next = offsets.entry(arrival.source.partition.clone()).or_insert(0);
            *next = (arrival.source.offset + 1).max(*next);
        }
        let shipments = held
            .iter()
            .map(|(arrival, routed)| Shipment::routed(arrival, &routed.decision))
            .collect();
        match self.dispatch(kafka, now, shipments, &offsets, ending)? {
            Dispatched::Done => {}
            Dispatched::RolledBack => self.held = held,
            Dispatched::Crashed => *self = Worker::new(self.id, kafka.tables.len() - 1),
        }
        Ok(true)
    }

    fn collect(&mut self, kafka: &Kafka, now: Timestamp) {
        let rules = rules(kafka, self.version);
        let partitions: Vec<Partition> = self
            .grants
            .keys()
            .filter(|p| !is_queue(p))
            .cloned()
            .collect();
        let mut batch = Vec::new();
        loop {
            let before = batch.len();
            for partition in partitions.iter().flat_map(|p| [p; CHUNK]) {
                if batch.len() < FULL.records {
                    batch.extend(self.next(kafka, partition));
                }
            }
            if batch.len() == before {
                break;
            }
        }
        for mut arrival in merged(batch) {
            let routed = rules.decide(&arrival.source, arrival.stamp, &mut arrival.record, now);
            self.held.push((arrival, routed));
        }
    }

    fn next(&mut self, kafka: &Kafka, partition: &Partition) -> Option<Arrival> {
        let position = self.positions.get_mut(partition)?;
        let (offset, entry) = kafka.next(partition, *position)?;
        *position = offset + 1;
        let stamp = match &*partition.topic {
            "created" => Stamp::Create(entry.stamp),
            _ => Stamp::Append(entry.stamp),
        };
        Some(Arrival {
            source: Source {
                partition: partition.clone(),
                offset,
            },
            stamp,
            record: entry.record.clone(),
        })
    }

    /// One turn of the scanner. Says whether there was anything to do.
    pub(crate) fn scan(
        &mut self,
        kafka: &mut Kafka,
        now: Timestamp,
        ending: Ending,
    ) -> Checked<bool> {
        self.turn(kafka);
        self.fill(kafka, now)?;
        let batch = self.planner.take_due(now, self.limits).waiting;
        if batch.is_empty() {
            self.nothing_due_is_left(kafka, now)?;
            return Ok(false);
        }
        self.send(kafka, now, batch, ending)?;
        Ok(true)
    }

    fn send(
        &mut self,
        kafka: &mut Kafka,
        now: Timestamp,
        batch: Vec<Waiting>,
        ending: Ending,
    ) -> Checked {
        let offsets = Planner::offsets_after(&batch);
        let rules = rules(kafka, self.version);
        let shipments = batch
            .iter()
            .map(|waiting| Shipment::due(waiting, &rules))
            .collect();
        match self.dispatch(kafka, now, shipments, &offsets, ending)? {
            Dispatched::Done => {
                self.planner.settle(&offsets);
                self.limits = self.limits.grown(FULL);
            }
            Dispatched::RolledBack => {
                self.planner.roll_back(batch);
                self.limits = self.limits.halved();
            }
            Dispatched::Crashed => *self = Worker::new(self.id, kafka.tables.len() - 1),
        }
        Ok(())
    }

    fn fill(&mut self, kafka: &Kafka, now: Timestamp) -> Checked {
        let table = Arc::clone(&kafka.tables[self.version]);
        let mut planner = std::mem::take(&mut self.planner);
        let mut progress = true;
        while progress && !planner.is_full(now, self.limits) {
            progress = false;
            for queue in planner.queues_mut() {
                for _ in 0..CHUNK {
                    if !queue.wants_more(now) {
                        break;
                    }
                    let Some(arrival) = self.next(kafka, queue.partition()) else {
                        break;
                    };
                    queue.push(arrival, &table, kafka.pending);
                    progress = true;
                }
            }
        }
        self.planner = planner;
        self.holds_no_more_than_it_may(kafka, now)
    }

    fn holds_no_more_than_it_may(&self, kafka: &Kafka, now: Timestamp) -> Checked {
        let due = self
            .planner
            .queues()
            .filter(|queue| queue.next_due().is_some_and(|due| due <= now));
        let held: usize = due.map(|queue| queue.held().0).sum();
        // It may have owned every queue when it read them.
        let tables = kafka.tables.iter().map(|table| table.count() as usize);
        let queues = tables.max().unwrap_or_default();
        // What waits again does not count while it waits, so each queue may hold as much.
        let times = if kafka.set_back { queues } else { 1 };
        let most = (FULL.records + queues) * times + queues * CHUNK;
        ensure(held <= most, || {
            format!("worker {} holds {held} records, more than {most}", self.id)
        })
    }

    /// A worker that goes to sleep leaves nothing behind that is due.
    fn nothing_due_is_left(&self, kafka: &Kafka, now: Timestamp) -> Checked {
        for queue in self.planner.queues().map(LevelQueue::partition) {
            if kafka.owners.get(queue) != self.grants.get(queue) {
                continue;
            }
            let committed = kafka.committed.get(queue).copied().unwrap_or(0);
            if let Some((offset, entry)) = kafka.next(queue, committed) {
                let due = due(kafka, entry, queue, self.version);
                ensure(due > now, || {
                    format!("late: {queue}-{offset} is due at {due} and still there at {now}")
                })?;
            }
        }
        Ok(())
    }

    /// As `Dispatcher::dispatch`: what has no place changes its fate, then all goes out together.
    fn dispatch(
        &self,
        kafka: &mut Kafka,
        now: Timestamp,
        mut shipments: Vec<Shipment<'_>>,
        offsets: &BTreeMap<Partition, i64>,
        ending: Ending,
    ) -> Checked<Dispatched> {
        let table = Arc::clone(&kafka.tables[self.version]);
        let mut outs = Vec::new();
        for shipment in &mut shipments {
            outs.push(loop {
                let (topic, record) = (shipment.topic(&own()).to_owned(), outgoing(shipment));
                match kafka.place(
                    &topic,
                    shipment.partition.or(shipment.fixed_partition()),
                    record.key.as_deref(),
                    record.size(),
                ) {
                    Ok(number) => {
                        let to = crate::kafka::partition(&topic, number);
                        break Out {
                            to,
                            record,
                            from: shipment.source.clone(),
                        };
                    }
                    Err(refusal) => {
                        let before = shipment.fate.clone();
                        shipment.refused(refusal.clone(), &policy(), &table, now);
                        ensure(shipment.fate != before, || {
                            format!("{} is stuck: {refusal:?}", shipment.source)
                        })?;
                    }
                }
            });
        }
        kafka.finish(&self.grants, &outs, offsets, ending)
    }

    /// Everything in its hands: what may be repeated if it loses them.
    pub(crate) fn held(&self) -> usize {
        self.held.len()
            + self
                .planner
                .queues()
                .map(|queue| queue.held().0)
                .sum::<usize>()
    }
}

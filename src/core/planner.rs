//! Chooses what leaves next: from every level queue that has something due, a fair share.
//! Called by `flow::scanner` between two polls; holds the queues, knows no clock and no Kafka.

use std::collections::BTreeMap;

use super::level_queue::{LevelQueue, Waiting};
use super::record::Partition;
use super::time::Timestamp;

/// How many records one queue may contribute before the next one has its turn.
const SHARE: usize = 64;

/// How large a batch may become.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Records.
    pub records: usize,
    /// Bytes of keys, values and headers.
    pub bytes: usize,
}

impl Limits {
    /// Half of it, but never nothing.
    pub fn halved(self) -> Limits {
        Limits {
            records: (self.records / 2).max(1),
            bytes: (self.bytes / 2).max(1),
        }
    }

    /// A quarter more of `full`, at most all of it.
    pub fn grown(self, full: Limits) -> Limits {
        Limits {
            records: (self.records + full.records / 4).min(full.records),
            bytes: (self.bytes + full.bytes / 4).min(full.bytes),
        }
    }
}

/// Records that leave together, in the order of each queue.
#[derive(Debug, Default)]
pub struct Batch {
    /// The records.
    pub waiting: Vec<Waiting>,
    bytes: usize,
}

impl Batch {
    fn has_room(&self, limits: Limits) -> bool {
        self.waiting.len() < limits.records && self.bytes < limits.bytes
    }

    fn add(&mut self, waiting: Waiting) {
        self.bytes += waiting.record.size();
        self.waiting.push(waiting);
    }
}

/// The level queues that this worker owns.
#[derive(Debug, Default)]
pub struct Planner {
    queues: BTreeMap<Partition, LevelQueue>,
    /// Where the next batch begins, so that no queue is always first.
    turn: usize,
}

impl Planner {
    /// Takes a queue over.
    pub fn add(&mut self, queue: LevelQueue) {
        self.queues.insert(queue.partition().clone(), queue);
    }

    /// Forgets a queue that now belongs to somebody else, with all that is held of it.
    pub fn remove(&mut self, partition: &Partition) {
        self.queues.remove(partition);
    }

    /// All queues.
    pub fn queues(&self) -> impl Iterator<Item = &LevelQueue> {
        self.queues.values()
    }

    /// All queues, to be filled.
    pub fn queues_mut(&mut self) -> impl Iterator<Item = &mut LevelQueue> {
        self.queues.values_mut()
    }

    /// Whether as much is held of what is due as a batch may hold: then nothing more should be read.
    pub fn is_full(&self, now: Timestamp, limits: Limits) -> bool {
        let is_due = |queue: &&LevelQueue| queue.next_due().is_some_and(|due| due <= now);
        let held = self.queues.values().filter(is_due).map(LevelQueue::held);
        let (records, bytes) =
            held.fold((0, 0), |(r, b), (records, bytes)| (r + records, b + bytes));
        records >= limits.records + self.queues.len() || bytes >= limits.bytes + (1 << 20)
    }

    /// When the next record of any queue may leave.
    pub fn next_due(&self) -> Option<Timestamp> {
        self.queues.values().filter_map(LevelQueue::next_due).min()
    }

    /// Takes what is due, a share of each queue in turn, until the batch is full.
    pub fn take_due(&mut self, now: Timestamp, limits: Limits) -> Batch {
        let mut batch = Batch::default();
        let mut order: Vec<&mut LevelQueue> = self.queues.values_mut().collect();
        if order.is_empty() {
            return batch;
        }
        self.turn = (self.turn + 1) % order.len();
        order.rotate_left(self.turn);
        loop {
            let before = batch.waiting.len();
            for queue in &mut order {
                take_share(queue, now, limits, &mut batch);
            }
            if batch.waiting.len() == before {
                return batch;
            }
        }
    }

    /// The offsets from which the queues go on once `batch` is settled.
    pub fn offsets_after(batch: &[Waiting]) -> BTreeMap<Partition, i64> {
        batch
            .iter()
            .map(|w| (w.source.partition.clone(), w.source.offset + 1))
            .collect()
    }

    /// Notes that a batch is settled.
    pub fn settle(&mut self, offsets: &BTreeMap<Partition, i64>) {
        for (partition, offset) in offsets {
            if let Some(queue) = self.queues.get_mut(partition) {
                queue.settle(*offset);
            }
        }
    }

    /// Takes a batch back that was not settled.
    pub fn roll_back(&mut self, batch: Vec<Waiting>) {
        for waiting in batch.into_iter().rev() {
            if let Some(queue) = self.queues.get_mut(&waiting.source.partition) {
                queue.put_back(waiting);
            }
        }
    }
}

fn take_share(queue: &mut LevelQueue, now: Timestamp, limits: Limits, batch: &mut Batch) {
    for _ in 0..SHARE {
        if !batch.has_room(limits) {
            return;
        }
        match queue.pop_due(now) {
            Some(waiting) => batch.add(waiting),
            None => return,
        }
    }
}

#[cfg(test)]
mod tests;

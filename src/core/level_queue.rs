//! One level queue: a partition whose records carry their own due time, in order of it.
//! Called by `planner` and `flow::scanner`; looks only at the head, so it never holds more than
//! the scanner is about to send, however much is pending.

use std::collections::VecDeque;
use std::time::Duration;

use super::envelope::Envelope;
use super::level::{Level, LevelTable};
use super::record::{Arrival, Partition, Record, Source, Stamp};
use super::time::Timestamp;

/// How far ahead a due time may lie where the level table does not explain it, because the table
/// was longer once. It bounds how long a record that somebody else wrote can hold up its level.
const LONGEST_WAIT: Duration = Duration::from_secs(40 * 86_400);

/// Whether a shorter level table also shortens the waits that have begun.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PendingMode {
    /// Yes: due at the earlier of the recorded and the newly computed time.
    Shorten,
    /// No: the recorded time counts.
    Keep,
}

/// A record of a level queue, with the time at which it may leave.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Waiting {
    /// Where it stands.
    pub source: Source,
    /// When it may leave.
    pub due: Timestamp,
    /// What it is.
    pub record: Record,
    /// What delayd wrote around it, or why that cannot be read.
    pub envelope: Result<Envelope, String>,
}

/// The queue of one level in one schedule topic.
#[derive(Debug)]
pub struct LevelQueue {
    partition: Partition,
    /// Read and not yet settled, in order of offset. The head decides.
    held: VecDeque<Waiting>,
    held_bytes: usize,
    /// Everything below is settled: delivered, re-parked or dead-lettered.
    settled: Option<i64>,
    latest_due: Timestamp,
}

impl LevelQueue {
    /// An empty queue; `settled` is the offset from which reading starts, if it is known.
    pub fn new(partition: Partition, settled: Option<i64>) -> LevelQueue {
        LevelQueue {
            partition,
            held: VecDeque::new(),
            held_bytes: 0,
            settled,
            latest_due: Timestamp(i64::MIN),
        }
    }

    /// The partition this queue is.
    pub fn partition(&self) -> &Partition {
        &self.partition
    }

    /// The level this queue belongs to, whether or not the table still has it.
    pub fn level(&self) -> Option<Level> {
        Level::of_partition(self.partition.partition)
    }

    /// Everything below this offset is settled.
    pub fn settled(&self) -> Option<i64> {
        self.settled
    }

    /// Adds the next record of the partition. Returns by how much its due time lies before that
    /// of a record that stands in front of it: so much later than due it may leave.
    pub fn push(&mut self, arrival: Arrival, table: &LevelTable, pending: PendingMode) -> Duration {
        let waiting = self.read(arrival, table, pending);
        let disorder = match waiting.envelope {
            Ok(_) => self.latest_due.since(waiting.due),
            // It has no due time of its own, so it cannot be late.
            Err(_) => Duration::ZERO,
        };
        self.latest_due = self.latest_due.max(waiting.due);
        self.settled.get_or_insert(waiting.source.offset);
        self.held_bytes += waiting.record.size();
        self.held.push_back(waiting);
        disorder
    }

    /// Applies another level table to what is held already.
    pub fn follow(&mut self, table: &LevelTable, pending: PendingMode) {
        let mut held = std::mem::take(&mut self.held);
        for waiting in &mut held {
            if let Ok(envelope) = &waiting.envelope {
                waiting.due = self.due(envelope, table, pending);
            }
        }
        self.held = held;
    }

    fn read(&self, arrival: Arrival, table: &LevelTable, pending: PendingMode) -> Waiting {
        let Arrival {
            source,
            stamp,
            record,
        } = arrival;
        let envelope = Envelope::read(&record).and_then(|envelope| {
            let due = self.due(&envelope, table, pending);
            explained(due, stamp, table)?;
            Ok(envelope)
        });
        let due = match &envelope {
            Ok(envelope) => self.due(envelope, table, pending),
            // It can never be delivered, so nothing is gained by letting it wait.
            Err(_) => Timestamp(i64::MIN),
        };
        Waiting {
            source,
            due,
            record,
            envelope,
        }
    }

    fn due(&self, envelope: &Envelope, table: &LevelTable, pending: PendingMode) -> Timestamp {
        // Waits of re-parks come from the retry ladder, not from the table.
        let unchanged = pending == PendingMode::Keep || envelope.attempt > 0;
        if unchanged || !table.is_newer_than(envelope.queued_at) {
            return envelope.due;
        }
        match self.level().and_then(|level| table.delay(level)) {
            Some(delay) => envelope.due.min(envelope.queued_at.plus(delay)),
            None => envelope.due,
        }
    }

    /// When the head may leave; `None` if nothing is held.
    pub fn next_due(&self) -> Option<Timestamp> {
        self.held.front().map(|head| head.due)
    }

    /// How many records are held, and their bytes.
    pub fn held(&self) -> (usize, usize) {
        (self.held.len(), self.held_bytes)
    }

    /// Whether more records should be read: a head that waits is enough to know.
    pub fn wants_more(&self, now: Timestamp) -> bool {
        // The last one alone does not tell: with a clock that was set back the head may wait again.
        let due = |waiting: Option<&Waiting>| waiting.is_none_or(|waiting| waiting.due <= now);
        due(self.held.front()) && due(self.held.back())
    }

    /// Takes the head, if it is due.
    pub fn pop_due(&mut self, now: Timestamp) -> Option<Waiting> {
        let head = self.held.pop_front_if(|head| head.due <= now)?;
        self.held_bytes -= head.record.size();
        Some(head)
    }

    /// Puts back what was taken and not settled: the most recently taken first.
    pub fn put_back(&mut self, waiting: Waiting) {
        self.held_bytes += waiting.record.size();
        self.held.push_front(waiting);
    }

    /// Notes that everything below `offset` is settled. Never moves back.
    pub fn settle(&mut self, offset: i64) {
        self.settled = Some(self.settled.map_or(offset, |settled| settled.max(offset)));
    }
}

/// A due time that no table explains would hold up everything behind it.
fn explained(due: Timestamp, stamp: Stamp, table: &LevelTable) -> Result<(), String> {
    let longest = table
        .iter()
        .map(|(_, delay)| delay)
        .max()
        .unwrap_or_default();
    match stamp.time() {
        Some(appended) if due > appended.plus(longest.max(LONGEST_WAIT)) => {
            Err(format!("delayd-due {due} is further ahead than any level"))
        }
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests;

//! Lots: what may be in flight to one topic at a time, where the topic takes less than a whole batch.
//! Used by `producer`. The broker judges produce batches, not records; so a refused lot is halved
//! until what is refused is alone, and what was learned is kept for the next batch.

use std::collections::HashMap;
use std::time::{Duration, Instant};

use super::error::Guilt;

/// How long a topic is known for its small limit; somebody may raise it.
const SMALL: Duration = Duration::from_secs(600);
/// How long it is known for having refused a record's content.
const CHOOSY: Duration = Duration::from_secs(5);

/// The most bytes in flight at a time, for topics that refused more.
#[derive(Debug, Default)]
pub(super) struct Caps {
    topics: HashMap<String, (usize, Instant)>,
}

impl Caps {
    /// The cap of a topic, if it has one.
    fn of(&self, topic: &str) -> Option<usize> {
        let (cap, until) = self.topics.get(topic)?;
        (Instant::now() < *until).then_some(*cap)
    }

    /// A lot of this size was refused, so the next ones are at most half as large.
    pub(super) fn lower(&mut self, topic: &str, lot: usize, guilt: Guilt) {
        let time = match guilt {
            Guilt::Size => SMALL,
            Guilt::Content => CHOOSY,
        };
        // Every record of the lot says the same: halve once.
        let cap = self.of(topic).map_or(lot / 2, |cap| cap.min(lot / 2));
        self.topics
            .insert(topic.to_owned(), (cap, Instant::now() + time));
    }
}

/// The lots of one batch.
#[derive(Debug, Default)]
pub(super) struct Lots {
    /// Bytes and records of each.
    sizes: Vec<(usize, usize)>,
    /// The lot of each topic that is still being filled.
    open: HashMap<String, usize>,
    /// The lot of each record.
    of: HashMap<usize, usize>,
}

impl Lots {
    /// Whether everything in flight must be answered before this record may follow.
    pub(super) fn is_full(&self, caps: &Caps, topic: &str, bytes: usize) -> bool {
        let Some((lot, cap)) = self.open.get(topic).zip(caps.of(topic)) else {
            return false;
        };
        self.sizes[*lot].0 + bytes > cap
    }

    /// Nothing is in flight any more: what follows is in lots of its own.
    pub(super) fn close(&mut self) {
        self.open.clear();
    }

    /// Puts a record into its topic's lot.
    pub(super) fn add(&mut self, index: usize, topic: &str, bytes: usize) {
        let lot = match self.open.get(topic) {
            Some(lot) => *lot,
            None => {
                self.sizes.push((0, 0));
                self.open.insert(topic.to_owned(), self.sizes.len() - 1);
                self.sizes.len() - 1
            }
        };
        let (size, count) = &mut self.sizes[lot];
        (*size, *count) = (*size + bytes, *count + 1);
        self.of.insert(index, lot);
    }

    /// Bytes and records of the lot that this record was in.
    pub(super) fn lot_of(&self, index: usize) -> (usize, usize) {
        self.of.get(&index).map_or((0, 1), |lot| self.sizes[*lot])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_refused_lot_is_halved_until_a_record_is_alone() {
        let mut caps = Caps::default();
        let mut lots = Lots::default();
        assert!(
            !lots.is_full(&caps, "t", 1 << 30),
            "no cap before a refusal"
        );
        for index in 0..4 {
            lots.add(index, "t", 100);
        }
        assert_eq!(lots.lot_of(2), (400, 4));
        for lot in [400, 400, 200, 200] {
            caps.lower("t", lot, Guilt::Size);
        }
        let mut lots = Lots::default();
        for index in 0..4 {
            if lots.is_full(&caps, "t", 100) {
                lots.close();
            }
            lots.add(index, "t", 100);
        }
        assert_eq!(lots.lot_of(3), (100, 1));
        assert!(!lots.is_full(&caps, "other", 100));
    }
}

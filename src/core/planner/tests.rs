//! Tests of what leaves next: fair shares, the order of each queue, the limits of a batch, and
//! that a batch which was rolled back is taken again as it was.

use super::*;
use crate::core::level::LevelTable;
use crate::core::level_queue::PendingMode;
use crate::core::record::{Arrival, Header, Record, Source, Stamp};

const NOW: Timestamp = Timestamp(1_700_000_000_000);
const PLENTY: Limits = Limits {
    records: 10_000,
    bytes: 1 << 30,
};

fn partition(queue: i32) -> Partition {
    Partition {
        topic: "S".into(),
        partition: queue,
    }
}

/// A planner with so many records in each queue, all due (records without an envelope are due at once).
fn planner(counts: &[i64]) -> Planner {
    let table = LevelTable::from_rocketmq("1s").unwrap();
    let mut planner = Planner::default();
    for (queue, count) in (0..).zip(counts) {
        let mut level_queue = LevelQueue::new(partition(queue), Some(0));
        for offset in 0..*count {
            let source = Source {
                partition: partition(queue),
                offset,
            };
            let record = Record {
                value: Some(vec![0; 84]),
                ..Record::default()
            };
            level_queue.push(
                Arrival {
                    source,
                    stamp: Stamp::Append(NOW),
                    record,
                },
                &table,
                PendingMode::Shorten,
            );
        }
        planner.add(level_queue);
    }
    planner
}

fn taken(planner: &mut Planner, limits: Limits) -> Vec<(i32, i64)> {
    let batch = planner.take_due(NOW, limits).waiting;
    batch
        .iter()
        .map(|w| (w.source.partition.partition, w.source.offset))
        .collect()
}

fn offsets_of(queue: i32, taken: &[(i32, i64)]) -> Vec<i64> {
    taken
        .iter()
        .filter(|(q, _)| *q == queue)
        .map(|(_, offset)| *offset)
        .collect()
}

#[test]
fn a_batch_takes_a_fair_share_of_each_queue_and_keeps_the_order_of_each() {
    let limits = Limits {
        records: 300,
        ..PLENTY
    };
    let taken = taken(&mut planner(&[1_000, 3, 1_000]), limits);
    assert_eq!(taken.len(), 300);
    for (queue, at_least) in [(0, 128), (1, 3), (2, 128)] {
        let offsets = offsets_of(queue, &taken);
        assert!(
            offsets.len() >= at_least,
            "queue {queue} got {}",
            offsets.len()
        );
        assert_eq!(
            offsets,
            (0..).take(offsets.len()).collect::<Vec<i64>>(),
            "queue {queue}"
        );
    }
}

#[test]
fn no_queue_is_always_first() {
    let mut planner = planner(&[100, 100, 100]);
    let limits = Limits {
        records: 1,
        ..PLENTY
    };
    let mut turns: Vec<i32> = (0..6)
        .flat_map(|_| taken(&mut planner, limits))
        .map(|(queue, _)| queue)
        .collect();
    turns.sort_unstable();
    assert_eq!(turns, [0, 0, 1, 1, 2, 2]);
}

#[test]
fn a_batch_is_limited_in_records_and_in_bytes_and_never_empty_for_a_large_record() {
    let sum = |limits| taken(&mut planner(&[50, 50]), limits).len();
    assert_eq!(sum(PLENTY), 100);
    assert_eq!(
        sum(Limits {
            records: 7,
            ..PLENTY
        }),
        7
    );
    assert_eq!(
        sum(Limits {
            bytes: 1_000,
            ..PLENTY
        }),
        10
    );
    assert_eq!(
        sum(Limits {
            bytes: 1_001,
            ..PLENTY
        }),
        11,
        "the last one may go over"
    );
    assert_eq!(
        sum(Limits {
            records: 1,
            bytes: 1
        }),
        1
    );
}

#[test]
fn nothing_due_is_an_empty_batch() {
    assert_eq!(taken(&mut Planner::default(), PLENTY), []);
    assert_eq!(taken(&mut planner(&[0, 0]), PLENTY), []);
    assert_eq!(Planner::default().next_due(), None);
}

#[test]
fn a_batch_that_was_rolled_back_is_taken_again_as_it_was() {
    let mut planner = planner(&[200, 5]);
    let limits = Limits {
        records: 100,
        ..PLENTY
    };
    let held: Vec<_> = planner.queues().map(LevelQueue::held).collect();
    let batch = planner.take_due(NOW, limits).waiting;
    let before: Vec<_> = batch.iter().map(|w| w.source.clone()).collect();
    planner.roll_back(batch);
    assert_eq!(
        planner.queues().map(LevelQueue::held).collect::<Vec<_>>(),
        held
    );
    assert!(planner.queues().all(|queue| queue.settled() == Some(0)));
    let again = planner.take_due(NOW, limits).waiting;
    for queue in [0, 1] {
        let of = |sources: Vec<&Source>| {
            sources
                .iter()
                .filter(|s| s.partition == partition(queue))
                .map(|s| s.offset)
                .collect::<Vec<_>>()
        };
        let (first, second) = (
            of(before.iter().collect()),
            of(again.iter().map(|w| &w.source).collect()),
        );
        let common = first.len().min(second.len());
        assert!(common > 0);
        assert_eq!(first[..common], second[..common], "queue {queue}");
    }
}

#[test]
fn what_is_rolled_back_of_a_queue_that_was_given_up_is_forgotten() {
    let mut planner = planner(&[5, 5]);
    let batch = planner.take_due(NOW, PLENTY).waiting;
    planner.remove(&partition(0));
    planner.roll_back(batch);
    let taken = taken(&mut planner, PLENTY);
    assert_eq!(
        (offsets_of(0, &taken), offsets_of(1, &taken)),
        (vec![], vec![0, 1, 2, 3, 4])
    );
}

#[test]
fn offsets_after_a_batch_are_those_behind_its_last_record_of_each_queue() {
    let mut planner = planner(&[3, 2, 0]);
    let batch = planner.take_due(NOW, PLENTY).waiting;
    let offsets = Planner::offsets_after(&batch);
    assert_eq!(
        offsets,
        BTreeMap::from([(partition(0), 3), (partition(1), 2)])
    );
    planner.settle(&offsets);
    assert_eq!(
        planner
            .queues()
            .map(LevelQueue::settled)
            .collect::<Vec<_>>(),
        [Some(3), Some(2), Some(0)]
    );
    // Of a queue that somebody else owns by now there is nothing to note.
    planner.settle(&BTreeMap::from([(partition(9), 1)]));
}

#[test]
fn reading_stops_when_as_much_is_held_as_a_batch_may_hold() {
    let full = |counts: &[i64], limits| planner(counts).is_full(NOW, limits);
    let limits = Limits {
        records: 10,
        ..PLENTY
    };
    assert!(!full(&[], limits));
    assert!(!full(&[5, 6], limits));
    assert!(
        full(&[5, 7], limits),
        "the batch, and one more of each queue"
    );
    assert!(!full(&[5], Limits { bytes: 1, ..PLENTY }));
    assert!(full(
        &[12_000],
        Limits {
            bytes: 1,
            records: 100_000
        }
    ));
}

#[test]
fn a_queue_that_waits_again_after_the_clock_was_set_back_keeps_no_other_from_being_read() {
    let header = |name: &str, value: &str| Header {
        key: name.into(),
        value: Some(value.into()),
    };
    let due = NOW.to_string();
    let times =
        ["delayd-accepted-at", "delayd-queued-at", "delayd-due"].map(|name| header(name, &due));
    let headers = [
        &[header("REAL_TOPIC", "orders"), header("delayd-id", "x")][..],
        &times,
    ]
    .concat();
    let limits = Limits {
        records: 10,
        ..PLENTY
    };
    let mut planner = planner(&[0, 0]);
    let table = LevelTable::from_rocketmq("1s").unwrap();
    for offset in 0..20 {
        let source = Source {
            partition: partition(0),
            offset,
        };
        let record = Record {
            headers: headers.clone(),
            ..Record::default()
        };
        let queue = planner.queues_mut().next().unwrap();
        queue.push(
            Arrival {
                source,
                stamp: Stamp::Append(NOW),
                record,
            },
            &table,
            PendingMode::Keep,
        );
    }
    assert!(planner.is_full(NOW, limits));
    assert!(!planner.is_full(Timestamp(NOW.0 - 1), limits));
}

#[test]
fn limits_are_halved_to_no_less_than_one_and_grow_by_quarters_to_no_more_than_all() {
    let full = Limits {
        records: 8_000,
        bytes: 4_000,
    };
    assert_eq!(
        full.halved(),
        Limits {
            records: 4_000,
            bytes: 2_000
        }
    );
    let least = (0..40).fold(full, |limits, _| limits.halved());
    assert_eq!(
        least,
        Limits {
            records: 1,
            bytes: 1
        }
    );
    assert_eq!(
        least.grown(full),
        Limits {
            records: 2_001,
            bytes: 1_001
        }
    );
    assert_eq!((0..4).fold(least, |limits, _| limits.grown(full)), full);
    assert_eq!(full.grown(full), full);
}

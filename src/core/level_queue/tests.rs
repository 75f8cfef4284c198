//! Tests of one level queue: when its head may leave, what a change of the table does to it, and
//! that records which somebody else wrote neither stop it nor stay in it.

use std::borrow::Cow;

use proptest::prelude::*;

use super::*;
use crate::core::envelope::Target;
use crate::core::record::{DUE, Header, Stamp};

const SECOND: Duration = Duration::from_secs(1);
const T0: i64 = 1_700_000_000_000;

fn partition() -> Partition {
    Partition {
        topic: "SCHEDULE_TOPIC_XXXX".into(),
        partition: 2,
    }
}

fn queue() -> LevelQueue {
    LevelQueue::new(partition(), None)
}

fn table(text: &str) -> LevelTable {
    LevelTable::from_rocketmq(text).unwrap()
}

/// A record queued at T0 + `queued` ms, due at T0 + `due` ms.
fn arrival(offset: i64, queued: i64, due: i64, attempt: u32) -> Arrival {
    let envelope = Envelope {
        target: Target {
            topic: "orders".to_owned(),
            partition: None,
        },
        id: b"id".to_vec(),
        accepted_at: Timestamp(T0),
        timestamp: None,
        due: Timestamp(T0 + due),
        queued_at: Timestamp(T0 + queued),
        attempt,
    };
    let target = Header {
        key: b"REAL_TOPIC".to_vec(),
        value: Some(b"orders".to_vec()),
    };
    let bare = Record {
        key: None,
        value: Some(vec![7; 10]),
        headers: vec![target],
    };
    let one = |(key, value): (&[u8], Option<Cow<'_, [u8]>>)| Header {
        key: key.to_vec(),
        value: value.map(Cow::into_owned),
    };
    let headers = envelope.waiting(&bare).into_iter().map(one).collect();
    let source = Source {
        partition: partition(),
        offset,
    };
    Arrival {
        source,
        stamp: Stamp::Append(Timestamp(T0 + queued)),
        record: Record { headers, ..bare },
    }
}

fn bad(offset: i64) -> Arrival {
    let mut bad = arrival(offset, 0, 0, 0);
    bad.record.remove(DUE);
    bad
}

fn push(queue: &mut LevelQueue, arrival: Arrival) -> Duration {
    queue.push(arrival, &table("1s 5s 10s"), PendingMode::Shorten)
}

/// Everything due at T0 + `now`, by offset.
fn popped(queue: &mut LevelQueue, now: i64) -> Vec<i64> {
    std::iter::from_fn(|| queue.pop_due(Timestamp(T0 + now)))
        .map(|w| w.source.offset)
        .collect()
}

#[test]
fn nothing_leaves_before_it_is_due_and_everything_leaves_in_order() {
    let mut queue = queue();
    for (offset, due) in [(10, 1_000), (11, 1_000), (15, 2_000)] {
        push(&mut queue, arrival(offset, 0, due, 0));
    }
    assert_eq!(queue.next_due(), Some(Timestamp(T0 + 1_000)));
    assert_eq!(popped(&mut queue, 999), [0_i64; 0]);
    assert_eq!(popped(&mut queue, 1_000), [10, 11]);
    assert_eq!(popped(&mut queue, 5_000), [15]);
    assert_eq!((queue.next_due(), queue.held()), (None, (0, 0)));
}

#[test]
fn a_change_of_the_table_shortens_a_wait_only_where_design_3_says() {
    use PendingMode::{Keep, Shorten};
    // (table now, mode, attempt, wait of a record queued at T0 and due at T0 + 10 s)
    let rows = [
        ("1s 5s 10s", Shorten, 0, 10_000),
        ("1s 5s 60s", Shorten, 0, 10_000),
        ("1s 5s 4s", Shorten, 0, 4_000),
        ("1s 5s 4s", Keep, 0, 10_000),
        ("1s 5s 4s", Shorten, 1, 10_000),
        ("1s 5s 4s", Keep, 1, 10_000),
        // The level is gone: its queue empties at the times that were promised.
        ("1s 5s", Shorten, 0, 10_000),
        ("1s 5s 10s 1d", Shorten, 0, 10_000),
    ];
    for (text, mode, attempt, wait) in rows {
        let mut queue = queue();
        queue.push(arrival(0, 0, 10_000, attempt), &table(text), mode);
        assert_eq!(
            queue.next_due(),
            Some(Timestamp(T0 + wait)),
            "{text} {mode:?} attempt {attempt}"
        );
    }
}

#[test]
fn a_shorter_table_reaches_what_is_held_already() {
    let mut queue = queue();
    push(&mut queue, arrival(0, 0, 10_000, 0));
    push(&mut queue, arrival(1, 100, 10_100, 1));
    queue.follow(&table("1s 5s 4s"), PendingMode::Keep);
    assert_eq!(queue.next_due(), Some(Timestamp(T0 + 10_000)));
    queue.follow(&table("1s 5s 4s"), PendingMode::Shorten);
    assert_eq!(queue.next_due(), Some(Timestamp(T0 + 4_000)));
    assert_eq!(popped(&mut queue, 9_999), [0], "a re-park keeps its wait");
    assert_eq!(popped(&mut queue, 10_100), [1]);
}

#[test]
fn disorder_is_by_how_much_a_record_is_due_before_one_in_front_of_it() {
    let mut queue = queue();
    let rows = [
        (5_000, 0),
        (5_000, 0),
        (3_000, 2_000),
        (4_999, 1),
        (9_000, 0),
        (8_000, 1_000),
    ];
    for (offset, (due, disorder)) in (0..).zip(rows) {
        let measured = push(&mut queue, arrival(offset, 0, due, 0));
        assert_eq!(measured, Duration::from_millis(disorder), "due at {due}");
    }
    // Late by at most that, never early.
    assert_eq!(popped(&mut queue, 4_999), [0_i64; 0]);
    assert_eq!(popped(&mut queue, 5_000), [0, 1, 2, 3]);
    assert_eq!(popped(&mut queue, 8_999), [0_i64; 0]);
}

#[test]
fn what_left_already_still_counts_as_in_front() {
    let mut queue = queue();
    push(&mut queue, arrival(0, 0, 5_000, 0));
    assert_eq!(popped(&mut queue, 5_000), [0]);
    assert_eq!(push(&mut queue, arrival(1, 0, 4_000, 0)), SECOND);
}

#[test]
fn a_bad_record_is_due_at_once_and_leaves_in_order() {
    let mut queue = queue();
    push(&mut queue, bad(0));
    push(&mut queue, arrival(1, 0, 1_000, 0));
    push(&mut queue, bad(2));
    assert_eq!(popped(&mut queue, 0), [0]);
    assert_eq!(
        popped(&mut queue, 0),
        [0_i64; 0],
        "the other stands behind a record that waits"
    );
    assert_eq!(popped(&mut queue, 1_000), [1, 2]);
}

#[test]
fn a_bad_record_is_no_disorder() {
    let mut queue = queue();
    push(&mut queue, arrival(0, 0, 1_000, 0));
    assert_eq!(push(&mut queue, bad(1)), Duration::ZERO);
    assert_eq!(push(&mut queue, arrival(2, 0, 1_000, 0)), Duration::ZERO);
}

#[test]
fn a_due_time_that_no_table_explains_is_bad_and_holds_nobody_up() {
    let mut queue = queue();
    let far = 400 * 86_400_000;
    queue.push(arrival(0, 0, far, 0), &table("1s 5s"), PendingMode::Keep);
    assert!(
        queue
            .pop_due(Timestamp(T0))
            .is_some_and(|w| w.envelope.is_err())
    );
    // A table with such a level explains it.
    queue.push(
        arrival(1, 0, far, 0),
        &table("1s 5s 400d"),
        PendingMode::Shorten,
    );
    assert_eq!(queue.next_due(), Some(Timestamp(T0 + far)));
}

#[test]
fn a_head_that_waits_is_enough_to_know() {
    let (mut queue, now) = (queue(), Timestamp(T0 + 2_000));
    assert!(queue.wants_more(now), "nothing is held");
    push(&mut queue, arrival(0, 0, 1_000, 0));
    assert!(
        queue.wants_more(now),
        "the last one is due: so may be the next"
    );
    push(&mut queue, arrival(1, 0, 3_000, 0));
    assert!(!queue.wants_more(now));
    assert!(queue.wants_more(Timestamp(T0 + 3_000)));
}

#[test]
fn a_clock_that_was_set_back_reads_nothing_behind_a_head_that_waits() {
    let mut queue = queue();
    push(&mut queue, arrival(0, 0, 2_000, 0));
    push(&mut queue, bad(1));
    assert!(queue.wants_more(Timestamp(T0 + 2_000)));
    assert!(!queue.wants_more(Timestamp(T0 + 1_000)));
}

#[test]
fn what_is_put_back_stands_where_it_stood() {
    let mut queue = queue();
    for offset in 0..5 {
        push(&mut queue, arrival(offset, 0, 1_000, 0));
    }
    let held = queue.held();
    let mut taken: Vec<Waiting> = (0..3)
        .filter_map(|_| queue.pop_due(Timestamp(T0 + 1_000)))
        .collect();
    assert!(queue.held().1 < held.1);
    while let Some(waiting) = taken.pop() {
        queue.put_back(waiting);
    }
    assert_eq!(queue.held(), held);
    assert_eq!(popped(&mut queue, 1_000), [0, 1, 2, 3, 4]);
}

#[test]
fn settled_never_goes_back_and_starts_where_reading_starts() {
    let mut unknown = queue();
    assert_eq!(unknown.settled(), None);
    push(&mut unknown, arrival(7, 0, 0, 0));
    push(&mut unknown, arrival(9, 0, 0, 0));
    assert_eq!(unknown.settled(), Some(7));
    let mut known = LevelQueue::new(partition(), Some(5));
    push(&mut known, arrival(7, 0, 0, 0));
    for (settle, expected) in [(8, 8), (6, 8), (0, 8), (12, 12)] {
        known.settle(settle);
        assert_eq!(known.settled(), Some(expected), "settle({settle})");
    }
}

#[test]
fn a_queue_is_the_level_of_its_partition_also_when_the_table_is_shorter() {
    let level = |number| {
        LevelQueue::new(
            Partition {
                partition: number,
                ..partition()
            },
            None,
        )
        .level()
        .map(Level::number)
    };
    assert_eq!(
        [level(0), level(17), level(i32::MAX), level(-1)],
        [Some(1), Some(18), None, None]
    );
}

proptest! {
    #[test]
    fn any_bytes_in_the_queue_are_held_and_leave_in_order(
        records in proptest::collection::vec(
            (proptest::sample::select(vec!["delayd-due", "delayd-queued-at", "delayd-attempt", "REAL_TOPIC", "REAL_QID", "x"]),
             proptest::option::of(prop_oneof![
                 proptest::collection::vec(any::<u8>(), 0..20),
                 any::<u64>().prop_map(|n| n.to_string().into_bytes()),
             ]),
             prop_oneof![any::<i64>().prop_map(|t| Stamp::Append(Timestamp(t))), Just(Stamp::Missing)]),
            1..20,
        ),
    ) {
        let mut queue = queue();
        for (offset, (name, value, stamp)) in (0..).zip(&records) {
            let mut arrival = Arrival { stamp: *stamp, ..arrival(offset, 0, 1_000, 0) };
            arrival.record.headers.push(Header { key: name.as_bytes().to_vec(), value: value.clone() });
            push(&mut queue, arrival);
        }
        queue.follow(&table("1s"), PendingMode::Shorten);
        let all: Vec<i64> = std::iter::from_fn(|| queue.pop_due(Timestamp(i64::MAX))).map(|w| w.source.offset).collect();
        prop_assert_eq!(all, (0..).take(records.len()).collect::<Vec<i64>>());
        prop_assert_eq!(queue.held(), (0, 0));
    }
}

#[test]
fn a_shorter_table_leaves_alone_what_was_queued_after_it_came_into_force() {
    let (mut queue, short) = (
        queue(),
        table("1s 1s 1s 1s").in_force_since(Timestamp(T0 + 500)),
    );
    // Queued at T0, before it: shortened. Queued later, by a process with a longer table: not.
    queue.push(arrival(0, 0, 9_000, 0), &short, PendingMode::Shorten);
    queue.push(arrival(1, 600, 9_000, 0), &short, PendingMode::Shorten);
    let due: Vec<_> = std::iter::from_fn(|| queue.pop_due(Timestamp(i64::MAX)))
        .map(|waiting| waiting.due.0 - T0)
        .collect();
    assert_eq!(due, [1_000, 9_000]);
}

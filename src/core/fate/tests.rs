//! Tests of what becomes of a record that Kafka refuses (design §4.4): parked again by the ladder,
//! dead-lettered with its reason, or trimmed until it fits.

use super::*;
use crate::core::envelope::Target;
use crate::core::level::ROCKETMQ_DEFAULT;
use crate::core::record::{Header, Partition};

const SECOND: Duration = Duration::from_secs(1);
const DUE: Timestamp = Timestamp(1_000_000);

fn rules() -> Rules {
    Rules {
        routes: vec![],
        table: std::sync::Arc::new(table(ROCKETMQ_DEFAULT)),
        own: OwnTopics {
            schedule: "SCHEDULE_TOPIC_XXXX".to_owned(),
            dead_letter: "delayd-dead-letter".to_owned(),
            clock: "delayd-clock".to_owned(),
        },
        retention: std::collections::HashMap::new(),
    }
}

fn waiting(envelope: Result<Envelope, String>) -> Waiting {
    Waiting {
        source: source(),
        due: DUE,
        record: record("3"),
        envelope,
    }
}

#[test]
fn a_waiting_record_that_names_a_topic_of_ours_is_refused() {
    let mut foreign = envelope();
    "SCHEDULE_TOPIC_XXXX".clone_into(&mut foreign.target.topic);
    let waiting = waiting(Ok(foreign));
    let fate = Shipment::due(&waiting, &rules()).fate;
    assert!(matches!(fate, Fate::Refuse(o) if o.reason == Reason::TargetIsInternal));
}

fn table(text: &str) -> LevelTable {
    LevelTable::from_rocketmq(text).unwrap()
}

fn policy() -> RetryPolicy {
    let ladder = [10, 30, 60, 120, 180, 300, 600].map(Duration::from_secs);
    RetryPolicy {
        ladder: ladder.to_vec(),
        retry_for: 86_400 * SECOND,
    }
}

fn envelope() -> Envelope {
    Envelope {
        target: Target {
            topic: "orders".to_owned(),
            partition: None,
        },
        id: b"id".to_vec(),
        accepted_at: DUE.minus(10 * SECOND),
        timestamp: None,
        due: DUE,
        queued_at: DUE.minus(10 * SECOND),
        attempt: 0,
    }
}

fn record(level: &str) -> Record {
    let level = Header {
        key: b"delayLevel".to_vec(),
        value: Some(level.into()),
    };
    Record {
        key: Some(b"k".to_vec()),
        value: None,
        headers: vec![level],
    }
}

fn source() -> Source {
    Source {
        partition: Partition {
            topic: "SCHEDULE_TOPIC_XXXX".into(),
            partition: 2,
        },
        offset: 7,
    }
}

fn own() -> OwnTopics {
    OwnTopics {
        schedule: "S".to_owned(),
        dead_letter: "D".to_owned(),
        clock: "C".to_owned(),
    }
}

fn away(leaderless: bool) -> Refusal {
    Refusal::Away {
        leaderless,
        why: "topic orders does not exist".to_owned(),
    }
}

/// What becomes of a level-3 record with this fate, refused like this at `now`.
fn refused(fate: Fate, refusal: Refusal, table: &LevelTable, now: Timestamp) -> Fate {
    let (source, record) = (source(), record("3"));
    let mut shipment = Shipment::new(&source, &record, fate);
    shipment.refused(refusal, &policy(), table, now);
    shipment.fate
}

/// Level and wait in seconds of the re-park after `attempt` of them; `None` for a dead letter.
fn parked(
    attempt: u32,
    leaderless: bool,
    table: &LevelTable,
    now: Timestamp,
) -> Option<(u32, u64)> {
    let fate = Fate::Deliver(Envelope {
        attempt,
        ..envelope()
    });
    match refused(fate, away(leaderless), table, now) {
        Fate::Schedule(level, envelope) => {
            assert_eq!((envelope.attempt, envelope.queued_at), (attempt + 1, now));
            Some((level.number(), envelope.due.since(now).as_secs()))
        }
        Fate::Refuse(obituary) => {
            assert_eq!(obituary.reason, Reason::TargetUnavailable);
            None
        }
        Fate::Deliver(_) => panic!("not refused"),
    }
}

#[test]
fn a_record_goes_where_its_fate_says() {
    let fixed = Envelope {
        target: Target {
            topic: "orders".to_owned(),
            partition: Some(4),
        },
        ..envelope()
    };
    let level = Level::new(3).unwrap();
    let rows = [
        (Fate::Deliver(envelope()), "orders", None),
        (Fate::Deliver(fixed.clone()), "orders", Some(4)),
        (Fate::Schedule(level, fixed), "S", Some(2)),
        (
            Fate::Refuse(Obituary::new(Reason::BadLevel, "x")),
            "D",
            None,
        ),
    ];
    for (fate, topic, partition) in rows {
        let (source, record) = (source(), record("3"));
        let shipment = Shipment::new(&source, &record, fate);
        assert_eq!(
            (shipment.topic(&own()), shipment.fixed_partition()),
            (topic, partition)
        );
        assert_eq!(
            shipment.key_and_value(),
            (Some(b"k".as_slice().into()), None),
            "null stays null"
        );
    }
}

#[test]
fn a_wait_that_is_over_ends_in_delivery_and_an_unreadable_one_in_the_dead_letter_topic() {
    assert_eq!(
        Shipment::due(&waiting(Ok(envelope())), &rules()).fate,
        Fate::Deliver(envelope())
    );
    let bad = waiting(Err("delayd-due is missing".to_owned()));
    let expected = Fate::Refuse(Obituary::new(Reason::BadRecord, "delayd-due is missing"));
    assert_eq!(Shipment::due(&bad, &rules()).fate, expected);
}

#[test]
fn a_message_whose_target_is_away_climbs_the_ladder_and_its_last_rung_repeats() {
    let table = table(ROCKETMQ_DEFAULT);
    let rungs = [
        (0, 3, 10),
        (1, 4, 30),
        (2, 5, 60),
        (3, 6, 120),
        (4, 7, 180),
        (5, 9, 300),
        (6, 14, 600),
        (7, 14, 600),
        (u32::MAX - 1, 14, 600),
    ];
    for (attempt, level, wait) in rungs {
        assert_eq!(
            parked(attempt, false, &table, DUE),
            Some((level, wait)),
            "attempt {attempt}"
        );
    }
}

#[test]
fn a_re_park_takes_the_nearest_level_at_hand_and_waits_as_long_as_that_says() {
    // (table, wait of the first and of the last rung)
    let rows = [
        ("1s", (1, 1), (1, 1)),
        ("8s 1m", (1, 8), (2, 60)),
        ("5s 15s", (1, 5), (2, 15)),
        ("1d", (1, 86_400), (1, 86_400)),
    ];
    for (text, first, last) in rows {
        assert_eq!(parked(0, false, &table(text), DUE), Some(first), "{text}");
        assert_eq!(parked(99, false, &table(text), DUE), Some(last), "{text}");
    }
}

#[test]
fn a_missing_leader_is_waited_for_at_most_thirty_seconds() {
    let table = table(ROCKETMQ_DEFAULT);
    for (attempt, level, wait) in [(0, 3, 10), (1, 4, 30), (2, 4, 30), (99, 4, 30)] {
        assert_eq!(
            parked(attempt, true, &table, DUE),
            Some((level, wait)),
            "attempt {attempt}"
        );
    }
}

#[test]
fn a_target_may_be_away_for_retry_for_after_the_first_due_time() {
    let table = table(ROCKETMQ_DEFAULT);
    let end = DUE.plus(policy().retry_for);
    for attempt in [7, 8, 500] {
        assert!(
            parked(attempt, false, &table, Timestamp(end.0 - 1)).is_some(),
            "attempt {attempt}"
        );
        assert!(
            parked(attempt, false, &table, end).is_none(),
            "attempt {attempt}"
        );
        assert!(
            parked(attempt, false, &table, Timestamp(i64::MAX)).is_none(),
            "attempt {attempt}"
        );
    }
    // Time in which nobody tried, because delayd was down, does not count.
    assert!(parked(0, false, &table, end).is_some());
    assert!(parked(6, false, &table, end).is_some());
    // A clock that was set back counts as no time at all.
    assert!(parked(3, false, &table, Timestamp(0)).is_some());
}

#[test]
fn the_first_due_time_of_a_level_that_the_table_lost_is_that_of_its_last() {
    let short = table("1s 2s");
    let again = Envelope {
        attempt: 9,
        ..envelope()
    };
    let end = again.accepted_at.plus(2 * SECOND + policy().retry_for);
    assert!(parked(9, false, &short, Timestamp(end.0 - 1)).is_some());
    assert!(parked(9, false, &short, end).is_none());
}

#[test]
fn the_dead_letter_of_an_unavailable_target_says_why_and_for_how_long() {
    let now = DUE.plus(policy().retry_for);
    let tried = Envelope {
        attempt: 7,
        ..envelope()
    };
    let table = table(ROCKETMQ_DEFAULT);
    let fate = refused(Fate::Deliver(tried), away(false), &table, now);
    let Fate::Refuse(obituary) = fate else {
        panic!("{fate:?}")
    };
    assert_eq!(
        obituary.detail,
        "topic orders does not exist; tried for 1day"
    );
}

#[test]
fn a_topic_that_never_takes_the_record_ends_in_the_dead_letter_topic() {
    for reason in [Reason::NoSuchPartition, Reason::BadTarget] {
        let fate = refused(
            Fate::Deliver(envelope()),
            Refusal::Never(reason, "why".to_owned()),
            &table("1s"),
            DUE,
        );
        assert_eq!(fate, Fate::Refuse(Obituary::new(reason, "why")));
    }
}

#[test]
fn a_dead_letter_topic_that_takes_no_null_key_gets_a_pointer_with_a_key() {
    let (source, mut record) = (source(), record("3"));
    record.key = None;
    let dead = Fate::Refuse(Obituary::new(Reason::BadLevel, "x"));
    let mut shipment = Shipment::new(&source, &record, dead);
    for _ in 0..2 {
        let never = Refusal::Never(Reason::BadTarget, "no key".to_owned());
        shipment.refused(never, &policy(), &table("1s"), DUE);
    }
    let (key, value) = shipment.key_and_value();
    assert_eq!(key.as_deref(), Some(source.to_string().as_bytes()));
    assert_eq!(value, None);
}

#[test]
fn trouble_of_our_own_topics_changes_no_fate() {
    let fates = [
        Fate::Schedule(Level::new(1).unwrap(), envelope()),
        Fate::Refuse(Obituary::new(Reason::BadLevel, "x")),
    ];
    for fate in fates {
        for refusal in [away(true), away(false)] {
            assert_eq!(refused(fate.clone(), refusal, &table("1s"), DUE), fate);
        }
    }
}

#[test]
fn a_record_that_is_too_large_alone_is_dead_lettered_wherever_it_was_going() {
    for fate in [
        Fate::Deliver(envelope()),
        Fate::Schedule(Level::new(1).unwrap(), envelope()),
    ] {
        let fate = refused(fate, Refusal::TooLarge, &table("1s"), DUE);
        let Fate::Refuse(obituary) = &fate else {
            panic!("{fate:?}")
        };
        assert_eq!(
            (obituary.reason, obituary.trim),
            (Reason::TooLarge, Trim::Nothing)
        );
        assert_eq!(
            obituary.detail,
            format!("{} bytes are more than the topic takes", record("3").size())
        );
    }
}

#[test]
fn a_dead_letter_that_is_too_large_loses_its_detail_and_then_all_but_a_pointer() {
    let (source, record) = (source(), record("3"));
    let mut shipment = Shipment::new(
        &source,
        &record,
        Fate::Refuse(Obituary::new(Reason::BadLevel, "x".repeat(99))),
    );
    let mut sizes = Vec::new();
    for trim in [
        Trim::Nothing,
        Trim::Detail,
        Trim::ToPointer,
        Trim::ToPointer,
    ] {
        let Fate::Refuse(obituary) = &shipment.fate else {
            panic!()
        };
        assert_eq!((obituary.reason, obituary.trim), (Reason::BadLevel, trim));
        let whole = trim != Trim::ToPointer;
        assert_eq!(shipment.key_and_value().0.as_deref() == Some(b"k"), whole);
        let headers = shipment.headers(HeaderMode::Strip);
        assert!(
            headers.iter().any(|(key, _)| *key == b"delayd-source"),
            "the source is never trimmed"
        );
        sizes.push(
            headers
                .iter()
                .map(|(key, value)| key.len() + value.as_ref().map_or(0, |v| v.len()))
                .sum::<usize>(),
        );
        shipment.refused(Refusal::TooLarge, &policy(), &table("1s"), DUE);
    }
    assert!(
        sizes[0] > sizes[1] && sizes[1] > sizes[2] && sizes[2] == sizes[3],
        "{sizes:?}"
    );
}

#[test]
fn a_changed_fate_forgets_the_partition_that_was_chosen_for_the_old_one() {
    let (source, record) = (source(), record("3"));
    let mut shipment = Shipment::new(&source, &record, Fate::Deliver(envelope()));
    shipment.partition = Some(9);
    shipment.refused(away(false), &policy(), &table(ROCKETMQ_DEFAULT), DUE);
    assert_eq!(
        (shipment.partition, shipment.fixed_partition()),
        (None, Some(2))
    );
    shipment.refused(Refusal::TooLarge, &policy(), &table(ROCKETMQ_DEFAULT), DUE);
    assert_eq!(shipment.partition, None);
}

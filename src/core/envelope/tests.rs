//! Tests of what stands around a message while it waits and what is left at delivery (design §2),
//! and of reading schedule records that somebody else wrote.

use proptest::prelude::*;

use super::*;

const DAY: Duration = Duration::from_secs(86_400);

type Pairs<'a> = &'a [(&'a str, Option<&'a str>)];

fn record(headers: Pairs<'_>) -> Record {
    let header = |(key, value): &(&str, Option<&str>)| Header {
        key: key.as_bytes().to_vec(),
        value: value.map(|v| v.as_bytes().to_vec()),
    };
    Record {
        key: None,
        value: None,
        headers: headers.iter().map(header).collect(),
    }
}

fn envelope() -> Envelope {
    Envelope {
        target: Target {
            topic: "orders".to_owned(),
            partition: None,
        },
        id: b"id".to_vec(),
        accepted_at: Timestamp(1_000),
        timestamp: Some(Timestamp(900)),
        due: Timestamp(11_000),
        queued_at: Timestamp(1_000),
        attempt: 0,
    }
}

/// Headers as `key=value`, `key` where the value is null.
fn shown(headers: &[OutHeader<'_>]) -> Vec<String> {
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    let one = |(key, value): &OutHeader<'_>| match value {
        Some(value) => format!("{}={}", text(key), text(value)),
        None => text(key),
    };
    headers.iter().map(one).collect()
}

fn owned(headers: Vec<OutHeader<'_>>) -> Vec<Header> {
    let one = |(key, value): OutHeader<'_>| Header {
        key: key.to_vec(),
        value: value.map(Cow::into_owned),
    };
    headers.into_iter().map(one).collect()
}

/// A schedule record, complete but for what `change` does to it.
fn queued(change: impl FnOnce(&mut Record)) -> Result<Envelope, String> {
    let mut record = record(&[("REAL_TOPIC", Some("orders")), ("delayLevel", Some("3"))]);
    record.headers = owned(envelope().waiting(&record));
    change(&mut record);
    Envelope::read(&record)
}

#[test]
fn a_waiting_record_carries_all_its_facts_and_reads_back() {
    let (record, envelope) = (
        record(&[("a", Some("1")), ("REAL_TOPIC", Some("orders"))]),
        envelope(),
    );
    let expected = [
        "a=1",
        "REAL_TOPIC=orders",
        "delayd-id=id",
        "delayd-accepted-at=1000",
        "delayd-timestamp=900",
        "delayd-due=11000",
        "delayd-queued-at=1000",
    ];
    assert_eq!(shown(&envelope.waiting(&record)), expected);
    assert_eq!(queued(|_| ()), Ok(envelope));
}

#[test]
fn only_a_reparked_record_carries_its_attempt() {
    let again = envelope().reparked(Timestamp(20_000), Duration::from_secs(30));
    assert_eq!(
        (again.due, again.queued_at, again.attempt),
        (Timestamp(50_000), Timestamp(20_000), 1)
    );
    assert_eq!(
        (&again.id, again.accepted_at),
        (&envelope().id, Timestamp(1_000))
    );
    assert_eq!(
        shown(&again.waiting(&record(&[]))).last().unwrap(),
        "delayd-attempt=1"
    );
    let worn = Envelope {
        attempt: u32::MAX,
        ..envelope()
    }
    .reparked(Timestamp(i64::MAX - 1), Duration::MAX);
    assert_eq!((worn.attempt, worn.due), (u32::MAX, Timestamp(i64::MAX)));
}

#[test]
fn headers_keep_their_order_duplicates_and_null_values() {
    let headers: Pairs<'_> = &[
        ("trace", Some("1")),
        ("n", None),
        ("delayLevel", Some("3")),
        ("trace", Some("1")),
        ("e", Some("")),
        ("trace", Some("2")),
    ];
    let kept = ["trace=1", "n", "delayLevel=3", "trace=1", "e=", "trace=2"];
    let (record, envelope) = (record(headers), envelope());
    assert_eq!(shown(&envelope.waiting(&record))[..6], kept);
    assert_eq!(
        shown(&envelope.delivered(&record, HeaderMode::Keep))[..6],
        kept
    );
}

#[test]
fn a_delivered_record_tells_id_accepted_at_timestamp_and_due_and_nothing_of_the_waiting() {
    let waiting = record(&[
        ("REAL_TOPIC", Some("orders")),
        ("REAL_QID", Some("1")),
        ("delayLevel", Some("3")),
        ("delayd-queued-at", Some("7")),
        ("delayd-attempt", Some("2")),
        ("delayd-due", Some("8")),
        ("delayd-error", Some("x")),
        ("DELAYD-due", Some("mine")),
    ]);
    let expected = [
        "REAL_TOPIC=orders",
        "REAL_QID=1",
        "delayLevel=3",
        "DELAYD-due=mine",
        "delayd-id=id",
        "delayd-accepted-at=1000",
        "delayd-timestamp=900",
        "delayd-due=11000",
    ];
    assert_eq!(
        shown(&envelope().delivered(&waiting, HeaderMode::Keep)),
        expected
    );
    let no_timestamp = Envelope {
        timestamp: None,
        ..envelope()
    };
    assert!(
        !shown(&no_timestamp.delivered(&waiting, HeaderMode::Keep))
            .iter()
            .any(|h| h.starts_with(TIMESTAMP))
    );
}

#[test]
fn strip_mode_leaves_only_the_producers_own_headers() {
    let waiting = record(&[
        ("a", Some("1")),
        ("REAL_TOPIC", Some("orders")),
        ("REAL_QID", Some("1")),
        ("delayLevel", Some("3")),
        ("DELAY", None),
        ("delayd-id", Some("x")),
        ("delayd-due", Some("8")),
        ("a", None),
        ("delaylevel", Some("kept")),
    ]);
    assert_eq!(
        shown(&envelope().delivered(&waiting, HeaderMode::Strip)),
        ["a=1", "a", "delaylevel=kept"]
    );
}

#[test]
fn a_record_does_not_grow_by_going_round() {
    let mut record = record(&[("REAL_TOPIC", Some("orders")), ("x", None)]);
    let mut envelope = Envelope {
        accepted_at: Timestamp(1_700_000_000_000),
        ..envelope()
    };
    let mut sizes = Vec::new();
    for round in 1..=9 {
        envelope = envelope.reparked(Timestamp(1_700_000_000_000 + round), DAY);
        record.headers = owned(envelope.waiting(&record));
        assert_eq!(Envelope::read(&record).as_ref(), Ok(&envelope));
        sizes.push((record.headers.len(), record.size()));
    }
    assert!(sizes.windows(2).all(|pair| pair[0] == pair[1]), "{sizes:?}");
}

#[test]
fn a_schedule_record_that_somebody_else_wrote_is_bad_in_words() {
    let check = |name: &str, value: Option<&str>, part: &str| {
        let read = queued(|record| match value {
            Some(value) => record.set(name, value),
            None => record.remove(name),
        });
        assert!(
            read.as_ref().is_err_and(|why| why.contains(part)),
            "{name}={value:?}: {read:?}"
        );
    };
    for name in [
        "REAL_TOPIC",
        "delayd-id",
        "delayd-accepted-at",
        "delayd-due",
        "delayd-queued-at",
    ] {
        check(name, None, &format!("{name} is missing"));
        check(name, Some(""), &format!("{name} is missing"));
    }
    for name in [
        "delayd-accepted-at",
        "delayd-due",
        "delayd-queued-at",
        "delayd-timestamp",
    ] {
        for bad in [
            "-1",
            "+1",
            " 1",
            "1.0",
            "x",
            "9223372036854775808",
            "\u{661}",
            "1\0",
        ] {
            check(name, Some(bad), &format!("{name} is not a time"));
        }
    }
    for bad in [".", "..", "a b", "\u{e4}"] {
        check("REAL_TOPIC", Some(bad), "not the name of a topic");
    }
    for bad in ["-1", "x", "2147483648"] {
        check("REAL_QID", Some(bad), "not a partition");
        check("delayd-attempt", Some(bad), "not a count");
    }
}

#[test]
fn a_time_may_be_longer_than_a_time_needs_to_be_but_not_larger() {
    let due = |text: &str| queued(|record| record.set(DUE, text)).map(|e| e.due.0);
    assert_eq!(due("0000000000000000000000011000"), Ok(11_000));
    assert!(due(&"9".repeat(1_000_000)).is_err());
}

#[test]
fn the_first_wait_of_a_reparked_record_ended_at_accepted_at_plus_its_level() {
    assert_eq!(envelope().first_due(DAY), Timestamp(11_000));
    let again = envelope().reparked(Timestamp(99_000), DAY);
    assert_eq!(again.first_due(Duration::from_secs(10)), Timestamp(11_000));
}

#[test]
fn the_level_of_a_waiting_record_is_that_of_its_header() {
    let rows: &[(Pairs<'_>, Option<u32>)] = &[
        (&[("delayLevel", Some("3"))], Some(3)),
        (&[("delayLevel", Some("")), ("DELAY", Some("+04"))], Some(4)),
        (&[("delayLevel", Some("0"))], None),
        (&[("delayLevel", Some("x"))], None),
        (&[], None),
    ];
    for (headers, level) in rows {
        assert_eq!(
            level_of(&record(headers)).map(Level::number),
            *level,
            "{headers:?}"
        );
    }
}

fn any_time() -> impl Strategy<Value = Timestamp> {
    prop_oneof![Just(0), Just(i64::MAX), 0..i64::MAX].prop_map(Timestamp)
}

prop_compose! {
    fn any_envelope()(
        topic in "[a-zA-Z0-9._-]{3,249}",
        partition in proptest::option::of(0..=i32::MAX),
        id in proptest::collection::vec(any::<u8>(), 1..40),
        times in (any_time(), proptest::option::of(any_time()), any_time(), any_time()),
        attempt in 0..=i32::MAX as u32,
    ) -> Envelope {
        let (accepted_at, timestamp, due, queued_at) = times;
        Envelope { target: Target { topic, partition }, id, accepted_at, timestamp, due, queued_at, attempt }
    }
}

proptest! {
    #[test]
    fn what_is_written_around_a_message_reads_back(envelope in any_envelope()) {
        let mut record = record(&[("delayd-due", Some("x")), ("delayd-attempt", Some("x")), ("REAL_TOPIC", Some(""))]);
        record.set(REAL_TOPIC, envelope.target.topic.as_str());
        if let Some(partition) = envelope.target.partition {
            record.set(REAL_QID, partition.to_string());
        }
        record.headers = owned(envelope.waiting(&record));
        prop_assert_eq!(Envelope::read(&record), Ok(envelope));
    }

    #[test]
    fn any_bytes_in_a_schedule_record_are_read_or_refused(
        name in proptest::sample::select(vec![REAL_TOPIC, REAL_QID, ID, ACCEPTED_AT, TIMESTAMP, DUE, QUEUED_AT, ATTEMPT]),
        value in proptest::option::of(proptest::collection::vec(any::<u8>(), 0..24)),
    ) {
        let mut record = record(&[("REAL_TOPIC", Some("orders"))]);
        record.headers = owned(envelope().waiting(&record));
        record.headers.push(Header { key: name.into(), value });
        if let Err(why) = Envelope::read(&record) {
            prop_assert!(!why.is_empty() && why.len() < 200);
        }
    }
}

//! Table tests of the first decision: which level, which time, which headers (design §2 and §3).

use regex::Regex;

use super::*;
use crate::core::ingress::Ingress;
use crate::core::level::ROCKETMQ_DEFAULT;

mod any_bytes;
mod targets;

const NOW: Timestamp = Timestamp(1_700_000_000_000);
const TOOK: Timestamp = Timestamp(1_699_999_999_000);
const SECOND: Duration = Duration::from_secs(1);

type Pairs<'a> = &'a [(&'a str, Option<&'a [u8]>)];

fn route(from: &str, to: Option<&str>) -> Route {
    let from = match from.starts_with('^') {
        true => Ingress::Pattern(Regex::new(from).unwrap()),
        false => Ingress::Topic(from.to_owned()),
    };
    Route {
        from,
        to: to.map(str::to_owned),
        level: None,
        partition: TargetPartition::Key,
    }
}

fn rules_of(routes: Vec<Route>) -> Rules {
    Rules {
        routes,
        table: Arc::new(LevelTable::from_rocketmq(ROCKETMQ_DEFAULT).unwrap()),
        own: OwnTopics {
            schedule: "SCHEDULE_TOPIC_XXXX".to_owned(),
            dead_letter: "delayd-dead-letter".to_owned(),
            clock: "delayd-clock".to_owned(),
        },
        retention: HashMap::from([("kept-an-hour".to_owned(), 3_600 * SECOND)]),
    }
}

fn rules() -> Rules {
    rules_of(vec![
        route("delayd-ingress", None),
        route("orders-delayed", Some("orders")),
        route("kept-an-hour", Some("orders")),
        route("^(.+)-later$", Some("$1")),
    ])
}

fn record(headers: Pairs<'_>) -> Record {
    let header = |(key, value): &(&str, Option<&[u8]>)| Header {
        key: key.as_bytes().to_vec(),
        value: value.map(<[u8]>::to_vec),
    };
    Record {
        key: Some(b"k".to_vec()),
        value: Some(b"v".to_vec()),
        headers: headers.iter().map(header).collect(),
    }
}

fn source(topic: &str) -> Source {
    Source {
        partition: Partition {
            topic: topic.into(),
            partition: 3,
        },
        offset: 42,
    }
}

fn decide_in(rules: &Rules, topic: &str, headers: Pairs<'_>) -> (Decision, Record) {
    let mut record = record(headers);
    let routed = rules.decide(&source(topic), Stamp::Append(TOOK), &mut record, NOW);
    (routed.decision, record)
}

fn decide(headers: Pairs<'_>) -> (Decision, Record) {
    decide_in(&rules(), "orders-delayed", headers)
}

/// In short: `level 3`, `level 18 clamped`, `now` or the reason of a refusal.
fn said(decision: &Decision) -> String {
    match decision {
        Decision::Schedule {
            level,
            clamped: false,
            ..
        } => format!("level {level}"),
        Decision::Schedule {
            level,
            clamped: true,
            ..
        } => format!("level {level} clamped"),
        Decision::Deliver(_) => "now".to_owned(),
        Decision::Refuse(obituary) => obituary.reason.code().to_owned(),
    }
}

fn envelope(decision: Decision) -> Envelope {
    match decision {
        Decision::Schedule { envelope, .. } | Decision::Deliver(envelope) => envelope,
        Decision::Refuse(obituary) => panic!("refused: {obituary:?}"),
    }
}

fn check(headers: Pairs<'_>, expected: &str) {
    assert_eq!(said(&decide(headers).0), expected, "{headers:?}");
}

#[test]
fn the_last_level_header_counts() {
    check(
        &[("delayLevel", Some(b"3")), ("delayLevel", Some(b"5"))],
        "level 5",
    );
    check(&[("DELAY", Some(b"3")), ("DELAY", Some(b"5"))], "level 5");
    // The last one is empty, and what is empty falls through: not to an earlier one of its kind.
    check(
        &[("delayLevel", Some(b"3")), ("delayLevel", Some(b""))],
        "now",
    );
}

#[test]
fn delay_level_stands_before_delay_wherever_it_is() {
    check(
        &[("DELAY", Some(b"3")), ("delayLevel", Some(b"5"))],
        "level 5",
    );
    check(
        &[("delayLevel", Some(b"5")), ("DELAY", Some(b"3"))],
        "level 5",
    );
    check(&[("delayLevel", Some(b"0")), ("DELAY", Some(b"3"))], "now");
    check(
        &[("delayLevel", Some(b"x")), ("DELAY", Some(b"3"))],
        "bad_level",
    );
}

#[test]
fn an_empty_or_null_level_falls_through() {
    check(&[], "now");
    check(&[("delayLevel", None)], "now");
    check(&[("delayLevel", Some(b""))], "now");
    check(&[("delayLevel", None), ("DELAY", Some(b"4"))], "level 4");
    check(
        &[("delayLevel", Some(b"")), ("DELAY", Some(b"4"))],
        "level 4",
    );
    check(&[("delayLevel", Some(b"")), ("DELAY", None)], "now");
    // Names are case-sensitive, as all header keys are.
    check(&[("delaylevel", Some(b"4")), ("delay", Some(b"4"))], "now");
}

#[test]
fn level_values_mean_what_design_3_says() {
    let rows: &[(&[u8], &str)] = &[
        (b"0", "now"),
        (b"-1", "now"),
        (b"-2147483648", "now"),
        (b"1", "level 1"),
        (b"18", "level 18"),
        (b"+2", "level 2"),
        (b"02", "level 2"),
        (b"19", "level 18 clamped"),
        (b"2147483647", "level 18 clamped"),
        (b"2147483648", "bad_level"),
        (b"-2147483649", "bad_level"),
        (b"99999999999999999999", "bad_level"),
        (b"abc", "bad_level"),
        (b" 2", "bad_level"),
        (b"2 ", "bad_level"),
        (b"2.5", "bad_level"),
        (b"1s", "bad_level"),
        (b"null", "bad_level"),
        (b"3\0", "bad_level"),
        (b"\0\0\0\x03", "bad_level"),
        (b"\x03", "bad_level"),
        (b"\xff", "bad_level"),
        ("\u{661}".as_bytes(), "bad_level"),
        ("\u{ff12}".as_bytes(), "bad_level"),
    ];
    for (value, expected) in rows {
        check(&[("delayLevel", Some(value))], expected);
        check(&[("DELAY", Some(value))], expected);
    }
}

#[test]
fn a_bad_level_is_shown_safely() {
    let long = [b'\n'; 10_000];
    for (value, part) in [
        (&b"3\0"[..], r"3\x00"),
        (b"\xff\xfe", r"\xff\xfe"),
        (&long, "10000 bytes"),
    ] {
        let Decision::Refuse(obituary) = decide(&[("delayLevel", Some(value))]).0 else {
            panic!()
        };
        assert!(obituary.detail.contains(part), "{}", obituary.detail);
        assert!(obituary.detail.len() < 300 && !obituary.detail.contains(char::is_control));
    }
}

#[test]
fn a_clamped_level_is_rewritten_where_it_stands_and_another_keeps_its_bytes() {
    let check = |before: Pairs<'_>, after: Pairs<'_>| {
        let mut expected = record(after);
        expected.set(REAL_TOPIC, "orders");
        assert_eq!(decide(before).1, expected, "{before:?}");
    };
    check(
        &[("a", None), ("delayLevel", Some(b"99")), ("b", None)],
        &[("a", None), ("delayLevel", Some(b"18")), ("b", None)],
    );
    check(
        &[("DELAY", Some(b"99")), ("b", None)],
        &[("DELAY", Some(b"18")), ("b", None)],
    );
    // Only the one that counts.
    check(
        &[("DELAY", Some(b"99")), ("delayLevel", Some(b"77"))],
        &[("DELAY", Some(b"99")), ("delayLevel", Some(b"18"))],
    );
    check(
        &[("delayLevel", Some(b"77")), ("delayLevel", Some(b"99"))],
        &[("delayLevel", Some(b"77")), ("delayLevel", Some(b"18"))],
    );
    check(
        &[("delayLevel", None), ("DELAY", Some(b"99"))],
        &[("delayLevel", None), ("DELAY", Some(b"18"))],
    );
    for kept in [&b"+2"[..], b"02", b"18", b"0", b"-5"] {
        check(&[("delayLevel", Some(kept))], &[("delayLevel", Some(kept))]);
    }
}

#[test]
fn a_routes_default_level_adds_the_header_and_yields_to_the_messages_own() {
    let check = |level: u32, headers: Pairs<'_>, expected: &str, header: &[u8]| {
        let own_level = Route {
            level: Level::new(level),
            ..route("in", Some("out"))
        };
        let (decision, record) = decide_in(&rules_of(vec![own_level]), "in", headers);
        assert_eq!(said(&decision), expected, "{headers:?}");
        let counts = record
            .text(DELAY_LEVEL)
            .or_else(|| record.text(DELAY))
            .unwrap();
        assert_eq!(counts, header, "{headers:?}");
    };
    check(4, &[], "level 4", b"4");
    check(4, &[("delayLevel", None)], "level 4", b"4");
    check(4, &[("delayLevel", Some(b""))], "level 4", b"4");
    check(99, &[], "level 18 clamped", b"18");
    check(4, &[("delayLevel", Some(b"2"))], "level 2", b"2");
    check(4, &[("DELAY", Some(b"2"))], "level 2", b"2");
    check(4, &[("delayLevel", Some(b"0"))], "now", b"0");
    check(4, &[("delayLevel", Some(b"-1"))], "now", b"-1");
}

#[test]
fn due_is_accepted_at_plus_the_delay_and_now_is_no_delay() {
    let scheduled = envelope(decide(&[("delayLevel", Some(b"3"))]).0);
    assert_eq!(scheduled.due, TOOK.plus(10 * SECOND));
    assert_eq!(
        (
            scheduled.accepted_at,
            scheduled.queued_at,
            scheduled.attempt
        ),
        (TOOK, TOOK, 0)
    );
    assert_eq!(envelope(decide(&[]).0).due, TOOK);
}

#[test]
fn a_due_time_saturates_and_never_wraps_into_the_past() {
    let mut record = record(&[("delayLevel", Some(b"18"))]);
    let stamp = Stamp::Append(Timestamp(i64::MAX - 5));
    let routed = rules().decide(&source("orders-delayed"), stamp, &mut record, NOW);
    assert_eq!(envelope(routed.decision).due, Timestamp(i64::MAX));
}

#[test]
fn the_producers_time_counts_only_where_it_is_plausible() {
    let hour = 3_600 * SECOND;
    let day = 24 * hour;
    // (topic, its own stamp, accepted at, implausible)
    let rows = [
        (
            "orders-delayed",
            Stamp::Append(NOW.plus(day)),
            NOW.plus(day),
            false,
        ),
        (
            "orders-delayed",
            Stamp::Append(NOW.minus(99 * day)),
            NOW.minus(99 * day),
            false,
        ),
        ("orders-delayed", Stamp::Create(NOW), NOW, false),
        (
            "orders-delayed",
            Stamp::Create(NOW.plus(Duration::from_millis(1))),
            NOW,
            true,
        ),
        (
            "orders-delayed",
            Stamp::Create(NOW.minus(7 * day)),
            NOW.minus(7 * day),
            false,
        ),
        (
            "orders-delayed",
            Stamp::Create(NOW.minus(7 * day + SECOND)),
            NOW,
            true,
        ),
        (
            "kept-an-hour",
            Stamp::Create(NOW.minus(hour)),
            NOW.minus(hour),
            false,
        ),
        (
            "kept-an-hour",
            Stamp::Create(NOW.minus(hour + SECOND)),
            NOW,
            true,
        ),
        ("kept-an-hour", Stamp::Create(Timestamp(0)), NOW, true),
        (
            "kept-an-hour",
            Stamp::Create(Timestamp(i64::MAX)),
            NOW,
            true,
        ),
        ("kept-an-hour", Stamp::Missing, NOW, true),
    ];
    for (topic, stamp, accepted_at, implausible) in rows {
        let mut record = record(&[("delayLevel", Some(b"1"))]);
        let routed = rules().decide(&source(topic), stamp, &mut record, NOW);
        assert_eq!(routed.implausible, implausible, "{topic} {stamp:?}");
        let envelope = envelope(routed.decision);
        assert_eq!(
            (envelope.accepted_at, envelope.due),
            (accepted_at, accepted_at.plus(SECOND)),
            "{stamp:?}"
        );
        assert_eq!(
            envelope.timestamp,
            stamp.time(),
            "its own timestamp is told as it was"
        );
    }
}

#[test]
fn the_id_is_the_producers_or_where_the_message_stood() {
    let check = |headers: Pairs<'_>, id: &[u8]| {
        assert_eq!(envelope(decide(headers).0).id, id, "{headers:?}")
    };
    check(&[], b"orders-delayed-3-42");
    check(&[("delayd-id", None)], b"orders-delayed-3-42");
    check(&[("delayd-id", Some(b""))], b"orders-delayed-3-42");
    check(&[("delayd-id", Some(b"mine"))], b"mine");
    check(
        &[("delayd-id", Some(b"a")), ("delayd-id", Some(b"b"))],
        b"b",
    );
    check(&[("delayd-id", Some(b"\xff\0"))], b"\xff\0");
    let large = vec![b'x'; 1_000_000];
    check(&[("delayd-id", Some(&large))], &large);
}

#[test]
fn a_producers_own_internal_headers_are_never_trusted() {
    let large = vec![b'9'; 1_000_000];
    let values = [
        &b""[..],
        b"123",
        b"123456789",
        b"-1",
        b"9223372036854775807",
        b"\xff",
        &large,
    ];
    for name in [
        ACCEPTED_AT,
        TIMESTAMP,
        DUE,
        QUEUED_AT,
        ATTEMPT,
        ERROR,
        "delayd-",
        "delayd-anything",
    ] {
        for value in values {
            let (decision, record) = decide(&[
                (name, Some(value)),
                ("delayLevel", Some(b"1")),
                (name, None),
            ]);
            let envelope = envelope(decision);
            assert_eq!(
                (envelope.due, envelope.attempt),
                (TOOK.plus(SECOND), 0),
                "{name}"
            );
            let expected: &[&[u8]] = match name {
                ACCEPTED_AT | TIMESTAMP | DUE | QUEUED_AT => &[b"1"],
                _ => &[],
            };
            let out = envelope.waiting(&record);
            assert_eq!(
                out.iter()
                    .filter(|(key, _)| key == &name.as_bytes())
                    .count(),
                expected.len(),
                "{name}"
            );
        }
    }
}

#[test]
fn a_header_key_that_is_not_utf8_is_refused() {
    let mut bad = record(&[("delayLevel", Some(b"1"))]);
    bad.headers.push(Header {
        key: b"k\xff".to_vec(),
        value: None,
    });
    let before = bad.clone();
    let routed = rules().decide(
        &source("orders-delayed"),
        Stamp::Append(TOOK),
        &mut bad,
        NOW,
    );
    let Decision::Refuse(obituary) = routed.decision else {
        panic!()
    };
    assert_eq!(obituary.reason.code(), "bad_header_key");
    assert!(obituary.detail.contains(r"k\xff"), "{}", obituary.detail);
    assert_eq!(bad, before);
}

#[test]
fn null_and_empty_keys_and_values_stay_what_they_are() {
    for key in [None, Some(vec![]), Some(vec![0xff])] {
        for value in [None, Some(vec![]), Some(vec![0])] {
            let mut record = Record {
                key: key.clone(),
                value: value.clone(),
                headers: Vec::new(),
            };
            rules().decide(
                &source("orders-delayed"),
                Stamp::Append(TOOK),
                &mut record,
                NOW,
            );
            assert_eq!((record.key, record.value), (key.clone(), value));
        }
    }
}

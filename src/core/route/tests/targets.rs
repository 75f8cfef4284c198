//! Table tests of where a message goes: routes, patterns, `REAL_TOPIC`, `REAL_QID`, and what is refused.

use super::*;

#[test]
fn a_routes_target_wins_over_real_topic_and_the_header_then_says_so() {
    let (decision, record) = decide(&[("REAL_TOPIC", Some(b"elsewhere")), ("z", None)]);
    assert_eq!(
        envelope(decision).target,
        Target {
            topic: "orders".to_owned(),
            partition: None
        }
    );
    assert_eq!(record.headers[0].value.as_deref(), Some(&b"orders"[..]));
    assert_eq!(record.headers.len(), 2);
}

#[test]
fn real_topic_names_the_target_where_no_route_does() {
    let check = |headers: Pairs<'_>, expected: Result<&str, &str>| match decide_in(
        &rules(),
        "delayd-ingress",
        headers,
    )
    .0
    {
        Decision::Refuse(obituary) => {
            assert_eq!(Err(obituary.reason.code()), expected, "{headers:?}")
        }
        good => assert_eq!(
            Ok(envelope(good).target.topic.as_str()),
            expected,
            "{headers:?}"
        ),
    };
    check(&[("REAL_TOPIC", Some(b"orders"))], Ok("orders"));
    check(
        &[("REAL_TOPIC", Some(b"a")), ("REAL_TOPIC", Some(b"b"))],
        Ok("b"),
    );
    check(&[], Err("no_target"));
    check(&[("REAL_TOPIC", None)], Err("no_target"));
    check(&[("REAL_TOPIC", Some(b""))], Err("no_target"));
    check(
        &[("REAL_TOPIC", Some(b"a")), ("REAL_TOPIC", Some(b""))],
        Err("no_target"),
    );
    check(&[("REAL_TOPIC", Some(b"\xff"))], Err("bad_target"));
    // A level that is no level is said first; a level alone is no target.
    check(&[("delayLevel", Some(b"x"))], Err("bad_level"));
    check(&[("delayLevel", Some(b"1"))], Err("no_target"));
}

#[test]
fn targets_that_can_never_be_right_are_refused() {
    let (longest, too_long) = ("x".repeat(249), "x".repeat(250));
    let rows: &[(&str, Result<(), &str>)] = &[
        (&longest, Ok(())),
        (&too_long, Err("bad_target")),
        (".", Err("bad_target")),
        ("..", Err("bad_target")),
        ("...", Ok(())),
        ("a b", Err("bad_target")),
        ("a/b", Err("bad_target")),
        ("a\0b", Err("bad_target")),
        ("ä", Err("bad_target")),
        ("Az09._-", Ok(())),
        ("delayd-ingress", Err("target_is_ingress")),
        ("orders-delayed", Err("target_is_ingress")),
        ("stock-later", Err("target_is_ingress")),
        ("SCHEDULE_TOPIC_XXXX", Err("target_is_internal")),
        ("SCHEDULE_TOPIC_XXXX_1", Err("target_is_internal")),
        ("SCHEDULE_TOPIC_XXXXL", Ok(())),
        ("schedule_topic_xxxx", Ok(())),
        ("delayd-dead-letter", Err("target_is_internal")),
        ("delayd-clock", Err("target_is_internal")),
        ("delayd-clock-2", Ok(())),
        ("__consumer_offsets", Err("target_is_internal")),
        ("__transaction_state", Err("target_is_internal")),
        ("_schemas", Ok(())),
    ];
    for (topic, expected) in rows {
        for rules in [
            rules(),
            rules_of(vec![
                route("in", Some(topic)),
                route("delayd-ingress", None),
                route("^.+-(later|delayed)$", None),
            ]),
        ] {
            let from = if rules.routes.len() == 3 {
                "in"
            } else {
                "delayd-ingress"
            };
            let (decision, _) = decide_in(&rules, from, &[("REAL_TOPIC", Some(topic.as_bytes()))]);
            match (decision, expected) {
                (Decision::Refuse(obituary), Err(reason)) => {
                    assert_eq!(obituary.reason.code(), *reason, "{topic:?}")
                }
                (Decision::Deliver(_), Ok(())) => {}
                (other, _) => panic!("{topic:?}: {other:?}"),
            }
        }
    }
}

#[test]
fn a_pattern_names_the_target_by_its_groups() {
    // (from, to, ingress topic, target or reason)
    let rows = [
        ("^(.+)-delayed$", "$1", "orders-delayed", Ok("orders")),
        ("^(.+)-delayed$", "$1", "a.b-delayed", Ok("a.b")),
        (
            "^(?<what>.+)-delayed$",
            "${what}_now",
            "a-delayed",
            Ok("a_now"),
        ),
        ("^(\\w+)-(\\w+)$", "$2.$1", "a-b", Ok("b.a")),
        ("^(.+)-delayed$", "fixed", "orders-delayed", Ok("fixed")),
        // `$1x` is a group named "1x", which there is not: empty, so no topic.
        ("^(.+)-delayed$", "$1x", "orders-delayed", Err("bad_target")),
        ("^(.*)-delayed$", "$1", "-delayed", Err("bad_target")),
        (
            "^(.+)-delayed$",
            "$1",
            "__x-delayed",
            Err("target_is_internal"),
        ),
        (
            "^(.+)-delayed$",
            "$1",
            "a-delayed-delayed",
            Err("target_is_ingress"),
        ),
    ];
    for (from, to, topic, expected) in rows {
        let (decision, _) = decide_in(&rules_of(vec![route(from, Some(to))]), topic, &[]);
        match decision {
            Decision::Refuse(obituary) => {
                assert_eq!(Err(obituary.reason.code()), expected, "{topic}")
            }
            good => assert_eq!(
                Ok(envelope(good).target.topic.as_str()),
                expected,
                "{topic}"
            ),
        }
    }
    // In a plain route `$` is only a character.
    check(&[], "now");
    let (decision, _) = decide_in(&rules_of(vec![route("in", Some("$1"))]), "in", &[]);
    assert_eq!(said(&decision), "bad_target");
}

#[test]
fn the_first_route_that_matches_counts() {
    let rules = rules_of(vec![
        route("a-later", Some("first")),
        route("^(.+)-later$", Some("second")),
    ]);
    assert_eq!(
        envelope(decide_in(&rules, "a-later", &[]).0).target.topic,
        "first"
    );
    assert_eq!(
        envelope(decide_in(&rules, "b-later", &[]).0).target.topic,
        "second"
    );
}

#[test]
fn real_qid_is_honoured_only_together_with_real_topic() {
    let check = |topic: &str, qid: Option<&[u8]>, expected: Result<Option<i32>, &str>| {
        let headers: Pairs<'_> = &[("REAL_TOPIC", Some(b"t")), ("REAL_QID", qid), ("z", None)];
        let (decision, record) = decide_in(&rules(), topic, headers);
        match decision {
            Decision::Refuse(obituary) => {
                assert_eq!(Err(obituary.reason.code()), expected, "{topic} {qid:?}")
            }
            good => {
                let partition = envelope(good).target.partition;
                assert_eq!(Ok(partition), expected, "{topic} {qid:?}");
                // The header stays only where it means something.
                let header = record
                    .text(REAL_QID)
                    .map(|v| String::from_utf8_lossy(v).into_owned());
                assert_eq!(header, partition.map(|p| p.to_string()), "{topic} {qid:?}");
            }
        }
    };
    check("delayd-ingress", Some(b"0"), Ok(Some(0)));
    check("delayd-ingress", Some(b"+07"), Ok(Some(7)));
    check("delayd-ingress", Some(b"2147483647"), Ok(Some(i32::MAX)));
    check("delayd-ingress", None, Ok(None));
    check("delayd-ingress", Some(b""), Ok(None));
    for bad in [
        &b"-1"[..],
        b"x",
        b"1.0",
        b" 1",
        b"2147483648",
        b"\xff",
        b"\0\0\0\x01",
    ] {
        check("delayd-ingress", Some(bad), Err("bad_partition"));
        check("orders-delayed", Some(bad), Ok(None));
    }
    check("orders-delayed", Some(b"5"), Ok(None));
}

#[test]
fn partition_same_keeps_the_partition_of_the_ingress_topic() {
    for to in [Some("orders"), None] {
        let same = Route {
            partition: TargetPartition::Same,
            ..route("in", to)
        };
        let headers: Pairs<'_> = &[("REAL_TOPIC", Some(b"orders")), ("REAL_QID", Some(b"x"))];
        let (decision, record) = decide_in(&rules_of(vec![same]), "in", headers);
        assert_eq!(
            envelope(decision).target,
            Target {
                topic: "orders".to_owned(),
                partition: Some(3)
            }
        );
        assert_eq!(record.text(REAL_QID), Some(&b"3"[..]));
    }
}

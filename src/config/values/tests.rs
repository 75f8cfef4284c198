//! What each kind of value takes and refuses.

use super::*;

#[test]
fn durations_need_a_unit_and_are_positive() {
    for (text, millis) in [
        ("500ms", 500),
        ("30s", 30_000),
        ("1h 30m", 5_400_000),
        ("7d", 604_800_000),
    ] {
        assert_eq!(duration(text), Ok(Duration::from_millis(millis)), "{text}");
    }
    for text in [
        "",
        "5",
        "0s",
        "-1s",
        "soon",
        "11years",
        "9999999999999999999s",
    ] {
        assert!(
            duration(text).unwrap_err().next.contains("30s") || text == "11years",
            "{text}"
        );
    }
}

#[test]
fn names_are_legal_prefixes_of_topics() {
    for text in ["delayd", "a", "team-A_1.x", &"n".repeat(237)] {
        assert_eq!(name(text).as_deref(), Ok(text));
    }
    for text in ["", "a b", "a/b", "é", "__x", &"n".repeat(238)] {
        assert!(name(text).is_err(), "{text}");
    }
}

#[test]
fn topics_follow_kafkas_rules() {
    for text in [
        "orders",
        "SCHEDULE_TOPIC_XXXX",
        "a.b",
        "...",
        &"t".repeat(249),
    ] {
        assert!(topic(text).is_ok(), "{text}");
    }
    for text in ["", ".", "..", "a b", "a,b", "$1", &"t".repeat(250)] {
        assert!(topic(text).is_err(), "{text}");
    }
    let shown = topic("a b").unwrap_err();
    assert_eq!(shown.what, "\"a b\" is not a topic name because of ' '");
}

#[test]
fn instance_ids_are_legal_in_group_instance_ids() {
    assert!(instance("pod-0").is_ok());
    for text in ["", "a b", "a:b", &"i".repeat(101)] {
        assert!(instance(text).is_err(), "{text}");
    }
}

#[test]
fn retry_ladders_name_each_bad_step() {
    assert_eq!(
        retry(" 10ms  1d "),
        Ok(vec![Duration::from_millis(10), Duration::from_secs(86_400)])
    );
    let bad = retry("1s 0s 5x").unwrap_err();
    assert!(
        bad.what.contains("entry 2 \"0s\"") && bad.what.contains("entry 3 \"5x\""),
        "{bad:?}"
    );
    assert_eq!(retry("  ").unwrap_err().what, "there is no delay");
}

#[test]
fn http_is_an_address_or_off() {
    assert_eq!(http("off"), Ok(None));
    assert_eq!(http("[::1]:80"), Ok(Some("[::1]:80".parse().unwrap())));
    for text in ["", "localhost:80", ":80", "127.0.0.1", "127.0.0.1:99999"] {
        assert!(http(text).is_err(), "{text}");
    }
}

#[test]
fn numbers_keep_within_their_limits() {
    assert_eq!((whole("1", 1..=64), whole("64", 1..=64)), (Ok(1), Ok(64)));
    for text in ["0", "65", "-1", "x", "", "1.5", "99999999999999999999"] {
        assert!(whole(text, 1..=64).is_err(), "{text}");
    }
    assert_eq!(
        (replication_factor("-1"), replication_factor("3")),
        (Ok(-1), Ok(3))
    );
    assert!(
        ["0", "-2", "x", "40000"]
            .iter()
            .all(|text| replication_factor(text).is_err())
    );
    assert!(partitions("0").is_err() && partitions("1") == Ok(1));
}

#[test]
fn a_choice_suggests_the_word_that_was_meant() {
    let words = [("exactly-once", 1), ("at-least-once", 2)];
    assert_eq!(choice("at-least-once", &words), Ok(2));
    assert_eq!(
        choice("exactly_once", &words).unwrap_err().next,
        "did you mean \"exactly-once\"?"
    );
    assert_eq!(
        choice("never", &words).unwrap_err().next,
        "write exactly-once or at-least-once"
    );
}

//! Table tests of the level grammar and of header values (RocketMQ's behaviour beside ours).

use super::*;

fn rocketmq(text: &str) -> Option<Vec<u128>> {
    LevelTable::from_rocketmq(text)
        .ok()
        .map(|t| t.delays.iter().map(Duration::as_millis).collect())
}

#[test]
fn rocketmq_text_is_read_with_rocketmqs_grammar() {
    // (text, RocketMQ's table or None where it refuses to start, ours)
    let rows: &[(&str, Option<&[u128]>)] = &[
        ("1s 5s", Some(&[1_000, 5_000])),
        ("1s 5s  ", Some(&[1_000, 5_000])),
        ("1s  5s", None),
        (" 1s 5s", None),
        ("", None),
        ("   ", None), // RocketMQ starts with zero levels and loses every delayed message
        ("1S 5s", None),
        ("1s 5M 10s", None),
        ("1s XX 10s", None),
        ("0s 0m", None), // RocketMQ: deliver at the next poll
        ("-5s", None),   // RocketMQ: deliver at the next poll
        ("+5s 1s", Some(&[5_000, 1_000])),
        ("5s 5s 1s", Some(&[5_000, 5_000, 1_000])),
        ("1s\t5s", None),
        ("1s,5s", None),
        ("1s\n2s", None),
        ("10", None),
        ("s", None),
        ("1.5s", None),
        ("1s 2w 3s", None),
        ("\u{661}s", None),             // RocketMQ reads any Unicode digit
        ("9223372036854775807d", None), // RocketMQ wraps to a negative delay
    ];
    for (text, expected) in rows {
        assert_eq!(rocketmq(text).as_deref(), *expected, "{text:?}");
    }
}

#[test]
fn the_default_table_has_eighteen_levels() {
    let table = LevelTable::from_rocketmq(ROCKETMQ_DEFAULT).expect("the default");
    assert_eq!(table.count(), 18);
    assert_eq!(table.delay(Level(3)), Some(Duration::from_secs(10)));
    assert_eq!(table.delay(Level(18)), Some(Duration::from_secs(7_200)));
    assert_eq!(table.delay(Level(19)), None);
    assert_eq!(table.warnings(), Vec::<String>::new());
}

#[test]
fn a_refused_entry_is_named_with_its_place() {
    let errors = LevelTable::from_rocketmq("1s 5S 0s").expect_err("two bad entries");
    let places: Vec<_> = errors
        .iter()
        .map(|e| (e.level, e.at, e.text.as_str()))
        .collect();
    assert_eq!(places, [(2, 3, "5S"), (3, 6, "0s")]);
}

#[test]
fn lists_know_milliseconds_and_refuse_humantimes_traps() {
    let table = LevelTable::from_list(&["200ms", "1s", "2m"]).expect("a list");
    assert_eq!(table.delay(Level(1)), Some(Duration::from_millis(200)));
    for bad in [
        "1s 5s",
        "1M",
        "",
        " 1s",
        "1 s",
        "1h30m",
        "0ms",
        "99999999999999999999s",
        "9223372036854775807ms",
    ] {
        assert!(LevelTable::from_list(&[bad]).is_err(), "{bad:?}");
    }
}

#[test]
fn header_values_mean_what_they_mean_to_rocketmq() {
    let table = LevelTable::from_rocketmq(ROCKETMQ_DEFAULT).expect("the default");
    let level = |n| Wanted::Level(Level(n));
    let clamped = Wanted::Clamped(Level(18));
    let rows: &[(&str, Wanted)] = &[
        ("0", Wanted::Now),
        ("-1", Wanted::Now),
        ("-5", Wanted::Now),
        ("-2147483648", Wanted::Now),
        ("1", level(1)),
        ("18", level(18)),
        ("+2", level(2)),
        ("02", level(2)),
        ("19", clamped.clone()),
        ("999", clamped.clone()),
        ("2147483647", clamped),
    ];
    for (value, expected) in rows {
        assert_eq!(table.wanted(value.as_bytes()), *expected, "{value:?}");
    }
    let bad: &[&[u8]] = &[
        b"2147483648",
        b"99999999999999999999",
        b"abc",
        b" 2",
        b"2 ",
        b"2.5",
        b"1s",
        b"null",
        b"+",
        b"-",
        b"+-2",
        "\u{661}".as_bytes(),
        "\u{ff12}".as_bytes(),
        &[0, 0, 0, 3],
        &[3],
        &[0xff],
        b"3\0",
    ];
    for value in bad {
        assert!(matches!(table.wanted(value), Wanted::Bad(_)), "{value:?}");
    }
}

#[test]
fn a_binary_level_is_explained_by_its_length() {
    let table = LevelTable::from_list(&["1s"]).expect("a list");
    let Wanted::Bad(detail) = table.wanted(&[0, 0, 0, 3]) else {
        panic!("not a level")
    };
    assert!(
        detail.contains("4 bytes") && detail.contains(r"\x00\x00\x00\x03"),
        "{detail}"
    );
}

#[test]
fn odd_tables_pass_with_a_warning() {
    let table = LevelTable::from_rocketmq("5s 5s 1s").expect("odd, not wrong");
    assert_eq!(table.warnings().len(), 2);
    assert_eq!(
        table.nearest(Duration::from_secs(4)),
        (Level(1), Duration::from_secs(5))
    );
    assert_eq!(
        table.nearest(Duration::from_secs(2)),
        (Level(3), Duration::from_secs(1))
    );
}

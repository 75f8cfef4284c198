//! Tests of dead letters: what of a record stands in them, and how they are trimmed (design §4.4).

use super::*;
use crate::core::record::{Header, Partition};

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

fn shown(headers: &[OutHeader<'_>]) -> Vec<String> {
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    let one = |(key, value): &OutHeader<'_>| match value {
        Some(value) => format!("{}={}", text(key), text(value)),
        None => text(key),
    };
    headers.iter().map(one).collect()
}

#[test]
fn a_dead_letter_keeps_everything_and_says_why_and_from_where() {
    let source = Source {
        partition: Partition {
            topic: "in".into(),
            partition: 2,
        },
        offset: 7,
    };
    let dead = record(&[
        ("a", None),
        ("delayd-due", Some("1")),
        ("a", Some("")),
        ("delayd-error", Some("old")),
        ("delayd-source", None),
        ("delayd-error-detail", Some("old")),
    ]);
    let obituary = |trim| Obituary {
        trim,
        ..Obituary::new(Reason::TooLarge, "why")
    };
    let rows: &[(Trim, &[&str])] = &[
        (
            Trim::Nothing,
            &[
                "a",
                "delayd-due=1",
                "a=",
                "delayd-error=too_large",
                "delayd-error-detail=why",
                "delayd-source=in-2-7",
            ],
        ),
        (
            Trim::Detail,
            &[
                "a",
                "delayd-due=1",
                "a=",
                "delayd-error=too_large",
                "delayd-source=in-2-7",
            ],
        ),
        (
            Trim::ToPointer,
            &["delayd-error=too_large", "delayd-source=in-2-7"],
        ),
    ];
    for (trim, expected) in rows {
        assert_eq!(
            shown(&obituary(*trim).headers(&dead, &source)),
            *expected,
            "{trim:?}"
        );
    }
}

#[test]
fn reasons_have_codes_of_their_own() {
    let codes: std::collections::HashSet<_> =
        Reason::ALL.iter().map(|reason| reason.code()).collect();
    assert_eq!(codes.len(), Reason::ALL.len());
    assert!(
        codes
            .iter()
            .all(|code| code.bytes().all(|b| b.is_ascii_lowercase() || b == b'_'))
    );
}

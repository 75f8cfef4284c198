//! No record, whatever is in it, stops the router, and what it schedules the scanner can read.

use proptest::prelude::*;

use super::*;

fn bytes() -> impl Strategy<Value = Vec<u8>> {
    prop_oneof![
        proptest::collection::vec(any::<u8>(), 0..12),
        "[+-]?[0-9]{0,20}".prop_map(String::into_bytes),
        "[a-zA-Z._-]{0,8}".prop_map(String::into_bytes),
    ]
}

fn any_record() -> impl Strategy<Value = Record> {
    let names = vec![
        DELAY_LEVEL,
        DELAY,
        REAL_TOPIC,
        REAL_QID,
        ID,
        DUE,
        QUEUED_AT,
        ACCEPTED_AT,
        TIMESTAMP,
        ATTEMPT,
    ];
    let key = prop_oneof![
        proptest::sample::select(names).prop_map(|n| n.as_bytes().to_vec()),
        bytes()
    ];
    let header =
        (key, proptest::option::of(bytes())).prop_map(|(key, value)| Header { key, value });
    let headers = proptest::collection::vec(header, 0..12);
    (
        proptest::option::of(bytes()),
        proptest::option::of(bytes()),
        headers,
    )
        .prop_map(|(key, value, headers)| Record {
            key,
            value,
            headers,
        })
}

fn any_stamp() -> impl Strategy<Value = Stamp> {
    // `convert` turns negative timestamps into `Missing`.
    let time = prop_oneof![Just(0), Just(NOW.0), Just(i64::MAX), 0..i64::MAX].prop_map(Timestamp);
    prop_oneof![
        time.clone().prop_map(Stamp::Append),
        time.prop_map(Stamp::Create),
        Just(Stamp::Missing)
    ]
}

proptest! {
    #[test]
    fn any_bytes_anywhere_lead_to_a_decision_that_the_scanner_can_read(
        record in any_record(),
        stamp in any_stamp(),
        topic in prop_oneof![Just("delayd-ingress"), Just("orders-delayed"), Just("x-later"), Just("unknown")],
    ) {
        let mut after = record.clone();
        let decision = rules().decide(&source(topic), stamp, &mut after, NOW).decision;
        prop_assert_eq!((&after.key, &after.value), (&record.key, &record.value));
        match decision {
            Decision::Refuse(obituary) => {
                prop_assert_eq!(after, record, "a refused record stays as it came");
                prop_assert!(!obituary.detail.is_empty() && obituary.detail.len() < 1_000);
            }
            Decision::Deliver(envelope) => prop_assert_eq!(envelope.due, envelope.accepted_at),
            Decision::Schedule { level, envelope, .. } => {
                prop_assert!(level <= rules().table.last());
                prop_assert!(envelope.due >= envelope.accepted_at);
                let headers = envelope.waiting(&after).into_iter();
                let headers = headers.map(|(key, value)| Header { key: key.to_vec(), value: value.map(|v| v.into_owned()) });
                let queued = Record { headers: headers.collect(), ..after };
                prop_assert_eq!(Envelope::read(&queued), Ok(envelope));
            }
        }
    }
}

//! Every guarded key is refused with its reason, and what is harmless is not.

use super::*;
use crate::config::tests::{complaints, load};

fn kafka(key: &str, value: &str) -> String {
    format!("[kafka]\n{key:?} = {value:?}")
}

#[test]
fn keys_that_delayd_owns_are_refused_whatever_their_value() {
    let keys = [
        "enable.auto.commit",
        "auto.commit.enable",
        "enable.auto.offset.store",
        "isolation.level",
        "group.id",
        "group.instance.id",
        "transactional.id",
        "enable.idempotence",
        "auto.offset.reset",
        "partition.assignment.strategy",
        "group.protocol",
        "partitioner",
        "allow.auto.create.topics",
        "enable.partition.eof",
        "delivery.report.only.error",
        "topic.blacklist",
        "dr_cb",
        "dr_msg_cb",
        "rebalance_cb",
        "ssl.certificate.verify_cb",
        "plugin.library.paths",
    ];
    for key in keys {
        for section in ["kafka", "kafka.consumer", "kafka.producer"] {
            let lines = complaints(&format!("[{section}]\n{key:?} = \"true\""));
            assert!(
                lines.len() == 1 && lines[0].contains(" is refused: "),
                "{key}: {lines:?}"
            );
        }
    }
}

#[test]
fn every_guard_says_why_and_what_to_do() {
    for guard in GUARDS {
        assert!(
            guard.reason.len() > 10 && !guard.next.is_empty(),
            "{:?}",
            guard.keys
        );
        assert!(!guard.reason.ends_with('.'));
    }
    assert_eq!(
        complaints(&kafka("isolation.level", "read_uncommitted")),
        [
            "delayd.toml:2:21: isolation.level is refused: delayd reads committed messages only: an aborted one must never be delivered; remove it"
        ]
    );
}

#[test]
fn some_values_break_a_guarantee_and_others_do_not() {
    let cases = [
        ("acks", "all", true),
        ("acks", "-1", true),
        ("acks", "1", false),
        ("acks", "0", false),
        ("request.required.acks", "1", false),
        ("retries", "0", false),
        ("retries", "5", true),
        ("message.send.max.retries", "0", false),
        ("max.in.flight", "5", true),
        ("max.in.flight", "6", false),
        ("max.in.flight.requests.per.connection", "6", false),
        ("transaction.timeout.ms", "1999", false),
        ("transaction.timeout.ms", "2000", true),
        ("transaction.timeout.ms", "60000", true),
        ("transaction.timeout.ms", "60001", false),
        ("message.timeout.ms", "9999", true),
        ("message.timeout.ms", "10000", false),
        ("message.timeout.ms", "0", false),
        ("delivery.timeout.ms", "10000", false),
        ("socket.timeout.ms", "60000", false),
        ("socket.timeout.ms", "10000", true),
        ("queuing.strategy", "lifo", false),
        ("queuing.strategy", "fifo", true),
        ("bootstrap.servers", " ", false),
        ("bootstrap.servers", "a:1,b:1", true),
    ];
    for (key, value, fine) in cases {
        match load(&kafka(key, value)) {
            Ok(_) => assert!(fine, "{key} = {value}"),
            Err(errors) => assert!(
                !fine && errors.to_string().contains(" is refused: "),
                "{key} = {value}: {errors}"
            ),
        }
    }
}

#[test]
fn timeouts_are_compared_across_sections() {
    let longer =
        "[kafka]\ntransaction.timeout.ms = 30000\n[kafka.producer]\nmessage.timeout.ms = 20000";
    assert!(load(longer).is_ok());
    let shorter =
        "[kafka]\nmessage.timeout.ms = 6000\n[kafka.producer]\ntransaction.timeout.ms = 5000";
    assert_eq!(complaints(shorter).len(), 1);
}

#[test]
fn both_sides_talk_to_one_kafka() {
    let lines = complaints("[kafka.consumer]\nbootstrap.servers = \"other:9092\"");
    assert!(
        lines[0].ends_with("and so one Kafka; move it to [kafka]"),
        "{lines:?}"
    );
}

#[test]
fn kerberos_is_refused_also_where_it_is_only_the_default() {
    let protocol = "[kafka]\nsecurity.protocol = \"SASL_SSL\"\n";
    for mechanism in ["", "sasl.mechanism = \"GSSAPI\""] {
        let lines = complaints(&format!("{protocol}{mechanism}"));
        assert!(
            lines.len() == 1 && lines[0].contains("without Kerberos"),
            "{lines:?}"
        );
    }
    assert!(load(&format!("{protocol}sasl.mechanisms = \"PLAIN\"")).is_ok());
}

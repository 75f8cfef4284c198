//! Rules between values.

use crate::config::tests::complaints;

#[test]
fn the_schedule_topic_is_no_other_topic_of_ours() {
    let cases = [
        (
            "[topics]\nschedule = \"delayd-ingress\"",
            "another topic of delayd's own",
        ),
        (
            "name = \"a\"\n[topics]\nschedule = \"a-clock\"",
            "another topic of delayd's own",
        ),
        (
            "[topics]\nschedule = \"delayd-dead-letter\"",
            "another topic of delayd's own",
        ),
        ("[topics]\nschedule = \"__x\"", "a topic of Kafka's own"),
    ];
    for (text, expected) in cases {
        let lines = complaints(text);
        assert!(lines.len() == 1 && lines[0].contains(expected), "{lines:?}");
    }
}

#[test]
fn every_single_value_is_checked_and_named() {
    let cases = [
        ("name = \"a b\"", "name: "),
        ("guarantee = \"twice\"", "guarantee: "),
        ("workers = 65", "workers: "),
        ("instance_id = \"\"", "instance_id: "),
        ("headers = \"drop\"", "headers: "),
        ("pending = \"drop\"", "pending: "),
        ("retry = \"\"", "retry: "),
        ("retry_for = \"1\"", "retry_for: "),
        ("keep = \"0s\"", "keep: "),
        ("wait = \"x\"", "wait: "),
        ("[topics]\nschedule = \"..\"", "topics.schedule: "),
        ("[topics]\npartitions = 0", "topics.partitions: "),
        (
            "[topics]\nreplication_factor = 0",
            "topics.replication_factor: ",
        ),
        ("[http]\nlisten = \"x\"", "http.listen: "),
    ];
    for (text, expected) in cases {
        let lines = complaints(text);
        assert!(
            lines.len() == 1 && lines[0].contains(expected),
            "{text}: {lines:?}"
        );
    }
}

//! delayd.toml: every key, unknown keys, wrong kinds, both spellings of dotted keys.

use std::time::Duration;

use crate::config::tests::{complaints, load};
use crate::config::{Guarantee, HeaderMode, PendingMode};

#[test]
fn every_key_of_the_file_arrives() {
    let config = load(
        r#"
name = "a"
guarantee = "at-least-once"
workers = 3
instance_id = "pod-1"
leave = true
headers = "strip"
pending = "keep"
retry = "100ms  1s 2d"
retry_for = "1h 30m"
keep = "2days"
create_topics = true
wait = "10s"
[topics]
schedule = "S"
partitions = 8
replication_factor = 3
[[route]]
from = "orders-delayed"
to = "orders"
[kafka]
bootstrap.servers = "k:9092"
[kafka.consumer]
fetch.wait.max.ms = 100
[kafka.producer]
linger.ms = 0.5
socket.keepalive.enable = true
[http]
listen = "off"
"#,
    )
    .unwrap();
    assert_eq!((config.name.as_str(), config.workers), ("a", 3));
    assert_eq!(config.guarantee, Guarantee::AtLeastOnce);
    assert_eq!(
        (
            config.instance_id.as_deref(),
            config.leave,
            config.create_topics
        ),
        (Some("pod-1"), true, true)
    );
    assert_eq!(
        (config.headers, config.pending),
        (HeaderMode::Strip, PendingMode::Keep)
    );
    assert_eq!(
        config.retry,
        [100, 1_000, 172_800_000].map(Duration::from_millis)
    );
    assert_eq!(
        (
            config.retry_for.as_secs(),
            config.keep.as_secs(),
            config.wait.as_secs()
        ),
        (5_400, 172_800, 10)
    );
    assert_eq!(config.topics.schedule, "S");
    assert_eq!(
        (config.topics.partitions, config.topics.replication_factor),
        (8, 3)
    );
    assert_eq!(config.routes.len(), 2);
    assert_eq!(config.kafka.common["bootstrap.servers"], "k:9092");
    assert_eq!(config.kafka.consumer["fetch.wait.max.ms"], "100");
    assert_eq!(config.kafka.producer["linger.ms"], "0.5");
    assert_eq!(config.kafka.producer["socket.keepalive.enable"], "true");
    assert_eq!(config.http, None);
}

#[test]
fn dotted_keys_mean_the_same_with_and_without_quotes() {
    let plain =
        load("[kafka]\nsocket.timeout.ms = 5000\n[kafka.consumer]\nfetch.min.bytes = 2").unwrap();
    let same = [
        "[kafka]\n\"socket.timeout.ms\" = 5000\n\"consumer.fetch.min.bytes\" = \"2\"",
        "[kafka]\nconsumer.fetch.min.bytes = 2\nsocket.timeout.ms = \"5000\"",
        "kafka.socket.\"timeout.ms\" = 5000\n[kafka.consumer.fetch]\nmin.bytes = 2",
        "kafka = { socket.timeout.ms = 5000, consumer = { \"fetch.min.bytes\" = 2 } }",
    ];
    for text in same {
        assert_eq!(load(text).unwrap().kafka, plain.kafka, "{text}");
    }
}

#[test]
fn an_alias_is_the_same_key() {
    let config =
        load("[kafka]\nmetadata.broker.list = \"k:1\"\nqueue.buffering.max.ms = 7").unwrap();
    assert_eq!(config.kafka.common["bootstrap.servers"], "k:1");
    assert_eq!(config.kafka.common["linger.ms"], "7");
    let twice = complaints("[kafka]\nbootstrap.servers = \"a:1\"\nmetadata.broker.list = \"b:1\"");
    assert_eq!(
        twice,
        [
            "delayd.toml:3:24: kafka.metadata.broker.list is set twice, under two spellings; keep one of them"
        ]
    );
}

#[test]
fn what_does_not_belong_in_the_file_is_refused_with_its_place_and_a_way_out() {
    let cases = [
        (
            "worker = 2",
            "delayd.toml:1:1: unknown key \"worker\"; did you mean \"workers\"?",
        ),
        (
            "[http]\nport = 80",
            "delayd.toml:2:1: unknown key \"port\" in [http]; known here: listen",
        ),
        (
            "[topic]\nschedule = \"x\"",
            "delayd.toml:1:2: unknown key \"topic\"; did you mean \"topics\"?",
        ),
        (
            "levels = []",
            "delayd.toml:1:1: unknown key \"levels\"; levels have a file of their own, levels.toml (--levels)",
        ),
        (
            "bootstrap_server = \"x\"",
            "delayd.toml:1:1: unknown key \"bootstrap_server\"; write bootstrap.servers under [kafka]",
        ),
        (
            "[[route]]\nfrom = \"a\"\ntoo = \"b\"",
            "delayd.toml:3:1: unknown key \"too\" in [route]; did you mean \"to\"?",
        ),
        (
            "[[route]]\nto = \"b\"",
            "delayd.toml:1:1: a route without \"from\"; add from = \"the-topic-to-read\"",
        ),
        (
            "[route]\nfrom = \"a\"",
            "delayd.toml:1:1: route is a table; write each route under its own [[route]], with two brackets",
        ),
        (
            "workers = \"2\"",
            "delayd.toml:1:11: workers is text; write a whole number without quotes",
        ),
        (
            "wait = 5",
            "delayd.toml:1:8: wait is a whole number; write text in quotes",
        ),
        (
            "leave = \"yes\"",
            "delayd.toml:1:9: leave is text; write true or false without quotes",
        ),
        (
            "topics = 1",
            "delayd.toml:1:10: topics is a whole number; write a table: [topics]",
        ),
        (
            "kafka = \"x\"",
            "delayd.toml:1:9: kafka is text; write a table: [kafka]",
        ),
        (
            "[kafka]\nbootstrap.servers = [\"a:1\"]",
            "delayd.toml:2:21: kafka.bootstrap.servers is a list; write text, a number, true or false",
        ),
        (
            "\"topics.schedule\" = \"a\"\ntopics.schedule = \"b\"",
            "delayd.toml:1:21: topics.schedule is set twice, under two spellings; keep one of them",
        ),
    ];
    for (text, expected) in cases {
        assert_eq!(complaints(text), [expected], "{text}");
    }
}

#[test]
fn unknown_keys_at_every_depth_are_told_together() {
    let text =
        "a = 1\n[topics]\nb = 1\n[http]\nc = 1\n[[route]]\nfrom = \"x\"\nd = 1\n[kafka]\ne.f = 1";
    assert_eq!(complaints(text).len(), 5);
}

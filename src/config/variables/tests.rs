//! Variables: every key has one, unknown ones are refused, those of others are left alone.

use crate::config::tests::{lines, load_all};
use crate::config::{CommonFlags, Config, ConfigErrors};

fn load(variables: &[(&str, &str)]) -> Result<Config, ConfigErrors> {
    load_all(&[], variables, &CommonFlags::default())
}

#[test]
fn every_key_has_a_variable() {
    let config = load(&[
        ("DELAYD_NAME", "a"),
        ("DELAYD_GUARANTEE", "at-least-once"),
        ("DELAYD_WORKERS", "3"),
        ("DELAYD_INSTANCE_ID", "pod-1"),
        ("DELAYD_LEAVE", "true"),
        ("DELAYD_HEADERS", "strip"),
        ("DELAYD_PENDING", "keep"),
        ("DELAYD_RETRY", "1s 2s"),
        ("DELAYD_RETRY_FOR", "1h"),
        ("DELAYD_KEEP", "2h"),
        ("DELAYD_CREATE_TOPICS", "true"),
        ("DELAYD_WAIT", "3s"),
        ("DELAYD_SCHEDULE_TOPIC", "S"),
        ("DELAYD_TOPIC_PARTITIONS", "8"),
        ("DELAYD_REPLICATION_FACTOR", "3"),
        ("DELAYD_HTTP", "off"),
        ("DELAYD_BOOTSTRAP_SERVER", "k:1"),
        ("DELAYD_KAFKA_SASL_PASSWORD", "p"),
        ("DELAYD_KAFKA_LOG_LEVEL", "3"),
        ("DELAYD_KAFKA_CONSUMER_FETCH_MIN_BYTES", "2"),
    ])
    .unwrap();
    assert_eq!(
        (config.name.as_str(), config.workers, config.http),
        ("a", 3, None)
    );
    assert_eq!(
        (
            config.instance_id.as_deref(),
            config.leave,
            config.create_topics
        ),
        (Some("pod-1"), true, true)
    );
    assert_eq!(
        (
            config.retry.len(),
            config.retry_for.as_secs(),
            config.keep.as_secs()
        ),
        (2, 3_600, 7_200)
    );
    assert_eq!(
        (
            config.topics.schedule.as_str(),
            config.topics.partitions,
            config.topics.replication_factor
        ),
        ("S", 8, 3)
    );
    assert_eq!(config.kafka.common["bootstrap.servers"], "k:1");
    assert_eq!(config.kafka.common["sasl.password"], "p");
    assert_eq!(config.kafka.common["log_level"], "3");
    assert_eq!(config.kafka.consumer["fetch.min.bytes"], "2");
}

#[test]
fn a_bad_variable_is_named() {
    let cases = [
        (
            "DELAYD_NAEM",
            "x",
            "DELAYD_NAEM: unknown variable; did you mean \"DELAYD_NAME\"?",
        ),
        (
            "DELAYD_BOOTSTRAP_SERVERS",
            "x",
            "DELAYD_BOOTSTRAP_SERVERS: unknown variable; did you mean \"DELAYD_BOOTSTRAP_SERVER\"?",
        ),
        (
            "DELAYD_FROBNICATION_DEPTH",
            "x",
            "DELAYD_FROBNICATION_DEPTH: unknown variable; unset it; for a key of librdkafka write DELAYD_KAFKA_<KEY> with _ for .",
        ),
        (
            "DELAYD_WORKERS",
            "two",
            "DELAYD_WORKERS: workers: \"two\" is not a whole number from 1 to 64; write one within these limits",
        ),
        (
            "DELAYD_CREATE_TOPICS",
            "yes",
            "DELAYD_CREATE_TOPICS: create_topics: \"yes\" is not one of: true, false; write true or false",
        ),
        (
            "DELAYD_KAFKA_LINGR_MS",
            "5",
            "DELAYD_KAFKA_LINGR_MS: librdkafka has no key \"lingr.ms\"; did you mean \"linger.ms\"?",
        ),
        (
            "DELAYD_KAFKA_GROUP_ID",
            "g",
            "DELAYD_KAFKA_GROUP_ID: group.id is refused: delayd names its groups after \"name\"; set name instead",
        ),
        (
            "DELAYD_NAME",
            "a\u{fffd}",
            "DELAYD_NAME: the value is not UTF-8; set it again as UTF-8 text",
        ),
    ];
    for (name, value, expected) in cases {
        assert_eq!(
            lines(&load(&[(name, value)]).unwrap_err()),
            [expected],
            "{name}"
        );
    }
}

#[test]
fn empty_variables_and_those_of_others_do_not_count() {
    let config = load(&[
        ("DELAYD_NAME", ""),
        ("DELAYD_CONFIG", ""),
        ("DELAYD_NONSENSE", ""),
        ("DELAYD_LOG", "debug"),
        ("OTHER_NAME", "x"),
        // What Kubernetes tells every container about services named delayd and delayd-kafka.
        ("DELAYD_PORT", "tcp://10.0.0.1:9464"),
        ("DELAYD_SERVICE_HOST", "10.0.0.1"),
        ("DELAYD_SERVICE_PORT", "9464"),
        ("DELAYD_SERVICE_PORT_HTTP", "9464"),
        ("DELAYD_PORT_9464_TCP", "tcp://10.0.0.1:9464"),
        ("DELAYD_PORT_9464_TCP_ADDR", "10.0.0.1"),
        ("DELAYD_KAFKA_SERVICE_HOST", "10.0.0.2"),
        ("DELAYD_KAFKA_PORT_9092_TCP_PORT", "9092"),
    ]);
    assert_eq!(config.unwrap().name, "delayd");
}

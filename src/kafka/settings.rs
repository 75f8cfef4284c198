//! The librdkafka settings of each client: our defaults, then the operator's, then what a
//! guarantee needs. Called wherever a client is made; `config` has refused what may not be set.

use std::collections::BTreeMap;

use rdkafka::ClientConfig;
use rdkafka::config::RDKafkaLogLevel;

use crate::config::{Config, Guarantee};

/// `transaction.timeout.ms` where the operator names none: it bounds how long a crash can hold
/// back `read_committed` readers of the real topics.
const TRANSACTION_TIMEOUT_MS: u64 = 10_000;
/// How long a partition may take to answer, where the operator does not say.
const MESSAGE_TIMEOUT_MS: u64 = 5_000;

/// Which of a process' two groups a worker belongs to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Role {
    /// Reads ingress topics.
    Router,
    /// Reads level queues.
    Scanner,
}

impl Role {
    /// As it stands in ids and logs.
    pub fn name(self) -> &'static str {
        match self {
            Role::Router => "router",
            Role::Scanner => "scanner",
        }
    }
}

/// Settings for questions about topics and groups.
pub fn admin(config: &Config) -> ClientConfig {
    let mut client = common(config);
    overlay(&mut client, &config.kafka.common);
    client.set("allow.auto.create.topics", "false");
    client
}

/// Settings of worker `n`'s consumer.
pub fn consumer(config: &Config, role: Role, n: usize) -> ClientConfig {
    let mut client = common(config);
    let defaults: &[(&str, &str)] = &[
        // While one queue drains, the others wait empty on the same connection, and its next fetch
        // waits behind theirs: longer would slow the drain, shorter costs CPU when idle.
        ("fetch.wait.max.ms", "60"),
        // By default the fetcher sleeps a second whenever our small queue is full.
        ("fetch.queue.backoff.ms", "20"),
        // For each partition: it bounds memory whatever is pending.
        ("queued.max.messages.kbytes", "4096"),
        ("queued.min.messages", "5000"),
        ("session.timeout.ms", "10000"),
        ("heartbeat.interval.ms", "3000"),
        // So soon are new partitions of a topic found.
        ("topic.metadata.refresh.interval.ms", "5000"),
    ];
    set_all(&mut client, defaults);
    overlay(&mut client, &config.kafka.common);
    overlay(&mut client, &config.kafka.consumer);
    let group = match role {
        Role::Router => config.router_group(),
        Role::Scanner => config.scanner_group(),
    };
    client.set("group.id", group);
    if let Some(instance) = &config.instance_id {
        client.set(
            "group.instance.id",
            format!("{}-{instance}-{}-{n}", config.name, role.name()),
        );
    }
    let needed: &[(&str, &str)] = &[
        ("enable.auto.commit", "false"),
        ("enable.auto.offset.store", "false"),
        ("isolation.level", "read_committed"),
        ("auto.offset.reset", "earliest"),
        ("partition.assignment.strategy", "roundrobin"),
        ("allow.auto.create.topics", "false"),
    ];
    set_all(&mut client, needed);
    if role == Role::Router {
        client.set("topic.blacklist", own_topics_pattern(config));
    }
    client
}

/// Settings of a producer, without its transactional id.
pub fn producer(config: &Config) -> ClientConfig {
    let mut client = common(config);
    let timeout = TRANSACTION_TIMEOUT_MS.to_string();
    let message_timeout = MESSAGE_TIMEOUT_MS.to_string();
    let defaults: &[(&str, &str)] = &[
        ("linger.ms", "1"),
        // The first call after a commit is met with CONCURRENT_TRANSACTIONS: ask again soon.
        ("retry.backoff.ms", "5"),
        ("message.timeout.ms", &message_timeout),
        // The topic's own limit decides.
        ("message.max.bytes", "104857600"),
        ("queue.buffering.max.kbytes", "65536"),
        // Targets are looked up before anything is produced, so an unknown one fails soon.
        ("topic.metadata.propagation.max.ms", "1000"),
    ];
    set_all(&mut client, defaults);
    if config.guarantee == Guarantee::ExactlyOnce {
        client.set("transaction.timeout.ms", timeout);
    }
    overlay(&mut client, &config.kafka.common);
    overlay(&mut client, &config.kafka.producer);
    fit_message_timeout(&mut client, config);
    set_all(
        &mut client,
        &[
            ("enable.idempotence", "true"),
            ("acks", "all"),
            ("allow.auto.create.topics", "false"),
        ],
    );
    client
}

/// How long a producer may need for the answers to a batch, in ms: a little more than its own timeout.
pub fn patience_ms(producer: &ClientConfig) -> u64 {
    let timeout = producer
        .get("message.timeout.ms")
        .and_then(|text| text.parse::<u64>().ok());
    timeout.unwrap_or(MESSAGE_TIMEOUT_MS) + 1_000
}

fn common(config: &Config) -> ClientConfig {
    let mut client = ClientConfig::new();
    client.set("client.id", &config.name);
    client.set_log_level(RDKafkaLogLevel::Debug);
    client.remove("debug");
    client
}

/// A record's timeout must end before its transaction's: half of it, where nobody chose.
fn fit_message_timeout(client: &mut ClientConfig, config: &Config) {
    let chosen = |side: &BTreeMap<String, String>| side.contains_key("message.timeout.ms");
    let transaction = client
        .get("transaction.timeout.ms")
        .and_then(|ms| ms.parse::<u64>().ok());
    let default = !chosen(&config.kafka.common) && !chosen(&config.kafka.producer);
    if let Some(transaction) = transaction.filter(|_| default) {
        let timeout = (transaction / 2).min(MESSAGE_TIMEOUT_MS);
        client.set("message.timeout.ms", timeout.to_string());
    }
}

fn overlay(client: &mut ClientConfig, settings: &BTreeMap<String, String>) {
    for (key, value) in settings {
        client.set(key, value);
    }
}

fn set_all(client: &mut ClientConfig, settings: &[(&str, &str)]) {
    for (key, value) in settings {
        client.set(*key, *value);
    }
}

/// A route's pattern may match everything: our own topics stay hidden from the router.
fn own_topics_pattern(config: &Config) -> String {
    let escaped = |name: &str| name.replace('.', "\\.");
    format!(
        "^__.*,^{}(_.*)?$,^{}$,^{}$",
        escaped(&config.topics.schedule),
        escaped(&config.dead_letter()),
        escaped(&config.clock())
    )
}

#[cfg(test)]
mod tests {
    use rdkafka::consumer::BaseConsumer;

    use super::*;

    fn configured(kafka: &[(&str, &str)]) -> Config {
        let mut config = Config::built_in().unwrap();
        let pairs = kafka
            .iter()
            .map(|(k, v)| ((*k).to_owned(), (*v).to_owned()));
        config.kafka.common.extend(pairs);
        config
    }

    #[test]
    fn tls_and_every_promised_sasl_mechanism_are_built_in() {
        for mechanism in ["PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512", "OAUTHBEARER"] {
            let config = configured(&[
                ("security.protocol", "SASL_SSL"),
                ("sasl.mechanism", mechanism),
                ("sasl.username", "delayd"),
                ("sasl.password", "secret"),
            ]);
            let client = admin(&config).create::<BaseConsumer>();
            assert!(client.is_ok(), "{mechanism}: {:?}", client.err());
        }
    }

    #[test]
    fn every_codec_is_built_in() {
        for codec in ["gzip", "snappy", "lz4", "zstd"] {
            let config = configured(&[("compression.type", codec)]);
            let client = producer(&config).create::<rdkafka::producer::BaseProducer>();
            assert!(client.is_ok(), "{codec}: {:?}", client.err());
        }
    }

    #[test]
    fn what_a_guarantee_needs_wins_over_the_operator() {
        let config = configured(&[("isolation.level", "read_uncommitted"), ("acks", "1")]);
        assert_eq!(
            consumer(&config, Role::Scanner, 0).get("isolation.level"),
            Some("read_committed")
        );
        assert_eq!(producer(&config).get("acks"), Some("all"));
    }

    #[test]
    fn a_static_member_has_a_name_for_each_worker() {
        let config = Config {
            instance_id: Some("a".to_owned()),
            ..configured(&[])
        };
        assert_eq!(
            consumer(&config, Role::Router, 1).get("group.instance.id"),
            Some("delayd-a-router-1")
        );
    }

    #[test]
    fn own_topics_are_hidden_from_the_router_alone() {
        let hidden = |role| {
            consumer(&configured(&[]), role, 0)
                .get("topic.blacklist")
                .map(str::to_owned)
        };
        assert!(
            hidden(Role::Router)
                .unwrap()
                .contains("^SCHEDULE_TOPIC_XXXX(_.*)?$")
        );
        assert_eq!(hidden(Role::Scanner), None);
    }
}

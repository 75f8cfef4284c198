//! The settings that go to librdkafka: which it takes, which delayd owns, which are secret.
//! Called by `file` and `variables` (names) and `resolve` (checks); must not show a secret, even in an error.

use std::collections::BTreeMap;
use std::fmt;

use super::errors::{Problems, suggest};
use super::guards;
use super::keys::Setting;
use crate::kafka::accepts::{Refusal, accepts};

/// Which clients a setting is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Side {
    Both,
    Consumer,
    Producer,
}

/// Settings for librdkafka as the user wrote them, under its main names (never aliases), all accepted by it.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct KafkaSettings {
    /// For every client; holds `bootstrap.servers` at least.
    pub common: BTreeMap<String, String>,
    /// For consumers, over `common`.
    pub consumer: BTreeMap<String, String>,
    /// For producers, over `common`.
    pub producer: BTreeMap<String, String>,
}

impl fmt::Debug for KafkaSettings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("KafkaSettings")
            .field("common", &Shown(&self.common))
            .field("consumer", &Shown(&self.consumer))
            .field("producer", &Shown(&self.producer))
            .finish()
    }
}

/// Settings with their secrets hidden.
struct Shown<'a>(&'a BTreeMap<String, String>);

impl fmt::Debug for Shown<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let shown = self
            .0
            .iter()
            .map(|(key, value)| (key, if is_secret(key) { "***" } else { value }));
        f.debug_map().entries(shown).finish()
    }
}

/// Whether the value of this key must never be shown. Rather one too many: keys of later
/// versions of librdkafka follow the same words.
pub fn is_secret(key: &str) -> bool {
    const WORDS: &[&str] = &[
        "password",
        "secret",
        "passphrase",
        "pem",
        "token",
        "jaas",
        "assertion.claim",
    ];
    // The kinit command may hold a password; the file and the URL only say where something is.
    const WHOLE: &[&str] = &[
        "sasl.oauthbearer.config",
        "sasl.oauthbearer.extensions",
        "sasl.kerberos.kinit.cmd",
    ];
    let key = key.to_ascii_lowercase();
    let place = key.ends_with(".url") || key.ends_with(".location") || key.ends_with(".file");
    WHOLE.contains(&key.as_str()) || (!place && WORDS.iter().any(|word| key.contains(word)))
}

/// librdkafka's second names. One name for one thing, or else it depends on luck which value counts.
const ALIASES: &[(&str, &str)] = &[
    ("metadata.broker.list", "bootstrap.servers"),
    ("max.in.flight.requests.per.connection", "max.in.flight"),
    ("sasl.mechanisms", "sasl.mechanism"),
    (
        "sasl.oauthbearer.client.credentials.client.id",
        "sasl.oauthbearer.client.id",
    ),
    (
        "sasl.oauthbearer.client.credentials.client.secret",
        "sasl.oauthbearer.client.secret",
    ),
    ("fetch.message.max.bytes", "max.partition.fetch.bytes"),
    ("queue.buffering.max.ms", "linger.ms"),
    ("message.send.max.retries", "retries"),
    ("compression.codec", "compression.type"),
    ("request.required.acks", "acks"),
    ("delivery.timeout.ms", "message.timeout.ms"),
    ("auto.commit.enable", "enable.auto.commit"),
    // Variables cannot tell a dot from an underscore; librdkafka has one key with the latter.
    ("log.level", "log_level"),
];

/// What a path under `[kafka]` means: for whom, and librdkafka's main name of the key.
pub(super) fn split(path: &str) -> (Side, String) {
    let sides = [("consumer.", Side::Consumer), ("producer.", Side::Producer)];
    let found = sides
        .iter()
        .find_map(|(prefix, side)| Some((*side, path.strip_prefix(prefix)?)));
    let (side, key) = found.unwrap_or((Side::Both, path));
    let main = ALIASES
        .iter()
        .find(|(alias, _)| *alias == key)
        .map_or(key, |(_, main)| *main);
    (side, main.to_owned())
}

/// Checks every setting by delayd's rules, then by librdkafka's own.
pub(super) fn resolve(
    settings: &BTreeMap<(Side, String), Setting>,
    problems: &mut Problems,
) -> KafkaSettings {
    let mut accepted = KafkaSettings::default();
    for ((side, key), setting) in settings {
        if guards::refuse(*side, key, setting, problems)
            || !librdkafka_accepts(key, setting, problems)
        {
            continue;
        }
        let map = match side {
            Side::Both => &mut accepted.common,
            Side::Consumer => &mut accepted.consumer,
            Side::Producer => &mut accepted.producer,
        };
        map.insert(key.clone(), setting.value.clone());
    }
    guards::refuse_timeouts(settings, problems);
    guards::refuse_kerberos(settings, problems);
    let servers = || "localhost:9092".to_owned();
    accepted
        .common
        .entry("bootstrap.servers".to_owned())
        .or_insert_with(servers);
    accepted
}

fn librdkafka_accepts(key: &str, setting: &Setting, problems: &mut Problems) -> bool {
    let (what, next) = match accepts(key, &setting.value) {
        Ok(()) => return true,
        // Never the value: the key may be a misspelt password.
        Err(Refusal::Unknown) => (
            format!("librdkafka has no key {key:?}"),
            suggest(key, common_keys(), || {
                "see the list of its keys, CONFIGURATION.md of librdkafka 2.12".to_owned()
            }),
        ),
        Err(Refusal::Invalid(_)) if is_secret(key) => (
            format!("librdkafka refuses the value of {key} (not shown: it is a secret)"),
            "correct the value".to_owned(),
        ),
        Err(Refusal::Invalid(reason)) => (
            format!(
                "librdkafka refuses {key} = {:?}: {}",
                setting.value,
                reason.replace('\n', " ")
            ),
            "correct the value".to_owned(),
        ),
    };
    problems.add(setting.origin.clone(), what, next);
    false
}

/// The keys that people set, for "did you mean": librdkafka cannot list its own.
fn common_keys() -> impl Iterator<Item = &'static str> {
    const KEYS: &str = "bootstrap.servers client.id client.rack client.dns.lookup debug log_level \
        message.max.bytes receive.message.max.bytes max.in.flight metadata.max.age.ms \
        topic.metadata.refresh.interval.ms topic.metadata.propagation.max.ms socket.timeout.ms \
        socket.keepalive.enable socket.nagle.disable socket.connection.setup.timeout.ms \
        connections.max.idle.ms reconnect.backoff.ms reconnect.backoff.max.ms broker.address.family \
        statistics.interval.ms security.protocol ssl.ca.location ssl.ca.pem ssl.key.location ssl.key.pem \
        ssl.key.password ssl.certificate.location ssl.certificate.pem ssl.keystore.location \
        ssl.keystore.password ssl.cipher.suites ssl.endpoint.identification.algorithm \
        enable.ssl.certificate.verification sasl.mechanism sasl.username sasl.password \
        sasl.kerberos.service.name sasl.kerberos.principal sasl.kerberos.keytab sasl.oauthbearer.method \
        sasl.oauthbearer.client.id sasl.oauthbearer.client.secret sasl.oauthbearer.scope \
        sasl.oauthbearer.token.endpoint.url sasl.oauthbearer.config session.timeout.ms \
        heartbeat.interval.ms max.poll.interval.ms queued.min.messages queued.max.messages.kbytes \
        fetch.wait.max.ms fetch.min.bytes fetch.max.bytes max.partition.fetch.bytes fetch.queue.backoff.ms \
        check.crcs linger.ms batch.size batch.num.messages compression.type compression.level \
        queue.buffering.max.messages queue.buffering.max.kbytes message.timeout.ms request.timeout.ms \
        transaction.timeout.ms retry.backoff.ms retry.backoff.max.ms enable.metrics.push";
    KEYS.split_whitespace()
}

#[cfg(test)]
mod tests;

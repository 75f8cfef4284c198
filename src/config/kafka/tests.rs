//! What is secret, what librdkafka refuses, and whom a key is for.

use super::*;
use crate::config::tests::{complaints, load};

#[test]
fn secrets_are_known_by_their_names() {
    let secret = [
        "sasl.password",
        "ssl.key.password",
        "ssl.keystore.password",
        "ssl.key.pem",
        "ssl.certificate.pem",
        "ssl.ca.pem",
        "sasl.oauthbearer.client.secret",
        "sasl.oauthbearer.config",
        "sasl.jaas.config",
        "SASL.Password",
        "sasl.oauthbearer.assertion.private.key.passphrase",
        "sasl.oauthbearer.assertion.private.key.pem",
    ];
    assert!(secret.iter().all(|key| is_secret(key)), "{secret:?}");
    let open = [
        "sasl.username",
        "bootstrap.servers",
        "ssl.ca.location",
        "sasl.oauthbearer.token.endpoint.url",
        "sasl.oauthbearer.assertion.private.key.file",
        "sasl.mechanism",
        "client.id",
    ];
    assert!(open.iter().all(|key| !is_secret(key)), "{open:?}");
}

#[test]
fn a_path_says_for_whom_a_key_is_and_aliases_are_undone() {
    let cases = [
        ("client.id", Side::Both, "client.id"),
        (
            "consumer.fetch.min.bytes",
            Side::Consumer,
            "fetch.min.bytes",
        ),
        ("producer.request.required.acks", Side::Producer, "acks"),
        ("metadata.broker.list", Side::Both, "bootstrap.servers"),
    ];
    for (path, side, key) in cases {
        assert_eq!(split(path), (side, key.to_owned()));
    }
}

#[test]
fn every_suggested_key_and_every_main_name_is_one_of_librdkafka() {
    for key in common_keys().chain(ALIASES.iter().map(|(_, main)| *main)) {
        assert_ne!(accepts(key, "x"), Err(Refusal::Unknown), "{key}");
    }
}

#[test]
fn librdkafka_refuses_values_in_our_words() {
    let bad = complaints("[kafka.producer]\ncompression.type = \"zip\"");
    assert_eq!(bad.len(), 1);
    assert!(
        bad[0].starts_with("delayd.toml:2:20: librdkafka refuses compression.type = \"zip\": "),
        "{bad:?}"
    );
    let secret = complaints("[kafka]\nsasl.password = \"x\\u0000\"");
    assert_eq!(
        secret,
        [
            "delayd.toml:2:17: librdkafka refuses the value of sasl.password (not shown: it is a secret); correct the value"
        ]
    );
}

#[test]
fn tls_and_sasl_settings_pass() {
    let text = "[kafka]\nsecurity.protocol = \"SASL_SSL\"\nsasl.mechanism = \"SCRAM-SHA-512\"\n\
        sasl.username = \"u\"\nsasl.password = \"p\"\nssl.ca.location = \"/etc/ca.pem\"\n\
        ssl.endpoint.identification.algorithm = \"none\"";
    assert_eq!(load(text).unwrap().kafka.common.len(), 7);
}

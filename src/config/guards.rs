//! Settings of librdkafka that delayd owns, or that would break one of its guarantees.
//! Called by `kafka`; the table is the documentation: each entry says why.

use std::collections::BTreeMap;

use super::errors::Problems;
use super::kafka::Side;
use super::keys::Setting;

/// What delayd sets transaction.timeout.ms to, unless told otherwise.
const TRANSACTION_TIMEOUT_MS: i64 = 10_000;

struct Guard {
    keys: &'static [&'static str],
    refuses: fn(&str) -> bool,
    reason: &'static str,
    next: &'static str,
}

const REMOVE: &str = "remove it";

const fn owned(keys: &'static [&'static str], reason: &'static str) -> Guard {
    Guard {
        keys,
        refuses: |_| true,
        reason,
        next: REMOVE,
    }
}

const fn limited(
    keys: &'static [&'static str],
    refuses: fn(&str) -> bool,
    reason: &'static str,
    next: &'static str,
) -> Guard {
    Guard {
        keys,
        refuses,
        reason,
        next,
    }
}

const GUARDS: &[Guard] = &[
    owned(
        &[
            "enable.auto.commit",
            "enable.auto.offset.store",
            "auto.commit.interval.ms",
        ],
        "delayd commits an offset only with, or after, the delivery of everything before it",
    ),
    owned(
        &[
            "offset.store.method",
            "offset.store.path",
            "offset.store.sync.interval.ms",
        ],
        "progress is kept in Kafka, so that another process can take over",
    ),
    owned(
        &["isolation.level"],
        "delayd reads committed messages only: an aborted one must never be delivered",
    ),
    owned(
        &["auto.offset.reset"],
        "a lost position must be noticed, not jumped over",
    ),
    limited(
        &["group.id"],
        |_| true,
        "delayd names its groups after \"name\"",
        "set name instead",
    ),
    limited(
        &["group.instance.id", "transactional.id"],
        |_| true,
        "delayd builds it from the name and the instance id",
        "set instance_id instead",
    ),
    owned(
        &[
            "partition.assignment.strategy",
            "group.protocol",
            "group.remote.assignor",
            "group.protocol.type",
        ],
        "levels are shared out by delayd's own choice, which its takeover depends on",
    ),
    limited(
        &["enable.idempotence", "enable.gapless.guarantee"],
        |_| true,
        "delayd's producers are idempotent, as both guarantees need",
        "set guarantee instead",
    ),
    limited(
        &["acks"],
        |value| !matches!(value, "all" | "-1"),
        "a message would be forgotten before every replica has it",
        "remove it, or set it to \"all\"",
    ),
    limited(
        &["retries"],
        |value| value.trim() == "0",
        "without retries a short fault of the broker becomes a lost or repeated message",
        REMOVE,
    ),
    limited(
        &["max.in.flight"],
        |value| value.parse::<i64>().is_ok_and(|n| n > 5),
        "above 5 the broker no longer keeps order and uniqueness",
        "set it to 5 or less",
    ),
    limited(
        &["queuing.strategy"],
        |value| value != "fifo",
        "messages would overtake each other",
        REMOVE,
    ),
    limited(
        &["transaction.timeout.ms"],
        |value| {
            value
                .parse::<i64>()
                .is_ok_and(|n| !(2_000..=60_000).contains(&n))
        },
        "shorter, transactions fail on a busy broker; longer, readers stall after a crash",
        "set it between 2000 and 60000",
    ),
    owned(
        &["partitioner", "partitioner_cb", "msg_order_cmp"],
        "delayd chooses partitions itself: by the key as Java does, or as the route says",
    ),
    owned(
        &["allow.auto.create.topics"],
        "a misspelt target must not become a new topic; delayd creates its own with --create-topics",
    ),
    owned(
        &["topic.blacklist"],
        "a topic that is hidden from the client looks like one that is missing",
    ),
    owned(
        &["enable.partition.eof"],
        "delayd decides itself when it has read to the end",
    ),
    owned(
        &["delivery.report.only.error"],
        "delayd counts a message as delivered when it is reported so",
    ),
    owned(
        &["plugin.library.paths", "interceptors"],
        "foreign code inside the client voids every guarantee",
    ),
    owned(
        &[
            "enabled_events",
            "log.queue",
            "opaque",
            "default_topic_conf",
            "ssl_engine_callback_data",
        ],
        "delayd's client library sets it",
    ),
    limited(
        &["bootstrap.servers"],
        |value| value.trim().is_empty(),
        "it names no server",
        "set it to HOST:PORT, several divided by commas",
    ),
];

/// Whether the setting is refused; the reason is then among the problems.
pub(super) fn refuse(side: Side, key: &str, setting: &Setting, problems: &mut Problems) -> bool {
    let guard = GUARDS
        .iter()
        .find(|guard| guard.keys.contains(&key) && (guard.refuses)(&setting.value));
    let (reason, next) = match guard {
        Some(guard) => (guard.reason, guard.next),
        None if key.ends_with("_cb") => ("a callback is code, not configuration", REMOVE),
        None if key == "bootstrap.servers" && side != Side::Both => (
            "reading and writing share transactions, and so one Kafka",
            "move it to [kafka]",
        ),
        None => return false,
    };
    problems.add(
        setting.origin.clone(),
        format!("{key} is refused: {reason}"),
        next,
    );
    true
}

/// Kerberos, which is also what librdkafka means if no mechanism is named: this binary is built without it.
pub(super) fn refuse_kerberos(
    settings: &BTreeMap<(Side, String), Setting>,
    problems: &mut Problems,
) {
    for side in [Side::Both, Side::Consumer, Side::Producer] {
        let find = |key: &str| {
            let of = |side| settings.get(&(side, key.to_owned()));
            of(side).or_else(|| of(Side::Both))
        };
        let Some(protocol) = find("security.protocol") else {
            continue;
        };
        let mechanism = find("sasl.mechanism");
        let kerberos = mechanism.is_none_or(|setting| setting.value == "GSSAPI");
        if kerberos && protocol.value.to_ascii_lowercase().starts_with("sasl") {
            problems.add(
                mechanism.unwrap_or(protocol).origin.clone(),
                "sasl.mechanism is GSSAPI (Kerberos) or not set, and delayd is built without Kerberos",
                "set sasl.mechanism to PLAIN, SCRAM-SHA-256, SCRAM-SHA-512 or OAUTHBEARER",
            );
        }
    }
}

/// Timeouts of a producer that only together are wrong.
pub(super) fn refuse_timeouts(
    settings: &BTreeMap<(Side, String), Setting>,
    problems: &mut Problems,
) {
    let find = |key: &str| {
        let of = |side| settings.get(&(side, key.to_owned()));
        of(Side::Producer).or_else(|| of(Side::Both))
    };
    let number = |setting: &Setting| setting.value.parse::<i64>().ok();
    let transaction = find("transaction.timeout.ms")
        .and_then(number)
        .unwrap_or(TRANSACTION_TIMEOUT_MS);
    if let Some(setting) = find("message.timeout.ms")
        // 0 is "for ever" to librdkafka.
        && number(setting).is_some_and(|n| n == 0 || n >= transaction)
    {
        problems.add(
            setting.origin.clone(),
            format!("message.timeout.ms is refused: a message must give up before its transaction does ({transaction} ms)"),
            "set it below transaction.timeout.ms, and not to 0",
        );
    }
    if let Some(setting) = find("socket.timeout.ms")
        && number(setting).is_some_and(|n| n > transaction + 100)
    {
        problems.add(
            setting.origin.clone(),
            format!("socket.timeout.ms is refused: a request must give up before its transaction does ({transaction} ms)"),
            "set it to transaction.timeout.ms at most",
        );
    }
}

#[cfg(test)]
mod tests;

//! Reads the layers above the file: variables `DELAYD_…`, then flags.
//! Called by `Config::load` with the environment as data; must not touch the process environment.

use super::errors::{Origin, Problems, suggest};
use super::kafka::{self, Side};
use super::keys::{KEYS, Layers, Setting};
use super::{CONFIG_VARIABLE, CommonFlags, LEVELS_VARIABLE};

/// Where the servers are: the same as `DELAYD_KAFKA_BOOTSTRAP_SERVERS`, and stronger.
const BOOTSTRAP_VARIABLE: &str = "DELAYD_BOOTSTRAP_SERVER";
/// Any key of librdkafka follows, with `_` for `.`.
const KAFKA_PREFIX: &str = "DELAYD_KAFKA_";
/// Ours, but read by others: the log filter.
const ELSEWHERE: &[&str] = &[CONFIG_VARIABLE, LEVELS_VARIABLE, "DELAYD_LOG"];

/// Every variable that is ours. An empty one counts as not set, because compose files pass those.
pub(super) fn read(variables: &[(String, String)], layers: &mut Layers, problems: &mut Problems) {
    let mut ours: Vec<_> = variables
        .iter()
        .filter(|(name, value)| name.starts_with("DELAYD_") && !value.is_empty())
        .filter(|(name, value)| !is_service_link(name, value))
        .collect();
    // The short name of the servers comes last, so that it wins over librdkafka's own.
    ours.sort_by_key(|(name, _)| (name == BOOTSTRAP_VARIABLE, name));
    for (name, value) in ours {
        let origin = Origin::Variable(name.clone());
        if value.contains(char::REPLACEMENT_CHARACTER) {
            problems.add(
                origin,
                "the value is not UTF-8",
                "set it again as UTF-8 text",
            );
            continue;
        }
        let setting = Setting {
            value: value.clone(),
            origin,
        };
        if let Some(key) = KEYS.iter().find(|key| key.variable == name) {
            layers.values.insert(key.path, setting);
        } else if name == BOOTSTRAP_VARIABLE {
            layers
                .kafka
                .insert((Side::Both, "bootstrap.servers".to_owned()), setting);
        } else if let Some(key) = name.strip_prefix(KAFKA_PREFIX) {
            layers
                .kafka
                .insert(kafka::split(&key.to_lowercase().replace('_', ".")), setting);
        } else if !ELSEWHERE.contains(&name.as_str()) {
            unknown(name, problems);
        }
    }
}

fn unknown(name: &str, problems: &mut Problems) {
    let known = KEYS.iter().map(|key| key.variable);
    let known = known
        .chain(ELSEWHERE.iter().copied())
        .chain([BOOTSTRAP_VARIABLE]);
    let next = suggest(name, known, || {
        format!("unset it; for a key of librdkafka write {KAFKA_PREFIX}<KEY> with _ for .")
    });
    problems.add(Origin::Variable(name.to_owned()), "unknown variable", next);
}

/// Kubernetes and docker describe a service called "delayd" or "delayd-…" to every container beside it.
fn is_service_link(name: &str, value: &str) -> bool {
    let port = name
        .split("_PORT_")
        .skip(1)
        .any(|rest| rest.starts_with(|c: char| c.is_ascii_digit()));
    let address = name.ends_with("_PORT") && value.contains("://");
    port || address || name.ends_with("_SERVICE_HOST") || name.contains("_SERVICE_PORT")
}

/// Every flag that was given.
pub(super) fn read_flags(flags: &CommonFlags, layers: &mut Layers) {
    let texts = [
        ("name", "--name", &flags.name),
        ("guarantee", "--guarantee", &flags.guarantee),
        ("workers", "--workers", &flags.workers),
        ("instance_id", "--instance-id", &flags.instance_id),
        ("http.listen", "--http", &flags.http),
        ("wait", "--wait", &flags.wait),
    ];
    for (path, flag, text) in texts {
        if let Some(value) = text {
            layers.values.insert(
                path,
                Setting {
                    value: value.clone(),
                    origin: Origin::Flag(flag),
                },
            );
        }
    }
    let switches = [
        ("leave", "--leave", flags.leave),
        ("create_topics", "--create-topics", flags.create_topics),
    ];
    for (path, flag, _) in switches.into_iter().filter(|(_, _, on)| *on) {
        layers.values.insert(
            path,
            Setting {
                value: "true".to_owned(),
                origin: Origin::Flag(flag),
            },
        );
    }
    if let Some(value) = &flags.bootstrap_server {
        let setting = Setting {
            value: value.clone(),
            origin: Origin::Flag("--bootstrap-server"),
        };
        layers
            .kafka
            .insert((Side::Both, "bootstrap.servers".to_owned()), setting);
    }
}

#[cfg(test)]
mod tests;

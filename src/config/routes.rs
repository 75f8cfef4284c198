//! From `[[route]]` texts to routes: names, patterns, and that nothing can loop.
//! Called by `resolve`; targets that only a message knows are judged by `core::route`, not here.

use regex::Regex;

use super::errors::{Fault, Problems, fault};
use super::keys::{RouteText, Setting};
use super::values;
use crate::core::ingress::{Ingress, Route, TargetPartition};
use crate::core::level::{Level, LevelTable};
use crate::kafka::accepts::{Refusal, accepts_pattern};

/// Topics that delayd has for itself.
pub(super) struct Own {
    pub(super) ingress: String,
    /// Schedule, dead-letter and clock topic, each with its name in words.
    pub(super) internal: [(&'static str, String); 3],
}

/// Every route that holds, and the built-in one if none of them reads our own ingress topic.
pub(super) fn resolve(
    texts: &[RouteText],
    own: &Own,
    levels: &LevelTable,
    problems: &mut Problems,
    warnings: &mut Vec<String>,
) -> Vec<Route> {
    let mut routes: Vec<Route> = Vec::new();
    for text in texts {
        let Some(from) = &text.from else { continue };
        let source = hold(from, "from", problems, |text| source(text, own));
        let partition = text
            .partition
            .as_ref()
            .and_then(|s| hold(s, "partition", problems, partition));
        let level = text
            .level
            .as_ref()
            .and_then(|s| hold(s, "level", problems, level));
        warn_if_clamped(from, level, levels, warnings);
        let Some(source) = source else { continue };
        if routes.iter().any(|route| same(&route.from, &source)) {
            let what = format!("a second route from {:?}", from.value);
            problems.add(from.origin.clone(), what, "keep one of them");
            continue;
        }
        let to = text.to.as_ref().map(|s| s.value.clone());
        routes.push(Route {
            from: source,
            to,
            level,
            partition: partition.unwrap_or(TargetPartition::Key),
        });
    }
    if !routes
        .iter()
        .any(|route| matches!(&route.from, Ingress::Topic(topic) if *topic == own.ingress))
    {
        let from = Ingress::Topic(own.ingress.clone());
        routes.push(Route {
            from,
            to: None,
            level: None,
            partition: TargetPartition::Key,
        });
    }
    check_targets(texts, &routes, own, problems);
    routes
}

/// What `parse` makes of the setting; or its fault, as one of the problems.
fn hold<T>(
    setting: &Setting,
    key: &str,
    problems: &mut Problems,
    parse: impl FnOnce(&str) -> Result<T, Fault>,
) -> Option<T> {
    parse(&setting.value)
        .map_err(|fault| problems.add_fault(setting.origin.clone(), key, fault))
        .ok()
}

fn partition(text: &str) -> Result<TargetPartition, Fault> {
    values::choice(
        text,
        &[
            ("key", TargetPartition::Key),
            ("same", TargetPartition::Same),
        ],
    )
}

fn level(text: &str) -> Result<Level, Fault> {
    let level = text.parse::<u32>().ok().and_then(Level::new);
    level.ok_or_else(|| {
        fault(
            format!("{text} is not a level"),
            "write 1 for the first level, or leave it out",
        )
    })
}

fn warn_if_clamped(
    from: &Setting,
    level: Option<Level>,
    levels: &LevelTable,
    warnings: &mut Vec<String>,
) {
    if let Some(level) = level.filter(|level| *level > levels.last()) {
        warnings.push(format!(
            "{}: the route from {:?} has level {level}, but {} is the last: that one is used",
            from.origin,
            from.value,
            levels.last()
        ));
    }
}

fn source(text: &str, own: &Own) -> Result<Ingress, Fault> {
    let source = if text.starts_with('^') {
        Ingress::Pattern(pattern(text)?)
    } else {
        Ingress::Topic(values::topic(text)?)
    };
    if text.starts_with("__") {
        return Err(fault(
            format!("{text:?} is Kafka's own"),
            "read a topic of yours",
        ));
    }
    if let Some((kind, topic)) = own.internal.iter().find(|(_, topic)| reads(&source, topic)) {
        return Err(fault(
            format!(
                "{text:?} takes in delayd's {kind} topic {topic:?}, and messages would go in circles"
            ),
            "read topics that only producers write to",
        ));
    }
    Ok(source)
}

/// A pattern that librdkafka and the regex crate read alike: one subscribes by it, the other takes names apart.
fn pattern(text: &str) -> Result<Regex, Fault> {
    let regex = Regex::new(text).map_err(|error| {
        let reason = error.to_string();
        let last = reason
            .lines()
            .last()
            .unwrap_or_default()
            .trim_start_matches("error: ")
            .to_owned();
        fault(
            format!("{text:?} is not a pattern: {last}"),
            "correct the pattern",
        )
    })?;
    if let Some(odd) = only_here(text) {
        return Err(fault(
            format!("{text:?} uses {odd}, which librdkafka's POSIX patterns read differently"),
            "write [0-9] for \\d, [A-Za-z0-9_] for \\w, (…) for (?:…), and + for +?",
        ));
    }
    match accepts_pattern(text) {
        Ok(()) => Ok(regex),
        Err(Refusal::Unknown) => Err(fault(format!("{text:?} cannot be checked"), "report this")),
        Err(Refusal::Invalid(reason)) => Err(fault(
            format!("librdkafka refuses {text:?}: {}", reason.replace('\n', " ")),
            "write a simpler pattern",
        )),
    }
}

/// The first piece that POSIX extended expressions lack or mean otherwise.
fn only_here(text: &str) -> Option<String> {
    let pairs = text.chars().zip(text.chars().skip(1));
    let odd = |(a, b): &(char, char)| match a {
        '\\' => b.is_alphanumeric(),
        '(' => *b == '?',
        '*' | '+' | '?' | '}' => matches!(b, '?' | '+' | '*'),
        '&' | '~' => a == b,
        _ => false,
    };
    pairs.into_iter().find(odd).map(|(a, b)| format!("{a}{b}"))
}

fn same(one: &Ingress, other: &Ingress) -> bool {
    match (one, other) {
        (Ingress::Topic(one), Ingress::Topic(other)) => one == other,
        (Ingress::Pattern(one), Ingress::Pattern(other)) => one.as_str() == other.as_str(),
        _ => false,
    }
}

fn reads(source: &Ingress, topic: &str) -> bool {
    match source {
        Ingress::Topic(name) => name == topic,
        Ingress::Pattern(pattern) => pattern.is_match(topic),
    }
}

/// Judges targets once all ingress topics are known.
fn check_targets(texts: &[RouteText], routes: &[Route], own: &Own, problems: &mut Problems) {
    for text in texts {
        let (Some(from), Some(to)) = (&text.from, &text.to) else {
            continue;
        };
        let pattern = from
            .value
            .starts_with('^')
            .then(|| Regex::new(&from.value).ok())
            .flatten();
        hold(to, "to", problems, |target| match pattern {
            Some(pattern) if target.contains('$') => references(target, &pattern),
            _ => values::topic(target)
                .map(drop)
                .and_then(|()| not_ours(target, routes, own)),
        });
    }
}

fn not_ours(target: &str, routes: &[Route], own: &Own) -> Result<(), Fault> {
    let next = "name the topic that consumers read";
    if target.starts_with("__") {
        return Err(fault(format!("{target:?} is Kafka's own"), next));
    }
    if let Some((kind, _)) = own.internal.iter().find(|(_, topic)| topic == target) {
        return Err(fault(format!("{target:?} is delayd's {kind} topic"), next));
    }
    if routes.iter().any(|route| reads(&route.from, target)) {
        return Err(fault(
            format!("{target:?} is an ingress topic: messages would be delayed twice or for ever"),
            next,
        ));
    }
    Ok(())
}

/// Whether every `$…` of the target names a group of the pattern, and the rest is legal in a topic name.
fn references(target: &str, pattern: &Regex) -> Result<(), Fault> {
    let mut rest = target;
    while let Some(dollar) = rest.find('$') {
        fixed_part(target, &rest[..dollar])?;
        let after = &rest[dollar + 1..];
        let (group, end) = match after.strip_prefix('{') {
            Some(braced) => braced
                .find('}')
                .map_or(("", after.len()), |end| (&braced[..end], end + 2)),
            // Without braces the longest run counts: `$1_x` is the group "1_x".
            None => {
                let end = after
                    .find(|c: char| !(c.is_ascii_alphanumeric() || c == '_'))
                    .unwrap_or(after.len());
                (&after[..end], end)
            }
        };
        let known = match group.parse::<usize>() {
            Ok(number) => number < pattern.captures_len(),
            Err(_) => pattern.capture_names().flatten().any(|name| name == group),
        };
        if !known {
            return Err(fault(
                format!(
                    "{target:?} refers to the group {group:?}, which the pattern does not have"
                ),
                "write $1 for the first group in parentheses, or ${1} before a letter, digit or _",
            ));
        }
        rest = &after[end..];
    }
    fixed_part(target, rest)
}

fn fixed_part(target: &str, part: &str) -> Result<(), Fault> {
    if part.is_empty() {
        return Ok(());
    }
    // The rules for a whole name would refuse "." beside a reference, which is fine there.
    values::topic(&format!("x{part}")).map(drop).map_err(|_| {
        fault(
            format!("{target:?} is not a topic name"),
            "use the characters A-Z a-z 0-9 . _ - and $1",
        )
    })
}

#[cfg(test)]
mod tests;

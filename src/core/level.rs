//! The level table and what a level header means (design rules: README, "Levels").
//! Called by `config` (parsing the table) and `route` (reading a header); knows nothing of topics.

use std::time::Duration;

use super::time::Timestamp;

/// RocketMQ's own table, the default: 18 levels from one second to two hours.
pub const ROCKETMQ_DEFAULT: &str = "1s 5s 10s 30s 1m 2m 3m 4m 5m 6m 7m 8m 9m 10m 20m 30m 1h 2h";

/// A level number: 1 is the first entry of the table.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Level(u32);

impl Level {
    /// The level with this number; `None` for zero, which is no level.
    pub fn new(number: u32) -> Option<Level> {
        (1..=i32::MAX as u32)
            .contains(&number)
            .then_some(Level(number))
    }

    /// The level whose queue is this partition of a schedule topic.
    pub fn of_partition(partition: i32) -> Option<Level> {
        u32::try_from(partition)
            .ok()
            .and_then(|p| Level::new(p.checked_add(1)?))
    }

    /// 1 for the first level.
    pub fn number(self) -> u32 {
        self.0
    }

    /// The partition of the schedule topic that holds this level's queue: level - 1.
    pub fn partition(self) -> i32 {
        i32::try_from(self.0 - 1).unwrap_or(i32::MAX)
    }
}

impl std::fmt::Display for Level {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}", self.0)
    }
}

/// The delays of all levels, in order. Never empty.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LevelTable {
    delays: Vec<Duration>,
    /// Since when it is in force in this process; `None`: not known, as if always from now on.
    since: Option<Timestamp>,
}

/// Why a level table was refused.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("level {level} {text:?}: {reason}")]
pub struct LevelError {
    /// Which entry, from 1; 0 if the table as a whole is meant.
    pub level: usize,
    /// Byte offset of the entry in RocketMQ's text; 0 in a list.
    pub at: usize,
    /// The entry as it was written.
    pub text: String,
    /// What is wrong with it and what is expected.
    pub reason: &'static str,
}

impl LevelTable {
    /// Reads a TOML list: one number and one unit of ms, s, m, h, d in each entry.
    ///
    /// # Errors
    /// Every entry that is not a positive delay, in order.
    pub fn from_list<S: AsRef<str>>(entries: &[S]) -> Result<LevelTable, Vec<LevelError>> {
        let located = entries.iter().map(|entry| (0, entry.as_ref()));
        Self::collect(
            located,
            &[
                ("ms", 1),
                ("s", 1_000),
                ("m", 60_000),
                ("h", 3_600_000),
                ("d", 86_400_000),
            ],
        )
    }

    /// Reads RocketMQ's `messageDelayLevel`: entries divided by exactly one space, units s, m, h, d.
    ///
    /// # Errors
    /// Every entry that RocketMQ itself refuses, and those that it takes but cannot mean:
    /// zero, negative, overflowing.
    pub fn from_rocketmq(text: &str) -> Result<LevelTable, Vec<LevelError>> {
        // Java's split drops what is empty at the end, and only there.
        let text = text.trim_end_matches(' ');
        let mut at = 0;
        let located = text.split(' ').map(|entry| {
            let start = at;
            at += entry.len() + 1;
            (start, entry)
        });
        Self::collect(
            located,
            &[
                ("s", 1_000),
                ("m", 60_000),
                ("h", 3_600_000),
                ("d", 86_400_000),
            ],
        )
    }

    fn collect<'a>(
        entries: impl Iterator<Item = (usize, &'a str)>,
        units: &[(&str, u64)],
    ) -> Result<LevelTable, Vec<LevelError>> {
        let mut delays = Vec::new();
        let mut errors = Vec::new();
        for (index, (at, text)) in entries.enumerate() {
            match parse_delay(text, units) {
                Ok(delay) => delays.push(delay),
                Err(reason) => errors.push(LevelError {
                    level: index + 1,
                    at,
                    text: text.to_owned(),
                    reason,
                }),
            }
        }
        if delays.is_empty() && errors.is_empty() {
            errors.push(LevelError {
                level: 0,
                at: 0,
                text: String::new(),
                reason: "a table needs at least one level",
            });
        }
        if errors.is_empty() {
            Ok(LevelTable {
                delays,
                since: None,
            })
        } else {
            Err(errors)
        }
    }

    /// This table, in force since then by the broker's clock.
    pub fn in_force_since(self, since: Timestamp) -> LevelTable {
        LevelTable {
            since: Some(since),
            ..self
        }
    }

    /// Whether a wait began before this table was in force. One that began later was computed
    /// with it, or by another process that has a newer one.
    pub fn is_newer_than(&self, queued_at: Timestamp) -> bool {
        self.since.is_none_or(|since| queued_at < since)
    }

    /// How many levels there are; never 0.
    pub fn count(&self) -> u32 {
        u32::try_from(self.delays.len()).unwrap_or(u32::MAX)
    }

    /// The last level, to which larger ones are clamped.
    pub fn last(&self) -> Level {
        Level(self.count())
    }

    /// The delay of a level; `None` if the table ends before it.
    pub fn delay(&self, level: Level) -> Option<Duration> {
        self.delays.get(level.0 as usize - 1).copied()
    }

    /// All levels with their delays.
    pub fn iter(&self) -> impl Iterator<Item = (Level, Duration)> {
        (1..).map(Level).zip(self.delays.iter().copied())
    }

    /// The level whose delay is nearest to `wanted`; the earlier level of two equally near.
    pub fn nearest(&self, wanted: Duration) -> (Level, Duration) {
        self.iter()
            .min_by_key(|(_, delay)| delay.abs_diff(wanted))
            .unwrap_or((Level(1), wanted))
    }

    /// What is odd but allowed: delays that repeat or do not rise.
    pub fn warnings(&self) -> Vec<String> {
        let pairs = self.delays.windows(2).enumerate();
        pairs
            .filter(|(_, pair)| pair[1] <= pair[0])
            .map(|(i, pair)| {
                let (delay, before) = (
                    humantime::format_duration(pair[1]),
                    humantime::format_duration(pair[0]),
                );
                format!(
                    "level {} ({delay}) is not longer than level {} ({before})",
                    i + 2,
                    i + 1
                )
            })
            .collect()
    }

    /// A number that tells two tables apart (FNV-1a of the delays, cut to what a gauge holds exactly).
    pub fn hash(&self) -> i64 {
        let bytes = self.delays.iter().flat_map(|d| d.as_millis().to_be_bytes());
        let hash = bytes.fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
            (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
        });
        i64::try_from(hash >> 16).unwrap_or(i64::MAX)
    }
}

fn parse_delay(text: &str, units: &[(&str, u64)]) -> Result<Duration, &'static str> {
    // "ms" stands before "m" and "s", so that the longer unit wins.
    let (number, factor) = units
        .iter()
        .find_map(|(unit, factor)| Some((text.strip_suffix(unit)?, factor)))
        .ok_or(match units.len() {
            4 => "expected a number and one unit of s, m, h, d, and one space between entries",
            _ => "expected a number and one unit of ms, s, m, h, d",
        })?;
    let number = number.strip_prefix('+').unwrap_or(number);
    if number.strip_prefix('-').is_some_and(is_digits) {
        return Err("a delay cannot be negative");
    }
    if !is_digits(number) {
        return Err("expected a whole number before the unit");
    }
    let millis = number
        .parse::<u64>()
        .ok()
        .and_then(|n| n.checked_mul(*factor));
    match millis {
        Some(0) => Err("a delay must be longer than zero"),
        Some(millis) if i64::try_from(millis).is_ok_and(|m| m < i64::MAX / 2) => {
            Ok(Duration::from_millis(millis))
        }
        _ => Err("the delay is larger than a timestamp can hold"),
    }
}

fn is_digits(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit())
}

/// What a level header asks for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Wanted {
    /// Zero or negative: deliver at once.
    Now,
    /// A level of the table.
    Level(Level),
    /// Beyond the table: the last level, and the header must say so.
    Clamped(Level),
    /// Not a level.
    Bad(String),
}

impl LevelTable {
    /// Reads the bytes of a level header as RocketMQ reads its `DELAY` property: an optional
    /// sign and ASCII digits, within 32 bits. Empty values never get here: they count as absent.
    pub fn wanted(&self, value: &[u8]) -> Wanted {
        match parse_i32(value) {
            None => Wanted::Bad(explain(value)),
            Some(number) => match u32::try_from(number).ok().and_then(Level::new) {
                None => Wanted::Now,
                Some(level) if level > self.last() => Wanted::Clamped(self.last()),
                Some(level) => Wanted::Level(level),
            },
        }
    }
}

/// Java's `Integer.parseInt`, for ASCII digits only.
pub(crate) fn parse_i32(value: &[u8]) -> Option<i32> {
    let text = std::str::from_utf8(value).ok()?;
    let digits = text.strip_prefix(['+', '-']).unwrap_or(text);
    if !is_digits(digits) {
        return None;
    }
    text.parse().ok()
}

fn explain(value: &[u8]) -> String {
    let shown: String = value
        .iter()
        .take(32)
        .flat_map(|b| std::ascii::escape_default(*b))
        .map(char::from)
        .collect();
    let more = if value.len() > 32 { "…" } else { "" };
    format!(
        "level must be a whole number as text, from 1 to the last level; got {} bytes: \"{shown}{more}\"",
        value.len()
    )
}

#[cfg(test)]
mod tests;

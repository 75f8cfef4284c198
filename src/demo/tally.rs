//! The demo's judge: what was sent, what came of it, and how late. Told by `demo` of each order
//! and each arrival; prints a line for each arrival, and the verdict.

use std::collections::BTreeMap;
use std::io::IsTerminal;
use std::time::Duration;

use anyhow::ensure;

use super::{print_raw, say, wall};
use crate::app::Failure;
use crate::core::record::{ACCEPTED_AT, Arrival, DUE, Record, Stamp};
use crate::core::time::Timestamp;

pub(super) struct Sent {
    pub(super) level: u32,
    pub(super) delay: Duration,
    pub(super) arrivals: u32,
}

/// What was sent and what came of it.
pub(super) struct Tally {
    pub(super) run: String,
    pub(super) sent: BTreeMap<String, Sent>,
    lateness: BTreeMap<u32, Vec<Duration>>,
    early: usize,
    live: bool,
}

impl Tally {
    pub(super) fn new(run: String) -> Tally {
        Tally {
            run,
            sent: BTreeMap::new(),
            lateness: BTreeMap::new(),
            early: 0,
            live: std::io::stdout().is_terminal(),
        }
    }

    pub(super) fn is_complete(&self) -> bool {
        !self.sent.is_empty() && self.sent.values().all(|sent| sent.arrivals > 0)
    }

    pub(super) fn arrived(&mut self, arrival: &Arrival) {
        let id = arrival
            .record
            .text("delayd-id")
            .map(|id| String::from_utf8_lossy(id).into_owned())
            .unwrap_or_default();
        let (accepted, due) = (
            header_time(&arrival.record, ACCEPTED_AT),
            header_time(&arrival.record, DUE),
        );
        let (Some(accepted), Some(due)) = (accepted, due) else {
            return;
        };
        let at = match arrival.stamp {
            Stamp::Append(at) => at,
            // The embedded Kafka has no clock of its own.
            Stamp::Create(_) | Stamp::Missing => wall(),
        };
        let late = at.since(due);
        let what = String::from_utf8_lossy(arrival.record.value.as_deref().unwrap_or_default())
            .into_owned();
        let Some(sent) = self.sent.get_mut(&id) else {
            return self.line(&format!(
                "{what:<12} (yours)  arrived {} after it was accepted",
                seconds(at.since(accepted))
            ));
        };
        sent.arrivals += 1;
        let early = at < due || at.since(accepted) < sent.delay;
        self.early += usize::from(early);
        let level = sent.level;
        self.lateness.entry(level).or_default().push(late);
        let verdict = if early {
            "EARLY".to_owned()
        } else {
            format!("{} ms late", late.as_millis())
        };
        self.line(&format!(
            "{what:<12} level {level}  arrived {} after it was accepted, {verdict}",
            seconds(at.since(accepted))
        ));
    }

    fn line(&self, text: &str) {
        if self.live {
            print_raw("\r\x1b[K");
        }
        say(text);
    }

    pub(super) fn show_pending(&self) {
        if !self.live {
            return;
        }
        let mut pending: BTreeMap<u32, usize> = BTreeMap::new();
        self.sent
            .values()
            .filter(|s| s.arrivals == 0)
            .for_each(|s| *pending.entry(s.level).or_default() += 1);
        let parts: Vec<String> = pending
            .iter()
            .map(|(level, count)| format!("level {level}: {count}"))
            .collect();
        print_raw(&format!("\r\x1b[Kpending  {}", parts.join("  ")));
    }

    pub(super) fn into_verdict(self) -> anyhow::Result<()> {
        self.line("");
        let missing = self.sent.values().filter(|s| s.arrivals == 0).count();
        let repeated = self.sent.values().filter(|s| s.arrivals > 1).count();
        say(&format!(
            "{} orders sent, {} arrived, {missing} missing, {repeated} repeated, {} early",
            self.sent.len(),
            self.sent.len() - missing,
            self.early
        ));
        for (level, mut lateness) in self.lateness {
            lateness.sort_unstable();
            let at = |share: usize| {
                lateness
                    .get((lateness.len() * share / 100).min(lateness.len() - 1))
                    .map_or(0, Duration::as_millis)
            };
            say(&format!(
                "level {level}: {:>5} arrived, late by p50 {} ms, p99 {} ms, at most {} ms",
                lateness.len(),
                at(50),
                at(99),
                at(100)
            ));
        }
        if missing + repeated + self.early > 0 {
            return Err(Failure::Wrong("the show failed: see the counts above".to_owned()).into());
        }
        ensure!(
            !self.sent.is_empty(),
            "no order was sent: the show was too short"
        );
        Ok(())
    }
}

fn header_time(record: &Record, name: &str) -> Option<Timestamp> {
    std::str::from_utf8(record.text(name)?).ok()?.parse().ok()
}

fn seconds(duration: Duration) -> String {
    format!("{:.3} s", duration.as_secs_f64())
}

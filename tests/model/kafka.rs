//! A Kafka in memory: logs with offsets and gaps, one clock, transactions that are all or nothing,
//! owners of partitions that are fenced. It checks every batch as it lands.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use delayd::core::fate::Refusal;
use delayd::core::ingress::OwnTopics;
use delayd::core::level::LevelTable;
use delayd::core::level_queue::PendingMode;
use delayd::core::partitioner::partition_of;
use delayd::core::record::{Partition, Record, Source};
use delayd::core::time::Timestamp;

use delayd::core::dead_letter::Reason;

use crate::message::Message;

/// A property holds, or in words why it does not.
pub(crate) type Checked<T = ()> = Result<T, String>;

pub(crate) const SCHEDULE: &str = "SCHEDULE_TOPIC_XXXX";
pub(crate) const DEAD: &str = "delayd-dead-letter";
pub(crate) const TARGETS: [(&str, i32); 2] = [("orders", 2), ("audit", 1)];

/// How a batch ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Ending {
    /// It goes out with its offsets.
    Commit,
    /// Nothing of it happens.
    RollBack,
    /// The process dies first. At least once: so many of its records are out.
    CrashBefore(usize),
    /// The process dies before it hears of the success.
    CrashAfter,
    /// The answer to the commit is lost; the group knows.
    AnswerLost { committed: bool },
}

/// What the worker learns of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Dispatched {
    Done,
    RolledBack,
    Crashed,
}

/// A record in a log.
#[derive(Debug, Clone)]
pub(crate) struct Entry {
    pub stamp: Timestamp,
    pub record: Record,
    /// Which message it is.
    pub number: usize,
    /// Which record became this one.
    pub from: Option<Source>,
    /// The newest level table at that time.
    pub version: usize,
}

/// A record on its way into a log.
#[derive(Debug, Clone)]
pub(crate) struct Out {
    pub to: Partition,
    pub record: Record,
    pub from: Source,
}

/// Owner of a partition, and how many it has had.
pub(crate) type Grant = (usize, u64);

#[derive(Debug)]
pub(crate) struct Kafka {
    pub clock: i64,
    pub exactly_once: bool,
    pub pending: PendingMode,
    /// `None`: the marker of a transaction.
    pub logs: BTreeMap<Partition, Vec<Option<Entry>>>,
    pub committed: BTreeMap<Partition, i64>,
    pub owners: BTreeMap<Partition, Grant>,
    /// Targets that are away; `true` if only a leader is missing.
    pub away: BTreeMap<String, bool>,
    /// All level tables so far.
    pub tables: Vec<Arc<LevelTable>>,
    pub messages: Vec<Message>,
    /// How often each record has become another one.
    pub handled: BTreeMap<(Partition, i64), usize>,
    /// Records that may be repeated, because a process that held them died or lost them.
    pub repeatable: BTreeSet<(Partition, i64)>,
    /// Whether something that was due has ever become something that waits.
    pub set_back: bool,
    turn: i32,
}

pub(crate) fn own() -> OwnTopics {
    OwnTopics {
        schedule: SCHEDULE.to_owned(),
        dead_letter: DEAD.to_owned(),
        clock: "delayd-clock".to_owned(),
    }
}

pub(crate) fn partition(topic: &str, partition: i32) -> Partition {
    Partition {
        topic: topic.into(),
        partition,
    }
}

impl Kafka {
    pub(crate) fn new(exactly_once: bool, pending: PendingMode, table: LevelTable) -> Kafka {
        let mut kafka = Kafka {
            clock: 1_700_000_000_000,
            exactly_once,
            pending,
            logs: BTreeMap::from([(partition(DEAD, 0), Vec::new())]),
            committed: BTreeMap::new(),
            owners: BTreeMap::new(),
            away: BTreeMap::new(),
            tables: Vec::new(),
            messages: Vec::new(),
            handled: BTreeMap::new(),
            repeatable: BTreeSet::new(),
            set_back: false,
            turn: 0,
        };
        for (topic, partitions) in TARGETS {
            kafka
                .logs
                .extend((0..partitions).map(|p| (partition(topic, p), Vec::new())));
        }
        kafka.edit(table);
        kafka
    }

    /// A new level table is in force: its queues exist before anybody uses them.
    pub(crate) fn edit(&mut self, table: LevelTable) {
        for (level, _) in table.iter() {
            self.open(partition(SCHEDULE, level.partition()));
        }
        self.tables.push(Arc::new(table));
    }

    /// Makes sure that this partition exists and that somebody owns it.
    pub(crate) fn open(&mut self, partition: Partition) {
        let owner = self.logs.len() % 2;
        self.owners.entry(partition.clone()).or_insert((owner, 0));
        self.logs.entry(partition).or_default();
    }

    pub(crate) fn give(&mut self, partition: &Partition, member: usize) {
        if let Some((owner, epoch)) = self.owners.get_mut(partition) {
            (*owner, *epoch) = (member, *epoch + 1);
        }
    }

    pub(crate) fn entry(&self, source: &Source) -> Checked<&Entry> {
        let entry = self
            .logs
            .get(&source.partition)
            .and_then(|log| log.get(source.offset as usize));
        entry
            .and_then(Option::as_ref)
            .ok_or(format!("there is no record {source}"))
    }

    /// The next record from `offset` on; markers are not shown.
    pub(crate) fn next(&self, partition: &Partition, offset: i64) -> Option<(i64, &Entry)> {
        let log = self.logs.get(partition)?;
        let rest = log.iter().enumerate().skip(offset as usize);
        rest.filter_map(|(offset, entry)| Some((offset as i64, entry.as_ref()?)))
            .next()
    }

    pub(crate) fn append(&mut self, to: &Partition, entry: Entry) {
        self.logs.entry(to.clone()).or_default().push(Some(entry));
    }

    /// Where a record of this size can go now.
    pub(crate) fn place(
        &mut self,
        topic: &str,
        fixed: Option<i32>,
        key: Option<&[u8]>,
        size: usize,
    ) -> Result<i32, Refusal> {
        if let Some(leaderless) = self.away.get(topic) {
            return Err(Refusal::Away {
                leaderless: *leaderless,
                why: format!("{topic} is away"),
            });
        }
        let count = self.logs.keys().filter(|p| &*p.topic == topic).count() as i32;
        let limit = if topic == "audit" {
            1_000
        } else if topic == DEAD {
            1_500
        } else {
            usize::MAX
        };
        if size > limit {
            return Err(Refusal::TooLarge);
        }
        self.turn += 1;
        match (fixed, key) {
            (Some(partition), _) if partition < count => Ok(partition),
            (Some(_), _) => Err(Refusal::Never(
                Reason::NoSuchPartition,
                "no such partition".to_owned(),
            )),
            (None, Some(key)) => Ok(partition_of(key, count)),
            (None, None) => Ok(self.turn % count),
        }
    }

    /// Ends a batch as the schedule of the test says.
    pub(crate) fn finish(
        &mut self,
        grants: &BTreeMap<Partition, Grant>,
        outs: &[Out],
        offsets: &BTreeMap<Partition, i64>,
        ending: Ending,
    ) -> Checked<Dispatched> {
        let fenced = offsets.keys().any(|p| self.owners.get(p) != grants.get(p));
        match ending {
            _ if fenced && self.exactly_once => {
                self.mark(outs);
                Ok(
                    if matches!(ending, Ending::CrashBefore(_) | Ending::CrashAfter) {
                        Dispatched::Crashed
                    } else {
                        Dispatched::RolledBack
                    },
                )
            }
            Ending::RollBack | Ending::AnswerLost { committed: false } => {
                if self.exactly_once {
                    self.mark(outs);
                }
                Ok(Dispatched::RolledBack)
            }
            Ending::CrashBefore(landed) => {
                self.may_repeat(outs);
                match self.exactly_once {
                    true => self.mark(outs),
                    false => self.land(&outs[..landed.min(outs.len())])?,
                }
                Ok(Dispatched::Crashed)
            }
            Ending::Commit | Ending::CrashAfter | Ending::AnswerLost { committed: true } => {
                if fenced {
                    self.may_repeat(outs);
                }
                self.land(outs)?;
                if !fenced {
                    self.commit(offsets)?;
                }
                Ok(if ending == Ending::CrashAfter {
                    Dispatched::Crashed
                } else {
                    Dispatched::Done
                })
            }
        }
    }

    fn may_repeat(&mut self, outs: &[Out]) {
        if !self.exactly_once {
            self.repeatable.extend(
                outs.iter()
                    .map(|out| (out.from.partition.clone(), out.from.offset)),
            );
        }
    }

    /// The markers of a transaction take offsets of their own.
    fn mark(&mut self, outs: &[Out]) {
        let touched: BTreeSet<_> = outs.iter().map(|out| &out.to).collect();
        for partition in touched {
            self.logs.entry(partition.clone()).or_default().push(None);
        }
    }

    fn land(&mut self, outs: &[Out]) -> Checked {
        for out in outs {
            crate::landing::check(self, out)?;
            let key = (out.from.partition.clone(), out.from.offset);
            let times = self.handled.entry(key.clone()).or_insert(0);
            *times += 1;
            if *times > 1 && !self.repeatable.contains(&key) {
                return Err(format!("twice: {} went out again, to {}", out.from, out.to));
            }
            let number = self.entry(&out.from)?.number;
            let (stamp, version) = (Timestamp(self.clock), self.tables.len() - 1);
            let entry = Entry {
                stamp,
                record: out.record.clone(),
                number,
                from: Some(out.from.clone()),
                version,
            };
            self.append(&out.to, entry);
        }
        if self.exactly_once {
            self.mark(outs);
        }
        Ok(())
    }

    fn commit(&mut self, offsets: &BTreeMap<Partition, i64>) -> Checked {
        for (partition, to) in offsets {
            let from = self.committed.insert(partition.clone(), *to).unwrap_or(0);
            if *to < from {
                return Err(format!(
                    "the offset of {partition} goes back from {from} to {to}"
                ));
            }
            let entries = (from..*to).filter(|o| {
                self.logs[partition]
                    .get(*o as usize)
                    .is_some_and(Option::is_some)
            });
            let left = entries
                .into_iter()
                .find(|offset| !self.handled.contains_key(&(partition.clone(), *offset)));
            if let Some(left) = left {
                return Err(format!(
                    "lost: the offset of {partition} goes to {to} past record {left}, which is nowhere"
                ));
            }
        }
        Ok(())
    }
}

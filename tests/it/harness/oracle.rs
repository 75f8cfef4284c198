//! The judge: compares what was sent with what a `read_committed` reader saw, by the header `test-id`.
//! Called by every scenario. It must take its times from Kafka alone: accepted = append time at the ingress topic,
//! delivered = append time at the target; delayd's own headers are checked, never believed.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::time::Duration;

use super::clients::{Message, Placed, Reader, Seen};
use super::eventually::seconds;

const ID: &str = "test-id";

struct Sent {
    message: Message,
    placed: Placed,
    level: usize,
    /// In ms by the broker's clock.
    due: i64,
}

/// Knows the delays, remembers what was sent.
pub struct Oracle {
    delays: Vec<i64>,
    sent: HashMap<String, Sent>,
}

impl Oracle {
    /// `table` as in `levels.toml`'s text form: `200ms 1s`.
    pub fn new(table: &str) -> Oracle {
        let ms = |text| humantime::parse_duration(text).unwrap().as_millis();
        Oracle {
            delays: table.split(' ').map(|text| ms(text) as i64).collect(),
            sent: HashMap::new(),
        }
    }

    pub fn remember(&mut self, messages: &[Message], placed: &[Placed]) {
        for (message, placed) in messages.iter().zip(placed) {
            let level = level(message).clamp(0, self.delays.len() as i64) as usize;
            let delay = level.checked_sub(1).map_or(0, |index| self.delays[index]);
            let sent = Sent {
                message: message.clone(),
                placed: *placed,
                level,
                due: placed.timestamp + delay,
            };
            let before = self.sent.insert(id(&message.headers).expect(ID), sent);
            assert!(before.is_none(), "a test used an id twice: {message:?}");
        }
    }

    pub fn len(&self) -> usize {
        self.sent.len()
    }

    /// Id and due time of everything sent.
    pub fn dues(&self) -> impl Iterator<Item = (&String, i64)> {
        self.sent.iter().map(|(id, sent)| (id, sent.due))
    }

    /// Reads until everything sent is there or `deadline` is over, then a second more for repeats.
    pub fn watch(&self, reader: &mut Reader, deadline: Duration) -> Verdict {
        let end = std::time::Instant::now() + deadline;
        while self.missing(&reader.seen) > 0 && std::time::Instant::now() < end {
            reader.read_for(Duration::from_millis(200));
        }
        reader.read_for(seconds(1));
        self.verdict(&reader.seen)
    }

    fn missing(&self, seen: &[Seen]) -> usize {
        let ids: HashSet<_> = seen.iter().filter_map(|seen| id(&seen.headers)).collect();
        self.sent.len().saturating_sub(ids.len())
    }

    pub fn verdict(&self, seen: &[Seen]) -> Verdict {
        let mut verdict = Verdict::default();
        let mut by_id: HashMap<String, Vec<&Seen>> = HashMap::new();
        for record in seen {
            match id(&record.headers).filter(|id| self.sent.contains_key(id)) {
                Some(id) => by_id.entry(id).or_default().push(record),
                None => verdict.strange.push(format!("{record:?}")),
            }
        }
        for (id, sent) in &self.sent {
            let records = by_id.get(id).map_or(&[][..], Vec::as_slice);
            verdict.judge(id, sent, records);
        }
        verdict.disordered = self.disorder(seen);
        verdict.lateness.sort_unstable();
        println!("{}", verdict.summary());
        verdict
    }

    /// One ingress partition, level and target partition: ingress offsets must rise (repeats aside).
    fn disorder(&self, seen: &[Seen]) -> Vec<String> {
        let mut records: Vec<_> = seen.iter().collect();
        records.sort_by_key(|seen| (&seen.topic, seen.partition, seen.offset));
        let (mut last, mut known) = (BTreeMap::new(), HashSet::new());
        let mut wrong = Vec::new();
        for record in records {
            let Some((id, sent)) = id(&record.headers).and_then(|id| self.sent.get_key_value(&id))
            else {
                continue;
            };
            if !known.insert(id) {
                continue;
            }
            let lane = (
                sent.placed.partition,
                sent.level,
                &record.topic,
                record.partition,
            );
            let before = last.insert(lane, sent.placed.offset).unwrap_or(-1);
            if before > sent.placed.offset {
                wrong.push(format!(
                    "{id} (offset {}) after offset {before} in {lane:?}",
                    sent.placed.offset
                ));
            }
        }
        wrong
    }
}

#[derive(Debug, Default)]
pub struct Verdict {
    pub sent: usize,
    pub lost: Vec<String>,
    pub repeated: Vec<String>,
    pub early: Vec<String>,
    pub disordered: Vec<String>,
    pub changed: Vec<String>,
    pub strange: Vec<String>,
    /// ms behind due, sorted.
    pub lateness: Vec<i64>,
}

impl Verdict {
    fn judge(&mut self, id: &str, sent: &Sent, records: &[&Seen]) {
        self.sent += 1;
        match records {
            [] => self.lost.push(id.to_owned()),
            [_] => {}
            more => self.repeated.push(format!("{id} {} times", more.len())),
        }
        for record in records {
            let late = record.timestamp - sent.due;
            self.lateness.push(late);
            if late < 0 {
                self.early.push(format!("{id} by {} ms", -late));
            }
            self.changed
                .extend(changes(sent, record).map(|what| format!("{id}: {what}")));
        }
    }

    /// The `p`-th percentile of lateness in ms.
    pub fn late(&self, p: f64) -> i64 {
        let last = self.lateness.len().saturating_sub(1) as f64;
        let index = (last * p / 100.0).round() as usize;
        self.lateness.get(index).copied().unwrap_or(0)
    }

    pub fn summary(&self) -> String {
        format!(
            "sent {} · lost {} · repeated {} · early {} · out of order {} · changed {} · strange {} · late p50 {} p99 {} max {} ms",
            self.sent,
            self.lost.len(),
            self.repeated.len(),
            self.early.len(),
            self.disordered.len(),
            self.changed.len(),
            self.strange.len(),
            self.late(50.0),
            self.late(99.0),
            self.late(100.0),
        )
    }

    /// Each exactly once, none early, in order, unchanged, and nothing else.
    #[track_caller]
    pub fn assert_clean(&self) {
        self.assert_none(&[&self.repeated, &self.disordered]);
    }

    /// As `assert_clean`, but re-parked messages may have lost their place.
    #[track_caller]
    pub fn assert_clean_in_any_order(&self) {
        self.assert_none(&[&self.repeated]);
    }

    /// As `assert_clean`, but a crash may have repeated some.
    #[track_caller]
    pub fn assert_nothing_lost(&self) {
        self.assert_none(&[&self.disordered]);
    }

    #[track_caller]
    fn assert_none(&self, more: &[&Vec<String>]) {
        let always = [&self.lost, &self.early, &self.changed, &self.strange];
        let faults: Vec<_> = always
            .iter()
            .chain(more)
            .flat_map(|list| list.iter().take(5))
            .collect();
        assert!(self.sent > 0, "the test sent nothing");
        assert!(faults.is_empty(), "{}\n{faults:#?}", self.summary());
    }
}

/// Differences between what was sent and what came, delayd's own headers aside.
fn changes(sent: &Sent, seen: &Seen) -> impl Iterator<Item = String> {
    let clamped = level(&sent.message) != sent.level as i64 && sent.level > 0;
    let wanted = sent
        .message
        .headers
        .iter()
        .cloned()
        .map(|(key, value)| match key.as_str() {
            "delayLevel" | "DELAY" if clamped => (key, Some(sent.level.to_string().into_bytes())),
            _ => (key, value),
        });
    let wanted: Vec<_> = wanted.collect();
    let own = |key: &str| key.starts_with("delayd-");
    let got: Vec<_> = seen
        .headers
        .iter()
        .filter(|(key, _)| !own(key))
        .cloned()
        .collect();
    let accepted = seen.header("delayd-accepted-at");
    let told = Some(sent.placed.timestamp.to_string());
    let wait = sent.level > 0;
    [
        (sent.message.key != seen.key)
            .then(|| format!("key {:?}, was {:?}", seen.key, sent.message.key)),
        (sent.message.value != seen.value).then(|| {
            format!(
                "value of {:?} bytes differs",
                seen.value.as_ref().map(Vec::len)
            )
        }),
        (wanted != got).then(|| format!("headers {got:?}, were {wanted:?}")),
        (wait && accepted != told)
            .then(|| format!("accepted-at {accepted:?}, Kafka said {told:?}")),
        (wait && seen.header("delayd-due").is_none()).then(|| "no delayd-due".to_owned()),
    ]
    .into_iter()
    .flatten()
}

fn id(headers: &[(String, Option<Vec<u8>>)]) -> Option<String> {
    let (_, value) = headers.iter().find(|(key, _)| key == ID)?;
    String::from_utf8(value.clone()?).ok()
}

/// The level that a test asked for, 0 for none.
fn level(message: &Message) -> i64 {
    let mut levels = message
        .headers
        .iter()
        .rev()
        .filter(|(key, _)| key == "delayLevel");
    let value = levels.next().and_then(|(_, value)| value.as_deref());
    value.map_or(0, |value| {
        String::from_utf8_lossy(value).parse().expect("a level")
    })
}

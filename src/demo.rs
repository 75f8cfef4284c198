//! `delayd demo`: the real router and scanners, with orders to delay, and a judge that watches
//! them arrive. Called by `main`. On the embedded Kafka it needs nothing but the binary; there it
//! runs at-least-once, and says so.

mod tally;

use std::io::Write;
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use anyhow::{Context as _, ensure};

use tally::{Sent, Tally};

use crate::app;
use crate::config::{Config, Guarantee};
use crate::core::record::{DELAY_LEVEL, REAL_TOPIC};
use crate::core::time::Timestamp;
use crate::flow::worker::Shared;
use crate::kafka::clock::BrokerClock;
use crate::kafka::embedded::{Embedded, Reader, Sender};
use crate::kafka::settings::{self, Role};
use crate::kafka::topics::{self, Needed, Topics};
use crate::ops::health::Health;
use crate::ops::metrics::Metrics;
use crate::ops::shutdown::{self, StopFlag};

/// How long the group may take to form.
const JOINING: Duration = Duration::from_secs(60);
/// What a message may need beyond its delay before the show ends.
const MARGIN: Duration = Duration::from_secs(1);

/// What `delayd demo` was asked for.
#[derive(Debug, Clone)]
pub struct Show {
    /// How long; `None`: until Ctrl-C.
    pub lasts: Option<Duration>,
    /// A real Kafka; `None`: the embedded one.
    pub bootstrap_server: Option<String>,
    /// Orders per second.
    pub rate: u32,
}

/// Runs the show; an error if anything was early, lost or delivered twice.
///
/// # Errors
/// Also if Kafka cannot be reached.
pub async fn run(config: Config, show: Show) -> anyhow::Result<()> {
    let stop = StopFlag::new();
    tokio::spawn(shutdown::signals(stop.clone()));
    let mut config = demo_config(config, &show);
    let orders = format!("{}-orders", config.name);
    let mut needed = topics::needed(&config);
    needed.push(Needed {
        name: orders.clone(),
        partitions: 4,
        grows: false,
        settings: vec![],
    });
    // Kept until the end: the embedded Kafka lives as long as this.
    let (_embedded, topics) = match &show.bootstrap_server {
        Some(_) => {
            let topics = Topics::new(&config)?;
            topics.ensure(&needed, true).await?;
            (None, Some(Arc::new(topics)))
        }
        None => {
            let embedded = Embedded::start(&needed)?;
            config
                .kafka
                .common
                .insert("bootstrap.servers".to_owned(), embedded.address());
            (Some(embedded), None)
        }
    };
    announce(&config, &show, &orders);
    let clock = if topics.is_some() {
        BrokerClock::default()
    } else {
        BrokerClock::of_this_host()
    };
    let (metrics, health) = (Arc::new(Metrics::new()), Arc::new(Health::new()));
    let shared = Arc::new(app::share(
        config,
        std::collections::HashMap::new(),
        clock,
        metrics,
        health,
        stop.clone(),
    )?);
    let threads = app::start(&shared, topics.as_ref())?;
    let stage = Stage {
        shared: Arc::clone(&shared),
        show,
        orders,
    };
    let result = tokio::task::spawn_blocking(move || stage.play())
        .await
        .context("the show was interrupted")?;
    stop.stop();
    app::finish(&shared, threads).await?;
    result?.into_verdict()
}

fn demo_config(mut config: Config, show: &Show) -> Config {
    config.name = "delayd-demo".to_owned();
    config.topics.schedule = "delayd-demo-schedule".to_owned();
    config.workers = 1;
    config.routes = vec![crate::core::ingress::Route {
        from: crate::core::ingress::Ingress::Topic(config.ingress()),
        to: None,
        level: None,
        partition: crate::core::ingress::TargetPartition::Key,
    }];
    match &show.bootstrap_server {
        Some(server) => {
            config
                .kafka
                .common
                .insert("bootstrap.servers".to_owned(), server.clone());
        }
        None => {
            config.guarantee = Guarantee::AtLeastOnce;
            config
                .kafka
                .consumer
                .insert("fetch.wait.max.ms".to_owned(), "10".to_owned());
        }
    }
    config
}

fn announce(config: &Config, show: &Show, orders: &str) {
    let address = config
        .kafka
        .common
        .get("bootstrap.servers")
        .map_or("", String::as_str);
    if show.bootstrap_server.is_none() {
        say(&format!(
            "an embedded Kafka listens on {address} (a try-out: at-least-once, nothing is kept)"
        ));
    } else {
        say(&format!("using Kafka at {address}, exactly-once"));
    }
    say(&format!(
        "join in: produce to {} with headers delayLevel and REAL_TOPIC={orders}, read {orders}",
        config.ingress()
    ));
}

struct Stage {
    shared: Arc<Shared>,
    show: Show,
    orders: String,
}

impl Stage {
    fn play(&self) -> anyhow::Result<Tally> {
        self.wait_until_ready()?;
        let producer = Sender::new(&settings::producer(&Config {
            guarantee: Guarantee::AtLeastOnce,
            ..self.shared.config.clone()
        }))?;
        let mut reader_config = settings::consumer(&self.shared.config, Role::Scanner, 0);
        reader_config.set("group.id", format!("{}-watcher", self.shared.config.name));
        let reader = Reader::new(&reader_config, &self.orders)?;
        let mut tally = Tally::new(self.run_id());
        let started = Instant::now();
        let pause = Duration::from_secs(1) / self.show.rate.max(1);
        let mut next = started;
        while !self.over(started, &tally) {
            if Instant::now() >= next {
                next += pause;
                self.send_one(&producer, &mut tally, started)?;
            }
            let wait = next
                .saturating_duration_since(Instant::now())
                .min(Duration::from_millis(50));
            if let Some(arrival) = reader.next(wait)? {
                tally.arrived(&arrival);
            }
            tally.show_pending();
        }
        producer.finish()?;
        Ok(tally)
    }

    fn wait_until_ready(&self) -> anyhow::Result<()> {
        say("waiting for the consumer groups to form …");
        let deadline = Instant::now() + JOINING;
        while let Err(reasons) = self.shared.health.readyz() {
            ensure!(
                Instant::now() < deadline,
                "not ready within {}: {}",
                humantime::format_duration(JOINING),
                reasons.join("; ")
            );
            if self.shared.stop.wait(Duration::from_millis(50)) {
                break;
            }
        }
        Ok(())
    }

    fn over(&self, started: Instant, tally: &Tally) -> bool {
        let done = self.show.lasts.is_some_and(|lasts| {
            let left = lasts.saturating_sub(started.elapsed());
            left.is_zero() || (tally.is_complete() && left < MARGIN + self.shortest())
        });
        done || self.shared.stop.is_set()
    }

    fn shortest(&self) -> Duration {
        self.shared
            .table()
            .iter()
            .map(|(_, delay)| delay)
            .min()
            .unwrap_or_default()
    }

    /// Sends an order at the next level whose delay still ends within the show.
    fn send_one(
        &self,
        producer: &Sender,
        tally: &mut Tally,
        started: Instant,
    ) -> anyhow::Result<()> {
        let left = self
            .show
            .lasts
            .map(|lasts| lasts.saturating_sub(started.elapsed()));
        let fits = |delay: Duration| left.is_none_or(|left| delay + MARGIN < left);
        let levels: Vec<_> = self
            .shared
            .table()
            .iter()
            .take(4)
            .filter(|(_, delay)| fits(*delay))
            .collect();
        if levels.is_empty() {
            return Ok(());
        }
        let (level, delay) = levels[tally.sent.len() % levels.len()];
        let number = tally.sent.len();
        let id = format!("{}-{number}", tally.run);
        let headers = [
            (DELAY_LEVEL, level.to_string()),
            (REAL_TOPIC, self.orders.clone()),
            ("delayd-id", id.clone()),
        ];
        producer.send(
            &self.shared.config.ingress(),
            &format!("customer-{}", number % 7),
            &format!("order {number}"),
            &headers,
        )?;
        tally.sent.insert(
            id,
            Sent {
                level: level.number(),
                delay,
                arrivals: 0,
            },
        );
        Ok(())
    }

    fn run_id(&self) -> String {
        format!("{:x}", wall().0)
    }
}

fn wall() -> Timestamp {
    let since = SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .unwrap_or_default();
    Timestamp(i64::try_from(since.as_millis()).unwrap_or(i64::MAX))
}

/// A reader that has gone away (a closed pipe) is no reason to fail.
fn say(text: &str) {
    writeln!(std::io::stdout(), "{text}").ok();
}

fn print_raw(text: &str) {
    let mut out = std::io::stdout();
    out.write_all(text.as_bytes())
        .and_then(|()| out.flush())
        .ok();
}

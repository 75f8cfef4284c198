//! The service: waits for Kafka, sees to its topics, starts the workers, and ends them in order.
//! Called by `main` (and by `demo`, which brings its own Kafka); decides nothing about messages.

mod reload;

use std::sync::{Arc, Once, OnceLock, RwLock};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use tokio::net::TcpListener;
use tracing::{info, warn};

use crate::config::{Config, Guarantee};
use crate::core::dead_letter::Reason;
use crate::core::ingress::OwnTopics;
use crate::core::level::LevelTable;
use crate::core::route::Rules;
use crate::flow::housekeeping::{self, Board};
use crate::flow::worker::{self, Shared};
use crate::kafka::clock::{self, BrokerClock};
use crate::kafka::log::Log;
use crate::kafka::settings::{self, Role};
use crate::kafka::topics::{self, State, Topics};
use crate::ops::health::Health;
use crate::ops::metrics::Metrics;
use crate::ops::shutdown::StopFlag;
use crate::ops::{http, shutdown};

/// How long the workers have to finish what is in flight.
const GRACE: Duration = Duration::from_secs(20);

/// Why the service ended, beside being told to.
#[derive(Debug, thiserror::Error)]
pub enum Failure {
    /// Kafka did not answer within `--wait`.
    #[error(
        "Kafka at {servers} did not answer within {waited}: {why}; check bootstrap.servers, TLS and SASL, or wait longer with --wait"
    )]
    Unreachable {
        /// `bootstrap.servers`.
        servers: String,
        /// `--wait`.
        waited: String,
        /// The last answer.
        why: String,
    },
    /// Something must be configured differently.
    #[error("{0}")]
    Configuration(String),
    /// What was observed is wrong.
    #[error("{0}")]
    Wrong(String),
}

/// Runs the service until a signal ends it.
///
/// # Errors
/// [`Failure`], or what the system refuses.
pub async fn run(config: Config) -> anyhow::Result<()> {
    let stop = StopFlag::new();
    tokio::spawn(shutdown::signals(stop.clone()));
    let hangups = reload::hangups()?;
    let listener = listen(&config).await?;
    let health = Arc::new(Health::new());
    let metrics = Arc::new(Metrics::new());
    if let Some(listener) = listener {
        tokio::spawn(http::serve(
            listener,
            Arc::clone(&metrics),
            Arc::clone(&health),
            stop.stopped(),
        ));
    }
    for worker in 0..config.workers {
        // Known from the start, so that nobody takes the process for ready before they are.
        health.component(&worker::name(Role::Scanner, worker));
        health.component(&worker::name(Role::Router, worker));
    }
    let topics = Arc::new(Topics::new(&config)?);
    health.component("kafka").not_ready("waiting for Kafka");
    if !wait_for_kafka(&config, &topics, &stop).await? {
        return Ok(());
    }
    let retention = prepare_topics(&config, &topics).await?;
    health.component("kafka").ready();
    let shared = Arc::new(share(
        config,
        retention,
        BrokerClock::default(),
        metrics,
        health,
        stop,
    )?);
    let threads = start(&shared, Some(&topics))?;
    reload::until_stopped(&shared, &topics, hangups).await?;
    finish(&shared, threads).await
}

async fn listen(config: &Config) -> anyhow::Result<Option<TcpListener>> {
    let Some(address) = config.http else {
        return Ok(None);
    };
    let bound = TcpListener::bind(address).await.map_err(|error| {
        Failure::Configuration(format!("cannot listen on {address}: {error}; choose another with --http HOST:PORT, or --http off"))
    })?;
    info!(address = %bound.local_addr()?, "http is listening");
    Ok(Some(bound))
}

/// Asks until Kafka answers. `false` if we were told to stop meanwhile.
async fn wait_for_kafka(config: &Config, topics: &Topics, stop: &StopFlag) -> anyhow::Result<bool> {
    let started = Instant::now();
    let mut pause = Duration::from_millis(200);
    let servers = config
        .kafka
        .common
        .get("bootstrap.servers")
        .cloned()
        .unwrap_or_default();
    loop {
        let left = config.wait.saturating_sub(started.elapsed());
        let Err(error) =
            topics.partitions(left.clamp(Duration::from_millis(500), Duration::from_secs(5)))
        else {
            return Ok(true);
        };
        if stop.is_set() {
            return Ok(false);
        }
        let left = config.wait.saturating_sub(started.elapsed());
        if left.is_zero() {
            let waited = humantime::format_duration(config.wait).to_string();
            return Err(Failure::Unreachable {
                servers,
                waited,
                why: format!("{error:#}"),
            }
            .into());
        }
        info!(servers, error = format!("{error:#}"), "waiting for Kafka");
        tokio::select! {
            () = tokio::time::sleep(pause.min(left)) => {}
            () = stop.stopped() => return Ok(false),
        }
        pause = (pause * 2).min(Duration::from_secs(10));
    }
}

/// Creates or checks the topics; returns how long each ingress topic keeps its records.
async fn prepare_topics(
    config: &Config,
    topics: &Topics,
) -> anyhow::Result<std::collections::HashMap<String, Duration>> {
    let needed = topics::needed(config);
    let reports = topics.ensure(&needed, config.create_topics).await;
    let reports = reports.map_err(|error| Failure::Configuration(format!("{error:#}")))?;
    let missing: Vec<_> = reports
        .iter()
        .filter(|r| r.state == State::Missing)
        .map(|r| r.topic.as_str())
        .collect();
    if !missing.is_empty() {
        let missing = missing.join(", ");
        return Err(Failure::Configuration(format!("topics are missing: {missing}; create them with `delayd topics create`, or run with --create-topics")).into());
    }
    for report in reports.iter().filter(|r| r.state != State::Exists) {
        info!(topic = report.topic, partitions = report.partitions, state = ?report.state, "topic");
    }
    let names: Vec<String> = needed.iter().map(|n| n.name.clone()).collect();
    let settings = match topics.settings(&names).await {
        Ok(settings) => settings,
        Err(error) => {
            warn!(error = format!("{error:#}"), "cannot check the topics");
            return Ok(std::collections::HashMap::new());
        }
    };
    let dangers = settings
        .get(&config.topics.schedule)
        .map(|s| topics::dangers(config, s))
        .unwrap_or_default();
    if !dangers.is_empty() {
        return Err(Failure::Configuration(dangers.join("\n")).into());
    }
    Ok(topics::retention(&settings))
}

/// What all workers share, before any of them runs.
pub fn share(
    config: Config,
    retention: std::collections::HashMap<String, Duration>,
    clock: BrokerClock,
    metrics: Arc<Metrics>,
    health: Arc<Health>,
    stop: StopFlag,
) -> anyhow::Result<Shared> {
    let own = OwnTopics {
        schedule: config.topics.schedule.clone(),
        dead_letter: config.dead_letter(),
        clock: config.clock(),
    };
    let rules = Rules {
        routes: config.routes.clone(),
        table: Arc::new(config.levels.clone()),
        own,
        retention,
    };
    metrics.announce(
        (1..=config.levels.count()).chain([0]),
        &Reason::ALL.map(Reason::code),
    );
    metrics.levels_hash(config.levels.hash());
    Ok(Shared {
        log: Log::new(&config)?,
        rules: RwLock::new(Arc::new(rules)),
        clock,
        metrics,
        health,
        stop,
        queues: Board::default(),
        fatal: OnceLock::new(),
        config,
    })
}

/// Starts the workers, and around them the clock and the housekeeping where Kafka is a real one.
///
/// # Errors
/// If the system gives no threads, or a client cannot be made.
pub fn start(
    shared: &Arc<Shared>,
    topics: Option<&Arc<Topics>>,
) -> anyhow::Result<Vec<JoinHandle<()>>> {
    let config = &shared.config;
    info!(
        name = config.name,
        guarantee = config.guarantee.name(),
        levels = config.levels.count(),
        workers = config.workers,
        "starting"
    );
    let mut threads = Vec::new();
    if let Some(topics) = topics {
        threads.push(start_clock(shared)?);
        threads.push(start_housekeeping(shared, topics)?);
    }
    for number in 0..config.workers {
        threads.push(worker::start(shared, Role::Scanner, number)?);
        threads.push(worker::start(shared, Role::Router, number)?);
    }
    Ok(threads)
}

fn start_clock(shared: &Arc<Shared>) -> anyhow::Result<JoinHandle<()>> {
    let shared = Arc::clone(shared);
    let config = settings::producer(&Config {
        guarantee: Guarantee::AtLeastOnce,
        ..shared.config.clone()
    });
    let probe = move || {
        let first = Once::new();
        let answered = |skew| {
            shared.metrics.skew(skew);
            first.call_once(|| shared.put_in_force(LevelTable::clone(&shared.table())));
        };
        clock::probe(
            &config,
            &shared.config.clock(),
            &shared.clock,
            &shared.stop,
            answered,
        );
    };
    Ok(std::thread::Builder::new()
        .name("clock".to_owned())
        .spawn(probe)?)
}

fn start_housekeeping(
    shared: &Arc<Shared>,
    topics: &Arc<Topics>,
) -> anyhow::Result<JoinHandle<()>> {
    let (shared, topics) = (Arc::clone(shared), Arc::clone(topics));
    let runtime = tokio::runtime::Handle::current();
    let work = move || housekeeping::run(&shared, &topics, &runtime);
    Ok(std::thread::Builder::new()
        .name("housekeeping".to_owned())
        .spawn(work)?)
}

/// Waits until every thread is done, or the grace is over.
pub async fn finish(shared: &Shared, threads: Vec<JoinHandle<()>>) -> anyhow::Result<()> {
    info!("stopping");
    let deadline = Instant::now() + GRACE;
    while threads.iter().any(|t| !t.is_finished()) && Instant::now() < deadline {
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    let late: Vec<_> = threads
        .iter()
        .filter(|t| !t.is_finished())
        .filter_map(|t| t.thread().name())
        .collect();
    if !late.is_empty() {
        warn!(
            threads = late.join(", "),
            "not finished in time, leaving all the same: nothing is lost"
        );
    }
    match shared.fatal.get() {
        Some(why) => Err(Failure::Configuration(why.clone()).into()),
        None => Ok(()),
    }
}

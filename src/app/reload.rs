//! A new level table without a restart: read at SIGHUP, put in force once its queues are scanned.
//! Called by `app`; a table that cannot be read changes nothing.

use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Context as _, bail};
use tokio::signal::unix::{Signal, SignalKind, signal};
use tracing::{error, info, warn};

use crate::config::{Config, load_levels};
use crate::core::level::LevelTable;
use crate::flow::worker::Shared;
use crate::kafka::topics::{self, Topics};

/// Listens for SIGHUP from now on: before that it would end the process.
pub(super) fn hangups() -> anyhow::Result<Signal> {
    signal(SignalKind::hangup()).context("cannot listen for SIGHUP")
}

/// Reads the level table anew at each SIGHUP, until the service is told to stop.
pub(super) async fn until_stopped(
    shared: &Arc<Shared>,
    topics: &Topics,
    mut hangup: Signal,
) -> anyhow::Result<()> {
    loop {
        tokio::select! {
            () = shared.stop.stopped() => return Ok(()),
            _ = hangup.recv() => match reload(shared, topics).await {
                Ok(()) => info!(levels = shared.table().count(), "level table reloaded"),
                Err(error) => error!(error = format!("{error:#}"), "level table not reloaded, the old one stays in force"),
            },
        }
    }
}

async fn reload(shared: &Shared, topics: &Topics) -> anyhow::Result<()> {
    let path = shared
        .config
        .levels_path
        .as_deref()
        .context("the level table was not read from a file: start with --levels FILE")?;
    let table = load_levels(path)?;
    table
        .warnings()
        .iter()
        .for_each(|warning| warn!("{warning}"));
    let grown = Config {
        levels: table.clone(),
        ..shared.config.clone()
    };
    let schedule = grown.topics.schedule.clone();
    let settings = topics.settings(std::slice::from_ref(&schedule)).await?;
    let dangers = settings.get(&schedule).map(|s| topics::dangers(&grown, s));
    if let Some(danger) = dangers.unwrap_or_default().into_iter().next() {
        bail!("{danger}");
    }
    topics.ensure(&[topics::schedule(&grown)], false).await?;
    shared.queues.note_reload();
    wait_for_new_queues(shared, &table).await;
    shared.metrics.levels_hash(table.hash());
    shared.put_in_force(table);
    Ok(())
}

/// New queues are scanned before anything is put into them. Another process may own them, so this
/// does not wait for ever.
async fn wait_for_new_queues(shared: &Shared, table: &LevelTable) {
    let grows = table.count() > shared.table().count();
    let deadline = Instant::now() + Duration::from_secs(10);
    while grows && Instant::now() < deadline {
        let scanned = shared
            .queues
            .standings()
            .keys()
            .any(|p| p.partition == table.last().partition());
        if scanned {
            return;
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}

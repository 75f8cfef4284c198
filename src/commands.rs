//! The commands that report and end: `check`, `topics create`, `levels`. Called by `main`;
//! they print to stdout, for people or as JSON, and change nothing but what they are named for.

use std::fmt::Write as _;
use std::time::Duration;

use serde::Serialize;

use crate::cli::Format;
use crate::config::Config;
use crate::core::level::LevelTable;
use crate::kafka::topics::{self, Report, State, Topics};

/// How long `check` waits for Kafka: it may well be run without one.
const CHECK_WAIT: Duration = Duration::from_secs(5);

/// One row of the level table.
#[derive(Debug, Serialize)]
struct LevelRow {
    level: u32,
    delay: String,
    delay_ms: u64,
    partition: i32,
}

/// What `check` found.
#[derive(Debug, Serialize)]
struct Checked {
    levels: Vec<LevelRow>,
    warnings: Vec<String>,
    /// `None`: Kafka did not answer.
    topics: Option<Vec<Report>>,
    errors: Vec<String>,
}

/// Prints the level table.
pub fn levels(config: &Config, format: Format) -> anyhow::Result<String> {
    let rows = level_rows(&config.levels);
    match format {
        Format::Json => Ok(serde_json::to_string_pretty(&rows)? + "\n"),
        Format::Text => Ok(level_text(&rows)),
    }
}

/// Creates the topics, and says what it did.
pub async fn create_topics(config: &Config, format: Format) -> anyhow::Result<String> {
    let reports = Topics::new(config)?
        .ensure(&topics::needed(config), true)
        .await?;
    match format {
        Format::Json => Ok(serde_json::to_string_pretty(&reports)? + "\n"),
        Format::Text => Ok(report_text(&reports)),
    }
}

/// Checks the configuration and, if Kafka answers, the topics. The second value says whether all is well.
pub async fn check(config: &Config, format: Format) -> anyhow::Result<(String, bool)> {
    let mut checked = Checked {
        levels: level_rows(&config.levels),
        warnings: config.warnings.clone(),
        topics: None,
        errors: Vec::new(),
    };
    check_topics(config, &mut checked).await?;
    let well = checked.errors.is_empty();
    match format {
        Format::Json => Ok((serde_json::to_string_pretty(&checked)? + "\n", well)),
        Format::Text => Ok((checked_text(&checked), well)),
    }
}

async fn check_topics(config: &Config, checked: &mut Checked) -> anyhow::Result<()> {
    let topics = Topics::new(config)?;
    if let Err(error) = topics.partitions(CHECK_WAIT) {
        let servers = config
            .kafka
            .common
            .get("bootstrap.servers")
            .map_or("", String::as_str);
        checked.warnings.push(format!(
            "Kafka at {servers} did not answer, so no topic was checked: {error:#}"
        ));
        return Ok(());
    }
    let needed = topics::needed(config);
    let reports = topics.find(&needed)?;
    for (need, report) in needed.iter().zip(&reports) {
        if report.state == State::Missing {
            checked.errors.push(format!(
                "topic {} does not exist: run `delayd topics create`",
                need.name
            ));
        } else if need.grows && report.partitions < need.partitions {
            let note = format!(
                "topic {} has {} partitions for {} levels: `delayd run` will add the rest",
                need.name, report.partitions, need.partitions
            );
            checked.warnings.push(note);
        }
    }
    let schedule = &config.topics.schedule;
    if reports
        .iter()
        .any(|r| r.topic == *schedule && r.state == State::Exists)
    {
        match topics.settings(std::slice::from_ref(schedule)).await {
            Ok(settings) => checked.errors.extend(
                settings
                    .get(schedule)
                    .map(|s| topics::dangers(config, s))
                    .unwrap_or_default(),
            ),
            Err(error) => checked.warnings.push(format!("{error:#}")),
        }
    }
    checked.topics = Some(reports);
    Ok(())
}

fn level_rows(table: &LevelTable) -> Vec<LevelRow> {
    let row = |(level, delay): (crate::core::level::Level, Duration)| LevelRow {
        level: level.number(),
        delay: humantime::format_duration(delay).to_string(),
        delay_ms: u64::try_from(delay.as_millis()).unwrap_or(u64::MAX),
        partition: level.partition(),
    };
    table.iter().map(row).collect()
}

fn level_text(rows: &[LevelRow]) -> String {
    let mut text = format!("{:>5}  {:>10}  {:>9}\n", "level", "delay", "partition");
    for row in rows {
        let _ = writeln!(
            text,
            "{:>5}  {:>10}  {:>9}",
            row.level, row.delay, row.partition
        );
    }
    text
}

fn report_text(reports: &[Report]) -> String {
    let mut text = String::new();
    for report in reports {
        let did = match report.state {
            State::Created => "created".to_owned(),
            State::Grown { from } => format!("grown from {from} partitions"),
            State::Exists => "exists".to_owned(),
            State::Missing => "missing".to_owned(),
        };
        let _ = writeln!(
            text,
            "{:<32} {:>4} partitions  {did}",
            report.topic, report.partitions
        );
    }
    text
}

fn checked_text(checked: &Checked) -> String {
    let mut text = level_text(&checked.levels);
    if let Some(reports) = &checked.topics {
        let _ = write!(text, "\n{}", report_text(reports));
    }
    for warning in &checked.warnings {
        let _ = write!(text, "\nwarning: {warning}");
    }
    for error in &checked.errors {
        let _ = write!(text, "\nerror: {error}");
    }
    text + if checked.errors.is_empty() {
        "\nall is well\n"
    } else {
        "\n"
    }
}

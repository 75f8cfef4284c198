//! The command line: what a user can type, with its help.
//! Called by `main`; must not read files or variables, which `config` does with the flags from here.

use std::ffi::OsString;
use std::io::Write;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use clap::builder::PossibleValuesParser;
use clap::{Args, CommandFactory, Parser, Subcommand, ValueEnum};
use clap_complete::Shell;

use crate::config::CommonFlags;

/// Exit code of bad usage (EX_USAGE of sysexits); clap's own would be 2.
const USAGE: u8 = 64;

/// RocketMQ's delay levels for Apache Kafka: one header, and the message arrives later.
#[derive(Debug, Parser)]
#[command(name = "delayd", version, max_term_width = 100, after_help = AFTER_HELP)]
pub struct Cli {
    /// What to do.
    #[command(subcommand)]
    pub command: Command,
}

const AFTER_HELP: &str = "\
Settings come from delayd.toml, from variables DELAYD_… and from flags; the later ones win.
Exit codes: 0 done, 64 bad usage, 65 bad data, 69 Kafka not reachable, 70 a bug, 78 bad configuration.";

/// What to do.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Delay messages until told to stop
    ///
    /// Reads the ingress topics, holds each message for the delay of its level, and delivers it.
    Run(RunArgs),
    /// Show delayd at work, without any setup
    Demo(DemoArgs),
    /// Check configuration, topics and rights, and preview an edit of the level table
    ///
    /// Changes nothing.
    Check(ReportArgs),
    /// Manage the topics that delayd needs
    Topics {
        /// What to do with them.
        #[command(subcommand)]
        command: TopicsCommand,
    },
    /// Show the level table: which level waits how long
    Levels(ReportArgs),
    /// Print a completion script for your shell
    ///
    /// For example: delayd completions bash > /etc/bash_completion.d/delayd
    Completions {
        /// The shell to complete in
        shell: Shell,
    },
}

/// What to do with topics.
#[derive(Debug, Subcommand)]
pub enum TopicsCommand {
    /// Create those that are missing, with the settings they need
    Create(ReportArgs),
}

/// Which deployment is meant: the flags that most commands share.
#[derive(Debug, Clone, Args)]
pub struct PlaceArgs {
    /// Configuration file [default: delayd.toml here, if there is one] [env: DELAYD_CONFIG]
    #[arg(long, value_name = "FILE")]
    pub config: Option<PathBuf>,
    /// File with the delay of each level [default: levels.toml here, else RocketMQ's 18 levels] [env: DELAYD_LEVELS]
    #[arg(long, value_name = "FILE")]
    pub levels: Option<PathBuf>,
    /// Kafka's address, several divided by commas [default: localhost:9092] [env: DELAYD_BOOTSTRAP_SERVER]
    #[arg(long, value_name = "HOST:PORT")]
    pub bootstrap_server: Option<String>,
    /// What delayd's topics and groups on Kafka begin with [default: delayd] [env: DELAYD_NAME]
    #[arg(long, value_name = "NAME")]
    pub name: Option<String>,
}

/// Flags of `run`.
#[derive(Debug, Clone, Args)]
pub struct RunArgs {
    #[expect(missing_docs, reason = "described by its own flags")]
    #[command(flatten)]
    pub place: PlaceArgs,
    /// Create missing topics at the start [default: missing topics are an error] [env: DELAYD_CREATE_TOPICS]
    #[arg(long)]
    pub create_topics: bool,
    /// Threads that deliver, 1 to 64; they share the levels among them [default: 2] [env: DELAYD_WORKERS]
    #[arg(long, value_name = "N")]
    pub workers: Option<String>,
    /// A name for this process that no other has, so that it resumes its levels within about a second
    /// after a restart [default: none, others take them over] [env: DELAYD_INSTANCE_ID]
    #[arg(long, value_name = "ID")]
    pub instance_id: Option<String>,
    /// With --instance-id: give the levels up when stopped, for good [default: keep them for the restart]
    /// [env: DELAYD_LEAVE]
    #[arg(long)]
    pub leave: bool,
    /// exactly-once: a crash repeats nothing that readers of committed messages see; at-least-once: faster,
    /// a crash repeats what was in flight [default: exactly-once] [env: DELAYD_GUARANTEE]
    #[arg(long, value_name = "GUARANTEE", hide_possible_values = true,
        value_parser = PossibleValuesParser::new(["exactly-once", "at-least-once"]))]
    pub guarantee: Option<String>,
    /// Where to serve probes and metrics (/livez, /readyz, /metrics), or off [default: 127.0.0.1:9464]
    /// [env: DELAYD_HTTP]
    #[arg(long, value_name = "IP:PORT")]
    pub http: Option<String>,
    /// How long to wait for Kafka at the start, with a unit (ms, s, m, h) [default: 5m] [env: DELAYD_WAIT]
    #[arg(long, value_name = "DURATION")]
    pub wait: Option<String>,
}

/// Flags of commands that report something.
#[derive(Debug, Clone, Args)]
pub struct ReportArgs {
    #[expect(missing_docs, reason = "described by its own flags")]
    #[command(flatten)]
    pub place: PlaceArgs,
    /// For people or for programs
    #[arg(long, value_name = "FORMAT", default_value = "text")]
    pub format: Format,
}

/// How to print a report.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Format {
    /// For people.
    Text,
    /// For programs.
    Json,
}

/// Flags of `demo`. It reads no configuration, so that it cannot reach a Kafka nobody meant.
#[derive(Debug, Clone, Args)]
pub struct DemoArgs {
    /// Stop after this long, with a unit (s, m, h) [default: runs until Ctrl-C]
    #[arg(long = "for", value_name = "DURATION", value_parser = positive_duration)]
    pub run_for: Option<Duration>,
    /// Use this Kafka [default: one inside the process, which forgets everything]
    #[arg(long, value_name = "HOST:PORT")]
    pub bootstrap_server: Option<String>,
    /// Messages per second, 1 to 100000
    #[arg(long, value_name = "N", default_value_t = 20, value_parser = clap::value_parser!(u32).range(1..=100_000))]
    pub rate: u32,
}

impl PlaceArgs {
    /// What the configuration wants to know.
    pub fn flags(&self) -> CommonFlags {
        CommonFlags {
            config: self.config.clone(),
            levels: self.levels.clone(),
            bootstrap_server: self.bootstrap_server.clone(),
            name: self.name.clone(),
            ..CommonFlags::default()
        }
    }
}

impl RunArgs {
    /// What the configuration wants to know.
    pub fn flags(&self) -> CommonFlags {
        CommonFlags {
            guarantee: self.guarantee.clone(),
            workers: self.workers.clone(),
            instance_id: self.instance_id.clone(),
            leave: self.leave,
            create_topics: self.create_topics,
            http: self.http.clone(),
            wait: self.wait.clone(),
            ..self.place.flags()
        }
    }
}

fn positive_duration(text: &str) -> Result<Duration, String> {
    match humantime::parse_duration(text) {
        Ok(Duration::ZERO) => Err("it must be longer than zero".to_owned()),
        // Some clocks cannot count much further, and nobody watches for so long.
        Ok(duration) if duration > Duration::from_secs(366 * 24 * 60 * 60) => {
            Err("it must not be longer than a year".to_owned())
        }
        Ok(duration) => Ok(duration),
        Err(error) => Err(format!("{error}; write a number and a unit, such as 20s")),
    }
}

/// Reads this process's command line. Help, version and complaints are printed here.
///
/// # Errors
/// The code to exit with: 0 after help or version, 64 after bad usage.
pub fn parse() -> Result<Cli, ExitCode> {
    parse_from(std::env::args_os()).map_err(|error| {
        // Nobody is left to tell if even this cannot be printed.
        drop(error.print());
        ExitCode::from(exit_code(&error))
    })
}

/// Reads a command line; the first argument is the program's name.
///
/// # Errors
/// clap's, which also stands for help and version.
pub fn parse_from<I, T>(arguments: I) -> Result<Cli, clap::Error>
where
    I: IntoIterator<Item = T>,
    T: Into<OsString> + Clone,
{
    Cli::try_parse_from(arguments)
}

/// 0 for help and version, 64 for bad usage.
pub fn exit_code(error: &clap::Error) -> u8 {
    if error.use_stderr() { USAGE } else { 0 }
}

/// Writes the completion script for `shell`.
pub fn write_completions(shell: Shell, out: &mut impl Write) {
    clap_complete::generate(shell, &mut Cli::command(), "delayd", out);
}

#[cfg(test)]
mod tests;

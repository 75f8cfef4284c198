//! The program: reads the command line and the configuration, runs the command, and turns what
//! came of it into an exit code. Everything else is in the library.

use std::io::Write as _;
use std::process::ExitCode;

use delayd::app::{self, Failure};
use delayd::cli::{self, Command, TopicsCommand};
use delayd::commands;
use delayd::config::{Config, ConfigErrors};
use delayd::demo::{self, Show};
use delayd::ops::telemetry;
use tracing::warn;

/// Exit codes beyond 0 and 64, after sysexits.
const BAD_DATA: u8 = 65;
const UNREACHABLE: u8 = 69;
const BUG: u8 = 70;
const CONFIGURATION: u8 = 78;

fn main() -> ExitCode {
    let cli = match cli::parse() {
        Ok(cli) => cli,
        Err(code) => return code,
    };
    let runtime = match tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()
    {
        Ok(runtime) => runtime,
        Err(error) => return fail(&anyhow::Error::from(error)),
    };
    let code = runtime
        .block_on(run(cli.command))
        .unwrap_or_else(|error| fail(&error));
    // A thread that waits for Kafka must not keep the process.
    runtime.shutdown_background();
    code
}

async fn run(command: Command) -> anyhow::Result<ExitCode> {
    match command {
        Command::Run(args) => {
            telemetry::init();
            let config = Config::load(&args.flags())?;
            config
                .warnings
                .iter()
                .for_each(|warning| warn!("{warning}"));
            app::run(config).await?;
        }
        Command::Demo(args) => {
            telemetry::init_quiet();
            let show = Show {
                lasts: args.run_for,
                bootstrap_server: args.bootstrap_server,
                rate: args.rate,
            };
            demo::run(Config::built_in()?, show).await?;
        }
        Command::Check(args) => {
            let (text, well) =
                commands::check(&Config::load(&args.place.flags())?, args.format).await?;
            print(&text);
            return Ok(if well {
                ExitCode::SUCCESS
            } else {
                ExitCode::from(CONFIGURATION)
            });
        }
        Command::Topics {
            command: TopicsCommand::Create(args),
        } => {
            print(
                &commands::create_topics(&Config::load(&args.place.flags())?, args.format).await?,
            );
        }
        Command::Levels(args) => print(&commands::levels(
            &Config::load(&args.place.flags())?,
            args.format,
        )?),
        Command::Completions { shell } => cli::write_completions(shell, &mut std::io::stdout()),
    }
    Ok(ExitCode::SUCCESS)
}

/// A closed pipe is no failure: the reader has seen enough.
fn print(text: &str) {
    std::io::stdout().write_all(text.as_bytes()).ok();
}

fn fail(error: &anyhow::Error) -> ExitCode {
    writeln!(std::io::stderr(), "delayd: {error:#}").ok();
    if let Some(errors) = error.downcast_ref::<ConfigErrors>() {
        return ExitCode::from(errors.exit_code());
    }
    let code = match error.downcast_ref::<Failure>() {
        Some(Failure::Unreachable { .. }) => UNREACHABLE,
        Some(Failure::Configuration(_)) => CONFIGURATION,
        Some(Failure::Wrong(_)) => BAD_DATA,
        None => BUG,
    };
    ExitCode::from(code)
}

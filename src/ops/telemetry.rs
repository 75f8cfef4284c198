//! Log output: text for a person at a terminal, JSON for everything else, always on stderr.
//! Called once by `main` before anything logs; stdout belongs to the commands' own output.

use std::env;
use std::io::{self, IsTerminal};

use tracing_subscriber::EnvFilter;
use tracing_subscriber::filter::ParseError;

/// librdkafka tells of every broker connection at `info`, which is not news to an operator.
const DEFAULT_FILTER: &str = "info,librdkafka=warn";

/// Ours wins over the name that every Rust program reads.
const VARIABLES: [&str; 2] = ["DELAYD_LOG", "RUST_LOG"];

/// Starts logging. A filter that cannot be read is told and replaced by the default: logs must not stop a start.
pub fn init() {
    let (filter, refused) = match filter(|name| env::var(name).ok()) {
        Ok(filter) => (filter, None),
        Err(refused) => (EnvFilter::new(DEFAULT_FILTER), Some(refused)),
    };
    let builder = tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_writer(io::stderr);
    let started = if io::stderr().is_terminal() {
        builder.with_target(false).try_init()
    } else {
        builder
            .json()
            .flatten_event(true)
            .with_current_span(false)
            .with_span_list(false)
            .try_init()
    };
    if let (
        Ok(()),
        Some(Refused {
            variable,
            text,
            error,
        }),
    ) = (started, refused)
    {
        tracing::warn!(variable, text, %error, "log filter refused; using {DEFAULT_FILTER}");
    }
}

/// For the demo, whose own lines are the news: only what needs attention.
pub fn init_quiet() {
    let filter = filter(|name| env::var(name).ok()).ok();
    let asked = VARIABLES.iter().any(|name| env::var_os(name).is_some());
    let quiet = filter
        .filter(|_| asked)
        .unwrap_or_else(|| EnvFilter::new("warn"));
    tracing_subscriber::fmt()
        .with_env_filter(quiet)
        .with_writer(io::stderr)
        .with_target(false)
        .with_ansi(io::stderr().is_terminal())
        .try_init()
        .ok();
}

#[derive(Debug)]
struct Refused {
    variable: &'static str,
    text: String,
    error: ParseError,
}

fn filter(read: impl Fn(&str) -> Option<String>) -> Result<EnvFilter, Refused> {
    let found = VARIABLES.into_iter().find_map(|variable| {
        read(variable)
            .filter(|text| !text.trim().is_empty())
            .map(|text| (variable, text))
    });
    let Some((variable, text)) = found else {
        return Ok(EnvFilter::new(DEFAULT_FILTER));
    };
    EnvFilter::try_new(&text).map_err(|error| Refused {
        variable,
        text,
        error,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn chosen(variables: &[(&str, &str)]) -> Result<String, String> {
        let read = |name: &str| {
            variables
                .iter()
                .find(|(n, _)| *n == name)
                .map(|(_, v)| (*v).to_owned())
        };
        filter(read)
            .map(|f| f.to_string())
            .map_err(|refused| refused.variable.to_owned())
    }

    #[test]
    fn default_filter_keeps_librdkafka_quiet() {
        let filter = chosen(&[]).unwrap();
        assert!(
            filter.contains("librdkafka=warn") && filter.contains("info"),
            "{filter}"
        );
        assert_eq!(
            chosen(&[("DELAYD_LOG", " ")]).unwrap(),
            filter,
            "an empty variable is no variable"
        );
    }

    #[test]
    fn our_variable_wins_over_rust_log() {
        assert_eq!(
            chosen(&[("RUST_LOG", "error"), ("DELAYD_LOG", "debug")]).unwrap(),
            "debug"
        );
        assert_eq!(chosen(&[("RUST_LOG", "error")]).unwrap(), "error");
    }

    #[test]
    fn unreadable_filter_names_its_variable() {
        assert_eq!(
            chosen(&[("RUST_LOG", "delayd=loud=er")]),
            Err("RUST_LOG".to_owned())
        );
    }

    #[test]
    fn second_start_does_not_panic() {
        init();
        init();
    }
}

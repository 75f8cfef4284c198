//! What is wrong with a configuration, where it was written, and what to do about it.
//! Filled by every part of `config`, shown by `main`; must never hold the value of a secret.

use std::fmt;
use std::path::PathBuf;

/// Where a setting was written. Ordered as problems are shown: files, variables, flags.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum Origin {
    /// A place in a file; line and column count from 1, the column in characters.
    At {
        /// The file as it was named.
        path: PathBuf,
        /// The line, from 1.
        line: usize,
        /// The column, from 1.
        column: usize,
    },
    /// A file as a whole.
    File(PathBuf),
    /// A variable of the environment.
    Variable(String),
    /// A flag of the command line.
    Flag(&'static str),
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Origin::At { path, line, column } => write!(f, "{}:{line}:{column}", path.display()),
            Origin::File(path) => write!(f, "{}", path.display()),
            Origin::Variable(name) => f.write_str(name),
            Origin::Flag(flag) => f.write_str(flag),
        }
    }
}

/// One thing to correct.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Problem {
    /// Where it was written.
    pub origin: Origin,
    /// What is wrong.
    pub what: String,
    /// What to do next.
    pub next: String,
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}; {}", self.origin, self.what, self.next)
    }
}

/// Everything that is wrong with a configuration. Never empty.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ConfigErrors {
    problems: Vec<Problem>,
}

impl ConfigErrors {
    /// The problems in the order in which they are shown.
    pub fn problems(&self) -> &[Problem] {
        &self.problems
    }

    /// 64 (bad usage) if only flags are wrong, else 78 (bad configuration).
    pub fn exit_code(&self) -> u8 {
        let only_flags = self
            .problems
            .iter()
            .all(|p| matches!(p.origin, Origin::Flag(_)));
        if only_flags { 64 } else { 78 }
    }
}

impl fmt::Display for ConfigErrors {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (i, problem) in self.problems.iter().enumerate() {
            let end = if i == 0 { "" } else { "\n" };
            write!(f, "{end}{problem}")?;
        }
        Ok(())
    }
}

impl std::error::Error for ConfigErrors {}

/// What a value's parser has to say; the place is added by who knows it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Fault {
    pub(super) what: String,
    pub(super) next: String,
}

/// Shorthand for a [`Fault`].
pub(super) fn fault(what: impl Into<String>, next: impl Into<String>) -> Fault {
    Fault {
        what: what.into(),
        next: next.into(),
    }
}

/// Problems as they are found: nobody stops at the first.
#[derive(Debug, Default)]
pub(super) struct Problems(Vec<Problem>);

impl Problems {
    pub(super) fn add(&mut self, origin: Origin, what: impl Into<String>, next: impl Into<String>) {
        self.0.push(Problem {
            origin,
            what: what.into(),
            next: next.into(),
        });
    }

    /// The fault of the value of `key`.
    pub(super) fn add_fault(&mut self, origin: Origin, key: &str, fault: Fault) {
        self.add(origin, format!("{key}: {}", fault.what), fault.next);
    }

    /// `value`, unless something was wrong.
    pub(super) fn or<T>(mut self, value: T) -> Result<T, ConfigErrors> {
        if self.0.is_empty() {
            return Ok(value);
        }
        self.0.sort();
        self.0.dedup();
        Err(ConfigErrors { problems: self.0 })
    }
}

/// `did you mean "name"?`, or else `otherwise`.
pub(super) fn suggest<'a>(
    word: &str,
    known: impl IntoIterator<Item = &'a str>,
    otherwise: impl FnOnce() -> String,
) -> String {
    // One slip in a short word, about one in four characters of a longer one.
    let allowed = (word.chars().count() / 4).max(1) + 1;
    let nearest = known
        .into_iter()
        .map(|candidate| (strsim::damerau_levenshtein(word, candidate), candidate))
        .filter(|(distance, candidate)| *distance <= allowed && *distance < candidate.len())
        .min_by_key(|(distance, _)| *distance);
    match nearest {
        Some((_, candidate)) => format!("did you mean {candidate:?}?"),
        None => otherwise(),
    }
}

#[cfg(test)]
mod tests;

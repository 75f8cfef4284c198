//! Why a record is refused, and what of it stands in the dead-letter topic.
//! Made by `route` and `fate`; the codes are public: they stand in headers, metrics and documents.

use std::borrow::Cow;

use super::envelope::{OutHeader, untouched};
use super::record::{ERROR, ERROR_DETAIL, Record, SOURCE, Source};

/// Why and from where a record goes to the dead-letter topic.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Obituary {
    /// The reason's code.
    pub reason: Reason,
    /// The reason in words, for a person.
    pub detail: String,
    /// How much of the record still fits.
    pub trim: Trim,
}

/// How much of a dead letter is left out, because it was itself too large.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Trim {
    /// Nothing.
    Nothing,
    /// The detail.
    Detail,
    /// Everything but reason and source: a pointer.
    ToPointer,
}

/// The reasons of dead letters: the value of `delayd-error`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[allow(missing_docs)]
pub enum Reason {
    BadLevel,
    BadHeaderKey,
    NoTarget,
    BadTarget,
    TargetIsIngress,
    TargetIsInternal,
    BadPartition,
    NoSuchPartition,
    TooLarge,
    BadRecord,
    TargetUnavailable,
}

impl Reason {
    /// Every reason.
    pub const ALL: [Reason; 11] = [
        Reason::BadLevel,
        Reason::BadHeaderKey,
        Reason::NoTarget,
        Reason::BadTarget,
        Reason::TargetIsIngress,
        Reason::TargetIsInternal,
        Reason::BadPartition,
        Reason::NoSuchPartition,
        Reason::TooLarge,
        Reason::BadRecord,
        Reason::TargetUnavailable,
    ];

    /// The code as it stands in headers, metrics and documents.
    pub fn code(self) -> &'static str {
        match self {
            Reason::BadLevel => "bad_level",
            Reason::BadHeaderKey => "bad_header_key",
            Reason::NoTarget => "no_target",
            Reason::BadTarget => "bad_target",
            Reason::TargetIsIngress => "target_is_ingress",
            Reason::TargetIsInternal => "target_is_internal",
            Reason::BadPartition => "bad_partition",
            Reason::NoSuchPartition => "no_such_partition",
            Reason::TooLarge => "too_large",
            Reason::BadRecord => "bad_record",
            Reason::TargetUnavailable => "target_unavailable",
        }
    }
}

impl Obituary {
    /// A dead letter with all of its record.
    pub fn new(reason: Reason, detail: impl Into<String>) -> Obituary {
        Obituary {
            reason,
            detail: detail.into(),
            trim: Trim::Nothing,
        }
    }

    /// The headers of the dead letter: those of the record as they came, and ours.
    pub fn headers<'a>(&'a self, record: &'a Record, source: &Source) -> Vec<OutHeader<'a>> {
        let ours = [ERROR, ERROR_DETAIL, SOURCE];
        let mut headers = match self.trim {
            Trim::ToPointer => Vec::new(),
            Trim::Nothing | Trim::Detail => untouched(record, |key| {
                !ours.iter().any(|name| key == name.as_bytes())
            }),
        };
        headers.push((
            ERROR.as_bytes(),
            Some(Cow::Borrowed(self.reason.code().as_bytes())),
        ));
        if self.trim == Trim::Nothing {
            headers.push((
                ERROR_DETAIL.as_bytes(),
                Some(Cow::Borrowed(self.detail.as_bytes())),
            ));
        }
        headers.push((
            SOURCE.as_bytes(),
            Some(Cow::Owned(source.to_string().into_bytes())),
        ));
        headers
    }
}

#[cfg(test)]
mod tests;

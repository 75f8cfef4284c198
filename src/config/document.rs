//! A TOML file with the place of everything in it.
//! Called by `file` and `levels`; must not know which keys exist, nor quote the file in errors.

use std::ops::Range;
use std::path::{Path, PathBuf};

use toml::Spanned;
use toml::de::{DeTable, DeValue};

use super::errors::{Origin, Problems};

/// A file's text and the name under which errors show it.
pub(super) struct Document {
    path: PathBuf,
    text: String,
}

impl Document {
    /// Reads a file; the error is the operating system's reason.
    pub(super) fn read(path: &Path) -> std::io::Result<Document> {
        let text = std::fs::read_to_string(path)?;
        Ok(Document {
            path: path.to_owned(),
            text,
        })
    }

    /// The file's tables; `None` if it is not TOML, which is then among the problems.
    pub(super) fn parse(&self, problems: &mut Problems) -> Option<DeTable<'_>> {
        let (table, errors) = DeTable::parse_recoverable(&self.text);
        // What was recovered from a broken file invites false complaints: syntax comes first.
        // Of one line only the first error is meant, the others follow from it.
        let mut last_line = None;
        for error in &errors {
            let origin = self.origin(&error.span().unwrap_or(0..0));
            let line =
                matches!(origin, Origin::At { line, .. } if last_line.replace(line) == Some(line));
            if !line {
                // `message` alone: the full text would quote the line, with whatever is in it.
                let what = format!("not TOML: {}", error.message().replace('\n', " "));
                problems.add(origin, what, "correct this line");
            }
        }
        errors.is_empty().then(|| table.into_inner())
    }

    /// Where a span begins.
    pub(super) fn origin(&self, span: &Range<usize>) -> Origin {
        let before = self.text.get(..span.start).unwrap_or(&self.text);
        let line_start = before.rfind('\n').map_or(0, |newline| newline + 1);
        Origin::At {
            path: self.path.clone(),
            line: before.matches('\n').count() + 1,
            column: before[line_start..].chars().count() + 1,
        }
    }

    /// Where byte `at` of a string value stands; the value itself where escapes move its bytes.
    pub(super) fn origin_inside(&self, span: &Range<usize>, at: usize) -> Origin {
        let raw = self.text.get(span.clone()).unwrap_or_default();
        let literal = raw.starts_with('\'');
        let quotes = if raw.starts_with("\"\"\"") || raw.starts_with("'''") {
            3
        } else {
            1
        };
        let newline = match raw.get(quotes..) {
            Some(body) if quotes == 3 && body.starts_with("\r\n") => 2,
            Some(body) if quotes == 3 && body.starts_with('\n') => 1,
            _ => 0,
        };
        let moved = !literal && raw.contains('\\');
        let start = if moved {
            span.start
        } else {
            span.start + quotes + newline + at
        };
        self.origin(&(start..start))
    }
}

/// A number, text or truth value as text; `None` for anything else.
pub(super) fn scalar(value: &DeValue<'_>) -> Option<String> {
    match value {
        DeValue::String(text) => Some(text.to_string()),
        DeValue::Boolean(truth) => Some(truth.to_string()),
        DeValue::Float(float) => Some(float.as_str().to_owned()),
        DeValue::Integer(integer) => {
            let number = i64::from_str_radix(integer.as_str(), integer.radix()).ok()?;
            Some(number.to_string())
        }
        DeValue::Datetime(_) | DeValue::Array(_) | DeValue::Table(_) => None,
    }
}

/// What a value is, in words.
pub(super) fn kind(value: &Spanned<DeValue<'_>>) -> &'static str {
    match value.get_ref() {
        DeValue::String(_) => "text",
        DeValue::Integer(_) => "a whole number",
        DeValue::Float(_) => "a fraction",
        DeValue::Boolean(_) => "true or false",
        DeValue::Datetime(_) => "a date",
        DeValue::Array(_) => "a list",
        DeValue::Table(_) => "a table",
    }
}

#[cfg(test)]
mod tests;

//! levels.toml: the level table, or where exactly it is wrong.
//! Called by `Config::load` and again on SIGHUP; what a delay is, is `core::level`'s business.

use std::path::Path;

use toml::Spanned;
use toml::de::{DeTable, DeValue};

use super::document::{self, Document};
use super::errors::{ConfigErrors, Origin, Problems, suggest};
use crate::core::level::{LevelError, LevelTable};

const LIST: &str = "levels";
const TEXT: &str = "messageDelayLevel";
const NEXT: &str = "write a number and a unit, such as 500ms, 10s, 5m, 2h or 1d";
/// RocketMQ's own text is stricter than the list.
const NEXT_TEXT: &str =
    "write it as RocketMQ does, \"1s 5m 2h 1d\", or use levels = [\"500ms\", \"1s\"]";

/// Reads a level table.
///
/// # Errors
/// Everything that is wrong with it.
pub fn load_levels(path: &Path) -> Result<LevelTable, ConfigErrors> {
    let mut problems = Problems::default();
    let table = match Document::read(path) {
        Ok(document) => read(&document, &mut problems),
        Err(error) => {
            let origin = Origin::File(path.to_owned());
            problems.add(
                origin,
                format!("cannot be read: {error}"),
                "check the path and its permissions",
            );
            None
        }
    };
    // Without a table there is a problem, and then the stand-in goes nowhere.
    problems.or(table.unwrap_or_else(rocketmq))
}

/// RocketMQ's own 18 levels.
pub(super) fn rocketmq() -> LevelTable {
    LevelTable::from_rocketmq(crate::core::level::ROCKETMQ_DEFAULT)
        .expect("RocketMQ's own table is valid")
}

/// The table that `document` holds.
pub(super) fn read(document: &Document, problems: &mut Problems) -> Option<LevelTable> {
    let table = document.parse(problems)?;
    refuse_unknown(document, &table, problems);
    let start = || document.origin(&(0..0));
    match (table.get(LIST), table.get(TEXT)) {
        (Some(list), None) => from_list(document, list, problems),
        (None, Some(text)) => from_text(document, text, problems),
        (Some(_), Some(text)) => {
            let what = format!("both {LIST} and {TEXT} are set");
            problems.add(document.origin(&text.span()), what, "keep one of them");
            None
        }
        (None, None) => {
            let next = format!("write {LIST} = [\"1s\", \"5s\"] or {TEXT} = \"1s 5s\"");
            problems.add(start(), "there is no level table", next);
            None
        }
    }
}

fn refuse_unknown(document: &Document, table: &DeTable<'_>, problems: &mut Problems) {
    for name in table
        .keys()
        .filter(|name| ![LIST, TEXT].contains(&name.get_ref().as_ref()))
    {
        let next = suggest(name.get_ref(), [LIST, TEXT], || {
            format!("known here: {LIST}, {TEXT}")
        });
        problems.add(
            document.origin(&name.span()),
            format!("unknown key {:?}", name.get_ref()),
            next,
        );
    }
}

fn from_list(
    document: &Document,
    list: &Spanned<DeValue<'_>>,
    problems: &mut Problems,
) -> Option<LevelTable> {
    let origin = |index: usize| match list.get_ref().as_array().and_then(|array| array.get(index)) {
        Some(entry) => document.origin(&entry.span()),
        None => document.origin(&list.span()),
    };
    let Some(array) = list.get_ref().as_array() else {
        let what = format!("{LIST} is {}", document::kind(list));
        problems.add(
            origin(0),
            what,
            format!("write a list such as [\"1s\", \"5s\"], or {TEXT} = \"1s 5s\""),
        );
        return None;
    };
    // An entry that is no text takes its place in the count, so that later ones keep their number.
    let entries: Vec<_> = array
        .iter()
        .map(|entry| entry.get_ref().as_str().unwrap_or_default())
        .collect();
    let is_text = |index: usize| {
        array
            .get(index)
            .is_none_or(|entry| entry.get_ref().is_str())
    };
    for (index, entry) in array
        .iter()
        .enumerate()
        .filter(|(index, _)| !is_text(*index))
    {
        let what = format!("level {} is {}", index + 1, document::kind(entry));
        problems.add(
            origin(index),
            what,
            "write it in quotes, with its unit: \"10s\"",
        );
    }
    LevelTable::from_list(&entries)
        .map_err(|errors| {
            for error in errors
                .iter()
                .filter(|error| error.level == 0 || is_text(error.level - 1))
            {
                problems.add(origin(error.level.wrapping_sub(1)), say(error), NEXT);
            }
        })
        .ok()
}

fn from_text(
    document: &Document,
    text: &Spanned<DeValue<'_>>,
    problems: &mut Problems,
) -> Option<LevelTable> {
    let Some(levels) = text.get_ref().as_str() else {
        let what = format!("{TEXT} is {}", document::kind(text));
        problems.add(
            document.origin(&text.span()),
            what,
            format!("write text such as \"1s 5s\", or {LIST} = [\"1s\", \"5s\"]"),
        );
        return None;
    };
    LevelTable::from_rocketmq(levels)
        .map_err(|errors| {
            for error in &errors {
                problems.add(
                    document.origin_inside(&text.span(), error.at),
                    say(error),
                    NEXT_TEXT,
                );
            }
        })
        .ok()
}

fn say(error: &LevelError) -> String {
    match error.level {
        0 => error.reason.to_owned(),
        _ => error.to_string(),
    }
}

#[cfg(test)]
mod tests;

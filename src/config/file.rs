//! Reads delayd.toml into the lowest layer: unknown keys, wrong kinds and repeated keys are found here.
//! Called by `Config::load`; must not judge values, which a variable or a flag may still replace.

use std::ops::Range;

use toml::Spanned;
use toml::de::{DeTable, DeValue};

use super::document::{self, Document};
use super::errors::{Origin, Problems, suggest};
use super::kafka;
use super::keys::{self, Layers, RouteText, Setting};

/// Everything that `document` says.
pub(super) fn read(document: &Document, layers: &mut Layers, problems: &mut Problems) {
    if let Some(table) = document.parse(problems) {
        Walk {
            document,
            layers,
            problems,
        }
        .table("", &table);
    }
}

struct Walk<'a> {
    document: &'a Document,
    layers: &'a mut Layers,
    problems: &'a mut Problems,
}

impl Walk<'_> {
    fn table(&mut self, prefix: &str, table: &DeTable<'_>) {
        for (name, value) in table {
            let path = join(prefix, name.get_ref());
            if path == "kafka" {
                self.kafka(value);
            } else if path == "route" {
                self.routes(value);
            } else if let Some(key) = keys::find(&path) {
                self.value(key, value);
            } else if !keys::children(&path).is_empty() {
                if let Some(table) = self.expect_table(&path, value) {
                    self.table(&path, table);
                }
            } else {
                self.unknown(prefix, name, &keys::children(prefix));
            }
        }
    }

    fn value(&mut self, key: &'static keys::Key, value: &Spanned<DeValue<'_>>) {
        let Some(setting) = self.setting(key.path, key.kind, value) else {
            return;
        };
        let origin = setting.origin.clone();
        if self.layers.values.insert(key.path, setting).is_some() {
            self.twice(key.path, origin);
        }
    }

    /// The value if it is of the right kind.
    fn setting(
        &mut self,
        path: &str,
        kind: keys::Kind,
        value: &Spanned<DeValue<'_>>,
    ) -> Option<Setting> {
        let right = match kind {
            keys::Kind::Text => value.get_ref().is_str(),
            keys::Kind::Integer => value.get_ref().is_integer(),
            keys::Kind::Boolean => value.get_ref().is_bool(),
        };
        let origin = self.origin(value.span());
        match document::scalar(value.get_ref()).filter(|_| right) {
            Some(value) => Some(Setting { value, origin }),
            None => {
                let what = format!("{path} is {}", document::kind(value));
                self.problems
                    .add(origin, what, format!("write {}", kind.expected()));
                None
            }
        }
    }

    fn kafka(&mut self, value: &Spanned<DeValue<'_>>) {
        if let Some(table) = self.expect_table("kafka", value) {
            self.flatten("", table);
        }
    }

    /// `bootstrap.servers` is a table in a table to TOML and one key to librdkafka.
    fn flatten(&mut self, prefix: &str, table: &DeTable<'_>) {
        for (name, value) in table {
            let path = join(prefix, name.get_ref());
            if let Some(table) = value.get_ref().as_table() {
                self.flatten(&path, table);
            } else {
                self.kafka_value(&path, value);
            }
        }
    }

    fn kafka_value(&mut self, path: &str, value: &Spanned<DeValue<'_>>) {
        let origin = self.origin(value.span());
        let Some(text) = document::scalar(value.get_ref()) else {
            let what = format!("kafka.{path} is {}", document::kind(value));
            return self
                .problems
                .add(origin, what, "write text, a number, true or false");
        };
        let setting = Setting {
            value: text,
            origin: origin.clone(),
        };
        if self
            .layers
            .kafka
            .insert(kafka::split(path), setting)
            .is_some()
        {
            self.twice(&format!("kafka.{path}"), origin);
        }
    }

    fn routes(&mut self, value: &Spanned<DeValue<'_>>) {
        let Some(routes) = value.get_ref().as_array() else {
            let what = format!("route is {}", document::kind(value));
            return self.problems.add(
                self.document.origin(&value.span()),
                what,
                "write each route under its own [[route]], with two brackets",
            );
        };
        for route in routes.iter() {
            if let Some(table) = self.expect_table("route", route) {
                self.route(self.document.origin(&route.span()), table);
            }
        }
    }

    fn route(&mut self, origin: Origin, table: &DeTable<'_>) {
        let mut route = RouteText {
            origin,
            from: None,
            to: None,
            level: None,
            partition: None,
        };
        for (name, value) in table {
            let (slot, kind) = match name.get_ref().as_ref() {
                "from" => (&mut route.from, keys::Kind::Text),
                "to" => (&mut route.to, keys::Kind::Text),
                "level" => (&mut route.level, keys::Kind::Integer),
                "partition" => (&mut route.partition, keys::Kind::Text),
                _ => {
                    self.unknown("route", name, &["from", "to", "level", "partition"]);
                    continue;
                }
            };
            *slot = self.setting(name.get_ref(), kind, value);
        }
        let written = table.keys().any(|name| name.get_ref() == "from");
        if !written {
            let what = "a route without \"from\"";
            self.problems
                .add(route.origin, what, "add from = \"the-topic-to-read\"");
        } else if route.from.is_some() {
            self.layers.routes.push(route);
        }
    }

    fn expect_table<'t, 'i>(
        &mut self,
        path: &str,
        value: &'t Spanned<DeValue<'i>>,
    ) -> Option<&'t DeTable<'i>> {
        let table = value.get_ref().as_table();
        if table.is_none() {
            let what = format!("{path} is {}", document::kind(value));
            self.problems.add(
                self.origin(value.span()),
                what,
                format!("write a table: [{path}]"),
            );
        }
        table
    }

    fn unknown(&mut self, prefix: &str, name: &Spanned<std::borrow::Cow<'_, str>>, known: &[&str]) {
        let word = name.get_ref();
        let place = if prefix.is_empty() {
            String::new()
        } else {
            format!(" in [{prefix}]")
        };
        let next = match (prefix, word.as_ref()) {
            ("", "levels" | "messageDelayLevel") => {
                "levels have a file of their own, levels.toml (--levels)".to_owned()
            }
            ("", "bootstrap_server" | "bootstrap_servers" | "bootstrap") => {
                "write bootstrap.servers under [kafka]".to_owned()
            }
            _ => suggest(word, known.iter().copied(), || {
                format!("known here: {}", known.join(", "))
            }),
        };
        self.problems.add(
            self.origin(name.span()),
            format!("unknown key {word:?}{place}"),
            next,
        );
    }

    fn twice(&mut self, path: &str, origin: Origin) {
        self.problems.add(
            origin,
            format!("{path} is set twice, under two spellings"),
            "keep one of them",
        );
    }

    fn origin(&self, span: Range<usize>) -> Origin {
        self.document.origin(&span)
    }
}

fn join(prefix: &str, name: &str) -> String {
    if prefix.is_empty() {
        name.to_owned()
    } else {
        format!("{prefix}.{name}")
    }
}

#[cfg(test)]
mod tests;

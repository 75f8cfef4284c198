//! Reads the sources and holds the rules of the layout: who may know whom, how long, what never.
//! Called by cargo test. It must not need Kafka.

use std::fs;
use std::path::{Path, PathBuf};

/// A source file of the crate without its comments and unit tests.
struct Source {
    /// Relative to `src/`, with `/`.
    name: String,
    text: String,
    code: String,
}

impl Source {
    fn read(root: &Path, path: &Path) -> Source {
        let text = fs::read_to_string(path).unwrap();
        let name = path
            .strip_prefix(root)
            .unwrap()
            .to_string_lossy()
            .replace('\\', "/");
        let is_code = |line: &&str| !line.trim_start().starts_with("//");
        let own = text.split("#[cfg(test)]\nmod ").next().unwrap_or_default();
        let code: Vec<_> = own.lines().filter(is_code).collect();
        Source {
            code: code.join("\n"),
            name,
            text,
        }
    }

    fn is_test(&self) -> bool {
        self.name.ends_with("/tests.rs") || self.name.contains("/tests/")
    }

    fn layer(&self) -> &str {
        self.name.split(['/', '.']).next().unwrap_or_default()
    }
}

fn files(dir: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(dir)
        .unwrap()
        .map(|entry| entry.unwrap().path());
    let below = |path: PathBuf| {
        if path.is_dir() {
            files(&path)
        } else {
            vec![path]
        }
    };
    entries
        .flat_map(below)
        .filter(|path| path.extension().is_some_and(|end| end == "rs"))
        .collect()
}

fn sources() -> Vec<Source> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let mut all: Vec<_> = files(&root)
        .iter()
        .map(|path| Source::read(&root, path))
        .collect();
    all.sort_by(|a, b| a.name.cmp(&b.name));
    assert!(!all.is_empty());
    all
}

/// Every `file: what` that breaks a rule.
#[track_caller]
fn none(broken: Vec<String>) {
    assert!(broken.is_empty(), "{}", broken.join("\n"));
}

fn each(all: &[Source], rule: impl Fn(&Source) -> Vec<String>) -> Vec<String> {
    let named = |source: &Source| -> Vec<_> {
        let faults = rule(source).into_iter();
        faults
            .map(|what| format!("src/{}: {what}", source.name))
            .collect()
    };
    all.iter().flat_map(named).collect()
}

/// What each layer must not name. core ← rocketmq · kafka ← flow · import ← app ← main
fn forbidden(layer: &str) -> &'static [&'static str] {
    match layer {
        "core" => &[
            "rocketmq", "kafka", "flow", "import", "ops", "config", "cli", "demo", "app",
        ],
        "rocketmq" => &[
            "kafka", "flow", "import", "ops", "config", "cli", "demo", "app",
        ],
        "kafka" => &["rocketmq", "flow", "import", "cli", "demo", "app"],
        "flow" => &["import", "cli", "demo", "app"],
        "import" => &["flow", "cli", "demo", "app"],
        "ops" => &["cli", "demo", "app"],
        _ => &[],
    }
}

/// The modules that code names as `crate::x` or in `crate::{x::…, y}`.
fn named_modules(code: &str) -> Vec<&str> {
    code.split("crate::").skip(1).flat_map(heads).collect()
}

/// The first names of a path or of a braced list of paths.
fn heads(path: &str) -> Vec<&str> {
    let name = |text: &'_ str| {
        text.find(|c: char| !c.is_alphanumeric() && c != '_')
            .unwrap_or(text.len())
    };
    let Some(list) = path.strip_prefix('{') else {
        return vec![&path[..name(path)]];
    };
    let (mut depth, mut start, mut found) = (0, 0, Vec::new());
    for (at, c) in list.char_indices() {
        if depth == 0 && (c == ',' || c == '}') {
            let item = list[start..at].trim();
            found.push(&item[..name(item)]);
            start = at + 1;
        }
        match c {
            '{' => depth += 1,
            '}' if depth == 0 => break,
            '}' => depth -= 1,
            _ => {}
        }
    }
    found
}

#[test]
fn imports_are_understood() {
    let code = "use crate::core::x;\nuse crate::{app, flow::{a, b}, kafka::c};\ncrate::ops::f()";
    assert_eq!(named_modules(code), ["core", "app", "flow", "kafka", "ops"]);
}

#[test]
fn layers_know_only_what_is_below_them() {
    none(each(&sources(), |source| {
        let above = forbidden(source.layer());
        let named = named_modules(&source.code).into_iter();
        named
            .filter(|name| above.contains(name))
            .map(|name| format!("names crate::{name}"))
            .collect()
    }));
}

#[test]
fn the_core_is_pure() {
    let banned = [
        "rdkafka",
        "tokio",
        "SystemTime",
        "Instant",
        "std::fs",
        "std::net",
        "std::thread",
        "std::env",
    ];
    let all = sources();
    let pure: Vec<_> = all
        .into_iter()
        .filter(|source| matches!(source.layer(), "core" | "rocketmq"))
        .collect();
    none(each(&pure, |source| {
        banned
            .iter()
            .filter(|word| source.code.contains(**word))
            .map(|word| format!("names {word}"))
            .collect()
    }));
}

#[test]
fn only_the_kafka_layer_names_rdkafka() {
    none(each(&sources(), |source| {
        let names = source.layer() != "kafka" && source.code.contains("rdkafka::");
        names
            .then(|| "names rdkafka".to_owned())
            .into_iter()
            .collect()
    }));
}

#[test]
fn every_file_says_what_it_is() {
    none(each(&sources(), |source| {
        let silent = !source.text.starts_with("//!");
        silent
            .then(|| "does not open with //!".to_owned())
            .into_iter()
            .collect()
    }));
}

#[test]
fn no_file_is_longer_than_a_reader_has_patience_for() {
    none(each(&sources(), |source| {
        let lines = source.text.lines().count();
        if lines > 300 {
            println!("src/{} has {lines} lines, 300 is the aim", source.name);
        }
        (lines > 500)
            .then(|| format!("{lines} lines"))
            .into_iter()
            .collect()
    }));
}

#[test]
fn nothing_unwraps_outside_tests() {
    none(each(&sources(), |source| {
        let unwraps = !source.is_test() && source.code.contains(".unwrap()");
        unwraps
            .then(|| "calls unwrap()".to_owned())
            .into_iter()
            .collect()
    }));
}

#[test]
fn unsafe_code_is_in_one_file() {
    none(each(&sources(), |source| {
        let unsafe_here = source.name != "kafka/headers.rs" && source.code.contains("unsafe ");
        unsafe_here
            .then(|| "has unsafe code".to_owned())
            .into_iter()
            .collect()
    }));
}

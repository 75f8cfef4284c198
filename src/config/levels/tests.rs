//! The grammar of levels.toml (case 73 of cases.md), with the place of each fault.

use super::*;
use crate::config::tests::lines;

fn table(text: &str) -> Result<LevelTable, Vec<String>> {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("levels.toml");
    std::fs::write(&path, text).unwrap();
    load_levels(&path).map_err(|errors| lines(&errors))
}

fn delays(text: &str) -> Vec<u128> {
    table(text)
        .unwrap()
        .iter()
        .map(|(_, delay)| delay.as_millis())
        .collect()
}

#[test]
fn both_spellings_of_a_table_are_read() {
    assert_eq!(
        delays("levels = [\"500ms\", \"1s\", \"2m\", \"+1h\", \"1d\"]"),
        [500, 1_000, 120_000, 3_600_000, 86_400_000]
    );
    assert_eq!(
        delays("messageDelayLevel = \"1s 5s 10s\""),
        [1_000, 5_000, 10_000]
    );
    assert_eq!(delays("messageDelayLevel = '1s 5s  '"), [1_000, 5_000]);
    // Not in order, and repeated: a warning elsewhere, no refusal.
    assert_eq!(
        delays("levels = [\"5s\", \"1s\", \"1s\"]"),
        [5_000, 1_000, 1_000]
    );
}

#[test]
fn the_file_in_the_repository_is_rocketmqs_table() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("levels.toml");
    assert_eq!(load_levels(&path).unwrap(), rocketmq());
}

#[test]
fn each_bad_entry_is_told_with_its_line_and_column() {
    let cases = [
        (
            "messageDelayLevel = \"1s 1S\"",
            "levels.toml:1:25: level 2 \"1S\": ",
        ),
        (
            "messageDelayLevel = \"1.5s\"",
            "levels.toml:1:22: level 1 \"1.5s\": ",
        ),
        (
            "messageDelayLevel = \"1s 0s 5s\"",
            "levels.toml:1:25: level 2 \"0s\": a delay must be longer than zero",
        ),
        (
            "messageDelayLevel = \"-1s\"",
            "levels.toml:1:22: level 1 \"-1s\": a delay cannot be negative",
        ),
        (
            "messageDelayLevel = \"1s  5s\"",
            "levels.toml:1:25: level 2 \"\": ",
        ),
        (
            "messageDelayLevel = \"1s\t5s\"",
            "levels.toml:1:22: level 1 \"1s\\t5s\": ",
        ),
        (
            "messageDelayLevel = \"1s,5s\"",
            "levels.toml:1:22: level 1 \"1s,5s\": ",
        ),
        (
            "messageDelayLevel = \" 1s\"",
            "levels.toml:1:22: level 1 \"\": ",
        ),
        (
            "messageDelayLevel = \"\"",
            "levels.toml:1:22: level 1 \"\": ",
        ),
        (
            "messageDelayLevel = \"500ms\"",
            "levels.toml:1:22: level 1 \"500ms\": ",
        ),
        (
            "messageDelayLevel = '\"1s'",
            "levels.toml:1:22: level 1 \"\\\"1s\": ",
        ),
        (
            "messageDelayLevel = \"\"\"\n1s 5x\"\"\"",
            "levels.toml:2:4: level 2 \"5x\": ",
        ),
        (
            "messageDelayLevel = 5",
            "levels.toml:1:21: messageDelayLevel is a whole number; ",
        ),
        (
            "levels = [\n  \"1s\",\n  \"1S\",\n]",
            "levels.toml:3:3: level 2 \"1S\": ",
        ),
        (
            "levels = [\"1.5s\"]",
            "levels.toml:1:11: level 1 \"1.5s\": ",
        ),
        (
            "levels = [\"1s 5s\"]",
            "levels.toml:1:11: level 1 \"1s 5s\": ",
        ),
        ("levels = [\" 1s\"]", "levels.toml:1:11: level 1 \" 1s\": "),
        ("levels = [\"\"]", "levels.toml:1:11: level 1 \"\": "),
        (
            "levels = [\"99999999999999999999d\"]",
            "levels.toml:1:11: level 1 ",
        ),
        (
            "levels = [1, \"2s\"]",
            "levels.toml:1:11: level 1 is a whole number; ",
        ),
        (
            "levels = []",
            "levels.toml:1:10: a table needs at least one level; ",
        ),
        ("levels = \"1s 5s\"", "levels.toml:1:10: levels is text; "),
        ("", "levels.toml:1:1: there is no level table; "),
        (
            "levels = [\"1s\"]\nmessageDelayLevel = \"1s\"",
            "levels.toml:2:21: both levels and messageDelayLevel are set; ",
        ),
        (
            "level = [\"1s\"]\nlevels = [\"1s\"]",
            "levels.toml:1:1: unknown key \"level\"; did you mean \"levels\"?",
        ),
        ("levels = [\"1s\"", "levels.toml:1:15: not TOML: "),
    ];
    for (text, expected) in cases {
        let shown = table(text).expect_err(text);
        assert!(
            shown.len() == 1 && shown[0].starts_with(expected),
            "{text}: {shown:?}"
        );
    }
}

#[test]
fn all_bad_entries_are_told_at_once_by_their_own_number() {
    let shown = table("levels = [\"1s\", 5, \"x\", \"0s\"]").unwrap_err();
    let expected = ["level 2 is", "level 3 \"x\"", "level 4 \"0s\""];
    assert!(
        shown.len() == 3
            && shown
                .iter()
                .zip(expected)
                .all(|(line, part)| line.contains(part)),
        "{shown:?}"
    );
    assert_eq!(table("messageDelayLevel = \"a b c\"").unwrap_err().len(), 3);
}

#[test]
fn a_file_that_cannot_be_read_is_told_by_its_path() {
    let errors = load_levels(Path::new("/nowhere/levels.toml")).unwrap_err();
    assert!(
        errors
            .to_string()
            .starts_with("/nowhere/levels.toml: cannot be read: "),
        "{errors}"
    );
    assert_eq!(errors.exit_code(), 78);
}

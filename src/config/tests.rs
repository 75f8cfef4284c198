//! Sources laid over each other, everything wrong at once, and secrets that stay secret.
//! Also the helpers of the other tests of `config`.

use super::*;

/// Loads with these files, variables and flags; nothing of this process counts.
pub(super) fn load_all(
    files: &[(&str, &str)],
    variables: &[(&str, &str)],
    flags: &CommonFlags,
) -> Result<Config, ConfigErrors> {
    let directory = tempfile::tempdir().unwrap();
    for (name, text) in files {
        std::fs::write(directory.path().join(name), text).unwrap();
    }
    let variables = variables
        .iter()
        .map(|(n, v)| ((*n).to_owned(), (*v).to_owned()))
        .collect();
    Config::load_from(
        flags,
        &Surroundings {
            variables,
            directory: directory.path().to_owned(),
        },
    )
}

/// Loads delayd.toml alone.
pub(super) fn load(text: &str) -> Result<Config, ConfigErrors> {
    load_all(&[("delayd.toml", text)], &[], &CommonFlags::default())
}

/// The problems of delayd.toml, one a line, without the directory.
pub(super) fn complaints(text: &str) -> Vec<String> {
    lines(&load(text).expect_err(text))
}

/// The problems, one a line, without the directory.
pub(super) fn lines(errors: &ConfigErrors) -> Vec<String> {
    let cut = |line: &str| match line.split_once(".toml") {
        Some((path, rest)) if path.starts_with('/') => {
            format!("{}.toml{rest}", path.rsplit('/').next().unwrap())
        }
        _ => line.to_owned(),
    };
    errors.to_string().lines().map(cut).collect()
}

#[test]
fn without_any_source_the_documented_defaults_hold() {
    let config = load_all(&[], &[], &CommonFlags::default()).unwrap();
    assert_eq!(config.name, "delayd");
    assert_eq!(config.guarantee, Guarantee::ExactlyOnce);
    assert_eq!(config.workers, 2);
    assert_eq!(
        (
            config.instance_id.as_deref(),
            config.leave,
            config.create_topics
        ),
        (None, false, false)
    );
    assert_eq!(
        (config.headers, config.pending),
        (HeaderMode::Keep, PendingMode::Shorten)
    );
    assert_eq!(
        config.retry,
        [10, 30, 60, 120, 180, 300, 600].map(Duration::from_secs)
    );
    assert_eq!(
        (config.retry_for, config.keep),
        (Duration::from_secs(86_400), Duration::from_secs(86_400))
    );
    let topics = Topics {
        schedule: "SCHEDULE_TOPIC_XXXX".to_owned(),
        partitions: 4,
        replication_factor: -1,
    };
    assert_eq!(config.topics, topics);
    assert_eq!(config.kafka.common["bootstrap.servers"], "localhost:9092");
    assert_eq!(config.http, Some("127.0.0.1:9464".parse().unwrap()));
    assert_eq!(config.wait, Duration::from_secs(300));
    assert_eq!((config.levels.count(), config.levels_path), (18, None));
    assert_eq!(config.routes.len(), 1);
    assert!(config.warnings.is_empty(), "{:?}", config.warnings);
}

#[test]
fn names_of_topics_and_groups_begin_with_the_name() {
    let config = load("name = \"team-a\"").unwrap();
    assert_eq!(config.ingress(), "team-a-ingress");
    assert_eq!(config.dead_letter(), "team-a-dead-letter");
    assert_eq!(config.clock(), "team-a-clock");
    assert_eq!(config.router_group(), "team-a-router");
    assert_eq!(config.scanner_group(), "team-a-scanner");
}

#[test]
fn a_flag_beats_a_variable_and_a_variable_beats_the_file() {
    let file = "name = \"file\"\nworkers = 3\nwait = \"3s\"\n[kafka]\nbootstrap.servers = \"file:1\"\nclient.id = \"file\"";
    let variables = [
        ("DELAYD_NAME", "variable"),
        ("DELAYD_WORKERS", "4"),
        ("DELAYD_BOOTSTRAP_SERVER", "variable:1"),
        ("DELAYD_KAFKA_BOOTSTRAP_SERVERS", "weaker:1"),
        ("DELAYD_KAFKA_CLIENT_ID", "variable"),
    ];
    let flags = CommonFlags {
        name: Some("flag".to_owned()),
        ..CommonFlags::default()
    };
    let config = load_all(&[("delayd.toml", file)], &variables, &flags).unwrap();
    assert_eq!(
        (config.name.as_str(), config.workers, config.wait.as_secs()),
        ("flag", 4, 3)
    );
    assert_eq!(config.kafka.common["bootstrap.servers"], "variable:1");
    assert_eq!(config.kafka.common["client.id"], "variable");

    let flags = CommonFlags {
        bootstrap_server: Some("flag:1".to_owned()),
        ..flags
    };
    let config = load_all(&[("delayd.toml", file)], &variables, &flags).unwrap();
    assert_eq!(config.kafka.common["bootstrap.servers"], "flag:1");
}

#[test]
fn a_bad_value_that_a_stronger_source_replaces_does_no_harm() {
    let config = load_all(
        &[("delayd.toml", "workers = 999")],
        &[("DELAYD_WORKERS", "4")],
        &CommonFlags::default(),
    );
    assert_eq!(config.unwrap().workers, 4);
}

#[test]
fn everything_wrong_is_told_at_once_with_its_place() {
    let file =
        "nmae = \"x\"\nworkers = 0\n[topics]\npartitons = 3\n[kafka]\nacks = 1\nlingr.ms = 5\n";
    let flags = CommonFlags {
        wait: Some("soon".to_owned()),
        ..CommonFlags::default()
    };
    let files = [
        ("delayd.toml", file),
        ("levels.toml", "levels = [\"1s\", \"0s\"]"),
    ];
    let errors = load_all(&files, &[("DELAYD_KEEP", "0s")], &flags).unwrap_err();
    let places: Vec<_> = lines(&errors)
        .iter()
        .map(|l| l.split(": ").take(2).collect::<Vec<_>>().join(" "))
        .collect();
    let expected = [
        "delayd.toml:1:1 unknown key \"nmae\"; did you mean \"name\"?",
        "delayd.toml:2:11 workers",
        "delayd.toml:4:1 unknown key \"partitons\" in [topics]; did you mean \"partitions\"?",
        "delayd.toml:6:8 acks is refused",
        "delayd.toml:7:12 librdkafka has no key \"lingr.ms\"; did you mean \"linger.ms\"?",
        "levels.toml:1:17 level 2 \"0s\"",
        "DELAYD_KEEP keep",
        "--wait wait",
    ];
    assert_eq!(places, expected);
    assert_eq!(errors.exit_code(), 78);
}

#[test]
fn only_a_bad_flag_is_bad_usage() {
    let flags = CommonFlags {
        workers: Some("many".to_owned()),
        ..CommonFlags::default()
    };
    assert_eq!(load_all(&[], &[], &flags).unwrap_err().exit_code(), 64);
    assert_eq!(
        load_all(&[], &[("DELAYD_WORKERS", "many")], &CommonFlags::default())
            .unwrap_err()
            .exit_code(),
        78
    );
}

#[test]
fn a_named_file_that_is_missing_is_an_error_that_names_who_named_it() {
    let flags = CommonFlags {
        config: Some("none.toml".into()),
        ..CommonFlags::default()
    };
    let errors = load_all(&[], &[("DELAYD_LEVELS", "1s 5s")], &flags).unwrap_err();
    let origins: Vec<_> = errors
        .problems()
        .iter()
        .map(|p| p.origin.to_string())
        .collect();
    assert_eq!(origins, ["DELAYD_LEVELS", "--config"]);
}

#[test]
fn files_are_found_by_flag_then_variable_then_beside_the_process() {
    let files = [
        ("delayd.toml", "name = \"here\""),
        ("v.toml", "name = \"variable\""),
        ("f.toml", "name = \"flag\""),
        ("levels.toml", "levels = [\"2s\"]"),
        ("l.toml", "messageDelayLevel = \"3s 1s\""),
    ];
    let none = CommonFlags::default();
    let here = load_all(&files, &[], &none).unwrap();
    assert_eq!((here.name.as_str(), here.levels.count()), ("here", 1));
    assert!(here.levels_path.unwrap().ends_with("levels.toml"));
    let variables = [("DELAYD_CONFIG", "v.toml"), ("DELAYD_LEVELS", "l.toml")];
    let variable = load_all(&files, &variables, &none).unwrap();
    assert_eq!(
        (variable.name.as_str(), variable.levels.count()),
        ("variable", 2)
    );
    assert!(
        variable.warnings[0].contains("l.toml: level 2 (1s)"),
        "{:?}",
        variable.warnings
    );
    let flags = CommonFlags {
        config: Some("f.toml".into()),
        ..none
    };
    assert_eq!(load_all(&files, &variables, &flags).unwrap().name, "flag");
}

#[test]
fn secrets_are_shown_by_neither_debug_nor_errors() {
    let secret = "hunter2";
    let file = format!(
        "[kafka]\nsasl.username = \"me\"\nsasl.password = \"{secret}\"\nssl.key.pem = \"{secret}\"\n\
         sasl.oauthbearer.config = \"{secret}\"\n[kafka.consumer]\nssl.key.password = \"{secret}\"\n"
    );
    let shown = format!("{:?}", load(&file).unwrap());
    assert!(!shown.contains(secret), "{shown}");
    assert!(
        shown.contains("\"sasl.password\": \"***\"") && shown.contains("\"sasl.username\": \"me\""),
        "{shown}"
    );

    let broken = [
        format!("[kafka]\nsasl.pasword = \"{secret}\""),
        format!("[kafka]\nsasl.password = \"{secret}"),
        format!("[kafka]\nsasl.password = [\"{secret}\"]"),
        format!("[kafka]\nsasl.password = \"{secret}\"\nsasl.password = \"{secret}\""),
        format!("[kafka]\nsasl.password = \"{secret}\\u0000\""),
        format!("[kafka]\n\"sasl.password\" = \"{secret}\"\nsasl.password = \"{secret}\""),
        format!("sasl.password = \"{secret}\""),
    ];
    for text in broken {
        let errors = load(&text).unwrap_err();
        assert!(!format!("{errors} {errors:?}").contains(secret), "{errors}");
    }
    let variables = [
        ("DELAYD_KAFKA_SASL_PASWORD", secret),
        ("DELAYD_SASL_PASSWORD", secret),
    ];
    let errors = load_all(&[], &variables, &CommonFlags::default()).unwrap_err();
    assert_eq!(errors.problems().len(), 2);
    assert!(!format!("{errors} {errors:?}").contains(secret), "{errors}");
}

#[test]
fn leaving_without_a_place_to_leave_is_a_warning() {
    assert_eq!(load("leave = true").unwrap().warnings.len(), 1);
    assert!(
        load("leave = true\ninstance_id = \"a-1\"")
            .unwrap()
            .warnings
            .is_empty()
    );
}

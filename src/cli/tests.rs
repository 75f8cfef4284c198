//! Command lines that people type, and what the help promises.

use super::*;
use crate::config::{Config, Surroundings};

fn parsed(line: &str) -> Result<Command, clap::Error> {
    parse_from(line.split(' ')).map(|cli| cli.command)
}

#[test]
fn the_definition_is_sound() {
    Cli::command().debug_assert();
}

#[test]
fn every_flag_of_run_reaches_the_configuration() {
    let line = "delayd run --config c.toml --levels l.toml --bootstrap-server k:1 --name n --create-topics --workers 3 \
        --instance-id i --leave --guarantee at-least-once --http off --wait 5m";
    let Ok(Command::Run(args)) = parsed(&line.split_whitespace().collect::<Vec<_>>().join(" "))
    else {
        panic!("{line}")
    };
    let text = |text: &str| Some(text.to_owned());
    let expected = CommonFlags {
        config: Some("c.toml".into()),
        levels: Some("l.toml".into()),
        bootstrap_server: text("k:1"),
        name: text("n"),
        guarantee: text("at-least-once"),
        workers: text("3"),
        instance_id: text("i"),
        leave: true,
        create_topics: true,
        http: text("off"),
        wait: text("5m"),
    };
    assert_eq!(args.flags(), expected);
}

#[test]
fn commands_without_flags_take_their_defaults() {
    assert!(
        matches!(parsed("delayd run"), Ok(Command::Run(args)) if args.flags() == CommonFlags::default())
    );
    assert!(
        matches!(parsed("delayd check"), Ok(Command::Check(args)) if args.format == Format::Text)
    );
    assert!(
        matches!(parsed("delayd levels --format json"), Ok(Command::Levels(args)) if args.format == Format::Json)
    );
    assert!(matches!(
        parsed("delayd topics create --name n"),
        Ok(Command::Topics { command: TopicsCommand::Create(args) }) if args.place.name.as_deref() == Some("n")
    ));
    assert!(matches!(
        parsed("delayd completions bash"),
        Ok(Command::Completions { shell: Shell::Bash })
    ));
    assert!(matches!(
        parsed("delayd demo"),
        Ok(Command::Demo(DemoArgs {
            run_for: None,
            bootstrap_server: None,
            rate: 20
        }))
    ));
    assert!(matches!(
        parsed("delayd demo --for 20s --rate 5"),
        Ok(Command::Demo(DemoArgs { run_for: Some(time), rate: 5, .. })) if time.as_secs() == 20
    ));
}

#[test]
fn bad_usage_exits_64_and_asking_for_help_exits_0() {
    let cases = [
        ("delayd", 64),
        ("delayd rum", 64),
        ("delayd run --worker 3", 64),
        ("delayd run --guarantee twice", 64),
        ("delayd demo --rate 0", 64),
        ("delayd demo --for 0s", 64),
        ("delayd demo --for 2years", 64),
        ("delayd demo --for 20", 64),
        ("delayd check --format xml", 64),
        ("delayd topics", 64),
        ("delayd --help", 0),
        ("delayd run --help", 0),
        ("delayd --version", 0),
    ];
    for (line, code) in cases {
        assert_eq!(exit_code(&parsed(line).expect_err(line)), code, "{line}");
    }
}

#[test]
fn help_names_the_default_and_the_variable_of_every_flag_and_the_loader_knows_it() {
    let command = Cli::command();
    let run = command.find_subcommand("run").unwrap();
    for flag in run.get_arguments() {
        let help = flag.get_help().unwrap().to_string();
        assert!(help.contains("[default: "), "{help}");
        let variable = help
            .split("[env: ")
            .nth(1)
            .expect(&help)
            .trim_end_matches(']')
            .to_owned();
        assert!(variable.starts_with("DELAYD_"), "{variable}");
        // Any value will do: only an unknown variable is complained about in these words.
        let around = Surroundings {
            variables: vec![(variable, "?".to_owned())],
            directory: "/nowhere".into(),
        };
        let shown = Config::load_from(&CommonFlags::default(), &around)
            .map_or_else(|e| e.to_string(), |_| String::new());
        assert!(!shown.contains("unknown variable"), "{shown}");
    }
}

#[test]
fn completions_are_written_for_every_shell() {
    for shell in Shell::value_variants() {
        let mut out = Vec::new();
        write_completions(*shell, &mut out);
        assert!(
            String::from_utf8(out).unwrap().contains("bootstrap-server"),
            "{shell}"
        );
    }
}

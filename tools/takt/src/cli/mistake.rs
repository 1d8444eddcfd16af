//! What was probably meant, where the parser only says that it does not know.

use std::ffi::OsString;

use clap::CommandFactory as _;
use clap::error::{ContextKind, ContextValue, ErrorKind};

use super::Cli;

/// `error`, which these arguments gave, in words that help.
pub(crate) fn explained(error: clap::Error, args: &[OsString]) -> clap::Error {
    match below_zero(&error, args) {
        Some(says) => clap::Error::raw(ErrorKind::InvalidValue, says),
        None => with_nearest(error),
    }
}

/// A value such as `-1` or `-5s`, which the parser takes for a flag that is not there.
fn below_zero(error: &clap::Error, args: &[OsString]) -> Option<String> {
    let (ErrorKind::UnknownArgument, Some(ContextValue::String(unknown))) =
        (error.kind(), error.get(ContextKind::InvalidArg))
    else {
        return None;
    };
    let digit = |text: &str| text.starts_with(|c: char| c == '.' || c.is_ascii_digit());
    let is_it =
        |arg: &str| arg.starts_with(unknown.as_str()) && arg.strip_prefix('-').is_some_and(digit);
    let mut pairs = args.windows(2).filter_map(|pair| Some((pair[0].to_str()?, pair[1].to_str()?)));
    let (flag, value) = pairs.find(|(flag, value)| flag.starts_with("--") && is_it(value))?;
    Some(format!("{flag}: {value} is below zero, and no flag of takt takes such a value\n"))
}

/// The error with the command that was probably meant: two letters that changed places are near for takt
/// and far for the parser.
fn with_nearest(mut error: clap::Error) -> clap::Error {
    let told = error.get(ContextKind::SuggestedSubcommand).is_some();
    if error.kind() == ErrorKind::InvalidSubcommand
        && !told
        && let Some(ContextValue::String(given)) = error.get(ContextKind::InvalidSubcommand)
    {
        let command = Cli::command();
        let names = command.get_subcommands().map(clap::Command::get_name);
        if let Some(near) = crate::config::nearest(given, names) {
            let near = ContextValue::Strings(vec![near.to_owned()]);
            error.insert(ContextKind::SuggestedSubcommand, near);
        }
    }
    error
}

#[cfg(test)]
mod tests {
    use clap::{Command, Parser as _};

    use super::*;

    fn words(args: &[&str]) -> String {
        let args: Vec<OsString> = args.iter().map(OsString::from).collect();
        explained(Cli::try_parse_from(&args).expect_err("it is wrong"), &args).to_string()
    }

    /// Every flag with a value of `command` and of those below it, behind the words that lead there.
    fn flags(command: &Command, way: &[String], found: &mut Vec<Vec<String>>) {
        for arg in command.get_arguments() {
            let value = arg.get_action().takes_values() && !arg.is_require_equals_set();
            if let (true, Some(long)) = (value, arg.get_long()) {
                found.push([way, &[format!("--{long}")]].concat());
            }
        }
        for below in command.get_subcommands() {
            flags(below, &[way, &[below.get_name().to_owned()]].concat(), found);
        }
    }

    #[test]
    fn a_value_below_zero_is_called_so_behind_every_flag() {
        let mut found = Vec::new();
        flags(&Cli::command(), &["takt".to_owned()], &mut found);
        assert!(found.len() > 40, "{found:?}");
        for args in found {
            for value in ["-1", "-.5", "-5s"] {
                let args: Vec<&str> = args.iter().map(String::as_str).chain([value]).collect();
                let flag = args[args.len() - 2];
                let expected = format!("error: {flag}: {value} is below zero");
                assert!(words(&args).starts_with(&expected), "{args:?}: {}", words(&args));
            }
        }
    }

    #[test]
    fn what_is_no_number_is_an_unknown_flag_as_before() {
        for args in [&["takt", "run", "--rate", "-x"][..], &["takt", "run", "-1"]] {
            assert!(words(args).contains("unexpected argument"), "{}", words(args));
        }
        assert!(words(&["takt", "rnu"]).contains("'run'"));
    }
}

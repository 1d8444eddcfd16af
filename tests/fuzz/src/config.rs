//! The command's configuration: any YAML is a configuration or a message, and a configuration that is
//! written out reads as itself.
//!
//! Input: the YAML. A command is a program and no library, so the files of its configuration are compiled into
//! this crate as they stand; they name nothing else of the command.

#[allow(
    dead_code,
    unused_imports,
    unreachable_pub,
    reason = "the command uses all of it, this crate a part"
)]
#[path = "../../../tools/takt/src/config/mod.rs"]
mod parts;

use parts::{Config, Node, Value, apply_set};

/// The target.
pub fn config(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else { return };
    let read = Node::from_yaml(text, "f.yaml").and_then(|tree| {
        let secret = secret_of(&tree, text);
        let config = Config::read(&tree, "run");
        if let (Err(error), Some(secret)) = (&config, secret) {
            assert!(!error.to_string().contains(secret), "a secret in {error}");
        }
        config
    });
    if let Err(error) = read {
        let error = error.to_string();
        assert!(error.starts_with("f.yaml:") && error.len() > 10, "where and what: {error}");
    }
    // With its variables filled in, as a file is read.
    let Ok(tree) = filled(text) else { return };
    let Ok(config) = Config::read(&tree, "run") else { return };
    if let Some(secret) = secret_of(&tree, text) {
        assert!(!format!("{config:?}").contains(secret), "Debug shows a secret");
        assert!(!config.to_yaml().contains(secret), "config.yaml holds a secret");
    }
    let written = config.to_yaml();
    let again = match filled(&written) {
        Ok(again) => again,
        Err(error) => panic!("{error}\n{written}"),
    };
    match Config::read(&again, "another name") {
        Ok(again) => assert_eq!(again.resolved(), config.resolved(), "{written}"),
        Err(error) => {
            let says = error.to_string();
            assert!(says.contains("without its secrets"), "{says}\n{written}");
        }
    }
}

/// The tree of `text` with its variables filled in: what `--set a=…` puts at `a`.
fn filled(text: &str) -> Result<Node, parts::ConfigError> {
    let mut tree = Node::map();
    apply_set(&mut tree, &format!("a={text}"))?;
    Ok(tree.get("a").cloned().unwrap_or_else(Node::map))
}

/// The API key, when it is the mark by which it is told apart and that mark stands nowhere else.
fn secret_of(tree: &Node, text: &str) -> Option<&'static str> {
    const MARK: &str = "hunter2";
    let key = tree.get("endpoint")?.get("api_key")?;
    let (Value::Text(key) | Value::Filled(key)) = &key.value else { return None };
    (key.contains(MARK) && text.matches(MARK).count() == 1).then_some(MARK)
}

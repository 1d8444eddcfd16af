//! `${VAR}` and `${VAR:-default}` in values.
//!
//! As in a shell, the default stands in for a variable that is not set or is empty. `$$` is a dollar sign,
//! and a dollar sign before anything else is itself. Only values are filled in, after the file was taken
//! apart: what a variable holds can add no key and no line. What comes from a variable whose name says
//! that it is a secret (`…_KEY`, `…_TOKEN`) is remembered as one, wherever it is put.

use takt_wire::is_secret_name;

use super::error::ConfigError;
use super::node::{Node, Value};
use super::secret::Secret;

/// Fills in all variables of a tree; `lookup` is the environment.
pub(crate) fn fill_in(
    node: &mut Node,
    lookup: &dyn Fn(&str) -> Option<String>,
) -> Result<(), ConfigError> {
    fill(node, "", lookup)
}

fn fill(
    node: &mut Node,
    path: &str,
    lookup: &dyn Fn(&str) -> Option<String>,
) -> Result<(), ConfigError> {
    match &mut node.value {
        Value::Text(text) => {
            let expanded = expand(text, lookup, &mut node.secrets);
            if let Some(filled) =
                expanded.map_err(|says| ConfigError::new(node.at.clone(), path, says))?
            {
                node.value = filled;
            }
        }
        Value::List(items) => {
            for (place, item) in items.iter_mut().enumerate() {
                fill(item, &format!("{path}[{place}]"), lookup)?;
            }
        }
        Value::Map(entries) => {
            for (key, item) in entries {
                fill(item, &super::reader::below(path, &key.name), lookup)?;
            }
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::Filled(_) => {}
    }
    Ok(())
}

/// The text with its variables filled in; `None` when it has neither variables nor `$$`.
fn expand(
    text: &str,
    lookup: &dyn Fn(&str) -> Option<String>,
    secrets: &mut Vec<Secret>,
) -> Result<Option<Value>, String> {
    if !text.contains('$') {
        return Ok(None);
    }
    let (mut out, mut rest, mut filled) = (String::new(), text, false);
    while let Some(dollar) = rest.find('$') {
        out.push_str(&rest[..dollar]);
        let after = &rest[dollar + 1..];
        if let Some(after) = after.strip_prefix('$') {
            out.push('$');
            rest = after;
        } else if let Some(inside) = after.strip_prefix('{') {
            let end = inside.find('}').ok_or("`${` without `}`; write `$${` for a plain `${`")?;
            let value = value_of(&inside[..end], lookup)?;
            if value.is_secret {
                secrets.push(Secret::new(value.text.trim()));
            }
            out.push_str(&value.text);
            rest = &inside[end + 1..];
            filled = true;
        } else {
            out.push('$');
            rest = after;
        }
    }
    out.push_str(rest);
    Ok(Some(if filled { Value::Filled(out) } else { Value::Text(out) }))
}

/// What stands in place of a variable.
struct Filling {
    text: String,
    is_secret: bool,
}

fn value_of(inside: &str, lookup: &dyn Fn(&str) -> Option<String>) -> Result<Filling, String> {
    let (name, default) = match inside.split_once(":-") {
        Some((name, default)) => (name, Some(default)),
        None => (inside, None),
    };
    if default.is_some_and(|default| default.contains("${")) {
        return Err("a default cannot hold another variable".to_owned());
    }
    let usual = |c: char| c.is_ascii_alphanumeric() || c == '_';
    if name.is_empty() || !name.chars().all(usual) {
        return Err(format!("`${{{name}}}` names no variable; write ${{NAME}}"));
    }
    let plain = |default: &str| Ok(Filling { text: default.to_owned(), is_secret: false });
    match (lookup(name), default) {
        (Some(value), Some(default)) if value.is_empty() => plain(default),
        (Some(text), _) => Ok(Filling { text, is_secret: is_secret_name(name) }),
        (None, Some(default)) => plain(default),
        (None, None) => {
            Err(format!("the variable {name} is not set; set it, or write ${{{name}:-default}}"))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn filled(text: &str) -> Result<serde_json::Value, String> {
        let environment = |name: &str| match name {
            "N" => Some("12".to_owned()),
            "EMPTY" => Some(String::new()),
            "EVIL" => Some("x\nseed: 7".to_owned()),
            _ => None,
        };
        let mut node = Node::from_yaml(text, "f.yaml").unwrap();
        fill_in(&mut node, &environment).map_err(|e| e.to_string())?;
        Ok(node.to_json())
    }

    #[test]
    fn variables_and_defaults_are_filled_in_and_two_dollars_are_one() {
        for (text, expected) in [
            ("a: ${N}", r#"{"a":12}"#),
            ("a: x${N}y", r#"{"a":"x12y"}"#),
            ("a: ${M:-3}", r#"{"a":3}"#),
            ("a: ${EMPTY:-3}", r#"{"a":3}"#),
            ("a: '${M:-}'", r#"{"a":""}"#),
            ("a: $${N} costs $5", r#"{"a":"${N} costs $5"}"#),
            ("a: [{b: '${N}/${N}'}]", r#"{"a":[{"b":"12/12"}]}"#),
            ("a: ${EVIL}", r#"{"a":"x\nseed: 7"}"#),
        ] {
            assert_eq!(filled(text).unwrap().to_string(), expected, "{text}");
        }
    }

    #[test]
    fn k3_what_a_variable_of_a_secret_s_name_held_is_remembered() {
        let environment = |name: &str| Some(format!("value of {name}"));
        let text = "{a: [x, '${TEAM}/${API_KEY}'], b: '${M_TOKEN:-none}', c: '$${KEY}'}";
        let mut node = Node::from_yaml(text, "f.yaml").unwrap();
        fill_in(&mut node, &environment).unwrap();
        let found = node.all_secrets();
        let found: Vec<_> = found.iter().map(Secret::reveal).collect();
        assert_eq!(found, ["value of API_KEY", "value of M_TOKEN"]);
    }

    #[test]
    fn a_variable_that_is_not_set_is_named_with_its_place() {
        let error = filled("a:\n  b: ${M}").unwrap_err();
        assert!(error.starts_with("f.yaml:2: a.b: the variable M is not set"), "{error}");
        assert!(filled("a: ${N").unwrap_err().contains("without `}`"));
        assert!(filled("a: ${M:-${N}}").unwrap_err().contains("another variable"));
        assert!(filled("a: ${}").unwrap_err().contains("names no variable"));
    }
}

//! Putting values into a tree: what flags and `--set key.path=value` do.
//!
//! A path is keys with dots between. An item of a list goes by its number from 0 or by its `name`:
//! `phases.0.load.rate`, `phases.perf_q50.load.rate`. Maps on the way are made when they are missing.

use super::error::ConfigError;
use super::node::{Key, Node, Origin, Value};

/// Applies one `--set` argument.
pub(crate) fn apply(tree: &mut Node, argument: &str) -> Result<(), ConfigError> {
    let (path, value) = argument.split_once('=').unwrap_or((argument, ""));
    let path = path.trim();
    let at = Origin::Set(path.into());
    if path.is_empty() || path.split('.').any(str::is_empty) || path.len() == argument.len() {
        return Err(ConfigError::new(at, path, "write --set key.path=value"));
    }
    let mut value = Node::from_argument(value, &at)?;
    super::vars::fill_in(&mut value, &super::environment)?;
    let keys: Vec<&str> = path.split('.').collect();
    put(tree, &keys, value)
}

/// Puts `value` at `path`, in place of what is there.
pub(crate) fn put(tree: &mut Node, path: &[&str], value: Node) -> Result<(), ConfigError> {
    let at = value.at.clone();
    *slot(tree, path, &at)? = value;
    Ok(())
}

/// The place in the tree that `path` names, made if need be.
fn slot<'t>(tree: &'t mut Node, path: &[&str], at: &Origin) -> Result<&'t mut Node, ConfigError> {
    let mut here = tree;
    for (depth, step) in path.iter().enumerate() {
        let so_far = || path[..depth].join(".");
        if here.is_null() {
            here.value = Value::Map(Vec::new());
        }
        let kind = here.kind();
        here = match &mut here.value {
            Value::Map(entries) => {
                let place = entries.iter().position(|(key, _)| key.name == *step);
                let place = place.unwrap_or_else(|| {
                    let key = Key { name: (*step).to_owned(), at: at.clone() };
                    entries.push((key, Node::new(Value::Null, at.clone())));
                    entries.len() - 1
                });
                &mut entries[place].1
            }
            Value::List(items) => {
                let place = step.parse().ok().filter(|place| *place < items.len());
                let place = place.or_else(|| {
                    items.iter().position(|item| {
                        let name = item.get("name").map(|name| &name.value);
                        matches!(name, Some(Value::Text(t) | Value::Filled(t)) if t == step)
                    })
                });
                let Some(place) = place else {
                    let says = format!(
                        "`{step}` is no item of `{}`: it has {} (count from 0, or go by `name`)",
                        so_far(),
                        items.len()
                    );
                    return Err(ConfigError::new(at.clone(), path.join("."), says));
                };
                &mut items[place]
            }
            _ => {
                let says = format!("`{}` is {}, nothing can be below it", so_far(), kind);
                return Err(ConfigError::new(at.clone(), path.join("."), says));
            }
        };
    }
    Ok(here)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn set(yaml: &str, argument: &str) -> Result<String, String> {
        let mut tree = Node::from_yaml(yaml, "f.yaml").unwrap();
        apply(&mut tree, argument).map_err(|e| e.to_string())?;
        Ok(tree.to_json().to_string())
    }

    #[test]
    fn a_path_reaches_maps_and_list_items_and_makes_what_is_missing() {
        for (yaml, argument, expected) in [
            ("a: 1", "a=2", r#"{"a":2}"#),
            ("a: 1", "b.c=x=y", r#"{"a":1,"b":{"c":"x=y"}}"#),
            ("a:", "a.b={c: [1]}", r#"{"a":{"b":{"c":[1]}}}"#),
            ("p: [{name: q, r: 1}]", "p.0.r=2", r#"{"p":[{"name":"q","r":2}]}"#),
            ("p: [{name: q, r: 1}]", "p.q.r=2", r#"{"p":[{"name":"q","r":2}]}"#),
        ] {
            assert_eq!(set(yaml, argument).unwrap(), expected, "{argument}");
        }
    }

    #[test]
    fn a_path_that_leads_nowhere_says_where_it_stops() {
        assert!(set("p: [1]", "p.7=1").unwrap_err().contains("no item of `p`: it has 1"));
        assert!(set("a: 1", "a.b=1").unwrap_err().contains("`a` is a number"));
        assert!(set("a: 1", "a").unwrap_err().contains("key.path=value"));
        assert!(set("a: 1", "=1").unwrap_err().contains("key.path=value"));
    }

    #[test]
    fn k3_an_error_of_set_shows_the_path_and_not_the_value() {
        let error = set("a: 1", "a.key=hunter2").unwrap_err();
        assert!(error.contains("a.key") && !error.contains("hunter2"), "{error}");
    }
}

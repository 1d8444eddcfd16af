//! The rules of the house, as an ordinary test: what `cargo xtask tidy` prints, in `cargo test`.
#![forbid(unsafe_code)]

use std::path::Path;

#[test]
fn the_house_is_tidy() -> anyhow::Result<()> {
    let root = xtask::root::of(Path::new(env!("CARGO_MANIFEST_DIR")))?;
    let found: Vec<String> =
        xtask::tidy::findings(&root)?.iter().map(ToString::to_string).collect();
    assert!(found.is_empty(), "\n{}\n", found.join("\n"));
    Ok(())
}

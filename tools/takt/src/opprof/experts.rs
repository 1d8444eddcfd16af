//! `takt opprof experts`: how evenly tokens are spread over experts.

use anyhow::Context as _;
use takt_opprof::{Loads, Routes, read_answers};

use super::files;
use crate::cli::ExpertsArgs;
use crate::exit::{Exit, Failure, OrExit as _};
use crate::outcome;

/// Counts the routes of all files and prints how even they are.
pub(crate) fn experts(args: &ExpertsArgs) -> Result<Exit, Failure> {
    let (loads, by_rank) = read(args).or_exit(Exit::Input)?;
    outcome::print(&loads.render(by_rank.as_deref()))?;
    Ok(Exit::Done)
}

fn read(args: &ExpertsArgs) -> anyhow::Result<(Loads, Option<Vec<Vec<u64>>>)> {
    let mut loads = Loads::default();
    for path in files::list(&args.paths, &[".jsonl", ".json", ".npy"])? {
        let shown = || path.display().to_string();
        if path.extension().is_some_and(|extension| extension == "npy") {
            let routes =
                Routes::from_npy(&files::read(&path, NPY_BYTES_MAX)?).with_context(shown)?;
            loads.add(&routes, usize::from(args.experts)).with_context(shown)?;
        } else {
            read_answers(files::open(&path)?, usize::from(args.experts), &mut loads)
                .with_context(shown)?;
        }
    }
    anyhow::ensure!(
        loads.requests > 0,
        "no answer has routed_experts: start the server with \
        --enable-return-routed-experts, and ask for answers that are not streamed"
    );
    let by_rank = match &args.placement {
        None => None,
        Some(path) => {
            let shown = || path.display().to_string();
            let bytes = files::read(path, NPY_BYTES_MAX)?;
            let owner: Vec<Vec<usize>> = serde_json::from_slice(&bytes).with_context(shown)?;
            Some(loads.by_rank(&owner).map_err(anyhow::Error::msg).with_context(shown)?)
        }
    };
    Ok((loads, by_rank))
}

/// Routes of one request are smaller by far.
const NPY_BYTES_MAX: u64 = 1 << 30;

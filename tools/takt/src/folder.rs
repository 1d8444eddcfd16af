//! The run folder: made before anything is sent, written so that a reader never sees half a file.

use std::fs::{self, File};
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

use crate::exit::{Exit, Failure};

/// A run folder that is this run's alone.
#[derive(Debug)]
pub(crate) struct RunFolder {
    path: PathBuf,
}

impl RunFolder {
    /// Makes the folder `out`, which must be new or empty; without it `runs/TIME-NAME`.
    pub(crate) fn create(out: Option<&Path>, name: &str, time: &str) -> Result<Self, Failure> {
        let path = match out {
            Some(path) => {
                look_at(path)?;
                path.to_owned()
            }
            None => unused(Path::new("runs"), &format!("{time}-{}", file_name(name))),
        };
        let made = fs::create_dir_all(path.join("metrics"));
        made.map_err(|error| cannot(&path, &error, Exit::Setup))?;
        Ok(Self { path })
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Writes the file `name`: to a temporary one first, then to the disk, then under its name.
    pub(crate) fn write(&self, name: &str, contents: &[u8]) -> io::Result<()> {
        let path = self.path.join(name);
        let mut temporary = path.clone().into_os_string();
        temporary.push(".tmp");
        let folder = path.parent().unwrap_or(&self.path);
        let done = File::create(&temporary)
            .and_then(|mut file| {
                file.write_all(contents)?;
                file.sync_all()
            })
            .and_then(|()| fs::rename(&temporary, &path))
            .and_then(|()| File::open(folder)?.sync_all());
        done.map_err(|error| io::Error::new(error.kind(), format!("{}: {error}", path.display())))
    }
}

/// Refuses what is no folder, and a folder in which something is.
fn look_at(path: &Path) -> Result<(), Failure> {
    let mut entries = match fs::read_dir(path) {
        Ok(entries) => entries,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        Err(error) if error.kind() == io::ErrorKind::NotADirectory => {
            let says = format!("--out {}: is a file, not a folder", path.display());
            return Err(Failure::says(Exit::Input, says));
        }
        Err(error) => return Err(cannot(path, &error, Exit::Setup)),
    };
    if entries.next().is_none() {
        return Ok(());
    }
    let what =
        if path.join("config.yaml").exists() { "holds a run already" } else { "is not empty" };
    let says = format!("--out {}: {what}; name another folder, or remove it", path.display());
    Err(Failure::says(Exit::Input, says))
}

/// A folder of this name that is not there yet.
fn unused(below: &Path, name: &str) -> PathBuf {
    let first = below.join(name);
    let others = (2..).map(|n| below.join(format!("{name}-{n}")));
    std::iter::once(first.clone()).chain(others).find(|path| !path.exists()).unwrap_or(first)
}

fn cannot(path: &Path, error: &io::Error, exit: Exit) -> Failure {
    Failure::says(exit, format!("the run folder {} cannot be made: {error}", path.display()))
}

/// A name as part of a file's name.
fn file_name(name: &str) -> String {
    let usual = |c: char| c.is_alphanumeric() || "._-".contains(c);
    name.chars().map(|c| if usual(c) { c } else { '-' }).take(64).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_with_something_in_it_is_never_written_to() {
        let scratch = tempfile::tempdir().unwrap();
        let create = |out: &Path| RunFolder::create(Some(out), "n", "t").map_err(|e| e.exit);
        let new = scratch.path().join("a/b");
        let folder = create(&new).unwrap();
        folder.write("metrics/x.json", b"{}").unwrap();
        assert_eq!(fs::read(new.join("metrics/x.json")).unwrap(), b"{}");
        assert_eq!(fs::read_dir(new.join("metrics")).unwrap().count(), 1, "nothing temporary");
        assert_eq!(create(&new).unwrap_err(), Exit::Input);
        let empty = scratch.path().join("empty");
        fs::create_dir(&empty).unwrap();
        create(&empty).unwrap();
        let file = scratch.path().join("file");
        fs::write(&file, "x").unwrap();
        assert_eq!(create(&file).unwrap_err(), Exit::Input);
        assert_eq!(create(&file.join("below")).unwrap_err(), Exit::Input);
    }

    #[test]
    fn names_are_made_fit_for_a_file_system() {
        assert_eq!(file_name("a b/../c\0é"), "a-b-..-c-é");
    }
}

//! The run folder: made before anything is sent, written so that a reader never sees half a file.

use std::fs::{self, File};
use std::io::{self, BufWriter, Write};
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

    /// The folder `path` as it is, made if need be: for a file or two beside what is there.
    #[cfg(feature = "zmq")]
    pub(crate) fn open(path: &Path) -> Result<Self, Failure> {
        let made = fs::create_dir_all(path.join("metrics"));
        made.map_err(|error| cannot(path, &error, Exit::Setup))?;
        Ok(Self { path: path.to_owned() })
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Writes the file `name`: to a temporary one first, then to the disk, then under its name.
    pub(crate) fn write(&self, name: &str, contents: &[u8]) -> io::Result<()> {
        self.write_with(name, |out| out.write_all(contents))
    }

    /// The same, of what `contents` writes.
    pub(crate) fn write_with(
        &self,
        name: &str,
        contents: impl FnOnce(&mut Replacement) -> io::Result<()>,
    ) -> io::Result<()> {
        let path = self.path.join(name);
        let mut file = Replacement::create(&path)?;
        contents(&mut file).map_err(|error| {
            io::Error::new(error.kind(), format!("{}: {error}", path.display()))
        })?;
        file.finish()
    }
}

/// A file that takes the place of the one of its name, if there is one, once it is whole.
#[derive(Debug)]
pub(crate) struct Replacement {
    path: PathBuf,
    temporary: PathBuf,
    out: BufWriter<File>,
}

impl Replacement {
    pub(crate) fn create(path: &Path) -> io::Result<Self> {
        let mut temporary = path.as_os_str().to_owned();
        temporary.push(".tmp");
        let temporary = PathBuf::from(temporary);
        let file = File::create(&temporary).map_err(|error| {
            io::Error::new(error.kind(), format!("{}: {error}", temporary.display()))
        })?;
        Ok(Self { path: path.to_owned(), temporary, out: BufWriter::new(file) })
    }

    /// Puts it on the disk, then in its place.
    pub(crate) fn finish(mut self) -> io::Result<()> {
        let folder = self.path.parent().unwrap_or(Path::new("."));
        let done = (self.out.flush())
            .and_then(|()| self.out.get_ref().sync_all())
            .and_then(|()| fs::rename(&self.temporary, &self.path))
            .and_then(|()| File::open(folder)?.sync_all());
        done.map_err(|error| {
            io::Error::new(error.kind(), format!("{}: {error}", self.path.display()))
        })
    }
}

impl Write for Replacement {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.out.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.out.flush()
    }
}

/// Refuses what is no folder, and a folder in which something is. What a run leaves whose set-up failed is
/// nothing: it has no record of anything, and its command may be given again.
fn look_at(path: &Path) -> Result<(), Failure> {
    let entries = match fs::read_dir(path) {
        Ok(entries) => entries,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        Err(error) if error.kind() == io::ErrorKind::NotADirectory => {
            let says = format!("--out {}: is a file, not a folder", path.display());
            return Err(Failure::says(Exit::Input, says));
        }
        Err(error) => return Err(cannot(path, &error, Exit::Setup)),
    };
    let of_a_set_up = |entry: io::Result<fs::DirEntry>| {
        entry.is_ok_and(|entry| match entry.file_name().to_str() {
            Some("config.yaml" | "questions.jsonl") => true,
            Some("metrics") => {
                fs::read_dir(entry.path()).is_ok_and(|mut in_it| in_it.next().is_none())
            }
            _ => false,
        })
    };
    if entries.into_iter().all(of_a_set_up) {
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
        create(&empty).unwrap().write("config.yaml", b"").unwrap();
        // Its set-up failed: nothing was recorded.
        create(&empty).unwrap().write("journal", b"").unwrap();
        assert_eq!(create(&empty).unwrap_err(), Exit::Input);
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

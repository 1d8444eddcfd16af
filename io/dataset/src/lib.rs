//! From files of prompts to samples held in memory.
//!
//! The caller opens the file; this crate takes any [`BufRead`](std::io::BufRead) and names no file,
//! no clock and no socket. Everything is read and checked before anything is sent: a row that
//! cannot be used stops the reading with file, line, reason and how to mend it, because a request
//! made from half a row would be measured as if it meant something.
//!
//! ```text
//!  BufRead ─ Source ─┬─ jsonl ─┐
//!   (bytes, physical ├─ json  ─┼─ Row: (column, cell)… ─ Rows ─ Dataset
//!    lines, BOM,     ├─ csv   ─┘        chooses columns, checks, counts
//!    row bound)      └─ text  ──────────────────────────┘
//! ```
//!
//! * [`Format`] names what a file can be; each variant is one file of this crate.
//! * [`Columns`] says which column plays which [`Role`]; what is left open is chosen by name,
//!   and a choice that could go two ways is refused.
//! * [`Limits`] bound a row and the number of rows.
//! * [`Dataset`] is the result: a name and [`Sample`]s in file order.
//! * [`Conversations`] are read whole: several turns each, a history kept once.
//! * [`synthetic`] makes prompts where there is no file.
//! * [`Recording`] reads when requests came to a service and how long they were; [`Texts`] makes prompts of
//!   these lengths, with the shared beginnings that were recorded.
//!
//! Three rules hold in every format.
//!
//! **Text stays text.** No cell is read as a number because it looks like one: a CSV cell `00123`
//! is the prompt `00123`. A prompt that JSON itself calls a number is refused rather than printed
//! back: its quotes were lost on the way, and with them perhaps its leading zeros. (The truth of an
//! answer may be a JSON number; it is kept digit for digit.) The one column that is parsed is
//! `messages`, which holds OpenAI chat messages, as JSON or, in a CSV cell, as JSON text.
//!
//! **Lines are physical.** Errors and [`Sample::row`] count line feeds in the file, from 1,
//! whatever quoted line breaks or pretty-printed objects make of them. A byte order mark and CRLF
//! are taken as the editor's habit, not as text.
//!
//! **How the bytes arrive does not matter.** A reader that yields a byte at a time gives the same
//! samples and the same errors as one that yields the file whole.
//!
//! ```
//! use takt_dataset::{Dataset, Format, Options, Prompt};
//!
//! let file = "{\"question\": \"How much is 2 + 3?\", \"answer\": 5, \"max_tokens\": 16}\n";
//! let mut options = Options::default();
//! options.columns.truth = Some("answer".to_owned());
//! let format = Format::from_path("sums.jsonl".as_ref())?;
//!
//! let sums = Dataset::read(file.as_bytes(), "sums.jsonl", format, &options)?;
//! let first = sums.get(0).expect("one row was written");
//! assert_eq!(first.prompt, Prompt::Text("How much is 2 + 3?".into()));
//! assert_eq!(first.truth.as_deref(), Some("5"));
//! assert_eq!(first.params.get("max_tokens"), Some(&16.into()));
//! assert_eq!((sums.len(), first.row), (1, 1));
//!
//! let error = Dataset::read(&b"{\"prompt\": 7}"[..], "sums.jsonl", format, &Options::default());
//! assert!(error.unwrap_err().to_string().starts_with("sums.jsonl:1: "));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

#![forbid(unsafe_code)]

mod columns;
mod conversation;
mod csv;
mod dataset;
mod error;
mod format;
mod json;
mod jsonl;
mod params;
mod place;
mod recording;
mod row;
mod rows;
mod sample;
mod source;
mod synthetic;
mod text;
mod words;

pub use columns::{Columns, ColumnsUsed, PROMPT_COLUMNS, Role, SYSTEM_COLUMNS};
pub use conversation::{Conversation, ConversationFault, ConversationFormat, Conversations, Turn};
pub use dataset::{Dataset, Limits, Options};
pub use error::{DatasetError, Fault};
pub use format::{Format, UnknownFormat};
pub use params::Params;
pub use recording::{Call, Recording, RecordingFormat, Texts, TimesFormat, read_times};
pub use sample::{Prompt, Sample};
pub use synthetic::{Lengths, synthetic};

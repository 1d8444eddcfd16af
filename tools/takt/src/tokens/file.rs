//! A `tokenizer.json`, the format of Hugging Face's `tokenizers`.

use std::path::Path;

/// Counts the tokens of texts.
#[derive(Debug)]
pub(crate) struct Tokenizer(tokenizers::Tokenizer);

impl Tokenizer {
    pub(crate) fn open(path: &Path) -> anyhow::Result<Self> {
        let read = tokenizers::Tokenizer::from_file(path);
        let mut tokenizer =
            read.map_err(|error| anyhow::anyhow!("cannot be read as a tokenizer.json: {error}"))?;
        // Those are for batches that a model is to be fed; an answer is counted whole.
        let whole = tokenizer.with_truncation(None).map(|tokenizer| tokenizer.with_padding(None));
        whole.map_err(|error| anyhow::anyhow!("{error}"))?;
        Ok(Self(tokenizer))
    }

    /// How many tokens `text` is, without those that begin or end a text; `None` when it cannot be told.
    pub(crate) fn count(&self, text: &str) -> Option<u32> {
        let encoding = self.0.encode_fast(text, false).ok()?;
        u32::try_from(encoding.len()).ok()
    }
}

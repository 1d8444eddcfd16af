//! Events of an OpenAI stream, read by takt in each of its ways and by a model on top of serde_json.
//!
//! Input: the shape (`@` chat event, `A` whole chat answer, `B` completion), then pieces of JSON, a line each.
//! They are read one after the other with what the last ones taught, as the events of a stream are, and each
//! by itself.

use takt_wire::chat::{Learned, Shape, error_message, read};
use takt_wire::{BadJson, Delta, Text, TextSink};

use super::chat_model::{Read, model};
use super::pieces::options;

/// The target.
pub fn chat_delta(data: &[u8]) {
    let Some(([shape], data)) = options(data) else { return };
    let shape = [Shape::ChatEvent, Shape::ChatWhole, Shape::Completion][usize::from(shape & 3) % 3];
    let (mut kept, mut counted) = (Learned::default(), Learned::default());
    for event in data.split(|&byte| byte == b'\n') {
        let expect = model(event, shape);
        let without_text = expect.clone().map(|(delta, _)| (delta, Vec::new()));
        assert_eq!(by(|text| read(event, shape, text), true), expect, "scan with text");
        assert_eq!(by(|text| read(event, shape, text), false), without_text, "scan");
        assert_eq!(by(|text| kept.read(event, shape, text), true), expect, "learned with text");
        assert_eq!(by(|text| counted.read(event, shape, text), false), without_text, "learned");
        assert!(error_message(event).chars().count() <= 1000, "what the server says is bounded");
    }
}

fn by(read: impl FnOnce(Option<TextSink<'_>>) -> Result<Delta, BadJson>, keep: bool) -> Read {
    let mut texts = Vec::new();
    let mut sink = |text: Text<'_>| texts.push(format!("{text:?}"));
    let delta = read(if keep { Some(&mut sink) } else { None }).map_err(|_| ())?;
    Ok((delta, texts))
}

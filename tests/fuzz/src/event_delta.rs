//! Events of a stream, and whole answers, read by takt in each of its ways and by a model on top of serde_json.
//!
//! Input: the shape (`@` chat event, `A` whole chat answer, `B` completion, `C` responses event, `D` whole response,
//! `E` embeddings, `F` SGLang), then pieces of JSON, a line each. They are read one after the other with what the last
//! ones taught, as the events of a stream are, and each by itself.

use takt_wire::reader::{Reader, Shape, error_message, read};
use takt_wire::{BadJson, Delta, Text, TextSink};

use super::event_model::{Model, Read};
use super::pieces::options;

/// The target.
pub fn event_delta(data: &[u8]) {
    let Some(([shape], data)) = options(data) else { return };
    let shape = Shape::ALL[usize::from(shape & 7) % Shape::ALL.len()];
    let (mut kept, mut counted) = (Reader::default(), Reader::default());
    let mut model = Model::default();
    for event in data.split(|&byte| byte == b'\n') {
        let (alone, in_turn) = (Model::default().read(event, shape), model.read(event, shape));
        assert_eq!(by(|text| read(event, shape, text), true), alone, "scan with text");
        assert_eq!(by(|text| read(event, shape, text), false), silent(&alone), "scan");
        assert_eq!(by(|text| kept.read(event, shape, text), true), in_turn, "learned with text");
        assert_eq!(by(|text| counted.read(event, shape, text), false), silent(&in_turn), "learned");
        assert!(error_message(event).chars().count() <= 1000, "what the server says is bounded");
    }
}

fn silent(read: &Read) -> Read {
    read.clone().map(|(delta, _)| (delta, Vec::new()))
}

fn by(read: impl FnOnce(Option<TextSink<'_>>) -> Result<Delta, BadJson>, keep: bool) -> Read {
    let mut texts = Vec::new();
    let mut sink = |text: Text<'_>| texts.push(format!("{text:?}"));
    let delta = read(if keep { Some(&mut sink) } else { None }).map_err(|_| ())?;
    Ok((delta, texts))
}

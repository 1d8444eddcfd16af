//! The answers of SGLang's own route, `/generate`.
//!
//! Every frame of a stream holds the whole text so far, and the same shape, whole, is the answer that does
//! not stream. `finish_reason` is an object in the last frame and `null` before; `[DONE]` follows.

use takt_time::Span;

use crate::json;
use crate::openai::{Finish, Usage, ids, words};
use crate::said::Said;

/// One frame.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Frame<'a> {
    pub(crate) id: &'a [u8],
    /// `completion` is what has come so far.
    pub(crate) usage: Usage,
    /// Set in the last frame.
    pub(crate) finish: Option<Finish>,
    /// From the start of service to this frame.
    pub(crate) since: Span,
    /// What is said, if not prepared words.
    pub(crate) said: Option<&'a Said>,
}

impl Frame<'_> {
    pub(crate) fn write(&self, out: &mut Vec<u8>) {
        // No more tokens than a plan has, and those are counted in 32 bits.
        let tokens = self.usage.completion as u32;
        out.extend_from_slice(b"{\"text\":\"");
        words(out, 0..tokens, self.said);
        out.extend_from_slice(b"\",\"output_ids\":[");
        ids(out, 0..tokens);
        out.extend_from_slice(b"],\"meta_info\":{\"id\":\"");
        json::text(out, self.id);
        out.extend_from_slice(b"\",\"finish_reason\":");
        match self.finish {
            None => out.extend_from_slice(b"null"),
            Some(Finish::Stop) => out.extend_from_slice(b"{\"type\":\"stop\",\"matched\":2}"),
            Some(Finish::Length) => {
                out.extend_from_slice(b"{\"type\":\"length\",\"length\":");
                json::number(out, self.usage.completion);
                out.push(b'}');
            }
        }
        out.extend_from_slice(b",\"prompt_tokens\":");
        json::number(out, self.usage.prompt);
        out.extend_from_slice(b",\"weight_version\":\"default\",\"total_retractions\":0");
        out.extend_from_slice(b",\"completion_tokens\":");
        json::number(out, self.usage.completion);
        out.extend_from_slice(b",\"cached_tokens\":0,\"e2e_latency\":");
        out.extend_from_slice(self.since.as_secs_f64().to_string().as_bytes());
        out.extend_from_slice(b"}}");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_frame_holds_all_so_far_and_a_reason_at_the_end() {
        let mut out = Vec::new();
        let usage = Usage { prompt: 7, completion: 2 };
        let since = Span::from_millis(1_500);
        Frame { id: b"x", usage, finish: None, since, said: None }.write(&mut out);
        assert_eq!(
            String::from_utf8_lossy(&out),
            concat!(
                r#"{"text":" the time","output_ids":[1000,1001],"meta_info":{"id":"x","#,
                r#""finish_reason":null,"prompt_tokens":7,"weight_version":"default","#,
                r#""total_retractions":0,"completion_tokens":2,"cached_tokens":0,"#,
                r#""e2e_latency":1.5}}"#
            )
        );
        out.clear();
        Frame { id: b"x", usage, finish: Some(Finish::Length), since, said: None }.write(&mut out);
        let text = String::from_utf8_lossy(&out).into_owned();
        assert!(text.contains(r#""finish_reason":{"type":"length","length":2}"#), "{text}");
    }
}

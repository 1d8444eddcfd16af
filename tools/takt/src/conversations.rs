//! Conversations of a dataset made ready for the reactor: their turns as scripts, their messages as texts
//! from which requests are put together.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::BufReader;
use std::ops::Range;
use std::rc::Rc;
use std::sync::Arc;

use anyhow::{Context as _, ensure};
use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Map, Value};
use takt_actors::{
    Around, SALT_AT, Scripts, TalkText, TurnPlan, TurnRequests, TurnText, TurnTexts, salted,
};
use takt_dataset::{Conversation, Conversations, Limits, Params};
use takt_wire::{BodyBuilder, RequestBuilder};

use crate::config::{AgenticLoad, ConversationSource};
use crate::console::Console;

/// Reads a file of conversations.
pub(crate) fn read(source: &ConversationSource) -> anyhow::Result<Conversations> {
    let shown = source.path.display().to_string();
    let input = File::open(&source.path).with_context(|| format!("{shown}: cannot be opened"))?;
    let input = BufReader::with_capacity(1 << 20, input);
    Ok(Conversations::read(input, &shown, source.format, source.array, &Limits::default())?)
}

/// Says what of the file is not used.
pub(crate) fn log(conversations: &Conversations, console: &Console) {
    let (left_out, unasked) = (conversations.left_out(), conversations.unasked());
    if left_out > 0 {
        console.info(format!("  {left_out} conversations without a word of a user are left out"));
    }
    if unasked > 0 {
        console.info(format!("  {unasked} answers before the first question are left out"));
    }
    if conversations.silent() > 0 {
        console.info(format!("  {} recorded answers say nothing", conversations.silent()));
    }
}

/// Which turns there are, and when they were said.
pub(crate) fn scripts(conversations: &Conversations) -> Scripts {
    let mut scripts = Scripts::default();
    for talk in conversations.list() {
        scripts.push(talk.turns().iter().map(|turn| TurnPlan {
            number: turn.number,
            delay: turn.delay,
            is_tool: turn.is_tool,
        }));
    }
    scripts
}

/// Names of the conversations, for the records; none when they would be too much for the head of a journal.
pub(crate) fn ids(conversations: &Conversations) -> Vec<Box<str>> {
    let ids = || conversations.list().iter().map(|talk| talk.id.clone());
    if ids().map(|id| id.len() + 3).sum::<usize>() > IDS_MAX { Vec::new() } else { ids().collect() }
}

/// What the turns say, for `builders`.
pub(crate) fn texts(
    conversations: &Conversations,
    file: &str,
    builders: Vec<RequestBuilder>,
    body: &BodyBuilder,
    load: &AgenticLoad,
) -> anyhow::Result<TurnTexts> {
    ensure!(u32::try_from(conversations.turns()).is_ok(), "{file}: more than 2^32 turns");
    let mut texts = TurnTexts {
        builders,
        talks: Vec::with_capacity(conversations.list().len()),
        turns: Vec::with_capacity(conversations.turns()),
        around: Vec::new(),
    };
    let mut bodies = Bodies { body, known: BTreeMap::new(), last: None };
    for (number, talk) in conversations.list().iter().enumerate() {
        let (text, moved) = text(talk, file, load.salt)?;
        texts.talks.push(text);
        for turn in talk.turns() {
            let place = || format!("{file}:{}", turn.row);
            ensure!(
                !(load.live && turn.has_results),
                "{}: results of tools cannot follow what the model says in their place; use `history: \
                 recorded`",
                place()
            );
            let around = bodies.around(&turn.params, &mut texts.around).with_context(place)?;
            let asked = talk.asked_at(turn);
            let asked = asked.start + moved..asked.end + moved;
            texts.turns.push(TurnText { talk: number as u32, asked, around });
        }
    }
    Ok(texts)
}

/// The messages of a conversation, and by how much they are longer than in the dataset.
fn text(talk: &Conversation, file: &str, salt: bool) -> anyhow::Result<(TalkText, usize)> {
    let id = talk.id.clone();
    let system = talk.system();
    if !salt {
        let (messages, system_end) = (talk.messages().into(), system.len());
        return Ok((TalkText { id, messages, system_end, salt_at: 0 }, 0));
    }
    let (said, at) = plain_text(system).with_context(|| {
        format!(
            "{file}:{}: `enable_salt` marks system messages, and conversation {id} has none of plain text; \
             give it one or turn `enable_salt` off",
            talk.row
        )
    })?;
    let marked = salted(&said, &id);
    let messages = format!("{}{marked}{}", &system[..at.start], &talk.messages()[at.end..]);
    let moved = marked.len() - at.len();
    let (system_end, salt_at) = (system.len() + moved, at.start + SALT_AT);
    Ok((TalkText { id, messages: messages.into(), system_end, salt_at }, moved))
}

/// What a message says, if that is text, and where its content stands.
fn plain_text(message: &str) -> Option<(String, Range<usize>)> {
    #[derive(Deserialize)]
    struct Of<'a> {
        #[serde(borrow)]
        content: &'a RawValue,
    }
    let content = serde_json::from_str::<Of<'_>>(message).ok()?.content.get();
    let start = content.as_ptr().addr() - message.as_ptr().addr();
    Some((serde_json::from_str(content).ok()?, start..start + content.len()))
}

/// What stands around messages, each once.
struct Bodies<'b> {
    body: &'b BodyBuilder,
    known: BTreeMap<(Vec<u8>, Vec<u8>), u32>,
    last: Option<(Arc<Params>, u32)>,
}

impl Bodies<'_> {
    fn around(&mut self, params: &Arc<Params>, all: &mut Vec<Around>) -> anyhow::Result<u32> {
        if let Some((last, place)) = &self.last
            && (Arc::ptr_eq(last, params) || last == params)
        {
            return Ok(*place);
        }
        let row: Map<String, Value> =
            params.iter().map(|(name, value)| (name.to_owned(), value.clone())).collect();
        let (before, after) = self.body.around_messages(Some(&row))?;
        let next = all.len() as u32;
        let place = *self.known.entry((before, after)).or_insert_with_key(|(before, after)| {
            all.push(Around { before: before[..].into(), after: after[..].into() });
            next
        });
        self.last = Some((params.clone(), place));
        Ok(place)
    }
}

/// The requests of a phase.
pub(crate) fn requests(texts: Rc<TurnTexts>, load: &AgenticLoad) -> TurnRequests {
    let routing = load.routing.iter().map(|name| name.as_str().into()).collect();
    let mut requests = TurnRequests::new(texts).routing_headers(routing);
    if load.salt {
        requests = requests.with_salt();
    }
    if load.live {
        requests = requests.with_live_history();
    }
    requests
}

/// Bytes of names in the head of a journal.
const IDS_MAX: usize = 4 << 20;

#[cfg(test)]
mod tests {
    use serde_json::json;
    use takt_dataset::ConversationFormat;

    use super::*;

    /// The only conversation of `messages`, at line 2.
    fn talk(messages: &Value) -> Conversation {
        let file = format!("\n{}\n", json!({"id": "c1", "messages": messages}));
        let format = ConversationFormat::Messages;
        let read =
            Conversations::read(file.as_bytes(), "f", format, false, &Limits::default()).unwrap();
        read.list()[0].clone()
    }

    #[test]
    fn a_salt_changes_what_the_first_message_says_and_nothing_else() {
        for first in [
            json!({"role": "system", "content": "S"}),
            json!({"role": "developer", "content": "be \"nice\"\n"}),
            json!({"content": "S", "name": "[salt: ", "role": "developer", "weight": [1, null]}),
        ] {
            let talk = talk(&json!([first, {"role": "user", "content": "q"}]));
            let turn = &talk.turns()[0];
            let (text, moved) = text(&talk, "f", true).unwrap();
            let mut expect = first.clone();
            let said = first["content"].as_str().unwrap();
            expect["content"] = format!("[salt: 0000]\n\n{said}\n\n[salt: 6d82]").into();
            let system: Value = serde_json::from_str(&text.messages[..text.system_end]).unwrap();
            assert_eq!(system, expect);
            assert_eq!(&text.messages[text.salt_at - 7..text.salt_at + 5], "[salt: 0000]");
            let asked = talk.asked_at(turn);
            let asked = &text.messages[asked.start + moved..asked.end + moved];
            assert_eq!(asked, talk.asked(turn));
        }
    }

    #[test]
    fn what_cannot_be_salted_is_refused_with_its_line() {
        let user = json!({"role": "user", "content": "q"});
        let parts = json!([{"type": "text", "text": "S"}]);
        for messages in [
            json!([user]),
            json!([{"role": "system", "content": parts}, user]),
            json!([{"role": "developer", "content": parts}, user]),
        ] {
            let error = text(&talk(&messages), "f", true).unwrap_err().to_string();
            assert!(error.starts_with("f:2: ") && error.contains("none of plain text"), "{error}");
            assert!(error.contains("; "), "no remedy: {error}");
            text(&talk(&messages), "f", false).unwrap();
        }
    }
}

//! Conversations of a dataset made ready for the reactor: their turns as scripts, their messages as texts
//! from which requests are put together.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::BufReader;
use std::rc::Rc;
use std::sync::Arc;

use anyhow::{Context as _, ensure};
use serde_json::{Map, Value};
use takt_actors::{Around, Scripts, TalkText, TurnPlan, TurnRequests, TurnText, TurnTexts, salted};
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
                !(load.live && turn.is_tool),
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
        let text = TalkText { id, messages: talk.messages().into(), system_end: system.len() };
        return Ok((text, 0));
    }
    let said = serde_json::from_str::<Value>(system).ok();
    let said = said.as_ref().and_then(|message| message.get("content")?.as_str());
    let said = said.with_context(|| {
        format!(
            "{file}:{}: `enable_salt` marks system messages, and conversation {id} has none of plain text; \
             give it one or turn `enable_salt` off",
            talk.row
        )
    })?;
    let marked = salted(said, &id);
    let messages = format!("{marked}{}", &talk.messages()[system.len()..]);
    let moved = marked.len() - system.len();
    Ok((TalkText { id, messages: messages.into(), system_end: marked.len() }, moved))
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

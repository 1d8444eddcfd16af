//! What can be wrong with a conversation, beyond what can be wrong with a row.

/// A fault of a message or of its place; the text of each is reason, semicolon, remedy.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ConversationFault {
    /// A column that every row must have.
    #[error(
        "no column `{0}`; a row of an agentic file is one message, with `conversation_id`, `turn`, `role` \
         and `content`"
    )]
    Missing(&'static str),
    /// A conversation's name that cannot be sent as a header.
    #[error(
        "`conversation_id` must be printable ASCII and not empty, not {0}; rename the conversation"
    )]
    Id(String),
    /// A name that an earlier row has.
    #[error(
        "conversation `{name}` stands on line {line}, too; rename one of them, or leave their names out: then \
         their lines name them"
    )]
    Twice {
        /// The name.
        name: Box<str>,
        /// The line of the other.
        line: u64,
    },
    /// Rows of one conversation with others between them.
    #[error("conversation `{0}` goes on here after others began; put its rows together")]
    Interleaved(Box<str>),
    /// A turn number out of its order.
    #[error(
        "`turn` must be {want} here, not {found}; number the rows of a conversation 1, 2, 3, …"
    )]
    Number {
        /// The number that comes next.
        want: u32,
        /// What stands there.
        found: String,
    },
    /// A role that there is none of.
    #[error("`role` must be user, assistant or tool, not {0}; correct it")]
    Role(String),
    /// A role that may not come here.
    #[error("{found} after {before}; {want} may come there")]
    Order {
        /// Who speaks.
        found: &'static str,
        /// What came before.
        before: &'static str,
        /// Who might have spoken.
        want: &'static str,
    },
    /// A message that says nothing.
    #[error("a message of {0} without content; give it text{1}")]
    Silent(&'static str, &'static str),
    /// A tool call that is none.
    #[error(
        "`tool_calls`: {0}; write [{{\"id\": \"call_1\", \"type\": \"function\", \"function\": \
         {{\"name\": \"f\", \"arguments\": \"{{}}\"}}}}]"
    )]
    Calls(String),
    /// Results of tools that are none.
    #[error("`tool_results`: {0}; write [{{\"tool_call_id\": \"call_1\", \"content\": \"…\"}}]")]
    Results(String),
    /// A delay that is no time.
    #[error(
        "`delay_seconds` must be a number of seconds, 0 or more, not {0}; write it without quotes and sign, \
         or leave it out"
    )]
    Delay(String),
    /// A list of messages that is none.
    #[error("{0}; correct the row or remove it")]
    List(String),
}

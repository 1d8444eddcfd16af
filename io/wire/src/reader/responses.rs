//! The words of the responses API: what its events, items and states are called.

use super::found::What;
use crate::delta::FinishReason;

/// What an event is about, by its `type`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Says<'k> {
    /// Its `delta` is text of this kind.
    Text(What),
    /// An item was added to the output.
    Added,
    /// The response is at its end, in this state.
    End(&'k [u8]),
    /// The server failed.
    Error,
    /// Nothing that is of account here.
    Nothing,
}

/// What an event of type `kind` is about.
pub(super) fn says(kind: &[u8]) -> Says<'_> {
    if kind == b"error" {
        return Says::Error;
    }
    let Some(kind) = kind.strip_prefix(b"response.") else { return Says::Nothing };
    match kind {
        b"output_text.delta" | b"refusal.delta" => Says::Text(What::Content),
        b"reasoning_text.delta"
        | b"reasoning_summary_text.delta"
        | b"reasoning.delta"
        | b"reasoning_summary.delta" => Says::Text(What::Reasoning),
        b"function_call_arguments.delta"
        | b"mcp_call_arguments.delta"
        | b"mcp_call.arguments_delta"
        | b"custom_tool_call_input.delta"
        | b"code_interpreter_call_code.delta" => Says::Text(What::ToolCall),
        b"output_item.added" => Says::Added,
        b"completed" | b"incomplete" | b"failed" | b"cancelled" => Says::End(kind),
        b"error" => Says::Error,
        _ => Says::Nothing,
    }
}

/// Whether an item of this type is a call of a tool.
pub(super) fn is_call(kind: &[u8]) -> bool {
    kind.ends_with(b"_call")
}

/// Whether an item of this type asks the client to run a tool.
pub(super) fn hands_over(kind: &[u8]) -> bool {
    matches!(kind, b"function_call" | b"custom_tool_call")
}

/// Why a response in this state ended; `None` when it did not end well.
pub(super) fn ends_at(
    state: &[u8],
    incomplete: Option<&[u8]>,
    hands_over: bool,
) -> Option<FinishReason> {
    match (state, incomplete) {
        (b"completed", _) if hands_over => Some(FinishReason::ToolCalls),
        (b"completed", _) => Some(FinishReason::Stop),
        (b"incomplete", Some(b"max_output_tokens" | b"max_tokens")) => Some(FinishReason::Length),
        (b"incomplete", Some(b"content_filter")) => Some(FinishReason::ContentFilter),
        (b"incomplete", _) => Some(FinishReason::Other),
        _ => None,
    }
}

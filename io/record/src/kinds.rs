//! Closed lists that records and results share. The words in JSON are those of `as_str`.

use serde::{Deserialize, Serialize};

/// Declares a closed list: an enum with one word and one number per member.
macro_rules! closed_list {
    ($(#[$doc:meta])* $name:ident { $($(#[$mdoc:meta])* $member:ident = $word:literal,)+ }) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
        pub enum $name { $($(#[$mdoc])* #[serde(rename = $word)] $member,)+ }

        impl $name {
            /// All members, in order.
            pub const ALL: &'static [Self] = &[$(Self::$member,)+];

            /// The word for it in results and events.
            #[must_use]
            pub const fn as_str(self) -> &'static str {
                match self { $(Self::$member => $word,)+ }
            }

            /// Its place in [`Self::ALL`], which is its code in a record.
            #[must_use]
            pub const fn code(self) -> u8 {
                self as u8
            }

            /// The member with that code.
            #[must_use]
            pub fn from_code(code: u8) -> Option<Self> {
                Self::ALL.get(usize::from(code)).copied()
            }
        }

        impl std::fmt::Display for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str(self.as_str())
            }
        }
    };
}

closed_list! {
    /// What went wrong with a request. Results count failures by these words.
    ErrorKind {
        /// The endpoint refused the connection, or could not be reached.
        ConnectRefused = "connect_refused",
        /// No connection within `connect_timeout`.
        ConnectTimeout = "connect_timeout",
        /// The TLS handshake or record layer failed.
        Tls = "tls",
        /// The peer reset or closed the connection before an answer began.
        Reset = "reset",
        /// An answer began and did not end as it must.
        Truncated = "truncated",
        /// A status outside 2xx.
        HttpStatus = "http_status",
        /// The server said in its answer that it failed.
        ApiError = "api_error",
        /// JSON was due and something else came.
        BadJson = "bad_json",
        /// Not HTTP, or HTTP framed wrongly.
        BadFraming = "bad_framing",
        /// A content type that the API does not allow here.
        ContentType = "content_type",
        /// Head, event or body above the limit.
        TooLarge = "too_large",
        /// No byte of an answer within `first_byte_timeout`.
        FirstByteTimeout = "first_byte_timeout",
        /// No end within `request_timeout`.
        RequestTimeout = "request_timeout",
        /// No end of a conversation's turn within `turn_timeout`.
        TurnTimeout = "turn_timeout",
        /// This machine's own limit: descriptors, ports, memory.
        LocalLimit = "local_limit",
        /// A fault of takt.
        Internal = "internal",
    }
}

closed_list! {
    /// Whose fault a failure is, as far as the client can tell.
    Blame {
        /// The server answered wrongly or with an error.
        Server = "server",
        /// The connection, or nobody in particular.
        Network = "network",
        /// This machine or takt.
        Client = "client",
    }
}

closed_list! {
    /// How far a request had come when it failed.
    Stage {
        /// Waiting for a connection.
        Queue = "queue",
        /// The TCP connection was being made.
        Connect = "connect",
        /// The TLS handshake was under way.
        Tls = "tls",
        /// The request was being written.
        Write = "write",
        /// Written; no byte of an answer yet.
        Wait = "wait",
        /// Reading the head.
        Head = "head",
        /// Reading the body, before any token.
        Body = "body",
        /// After the first token.
        Stream = "stream",
    }
}

closed_list! {
    /// Why the server stopped generating, in the words of the OpenAI APIs.
    FinishReason {
        /// A natural end or a stop sequence.
        Stop = "stop",
        /// The token limit.
        Length = "length",
        /// Tool calls.
        ToolCalls = "tool_calls",
        /// Filtered.
        ContentFilter = "content_filter",
        /// The older form of tool calls.
        FunctionCall = "function_call",
        /// Any other word.
        Other = "other",
    }
}

closed_list! {
    /// Who counted tokens.
    TokenSource {
        /// The server's usage object at the end.
        Usage = "usage",
        /// The server's usage in each event.
        ContinuousUsage = "continuous_usage",
        /// A tokenizer of ours on the text.
        Tokenizer = "tokenizer",
        /// One per token event: an estimate.
        Events = "events",
        /// The ids of the tokens that came with the text.
        TokenIds = "token_ids",
    }
}

closed_list! {
    /// What a phase is for.
    PhaseKind {
        /// Tracked and reported.
        Performance = "performance",
        /// Untracked; responses kept and scored.
        Accuracy = "accuracy",
        /// Untracked; brings the endpoint to its state.
        Warmup = "warmup",
    }
}

closed_list! {
    /// How a phase ended.
    PhaseState {
        /// As planned.
        Complete = "complete",
        /// `max_duration` cut it.
        Capped = "capped",
        /// A stop was asked for.
        Interrupted = "interrupted",
        /// The session failed.
        Failed = "failed",
    }
}

closed_list! {
    /// Why a session could not go on.
    FailedBy {
        /// The transport gave up.
        Transport = "transport",
        /// Nothing came from the endpoint for `endpoint_response_idle_timeout`, though requests were in
        /// flight.
        EndpointIdle = "endpoint_idle",
        /// `run_timeout` was over.
        RunTimeout = "run_timeout",
        /// A fault of takt.
        Internal = "internal",
        /// The clock outside the reactor (`engine.pacer`) has gone.
        Pacer = "pacer",
    }
}

closed_list! {
    /// What ended the issuing of a phase.
    EndedBy {
        /// `requests` were issued.
        Requests = "requests",
        /// `duration` was over.
        Duration = "duration",
        /// The dataset was through, once or in whole passes.
        Dataset = "dataset",
        /// `max_duration` was over.
        MaxDuration = "max_duration",
        /// The strategy had nothing more (a trace at its end, a strategy of one's own).
        Strategy = "strategy",
        /// A stop was asked for.
        Stop = "stop",
        /// The session failed.
        Failure = "failure",
        /// As many conversations as were asked for are over.
        Conversations = "conversations",
        /// The first conversation ended that none was left to follow
        /// (`stop_issuing_on_first_user_complete`).
        FirstComplete = "first_user_complete",
    }
}

closed_list! {
    /// How a conversation ended.
    ConversationState {
        /// All its turns were answered.
        Completed = "completed",
        /// A turn failed; the turns after it are skipped.
        Failed = "failed",
        /// Its phase was over before it was.
        Stopped = "stopped",
    }
}

closed_list! {
    /// What an event says, in the words of the field where it has one.
    EventType {
        /// First of a session.
        SessionStarted = "session.started",
        /// A tracking window opens.
        TrackingStarted = "session.start_performance_tracking",
        /// A tracking window closes.
        TrackingStopped = "session.stop_performance_tracking",
        /// A stop was asked for.
        SessionInterrupted = "session.interrupted",
        /// Last of a session.
        SessionEnded = "session.ended",
        /// A request was issued.
        SampleIssued = "sample.issued",
        /// Its first token event.
        SampleRecvFirst = "sample.recv_first",
        /// A later one.
        SampleRecvNonFirst = "sample.recv_non_first",
        /// A request ended.
        SampleComplete = "sample.complete",
        /// A request failed.
        ErrorGeneric = "error.generic",
        /// The session cannot go on.
        ErrorSession = "error.session",
        /// A phase begins; the field has no word for it, nor for those below.
        PhaseStarted = "phase.started",
        /// A phase issues no more.
        PhaseIssuingEnded = "phase.issuing_ended",
        /// A phase is over.
        PhaseEnded = "phase.ended",
        /// Text of an answer that has not ended.
        SampleText = "sample.text",
        /// A conversation begins.
        ConversationStarted = "conversation.started",
        /// A conversation is over.
        ConversationEnded = "conversation.ended",
        /// The profiler of the server is about to be started.
        WindowOpened = "window.opened",
        /// It was stopped.
        WindowClosed = "window.closed",
        /// Both clocks, read together.
        Clock = "instrument.clock",
        /// What the instrument says of itself.
        Health = "instrument.health",
    }
}

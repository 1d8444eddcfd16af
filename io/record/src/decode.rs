//! Bytes into records: the mirror of `encode`. Any bytes give a record or an error, never a panic.

use takt_time::{Anchor, Nanos, Span};

use crate::codec::{
    CodecErrorKind, FAILURE_STATUS, MAX_TEXT_BYTES, MORE, State, completed, conversation, health,
    issued, more, phase_event, present, session_event, tag, token, window_event,
};
use crate::kinds::{
    Blame, ConversationState, EndedBy, ErrorKind, FailedBy, FinishReason, PhaseState, Stage,
    TokenSource,
};
use crate::records::{
    Completed, ConversationEnd, ConversationEvent, ConversationRecord, Failure, Health, Issued,
    Outcome, PhaseEvent, PhaseId, PhaseRecord, Record, RequestKey, SessionEvent, SessionRecord,
    Text, TextKind, Times, Token, TokenCounts, TurnOf, WindowEvent, WindowRecord,
};
use crate::varint::Take;
use crate::work::Work;

type Decoded<T> = Result<T, CodecErrorKind>;

/// Takes one record off `take`.
#[inline(always)]
pub(crate) fn record<'a>(take: &mut Take<'a>, state: &mut State) -> Decoded<Record<'a>> {
    let mut first = take.byte()?;
    if first == tag::PHASE_CHANGE {
        state.phase = take.number_u16()?;
        first = take.byte()?;
    }
    let mut decode = Decode { take, state };
    match first & tag::KIND {
        tag::TOKEN => decode.token(first).map(Record::Token),
        tag::ISSUED => decode.issued(first).map(Record::Issued),
        tag::COMPLETED => decode.completed(first).map(Record::Completed),
        _ => decode.other(first),
    }
}

struct Decode<'t, 'a> {
    take: &'t mut Take<'a>,
    state: &'t mut State,
}

impl<'a> Decode<'_, 'a> {
    #[inline]
    fn token(&mut self, tag: u8) -> Decoded<Token> {
        Ok(Token {
            at: self.at()?,
            key: self.key()?,
            first: tag & token::FIRST != 0,
            tokens: self.given(tag & token::TOKENS != 0, Take::number_u32)?,
            content: tag & token::CONTENT != 0,
            reasoning: tag & token::REASONING != 0,
            tool_call: tag & token::TOOL_CALL != 0,
            coalesced: tag & token::COALESCED != 0,
        })
    }

    #[inline]
    fn issued(&mut self, tag: u8) -> Decoded<Issued> {
        if tag & !issued::ALL != 0 {
            return Err(CodecErrorKind::Tag(tag));
        }
        let at = self.at()?;
        Ok(Issued {
            at,
            key: self.key()?,
            sample: self.take.number_u32()?,
            scheduled: self.given(tag & issued::SCHEDULED != 0, |t| nanos(t, at))?,
            turn: self.given(tag & issued::TURN != 0, turn)?,
        })
    }

    fn completed(&mut self, tag: u8) -> Decoded<Completed> {
        let here = self.take.u16()?;
        let words = self.take.byte()?;
        let finish = word(words & 0xf, FinishReason::from_code)?;
        let source = word((words & !MORE) >> 4, TokenSource::from_code)?;
        let further = if words & MORE == 0 { 0 } else { self.take.byte()? };
        if further & !more::ALL != 0 || (words & MORE != 0 && further == 0) {
            return Err(CodecErrorKind::Tag(further));
        }
        let endpoint = self.given(further & more::ENDPOINT != 0, Take::number_u16)?.unwrap_or(0);
        let socket_wait = self.given(further & more::SOCKET_WAIT != 0, span)?;
        let end = self.at()?;
        let key = self.key()?;
        let sample = self.take.number_u32()?;
        let times = Times { socket_wait, ..self.times(here, end)? };
        let input = self.given(here & present::INPUT != 0, Take::number_u32)?;
        let output = self.given(here & present::OUTPUT != 0, Take::number_u32)?;
        let tokens = TokenCounts {
            input,
            output,
            cached: self.given(here & present::CACHED != 0, Take::number_u32)?,
            first_event: self.given(here & present::FIRST_EVENT_TOKENS != 0, Take::number_u32)?,
            events: count(self.take.step(output.unwrap_or(0).into())?)?,
            coalesced: self.take.number_u32()?,
            source,
        };
        let body_bytes = self.take.number()?;
        let attempts = self.given(tag & completed::ATTEMPTS != 0, Take::byte)?.unwrap_or(1);
        let status = match (tag & completed::STATUS_200 != 0, here & present::STATUS != 0) {
            (false, false) => None,
            (true, false) => Some(200),
            (false, true) => Some(self.take.number_u16()?),
            (true, true) => return Err(CodecErrorKind::Tag(tag)),
        };
        let outcome = match tag & completed::OUTCOME {
            0 => Outcome::Ok,
            completed::FAILED => Outcome::Failed(self.failure()?),
            completed::UNANSWERED => Outcome::Unanswered,
            _ => return Err(CodecErrorKind::Tag(tag)),
        };
        Ok(Completed {
            key,
            sample,
            outcome,
            times,
            tokens,
            finish,
            status,
            attempts,
            reused: tag & completed::REUSED != 0,
            body_bytes,
            endpoint,
            turn: self.given(tag & completed::TURN != 0, turn)?,
        })
    }

    #[inline]
    fn times(&mut self, here: u16, end: Nanos) -> Decoded<Times> {
        let issued = nanos(self.take, end)?;
        let scheduled = self.given(here & present::SCHEDULED != 0, |t| nanos(t, issued))?;
        let connect = self.given(here & present::CONNECT != 0, span)?;
        let tls = self.given(here & present::TLS != 0, span)?;
        let mut last = issued;
        let mut next = |bit: u16| -> Decoded<Option<Nanos>> {
            if here & bit == 0 {
                return Ok(None);
            }
            last = nanos(self.take, last)?;
            Ok(Some(last))
        };
        let times = Times {
            scheduled,
            issued,
            connect,
            tls,
            socket_wait: None,
            acquired: next(present::ACQUIRED)?,
            sent: next(present::SENT)?,
            written: next(present::WRITTEN)?,
            first_byte: next(present::FIRST_BYTE)?,
            first_event: next(present::FIRST_EVENT)?,
            first_token: next(present::FIRST_TOKEN)?,
            first_content: next(present::FIRST_CONTENT)?,
            last_token: None,
            end,
        };
        let last_token = self.given(here & present::LAST_TOKEN != 0, |t| nanos(t, end))?;
        Ok(Times { last_token, ..times })
    }

    fn other(&mut self, tag: u8) -> Decoded<Record<'a>> {
        match tag {
            tag::SESSION => self.session().map(Record::Session),
            tag::PHASE => self.phase().map(Record::Phase),
            tag::ERROR => Ok(Record::Error {
                at: self.at()?,
                key: self.key()?,
                failure: self.failure()?,
                message: self.str()?,
            }),
            tag::TEXT => Ok(Record::Text(Text {
                at: self.at()?,
                key: self.key()?,
                kind: match self.take.byte()? {
                    0 => TextKind::Content,
                    1 => TextKind::Reasoning,
                    2 => TextKind::ToolCalls,
                    _ => return Err(CodecErrorKind::Range),
                },
                text: self.str()?,
            })),
            tag::CLOCK => {
                Ok(Record::Clock(Anchor { mono: self.at()?, wall_ns: self.take.number()? }))
            }
            tag::HEALTH => self.health().map(Record::Health),
            tag::CONVERSATION => self.conversation().map(Record::Conversation),
            tag::WINDOW => self.window().map(Record::Window),
            _ => Err(CodecErrorKind::Tag(tag)),
        }
    }

    fn session(&mut self) -> Decoded<SessionRecord> {
        Ok(SessionRecord {
            at: self.at()?,
            event: match self.take.byte()? {
                session_event::STARTED => SessionEvent::Started,
                session_event::INTERRUPTED => SessionEvent::Interrupted,
                session_event::FAILED => {
                    SessionEvent::Failed(code(self.take.byte()?, FailedBy::from_code)?)
                }
                session_event::ENDED => SessionEvent::Ended,
                _ => return Err(CodecErrorKind::Range),
            },
        })
    }

    fn window(&mut self) -> Decoded<WindowRecord> {
        Ok(WindowRecord {
            at: self.at()?,
            event: match self.take.byte()? {
                window_event::OPENED => WindowEvent::Opened,
                window_event::CLOSED => WindowEvent::Closed,
                _ => return Err(CodecErrorKind::Range),
            },
        })
    }

    fn phase(&mut self) -> Decoded<PhaseRecord> {
        Ok(PhaseRecord {
            at: self.at()?,
            phase: PhaseId(self.take.number_u16()?),
            event: match self.take.byte()? {
                phase_event::STARTED => PhaseEvent::Started { inherited: self.take.number_u32()? },
                phase_event::TRACKING_STARTED => PhaseEvent::TrackingStarted,
                phase_event::ISSUING_ENDED => {
                    PhaseEvent::IssuingEnded { by: code(self.take.byte()?, EndedBy::from_code)? }
                }
                phase_event::TRACKING_STOPPED => PhaseEvent::TrackingStopped,
                phase_event::ENDED => {
                    PhaseEvent::Ended { state: code(self.take.byte()?, PhaseState::from_code)? }
                }
                _ => return Err(CodecErrorKind::Range),
            },
        })
    }

    fn conversation(&mut self) -> Decoded<ConversationRecord> {
        let here = self.take.byte()?;
        let at = self.at()?;
        let phase = PhaseId(self.take.number_u16()?);
        let conversation = self.take.number()?;
        let event = if here & conversation::ENDED == 0 {
            if here != 0 {
                return Err(CodecErrorKind::Tag(here));
            }
            ConversationEvent::Started { turns: self.take.number_u32()? }
        } else {
            ConversationEvent::Ended(ConversationEnd {
                how: code(here >> conversation::STATE, ConversationState::from_code)?,
                more: here & conversation::MORE != 0,
                began: nanos(self.take, at)?,
                turns: self.take.number_u32()?,
                succeeded: self.take.number_u32()?,
                failed: self.take.number_u32()?,
                skipped: self.take.number_u32()?,
                unsent: self.take.number_u32()?,
                waited: span(self.take)?,
                paused: span(self.take)?,
                input: self.given(here & conversation::INPUT != 0, Take::number)?,
                output: self.given(here & conversation::OUTPUT != 0, Take::number)?,
                cached: self.given(here & conversation::CACHED != 0, Take::number)?,
            })
        };
        Ok(ConversationRecord { at, phase, conversation, event })
    }

    fn health(&mut self) -> Decoded<Health> {
        let here = self.take.byte()?;
        if here & !health::ALL != 0 {
            return Err(CodecErrorKind::Tag(here));
        }
        Ok(Health {
            at: self.at()?,
            on_cpu: self.given(here & health::ON_CPU != 0, span)?,
            runnable: self.given(here & health::RUNNABLE != 0, span)?,
            stolen: self.given(here & health::STOLEN != 0, span)?,
            involuntary: self.given(here & health::INVOLUNTARY != 0, Take::number)?,
            busy: span(self.take)?,
            turns: self.take.number()?,
            longest_turn: span(self.take)?,
            timers: self.take.number()?,
            ready: self.take.number()?,
            messages: self.take.number()?,
            spilled: self.take.number()?,
            lost: self.take.number()?,
            connections: self.take.number()?,
            limited: self.take.number()?,
            secured: self.given(here & health::TLS != 0, Take::number)?.unwrap_or(0),
            resumed: self.given(here & health::TLS != 0, Take::number)?.unwrap_or(0),
            work: self.given(here & health::WORK != 0, work)?,
        })
    }

    fn failure(&mut self) -> Decoded<Failure> {
        let kind = code(self.take.byte()?, ErrorKind::from_code)?;
        let whose = self.take.byte()?;
        Ok(Failure {
            kind,
            blame: code(whose >> 4 & 0b111, Blame::from_code)?,
            stage: code(whose & 0xf, Stage::from_code)?,
            status: self.given(whose & FAILURE_STATUS != 0, Take::number_u16)?,
        })
    }

    fn str(&mut self) -> Decoded<&'a str> {
        let length = self.take.number()?;
        let length = usize::try_from(length).map_err(|_| CodecErrorKind::Text)?;
        if length > MAX_TEXT_BYTES {
            return Err(CodecErrorKind::Text);
        }
        std::str::from_utf8(self.take.bytes(length)?).map_err(|_| CodecErrorKind::Text)
    }

    #[inline]
    fn at(&mut self) -> Decoded<Nanos> {
        self.state.at = self.take.step(self.state.at)?;
        Ok(Nanos::from_nanos(self.state.at))
    }

    #[inline]
    fn key(&mut self) -> Decoded<RequestKey> {
        self.state.ordinal = self.take.step(self.state.ordinal)?;
        Ok(RequestKey { phase: PhaseId(self.state.phase), ordinal: self.state.ordinal })
    }

    #[inline]
    fn given<T>(
        &mut self,
        given: bool,
        read: impl FnOnce(&mut Take<'a>) -> Decoded<T>,
    ) -> Decoded<Option<T>> {
        if given { read(self.take).map(Some) } else { Ok(None) }
    }
}

fn nanos(take: &mut Take<'_>, from: Nanos) -> Decoded<Nanos> {
    take.step(from.as_nanos()).map(Nanos::from_nanos)
}

fn span(take: &mut Take<'_>) -> Decoded<Span> {
    take.number().map(Span::from_nanos)
}

fn work(take: &mut Take<'_>) -> Decoded<Work> {
    let mut counts = [0; Work::COUNTS];
    for count in &mut counts {
        *count = take.number()?;
    }
    let here = take.byte()?;
    // A bit for each: all that a byte has.
    const { assert!(Work::OPTIONS == 8) };
    let mut options = [None; Work::OPTIONS];
    for (bit, option) in options.iter_mut().enumerate() {
        if here >> bit & 1 != 0 {
            *option = Some(take.number()?);
        }
    }
    Ok(Work::new(counts, options))
}

fn turn(take: &mut Take<'_>) -> Decoded<TurnOf> {
    Ok(TurnOf { conversation: take.number()?, turn: take.number_u32()? })
}

fn count(number: u64) -> Decoded<u32> {
    u32::try_from(number).map_err(|_| CodecErrorKind::Range)
}

fn code<T>(code: u8, of: fn(u8) -> Option<T>) -> Decoded<T> {
    of(code).ok_or(CodecErrorKind::Range)
}

/// A code that is one higher than its list's, so that 0 is absent.
fn word<T>(word: u8, of: fn(u8) -> Option<T>) -> Decoded<Option<T>> {
    match word.checked_sub(1) {
        None => Ok(None),
        Some(found) => code(found, of).map(Some),
    }
}

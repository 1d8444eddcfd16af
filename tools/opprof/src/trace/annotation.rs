//! The annotation that marks a step of the model in a trace.
//!
//! vLLM 0.24 writes `execute_context_R(T)_generation_R(T)`: requests and tokens of both kinds. Later
//! versions write `execute_N_context_R(sqTsk…)_generation_R(sqTsk…)`, where `sq` is the tokens scheduled.

/// What a step was made of, by its annotation.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Composition {
    /// Requests that read their prompt.
    pub context_requests: u64,
    /// Their tokens.
    pub context_tokens: u64,
    /// Requests that generate.
    pub generation_requests: u64,
    /// Their tokens.
    pub generation_tokens: u64,
}

impl Composition {
    /// Reads the name of an annotation; `None` when it marks no step.
    #[must_use]
    pub fn parse(name: &str) -> Option<Self> {
        let rest = name.strip_prefix("execute_")?;
        let rest = match rest.strip_prefix("context_") {
            Some(rest) => rest,
            None => number(rest)?.1.strip_prefix("_context_")?,
        };
        let (context_requests, context_tokens, rest) = half(rest)?;
        let rest = rest.strip_prefix("_generation_")?;
        let (generation_requests, generation_tokens, rest) = half(rest)?;
        rest.is_empty().then_some(Self {
            context_requests,
            context_tokens,
            generation_requests,
            generation_tokens,
        })
    }
}

/// `R(T)` or `R(sqTsk…)`, and what follows.
fn half(text: &str) -> Option<(u64, u64, &str)> {
    let (requests, rest) = number(text)?;
    let (inside, rest) = rest.strip_prefix('(')?.split_once(')')?;
    let (tokens, more) = match inside.strip_prefix("sq") {
        Some(inside) => number(inside)?,
        None => number(inside)?,
    };
    (more.is_empty() || inside.starts_with("sq")).then_some((requests, tokens, rest))
}

fn number(text: &str) -> Option<(u64, &str)> {
    let end = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    Some((text[..end].parse().ok()?, &text[end..]))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_forms_are_read() {
        let of = |name| {
            let c = Composition::parse(name)?;
            Some([c.context_requests, c.context_tokens, c.generation_requests, c.generation_tokens])
        };
        assert_eq!(of("execute_context_5(640)_generation_1(1)"), Some([5, 640, 1, 1]));
        let long =
            "execute_32_context_0(sq0sk0sqsq0sqsk0)_generation_32(sq32sk55086sqsq32sqsk55086)";
        assert_eq!(of(long), Some([0, 0, 32, 32]));
        for other in [
            "execute_model",
            "ProfilerStep#3",
            "execute_context_5(640)",
            "execute_context_5(640)_generation_1(1)x",
            "execute_context_5(640x)_generation_1(1)",
            "execute_context_(1)_generation_1(1)",
        ] {
            assert_eq!(of(other), None, "{other}");
        }
    }
}

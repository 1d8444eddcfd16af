//! The few fields of an event that matter here, borrowed from its bytes.

use std::borrow::Cow;
use std::fmt;

use serde::Deserialize;
use serde::de::{Deserializer, IgnoredAny, MapAccess, Visitor};
use serde_json::value::RawValue;

use super::time::nanos;

/// An event of a trace.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Event<'a> {
    pub(super) phase: Cow<'a, str>,
    pub(super) category: Cow<'a, str>,
    pub(super) name: Cow<'a, str>,
    pub(super) ts_ns: Option<u64>,
    pub(super) dur_ns: Option<u64>,
    pub(super) correlation: Option<u64>,
    pub(super) device: Option<u64>,
    pub(super) stream: Option<u64>,
}

impl<'a> Event<'a> {
    /// Reads an event; `None` when the bytes are none.
    pub(super) fn parse(bytes: &'a [u8]) -> Option<Self> {
        serde_json::from_slice(bytes).ok()
    }
}

// By hand: traces repeat keys, which a derived reader refuses, and hold any type in any place.
impl<'de> Deserialize<'de> for Event<'de> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Fields;
        impl<'de> Visitor<'de> for Fields {
            type Value = Event<'de>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an event")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Event<'de>, A::Error> {
                let mut event = Event::default();
                while let Some(key) = map.next_key::<Text<'de>>()? {
                    match &*key.0 {
                        "ph" => event.phase = text(map.next_value()?),
                        "cat" => event.category = text(map.next_value()?),
                        "name" => event.name = text(map.next_value()?),
                        "ts" => event.ts_ns = nanos(map.next_value::<&RawValue>()?.get()),
                        "dur" => event.dur_ns = nanos(map.next_value::<&RawValue>()?.get()),
                        "args" => {
                            let raw: &RawValue = map.next_value()?;
                            let args: Args = serde_json::from_str(raw.get()).unwrap_or_default();
                            event.correlation = args.correlation;
                            event.device = args.device;
                            event.stream = args.stream;
                        }
                        _ => drop(map.next_value::<IgnoredAny>()?),
                    }
                }
                Ok(event)
            }
        }
        deserializer.deserialize_map(Fields)
    }
}

/// Text that is borrowed when it has no escapes.
#[derive(Deserialize)]
struct Text<'a>(#[serde(borrow)] Cow<'a, str>);

/// A text as it is; anything else as nothing.
fn text(raw: &RawValue) -> Cow<'_, str> {
    serde_json::from_str::<Text<'_>>(raw.get()).map(|text| text.0).unwrap_or_default()
}

/// The arguments that matter.
#[derive(Default)]
struct Args {
    correlation: Option<u64>,
    device: Option<u64>,
    stream: Option<u64>,
}

impl<'de> Deserialize<'de> for Args {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Fields;
        impl<'de> Visitor<'de> for Fields {
            type Value = Args;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("arguments")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Args, A::Error> {
                let mut args = Args::default();
                while let Some(key) = map.next_key::<Text<'de>>()? {
                    let place = match &*key.0 {
                        "correlation" => &mut args.correlation,
                        "device" => &mut args.device,
                        "stream" => &mut args.stream,
                        _ => {
                            map.next_value::<IgnoredAny>()?;
                            continue;
                        }
                    };
                    let raw: &RawValue = map.next_value()?;
                    *place = raw.get().trim_matches('"').parse().ok();
                }
                Ok(args)
            }
        }
        deserializer.deserialize_map(Fields)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_kernel_is_read() {
        let text = br#"{"ph": "X", "cat": "kernel", "name": "a\"b", "pid": 0, "tid": 7,
            "ts": 1419247333430.849, "dur": 2.24, "extra": [1],
            "args": {"External id": 1, "External id": 2, "device": 0, "stream": 7, "correlation": 8331,
            "grid": [1, 2, 3], "nested": {"correlation": 5}}}"#;
        let event = Event::parse(text).unwrap();
        assert_eq!((&*event.phase, &*event.category, &*event.name), ("X", "kernel", "a\"b"));
        assert_eq!((event.ts_ns, event.dur_ns), (Some(1_419_247_333_430_849), Some(2_240)));
        assert_eq!((event.correlation, event.device, event.stream), (Some(8331), Some(0), Some(7)));
    }

    #[test]
    fn odd_types_do_not_spoil_an_event() {
        let event = Event::parse(br#"{"ph":1,"name":null,"ts":"x","args":[1],"cat":"c"}"#).unwrap();
        assert_eq!(event, Event { category: "c".into(), ..Event::default() });
        let event =
            Event::parse(br#"{"args":{"stream":"7","device":-1,"correlation":1.5}}"#).unwrap();
        assert_eq!((event.stream, event.device, event.correlation), (Some(7), None, None));
        assert!(Event::parse(b"[]").is_none() && Event::parse(b"{\"a\":}").is_none());
    }
}

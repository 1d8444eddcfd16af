use super::*;

/// The illustrative record of the design, letter by letter.
const EXAMPLE: &str = r#"{"schema":1,"engine_id":"dp0-pid1234","step_index":42,"submit_wall_ns":1783761000000000000,"submit_mono_ns":8920000000,"complete_mono_ns":8922371000,"model_executed":true,"scheduled_requests":37,"decode_batch_size":32,"prefill_requests":5,"prefill_tokens":896,"decode_tokens":32,"chunked_prefill":{"first":2,"middle":1,"final":1,"unsplit":1,"tokens":896,"chunk_size_hist":[0,0,1,1,1,1,1,0,0]},"context_length_hist":[0,0,3,6,12,10,5,1,0,0,0,0],"preemptions":0,"queues":{"running":37,"waiting":9,"deferred":0},"kv":{"total_blocks":120000,"free_blocks":42000,"used_blocks":78000,"usage":0.65},"prefix":{"local":{"requests":2,"queries":4096,"hits":3072,"preempted_requests":0,"preempted_queries":0,"preempted_hits":0},"external":null},"cudagraph":{"hit":true,"runtime_mode":"PIECEWISE","unpadded_tokens":928,"bucket_tokens":1024,"padding_tokens":96},"moe_expert_load":null,"dropped_records_before":0}"#;

const FOOTER: &str = r#"{"schema":1,"footer":true,"engine_id":"dp0-pid13833","encoded":310,"written":310,"dropped":0,"queue_high_watermark":1,"unfinalized":0}"#;

#[track_caller]
fn refused(from: &str, to: &str) -> String {
    assert!(EXAMPLE.contains(from));
    step_line(EXAMPLE.replacen(from, to, 1).as_bytes()).unwrap_err().to_string()
}

#[test]
fn the_example_of_the_design_comes_back_letter_by_letter() {
    let StepLine::Record(record) = step_line(EXAMPLE.as_bytes()).unwrap() else { panic!() };
    assert_eq!((record.step_index, record.kv.usage, record.chunked_prefill.last), (42, 0.65, 1));
    assert!(matches!(record.engine_id, Cow::Borrowed("dp0-pid1234")));
    let mut out = Vec::new();
    record.write_line(&mut out);
    assert_eq!(String::from_utf8(out).unwrap(), format!("{EXAMPLE}\n"));
}

#[test]
fn a_footer_comes_back_letter_by_letter() {
    let StepLine::Footer(footer) = step_line(FOOTER.as_bytes()).unwrap() else { panic!() };
    let mut out = Vec::new();
    footer.write_line(&mut out);
    assert_eq!(String::from_utf8(out).unwrap(), format!("{FOOTER}\n"));
}

#[test]
fn an_edge_belongs_to_the_bin_below_it() {
    assert_eq!([0, 128, 129, 131_072, 131_073].map(context_bin), [0, 0, 1, 10, 11]);
    assert_eq!([1, 16, 17, 2048, 2049].map(chunk_bin), [0, 0, 1, 7, 8]);
}

#[test]
fn optional_fields_and_fields_of_the_future_are_read() {
    let more = r#""dropped_records_before":0,"scheduled_tokens":928,"resumed_tokens":7,"new":[1]"#;
    let line = EXAMPLE.replace(r#""dropped_records_before":0"#, more);
    let StepLine::Record(record) = step_line(line.as_bytes()).unwrap() else { panic!() };
    assert_eq!(record.scheduled_tokens, Some(928));
    assert_eq!((record.resumed_requests, record.resumed_tokens), (None, Some(7)));
}

#[test]
fn a_wrong_field_is_named_with_what_stands_there() {
    assert_eq!(
        refused("\"free_blocks\":42000", "\"free_blocks\":-1"),
        "kv.free_blocks: -1, expected a whole number, not negative"
    );
    assert_eq!(
        refused("[0,0,1,1,1,1,1,0,0]", "[0,0,1]"),
        "chunked_prefill.chunk_size_hist: [0,0,1], expected an array of length 9"
    );
    assert_eq!(refused("\"waiting\":9,", ""), "queues.waiting: missing, expected a value");
    assert_eq!(
        refused("\"moe_expert_load\":null,", ""),
        "moe_expert_load: missing, expected a value"
    );
    assert_eq!(
        refused("\"moe_expert_load\":null", "\"moe_expert_load\":0"),
        "moe_expert_load: 0, expected null"
    );
    assert_eq!(refused(",\"external\":null", ""), "prefix.external: missing, expected a value");
    assert_eq!(
        refused("[0,0,3,", "[0,-2,3,"),
        "context_length_hist[1]: -2, expected a whole number, not negative"
    );
    assert!(step_line(b"{\"schema\":1,").unwrap_err().to_string().starts_with("line: EOF"));
    let footer = FOOTER.replace("\"dropped\":0,", "");
    assert_eq!(step_line(footer.as_bytes()).unwrap_err().field, "dropped");
}

#[test]
fn escapes_in_text_are_read_too() {
    let line = EXAMPLE.replace("dp0-pid1234", "dp0\\u002dpid\\n");
    let StepLine::Record(record) = step_line(line.as_bytes()).unwrap() else { panic!() };
    assert_eq!(record.engine_id, "dp0-pid\n");
}

//! What goes wrong with files of prompts: rows that must stay as they are, and rows that must be
//! refused with place, reason and remedy. K4 and K6 are the rows of the catalogue of cases.

use takt_dataset::{Columns, Dataset, DatasetError, Format, Limits, Options, Prompt};

use Format::{Csv, Json, Jsonl, Text};

/// `prompt=a,system=b` as the mapping.
fn mapping(text: &str) -> Columns {
    let mut columns = Columns::default();
    for pair in text.split(',').filter(|pair| !pair.is_empty()) {
        let (role, column) = pair.split_once('=').expect("role=column");
        let slot = match role {
            "prompt" => &mut columns.prompt,
            "system" => &mut columns.system,
            "truth" => &mut columns.truth,
            other => panic!("no role {other}"),
        };
        *slot = Some(column.to_owned());
    }
    columns
}

fn read(format: Format, columns: &str, input: &[u8]) -> Result<Dataset, DatasetError> {
    let options = Options { columns: mapping(columns), ..Options::default() };
    Dataset::read(input, "f", format, &options)
}

fn show(prompt: &Prompt) -> &str {
    match prompt {
        Prompt::Text(text) => text,
        Prompt::Messages(json) => json.get(),
    }
}

/// Reads and compares the prompts.
fn reads(format: Format, columns: &str, input: impl AsRef<[u8]>, expect: &[&str]) -> Dataset {
    let set = read(format, columns, input.as_ref()).unwrap_or_else(|e| panic!("refused: {e}"));
    let got: Vec<_> = set.samples().iter().map(|s| show(&s.prompt)).collect();
    assert_eq!(got, expect);
    set
}

/// Expects to be refused with a message that starts with `start` (place and reason) and then says
/// `remedy` after a semicolon or comma.
fn refuses(format: Format, columns: &str, input: impl AsRef<[u8]>, start: &str, remedy: &str) {
    let message = match read(format, columns, input.as_ref()) {
        Ok(set) => panic!("accepted: {:?}", set.samples()),
        Err(error) => error.to_string(),
    };
    assert!(message.starts_with(start), "expected `{start}…`\n     got `{message}`");
    let rest = message[start.len()..].split_once(';').map_or("", |(_, rest)| rest);
    assert!(rest.contains(remedy), "expected `…; …{remedy}…`\n     got `{message}`");
}

// K4: text stays text.

#[test]
fn k4_digits_stay_text_in_every_format() {
    reads(Csv, "", "prompt\n123\n00123\n1e3\n", &["123", "00123", "1e3"]);
    reads(Csv, "", "prompt\ntrue\nnull\n[1]\n", &["true", "null", "[1]"]);
    reads(Text, "", "123\n00123\n", &["123", "00123"]);
    reads(Jsonl, "", r#"{"prompt":"00123"}"#, &["00123"]);
    reads(Json, "", r#"[{"prompt":"123"},{"prompt":"[1]"}]"#, &["123", "[1]"]);
}

#[test]
fn k4_prompt_that_json_calls_a_number_is_refused() {
    refuses(
        Jsonl,
        "",
        "{\"prompt\":\"a\"}\n{\"prompt\":123}",
        "f:2: column `prompt` must hold text or messages, not a number",
        "quotes",
    );
}

#[test]
fn k4_byte_order_mark_and_crlf_are_not_text() {
    reads(Csv, "", "\u{FEFF}prompt,x\r\na,1\r\n\"b\r\nc\",2\r\n", &["a", "b\r\nc"]);
    reads(Jsonl, "", "\u{FEFF}{\"prompt\":\"a\"}\r\n\r\n{\"prompt\":\"b\"}\r\n", &["a", "b"]);
    reads(Json, "", "\u{FEFF}[\r\n{\"prompt\":\"a\"}\r\n]\r\n", &["a"]);
    reads(Text, "", "\u{FEFF}a\r\n b \r\n\r\n", &["a", " b "]);
}

#[test]
fn k4_mark_inside_the_file_is_text() {
    reads(Text, "", "a\n\u{FEFF}b\n", &["a", "\u{FEFF}b"]);
}

#[test]
fn k4_quote_left_open_is_refused_where_it_opens() {
    let open = "prompt,x\na,1\n\"b,2\nc,3\n";
    refuses(Csv, "", open, "f:3: the quote that opens here is never closed", "close it");
    // A later quoted field shows the fault before the end of the file does.
    let taken_in = "prompt,x\n\"a,1\nb,\"2\"\n";
    let reason = "f:3: text after the quote that closes the field opened on line 2";
    refuses(Csv, "", taken_in, reason, "double");
    refuses(Csv, "", "prompt\nsay \"a\"\n", "f:2: a quote inside a field without quotes", "double");
}

#[test]
fn csv_rows_that_do_not_fit_are_refused() {
    refuses(Csv, "", "prompt,x\na,1\nb\n", "f:3: 1 fields where the header has 2", "quotes");
    refuses(Csv, "", "prompt,x\na,1,2\n", "f:2: 3 fields where the header has 2", "quotes");
    refuses(Csv, "", "prompt\na\n\nb\n\n", "f:3: an empty line between rows", "remove");
    refuses(Csv, "", "prompt\ra\r", "f:1: a carriage return without a line feed", "LF or CRLF");
    reads(Csv, "", "prompt\na\n\n\n", &["a"]);
    reads(Csv, "", "prompt,x\n\"a \"\"b\"\", c\",\"\"\n", &["a \"b\", c"]);
}

#[test]
fn lines_are_physical_after_quoted_line_breaks() {
    let set = reads(Csv, "", "prompt\n\"a\nb\"\nc\n", &["a\nb", "c"]);
    assert_eq!(set.samples().iter().map(|s| s.row).collect::<Vec<_>>(), [2, 4]);
    refuses(
        Csv,
        "",
        "prompt\n\"a\nb\"\n \n",
        "f:4: the prompt in column `prompt` is empty",
        "text",
    );
}

// K6: empty, smaller, larger.

#[test]
fn k6_empty_data_set_is_refused_in_every_format() {
    for format in [Csv, Json, Jsonl, Text] {
        for nothing in ["", "\u{FEFF}", "\n", "\r\n\n"] {
            refuses(format, "", nothing, "f: the data set is empty", "at least one row");
        }
    }
    refuses(Csv, "", "prompt,answer\n", "f: the data set is empty", "at least one row");
    refuses(Json, "", "[ ]", "f: the data set is empty", "at least one row");
}

#[test]
fn k6_index_past_the_end_is_none() {
    let set = reads(Text, "", "a\nb", &["a", "b"]);
    assert_eq!((set.len(), set.total_bytes(), set.is_empty()), (2, 2, false));
    assert!(set.get(1).is_some() && set.get(2).is_none());
}

// Columns.

#[test]
fn each_known_prompt_column_is_found() {
    for column in takt_dataset::PROMPT_COLUMNS {
        let text = r#"[{"role":"user","content":"hi"}]"#;
        let expect = if column == "messages" { text } else { "hi" };
        let cell = if column == "messages" { text.to_owned() } else { "\"hi\"".to_owned() };
        let row = format!("{{\"id\":1,\"{column}\":{cell},\"answer\":null}}");
        let set = reads(Jsonl, "", row, &[expect]);
        let used = set.columns().expect("JSONL has columns");
        assert_eq!(used.prompt, column);
        assert_eq!(used.ignored, ["id", "answer"]);
    }
}

#[test]
fn two_candidates_need_a_mapping() {
    let both = "instruction,input\na,b\n";
    refuses(
        Csv,
        "",
        both,
        "f:2: both `input` and `instruction` could be the prompt",
        "dataset.prompt: input",
    );
    reads(Csv, "prompt=instruction", both, &["a"]);
    refuses(
        Jsonl,
        "",
        r#"{"prompt":"a","system":"b","system_prompt":"c"}"#,
        "f:1: both `system` and `system_prompt` could be the system prompt",
        "dataset.system: system",
    );
    reads(Jsonl, "", r#"{"prompt":"a","messages":null}"#, &["a"]);
}

#[test]
fn missing_columns_are_named_with_what_is_there() {
    refuses(
        Jsonl,
        "",
        r#"{"turns":["a"],"id":1}"#,
        "f:1: no column is known to hold the prompt, there are `turns`, `id`",
        "dataset.prompt: COLUMN",
    );
    refuses(
        Csv,
        "",
        "prompt;x\na;1\n",
        "f:2: no column is known to hold the prompt, there is only `prompt;x`",
        "separate fields with commas",
    );
    refuses(
        Jsonl,
        "prompt=qestion",
        r#"{"question":"a"}"#,
        "f:1: no column `qestion` for the prompt, there is only `question`",
        "did you mean `dataset.prompt: question`?",
    );
    refuses(
        Jsonl,
        "truth=answer",
        "{\"prompt\":\"a\",\"answer\":1}\n{\"prompt\":\"b\"}",
        "f:2: no column `answer` for the truth, there is only `prompt`",
        "dataset.truth",
    );
    refuses(
        Jsonl,
        "",
        "{\"prompt\":\"a\"}\n{\"text\":\"b\"}",
        "f:2: no column `prompt` for the prompt, there is only `text`",
        "add it",
    );
    refuses(Jsonl, "", "{}", "f:1: no column is known to hold the prompt, there are none", "name");
}

#[test]
fn column_twice_is_refused_when_it_is_needed() {
    let twice = "f:1: column `prompt` stands here twice";
    refuses(Jsonl, "", r#"{"prompt":"a","prompt":"b"}"#, twice, "rename");
    refuses(Csv, "", "seed,prompt,seed\n1,a,2\n", "f:2: column `seed` stands here twice", "rename");
    reads(Csv, "", "x,prompt,x\n1,a,2\n", &["a"]);
}

#[test]
fn text_has_no_columns_to_map() {
    refuses(Text, "truth=answer", "a\n", "f: a text file has no columns", "`dataset.truth`");
}

#[test]
fn system_prompt_is_optional_and_shared_by_rows_that_repeat_it() {
    let rows = "system_prompt,prompt\nbe brief,a\nbe brief,b\n,c\n";
    let set = reads(Csv, "", rows, &["a", "b", "c"]);
    let [a, b, c] = set.samples() else { panic!("three rows") };
    let (a, b) = (a.system.as_ref().expect("given"), b.system.as_ref().expect("given"));
    assert!(&**a == "be brief" && std::sync::Arc::ptr_eq(a, b) && c.system.is_none());
    assert_eq!(set.total_bytes(), 3 + 2 * "be brief".len() as u64);
    refuses(
        Jsonl,
        "",
        r#"{"prompt":"a","system":3}"#,
        "f:1: column `system` must hold text, not a number",
        "quotes",
    );
}

#[test]
fn truth_keeps_its_spelling() {
    let rows = "{\"prompt\":\"a\",\"t\":1.50}\n{\"prompt\":\"b\",\"t\":\"1e2\"}\n\
                {\"prompt\":\"c\",\"t\":123456789012345678901234567890}";
    let set = reads(Jsonl, "truth=t", rows, &["a", "b", "c"]);
    let truths: Vec<_> = set.samples().iter().filter_map(|s| s.truth.as_deref()).collect();
    assert_eq!(truths, ["1.50", "1e2", "123456789012345678901234567890"]);
    let none = "f:2: no truth in column `t`";
    refuses(Csv, "truth=t", "prompt,t\na,\n", none, "dataset.truth");
    refuses(Json, "truth=t", "[\n{\"prompt\":\"a\",\"t\":null}]", none, "dataset.truth");
    refuses(
        Jsonl,
        "truth=t",
        r#"{"prompt":"a","t":[1]}"#,
        "f:1: column `t` must hold text or a number, not an array",
        "correct",
    );
}

// Prompts.

#[test]
fn empty_prompts_are_refused() {
    let empty = |line| format!("f:{line}: the prompt in column `prompt` is empty");
    refuses(Jsonl, "", r#"{"prompt":""}"#, &empty(1), "remove the row");
    refuses(Csv, "", "prompt,x\na,1\n,2\n", &empty(3), "remove the row");
    refuses(Csv, "", "prompt\n\"\"\n", &empty(2), "remove the row");
    refuses(Json, "", "[{\"prompt\":\"a\"},\n{\"prompt\":\" \\n\"}]", &empty(2), "remove the row");
    refuses(Text, "", "a\n \nb\n", "f:2: an empty line between rows", "remove it");
}

#[test]
fn prompt_of_another_type_is_refused() {
    for (cell, found) in
        [("true", "a boolean"), ("{}", "an object"), ("-1", "a number"), ("null", "null")]
    {
        let row = format!("{{\"x\":{cell}}}");
        let start = format!("f:1: column `x` must hold text or messages, not {found}");
        refuses(Jsonl, "prompt=x", row, &start, "");
    }
}

#[test]
fn messages_are_kept_as_they_are_written() {
    let parts = r#"[{"type":"text","text":"\u00e9"}]"#;
    let system = r#"{"role":"system","content":"s"}"#;
    let chat = &format!(r#"[{system}, {{"content":{parts},"role":"user","n":1.0}}]"#);
    reads(Jsonl, "", format!("{{\"messages\": {chat} }}"), &[chat]);
    reads(Json, "prompt=chat", format!("[{{\"chat\":{chat}}}]"), &[chat]);
    reads(Csv, "", format!("messages\n\"{}\"\n", chat.replace('"', "\"\"")), &[chat]);
}

#[test]
fn messages_that_no_endpoint_would_take_are_refused() {
    for (chat, reason) in [
        ("[]", "the array is empty"),
        ("[1]", "message 1 is no object"),
        (r#"[{"role":"user","content":"a"},{"content":"b"}]"#, "message 2 has no `role`"),
        (r#"[{"role":"user","content":3}]"#, "the content of message 1 is no text"),
        (r#"[{"role":"user","content":"\ud800"}]"#, "unexpected end of hex escape"),
        (r#""hello""#, "expected value"),
        (r#""{}""#, "they must be an array"),
    ] {
        let start = format!("f:1: column `messages` holds no chat messages: {reason}");
        refuses(Jsonl, "", format!("{{\"messages\":{chat}}}"), &start, "role");
    }
    let silent = r#"{"messages":[{"role":"user","content":""}]}"#;
    refuses(Jsonl, "", silent, "f:1: the prompt in column `messages` is empty", "remove");
    refuses(
        Jsonl,
        "",
        r#"{"system":"a","messages":[{"role":"system","content":"b"}]}"#,
        "f:1: a system prompt both in column `system` and among the messages",
        "remove one",
    );
}

// Parameters.

#[test]
fn parameters_come_typed_from_json_and_from_csv() {
    let json = r#"{"prompt":"a","max_tokens":16,"temperature":0.5,"stop":"\n","seed":null,"n":2}"#;
    let csv = "prompt,max_tokens,temperature,stop,seed,n\na,16,0.5,\"\n\",,2\n";
    let expect = [("max_tokens", 16.into()), ("temperature", 0.5.into()), ("stop", "\n".into())];
    for set in [reads(Jsonl, "", json, &["a"]), reads(Csv, "", csv, &["a"])] {
        let params = &set.get(0).expect("one row").params;
        let got: Vec<_> = params.iter().map(|(name, value)| (name, value.clone())).collect();
        assert_eq!(got, expect);
        let used = set.columns().expect("columns");
        assert_eq!(used.params, ["max_tokens", "temperature", "stop"]);
        assert_eq!(used.ignored, ["n"]);
    }
    let more = "prompt,ignore_eos,stop,tools\na,True,\"[\"\"x\"\"]\",[]\n";
    let set = reads(Csv, "", more, &["a"]);
    let params = &set.get(0).expect("one row").params;
    assert_eq!(params.get("ignore_eos"), Some(&true.into()));
    assert_eq!(params.get("stop"), Some(&serde_json::json!(["x"])));
    assert_eq!(params.get("tools"), Some(&serde_json::json!([])));
}

#[test]
fn parameters_of_the_wrong_type_are_refused() {
    for (name, cell, want, found) in [
        ("max_tokens", "\"16\"", "a whole number, not negative", "a string"),
        ("max_tokens", "16.0", "a whole number, not negative", "a number"),
        ("max_tokens", "-1", "a whole number, not negative", "a number"),
        ("top_k", "1e30", "a whole number", "a number"),
        ("temperature", "[]", "a number", "an array"),
        ("ignore_eos", "1", "true or false", "a number"),
        ("stop", "true", "a string, an array or an object", "a boolean"),
    ] {
        let row = format!("{{\"prompt\":\"a\",\"{name}\":{cell}}}");
        let start = format!("f:1: column `{name}` must hold {want}, not {found}");
        refuses(Jsonl, "", row, &start, "");
    }
    let csv = "f:2: column `temperature` must hold a number, not a string";
    refuses(Csv, "", "prompt,temperature\na,warm\n", csv, "");
    refuses(Csv, "", "prompt,tools\na,[1\n", "f:2: not JSON: EOF while parsing a list", "value");
    // A row's own column is no parameter when it has another role.
    reads(Jsonl, "prompt=stop", r#"{"stop":"a"}"#, &["a"]);
}

// Syntax.

#[test]
fn json_faults_name_physical_line_and_byte() {
    let cut = "{\"prompt\":\"a\"}\n\n{\"prompt\": \"b\n";
    refuses(Jsonl, "", cut, "f:3: not JSON at byte 13 of the line: EOF", "one object a line");
    refuses(Jsonl, "", "{\"prompt\":NaN}", "f:1: not JSON at byte 11 of the line", "object");
    refuses(Jsonl, "", "{} {}", "f:1: not JSON at byte 4 of the line: trailing", "one object");
    refuses(Jsonl, "", "hello", "f:1: not JSON at byte 1 of the line", "one object a line");
    refuses(
        Json,
        "",
        "[\n {\"prompt\":\n  oops}]",
        "f:3: not JSON at byte 3 of the line: expected value",
        "array of objects",
    );
    refuses(Json, "", "[ {\"prompt\" 1}]", "f:1: not JSON at byte 13 of the line", "array");
}

#[test]
fn rows_that_are_no_objects_are_refused() {
    for (row, found) in
        [("[1]", "an array"), ("\"a\"", "a string"), ("7", "a number"), ("null", "null")]
    {
        let start = format!("a row must be an object, this one is {found}");
        refuses(Jsonl, "", row, &format!("f:1: {start}"), "{\"prompt\": …}");
        let nested = format!("[\n\n{row}]");
        refuses(Json, "", nested, &format!("f:3: {start}"), "{\"prompt\": …}");
    }
}

#[test]
fn faults_between_the_rows_of_an_array_are_refused() {
    let row = "{\"prompt\":\"]},\\\"[\"}";
    reads(Json, "", format!(" [{row} , {row}\n] \n"), &["]},\"[", "]},\"["]);
    let at = |line, byte: usize| format!("f:{line}: not JSON at byte {byte} of the line: ");
    let end = 1 + row.len();
    for (text, place, reason) in [
        (format!("[{row} {row}]"), at(1, end + 2), "expected `,` or `]` after a row"),
        (format!("[{row},]"), at(1, end + 2), "expected a row after `,`"),
        (format!("[{row}"), at(1, end + 1), "expected `,` or `]` after a row"),
        (format!("[{row},\n"), at(2, 1), "the array is never closed"),
        (format!("[{row}]x"), at(1, end + 2), "expected nothing after the array"),
        ("[\n{\"a\":".to_owned(), at(2, 1), "the row that starts here is never closed"),
        ("[x]".to_owned(), at(1, 2), "expected a row"),
        ("[{\"a\":1]".to_owned(), at(1, 8), "expected `,` or `}`"),
    ] {
        refuses(Json, "", text, &(place + reason), "commas between them");
    }
    let object = "f:1: a JSON file must hold an array of rows, this one holds an object";
    refuses(Json, "", row, object, "dataset.format: jsonl");
}

#[test]
fn bytes_that_are_not_utf8_are_refused_where_they_stand() {
    let at = |line, byte| format!("f:{line}: not UTF-8 at byte {byte} of the line");
    refuses(Text, "", b"a\nb\xFFc\n", &at(2, 2), "UTF-8");
    refuses(Csv, "", b"prompt\n\"a\nb\xC3\"\n", &at(3, 2), "UTF-8");
    refuses(Jsonl, "", b"{\"prompt\":\"\xE9\"}", &at(1, 12), "UTF-8");
    refuses(Json, "", b"[\n{\"prompt\":\"\xE9\"}]", &at(2, 12), "UTF-8");
    refuses(Json, "", b" [{\"prompt\":\n\"\xE9\"}]", &at(2, 2), "UTF-8");
    for format in [Csv, Json, Jsonl, Text] {
        refuses(format, "", b"\xFF\xFEa\0\n\0", "f:1: this is UTF-16", "save the file as UTF-8");
    }
    // The halves of a letter in two fields do not make it whole.
    refuses(Csv, "", b"prompt,x\na\xC3,\xA9\n", &at(2, 2), "UTF-8");
}

// Bounds.

#[test]
fn rows_are_bounded_in_bytes_and_number() {
    let read = |format, input: &str, row_bytes_max, rows_max| {
        let limits = Limits { row_bytes_max, rows_max };
        let options = Options { limits, ..Options::default() };
        Dataset::read(input.as_bytes(), "f", format, &options).map_err(|e| e.to_string())
    };
    let json_row = r#"{"prompt":"aaaa"}"#;
    let n = json_row.len();
    for (format, input, row, line) in [
        (Text, "\u{FEFF}aaaa\r\naaaa\r\n".to_owned(), 4, 1),
        (Jsonl, format!("{json_row}\n{json_row}\r\n"), n, 1),
        (Json, format!("[\n{json_row},\n{json_row}\n]"), n, 2),
        (Csv, "text\n\"aa\nbb\"\n".to_owned(), "\"aa\nbb\"".len(), 2),
    ] {
        let fits = read(format, &input, row, 2);
        assert!(fits.is_ok(), "{format:?}: {fits:?}");
        let over = read(format, &input, row - 1, 2).expect_err("a byte over");
        let expect = format!("f:{line}: a row of more than {} bytes; ", row - 1);
        assert!(over.starts_with(&expect), "{over}");
    }
    let many = read(Text, "a\nb\nc\n", 9, 2).expect_err("a row over");
    assert!(many.starts_with("f:3: more than 2 rows; "), "{many}");
    let open = read(Csv, "text\n\"a\nbcdefghi\n", 8, 2).expect_err("an open quote");
    assert!(open.starts_with("f:2: a row of more than 8 bytes; "), "{open}");
    let long = read(Json, "[\n{\"a\":1,\n\"b\":2,\n\"c\":3}]", 18, 2).expect_err("a long row");
    assert!(long.starts_with("f:2: a row of more than 18 bytes; "), "{long}");
}

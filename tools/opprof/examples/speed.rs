//! How fast records are checked and a trace is attributed, a gigabyte of each, and in what memory.
//!
//! ```text
//! cargo run --release -p takt-opprof --example speed
//! ```
//!
//! Both are made while they are read; the time of making them is measured apart and taken off.
#![forbid(unsafe_code)]
#![allow(clippy::disallowed_methods, reason = "a program of its own, which reads a clock")]

use std::fmt::Write as _;
use std::io::{self, BufReader, Read};
use std::time::Instant;

use takt_opprof::{Families, GraphRun, Part, RankWork, Scheduled, StepCounter, Trace, check_file};
use takt_time::{Anchor, Nanos};

/// Text that is made as it is read, up to a size.
struct Made<F> {
    make: F,
    text: Vec<u8>,
    given: usize,
    left: u64,
}

impl<F: FnMut(&mut Vec<u8>)> Made<F> {
    fn new(bytes: u64, make: F) -> BufReader<Self> {
        BufReader::with_capacity(1 << 18, Self { make, text: Vec::new(), given: 0, left: bytes })
    }
}

impl<F: FnMut(&mut Vec<u8>)> Read for Made<F> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        if self.given == self.text.len() {
            self.text.clear();
            self.given = 0;
            if self.left > 0 {
                (self.make)(&mut self.text);
                self.left = self.left.saturating_sub(self.text.len() as u64);
            }
        }
        let part = into.len().min(self.text.len() - self.given);
        into[..part].copy_from_slice(&self.text[self.given..self.given + part]);
        self.given += part;
        Ok(part)
    }
}

fn records() -> impl FnMut(&mut Vec<u8>) {
    let mut counter = StepCounter::new("dp0-pid1");
    let mut at = 0;
    move |text| {
        for _ in 0..64 {
            at += 2_000_000;
            let mono = Nanos::from_nanos(at);
            let mut draft = counter.begin(Anchor { mono, wall_ns: 1_790_000_000_000_000_000 + at });
            for request in 0..40 {
                let part = if request < 3 { Part::Middle } else { Part::Decode };
                let tokens = if request < 3 { 256 } else { 1 };
                draft.schedule(Scheduled { tokens, context_after: 300 * request + 1, part });
            }
            draft.blocks(120_000, 42_000);
            let ran = GraphRun { mode: "PIECEWISE", bucket_tokens: 1024 };
            draft.complete(Nanos::from_nanos(at + 1_900_000), Some(ran)).write_line(text);
        }
    }
}

fn trace() -> impl FnMut(&mut Vec<u8>) {
    const NAMES: [&str; 5] = [
        "nvjet_tst_64x8_64x16_4x1_v_bz_TNT",
        "void cutlass::device_kernel<flash::enable_sm90_or_later<flash::FlashAttnFwdSm90<flash::\
         CollectiveMainloopFwdSm90<2, cute::tuple<cute::C<1>>>>>>(flash::FlashAttnFwdSm90::Params)",
        "fused_moe_kernel",
        "triton_red_fused__to_copy_add_mean_mul_pow_rsqrt_0",
        "void vllm::moe::topkGating<8, 128, 4, 16, 32, int, __nv_bfloat16, (vllm::moe::ScoringFunc)0>",
    ];
    let mut kernel = 0_u64;
    let mut begun = false;
    move |text| {
        let mut out = String::new();
        if !begun {
            begun = true;
            out.push_str("{\"schemaVersion\": 1, \"traceEvents\": [\n");
        }
        for _ in 0..64 {
            let us = kernel * 10;
            if kernel.is_multiple_of(500) {
                let _ = writeln!(
                    out,
                    "{{\"ph\": \"X\", \"cat\": \"user_annotation\", \"name\": \
                     \"execute_context_0(0)_generation_32(32)\", \"pid\": 1, \"tid\": 1, \
                     \"ts\": {us}.125, \"dur\": 4000.5}},"
                );
            }
            let name = NAMES[(kernel % 5) as usize];
            let _ = writeln!(
                out,
                "{{\"ph\": \"X\", \"cat\": \"cuda_runtime\", \"name\": \"cudaLaunchKernel\", \"pid\": 1, \
                 \"tid\": 1, \"ts\": {us}.250, \"dur\": 3.125, \"args\": {{\"External id\": {kernel}, \
                 \"cbid\": 211, \"correlation\": {kernel}}}}},\n\
                 {{\"ph\": \"X\", \"cat\": \"kernel\", \"name\": \"{name}\", \"pid\": 0, \"tid\": 7, \
                 \"ts\": {us}.750, \"dur\": 8.125, \"args\": {{\"External id\": {kernel}, \"queued\": 0, \
                 \"device\": 0, \"context\": 1, \"stream\": 7, \"correlation\": {kernel}, \
                 \"registers per thread\": 168, \"shared memory\": 197632, \"blocks per SM\": 1.5, \
                 \"grid\": [132, 1, 1], \"block\": [384, 1, 1]}}}},"
            );
            kernel += 1;
        }
        text.extend(out.bytes());
    }
}

fn timed(what: &str, bytes: u64, making: f64, run: impl FnOnce() -> String) {
    let start = Instant::now();
    let says = run();
    let took = start.elapsed().as_secs_f64() - making;
    let rate = bytes as f64 / took / 1e6;
    println!("{what}: {took:.2} s, {rate:.0} MB/s; {says}");
}

fn making(mut text: impl Read) -> io::Result<f64> {
    let start = Instant::now();
    io::copy(&mut text, &mut io::sink())?;
    Ok(start.elapsed().as_secs_f64())
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    const BYTES: u64 = 1_000_000_000;
    let made = making(Made::new(BYTES, records()))?;
    let report = |made| check_file(Made::new(BYTES, made), None);
    let mut found = None;
    timed("records checked", BYTES, made, || {
        found = report(records()).ok();
        found
            .as_ref()
            .map_or_else(String::new, |f| format!("{} steps, {} failed", f.records, f.failed))
    });
    let made = making(Made::new(BYTES, trace()))?;
    let families = Families::standard()?;
    timed("trace attributed", BYTES, made, || {
        let Ok(trace) = Trace::read(Made::new(BYTES, trace())) else { return "unread".to_owned() };
        let work = RankWork::of(&trace, 0, &families, false);
        format!("{} kernels in {} steps", work.kernels.0, work.steps.len())
    });
    let status = std::fs::read_to_string("/proc/self/status")?;
    let peak = status.lines().find(|line| line.starts_with("VmHWM")).unwrap_or("VmHWM: unknown");
    println!("{peak}");
    Ok(())
}

use std::io::{BufReader, Read as _};

use flate2::bufread::GzDecoder;

use super::*;

const VLLM_ROCM: &[u8] =
    include_bytes!("../../tests/fixtures/tracelens_vllm_decode_full_graph.json.gz");
const TRITON: &[u8] = include_bytes!("../../tests/fixtures/hta_triton_example.json.gz");
const OLD: &[u8] = include_bytes!("../../tests/fixtures/hta_cuda_event_sync_2023.json.gz");
const VLLM_CPU: &[u8] = include_bytes!("../../tests/fixtures/vllm_cpu_window_1.pt.trace.json.gz");
const WARMED: &[u8] =
    include_bytes!("../../tests/fixtures/vllm_cpu_window_2warm_8active.pt.trace.json.gz");

fn read(gzip: &[u8]) -> Trace {
    Trace::read(BufReader::new(GzDecoder::new(gzip))).unwrap()
}

#[test]
fn a_decode_step_under_a_full_graph_is_read() {
    let trace = read(VLLM_ROCM);
    assert_eq!((trace.kernels.len(), trace.steps.len(), trace.events), (434, 1, 1993));
    let kernels = trace.kernels.iter().filter(|kernel| kernel.work == Work::Kernel).count();
    assert_eq!(kernels, 425);
    let composition = trace.steps[0].composition.unwrap();
    assert_eq!((composition.generation_requests, composition.context_requests), (32, 0));
    assert_eq!((trace.rank, trace.end), (Some(0), TraceEnd::Whole));
    assert_eq!(trace.base_wall_ns, Some(1_767_189_312_000_000_000));
    let launched = trace
        .kernels
        .iter()
        .filter(|k| k.correlation.is_some_and(|c| trace.launches.contains_key(&c)));
    assert!(launched.count() > 400, "kernels of a graph share the correlation of its launch");
}

#[test]
fn a_triton_kernel_is_launched_through_the_driver() {
    let trace = read(TRITON);
    let kernel = trace.kernels[0];
    assert_eq!(trace.name(&kernel), "triton_poi_fused_add_cos_sin_0");
    assert_eq!((kernel.start_ns, kernel.dur_ns), (2_413_669_097_444_592, 1_760));
    assert_eq!(trace.launches[&35], 2_413_669_097_399_166);
    // The profiler's step is all that marks this trace.
    assert_eq!((trace.steps.len(), trace.steps[0].composition), (1, None));
}

#[test]
fn a_file_of_2023_has_absolute_stamps_and_no_base() {
    let trace = read(OLD);
    assert_eq!((trace.base_wall_ns, trace.kernels.len()), (None, 5));
    assert_eq!(trace.kernels[0].start_ns, 1_707_417_525_512_145_000);
    assert_eq!(trace.wall_ns(trace.kernels[0].start_ns), Some(1_707_417_525_512_145_000));
    assert_eq!(trace.wall_ns(5), None);
}

#[test]
fn a_window_of_a_cpu_has_steps_and_no_kernels() {
    let trace = read(VLLM_CPU);
    assert_eq!((trace.steps.len(), trace.kernels.len()), (8, 0));
    assert_eq!(trace.steps[0].start_ns, 5_126_353_722_365_458);
    assert_eq!(trace.wall_ns(trace.steps[0].start_ns), Some(1_795_983_379_722_365_458));
    assert_eq!(
        trace.steps[1].composition,
        Composition::parse("execute_context_5(640)_generation_1(1)")
    );
    let warmed = read(WARMED);
    assert_eq!(
        warmed.steps.len(),
        8,
        "the profiler's own steps are not counted beside the model's"
    );
    assert!(warmed.steps.iter().all(|step| step.composition.is_some()));
}

#[test]
fn a_cut_trace_is_read_as_far_as_it_is_whole() {
    let whole = read(VLLM_ROCM);
    for part in [4, 2] {
        let trace = read(&VLLM_ROCM[..VLLM_ROCM.len() - VLLM_ROCM.len() / part]);
        assert_eq!(trace.end, TraceEnd::Cut);
        assert!(trace.events > 100 && trace.events < whole.events);
        assert_eq!(trace.unreadable, 0);
    }
    let mut plain = Vec::new();
    GzDecoder::new(VLLM_ROCM).read_to_end(&mut plain).unwrap();
    let cut = Trace::read(&plain[..plain.len() / 2]).unwrap();
    assert_eq!((cut.end, cut.unreadable), (TraceEnd::Cut, 0));
    let mut damaged = VLLM_ROCM.to_vec();
    let half = damaged.len() / 2;
    damaged[half..half + 64].fill(0xff);
    let trace = read(&damaged);
    assert!(trace.end != TraceEnd::Whole && trace.events > 100, "{:?} {}", trace.end, trace.events);
}

#[test]
fn another_file_is_no_trace() {
    assert!(matches!(Trace::read(&b"ts,dur\n1,2\n"[..]), Err(TraceError::Foreign)));
}

#[test]
fn old_categories_are_understood() {
    let text = br#"{"traceEvents": [
        {"ph":"X","cat":"Runtime","name":"cudaLaunchKernel","ts":10,"dur":1,"args":{"correlation":3}},
        {"ph":"X","cat":"Kernel","name":"k","ts":12.5,"dur":2,"args":{"correlation":3}},
        {"ph":"X","cat":"Memset","name":"m","ts":11,"dur":2,"args":{"correlation":4}},
        {"ph":"B","cat":"Kernel","name":"begun","ts":1}, {"ph":"X","cat":"Kernel","name":"no time"}
    ]}"#;
    let trace = Trace::read(&text[..]).unwrap();
    assert_eq!(trace.launches[&3], 10_000);
    let works: Vec<(Work, u64)> = trace.kernels.iter().map(|k| (k.work, k.start_ns)).collect();
    assert_eq!(works, [(Work::Memset, 11_000), (Work::Kernel, 12_500)]);
    assert_eq!((trace.events, trace.unreadable), (5, 1));
}

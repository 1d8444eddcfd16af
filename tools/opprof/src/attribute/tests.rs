use std::fmt::Write as _;
use std::io::BufReader;

use flate2::bufread::GzDecoder;

use super::*;
use crate::families::{Families, FamilyId};
use crate::testing::facts;
use crate::trace::{Composition, Trace};

/// A trace written by hand: steps at these microseconds, kernels as (launch, start, length, name).
fn trace(rank: u64, steps: &[(u64, u64, u64)], kernels: &[(u64, u64, u64, &str)]) -> Trace {
    let mut events = Vec::new();
    for (start, prefill, decode) in steps {
        let requests = u64::from(*prefill > 0);
        events.push(format!(
            r#"{{"ph":"X","cat":"user_annotation","ts":{start},"dur":5,
            "name":"execute_context_{requests}({prefill})_generation_{decode}({decode})"}}"#
        ));
    }
    for (at, (launch, start, length, name)) in kernels.iter().enumerate() {
        events.push(format!(
            r#"{{"ph":"X","cat":"cuda_runtime","name":"cudaLaunchKernel","ts":{launch},"dur":1,
            "args":{{"correlation":{at}}}}}"#
        ));
        events.push(format!(
            r#"{{"ph":"X","cat":"kernel","name":"{name}","ts":{start},"dur":{length},
            "args":{{"correlation":{at}}}}}"#
        ));
    }
    let mut text = String::new();
    let _ = write!(
        text,
        r#"{{"distributedInfo":{{"rank":{rank}}},"traceEvents":[{}],"baseTimeNanoseconds":1000000}}"#,
        events.join(",")
    );
    Trace::read(text.as_bytes()).unwrap()
}

fn standard(traces: &[(u64, Trace)], records: &[StepFacts]) -> Window {
    window(traces, records, AttributeOptions::default())
}

fn window(traces: &[(u64, Trace)], records: &[StepFacts], options: AttributeOptions) -> Window {
    let families = Families::standard().unwrap();
    let work =
        |(rank, trace): &(u64, Trace)| RankWork::of(trace, *rank, &families, options.by_place);
    attribute(traces.iter().map(work).collect(), records, options)
}

#[test]
fn a_kernel_belongs_to_the_step_that_launched_it() {
    // The GPU lags: the sampling of the first step runs while the second is marked already.
    let one = trace(
        0,
        &[(100, 0, 4), (200, 0, 4)],
        &[
            (90, 95, 2, "nvjet_early"),
            (110, 120, 30, "nvjet_a"),
            (190, 210, 20, "_topk_topp_kernel"),
            (210, 230, 30, "nvjet_b"),
        ],
    );
    let window = standard(&[(0, one)], &[]);
    let unions: Vec<u64> = window.steps.iter().map(|step| step.cover.union_ns).collect();
    assert_eq!(unions, [50_000, 30_000]);
    assert_eq!(window.ranks[0].lost, Lost { before_the_first: 1, ..Lost::default() });
    assert_eq!(window.coverage(), 0.0);
    assert!(window.steps.iter().all(|step| step.residual_ns.is_none()));
}

#[test]
fn the_slowest_rank_and_the_residual_make_up_the_span() {
    let steps = [(100, 64, 0), (200, 0, 4)];
    let fast = trace(0, &steps, &[(110, 120, 30, "flash_fwd"), (210, 220, 30, "nvjet_a")]);
    let slow = trace(
        1,
        &steps,
        &[
            (110, 120, 40, "flash_fwd"),
            (111, 150, 30, "ncclDevKernel_AllReduce"),
            (210, 220, 20, "nvjet_a"),
        ],
    );
    // Wall time is a millisecond ahead of the trace's: submit 5 us before the mark, 90 us long.
    let record = |index, start: u64, prefill, decode| {
        let submit = 1_000_000 + (start - 5) * 1000;
        facts(index, submit, submit + 90_000, prefill, decode)
    };
    let records = [record(7, 100, 64, 0), record(8, 200, 0, 4)];
    let window = standard(&[(1, slow), (0, fast)], &records);
    assert_eq!(window.coverage(), 1.0);
    let found: Vec<(usize, u64, u64, Option<i64>)> = window
        .steps
        .iter()
        .map(|s| (s.critical, s.cover.union_ns, s.work_ns, s.residual_ns))
        .collect();
    assert_eq!(found[0], (1, 60_000, 100_000, Some(30_000)));
    assert_eq!(found[1], (0, 30_000, 50_000, Some(60_000)));
    let cover = &window.steps[0].cover;
    assert_eq!(cover.together_ns(FamilyId(2), Families::COLLECTIVE), 10_000);
    assert_eq!(cover.overlap_ns(), 10_000);
    assert!(window.contradictions(AttributeOptions::default()).is_empty());
    let text = window.render(&Families::standard().unwrap(), AttributeOptions::default());
    assert!(text.contains("2 steps on 2 ranks (0, 1); 100.0 % of them have a record"), "{text}");
    assert!(text.contains("span (submit to complete)"), "{text}");
    let short = [facts(7, 1_095_000, 1_105_000, 64, 0), records[1]];
    let strict = AttributeOptions { clock_error_ns: 10_000, ..AttributeOptions::default() };
    let window = standard(&[(0, trace(0, &steps, &[(110, 120, 30, "nvjet_a")]))], &short);
    assert_eq!(window.contradictions(AttributeOptions::default()), [], "within the clocks' error");
    assert_eq!(
        window.contradictions(strict),
        [Contradiction::NegativeResidual { step: 7, by_ns: 20_000 }]
    );
}

#[test]
fn what_does_not_match_is_listed() {
    let one = trace(0, &[(100, 0, 4), (200, 0, 9), (300, 0, 4)], &[(110, 120, 1, "x")]);
    let other = trace(1, &[(100, 0, 4), (200, 0, 8)], &[]);
    let at = |index, us: u64, decode| {
        facts(index, 1_000_000 + us * 1000, 1_000_000 + (us + 50) * 1000, 0, decode)
    };
    let window = standard(&[(0, one), (1, other)], &[at(1, 99, 4), at(2, 150, 4), at(3, 299, 4)]);
    assert_eq!(
        window.steps.iter().map(|s| s.record.map(|r| r.index)).collect::<Vec<_>>(),
        [Some(1), None, Some(3)]
    );
    assert_eq!((window.records_without_mark.as_slice(), window.unlike), (&[2][..], 2));
    let text = window.render(&Families::standard().unwrap(), AttributeOptions::default());
    for says in [
        "1 steps of the trace have no record",
        "1 records have no step in the trace: 2",
        "2 steps differ",
    ] {
        assert!(text.contains(says), "{text}");
    }
}

#[test]
fn places_tell_the_routers_gemm_and_the_experts_reduction() {
    let one = trace(
        0,
        &[(100, 0, 4)],
        &[
            (110, 120, 1, "nvjet_qkv"),
            (111, 130, 1, "flash_fwd"),
            (112, 140, 1, "nvjet_router_splitK"),
            (113, 150, 1, "cublasLt::splitKreduce_kernel"),
            (114, 160, 1, "vllm::moe::topkGating"),
            (115, 170, 1, "fused_moe_kernel"),
            (116, 180, 1, "at::native::reduce_kernel<512>"),
            (117, 190, 1, "at::native::reduce_kernel<512>"),
        ],
    );
    let families = Families::standard().unwrap();
    let count = |window: &Window, family| {
        let covers = &window.steps[0].cover.families;
        covers.iter().find(|cover| cover.family == family).map_or(0, |cover| cover.count)
    };
    let by_name = standard(&[(0, one.clone())], &[]);
    assert_eq!((count(&by_name, Families::ROUTER), count(&by_name, Families::DENSE)), (1, 3));
    let options = AttributeOptions { by_place: true, ..AttributeOptions::default() };
    let by_place = window(&[(0, one)], &[], options);
    assert_eq!((count(&by_place, Families::ROUTER), count(&by_place, Families::DENSE)), (3, 1));
    assert_eq!((count(&by_place, Families::EXPERTS), count(&by_place, Families::OTHER)), (2, 1));
    assert_eq!(by_place.ranks[0].inferred, 3);
    assert!(by_place.render(&families, options).contains("inferred from their place: 3 kernels"));
}

fn fixture(gzip: &[u8]) -> Window {
    let trace = Trace::read(BufReader::new(GzDecoder::new(gzip))).unwrap();
    standard(&[(0, trace)], &[])
}

#[test]
fn a_real_decode_step_under_a_full_graph_is_attributed_whole() {
    let window =
        fixture(include_bytes!("../../tests/fixtures/tracelens_vllm_decode_full_graph.json.gz"));
    let [step] = &window.steps[..] else { panic!("one step") };
    let all: u64 = step.cover.families.iter().map(|f| f.count).sum();
    assert_eq!((all, window.ranks[0].lost.all()), (434, 0));
    assert_eq!(step.cover.inclusion_exclusion_ns(), i128::from(step.cover.union_ns));
    let names = Families::standard().unwrap();
    let count = |name: &str| {
        let of = |f: &&FamilyCover| names.names()[usize::from(f.family.0)] == name;
        step.cover.families.iter().find(of).map_or(0, |f| f.count)
    };
    // 24 layers: counted by hand from the names in the file.
    assert_eq!((count("attention"), count("kv cache write"), count("rope")), (36, 24, 24));
    assert_eq!((count("expert GEMM"), count("router, top-k"), count("norm")), (72, 96, 49));
    assert_eq!((count("dense GEMM"), count("memcpy, memset")), (73, 9));
    assert_eq!(
        (count("compiler-fused, other"), count("input preparation"), count("other")),
        (48, 1, 2)
    );
    assert!(window.ranks[0].unclassified_share() < 0.01);
}

#[test]
fn a_trace_of_a_cpu_says_that_it_has_no_kernels() {
    let window = fixture(include_bytes!("../../tests/fixtures/vllm_cpu_window_1.pt.trace.json.gz"));
    assert!(!window.has_kernels());
    let text = window.render(&Families::standard().unwrap(), AttributeOptions::default());
    assert!(
        text.contains("Attribution needs a trace of a GPU") && text.contains("5 (640)"),
        "{text}"
    );
    assert_eq!(window.steps[0].mark.composition.map(|c: Composition| c.context_tokens), Some(602));
}

#[test]
fn traces_are_put_into_windows_by_time_and_rank() {
    let families = Families::standard().unwrap();
    let at = |rank, us| {
        let trace = trace(rank, &[(us, 0, 1), (us + 50, 0, 1)], &[]);
        RankWork::of(&trace, rank, &families, false)
    };
    let found = windows(vec![at(1, 900), at(0, 110), at(0, 905), at(1, 100), at(0, 500)]);
    let starts = |window: &Vec<RankWork>| -> Vec<(u64, u64)> {
        window.iter().map(|rank| (rank.rank, rank.steps[0].mark.start_ns / 1000)).collect()
    };
    let found: Vec<_> = found.iter().map(starts).collect();
    // Rank 1 has no trace of the second window, which shifts nothing.
    assert_eq!(found, [vec![(1, 100), (0, 110)], vec![(0, 500)], vec![(1, 900), (0, 905)]]);
}

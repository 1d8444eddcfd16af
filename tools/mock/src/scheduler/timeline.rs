//! A step on one rank: which kernels run when, and what launched them.
//!
//! ```text
//! submit  mark                      mark's end
//!   │prepare│ launch launch … launch │ launch (sampling)
//!   GPU          kernel kernel … kernel kernel … sampling │finish│ complete
//! ```
//!
//! The CPU launches and goes on; kernels follow one another on the GPU, never before their launch. A whole
//! graph is one launch for all of its kernels. Collectives run on a stream of their own and begin before
//! the kernel ahead of them has ended.

use takt_time::Nanos;

use super::config::CostModel;
use super::cost::unit;
use super::step::{Graph, Shape};

/// Families of kernels, named as in `takt-opprof`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
#[expect(missing_docs, reason = "`name` says what each is")]
pub enum Family {
    Copies,
    Collective,
    Attention,
    CacheWrite,
    Router,
    Experts,
    Sampling,
    Activation,
    Norm,
    Rope,
    Dense,
    Fused,
    Input,
}

/// The time of one family in one step on one rank.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FamilyTime {
    /// Which.
    pub family: Family,
    /// Its kernels.
    pub count: u64,
    /// Their lengths, nanoseconds. They do not overlap one another.
    pub ns: u64,
}

/// A kernel that ran.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Ran {
    pub(super) kernel: &'static Kernel,
    pub(super) start_ns: u64,
    pub(super) dur_ns: u64,
    /// Counted from 0 within the step.
    pub(super) launch: u32,
}

/// A launch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Launch {
    pub(super) at_ns: u64,
    pub(super) dur_ns: u64,
    /// `None` for a graph.
    pub(super) of: Option<&'static Kernel>,
}

/// When a step's parts end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Times {
    /// The annotation.
    pub(super) mark_ns: u64,
    pub(super) mark_end_ns: u64,
    /// The last kernel.
    pub(super) gpu_end_ns: u64,
}

/// A kind of kernel.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Kernel {
    pub(super) family: Family,
    pub(super) name: &'static str,
    pub(super) api: Api,
}

/// How a kernel is launched when no graph does it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Api {
    Runtime,
    /// Triton's.
    Driver,
    Copy,
}

/// What hears of a step's launches and kernels.
pub(super) trait Observer {
    fn launched(&mut self, launch: Launch);
    fn ran(&mut self, ran: Ran);
}

/// Runs a step that was submitted at `submit` on one rank.
pub(super) fn run(
    cost: &CostModel,
    seed: u64,
    shape: &Shape,
    rank: u32,
    submit: Nanos,
    observer: &mut impl Observer,
) -> Times {
    // A rank's CPU is a little behind or ahead of the others'.
    let jitter = (unit(seed, shape.index, u64::from(rank) + 1000) * JITTER_NS) as u64;
    let mark_ns = submit.as_nanos() + cost.prepare.as_nanos() + jitter;
    let families = cost.families(seed, shape, rank);
    let mut counts = [0_u64; Family::COUNT];
    let all = || before().chain((0..cost.layers.get()).flat_map(|_| LAYER.iter())).chain(after());
    all().for_each(|kernel| counts[kernel.family as usize] += 1);
    let mut walk = Walk {
        observer,
        families,
        counts,
        done: [0; Family::COUNT],
        cpu_ns: mark_ns + MARK_NS,
        gpu_ns: 0,
        last_ns: 0,
        launches: 0,
        graph: None,
    };
    before().for_each(|kernel| walk.kernel(kernel, false));
    if shape.graph == Graph::Full {
        walk.open_graph();
    }
    for kernel in (0..cost.layers.get()).flat_map(|_| LAYER.iter()) {
        let in_graph = match shape.graph {
            Graph::None => false,
            Graph::Piecewise => kernel.family != Family::Attention,
            Graph::Full => true,
        };
        if in_graph && walk.graph.is_none() {
            walk.open_graph();
        }
        walk.kernel(kernel, in_graph);
    }
    walk.graph = None;
    let mark_end_ns = walk.cpu_ns;
    walk.cpu_ns += MARK_NS;
    after().for_each(|kernel| walk.kernel(kernel, false));
    Times { mark_ns, mark_end_ns, gpu_end_ns: walk.gpu_ns.max(walk.cpu_ns) }
}

struct Walk<'a, O> {
    observer: &'a mut O,
    families: [u64; Family::COUNT],
    counts: [u64; Family::COUNT],
    done: [u64; Family::COUNT],
    cpu_ns: u64,
    /// When the last kernel ends, and how long it is.
    gpu_ns: u64,
    last_ns: u64,
    launches: u32,
    /// The launch of the graph that kernels are part of, and when it was.
    graph: Option<(u32, u64)>,
}

impl<O: Observer> Walk<'_, O> {
    fn launch(&mut self, of: Option<&'static Kernel>, dur_ns: u64) -> (u32, u64) {
        let (launch, at_ns) = (self.launches, self.cpu_ns);
        self.observer.launched(Launch { at_ns, dur_ns, of });
        self.launches += 1;
        self.cpu_ns += dur_ns;
        (launch, at_ns)
    }

    fn open_graph(&mut self) {
        self.graph = Some(self.launch(None, GRAPH_LAUNCH_NS));
    }

    fn kernel(&mut self, kernel: &'static Kernel, in_graph: bool) {
        let at = kernel.family as usize;
        let (all, count, before) = (self.families[at], self.counts[at], self.done[at]);
        self.done[at] += 1;
        if all == 0 {
            return;
        }
        // What does not divide is spread over the first ones, so that the sum is exact.
        let dur_ns = all / count + u64::from(before < all % count);
        if !in_graph {
            self.graph = None;
        }
        let (launch, at_ns) = match self.graph {
            Some(graph) => graph,
            None => self.launch(Some(kernel), LAUNCH_NS),
        };
        let overlap = match kernel.family {
            Family::Collective => OVERLAP_NS.min(dur_ns / 2).min(self.last_ns / 2),
            _ => 0,
        };
        let start_ns = (self.gpu_ns - overlap).max(at_ns + LATENCY_NS);
        self.observer.ran(Ran { kernel, start_ns, dur_ns, launch });
        self.gpu_ns = self.gpu_ns.max(start_ns + dur_ns);
        self.last_ns = dur_ns;
    }
}

impl Family {
    /// How many there are.
    pub const COUNT: usize = 13;

    /// All of them.
    pub const ALL: [Self; Self::COUNT] = [
        Self::Copies,
        Self::Collective,
        Self::Attention,
        Self::CacheWrite,
        Self::Router,
        Self::Experts,
        Self::Sampling,
        Self::Activation,
        Self::Norm,
        Self::Rope,
        Self::Dense,
        Self::Fused,
        Self::Input,
    ];

    /// Its name in the tables of `takt opprof attribute`.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Copies => "memcpy, memset",
            Self::Collective => "collective",
            Self::Attention => "attention",
            Self::CacheWrite => "kv cache write",
            Self::Router => "router, top-k",
            Self::Experts => "expert GEMM",
            Self::Sampling => "sampling",
            Self::Activation => "activation",
            Self::Norm => "norm",
            Self::Rope => "rope",
            Self::Dense => "dense GEMM",
            Self::Fused => "compiler-fused, other",
            Self::Input => "input preparation",
        }
    }
}

const fn kernel(family: Family, api: Api, name: &'static str) -> Kernel {
    Kernel { family, name, api }
}

/// Before the model.
fn before() -> impl Iterator<Item = &'static Kernel> {
    BEFORE.iter()
}

/// After the model and its annotation.
fn after() -> impl Iterator<Item = &'static Kernel> {
    AFTER.iter()
}

static BEFORE: [Kernel; 2] = [
    kernel(Family::Copies, Api::Copy, "Memcpy HtoD (Pinned -> Device)"),
    kernel(Family::Input, Api::Driver, "_compute_slot_mapping_kernel"),
];

/// One layer, by the names that such kernels have.
static LAYER: [Kernel; 15] = [
    kernel(Family::Norm, Api::Driver, "triton_red_fused__to_copy_add_mean_mul_pow_rsqrt_0"),
    kernel(Family::Dense, Api::Runtime, "nvjet_tst_64x8_64x16_4x1_v_bz_TNT"),
    kernel(Family::Rope, Api::Runtime, "vllm::rotary_embedding_kernel<c10::BFloat16, true>"),
    kernel(
        Family::CacheWrite,
        Api::Runtime,
        "vllm::reshape_and_cache_flash_kernel<__nv_bfloat16, __nv_bfloat16, 0>",
    ),
    kernel(
        Family::Attention,
        Api::Runtime,
        "cutlass::device_kernel<flash::enable_sm90_or_later<flash::FlashAttnFwdSm90<>>>",
    ),
    kernel(Family::Dense, Api::Runtime, "nvjet_tst_64x8_64x16_4x1_v_bz_splitK_TNT"),
    kernel(Family::Dense, Api::Runtime, "cublasLt::splitKreduce_kernel<32, 16, int, float>"),
    kernel(
        Family::Collective,
        Api::Runtime,
        "ncclDevKernel_AllReduce_Sum_bf16_RING_LL(ncclDevKernelArgs)",
    ),
    kernel(Family::Norm, Api::Driver, "triton_red_fused__to_copy_add_mean_mul_pow_rsqrt_1"),
    kernel(Family::Router, Api::Runtime, "vllm::moe::topkGating<8,128,4,16,32,int,__nv_bfloat16>"),
    kernel(Family::Router, Api::Runtime, "vllm::moe::moe_align_block_size_kernel<int>"),
    kernel(Family::Experts, Api::Driver, "fused_moe_kernel"),
    kernel(
        Family::Activation,
        Api::Runtime,
        "vllm::act_and_mul_kernel<c10::BFloat16, silu_kernel>",
    ),
    kernel(Family::Experts, Api::Driver, "fused_moe_kernel"),
    kernel(Family::Fused, Api::Driver, "triton_poi_fused_add_view_2"),
];

static AFTER: [Kernel; 4] = [
    kernel(Family::Dense, Api::Runtime, "nvjet_tst_128x64_64x9_2x1_v_bz_TNT"),
    kernel(Family::Sampling, Api::Driver, "_topk_topp_kernel"),
    kernel(
        Family::Sampling,
        Api::Runtime,
        "at::native::reduce_kernel<512, 1, at::native::ReduceOp<float, at::native::ArgMaxOps<float>>>",
    ),
    kernel(Family::Copies, Api::Copy, "Memcpy DtoH (Device -> Pinned)"),
];

/// What the CPU takes for a launch.
const LAUNCH_NS: u64 = 2_000;
/// What it takes for a graph's.
const GRAPH_LAUNCH_NS: u64 = 12_000;
/// From a launch to its kernel at the earliest.
const LATENCY_NS: u64 = 3_000;
/// What the CPU does around the mark.
const MARK_NS: u64 = 4_000;
/// How far a collective reaches into the kernel ahead of it.
const OVERLAP_NS: u64 = 1_500;
/// How far ranks are apart.
const JITTER_NS: f64 = 5_000.0;

//! Kernels to families by their names.
//!
//! An ordered table of patterns; the first that matches wins, so attention stands before GEMM: a flash
//! attention kernel of CUTLASS has both in its name. Rules of a user come first. A file of them:
//!
//! ```toml
//! [[family]]
//! name = "expert GEMM"          # one of the families, or a new one
//! pattern = "my_moe_kernel"     # a regular expression, found anywhere in the name
//! ```
//!
//! Two kinds of kernels have no name of their own: the router's GEMM and the reduction over experts. They
//! can be told by where they stand in a step; that is a guess, off by default, and marked as one.

use regex::Regex;
use serde::Deserialize;

use crate::trace::Work;

/// The ordered table.
#[derive(Clone, Debug)]
pub struct Families {
    rules: Vec<Rule>,
    names: Vec<String>,
}

#[derive(Clone, Debug)]
struct Rule {
    pattern: Regex,
    family: FamilyId,
}

/// A family by its place in [`Families::names`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct FamilyId(pub u8);

/// Why a file of families cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum FamiliesError {
    /// It is no such file.
    #[error(transparent)]
    Toml(#[from] toml::de::Error),
    /// A pattern is no regular expression.
    #[error("family `{name}`: {error}")]
    Pattern {
        /// Of which family.
        name: String,
        /// Why.
        error: regex::Error,
    },
    /// More families than a set of them can hold.
    #[error("more than {FAMILIES_MAX} families")]
    TooMany,
}

/// The most families.
pub const FAMILIES_MAX: usize = 64;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    family: Vec<Entry>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Entry {
    name: String,
    pattern: String,
}

impl Families {
    /// The family of copies and fills, which their category tells.
    pub const COPIES: FamilyId = FamilyId(0);
    /// Kernels that GPUs talk to each other with.
    pub const COLLECTIVE: FamilyId = FamilyId(1);
    /// The router of a mixture of experts.
    pub const ROUTER: FamilyId = FamilyId(4);
    /// The experts' own.
    pub const EXPERTS: FamilyId = FamilyId(5);
    /// Matrix products that are no expert's.
    pub const DENSE: FamilyId = FamilyId(10);
    /// What no pattern matches.
    pub const OTHER: FamilyId = FamilyId(13);

    /// The table that comes with the program.
    ///
    /// # Errors
    /// None in practice: a test compiles every pattern.
    pub fn standard() -> Result<Self, FamiliesError> {
        Self::with_rules("family = []")
    }

    /// The same behind the rules of a TOML file.
    ///
    /// # Errors
    /// The file's.
    pub fn with_rules(toml: &str) -> Result<Self, FamiliesError> {
        let file: File = toml::from_str(toml)?;
        let mut names: Vec<String> = TABLE.iter().map(|(name, _)| (*name).to_owned()).collect();
        let mut rules = Vec::new();
        for entry in file.family {
            let at = names.iter().position(|name| *name == entry.name).unwrap_or_else(|| {
                names.push(entry.name.clone());
                names.len() - 1
            });
            if at >= FAMILIES_MAX {
                return Err(FamiliesError::TooMany);
            }
            rules.push(rule(&entry.name, &entry.pattern, at)?);
        }
        for (at, (name, pattern)) in TABLE.iter().enumerate() {
            if !pattern.is_empty() {
                rules.push(rule(name, pattern, at)?);
            }
        }
        Ok(Self { rules, names })
    }

    /// The family of a piece of work.
    #[must_use]
    pub fn of(&self, work: Work, name: &str) -> FamilyId {
        match work {
            Work::Memcpy | Work::Memset => Self::COPIES,
            Work::Kernel => {
                let found = self.rules.iter().find(|rule| rule.pattern.is_match(name));
                found.map_or(Self::OTHER, |rule| rule.family)
            }
        }
    }

    /// Names of families by their ids.
    #[must_use]
    pub fn names(&self) -> &[String] {
        &self.names
    }
}

fn rule(name: &str, pattern: &str, at: usize) -> Result<Rule, FamiliesError> {
    let pattern = Regex::new(pattern)
        .map_err(|error| FamiliesError::Pattern { name: name.to_owned(), error })?;
    // Bounded by the check against the most families.
    Ok(Rule { pattern, family: FamilyId(at as u8) })
}

/// Families and their patterns, in order.
const TABLE: [(&str, &str); 14] = [
    ("memcpy, memset", r"^(Memcpy|Memset)\b|memcpy32_post"),
    (
        "collective",
        "nccl(Dev)?Kernel|cross_device_reduce_[12]stage|allreduce_fusion|trtllm_(mnnvl_)?allreduce\
         |oneshot|twoshot|multimem_all_reduce|symm_mem|two_shot_|quickreduce|nvshmem",
    ),
    (
        "attention",
        "FlashAttn(Fwd|Combine)|flash::|flash_fwd|flash_attn|fmha|paged_attention|BatchDecode\
         |BatchPrefill|kernel_unified_attention|reduce_segments|merge_attn_states\
         |prepare_varlen_num_blocks|mla",
    ),
    ("kv cache write", "reshape_and_cache|concat_and_cache"),
    (
        "router, top-k",
        "topkGating|topk_softmax|moeSoftmax|moeTopK|grouped_topk|moe_align_block_size\
         |count_and_sort_expert_tokens|moe_fused_gate|routing[A-Z]|expand_expert\
         |permute.*(expert|moe)|_topk_forward|_combined_routing|_sum_bitmatrix_rows",
    ),
    (
        "expert GEMM",
        "fused_moe_kernel|GroupProblemShape|group_gemm|grouped_gemm|_matmul_ogs|bmm_[A-Z]|moe_mmk\
         |MoeGemm|moe_sum|moe_fused_mul_sum|_finalize_matmul",
    ),
    (
        "sampling",
        "_topk_topp_kernel|_gumbel_sample|TopKTopP|TopPSampling|TopKSampling|RadixTopK\
         |SamplingFromProb|ArgMaxOps|exponential_kernel|cunn_SoftMaxForward|softmax_warp_forward\
         |log_softmax|rejection_|_min_p_kernel|_penalties_kernel|_bincount|_temperature_kernel\
         |apply_(repetition_)?penalt|grammar_bitmask|DeviceRadixSort|sbtopk|mbtopk|gatherTopK",
    ),
    ("activation", "act_and_mul|silu|swiglu|gelu"),
    (
        "norm",
        "rms_?norm|R(MS|ms)_?[Nn]orm|layer_?norm|_norm_\
         |triton_(red|per|poi)_fused.*(rsqrt|mean.*pow|pow.*mean)",
    ),
    ("rope", "rotary|rope|Rotary"),
    (
        "dense GEMM",
        "nvjet_|gemm|Gemm|GEMM|cutlass::Kernel2?|cublasLt::splitKreduce_kernel|gemv|sm90_xmma\
         |Cijk_|matmul_kernel",
    ),
    ("compiler-fused, other", "^triton_"),
    (
        "input preparation",
        "_compute_slot_mapping|prepare_inputs|block_table|CatArrayBatched|index_|gather|scatter\
         |_zero_kv_blocks",
    ),
    ("other", ""),
];

#[cfg(test)]
mod tests {
    use super::*;

    fn family(name: &str) -> String {
        let families = Families::standard().unwrap();
        let id = families.of(Work::Kernel, name);
        families.names()[usize::from(id.0)].clone()
    }

    #[test]
    fn real_names_of_a_mixture_of_experts_on_an_h100_find_their_families() {
        for (name, expected) in [
            ("fused_moe_kernel", "expert GEMM"),
            (
                "vllm::moe::topkGating<8,128,4,16,32,int,__nv_bfloat16,(ScoringFunc)0>",
                "router, top-k",
            ),
            ("vllm::moe::moe_align_block_size_kernel<int>", "router, top-k"),
            (
                "cutlass::device_kernel<flash::enable_sm90_or_later<flash::FlashAttnFwdSm90<int>>>",
                "attention",
            ),
            ("nvjet_tst_64x8_64x16_4x1_v_bz_TNT", "dense GEMM"),
            ("nvjet_tst_64x8_64x16_4x1_v_bz_splitK_TNT", "dense GEMM"),
            ("cublasLt::splitKreduce_kernel", "dense GEMM"),
            ("vllm::reshape_and_cache_flash_kernel<__nv_bfloat16,__nv_bfloat16>", "kv cache write"),
            (
                "vllm::act_and_mul_kernel<c10::BFloat16,vllm::silu_kernel<c10::BFloat16>>",
                "activation",
            ),
            ("triton_red_fused__to_copy_add_mean_mul_pow_rsqrt_0", "norm"),
            (
                "ncclDevKernel_AllReduce_Sum_bf16_RING_LL(ncclDevKernelArgsStorage<4096>)",
                "collective",
            ),
            ("vllm::cross_device_reduce_1stage<__nv_bfloat16, 2>", "collective"),
            ("_topk_topp_kernel", "sampling"),
            ("at::native::reduce_kernel<512,1,ReduceOp<float,ArgMaxOps<float>>>", "sampling"),
            ("memcpy32_post", "memcpy, memset"),
            ("triton_poi_fused_add_cos_sin_0", "compiler-fused, other"),
            ("sm90_xmma_gemm_bf16bf16_bf16f32_f32_tn_n_tilesize64x64x64", "dense GEMM"),
            ("Cijk_Alik_Bljk_BBS_BH_Bias_HAS_SAV_UserArgs_MT16x16x256", "dense GEMM"),
            // Triton's own experts and AMD's norm, as they stand in a decode step of gpt-oss on ROCm.
            ("_matmul_ogs_NNT_bf16xbf16xmxfp4_16x128x256x1_swiglu", "expert GEMM"),
            ("_finalize_matmul_scatter_bf16", "expert GEMM"),
            ("_topk_forward", "router, top-k"),
            ("_combined_routing_compute", "router, top-k"),
            ("_sum_bitmatrix_rows", "router, top-k"),
            ("_ZN7ck_tile6kentryILi1ENS_12Rmsnorm2dFwdINS_27Rmsnorm2dFwdPipelineOneP", "norm"),
            ("kernel_unified_attention_2d", "attention"),
            ("reduce_segments", "attention"),
            ("void at::native::elementwise_kernel<128, 4>", "other"),
        ] {
            assert_eq!(family(name), expected, "{name}");
        }
    }

    #[test]
    fn a_category_tells_more_than_a_name() {
        let families = Families::standard().unwrap();
        assert_eq!(families.of(Work::Memset, "gemm"), Families::COPIES);
    }

    #[test]
    fn named_families_stand_where_their_ids_say() {
        let families = Families::standard().unwrap();
        let name = |id: FamilyId| families.names()[usize::from(id.0)].as_str();
        assert_eq!(name(Families::COPIES), "memcpy, memset");
        assert_eq!(name(Families::COLLECTIVE), "collective");
        assert_eq!(name(Families::ROUTER), "router, top-k");
        assert_eq!(name(Families::EXPERTS), "expert GEMM");
        assert_eq!(name(Families::DENSE), "dense GEMM");
        assert_eq!(name(Families::OTHER), "other");
    }

    #[test]
    fn rules_of_a_file_come_first() {
        let toml = "[[family]]\nname = \"expert GEMM\"\npattern = \"^nvjet_tst_64\"\n\
                    [[family]]\nname = \"mine\"\npattern = \"fused_moe\"\n";
        let families = Families::with_rules(toml).unwrap();
        assert_eq!(families.of(Work::Kernel, "nvjet_tst_64x8"), Families::EXPERTS);
        assert_eq!(families.of(Work::Kernel, "nvjet_x"), Families::DENSE);
        assert_eq!(families.of(Work::Kernel, "fused_moe_kernel"), FamilyId(14));
        assert_eq!(families.names()[14], "mine");
        for (toml, says) in [
            ("[[family]]\nname = \"a\"\n", "missing field `pattern`"),
            ("[[family]]\nname = \"a\"\npattern = \"(\"\n", "family `a`: regex parse error"),
            ("family = 1", "invalid type"),
            ("[[family]]\nname = \"a\"\npattern = \"x\"\nfirst = 1\n", "unknown field"),
        ] {
            let error = Families::with_rules(toml).unwrap_err().to_string();
            assert!(error.contains(says), "{error}");
        }
    }
}

#include "doctor/DeepSpeedNames.h"

#include "base/Text.h"

#include <algorithm>
#include <vector>

namespace devicerun::doctor {
namespace {

const std::vector<std::string> &zeroSettings() {
  static const std::vector<std::string> names = [] {
    std::vector<std::string> all = {"stage",
                                    "contiguous_gradients",
                                    "reduce_scatter",
                                    "reduce_bucket_size",
                                    "use_multi_rank_bucket_allreduce",
                                    "allgather_partitions",
                                    "allgather_bucket_size",
                                    "overlap_comm",
                                    "load_from_fp32_weights",
                                    "elastic_checkpoint",
                                    "offload_param",
                                    "offload_optimizer",
                                    "sub_group_size",
                                    "cpu_offload",
                                    "cpu_offload_param",
                                    "cpu_offload_use_pin_memory",
                                    "stage3_gather_fp16_weights_on_model_save",
                                    "ignore_unused_parameters",
                                    "legacy_stage1",
                                    "round_robin_gradients",
                                    "zero_hpz_partition_size",
                                    "zero_quantized_weights",
                                    "zero_quantized_nontrainable_weights",
                                    "zero_quantized_gradients",
                                    "zeropp_loco_param",
                                    "mics_shard_size",
                                    "mics_hierarchical_params_gather",
                                    "memory_efficient_linear",
                                    "pipeline_loading_checkpoint",
                                    "override_module_apply",
                                    "log_trace_cache_warnings",
                                    "leaf_module"};
    // Known with and without the beginning.
    for (const char *name :
         {"prefetch_bucket_size", "param_persistence_threshold", "model_persistence_threshold",
          "max_live_parameters", "max_reuse_distance", "gather_16bit_weights_on_model_save",
          "module_granularity_threshold", "use_all_reduce_for_fetch_params"}) {
      all.emplace_back(name);
      all.push_back(std::string("stage3_") + name);
    }
    return all;
  }();
  return names;
}

} // namespace

std::optional<std::string> nearestSetting(const std::string &name) {
  static const std::vector<std::string> shortNames = {"aio",      "amp",        "bf16",   "comet",
                                                      "fp16",     "pipeline",   "wandb",  "data_types",
                                                      "bfloat16", "eigenvalue", "nebula", "elasticity"};
  static const std::vector<std::string> names = {"activation_checkpointing",
                                                 "autotuning",
                                                 "checkpoint",
                                                 "comms_logger",
                                                 "communication_data_type",
                                                 "compression_training",
                                                 "csv_monitor",
                                                 "curriculum_learning",
                                                 "data_efficiency",
                                                 "dataloader_drop_last",
                                                 "disable_allgather",
                                                 "dump_state",
                                                 "flops_profiler",
                                                 "gradient_accumulation_steps",
                                                 "gradient_clipping",
                                                 "gradient_predivide_factor",
                                                 "hybrid_engine",
                                                 "memory_breakdown",
                                                 "optimizer",
                                                 "prescale_gradients",
                                                 "progressive_layer_drop",
                                                 "quantize_training",
                                                 "scheduler",
                                                 "seq_parallel_communication_data_type",
                                                 "sparse_attention",
                                                 "sparse_gradients",
                                                 "steps_per_print",
                                                 "tensorboard",
                                                 "tensor_parallel",
                                                 "train_batch_size",
                                                 "train_micro_batch_size_per_gpu",
                                                 "use_data_before_expert_parallelism",
                                                 "use_node_local_storage",
                                                 "vocabulary_size",
                                                 "wall_clock_breakdown",
                                                 "weight_quantization",
                                                 "zero_allow_untested_optimizer",
                                                 "zero_force_ds_cpu_optimizer",
                                                 "zero_optimization"};
  const auto has = [&](const std::vector<std::string> &list) {
    return std::find(list.begin(), list.end(), name) != list.end();
  };
  return has(shortNames) || has(names) ? std::nullopt : nearestTo(name, names);
}

bool isZeroSetting(const std::string &name) {
  return std::find(zeroSettings().begin(), zeroSettings().end(), name) != zeroSettings().end();
}

std::optional<std::string> nearestZeroSetting(const std::string &name) {
  return nearestTo(name, zeroSettings());
}

} // namespace devicerun::doctor

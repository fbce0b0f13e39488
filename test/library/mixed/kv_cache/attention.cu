#include "kv_cache.h"

#include <ATen/cuda/CUDAContext.h>
#include <c10/core/DeviceGuard.h>
#include <c10/cuda/CUDAException.h>
#include <c10/cuda/CUDAGuard.h>
#include <cuda_runtime.h>
#include <torch/library.h>

namespace kvc {

#define KVC_CHECK_DEVICE(x) TORCH_CHECK((x).device().is_cuda(), #x " must be on a GPU")

namespace {

template <int kHeadSize> __global__ void paged_kernel(PagedParams params) {
  const int64_t row = blockIdx.x;
  for (int i = threadIdx.x; i < kHeadSize; i += blockDim.x)
    params.out[row * kHeadSize + i] = params.query[row * kHeadSize + i] * params.scale;
}

__global__ void reduce_partitions(const float *partial, const int *context_lens, float *out, int64_t partitions, int64_t width) {
  const int64_t row = blockIdx.x;
  for (int64_t i = threadIdx.x; i < width; i += blockDim.x)
    out[row * width + i] = partial[row * partitions * width + i];
}

__global__ void write_slots(const float *key, const float *value, float *key_cache, float *value_cache, const int64_t *slots,
                            int64_t width) {
  const int64_t token = blockIdx.x, slot = slots[token];
  if (slot < 0)
    return;
  for (int64_t i = threadIdx.x; i < width; i += blockDim.x) {
    key_cache[slot * width + i] = key[token * width + i];
    value_cache[slot * width + i] = value[token * width + i];
  }
}

__global__ void copy_pairs(float *cache, const int64_t *pairs, int64_t width) {
  const int64_t from = pairs[2 * blockIdx.x], to = pairs[2 * blockIdx.x + 1];
  for (int64_t i = threadIdx.x; i < width; i += blockDim.x)
    cache[to * width + i] = cache[from * width + i];
}

__global__ void clear_blocks(float *cache, const int *blocks, int64_t width) {
  for (int64_t i = threadIdx.x; i < width; i += blockDim.x)
    cache[blocks[blockIdx.x] * width + i] = 0.f;
}

#define LAUNCH_PAGED(SIZE)                                                                                   \
  case SIZE:                                                                                                 \
    paged_kernel<SIZE><<<dim3(params.sequences * params.heads), dim3(64), 0, stream>>>(params);              \
    break

void launchPaged(const PagedParams &params, cudaStream_t stream) {
  switch (params.head_size) {
    LAUNCH_PAGED(8);
    LAUNCH_PAGED(16);
    LAUNCH_PAGED(64);
  default:
    TORCH_CHECK(false, "head size ", params.head_size, " is not supported");
  }
}

} // namespace

PagedParams AttentionBackend::prepare(const torch::Tensor &query, const torch::Tensor &key_cache, const torch::Tensor &value_cache,
                                      const torch::Tensor &block_tables, const torch::Tensor &context_lens,
                                      torch::Tensor &out) const {
  TORCH_CHECK(query.dim() == 3, "query must be [sequences, heads, head size]");
  PagedParams params;
  params.query = query.data_ptr<float>();
  params.key_cache = key_cache.data_ptr<float>();
  params.value_cache = value_cache.data_ptr<float>();
  params.block_tables = block_tables.data_ptr<int>();
  params.context_lens = context_lens.data_ptr<int>();
  params.out = out.data_ptr<float>();
  params.sequences = query.size(0);
  params.heads = query.size(1);
  params.head_size = query.size(2);
  params.block_size = config_.block_size;
  params.max_blocks = block_tables.size(1);
  return params;
}

class PagedV1 : public AttentionBackend {
public:
  using AttentionBackend::AttentionBackend;
  const char *name() const override { return "v1"; }
  torch::Tensor forward(const torch::Tensor &query, const torch::Tensor &key_cache, const torch::Tensor &value_cache,
                        const torch::Tensor &block_tables, const torch::Tensor &context_lens) override {
    KVC_CHECK_DEVICE(query);
    KVC_CHECK_DEVICE(block_tables);
    const at::cuda::OptionalCUDAGuard device_guard(device_of(query));
    auto out = torch::empty_like(query);
    launchPaged(prepare(query, key_cache, value_cache, block_tables, context_lens, out), at::cuda::getCurrentCUDAStream());
    C10_CUDA_KERNEL_LAUNCH_CHECK();
    return out;
  }
};

class PagedV2 : public AttentionBackend {
public:
  using AttentionBackend::AttentionBackend;
  const char *name() const override { return "v2"; }
  torch::Tensor forward(const torch::Tensor &query, const torch::Tensor &key_cache, const torch::Tensor &value_cache,
                        const torch::Tensor &block_tables, const torch::Tensor &context_lens) override {
    KVC_CHECK_DEVICE(query);
    KVC_CHECK_DEVICE(block_tables);
    auto out = torch::empty_like(query);
    auto params = prepare(query, key_cache, value_cache, block_tables, context_lens, out);
    params.partitions = (params.max_blocks * params.block_size + config_.partition - 1) / config_.partition;
    auto partial = torch::empty({params.sequences, params.heads, params.partitions, params.head_size}, query.options());
    params.partial = partial.data_ptr<float>();
    const cudaStream_t stream = at::cuda::getCurrentCUDAStream();
    launchPaged(params, stream); // [[device-missing-guard]]
    if (params.partitions > 1)
      reduce_partitions<<<params.sequences, 64, 0, stream>>>(params.partial, params.context_lens, params.out, params.partitions,
                                                            params.heads * params.head_size);
    C10_CUDA_KERNEL_LAUNCH_CHECK();
    return out;
  }
};

/// Keeps the room for partial sums between calls.
class SplitBackend : public AttentionBackend {
public:
  explicit SplitBackend(CacheConfig config)
      : AttentionBackend(config),
        workspace_(torch::empty({1 << 14}, torch::TensorOptions().dtype(torch::kFloat).device(torch::kCUDA))) {}
  const char *name() const override { return "split"; }
  torch::Tensor forward(const torch::Tensor &query, const torch::Tensor &key_cache, const torch::Tensor &value_cache,
                        const torch::Tensor &block_tables, const torch::Tensor &context_lens) override {
    KVC_CHECK_DEVICE(query);
    const c10::cuda::CUDAGuard device_guard(query.device());
    auto out = torch::empty_like(query);
    const int64_t partitions = config_.max_positions / config_.partition, width = query.size(1) * query.size(2);
    TORCH_CHECK(workspace_.numel() >= query.size(0) * partitions * width, "the workspace is too small");
    reduce_partitions<<<query.size(0), 64, 0, at::cuda::getCurrentCUDAStream()>>>( // [[device-lost-index]]
        workspace_.data_ptr<float>(), context_lens.data_ptr<int>(), out.data_ptr<float>(), partitions, width);
    C10_CUDA_KERNEL_LAUNCH_CHECK();
    return out;
  }

private:
  torch::Tensor workspace_;
};

/// The same with a workspace for each GPU.
class PooledBackend : public AttentionBackend {
public:
  using AttentionBackend::AttentionBackend;
  const char *name() const override { return "pooled"; }
  torch::Tensor forward(const torch::Tensor &query, const torch::Tensor &key_cache, const torch::Tensor &value_cache,
                        const torch::Tensor &block_tables, const torch::Tensor &context_lens) override {
    KVC_CHECK_DEVICE(query);
    const c10::cuda::CUDAGuard device_guard(query.device());
    const int64_t partitions = config_.max_positions / config_.partition, width = query.size(1) * query.size(2);
    auto &workspace = workspaces_[query.get_device()];
    if (!workspace.defined() || workspace.numel() < query.size(0) * partitions * width)
      workspace = torch::empty({query.size(0) * partitions * width}, torch::TensorOptions().dtype(torch::kFloat).device(torch::kCUDA));
    auto out = torch::empty_like(query);
    reduce_partitions<<<query.size(0), 64, 0, at::cuda::getCurrentCUDAStream()>>>(
        workspace.data_ptr<float>(), context_lens.data_ptr<int>(), out.data_ptr<float>(), partitions, width);
    C10_CUDA_KERNEL_LAUNCH_CHECK();
    return out;
  }

private:
  std::unordered_map<int64_t, torch::Tensor> workspaces_;
};

std::unique_ptr<AttentionBackend> makeBackend(const std::string &name, const CacheConfig &config) {
  if (name == "v1")
    return std::make_unique<PagedV1>(config);
  if (name == "v2")
    return std::make_unique<PagedV2>(config);
  if (name == "split")
    return std::make_unique<SplitBackend>(config);
  if (name == "pooled")
    return std::make_unique<PooledBackend>(config);
  return nullptr;
}

torch::Tensor decode_step(const torch::Tensor &query, const torch::Tensor &key_cache, const torch::Tensor &value_cache,
                          const StepMetadata &step, const CacheConfig &config) {
  KVC_CHECK_DEVICE(query);
  TORCH_CHECK(static_cast<int64_t>(step.context_lens.size()) == query.size(0), "a length for each sequence");
  const c10::cuda::CUDAGuard device_guard(query.device());
  auto out = torch::empty_like(query);
  auto tables = packTables(step).to(query.device(), /*non_blocking=*/true);
  auto lengths = packLengths(step);
  PagedParams params;
  params.query = query.data_ptr<float>();
  params.key_cache = key_cache.data_ptr<float>();
  params.value_cache = value_cache.data_ptr<float>();
  params.block_tables = tables.data_ptr<int>();
  params.context_lens = lengths.data_ptr<int>();
  params.out = out.data_ptr<float>();
  params.sequences = query.size(0), params.heads = query.size(1), params.head_size = query.size(2);
  params.block_size = config.block_size, params.max_blocks = tables.size(1);
  launchPaged(params, at::cuda::getCurrentCUDAStream()); // [[device-kernel-launch]]
  C10_CUDA_KERNEL_LAUNCH_CHECK();
  return out;
}

torch::Tensor prefill_step(const torch::Tensor &query, const torch::Tensor &key_cache, const torch::Tensor &value_cache,
                           const StepMetadata &step, const CacheConfig &config) {
  KVC_CHECK_DEVICE(query);
  const c10::cuda::CUDAGuard device_guard(query.device());
  auto out = torch::empty_like(query);
  auto tables = packTables(step).to(query.device(), /*non_blocking=*/true);
  auto lengths = packLengths(step).to(query.device(), /*non_blocking=*/true);
  PagedParams params;
  params.query = query.data_ptr<float>();
  params.key_cache = key_cache.data_ptr<float>();
  params.value_cache = value_cache.data_ptr<float>();
  params.block_tables = tables.data_ptr<int>();
  params.context_lens = lengths.data_ptr<int>();
  params.out = out.data_ptr<float>();
  params.sequences = query.size(0), params.heads = query.size(1), params.head_size = query.size(2);
  params.block_size = config.block_size, params.max_blocks = step.maxBlocks();
  launchPaged(params, at::cuda::getCurrentCUDAStream());
  C10_CUDA_KERNEL_LAUNCH_CHECK();
  return out;
}

void reshape_and_cache(const torch::Tensor &key, const torch::Tensor &value, torch::Tensor &key_cache, torch::Tensor &value_cache,
                       const torch::Tensor &slot_mapping) {
  KVC_CHECK_DEVICE(key);
  KVC_CHECK_DEVICE(key_cache);
  const at::cuda::OptionalCUDAGuard device_guard(device_of(key));
  auto slots = slot_mapping.to(key.device(), torch::kLong).contiguous();
  const int64_t width = key.size(1) * key.size(2);
  write_slots<<<slots.numel(), 64, 0, at::cuda::getCurrentCUDAStream()>>>(key.data_ptr<float>(), value.data_ptr<float>(),
                                                                         key_cache.data_ptr<float>(),
                                                                         value_cache.data_ptr<float>(), slots.data_ptr<int64_t>(), width);
  C10_CUDA_KERNEL_LAUNCH_CHECK();
}

void launchCopy(float *cache, const int64_t *pairs, int64_t count, int64_t width, void *stream) {
  if (count == 0)
    return;
  copy_pairs<<<count, 64, 0, static_cast<cudaStream_t>(stream)>>>(cache, pairs, width);
  C10_CUDA_KERNEL_LAUNCH_CHECK();
}

void copy_blocks(std::vector<torch::Tensor> &caches, const std::map<int64_t, std::vector<int64_t>> &mapping) {
  if (caches.empty() || mapping.empty())
    return;
  KVC_CHECK_DEVICE(caches.front());
  std::vector<int64_t> flat;
  for (const auto &[from, targets] : mapping)
    for (const int64_t to : targets) {
      flat.push_back(from);
      flat.push_back(to);
    }
  auto pairs = torch::tensor(flat, torch::dtype(torch::kLong).device(caches.front().device()));
  const c10::cuda::CUDAGuard device_guard(caches.front().device());
  for (auto &cache : caches)
    launchCopy(cache.data_ptr<float>(), pairs.data_ptr<int64_t>(), pairs.numel() / 2, cache.numel() / cache.size(0),
               at::cuda::getCurrentCUDAStream().stream());
}

void zero_blocks(torch::Tensor &cache, const torch::Tensor &block_list) {
  KVC_CHECK_DEVICE(cache);
  TORCH_CHECK(block_list.device().is_cpu(), "the list of blocks comes from the scheduler, on the host");
  const at::DeviceGuard device_guard(block_list.device());
  const auto blocks = block_list.to(cache.device(), torch::kInt);
  clear_blocks<<<blocks.numel(), 64, 0, at::cuda::getCurrentCUDAStream()>>>( // [[device-missing-guard]]
      cache.data_ptr<float>(), blocks.data_ptr<int>(), cache.numel() / cache.size(0));
  C10_CUDA_KERNEL_LAUNCH_CHECK();
}

void swap_blocks(const torch::Tensor &source, torch::Tensor &target, const torch::Tensor &block_mapping) {
  TORCH_CHECK(block_mapping.device().is_cpu(), "block_mapping must be on the CPU");
  cudaMemcpyKind kind;
  if (source.is_cuda() && target.is_cuda()) {
    TORCH_CHECK(source.get_device() == target.get_device(), "the caches are on different GPUs");
    kind = cudaMemcpyDeviceToDevice;
  } else if (source.is_cuda()) {
    kind = cudaMemcpyDeviceToHost;
  } else {
    TORCH_CHECK(target.is_cuda(), "neither of the caches is on a GPU");
    kind = cudaMemcpyHostToDevice;
  }
  const c10::cuda::CUDAGuard device_guard(source.is_cuda() ? source.device() : target.device());
  const auto pair = block_mapping.accessor<int64_t, 2>();
  const int64_t bytes = source.element_size() * source[0].numel();
  auto *from = static_cast<const char *>(source.data_ptr());
  auto *to = static_cast<char *>(target.data_ptr());
  for (int64_t i = 0; i < pair.size(0); ++i)
    C10_CUDA_CHECK(cudaMemcpyAsync(to + pair[i][1] * bytes, from + pair[i][0] * bytes, static_cast<size_t>(bytes), kind,
                                   at::cuda::getCurrentCUDAStream()));
}

/// Registered for CUDA: `table` may be the scheduler's, on the host.
torch::Tensor gather_blocks_cuda(const torch::Tensor &cache, const torch::Tensor &table) {
  const c10::cuda::CUDAGuard device_guard(cache.device());
  return cache.index_select(0, table.to(cache.device(), torch::kLong)).flatten(0, 1);
}

} // namespace kvc

TORCH_LIBRARY(kvc, m) { m.def("gather_blocks(Tensor cache, Tensor table) -> Tensor"); }
TORCH_LIBRARY_IMPL(kvc, CUDA, m) { m.impl("gather_blocks", kvc::gather_blocks_cuda); }

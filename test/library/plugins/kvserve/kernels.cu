#include "engine.h"

#include <ATen/cuda/CUDAContext.h>
#include <c10/cuda/CUDAGuard.h>

namespace kvserve {
namespace {

constexpr int kThreads = 128;

template <typename T>
__global__ void cache_kernel(const T* key, const T* value, T* keys, T* values, const int64_t* slots, int hidden) {
  const int64_t token = blockIdx.x, slot = slots[token];
  if (slot < 0)
    return;
  for (int i = threadIdx.x; i < hidden; i += blockDim.x) {
    keys[slot * hidden + i] = key[token * hidden + i];
    values[slot * hidden + i] = value[token * hidden + i];
  }
}

__global__ void attention_kernel(float* out, const float* q, const float* k, const float* v, const int* tables,
                                 const int* lengths, const float* alibi, float scale, int blocks, int heads) {
  const int sequence = blockIdx.x;
  if (threadIdx.x == 0 && lengths[sequence] > 0)
    out[sequence] = q[sequence] * k[tables[sequence * blocks]] * v[0] * scale + (alibi ? alibi[blockIdx.y % heads] : 0);
}

__global__ void copy_kernel(float* cache, const int64_t* mapping, int64_t block_numel) {
  const int64_t from = mapping[2 * blockIdx.x], to = mapping[2 * blockIdx.x + 1];
  for (int64_t i = threadIdx.x; i < block_numel; i += blockDim.x)
    cache[to * block_numel + i] = cache[from * block_numel + i];
}

__global__ void rotary_kernel(float* q, const int64_t* positions, const float* table, int dim) {
  const int64_t p = positions[blockIdx.x];
  q[blockIdx.x * dim + threadIdx.x] *= table[p * dim + threadIdx.x];
}

at::Tensor pack_mapping(const std::vector<std::pair<int64_t, int64_t>>& mapping) {
  auto packed = at::empty({static_cast<int64_t>(mapping.size()), 2}, at::kLong);
  auto* p = packed.data_ptr<int64_t>();
  for (const auto& [from, to] : mapping) {
    *p++ = from;
    *p++ = to;
  }
  return packed;
}

} // namespace

void reshape_and_cache(const at::Tensor& key, const at::Tensor& value, const at::Tensor& key_cache,
                       const at::Tensor& value_cache, const at::Tensor& slots) {
  TORCH_CHECK(key.is_cuda() && key_cache.device() == key.device());
  const at::cuda::OptionalCUDAGuard guard(device_of(key));
  AT_DISPATCH_FLOATING_TYPES(key.scalar_type(), "reshape_and_cache", [&] {
    cache_kernel<scalar_t><<<key.size(0), kThreads, 0, at::cuda::getCurrentCUDAStream()>>>(
        key.data_ptr<scalar_t>(), value.data_ptr<scalar_t>(), key_cache.data_ptr<scalar_t>(),
        value_cache.data_ptr<scalar_t>(), slots.data_ptr<int64_t>(), key.size(1));
  });
}

at::Tensor paged_attention(const at::Tensor& query, const at::Tensor& key_cache, const at::Tensor& value_cache,
                           const AttentionMeta& meta, double scale, const c10::optional<at::Tensor>& alibi) {
  const at::cuda::OptionalCUDAGuard guard(device_of(query));
  auto out = at::empty_like(query);
  const float* slopes = alibi ? alibi->data_ptr<float>() : nullptr;
  const dim3 grid(query.size(0), 2);
  attention_kernel<<<grid, kThreads, 0, at::cuda::getCurrentCUDAStream()>>>(
      out.data_ptr<float>(), query.data_ptr<float>(), key_cache.data_ptr<float>(), value_cache.data_ptr<float>(),
      meta.block_tables.data_ptr<int>(), meta.lengths.data_ptr<int>(), slopes, static_cast<float>(scale),
      meta.block_tables.size(1), 2);
  return out;
}

// Before a step, as vLLM does for beams: the mapping is small and made on the host.
void copy_blocks(const std::vector<at::Tensor>& caches, const std::vector<std::pair<int64_t, int64_t>>& mapping) {
  if (caches.empty() || mapping.empty())
    return;
  const auto device = caches.front().device();
  TORCH_CHECK(device.is_cuda());
  const c10::cuda::CUDAGuard guard(device);
  const auto packed = pack_mapping(mapping);
  for (const auto& cache : caches) {
    const int64_t numel = cache.stride(0);
    copy_kernel<<<mapping.size(), kThreads>>>(cache.data_ptr<float>(), packed.data_ptr<int64_t>(), numel); // [[device-kernel-launch]]
  }
}

void copy_blocks_graph(const std::vector<at::Tensor>& caches, const at::Tensor& mapping) {
  TORCH_CHECK(!caches.empty() && caches.front().is_cuda());
  const c10::cuda::CUDAGuard guard(caches.front().device());
  const auto on_device = mapping.to(caches.front().device(), /*non_blocking=*/true);
  for (const auto& cache : caches)
    copy_kernel<<<on_device.size(0), kThreads>>>(cache.data_ptr<float>(), on_device.data_ptr<int64_t>(),
                                                 cache.stride(0));
}

void rotary_embedding(at::Tensor& query, const at::Tensor& positions, const at::Tensor& cos_sin) {
  TORCH_CHECK(query.is_cuda() && query.device() == positions.device() && cos_sin.device() == query.device());
  const auto stream = at::cuda::getCurrentCUDAStream();
  const int dim = query.size(-1);
  rotary_kernel<<<query.size(0), dim, 0, stream>>>(query.data_ptr<float>(), positions.data_ptr<int64_t>(), cos_sin.data_ptr<float>(), dim); // [[device-missing-guard]]
}

} // namespace kvserve

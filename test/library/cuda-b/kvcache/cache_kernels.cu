#include "cache_engine.h"

#include <ATen/cuda/CUDAContext.h>
#include <c10/cuda/CUDAGuard.h>

namespace kvcache {
namespace {

template <typename scalar_t>
__global__ void copy_blocks_kernel(const int64_t *key_cache_ptrs, const int64_t *value_cache_ptrs,
                                   const int64_t *__restrict__ block_mapping, int64_t numel_per_block) {
  scalar_t *keys = reinterpret_cast<scalar_t *>(key_cache_ptrs[blockIdx.x]);
  const int64_t src = block_mapping[2 * blockIdx.y] * numel_per_block, dst = block_mapping[2 * blockIdx.y + 1] * numel_per_block;
  for (int64_t i = threadIdx.x; i < numel_per_block; i += blockDim.x)
    keys[dst + i] = keys[src + i];
}

template <typename scalar_t>
__global__ void reshape_and_cache_kernel(const scalar_t *__restrict__ key, const scalar_t *__restrict__ value,
                                         scalar_t *__restrict__ key_cache, scalar_t *__restrict__ value_cache,
                                         const int64_t *__restrict__ slots, int64_t width) {
  const int64_t token = blockIdx.x, slot = slots[token];
  if (slot < 0)
    return;
  for (int64_t i = threadIdx.x; i < width; i += blockDim.x) {
    key_cache[slot * width + i] = key[token * width + i];
    value_cache[slot * width + i] = value[token * width + i];
  }
}

template <typename scalar_t>
__global__ void rotary_kernel(const int64_t *__restrict__ positions, scalar_t *__restrict__ query,
                              const scalar_t *__restrict__ cos_sin, int64_t rot_dim, int64_t heads, int64_t head_size) {
  const int64_t token = blockIdx.x;
  const scalar_t *row = cos_sin + positions[token] * rot_dim;
  for (int64_t i = threadIdx.x; i < heads * rot_dim / 2; i += blockDim.x)
    query[token * heads * head_size + i] *= row[i % rot_dim];
}

__global__ void paged_attention_kernel(AttentionParams params) {
  const int seq = blockIdx.x;
  if (seq < params.num_seqs && threadIdx.x == 0)
    params.out[seq] = params.query[seq] * params.scale + static_cast<float>(params.block_tables[seq]);
}

__global__ void gather_rows_kernel(const float *__restrict__ table, const int64_t *__restrict__ index,
                                   float *__restrict__ out, int64_t width) {
  for (int64_t i = threadIdx.x; i < width; i += blockDim.x)
    out[blockIdx.x * width + i] = table[index[blockIdx.x] * width + i];
}

torch::Tensor pointer_table(const std::vector<torch::Tensor> &caches) {
  auto table = torch::empty({static_cast<int64_t>(caches.size())}, torch::kLong);
  auto *pointers = table.data_ptr<int64_t>();
  for (size_t i = 0; i < caches.size(); ++i)
    pointers[i] = reinterpret_cast<int64_t>(caches[i].data_ptr());
  return table;
}

} // namespace

void copy_blocks(std::vector<torch::Tensor> &key_caches, std::vector<torch::Tensor> &value_caches,
                 const torch::Tensor &block_mapping) {
  const int layers = key_caches.size();
  TORCH_CHECK(layers == static_cast<int>(value_caches.size()));
  if (layers == 0)
    return;
  const torch::Device cache_device = key_caches[0].device();
  TORCH_CHECK(cache_device.is_cuda(), "copy_blocks: caches must be on a GPU");
  const at::cuda::OptionalCUDAGuard device_guard(cache_device);
  const auto keys = pointer_table(key_caches).to(cache_device), values = pointer_table(value_caches).to(cache_device);
  const auto mapping = block_mapping.to(cache_device).contiguous();
  const dim3 grid(layers, mapping.size(0));
  const int64_t numel = key_caches[0][0].numel();
  AT_DISPATCH_FLOATING_TYPES(key_caches[0].scalar_type(), "copy_blocks", [&] {
    copy_blocks_kernel<scalar_t><<<grid, std::min<int64_t>(1024, numel), 0, at::cuda::getCurrentCUDAStream()>>>(
        keys.data_ptr<int64_t>(), values.data_ptr<int64_t>(), mapping.data_ptr<int64_t>(), numel);
  });
}

void copy_blocks_inplace(std::vector<torch::Tensor> &key_caches, std::vector<torch::Tensor> &value_caches,
                         const std::vector<std::pair<int64_t, int64_t>> &pairs) {
  if (key_caches.empty() || pairs.empty())
    return;
  const torch::Device cache_device = key_caches[0].device();
  TORCH_CHECK(cache_device.is_cuda(), "copy_blocks_inplace: caches must be on a GPU");
  const at::cuda::OptionalCUDAGuard device_guard(cache_device);
  const auto keys = pointer_table(key_caches).to(cache_device), values = pointer_table(value_caches).to(cache_device);
  auto mapping = torch::empty({static_cast<int64_t>(pairs.size()), 2}, torch::kLong);
  auto rows = mapping.accessor<int64_t, 2>();
  for (size_t i = 0; i < pairs.size(); ++i) {
    rows[i][0] = pairs[i].first;
    rows[i][1] = pairs[i].second;
  }
  const int64_t numel = key_caches[0][0].numel();
  copy_blocks_kernel<float><<<dim3(key_caches.size(), pairs.size()), std::min<int64_t>(1024, numel), 0, // [[device-kernel-launch]]
                              at::cuda::getCurrentCUDAStream()>>>(keys.data_ptr<int64_t>(), values.data_ptr<int64_t>(),
                                                                  mapping.data_ptr<int64_t>(), numel);
  C10_CUDA_KERNEL_LAUNCH_CHECK();
}

void reshape_and_cache(const torch::Tensor &key, const torch::Tensor &value, torch::Tensor &key_cache,
                       torch::Tensor &value_cache, const torch::Tensor &slot_mapping) {
  TORCH_CHECK(key.device() == key_cache.device(), "key on ", key.device(), ", cache on ", key_cache.device());
  const int64_t tokens = key.size(0), width = key.size(1) * key.size(2);
  const at::cuda::OptionalCUDAGuard device_guard(at::device_of(key));
  AT_DISPATCH_FLOATING_TYPES(key.scalar_type(), "reshape_and_cache", [&] {
    reshape_and_cache_kernel<scalar_t><<<tokens, std::min<int64_t>(width, 512), 0, at::cuda::getCurrentCUDAStream()>>>(
        key.data_ptr<scalar_t>(), value.data_ptr<scalar_t>(), key_cache.data_ptr<scalar_t>(),
        value_cache.data_ptr<scalar_t>(), slot_mapping.data_ptr<int64_t>(), width);
  });
}

void rotary_embedding(const torch::Tensor &positions, torch::Tensor &query, int64_t head_size,
                      const torch::Tensor &cos_sin_cache) {
  TORCH_CHECK(query.is_cuda() && query.dim() == 2);
  const int64_t tokens = query.size(0), heads = query.size(1) / head_size, rot_dim = cos_sin_cache.size(1);
  const auto stream = at::cuda::getCurrentCUDAStream();
  AT_DISPATCH_FLOATING_TYPES(query.scalar_type(), "rotary_embedding", [&] {
    rotary_kernel<scalar_t><<<tokens, std::min<int64_t>(heads * rot_dim / 2, 512), 0, stream>>>( // [[device-missing-guard]]
        positions.data_ptr<int64_t>(), query.data_ptr<scalar_t>(), cos_sin_cache.data_ptr<scalar_t>(), rot_dim, heads,
        head_size);
  });
  C10_CUDA_KERNEL_LAUNCH_CHECK();
}

/// `context_lens` stays on the host, the scheduler needs it there.
torch::Tensor paged_attention(const torch::Tensor &query, const torch::Tensor &block_tables,
                              const torch::Tensor &context_lens, double scale) {
  TORCH_CHECK(context_lens.device().is_cpu(), "paged_attention: context_lens must be on the host");
  TORCH_CHECK(query.is_cuda() && block_tables.device() == query.device());
  const at::OptionalDeviceGuard device_guard(at::device_of(context_lens));
  auto out = torch::zeros_like(query);
  AttentionParams params{};
  params.query = query.data_ptr<float>();
  params.out = out.data_ptr<float>();
  params.block_tables = block_tables.data_ptr<int>();
  params.num_seqs = static_cast<int>(query.size(0));
  params.max_context = context_lens.max().item<int>();
  params.scale = static_cast<float>(scale);
  paged_attention_kernel<<<params.num_seqs, 128, 0, at::cuda::getCurrentCUDAStream()>>>(params); // [[device-missing-guard]]
  C10_CUDA_KERNEL_LAUNCH_CHECK();
  return out;
}

torch::Tensor paged_attention_v2(const torch::Tensor &query, const torch::Tensor &block_tables,
                                 const torch::Tensor &context_lens, double scale) {
  TORCH_CHECK(context_lens.device().is_cpu(), "paged_attention: context_lens must be on the host");
  TORCH_CHECK(query.is_cuda() && block_tables.device() == query.device());
  const at::OptionalDeviceGuard device_guard(at::device_of(block_tables));
  auto out = torch::zeros_like(query);
  AttentionParams params{};
  params.query = query.data_ptr<float>();
  params.out = out.data_ptr<float>();
  params.block_tables = block_tables.data_ptr<int>();
  params.num_seqs = static_cast<int>(query.size(0));
  params.max_context = context_lens.max().item<int>();
  params.scale = static_cast<float>(scale);
  paged_attention_kernel<<<params.num_seqs, 128, 0, at::cuda::getCurrentCUDAStream()>>>(params);
  C10_CUDA_KERNEL_LAUNCH_CHECK();
  return out;
}

torch::Tensor gather_rows(const torch::Tensor &table, const std::vector<int64_t> &rows) {
  TORCH_CHECK(table.is_cuda() && table.is_contiguous());
  const c10::cuda::CUDAGuard guard(table.device());
  const auto index = torch::tensor(rows, torch::kLong).to(table.device());
  auto out = torch::empty({index.size(0), table.size(1)}, table.options());
  gather_rows_kernel<<<static_cast<unsigned>(rows.size()), 256, 0, at::cuda::getCurrentCUDAStream()>>>(
      table.data_ptr<float>(), index.data_ptr<int64_t>(), out.data_ptr<float>(), table.size(1));
  return out;
}

} // namespace kvcache

#include "feature_store.h"

#include <ATen/cuda/CUDAContext.h>
#include <c10/cuda/CUDAGuard.h>

namespace gnn {
namespace {

__global__ void gather_kernel(const float *__restrict__ features, const int64_t *__restrict__ nodes,
                              float *__restrict__ out, int64_t dim) {
  for (int64_t d = threadIdx.x; d < dim; d += blockDim.x)
    out[blockIdx.x * dim + d] = features[nodes[blockIdx.x] * dim + d];
}

__global__ void segment_mean_kernel(const float *__restrict__ rows, const int64_t *__restrict__ offsets,
                                    float *__restrict__ out, int64_t dim) {
  const int64_t first = offsets[blockIdx.x], last = offsets[blockIdx.x + 1];
  for (int64_t d = threadIdx.x; d < dim; d += blockDim.x) {
    float sum = 0;
    for (int64_t i = first; i < last; ++i)
      sum += rows[i * dim + d];
    out[blockIdx.x * dim + d] = last > first ? sum / static_cast<float>(last - first) : 0;
  }
}

__global__ void segment_max_kernel(const float *__restrict__ rows, const int64_t *__restrict__ offsets,
                                   float *__restrict__ out, int64_t dim) {
  for (int64_t d = threadIdx.x; d < dim; d += blockDim.x)
    for (int64_t i = offsets[blockIdx.x]; i < offsets[blockIdx.x + 1]; ++i)
      out[blockIdx.x * dim + d] = fmaxf(out[blockIdx.x * dim + d], rows[i * dim + d]);
}

struct SampleArgs {
  const int64_t *indptr, *indices, *seeds;
  int64_t *neighbors, *counts;
  int64_t count, fanout;
};

__global__ void sample_kernel(SampleArgs args) {
  const int64_t i = static_cast<int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
  if (i >= args.count)
    return;
  const int64_t first = args.indptr[args.seeds[i]], last = args.indptr[args.seeds[i] + 1];
  args.counts[i] = last - first < args.fanout ? last - first : args.fanout;
  for (int64_t k = 0; k < args.counts[i]; ++k)
    args.neighbors[i * args.fanout + k] = args.indices[first + k];
}

torch::Tensor offsets_of(const torch::Tensor &counts) {
  return torch::cat({torch::zeros({1}, counts.options()), counts.cumsum(0)});
}

} // namespace

/// `features` is on `device`, or pinned.
torch::Tensor gather_cuda(const torch::Tensor &features, const torch::Tensor &nodes, torch::Device device) {
  TORCH_CHECK(features.is_contiguous() && features.dim() == 2);
  const c10::cuda::CUDAGuard guard(device);
  const auto index = nodes.to(device, torch::kLong).contiguous();
  auto out = torch::empty({index.numel(), features.size(1)}, features.options().device(device).pinned_memory(false));
  if (index.numel() > 0)
    gather_kernel<<<index.numel(), 128, 0, at::cuda::getCurrentCUDAStream()>>>(
        features.data_ptr<float>(), index.data_ptr<int64_t>(), out.data_ptr<float>(), features.size(1));
  C10_CUDA_KERNEL_LAUNCH_CHECK();
  return out;
}

torch::Tensor segment_mean(const torch::Tensor &rows, const torch::Tensor &counts) {
  TORCH_CHECK(rows.is_cuda() && counts.device() == rows.device(), "segment_mean: rows on ", rows.device(), ", counts on ",
              counts.device());
  c10::cuda::CUDAGuard guard(static_cast<c10::DeviceIndex>(rows.get_device()));
  const auto offsets = offsets_of(counts);
  auto out = torch::zeros({counts.numel(), rows.size(1)}, rows.options());
  segment_mean_kernel<<<counts.numel(), 128, 0, at::cuda::getCurrentCUDAStream()>>>(
      rows.data_ptr<float>(), offsets.data_ptr<int64_t>(), out.data_ptr<float>(), rows.size(1));
  C10_CUDA_KERNEL_LAUNCH_CHECK();
  return out;
}

torch::Tensor segment_max(const torch::Tensor &rows, const torch::Tensor &counts) {
  TORCH_CHECK(rows.is_cuda() && counts.device() == rows.device(), "segment_max: rows on ", rows.device(), ", counts on ",
              counts.device());
  const auto offsets = offsets_of(counts);
  auto out = torch::full({counts.numel(), rows.size(1)}, -1e30, rows.options());
  segment_max_kernel<<<counts.numel(), 128, 0, at::cuda::getCurrentCUDAStream()>>>( // [[device-missing-guard]]
      rows.data_ptr<float>(), offsets.data_ptr<int64_t>(), out.data_ptr<float>(), rows.size(1));
  C10_CUDA_KERNEL_LAUNCH_CHECK();
  return out;
}

Block sample_cuda(const Graph &graph, const torch::Tensor &seeds, int64_t fanout) {
  TORCH_CHECK(seeds.is_cuda(), "sample_cuda: seeds on ", seeds.device());
  TORCH_CHECK(graph.indptr.is_cuda() || graph.indptr.is_pinned(), "sample_cuda: the graph must be on a GPU or pinned");
  const c10::cuda::CUDAGuard guard(seeds.device());
  Block block;
  block.nodes = seeds;
  block.neighbors = torch::zeros({seeds.numel() * fanout}, seeds.options());
  block.counts = torch::zeros({seeds.numel()}, seeds.options());
  SampleArgs args{};
  args.indptr = graph.indptr.data_ptr<int64_t>();
  args.indices = graph.indices.data_ptr<int64_t>();
  args.seeds = seeds.data_ptr<int64_t>();
  args.neighbors = block.neighbors.data_ptr<int64_t>();
  args.counts = block.counts.data_ptr<int64_t>();
  args.count = seeds.numel();
  args.fanout = fanout;
  sample_kernel<<<(seeds.numel() + 127) / 128, 128, 0, at::cuda::getCurrentCUDAStream()>>>(args);
  C10_CUDA_KERNEL_LAUNCH_CHECK();
  return block;
}

CachedStore::CachedStore(torch::Tensor features, const torch::Tensor &hot, torch::Device device)
    : device_(device), cold_(features.cpu().contiguous()) {
  hot_ = cold_.index_select(0, hot.cpu()).to(device_);
  slots_ = torch::full({cold_.size(0)}, -1, torch::kLong);
  slots_.index_put_({hot.cpu()}, torch::arange(hot.numel()));
}

torch::Tensor CachedStore::gather(const torch::Tensor &nodes) {
  const auto host = nodes.cpu();
  const auto slots = slots_.index_select(0, host);
  auto out = torch::empty({host.numel(), cold_.size(1)}, hot_.options());
  const auto hit = (slots >= 0).nonzero().squeeze(1), miss = (slots < 0).nonzero().squeeze(1);
  out.index_put_({hit}, gather_cuda(hot_, slots.index_select(0, hit), device_));
  out.index_put_({miss}, cold_.index_select(0, host.index_select(0, miss)).to(device_));
  return out;
}

/// Rows that are not cached are read by a kernel where they are.
torch::Tensor CachedStore::gather_cold(const torch::Tensor &nodes) const {
  const c10::cuda::CUDAGuard guard(device_);
  const auto index = nodes.to(device_, torch::kLong).contiguous();
  auto out = torch::empty({index.numel(), cold_.size(1)}, hot_.options());
  gather_kernel<<<index.numel(), 128, 0, at::cuda::getCurrentCUDAStream()>>>( // [[device-kernel-launch]]
      cold_.data_ptr<float>(), index.data_ptr<int64_t>(), out.data_ptr<float>(), cold_.size(1));
  C10_CUDA_KERNEL_LAUNCH_CHECK();
  return out;
}

torch::Tensor CachedStore::gather_split(const torch::Tensor &nodes) {
  const auto host = nodes.cpu();
  const auto slots = slots_.index_select(0, host);
  const auto cached = (slots >= 0).unsqueeze(1);
  const auto fast = hot_.index_select(0, slots.clamp_min(0).to(device_));
  const auto slow = cold_.index_select(0, host);
  return torch::where(cached.to(device_), fast, slow); // [[device-mixed-op]]
}

double CachedStore::hit_rate(const torch::Tensor &nodes) const {
  const auto slots = slots_.index_select(0, nodes.cpu());
  const auto *data = slots.data_ptr<int64_t>();
  return static_cast<double>(std::count_if(data, data + slots.numel(), [](int64_t s) { return s >= 0; })) /
         static_cast<double>(std::max<int64_t>(1, slots.numel()));
}

} // namespace gnn

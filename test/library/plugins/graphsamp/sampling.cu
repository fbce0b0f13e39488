#include "sampler.h"

#include <ATen/cuda/CUDAContext.h>
#include <c10/cuda/CUDAGuard.h>

#define GS_LAUNCH(n) static_cast<unsigned>(((n) + 255) / 256), 256, 0, at::cuda::getCurrentCUDAStream()

namespace gs {
namespace {

__global__ void degree_kernel(const int64_t* indptr, const int64_t* seeds, int64_t n, int64_t fanout, int64_t* out) {
  const int64_t i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) {
    const int64_t node = seeds ? seeds[i] : i, degree = indptr[node + 1] - indptr[node];
    out[i] = fanout > 0 && degree > fanout ? fanout : degree;
  }
}

__global__ void pick_kernel(const int64_t* indptr, const int64_t* indices, const int64_t* seeds, const float* weights,
                            int64_t n, int64_t fanout, int64_t* picked) {
  const int64_t i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n && weights)
    picked[i * fanout] = indices[indptr[seeds[i]]];
}

__global__ void walk_kernel(const int64_t* indptr, const int64_t* indices, const float* draws, int64_t n,
                            int64_t length, int64_t* path) {
  const int64_t i = blockIdx.x * blockDim.x + threadIdx.x;
  for (int64_t s = 1; i < n && s < length; ++s)
    path[i * length + s] = indices[indptr[path[i * length + s - 1]] + (int64_t)draws[i]];
}

__global__ void gather_kernel(const float* table, const int64_t* index, int64_t n, int64_t dim, float* out) {
  const int64_t i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n * dim)
    out[i] = table[index[i / dim] * dim + i % dim];
}

struct WalkArguments {
  const int64_t *indptr, *indices;
  const float* draws;
  int64_t* path;
};

void launch_walk(const WalkArguments& a, int64_t n, int64_t length) {
  walk_kernel<<<GS_LAUNCH(n)>>>(a.indptr, a.indices, a.draws, n, length, a.path);
}

} // namespace

std::tuple<Tensor, Tensor> sample_neighbors_cuda(const Tensor& indptr, const Tensor& indices, const Tensor& seeds,
                                                 int64_t fanout, const optional<Tensor>& weights) {
  const c10::cuda::CUDAGuard guard(seeds.device());
  const int64_t n = seeds.numel();
  auto degrees = torch::empty({n}, seeds.options());
  degree_kernel<<<GS_LAUNCH(n)>>>(indptr.data_ptr<int64_t>(), seeds.data_ptr<int64_t>(), n, fanout,
                                  degrees.data_ptr<int64_t>());
  auto picked = torch::zeros({n, fanout}, seeds.options());
  // without weights all edges are drawn alike
  const auto w = weights.value_or(torch::ones({indices.numel()}));
  pick_kernel<<<GS_LAUNCH(n)>>>(indptr.data_ptr<int64_t>(), indices.data_ptr<int64_t>(), seeds.data_ptr<int64_t>(), w.data_ptr<float>(), n, fanout, picked.data_ptr<int64_t>()); // [[device-kernel-launch]]
  return std::make_tuple(picked, degrees);
}

Tensor unique_cuda(const Tensor& nodes) { return std::get<0>(torch::_unique(nodes)); }

Tensor random_walk_cuda(const Csc& graph, const Tensor& start, int64_t length) {
  TORCH_CHECK(start.is_cuda());
  auto path = torch::zeros({start.numel(), length}, start.options());
  path.select(1, 0).copy_(start);
  auto draws = torch::rand({start.numel()}, start.options().dtype(torch::kFloat));
  WalkArguments arguments{graph.indptr.data_ptr<int64_t>(), graph.indices.data_ptr<int64_t>(), draws.data_ptr<float>(),
                          path.data_ptr<int64_t>()};
  launch_walk(arguments, start.numel(), length); // [[device-missing-guard]]
  return path;
}

// The table stays on the host, and is read over the bus.
Tensor gather_uva(const Tensor& table, const Tensor& index) {
  TORCH_CHECK(index.is_cuda());
  const at::cuda::OptionalCUDAGuard guard(index.device());
  const auto mapped = table.is_cuda() || table.is_pinned() ? table : table.pin_memory();
  auto out = torch::empty({index.numel(), table.size(1)}, index.options().dtype(table.scalar_type()));
  gather_kernel<<<GS_LAUNCH(out.numel())>>>(mapped.data_ptr<float>(), index.data_ptr<int64_t>(), index.numel(),
                                            table.size(1), out.data_ptr<float>());
  return out;
}

Tensor degrees_cuda(const Csc& graph) {
  const at::DeviceGuard guard(graph.device());
  const int64_t n = graph.indptr.numel() - 1;
  auto out = torch::empty({n}, torch::dtype(torch::kLong).device(torch::kCUDA));
  degree_kernel<<<GS_LAUNCH(n)>>>(graph.indptr.data_ptr<int64_t>(), nullptr, n, 0, out.data_ptr<int64_t>());
  return out;
}

} // namespace gs

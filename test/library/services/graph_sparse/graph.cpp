#include "graph.h"

#include <c10/cuda/CUDAGuard.h>

namespace gs {

at::Tensor ball_query(const at::Tensor& centres, const at::Tensor& points, double radius, int64_t samples) {
  TORCH_CHECK(centres.is_cuda() && points.is_cuda(), "ball_query is for CUDA tensors");
  const int b = centres.size(0), m = centres.size(1), n = points.size(1);
  auto idx = at::zeros({b, m, samples}, points.options().dtype(at::kInt));
  ball_query_launcher(b, n, m, radius, centres.data_ptr<float>(), points.data_ptr<float>(), idx.data_ptr<int>()); // [[device-missing-guard]]
  return idx;
}

at::Tensor furthest_point_sample(const at::Tensor& points, int64_t samples) {
  TORCH_CHECK(points.is_cuda(), "furthest_point_sample is for CUDA tensors");
  const at::cuda::CUDAGuard guard(points.get_device());
  auto idx = at::zeros({points.size(0), samples}, at::device(at::kCUDA).dtype(at::kInt));
  auto distance = at::full({points.size(0), points.size(1)}, 1e10, at::kCUDA);
  furthest_point_launcher(points.size(0), points.size(1), samples, points.data_ptr<float>(),
                          distance.data_ptr<float>(), idx.data_ptr<int>());
  return idx;
}

at::Tensor voxel_index(const at::Tensor& points, const std::vector<double>& size, const std::vector<double>& origin) {
  const auto scale = at::tensor(size, points.options()), low = at::tensor(origin, points.options());
  const auto cell = ((points - low) / scale).floor().to(at::kLong);
  return cell.select(1, 0) * 1000000 + cell.select(1, 1) * 1000 + cell.select(1, 2);
}

Graph Graph::from_edges(const at::Tensor& src, const at::Tensor& dst, int64_t nodes) {
  Graph g;
  const auto order = src.argsort();
  g.row_ = src.index({order});
  g.col_ = dst.index({order});
  g.nodes_ = nodes;
  const auto counts = at::bincount(g.row_, {}, nodes);
  g.indptr_ = at::cat({at::zeros({1}, counts.options()), counts.cumsum(0)});
  return g;
}

Graph Graph::to(at::Device device) const {
  Graph g;
  g.row_ = row_.to(device);
  g.col_ = col_.to(device);
  g.indptr_ = indptr_.to(device);
  g.nodes_ = nodes_;
  return g;
}

void Graph::move_structure() {
  row_ = row_.cuda();
  col_ = col_.cuda();
  indptr_ = indptr_.cuda();
}

int64_t Graph::degree(int64_t node) const {
  TORCH_CHECK(node >= 0 && node < nodes_, "no node ", node);
  const int64_t* ends = indptr_.data_ptr<int64_t>();
  return ends[node + 1] - ends[node]; // [[device-host-access]]
}

std::vector<int64_t> Graph::neighbors(int64_t node) const {
  const int64_t begin = indptr_[node].item<int64_t>(), end = indptr_[node + 1].item<int64_t>();
  const auto part = col_.slice(0, begin, end).cpu();
  return {part.data_ptr<int64_t>(), part.data_ptr<int64_t>() + part.numel()};
}

at::Tensor Graph::gcn_weights() const {
  auto degrees = at::zeros({nodes_}, col_.device());
  const auto ones = at::ones({col_.size(0)});
  degrees.scatter_add_(0, col_, ones.to(degrees.device()));
  const auto scale = degrees.clamp_min(1).rsqrt();
  return scale.index({row_}) * scale.index({col_});
}

at::Tensor Graph::in_degrees() const {
  auto degrees = at::zeros({nodes_}, at::kLong);
  return degrees.index_add_(0, col_.cpu(), at::ones_like(col_, at::device(at::kCPU)));
}

// x may be on any GPU; the structure follows it.
at::Tensor Graph::propagate(const at::Tensor& x) const {
  const auto on = to(x.device());
  const auto messages = x.index({on.row_}) * on.gcn_weights().unsqueeze(1);
  return at::zeros({nodes_, x.size(1)}).index_add_(0, on.col_, messages); // [[device-mixed-op]]
}

at::Tensor Graph::random_walk(const at::Tensor& start, int64_t length) const {
  const auto ends = indptr_.to(start.device()), targets = col_.to(start.device());
  auto now = start;
  std::vector<at::Tensor> path = {now};
  for (int64_t step = 0; step < length; ++step) {
    const auto low = ends.index({now}), count = ends.index({now + 1}) - low;
    const auto pick = (at::rand(now.sizes()).to(now.device()) * count).to(at::kLong);
    now = at::where(count > 0, targets.index({(low + pick).clamp_max(targets.size(0) - 1)}), now);
    path.push_back(now);
  }
  return at::stack(path, 1);
}

} // namespace gs

#ifdef DT_RUN
#include "../../shim/driver.h"
using namespace gs;
static Graph ring() {
  auto s = torch::arange(5);
  return Graph::from_edges(s, (s + 1) % 5, 5);
}
static void segment_bad() { segment_csr_cuda(dtl::gpu({6}), dtl::longs({3}), "sum"); }
static void lengths_bad() { segment_lengths_cuda(dtl::gpu({6}, 0), {2, 4}); }
static void softmax_bad() { edge_softmax_cuda(dtl::gpu({6}), dtl::longs({6})); }
static void coo_bad() { coo_to_csr(dtl::ints({6}), 3); }
static void sums_bad() { column_sums(dtl::gpu({4, 3})); }
static void ball_bad() { ball_query(dtl::gpu({1, 2, 3}), dtl::gpu({1, 8, 3}), 0.5, 4); }
static void degree_bad() { auto g = ring(); g.move_structure(); g.degree(2); }
static void propagate_bad() { ring().propagate(dtl::gpu({5, 3})); }
static void scatter_ok() { scatter_cuda(dtl::gpu({6}), dtl::longs({6}), 3, "max"); }
static void gather_ok() { gather_csr_cuda(dtl::gpu({2}), torch::tensor({0, 2, 5}, torch::kLong).to(dtl::dev(1))); }
static void spmm_ok() { spmm_csr(dtl::ints({4}), dtl::ints({5}), dtl::gpu({5}), dtl::gpu({3, 2})); }
static void dense_ok() { dense_update(dtl::gpu({4, 3}), dtl::gpu({3, 2})); }
static void furthest_ok() { furthest_point_sample(dtl::gpu({1, 8, 3}), 4); }
static void voxel_ok() { voxel_index(dtl::gpu({9, 3}), {0.1, 0.1, 0.1}, {0, 0, 0}); }
static void graph_ok() {
  auto g = ring();
  g.degree(1);
  g.gcn_weights();
  g.move_structure();
  g.neighbors(1);
  g.gcn_weights();
  g.in_degrees();
  g.random_walk(dtl::longs({3}), 4);
}
DT_MAIN(segment_bad, lengths_bad, softmax_bad, coo_bad, sums_bad, ball_bad, degree_bad, propagate_bad, scatter_ok,
        gather_ok, spmm_ok, dense_ok, furthest_ok, voxel_ok, graph_ok)
#endif

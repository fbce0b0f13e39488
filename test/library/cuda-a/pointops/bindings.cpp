#include "pointops.h"

#include <torch/library.h>

namespace pointops {

static torch::Tensor nearest_cpu(const torch::Tensor &query, const torch::Tensor &xyz) {
  auto out = torch::empty({query.size(0)}, torch::kLong);
  const auto q = query.accessor<float, 2>();
  const auto p = xyz.accessor<float, 2>();
  auto found = out.accessor<int64_t, 1>();
  for (int64_t i = 0; i < query.size(0); ++i) {
    float best = 1e30f;
    for (int64_t j = 0; j < xyz.size(0); ++j) {
      float d = 0;
      for (int64_t k = 0; k < 3; ++k)
        d += (q[i][k] - p[j][k]) * (q[i][k] - p[j][k]);
      if (d < best) {
        best = d;
        found[i] = j;
      }
    }
  }
  return out;
}

torch::Tensor nearest(torch::Tensor query, torch::Tensor xyz) {
  TORCH_CHECK(query.dim() == 2 && xyz.dim() == 2 && xyz.size(1) == 3, "expected (N, 3) points");
  if (query.is_cuda()) {
    auto offset = torch::tensor({int64_t{0}, xyz.size(0)}, torch::kLong);
    return std::get<0>(knn_query(1, xyz, query, offset)).select(1, 0).to(torch::kLong);
  }
  return nearest_cpu(query, xyz);
}

torch::Tensor pairwise_offsets(torch::Tensor centers, torch::Tensor grouped) {
  TORCH_CHECK(centers.size(0) == grouped.size(0));
  auto local = grouped - centers.unsqueeze(1);
  const auto scale = torch::tensor({1.0f, 1.0f, 0.5f});
  return local * scale; // [[device-mixed-op]]
}

torch::Tensor positional_weights(torch::Tensor xyz, int64_t bands) {
  const auto frequencies = torch::pow(2.0, torch::arange(bands, xyz.options()));
  auto angles = xyz.unsqueeze(-1) * frequencies;
  return torch::cat({angles.sin(), angles.cos()}, -1).flatten(-2);
}

torch::Tensor bounding_box(torch::Tensor xyz) {
  auto box = torch::empty({2, 3});
  box[0] = std::get<0>(xyz.min(0));
  box[1] = std::get<0>(xyz.max(0));
  return box;
}

} // namespace pointops

TORCH_LIBRARY_FRAGMENT(pointops, m) {
  m.def("ball_query(Tensor new_xyz, Tensor xyz, float radius, int nsample) -> Tensor", &pointops::ball_query);
  m.def("furthest_point_sample(Tensor xyz, int npoint) -> Tensor", &pointops::furthest_point_sample);
  m.def("group_points(Tensor points, Tensor idx) -> Tensor", &pointops::group_points);
  m.def("nearest(Tensor query, Tensor xyz) -> Tensor", &pointops::nearest);
}

#ifdef DT_RUN
#include "../../shim/driver.h"
namespace {
using dtl::gpu;
using dtl::ints;
void ball_query_bad() { pointops::ball_query(gpu({2, 4, 3}), gpu({2, 9, 3}), .2, 4); }
void knn_query_ok() { pointops::knn_query(2, gpu({9, 3}), gpu({4, 3}), torch::tensor({0, 9})); }
void knn_query_single_bad() { pointops::knn_query_single(2, gpu({9, 3}), gpu({4, 3})); }
void group_points_ok() { pointops::group_points(gpu({2, 4, 9}), ints({2, 3, 3})); }
void group_points_grad_bad() { pointops::group_points_grad(gpu({2, 4, 3, 3}), ints({2, 3, 3}), 9); }
void function_ok() { pointops::GroupPoints::apply(gpu({2, 4, 9}).requires_grad_(), ints({2, 3, 3})).sum().backward(); }
void fps_ok() { pointops::furthest_point_sample(gpu({2, 9, 3}), 4); }
void fps_weighted_bad() { pointops::furthest_point_sample_weighted(gpu({2, 9, 3}), gpu({2, 9}), 4); }
void gather_ok() { pointops::gather_points(gpu({4, 9}), ints({3})); }
void voxel_count_ok() { pointops::voxel_count(gpu({9, 3}), .1, 16); }
void voxel_levels_bad() { pointops::voxel_count_levels(gpu({9, 3}), {.1, .2}, 16); }
void nearest_ok() { pointops::nearest(gpu({4, 3}), gpu({9, 3})); pointops::nearest(torch::rand({4, 3}), torch::rand({9, 3})); }
void pairwise_offsets_bad() { pointops::pairwise_offsets(gpu({4, 3}), gpu({4, 5, 3})); }
void positional_ok() { pointops::positional_weights(gpu({4, 3}), 6); }
void bounding_box_ok() { pointops::bounding_box(gpu({4, 3})); }
} // namespace
DT_MAIN(ball_query_bad, knn_query_ok, knn_query_single_bad, group_points_ok, group_points_grad_bad, function_ok, fps_ok,
        fps_weighted_bad, gather_ok, voxel_count_ok, voxel_levels_bad, nearest_ok, pairwise_offsets_bad, positional_ok,
        bounding_box_ok)
#endif

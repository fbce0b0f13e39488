#pragma once

#include <torch/torch.h>

#include <tuple>
#include <vector>

namespace pointops {

torch::Tensor ball_query(torch::Tensor new_xyz, torch::Tensor xyz, double radius, int64_t nsample);
/// `offset`: the first and the last point of the batch, on any device.
std::tuple<torch::Tensor, torch::Tensor> knn_query(int64_t k, torch::Tensor xyz, torch::Tensor query,
                                                   torch::Tensor offset);
std::tuple<torch::Tensor, torch::Tensor> knn_query_single(int64_t k, torch::Tensor xyz, torch::Tensor query);
torch::Tensor group_points(torch::Tensor points, torch::Tensor idx);
torch::Tensor group_points_grad(torch::Tensor grad_out, torch::Tensor idx, int64_t n);

torch::Tensor furthest_point_sample(torch::Tensor xyz, int64_t npoint);
torch::Tensor furthest_point_sample_weighted(torch::Tensor xyz, torch::Tensor weights, int64_t npoint);
torch::Tensor gather_points(torch::Tensor points, torch::Tensor idx);
torch::Tensor voxel_count(torch::Tensor xyz, double voxel_size, int64_t cells);
std::vector<torch::Tensor> voxel_count_levels(torch::Tensor xyz, std::vector<double> sizes, int64_t cells);

struct GroupPoints : torch::autograd::Function<GroupPoints> {
  static torch::Tensor forward(torch::autograd::AutogradContext *ctx, torch::Tensor points, torch::Tensor idx);
  static torch::autograd::variable_list backward(torch::autograd::AutogradContext *ctx,
                                                 torch::autograd::variable_list grads);
};

// On any device.
torch::Tensor nearest(torch::Tensor query, torch::Tensor xyz);
torch::Tensor pairwise_offsets(torch::Tensor centers, torch::Tensor grouped);
torch::Tensor positional_weights(torch::Tensor xyz, int64_t bands);
torch::Tensor bounding_box(torch::Tensor xyz);

} // namespace pointops

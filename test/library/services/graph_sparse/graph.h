#pragma once

#include <torch/torch.h>

#include <string>
#include <vector>

namespace gs {

// scatter.cu
at::Tensor scatter_cuda(const at::Tensor& src, const at::Tensor& index, int64_t size, const std::string& how);
at::Tensor segment_csr_cuda(const at::Tensor& src, const at::Tensor& indptr, const std::string& how);
at::Tensor gather_csr_cuda(const at::Tensor& src, const at::Tensor& indptr);
at::Tensor segment_lengths_cuda(const at::Tensor& src, const std::vector<int64_t>& lengths);
at::Tensor edge_softmax_cuda(const at::Tensor& scores, const at::Tensor& index);
void ball_query_launcher(int b, int n, int m, float radius, const float* centres, const float* points, int* idx);
void furthest_point_launcher(int b, int n, int m, const float* points, float* distance, int* idx);

// spmm.cu
at::Tensor coo_to_csr(const at::Tensor& row, int64_t nodes);
at::Tensor spmm_csr(const at::Tensor& indptr, const at::Tensor& indices, const at::Tensor& values, const at::Tensor& x);
at::Tensor column_sums(const at::Tensor& x);
at::Tensor dense_update(const at::Tensor& x, const at::Tensor& weight);

// points.cpp
at::Tensor ball_query(const at::Tensor& centres, const at::Tensor& points, double radius, int64_t samples);
at::Tensor furthest_point_sample(const at::Tensor& points, int64_t samples);
at::Tensor voxel_index(const at::Tensor& points, const std::vector<double>& size, const std::vector<double>& origin);

class Graph {
 public:
  static Graph from_edges(const at::Tensor& src, const at::Tensor& dst, int64_t nodes);
  Graph to(at::Device device) const;
  // Keeps the structure on the GPU, where message passing reads it.
  void move_structure();
  int64_t degree(int64_t node) const;
  std::vector<int64_t> neighbors(int64_t node) const;
  at::Tensor gcn_weights() const;
  at::Tensor in_degrees() const;
  at::Tensor propagate(const at::Tensor& x) const;
  at::Tensor random_walk(const at::Tensor& start, int64_t length) const;
  int64_t nodes() const { return nodes_; }

 private:
  at::Tensor row_, col_, indptr_;
  int64_t nodes_ = 0;
};

} // namespace gs

#pragma once

#include <torch/torch.h>

#include <cublas_v2.h>
#include <cuda_runtime.h>

#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace ann {

struct Neighbours {
  torch::Tensor distances; // [queries, k]
  torch::Tensor ids;       // [queries, k]
};

// Kernels' front ends.
torch::Tensor pq_distances(const torch::Tensor& tables, const torch::Tensor& codes);
torch::Tensor pq_encode(const torch::Tensor& x, const torch::Tensor& codebook);
torch::Tensor inner_products(const torch::Tensor& queries, const torch::Tensor& base);
torch::Tensor hamming(const torch::Tensor& queries, const torch::Tensor& codes);
std::vector<torch::Tensor> scan_parallel(const torch::Tensor& tables, const std::vector<torch::Tensor>& parts);
float timed_scan(const torch::Tensor& tables, const torch::Tensor& codes);
torch::Tensor histogram_lists(const torch::Tensor& assignment, int64_t lists);

// Coarse quantizer: k-means centroids on one device.
class CoarseQuantizer {
 public:
  CoarseQuantizer(int64_t lists, int64_t width, torch::Device device);
  void train(const torch::Tensor& x, int iterations);
  torch::Tensor assign(const torch::Tensor& x) const;
  torch::Tensor residual(const torch::Tensor& x, const torch::Tensor& assignment) const;
  torch::Tensor imbalance(const torch::Tensor& assignment) const;
  const torch::Tensor& centroids() const { return centroids_; }

 private:
  torch::Device device_;
  torch::Tensor centroids_;
};

// Inverted lists. Lists that were not searched lately move to the host.
class InvertedLists {
 public:
  InvertedLists(int64_t lists, int64_t width, torch::Device device);
  void add(const torch::Tensor& x, const torch::Tensor& assignment);
  void evict(int64_t list);
  void touch(int64_t list);
  torch::Tensor scan(const torch::Tensor& query, int64_t list) const;
  torch::Tensor scan_resident(const torch::Tensor& query, int64_t list);
  torch::Tensor norms(int64_t list) const { return entries_.at(list).norm(2, 1); }
  std::vector<int64_t> sizes() const;

 private:
  torch::Device device_;
  std::vector<torch::Tensor> entries_;
};

// A shard for each GPU; queries arrive on any device.
struct Shard {
  torch::Device device{torch::kCPU};
  torch::Tensor codes, codebook, ids;
};

class ShardedIndex {
 public:
  explicit ShardedIndex(std::vector<torch::Device> devices);
  void build(const torch::Tensor& x, int64_t subspaces);
  Neighbours search(const torch::Tensor& queries, int64_t k) const;
  Neighbours search_first(const torch::Tensor& queries, int64_t k) const;
  torch::Tensor all_distances(const torch::Tensor& queries) const;
  std::vector<torch::Tensor> raw_scan(const torch::Tensor& tables) const;
  std::vector<int64_t> top_ids(const torch::Tensor& query, int64_t k) const;
  void remove(const std::vector<int64_t>& ids);
  void save(const std::string& file) const;
  void load_codebooks(const std::string& file);

 private:
  torch::Tensor tables(const Shard& shard, const torch::Tensor& queries) const;
  std::vector<Shard> shards_;
};

} // namespace ann

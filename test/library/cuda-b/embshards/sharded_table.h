#pragma once

#include <ATen/cuda/CUDAContext.h>
#include <ATen/cuda/CUDAEvent.h>
#include <c10/cuda/CUDAGuard.h>
#include <c10/cuda/CUDAStream.h>
#include <torch/torch.h>

#include <cstdint>
#include <string>
#include <vector>

namespace embshards {

enum class Pooling { kSum, kMean };

struct TableSpec {
  std::string name;
  int64_t rows = 0;
  int64_t dim = 0;
  Pooling pooling = Pooling::kSum;
};

/// Bags of indices of one feature: `offsets` has an entry per sample.
struct Bags {
  torch::Tensor indices, offsets;

  int64_t samples() const { return offsets.numel(); }
  Bags to(torch::Device device) const { return {indices.to(device), offsets.to(device)}; }
};

std::vector<torch::Device> all_devices();
std::vector<torch::Device> devices_after(int first);

/// One stream per device.
class StreamSet {
public:
  explicit StreamSet(const std::vector<torch::Device> &devices);
  static StreamSet from_pool(const std::vector<torch::Device> &devices);

  const c10::cuda::CUDAStream &at(size_t i) const { return streams_.at(i); }
  void synchronize() const;

private:
  StreamSet() = default;
  std::vector<c10::cuda::CUDAStream> streams_;
};

/// The columns of each table are spread over the devices.
class ColumnSharded {
public:
  ColumnSharded(TableSpec spec, std::vector<torch::Device> devices);

  torch::Tensor forward(const Bags &bags);
  torch::Tensor forward_overlapped(const Bags &bags);
  torch::Tensor row(int64_t index) const;
  torch::Tensor full_weight() const;
  void set_row(int64_t index, const torch::Tensor &value);
  double norm() const;

private:
  TableSpec spec_;
  std::vector<torch::Device> devices_;
  std::vector<torch::Tensor> shards_;
  StreamSet streams_;
};

/// The rows are spread: row r is on device r % n.
class RowSharded {
public:
  RowSharded(TableSpec spec, std::vector<torch::Device> devices);

  torch::Tensor lookup(const torch::Tensor &indices);
  torch::Tensor lookup_host(const torch::Tensor &indices);
  void accumulate(const torch::Tensor &indices, const torch::Tensor &grad, double lr);
  void accumulate_fused(const torch::Tensor &indices, const torch::Tensor &grad, double lr);
  std::vector<int64_t> histogram(const torch::Tensor &indices) const;
  std::vector<int64_t> touched(size_t shard) const;
  std::vector<int64_t> touched_host(size_t shard) const;

private:
  std::vector<torch::Device> devices_;
  std::vector<torch::Tensor> shards_, counters_;
  int64_t dim_;
};

// Kernels of one shard.
torch::Tensor pooled_lookup(const torch::Tensor &weight, const Bags &bags, Pooling pooling);
void pooled_lookup_out(const torch::Tensor &weight, const Bags &bags, torch::Tensor &out, const c10::cuda::CUDAStream &stream);
void sgd_rows(torch::Tensor weight, const torch::Tensor &indices, const torch::Tensor &grad, double lr);
torch::Tensor warm_up(const torch::Tensor &weight);

} // namespace embshards

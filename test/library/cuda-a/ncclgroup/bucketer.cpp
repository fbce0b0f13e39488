#include "communicator.h"

#include <cstring>
#include <numeric>

namespace ncclgroup {

GradientBucketer::GradientBucketer(std::shared_ptr<Communicator> comm, std::vector<torch::Tensor> parameters,
                                   int64_t bucket_bytes)
    : comm_(std::move(comm)), parameters_(std::move(parameters)) {
  int64_t filled = bucket_bytes;
  for (size_t i = 0; i < parameters_.size(); ++i) {
    parameters_[i] = parameters_[i].to(comm_->device());
    if (filled >= bucket_bytes) {
      buckets_.emplace_back();
      filled = 0;
    }
    buckets_.back().push_back(i);
    filled += static_cast<int64_t>(parameters_[i].nbytes());
  }
  for (const auto &bucket : buckets_) {
    int64_t total = 0;
    for (size_t index : bucket)
      total += parameters_[index].numel();
    residuals_.push_back(torch::zeros({total}));
  }
}

torch::Tensor GradientBucketer::flatten(size_t bucket) const {
  std::vector<torch::Tensor> parts;
  for (size_t index : buckets_.at(bucket))
    parts.push_back(parameters_[index].reshape({-1}));
  return torch::cat(parts);
}

void GradientBucketer::unflatten(size_t bucket, const torch::Tensor &flat) {
  int64_t offset = 0;
  for (size_t index : buckets_.at(bucket)) {
    auto &parameter = parameters_[index];
    parameter.copy_(flat.narrow(0, offset, parameter.numel()).view_as(parameter));
    offset += parameter.numel();
  }
}

void GradientBucketer::reduce() {
  for (size_t i = 0; i < buckets_.size(); ++i) {
    auto flat = flatten(i);
    comm_->all_reduce(flat);
    comm_->wait();
    flat.div_(comm_->size());
    unflatten(i, flat);
  }
}

// Error feedback: what the compression of the last step lost is added to this step's gradients.
void GradientBucketer::reduce_with_residual() {
  for (size_t i = 0; i < buckets_.size(); ++i) {
    auto flat = flatten(i);
    flat.add_(residuals_[i]); // [[device-mixed-op]]
    auto compressed = flat.to(torch::kHalf);
    residuals_[i] = flat - compressed.to(torch::kFloat);
    comm_->all_reduce(compressed);
    comm_->wait();
    unflatten(i, compressed.to(torch::kFloat).div_(comm_->size()));
  }
}

std::vector<char> GradientBucketer::serialize_bucket(size_t index) const {
  const auto flat = flatten(index).contiguous();
  std::vector<char> bytes(sizeof(int64_t) + flat.nbytes());
  const int64_t count = flat.numel();
  std::memcpy(bytes.data(), &count, sizeof(count));
  std::memcpy(bytes.data() + sizeof(count), flat.data_ptr(), flat.nbytes()); // [[device-host-access]]
  return bytes;
}

std::vector<char> GradientBucketer::snapshot_bucket(size_t index) const {
  const auto flat = flatten(index);
  std::vector<char> bytes(flat.nbytes());
  C10_CUDA_CHECK(cudaMemcpyAsync(bytes.data(), flat.data_ptr(), flat.nbytes(), cudaMemcpyDeviceToHost, comm_->stream()));
  comm_->wait();
  return bytes;
}

int64_t GradientBucketer::largest_parameter() const {
  int64_t largest = 0;
  for (const auto &parameter : parameters_)
    largest = std::max(largest, parameter.numel());
  return largest;
}

torch::Tensor GradientBucketer::norms() const {
  std::vector<torch::Tensor> norms;
  norms.reserve(parameters_.size());
  for (const auto &parameter : parameters_)
    norms.push_back(parameter.norm());
  return torch::stack(norms).cpu();
}

std::vector<int64_t> split_sizes(const torch::Tensor &counts, int world_size) {
  TORCH_CHECK(counts.numel() == world_size, "expected ", world_size, " counts, got ", counts.numel());
  const int64_t *values = counts.to(torch::kCPU).data_ptr<int64_t>(); // [[device-dangling-data]]
  std::vector<int64_t> sizes;
  sizes.reserve(world_size);
  for (int i = 0; i < world_size; ++i)
    sizes.push_back(values[i]);
  return sizes;
}

std::vector<int64_t> split_offsets(const torch::Tensor &counts, int world_size) {
  TORCH_CHECK(counts.numel() == world_size, "expected ", world_size, " counts, got ", counts.numel());
  const auto host = counts.to(torch::kCPU, torch::kLong).contiguous();
  const int64_t *values = host.data_ptr<int64_t>();
  std::vector<int64_t> offsets(world_size + 1, 0);
  std::partial_sum(values, values + world_size, offsets.begin() + 1);
  return offsets;
}

} // namespace ncclgroup

#ifdef DT_RUN
#include "../../shim/driver.h"
namespace {
using namespace ncclgroup;
ncclUniqueId makeId() { ncclUniqueId id; ncclGetUniqueId(&id); return id; }
template <typename F> void with(F f) {
  const auto id = makeId();
  dtl::ranks(2, [&](int) { CommOptions o; o.ranks = rank_from_env(); o.id = id; auto c = std::make_shared<Communicator>(o); f(c); });
}
template <typename F> void bucketed(F f) {
  with([&](std::shared_ptr<Communicator> c) { GradientBucketer b(c, {torch::ones({4, 4}), torch::ones({7})}, 32); f(b); });
}
void all_reduce_ok() { with([](auto c) { auto x = torch::ones({4}, c->device()); c->all_reduce(x); }); }
void broadcast_ok() { with([](auto c) { auto x = torch::ones({4}); c->broadcast(x, 0); auto y = x.to(c->device()); c->broadcast(y, 0); }); }
void barrier_ok() { with([](auto c) { c->barrier(); }); }
void barrier_on_bad() { with([](auto c) { c->barrier_on(at::cuda::getCurrentCUDAStream()); }); }
void all_gather_ok() { with([](auto c) { c->all_gather(torch::ones({4})); }); }
void reduce_scalar_ok() { with([](auto c) { c->reduce_scalar(2); }); }
void hybrid_init_bad() { auto a = makeId(), b = makeId(); dtl::ranks(2, [&](int r) { HybridComm h; h.init(rank_from_env(), a, b, 2); dtl::require(dtl::streamDevice(h.side_stream) == r, "rank's stream is on another GPU"); h.destroy(); }); }
void hybrid_single_ok() { auto a = makeId(); dtl::ranks(2, [&](int r) { HybridComm h; h.init_single(rank_from_env(), a); dtl::require(dtl::streamDevice(h.side_stream) == r, "stream"); h.destroy(); }); }
void workspace_bad() { dtl::ranks(2, [&](int r) { c10::cuda::set_device(r); dtl::onDevice(make_workspace(64), r, "workspace of the rank"); }); }
void workspace_on_rank_ok() { dtl::ranks(2, [&](int r) { dtl::onDevice(make_workspace_on_rank(64), r, "workspace of the rank"); }); }
void connect_bad() { auto a = makeId(); dtl::ranks(2, [&](int) { connect(rank_from_env(), a); }); }
void time_all_reduce_bad() { ncclComm_t c[2]; ncclCommInitAll(c, 2, nullptr); time_all_reduce(c[1], dtl::gpu({4}), 2); }
void time_broadcast_ok() { ncclComm_t c[2]; ncclCommInitAll(c, 2, nullptr); time_broadcast(c[1], dtl::gpu({4}), 2); }
void reduce_ok() { bucketed([](GradientBucketer &b) { b.reduce(); }); }
void residual_bad() { bucketed([](GradientBucketer &b) { b.reduce_with_residual(); }); }
void serialize_bad() { bucketed([](GradientBucketer &b) { b.serialize_bucket(0); }); }
void snapshot_ok() { bucketed([](GradientBucketer &b) { b.snapshot_bucket(0); }); }
void norms_ok() { bucketed([](GradientBucketer &b) { b.norms(); b.largest_parameter(); }); }
void split_sizes_bad() { auto s = split_sizes(torch::arange(1, 5, torch::dtype(torch::kLong).device(dtl::dev(1))), 4); dtl::require(s[2] == 3, "freed memory was read"); }
void split_offsets_ok() { auto s = split_offsets(torch::arange(1, 5, torch::dtype(torch::kLong).device(dtl::dev(1))), 4); dtl::require(s[3] == 6, "offset"); }
} // namespace
DT_MAIN(all_reduce_ok, broadcast_ok, barrier_ok, barrier_on_bad, all_gather_ok, reduce_scalar_ok, hybrid_init_bad,
        hybrid_single_ok, workspace_bad, workspace_on_rank_ok, connect_bad, time_all_reduce_bad, time_broadcast_ok, reduce_ok,
        residual_bad, serialize_bad, snapshot_ok, norms_ok, split_sizes_bad, split_offsets_ok)
#endif

#include "group.h"

namespace tp {

ColumnParallelLinear::ColumnParallelLinear(std::shared_ptr<Group> group, const torch::Tensor &weight,
                                           const torch::Tensor &bias)
    : group_(std::move(group)) {
  TORCH_CHECK(weight.size(0) % group_->size() == 0, weight.size(0), " rows over ", group_->size(), " GPUs");
  const auto weights = weight.chunk(group_->size(), 0), biases = bias.chunk(group_->size(), 0);
  for (int i = 0; i < group_->size(); ++i) {
    weights_.push_back(weights[i].to(group_->device(i)).contiguous());
    biases_.push_back(biases[i].to(group_->device(i)));
  }
}

std::vector<torch::Tensor> ColumnParallelLinear::forward(const std::vector<torch::Tensor> &x) const {
  std::vector<torch::Tensor> y(x.size());
  group_->each([&](int i) { y[i] = torch::linear(x[i], weights_[i], biases_[i]); });
  return y;
}

std::vector<torch::Tensor> ColumnParallelLinear::forward_blas(const std::vector<torch::Tensor> &x) const {
  std::vector<torch::Tensor> y;
  const float alpha = 1.f, beta = 1.f;
  for (int i = 0; i < group_->size(); ++i) {
    const int m = weights_[i].size(0), k = weights_[i].size(1), n = x[i].size(0);
    const c10::cuda::CUDAGuard guard(group_->device(i));
    auto out = biases_[i].expand({n, m}).contiguous();
    const auto status = cublasSgemm(group_->blas(i), CUBLAS_OP_T, CUBLAS_OP_N, m, n, k, &alpha, weights_[i].data_ptr<float>(),
                                    k, x[i].data_ptr<float>(), k, &beta, out.data_ptr<float>(), m);
    TORCH_CHECK(status == CUBLAS_STATUS_SUCCESS, "cublasSgemm failed on rank ", i);
    y.push_back(out);
  }
  return y;
}

torch::Tensor ColumnParallelLinear::gathered(const std::vector<torch::Tensor> &x) const {
  auto parts = forward(x);
  const auto home = group_->device(0);
  for (auto &part : parts)
    part = part.to(home);
  return torch::cat(parts, -1);
}

torch::Tensor ColumnParallelLinear::weight() const {
  std::vector<torch::Tensor> rows;
  for (const auto &weight : weights_)
    rows.push_back(weight.detach().cpu());
  return torch::cat(rows, 0);
}

RowParallelLinear::RowParallelLinear(std::shared_ptr<Group> group, const torch::Tensor &weight, const torch::Tensor &bias)
    : group_(std::move(group)) {
  const auto weights = weight.chunk(group_->size(), 1);
  for (int i = 0; i < group_->size(); ++i)
    weights_.push_back(weights[i].to(group_->device(i)).contiguous());
  bias_ = bias.to(group_->device(0));
}

std::vector<torch::Tensor> RowParallelLinear::forward(const std::vector<torch::Tensor> &x) const {
  std::vector<torch::Tensor> partial(x.size());
  group_->each([&](int i) { partial[i] = torch::linear(x[i], weights_[i]); });
  group_->all_reduce(partial);
  partial[0].add_(bias_);
  for (size_t i = 1; i < partial.size(); ++i)
    partial[i].add_(bias_.to(partial[i].device()));
  return partial;
}

std::vector<torch::Tensor> RowParallelLinear::forward_fused(const std::vector<torch::Tensor> &x) const {
  std::vector<torch::Tensor> partial(x.size());
  const double share = 1.0 / group_->size();
  group_->each([&](int i) {
    partial[i] = torch::addmm(bias_, x[i], weights_[i].t(), share); // [[device-mixed-op]]
  });
  group_->all_reduce(partial);
  return partial;
}

std::vector<torch::Tensor> RowParallelLinear::forward_blas(const std::vector<torch::Tensor> &x) const {
  std::vector<torch::Tensor> partial;
  const float alpha = 1.f, beta = 0.f;
  for (int i = 0; i < group_->size(); ++i) {
    const int m = weights_[i].size(0), k = weights_[i].size(1), n = x[i].size(0);
    auto out = torch::empty({n, m}, x[i].options());
    const auto status = cublasSgemm(group_->blas(i), CUBLAS_OP_T, CUBLAS_OP_N, m, n, k, &alpha, // [[device-missing-guard]]
                                    weights_[i].data_ptr<float>(), k, x[i].data_ptr<float>(), k, &beta,
                                    out.data_ptr<float>(), m);
    TORCH_CHECK(status == CUBLAS_STATUS_SUCCESS, "cublasSgemm failed on rank ", i);
    partial.push_back(out);
  }
  group_->all_reduce(partial);
  return partial;
}

std::vector<float> RowParallelLinear::column_norms(int rank) const {
  const auto norms = weights_.at(rank).norm(2, 0);
  std::vector<float> result(norms.numel());
  for (int64_t i = 0; i < norms.numel(); ++i)
    result[i] = norms.data_ptr<float>()[i]; // [[device-host-access]]
  return result;
}

double RowParallelLinear::bias_norm() const { return bias_.norm().item<double>(); }

} // namespace tp

#ifdef DT_RUN
#include "../../shim/driver.h"
namespace {
using namespace tp;
using dtl::gpu;
std::shared_ptr<Group> group(int n = 3) { std::vector<int> d; for (int i = 0; i < n; ++i) d.push_back(i); return std::make_shared<Group>(Group::Options{d}); }
std::vector<torch::Tensor> same(std::vector<int64_t> s) { return {gpu(s, 0), gpu(s, 1), gpu(s, 2)}; }
ColumnParallelLinear column() { return ColumnParallelLinear(group(), torch::rand({6, 4}), torch::rand({6})); }
RowParallelLinear row() { return RowParallelLinear(group(), torch::rand({5, 6}), torch::rand({5})); }
ncclUniqueId makeId() { ncclUniqueId id; ncclGetUniqueId(&id); return id; }
void all_reduce_ok() { auto x = same({4}); group()->all_reduce(x); }
void all_gather_ok() { group()->all_gather(same({4})); }
void metadata_bad() { group()->all_gather_metadata({1, 2, 3}); }
void broadcast_ok() { group()->broadcast(torch::rand({4})); }
void elapsed_ok() { group()->elapsed([] {}); }
void elapsed_each_bad() { group()->elapsed_each([](int) {}); }
void setup_ok() { auto id = makeId(); dtl::ranks(2, [&](int) { auto r = process_rank(); r.setup(id); r.teardown(); }); }
void setup_lazy_bad() { auto id = makeId(); dtl::ranks(2, [&](int k) { auto r = process_rank(); r.setup_lazy(id); dtl::require(dtl::blasDevice(r.blas) == k, "handle of the rank is on another GPU"); r.teardown(); }); }
void column_ok() { column().forward(same({2, 4})); }
void column_blas_ok() { column().forward_blas(same({2, 4})); }
void gathered_ok() { column().gathered(same({2, 4})); column().weight(); }
void row_ok() { row().forward(same({2, 2})); row().bias_norm(); }
void row_fused_bad() { row().forward_fused(same({2, 2})); }
void row_blas_bad() { row().forward_blas(same({2, 2})); }
void column_norms_bad() { row().column_norms(1); }
} // namespace
DT_MAIN(all_reduce_ok, all_gather_ok, metadata_bad, broadcast_ok, elapsed_ok, elapsed_each_bad, setup_ok, setup_lazy_bad,
        column_ok, column_blas_ok, gathered_ok, row_ok, row_fused_bad, row_blas_bad, column_norms_bad)
#endif

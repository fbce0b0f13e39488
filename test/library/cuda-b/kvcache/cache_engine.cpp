#include "cache_engine.h"

#include <ATen/cuda/CUDAContext.h>
#include <c10/cuda/CUDAGuard.h>

#include <algorithm>
#include <cmath>

namespace kvcache {

CacheEngine::CacheEngine(CacheConfig config, torch::Device device) : config_(config), device_(device) {
  TORCH_CHECK(device_.is_cuda(), "CacheEngine: expected a GPU, got ", device_);
  const std::vector<int64_t> shape{config.blocks, config.block_size, config.heads, config.head_size};
  const std::vector<int64_t> host{config.cpu_blocks, config.block_size, config.heads, config.head_size};
  for (int64_t i = 0; i < config.layers; ++i) {
    keys_.push_back(torch::zeros(shape, torch::device(device_)));
    values_.push_back(torch::zeros(shape, torch::device(device_)));
    host_keys_.push_back(torch::zeros(host, torch::device(torch::kCPU).pinned_memory(true)));
    host_values_.push_back(torch::zeros(host, torch::device(torch::kCPU).pinned_memory(true)));
  }
}

void CacheEngine::copy(const torch::Tensor &from, torch::Tensor to, const std::map<int64_t, int64_t> &blocks,
                       cudaMemcpyKind kind) {
  const auto *source = static_cast<const char *>(from.data_ptr());
  auto *target = static_cast<char *>(to.data_ptr());
  const int64_t bytes = from[0].nbytes();
  const at::cuda::OptionalCUDAGuard device_guard(kind == cudaMemcpyHostToDevice ? to.device() : from.device());
  const cudaStream_t stream = at::cuda::getCurrentCUDAStream();
  for (const auto &[src, dst] : blocks)
    C10_CUDA_CHECK(cudaMemcpyAsync(target + dst * bytes, source + src * bytes, bytes, kind, stream));
}

void CacheEngine::swap_out(const std::map<int64_t, int64_t> &blocks) {
  for (int64_t i = 0; i < config_.layers; ++i) {
    copy(keys_[i], host_keys_[i], blocks, cudaMemcpyDeviceToHost);
    copy(values_[i], host_values_[i], blocks, cudaMemcpyDeviceToHost);
  }
}

void CacheEngine::swap_in(const std::map<int64_t, int64_t> &blocks) {
  for (int64_t i = 0; i < config_.layers; ++i) {
    copy(host_keys_[i], keys_[i], blocks, cudaMemcpyHostToDevice);
    copy(host_values_[i], values_[i], blocks, cudaMemcpyHostToDevice);
  }
}

void CacheEngine::fork(int64_t from, int64_t to) {
  copy_blocks(keys_, values_, torch::tensor({from, to}, torch::kLong).view({1, 2}));
}

float CacheEngine::block_absmax(int64_t layer, int64_t block) const {
  const auto data = keys_.at(layer)[block];
  const auto values = data.accessor<float, 3>();
  float largest = 0;
  for (int64_t t = 0; t < values.size(0); ++t)
    for (int64_t h = 0; h < values.size(1); ++h)
      for (int64_t d = 0; d < values.size(2); ++d)
        largest = std::max(largest, std::abs(values[t][h][d])); // [[device-host-access]]
  return largest;
}

std::vector<float> CacheEngine::export_block(int64_t layer, int64_t block) const {
  const auto host = keys_.at(layer)[block].flatten().to(torch::kCPU, torch::kFloat);
  return std::vector<float>(host.data_ptr<float>(), host.data_ptr<float>() + host.numel());
}

double CacheEngine::host_checksum(int64_t layer) const {
  const float *values = host_keys_.at(layer).data_ptr<float>();
  double sum = 0;
  for (int64_t i = 0; i < host_keys_[layer].numel(); ++i)
    sum += values[i];
  return sum;
}

torch::Tensor Sampler::sample(const torch::Tensor &logits, const std::vector<SamplingParams> &params) const {
  TORCH_CHECK(logits.size(0) == static_cast<int64_t>(params.size()), "one set of parameters per sequence");
  std::vector<float> temperatures, top_p;
  for (const auto &p : params) {
    temperatures.push_back(static_cast<float>(std::max(p.temperature, 1e-5)));
    top_p.push_back(static_cast<float>(p.top_p));
  }
  const auto device = logits.device();
  auto scaled = logits / torch::tensor(temperatures).to(device).unsqueeze(1);
  auto [sorted, index] = scaled.softmax(-1).sort(-1, /*descending=*/true);
  const auto limit = torch::tensor(top_p).unsqueeze(1);
  const auto mask = (sorted.cumsum(-1) - sorted) > limit; // [[device-mixed-op]]
  sorted = sorted.masked_fill(mask, 0);
  return index.gather(1, sorted.multinomial(1)).squeeze(1);
}

torch::Tensor Sampler::greedy(const torch::Tensor &logits) const {
  const auto tokens = logits.argmax(-1);
  const auto ended = torch::zeros({}, torch::kLong);
  return torch::where(tokens < 0, ended.to(tokens.device()), tokens).cpu();
}

torch::Tensor Sampler::penalize(const torch::Tensor &logits, const std::vector<std::vector<int64_t>> &seen,
                                double penalty) const {
  auto out = logits.clone();
  for (size_t i = 0; i < seen.size(); ++i) {
    if (seen[i].empty())
      continue;
    const auto tokens = torch::tensor(seen[i], torch::kLong);
    auto row = out[static_cast<int64_t>(i)];
    const auto values = row.index({tokens});
    row.index_put_({tokens}, torch::where(values > 0, values / penalty, values * penalty));
  }
  return out;
}

std::vector<std::pair<int64_t, float>> Sampler::top_logprobs(const torch::Tensor &logits, int64_t k) const {
  const auto found = logits.log_softmax(-1).topk(k, -1);
  const auto values = std::get<0>(found).cpu(), index = std::get<1>(found).cpu();
  const auto *v = values.data_ptr<float>();
  const auto *t = index.data_ptr<int64_t>();
  std::vector<std::pair<int64_t, float>> out;
  for (int64_t i = 0; i < values.numel(); ++i)
    out.emplace_back(t[i], v[i]);
  return out;
}

namespace {

torch::Tensor pad_tables(const std::vector<std::vector<int>> &tables) {
  size_t width = 1;
  for (const auto &table : tables)
    width = std::max(width, table.size());
  auto padded = torch::zeros({static_cast<int64_t>(tables.size()), static_cast<int64_t>(width)}, torch::kInt);
  auto rows = padded.accessor<int, 2>();
  for (size_t i = 0; i < tables.size(); ++i)
    for (size_t j = 0; j < tables[i].size(); ++j)
      rows[i][j] = tables[i][j];
  return padded;
}

} // namespace

StepInput ModelRunner::prepare(const std::vector<std::vector<int>> &tables, const std::vector<int64_t> &slots) {
  StepInput input;
  input.block_tables = pad_tables(tables).to(device_);
  input.slots = torch::tensor(slots, torch::kLong).to(device_);
  input.tables = input.block_tables.data_ptr<int>();
  input.slot_data = input.slots.data_ptr<int64_t>();
  input.tokens = static_cast<int64_t>(slots.size());
  return input;
}

StepInput ModelRunner::prepare_decode(const std::vector<std::vector<int>> &tables, const std::vector<int64_t> &slots) {
  TORCH_CHECK(tables.size() == slots.size(), "decoding takes one slot per sequence");
  StepInput input;
  input.block_tables = pad_tables(tables).to(device_, /*non_blocking=*/true);
  input.tables = input.block_tables.data_ptr<int>();
  input.slot_data = torch::tensor(slots, torch::kLong).to(device_, /*non_blocking=*/true).data_ptr<int64_t>(); // [[device-dangling-data]]
  input.tokens = static_cast<int64_t>(slots.size());
  return input;
}

void Worker::init(int rank_, int local_rank_, const CacheConfig &config) {
  rank = rank_;
  local_rank = local_rank_;
  device = torch::Device(torch::kCUDA, static_cast<c10::DeviceIndex>(local_rank));
  C10_CUDA_CHECK(cudaSetDevice(local_rank));
  C10_CUDA_CHECK(cudaStreamCreateWithFlags(&swap_stream, cudaStreamNonBlocking));
  C10_CUDA_CHECK(cudaEventCreateWithFlags(&swapped, cudaEventDisableTiming));
  cache = std::make_unique<CacheEngine>(config, device);
}

void Worker::init_async(int rank_, int local_rank_, const CacheConfig &config) {
  rank = rank_;
  local_rank = local_rank_;
  C10_CUDA_CHECK(cudaEventCreateWithFlags(&swapped, cudaEventDisableTiming)); // [[device-rank-collision]]
  device = torch::Device(torch::kCUDA, static_cast<c10::DeviceIndex>(local_rank));
  c10::cuda::set_device(device.index());
  C10_CUDA_CHECK(cudaStreamCreateWithFlags(&swap_stream, cudaStreamNonBlocking));
  cache = std::make_unique<CacheEngine>(config, device);
}

} // namespace kvcache

#ifdef DT_RUN
#include "../../shim/driver.h"
namespace {
using namespace kvcache;
using dtl::gpu;
CacheEngine engine() { return CacheEngine({}, dtl::dev(1)); }
void copy_blocks_ok() { auto e = engine(); copy_blocks(e.keys(), e.values(), torch::tensor({0, 1}, torch::kLong).view({1, 2})); e.fork(2, 3); }
void copy_blocks_inplace_bad() { auto e = engine(); copy_blocks_inplace(e.keys(), e.values(), {{0, 1}}); }
void reshape_ok() { auto e = engine(); reshape_and_cache(gpu({3, 2, 8}), gpu({3, 2, 8}), e.keys()[0], e.values()[0], dtl::longs({3})); }
void rotary_bad() { auto q = gpu({3, 16}); rotary_embedding(dtl::longs({3}), q, 8, gpu({32, 8})); }
void attention_bad() { paged_attention(gpu({3, 16}), dtl::ints({3, 2}), torch::full({3}, 5, torch::kInt), .1); }
void attention_v2_ok() { paged_attention_v2(gpu({3, 16}), dtl::ints({3, 2}), torch::full({3}, 5, torch::kInt), .1); }
void gather_rows_ok() { gather_rows(gpu({8, 4}), {1, 3}); }
void swap_ok() { auto e = engine(); e.swap_out({{0, 1}}); e.swap_in({{1, 2}}); e.host_checksum(0); }
void absmax_bad() { engine().block_absmax(0, 1); }
void export_ok() { engine().export_block(0, 1); }
void sample_bad() { Sampler().sample(gpu({2, 10}), {{}, {}}); }
void greedy_ok() { Sampler().greedy(gpu({2, 10})); }
void penalize_ok() { Sampler().penalize(gpu({2, 10}), {{1, 2}, {}}, 1.2); }
void logprobs_ok() { Sampler().top_logprobs(gpu({2, 10}), 3); }
void prepare_ok() { auto i = ModelRunner(dtl::dev(1)).prepare({{1, 2}, {3}}, {4, 5}); const c10::cuda::CUDAGuard g(1); dtl::checkDevicePointer("step", i.tables); dtl::checkDevicePointer("step", i.slot_data); }
void prepare_decode_bad() { auto i = ModelRunner(dtl::dev(1)).prepare_decode({{1, 2}, {3}}, {4, 5}); const c10::cuda::CUDAGuard g(1); dtl::checkDevicePointer("step", i.tables); dtl::checkDevicePointer("step", i.slot_data); }
void worker_ok() { dtl::ranks(2, [](int r) { Worker w; w.init(r, r, {}); cudaEventRecord(w.swapped, w.swap_stream); }); }
void worker_async_bad() { dtl::ranks(2, [](int r) { Worker w; w.init_async(r, r, {}); cudaEventRecord(w.swapped, w.swap_stream); }); }
} // namespace
DT_MAIN(copy_blocks_ok, copy_blocks_inplace_bad, reshape_ok, rotary_bad, attention_bad, attention_v2_ok, gather_rows_ok,
        swap_ok, absmax_bad, export_ok, sample_bad, greedy_ok, penalize_ok, logprobs_ok, prepare_ok, prepare_decode_bad,
        worker_ok, worker_async_bad)
#endif

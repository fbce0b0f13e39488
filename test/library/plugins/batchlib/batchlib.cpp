#include "batchlib.h"

#include <algorithm>
#include <cstring>
#include <numeric>

namespace batchlib {

Batch Batch::to(torch::Device device, bool non_blocking) const {
  Batch moved = *this;
  for (auto& [name, tensor] : moved.tensors)
    tensor = tensor.to(device, non_blocking);
  return moved;
}

Batch& Batch::pin() {
  for (auto& entry : tensors)
    if (entry.second.device().is_cpu())
      entry.second = entry.second.pin_memory();
  return *this;
}

std::pair<Tensor, Tensor> pad(const std::vector<Tensor>& sequences, double value) {
  std::vector<int64_t> lengths(sequences.size());
  std::transform(sequences.begin(), sequences.end(), lengths.begin(), [](const Tensor& t) { return t.size(0); });
  const auto longest = *std::max_element(lengths.begin(), lengths.end());
  auto out = torch::full({static_cast<int64_t>(sequences.size()), longest}, value, sequences.front().options());
  for (size_t i = 0; i < sequences.size(); ++i)
    out[static_cast<int64_t>(i)].slice(0, 0, lengths[i]).copy_(sequences[i]);
  return {out, torch::tensor(lengths)};
}

Batch collate(const std::vector<Sample>& samples) {
  Batch batch;
  for (const auto& [name, first] : samples.front()) {
    if (std::holds_alternative<std::string>(first)) {
      for (const auto& s : samples)
        batch.texts[name].push_back(std::get<std::string>(s.at(name)));
    } else if (std::holds_alternative<int64_t>(first)) {
      std::vector<int64_t> values;
      for (const auto& s : samples)
        values.push_back(std::get<int64_t>(s.at(name)));
      batch.tensors[name] = torch::tensor(values);
    } else if (std::holds_alternative<double>(first)) {
      std::vector<double> values;
      for (const auto& s : samples)
        values.push_back(std::get<double>(s.at(name)));
      batch.tensors[name] = torch::tensor(values, torch::kFloat);
    } else {
      std::vector<Tensor> parts;
      for (const auto& s : samples)
        parts.push_back(std::get<Tensor>(s.at(name)));
      if (name == "sequence") {
        auto [padded, lengths] = pad(parts);
        batch.tensors[name] = padded;
        batch.lengths = lengths;
      } else {
        batch.tensors[name] = torch::stack(parts);
      }
    }
  }
  return batch;
}

Prefetcher::Prefetcher(Source source, torch::Device device, std::shared_ptr<Transform> transform)
    : source_(std::move(source)), device_(device), transform_(std::move(transform)) {
  if (transform_)
    transform_->set_device(device_);
}

std::optional<Batch> Prefetcher::load() {
  auto samples = source_();
  if (!samples)
    return std::nullopt;
  auto batch = collate(*samples);
  return device_.is_cuda() ? batch.pin().to(device_) : batch;
}

std::optional<Batch> Prefetcher::next() {
  if (!ahead_.valid())
    ahead_ = std::async(std::launch::deferred, [this] { return load(); });
  auto batch = ahead_.get();
  ahead_ = std::async(std::launch::deferred, [this] { return load(); });
  if (batch && transform_)
    batch = (*transform_)(std::move(*batch));
  return batch;
}

std::optional<Batch> Prefetcher::next_packed() {
  auto batch = next();
  if (batch && batch->lengths)
    batch->tensors["packed"] = std::get<0>(torch::_pack_padded_sequence(
        batch->at("sequence").unsqueeze(-1), std::get<0>(batch->lengths->cpu().sort(0, true)), true));
  return batch;
}

// Which elements of a moved batch are padding.
Tensor padding_mask(const Batch& batch) {
  const auto& sequence = batch.at("sequence");
  const auto position = torch::arange(sequence.size(1), sequence.device()).unsqueeze(0);
  return position >= batch.lengths->to(sequence.device()).unsqueeze(1);
}

Tensor mean_pool(const Batch& host, torch::Device device) {
  const auto batch = host.to(device);
  const auto& sequence = batch.at("sequence");
  const auto sums = sequence.masked_fill(padding_mask(batch), 0).sum(1);
  return sums / *batch.lengths; // [[device-mixed-op]]
}

void LabelStats::update(const Tensor& labels) {
  counts_ += torch::bincount(labels.flatten().cpu(), {}, counts_.numel());
}

Tensor LabelStats::balanced_loss(const Tensor& logits, const Tensor& labels) const {
  const auto weight = counts_.sum() / counts_.clamp_min(1);
  return torch::nn::functional::cross_entropy(
      logits, labels, torch::nn::functional::CrossEntropyFuncOptions().weight(weight.to(logits.device())));
}

Tensor LabelStats::balanced_loss_here(const Tensor& logits, const Tensor& labels) const {
  const auto weight = counts_.sum() / counts_.clamp_min(1);
  const auto options = torch::nn::functional::CrossEntropyFuncOptions().weight(weight).ignore_index(-1);
  return torch::nn::functional::cross_entropy(logits, labels, options); // [[device-loss-input]]
}

std::vector<float> LabelStats::counts() const {
  return {counts_.data_ptr<float>(), counts_.data_ptr<float>() + counts_.numel()};
}

void Welford::update(const Tensor& images) {
  const auto flat = images.transpose(0, 1).flatten(1);
  const auto batch_mean = flat.mean(1);
  if (!mean.defined()) {
    mean = torch::zeros_like(batch_mean);
    m2 = torch::zeros_like(batch_mean);
  }
  const auto total = count + flat.size(1);
  const auto delta = batch_mean.to(mean.device()) - mean;
  mean = mean + delta * (static_cast<double>(flat.size(1)) / total);
  m2 = m2 + flat.var(1).to(m2.device()) * flat.size(1);
  count = total;
}

void Welford::merge(const Welford& other) {
  mean = (mean * count + other.mean.to(mean.device()) * other.count) / (count + other.count);
  m2 = m2 + other.m2.to(m2.device());
  count += other.count;
}

// Each GPU counts its own images.
Tensor global_mean(const std::vector<Tensor>& images) {
  std::vector<Welford> parts(2);
  for (size_t i = 0; i < images.size(); ++i) {
    const auto gpu = static_cast<torch::DeviceIndex>(i % parts.size());
    parts[gpu].update(images[i].to(torch::Device(torch::kCUDA, gpu)));
  }
  const auto means = torch::stack({parts[0].mean, parts[1].mean}); // [[device-mixed-op]]
  return means.mean(0);
}

Tensor global_mean_merged(const std::vector<Tensor>& images) {
  std::vector<Welford> parts(2);
  for (size_t i = 0; i < images.size(); ++i) {
    const auto gpu = static_cast<torch::DeviceIndex>(i % parts.size());
    parts[gpu].update(images[i].to(torch::Device(torch::kCUDA, gpu)));
  }
  parts[0].merge(parts[1]);
  return parts[0].mean;
}

const float* Welford::raw() const {
  const float* values = mean.to(torch::kFloat).cpu().data_ptr<float>(); // [[device-dangling-data]]
  return count > 0 ? values : nullptr;
}

std::vector<uint8_t> to_bytes(const Tensor& image) {
  const auto bytes = (image * 255).clamp(0, 255).to(torch::kByte).permute({1, 2, 0}).contiguous().cpu();
  std::vector<uint8_t> out(static_cast<size_t>(bytes.numel()));
  std::memcpy(out.data(), bytes.data_ptr<uint8_t>(), out.size());
  return out;
}

void fill_rows(std::vector<std::vector<float>>& rows, const Tensor& values) {
  const auto host = values.to(torch::kCPU, torch::kFloat).contiguous();
  const auto rows_of = host.accessor<float, 2>();
  for (int64_t r = 0; r < host.size(0); ++r)
    rows.emplace_back(rows_of[r].data(), rows_of[r].data() + host.size(1));
}

// The pixels that an encoder gets, of the first image of a prefetched batch.
std::vector<uint8_t> thumbnail(Prefetcher& prefetcher) {
  const auto batch = prefetcher.next();
  const auto bytes = batch->at("image")[0].mul(255).to(torch::kByte).contiguous();
  std::vector<uint8_t> out(static_cast<size_t>(bytes.numel()));
  std::memcpy(out.data(), bytes.data_ptr<uint8_t>(), out.size()); // [[device-host-access]]
  return out;
}

std::vector<uint8_t> preview(std::vector<std::vector<Sample>> queue, int gpu) {
  Prefetcher prefetcher(
      [&queue]() -> std::optional<std::vector<Sample>> {
        if (queue.empty())
          return std::nullopt;
        auto samples = std::move(queue.back());
        queue.pop_back();
        return samples;
      },
      torch::Device(torch::kCUDA, static_cast<torch::DeviceIndex>(gpu)));
  return thumbnail(prefetcher);
}

} // namespace batchlib

#ifdef DT_RUN
#include "../../shim/driver.h"
namespace batchlib {
Batch augment_on_gpu(const Batch&, RandomErase&, int);
Batch augment_on_host(Batch, RandomErase&);
Tensor rescale_boxes(const Batch&, int64_t, int64_t);
Tensor flip_boxes(const Batch&);
}
using namespace batchlib;
static std::vector<Sample> samples() {
  Sample s;
  s["image"] = torch::rand({3, 6, 6});
  s["label"] = int64_t(1);
  s["weight"] = 0.5;
  s["name"] = std::string("a");
  s["sequence"] = torch::rand({4});
  s["boxes"] = torch::rand({4});
  s["size"] = torch::ones({2}) * 6;
  return {s, s};
}
static Prefetcher::Source source() { return [] { return std::optional<std::vector<Sample>>(samples()); }; }
static void erase_bad() { RandomErase e(0.5, 2); augment_on_gpu(collate(samples()), e, 1); }
static void pool_bad() { mean_pool(collate(samples()), dtl::dev(1)); }
static void loss_bad() { LabelStats s(4); s.update(dtl::longs({5})); s.balanced_loss_here(dtl::gpu({5, 4}), dtl::longs({5})); }
static void mean_bad() { global_mean({torch::rand({2, 3, 4, 4}), torch::rand({2, 3, 4, 4})}); }
static void raw_bad() {
  Welford w; w.update(dtl::gpu({2, 3, 64, 64}));
  auto* p = w.raw();
  auto expected = w.mean.cpu();
  auto other = torch::full({3}, 9.f);
  dtl::require(!memcmp(p, expected.data_ptr<float>(), 12), "freed memory");
}
static void preview_bad() { preview({samples()}, 1); }
static void erase_ok() { RandomErase e(0.5, 2); augment_on_host(collate(samples()), e); mean_pool(collate(samples()), torch::kCPU); }
static void prefetch_ok() {
  auto chain = std::make_shared<Compose>();
  chain->add<Normalize>("image", std::vector<float>{0.5f, 0.5f, 0.5f}, std::vector<float>{1.f, 1.f, 1.f}).add<ColorJitter>(0.1).add<MixUp>(0.4, 4);
  for (auto d : {dtl::dev(1), torch::Device("cpu")}) {
    Prefetcher p(source(), d, chain);
    auto b = *p.next();
    p.next_packed();
    padding_mask(b); rescale_boxes(b, 3, 3); flip_boxes(b);
    to_bytes(b["image"][0]);
    std::vector<std::vector<float>> rows;
    fill_rows(rows, b["boxes"]);
  }
}
static void normal_ok() { Normalize n("image", {0, 0, 0}, {1, 1, 1}); n.set_device(dtl::dev(2)); n.undo(dtl::gpu({1, 3, 2, 2})); ColorJitter(0.1).grayscale(dtl::gpu({1, 3, 2, 2})); }
static void stats_ok() {
  LabelStats s(4); s.update(dtl::longs({5})); s.balanced_loss(dtl::gpu({5, 4}), dtl::longs({5})); s.counts();
  global_mean_merged({torch::rand({2, 3, 4, 4}), torch::rand({2, 3, 4, 4})});
}
DT_MAIN(erase_bad, pool_bad, loss_bad, mean_bad, raw_bad, preview_bad, erase_ok, prefetch_ok, normal_ok, stats_ok)
#endif

#include "session.h"

#include <iostream>

namespace serving {

namespace {

torch::Device chooseDevice(int gpuId) {
  if (gpuId < 0 || !torch::cuda::is_available())
    return torch::kCPU;
  TORCH_CHECK(gpuId < static_cast<int>(torch::cuda::device_count()), "no GPU ", gpuId);
  return torch::Device(torch::kCUDA, static_cast<c10::DeviceIndex>(gpuId));
}

int64_t inputWidth(const torch::jit::Module &module) {
  for (const auto &parameter : module.named_parameters(/*recurse=*/true))
    if (parameter.value.dim() == 2)
      return parameter.value.size(1);
  return 0;
}

} // namespace

Session::Session(SessionOptions options) : options_(std::move(options)), device_(chooseDevice(options_.gpuId)) {}

void Session::open() {
  try {
    module_ = torch::jit::load(options_.modelPath, device_);
  } catch (const c10::Error &error) {
    std::cerr << "cannot load " << options_.modelPath << ": " << error.what_without_backtrace() << "\n";
    throw;
  }
  module_.eval();
  features_ = inputWidth(module_);
  ready_ = true;
  if (!options_.priorPath.empty())
    loadPrior(options_.priorPath);
  if (options_.warmUp) {
    torch::NoGradGuard noGrad;
    for (int i = 0; i < 2; ++i)
      module_.forward({torch::zeros({options_.maxBatch, features_}, torch::TensorOptions().device(device_))});
  }
}

void Session::reload(const std::string &path) {
  std::lock_guard<std::mutex> lock(mutex_);
  auto fresh = torch::jit::load(path);
  fresh.eval();
  fresh.to(device_);
  module_ = std::move(fresh);
  features_ = inputWidth(module_);
}

void Session::setNormalization(const float *mean, const float *scale, int64_t n) {
  TORCH_CHECK(n == features_, "expected ", features_, " values, got ", n);
  const auto options = torch::TensorOptions().dtype(torch::kFloat32);
  mean_ = torch::from_blob(const_cast<float *>(mean), {n}, options).clone();
  scale_ = torch::from_blob(const_cast<float *>(scale), {n}, options).to(device_, torch::kFloat32, false, true);
}

void Session::setLabelMask(const std::vector<int64_t> &allowed, int64_t classes) {
  auto mask = torch::ones({classes}, torch::kBool);
  auto values = mask.accessor<bool, 1>();
  for (const int64_t label : allowed) {
    TORCH_CHECK(label >= 0 && label < classes, "label out of range: ", label);
    values[label] = false;
  }
  labelMask_ = mask.to(device_);
}

void Session::loadPrior(const std::string &path) {
  torch::Tensor stored;
  torch::load(stored, path, device_);
  prior_ = stored.log();
}

void Session::loadBias(const std::string &path) {
  torch::load(bias_, path);
  TORCH_CHECK(bias_.dim() == 1, "a bias per class is expected");
}

torch::Tensor Session::upload(const torch::Tensor &rows) const {
  return rows.device() == device_ ? rows : rows.to(device_);
}

torch::Tensor Session::logits(const torch::Tensor &rows) {
  TORCH_CHECK(ready_, "the session is not open");
  torch::NoGradGuard noGrad;
  std::lock_guard<std::mutex> lock(mutex_);
  std::vector<torch::Tensor> outputs;
  for (const auto &part : rows.split(options_.maxBatch))
    outputs.push_back(module_.forward({upload(part)}).toTensor());
  return torch::cat(outputs);
}

torch::Tensor Session::normalized(const torch::Tensor &rows) const {
  const auto x = upload(rows);
  if (!mean_.defined())
    return x;
  return (x - mean_) / scale_; // [[device-mixed-op]]
}

torch::Tensor Session::calibrated(const torch::Tensor &rows) {
  const auto scores = logits(rows) / temperature_;
  return torch::softmax(scores, -1);
}

torch::Tensor Session::withPrior(const torch::Tensor &rows) {
  auto scores = torch::log_softmax(logits(rows), -1);
  if (prior_.defined())
    scores = scores + prior_;
  return scores;
}

torch::Tensor Session::withBias(const torch::Tensor &rows) {
  const auto scores = logits(rows.to(device_));
  return bias_.defined() ? scores + bias_ : scores; // [[device-load-placement]]
}

torch::Tensor Session::masked(const torch::Tensor &rows) {
  auto scores = logits(rows);
  if (labelMask_.defined())
    scores = scores.masked_fill(labelMask_, -std::numeric_limits<float>::infinity());
  return scores;
}

std::vector<Ranked> Session::topK(const torch::Tensor &rows, int64_t k) {
  const auto probabilities = calibrated(rows).mean(0);
  auto [values, labels] = probabilities.topk(std::min<int64_t>(k, probabilities.numel()));
  values = values.to(torch::kCPU).contiguous();
  labels = labels.to(torch::kCPU).contiguous();
  const float *value = values.data_ptr<float>();
  const int64_t *label = labels.data_ptr<int64_t>();
  std::vector<Ranked> ranked;
  for (int64_t i = 0; i < values.numel(); ++i)
    ranked.push_back({label[i], value[i]});
  return ranked;
}

} // namespace serving

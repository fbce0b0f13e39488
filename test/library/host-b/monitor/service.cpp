#include "service.h"

#include <iostream>

namespace F = torch::nn::functional;

namespace monitor {

Worker::Worker(DetectorConfig config, torch::Device device)
    : config_(config), device_(device), model_(config), stream_(c10::cuda::getStreamFromPool(false, device.index())),
      cache_(config.cache) {
  model_->to(device_);
  model_->eval();
  limit_ = torch::full({}, 1.0f);
  mean_ = torch::zeros({config_.channels}, torch::TensorOptions().device(device_));
  deviation_ = torch::ones({config_.channels});
  history_ = torch::zeros({16}, torch::TensorOptions().device(device_));
}

void Worker::addSensor(const std::string &name) {
  const auto inserted = sensors_.emplace(name, WindowBuffer(config_.length, config_.channels, device_));
  TORCH_CHECK(inserted.second, "sensor '", name, "' exists");
}

WindowBuffer &Worker::sensor(const std::string &name) {
  const auto found = sensors_.find(name);
  TORCH_CHECK(found != sensors_.end(), "no sensor '", name, "'");
  return found->second;
}

torch::Tensor Worker::score(const std::string &name) {
  torch::NoGradGuard noGrad;
  const c10::cuda::CUDAGuard guard(device_);
  const auto window = sensor(name).ordered();
  const auto error = (model_->forward(window) - window).pow(2).mean(1);
  history_.copy_(torch::cat({history_.slice(0, 1), error.max().reshape({1})}));
  cache_.put(name, error.mean());
  return error.mean();
}

torch::Tensor Worker::scoreCached(const std::string &name) {
  torch::Tensor known;
  if (cache_.get(name, known))
    return known;
  return score(name).cpu();
}

// Fresh scores for those that changed, the others come from the cache.
torch::Tensor Worker::scoreAll() {
  std::vector<torch::Tensor> scores;
  for (auto &[name, buffer] : sensors_) {
    torch::Tensor known;
    if (!buffer.full() && cache_.get(name, known))
      scores.push_back(known);
    else
      scores.push_back(score(name));
  }
  TORCH_CHECK(!scores.empty(), "no sensors");
  return torch::stack(scores); // [[device-mixed-op]]
}

torch::Tensor Worker::compare(const std::string &name, const torch::Tensor &reference) {
  const auto window = sensor(name).ordered();
  return torch::cosine_similarity(window, reference.to(window.device()), 1).mean();
}

torch::Tensor Worker::batchOf(const std::vector<torch::Tensor> &windows) const {
  std::vector<torch::Tensor> moved = windows;
  for (auto &window : moved)
    window.to(device_, torch::kFloat32); // [[device-discarded-move]]
  return torch::stack(moved);
}

torch::Tensor Worker::batchOnStream(const torch::Tensor &window) {
  torch::NoGradGuard noGrad;
  const c10::cuda::CUDAStreamGuard guard(stream_);
  auto staged = torch::empty(window.sizes(), torch::TensorOptions().dtype(torch::kFloat32).device(torch::kCUDA));
  staged.copy_(window);
  return model_->forward(staged);
}

double Worker::fit(const torch::Tensor &windows, int64_t epochs) {
  const auto data = windows.to(device_);
  torch::optim::Adam optimizer(model_->parameters(), torch::optim::AdamOptions(1e-2));
  double last = 0;
  model_->train();
  for (int64_t epoch = 0; epoch < epochs; ++epoch) {
    const auto noisy = data + 0.1 * torch::randn_like(data);
    const auto loss = F::mse_loss(model_->forward(noisy), data);
    optimizer.zero_grad();
    loss.backward();
    optimizer.step();
    last = loss.item<double>();
  }
  model_->eval();
  return last;
}

double Worker::validate(const torch::Tensor &windows) {
  torch::NoGradGuard noGrad;
  const auto expected = windows.to(torch::kFloat32);
  const auto rebuilt = model_->forward(expected.to(device_));
  return F::l1_loss(rebuilt, expected).item<double>(); // [[device-loss-input]]
}

torch::Tensor Worker::normalizedScore(const std::string &name) {
  const auto window = sensor(name).ordered();
  return ((window - mean_) / deviation_).abs().amax(1); // [[device-mixed-op]]
}

bool Worker::alarm(const std::string &name) { return score(name).gt(limit_).item<bool>(); }

std::vector<bool> Worker::alarms(const std::vector<float> &limits) {
  TORCH_CHECK(limits.size() == sensors_.size(), "a limit per sensor is needed");
  std::vector<torch::Tensor> scores;
  for (auto &entry : sensors_)
    scores.push_back(score(entry.first));
  const auto raised = torch::stack(scores).gt(torch::tensor(limits, device_)).cpu();
  const auto *first = raised.data_ptr<bool>();
  return {first, first + raised.numel()};
}

void Worker::calibrate(const torch::Tensor &windows) {
  torch::NoGradGuard noGrad;
  const auto data = windows.to(device_);
  const auto errors = (model_->forward(data) - data).pow(2).mean(-1).flatten();
  limit_ = torch::quantile(errors, config_.quantile).cpu();
  mean_ = data.flatten(0, -2).mean(0);
  std::cerr << "limit " << limit_.item<float>() << " on " << device_ << "\n";
}

torch::Tensor Worker::quantiles(const torch::Tensor &windows, const std::vector<float> &levels) {
  torch::NoGradGuard noGrad;
  const auto data = windows.to(device_);
  const auto errors = (model_->forward(data) - data).pow(2).mean(-1).flatten();
  const auto q = torch::tensor(levels);
  return torch::quantile(errors, q); // [[device-mixed-op]]
}

void Worker::loadBaseline(const std::string &file) {
  torch::load(baseline_, file);
  TORCH_CHECK(baseline_.size(-1) == config_.channels, "the baseline has ", baseline_.size(-1), " channels");
}

torch::Tensor Worker::deviation(const std::string &name) {
  if (!baseline_.defined())
    return torch::zeros({config_.channels}, torch::TensorOptions().device(device_));
  const auto window = sensor(name).ordered().mean(0);
  return (window - baseline_).abs(); // [[device-load-placement]]
}

float Worker::worst() const {
  const auto values = history_.accessor<float, 1>();
  float worst = 0;
  for (int64_t i = 0; i < history_.size(0); ++i)
    worst = std::max(worst, values[i]); // [[device-host-access]]
  return worst;
}

void Service::start() {
  workers_.clear();
  const auto count = static_cast<int>(torch::cuda::device_count());
  TORCH_CHECK(count > 0, "the service needs a GPU");
  for (int i = 0; i < count; ++i)
    workers_.push_back(std::make_unique<Worker>(config_, torch::Device(torch::kCUDA, static_cast<c10::DeviceIndex>(i))));
}

// As start(), with one worker more, for the sensors that are replayed.
void Service::startWithSpare() {
  start();
  const torch::Device spare(torch::kCUDA, static_cast<c10::DeviceIndex>(torch::cuda::device_count())); // [[device-lost-index]]
  workers_.push_back(std::make_unique<Worker>(config_, spare));
}

Worker &Service::workerOf(const std::string &sensor) {
  std::lock_guard<std::mutex> lock(mutex_);
  TORCH_CHECK(!workers_.empty(), "start() first");
  const auto found = placement_.find(sensor);
  if (found != placement_.end())
    return *workers_[found->second];
  const size_t index = placement_.size() % workers_.size();
  placement_[sensor] = index;
  workers_[index]->addSensor(sensor);
  return *workers_[index];
}

torch::Tensor Service::totals(const std::vector<std::string> &sensors) {
  torch::Tensor sum = torch::zeros({});
  for (const auto &sensor : sensors)
    sum = sum + workerOf(sensor).score(sensor).cpu();
  return sum;
}

torch::Tensor Service::pooled(const std::vector<std::string> &sensors) {
  std::vector<torch::Tensor> windows;
  for (const auto &sensor : sensors)
    windows.push_back(workerOf(sensor).sensor(sensor).ordered().to(workers_.front()->device()));
  return torch::stack(windows).mean(0);
}

} // namespace monitor

#ifdef DT_RUN
#include "../../../cases/cases.h"

namespace {

using namespace monitor;

const torch::Device gpu(torch::kCUDA, 2);
WindowBuffer buffer() {
  WindowBuffer b(8, 3, gpu);
  b.push({1, 2, 3});
  b.push({2, 3, 4});
  return b;
}
std::unique_ptr<Worker> worker() {
  auto w = std::make_unique<Worker>(DetectorConfig(), gpu);
  w->addSensor("a");
  w->addSensor("b");
  w->sensor("a").pushMany(torch::rand({8, 3}));
  return w;
}
auto windows = [] { return torch::rand({5, 8, 3}); };

void push_ok() { buffer().push({1, 2, 3}); }
void latest_ok() { buffer().latest(2); }
void detrended_ok() { buffer().detrended(); }
void smoothed_bad() { buffer().smoothed(0.2); }
void tapered_ok() { buffer().tapered(); }
void download_ok() { buffer().download(); }
void download_pinned_bad() { buffer().downloadPinned(); }
void newest_ok() { buffer().newest(1); }
void cache_ok() {
  ScoreCache cache(2);
  cache.put("a", torch::rand({}, gpu));
  cache.put("b", torch::rand({}, gpu));
  cache.merged({"a", "b", "c"});
}
void score_ok() { worker()->score("a"); }
void score_cached_ok() { auto w = worker(); w->scoreCached("a"); w->scoreCached("a"); }
void score_all_bad() { auto w = worker(); w->score("b"); w->scoreAll(); }
void compare_ok() { worker()->compare("a", torch::rand({8, 3})); }
void batch_discarded_bad() {
  const auto batch = worker()->batchOf({torch::rand({8, 3}), torch::rand({8, 3})});
  torch::matmul(batch, torch::rand({3, 2}, gpu));
}
void stream_ok() { worker()->batchOnStream(torch::rand({8, 3})); }
void fit_ok() { worker()->fit(windows(), 2); }
void validate_bad() { worker()->validate(windows()); }
void normalized_bad() { worker()->normalizedScore("a"); }
void alarm_ok() { worker()->alarm("a"); }
void alarms_ok() { worker()->alarms({1, 2}); }
void calibrate_ok() { auto w = worker(); w->calibrate(windows()); w->alarm("a"); }
void quantiles_bad() { worker()->quantiles(windows(), {0.1f, 0.9f}); }
void deviation_bad() {
  torch::save(torch::rand({3}), "baseline.pt");
  auto w = worker();
  w->loadBaseline("baseline.pt");
  w->deviation("a");
}
void no_baseline_ok() { worker()->deviation("a"); }
void worst_bad() { worker()->worst(); }
void start_ok() { Service s{DetectorConfig()}; s.start(); }
void start_with_spare_lost_bad() { Service s{DetectorConfig()}; s.startWithSpare(); }
void totals_ok() { Service s{DetectorConfig()}; s.start(); s.totals({"a", "b", "c"}); }
void pooled_ok() { Service s{DetectorConfig()}; s.start(); s.pooled({"a", "b", "c"}); }

} // namespace

DT_MAIN(push_ok, latest_ok, detrended_ok, smoothed_bad, tapered_ok, download_ok, download_pinned_bad, newest_ok, cache_ok,
        score_ok, score_cached_ok, score_all_bad, compare_ok, batch_discarded_bad, stream_ok, fit_ok, validate_bad,
        normalized_bad, alarm_ok, alarms_ok, calibrate_ok, quantiles_bad, deviation_bad, no_baseline_ok, worst_bad, start_ok,
        start_with_spare_lost_bad, totals_ok, pooled_ok)
#endif

#include "capi.h"

#include "session.h"

#include <atomic>
#include <cstring>
#include <unordered_map>

namespace {

std::unordered_map<srv_handle, std::shared_ptr<serving::Session>> sessions;
std::mutex sessionsMutex;
std::atomic<srv_handle> nextHandle{1};
thread_local std::string lastError;

std::shared_ptr<serving::Session> find(srv_handle handle) {
  std::lock_guard<std::mutex> lock(sessionsMutex);
  const auto entry = sessions.find(handle);
  if (entry == sessions.end())
    throw std::invalid_argument("unknown session " + std::to_string(handle));
  return entry->second;
}

template <typename Body>
int guarded(Body &&body) {
  try {
    body();
    return 0;
  } catch (const std::exception &error) {
    lastError = error.what();
  } catch (...) {
    lastError = "unknown error";
  }
  return 1;
}

torch::Tensor wrapRows(const float *rows, int64_t count, int64_t width) {
  return torch::from_blob(const_cast<float *>(rows), {count, width}, torch::kFloat32);
}

void copyOut(const torch::Tensor &values, float *out, int64_t capacity) {
  TORCH_CHECK(values.numel() <= capacity, "the output holds ", capacity, " values, ", values.numel(), " are needed");
  const auto host = values.to(torch::kCPU, torch::kFloat32).contiguous();
  std::memcpy(out, host.data_ptr<float>(), host.numel() * sizeof(float));
}

} // namespace

extern "C" {

const char *srv_last_error(void) { return lastError.c_str(); }

int srv_open(const char *model_path, int gpu_id, srv_handle *handle) {
  return guarded([&] {
    serving::SessionOptions options;
    options.modelPath = model_path;
    options.gpuId = gpu_id;
    options.warmUp = true;
    auto session = std::make_shared<serving::Session>(options);
    session->open();
    std::lock_guard<std::mutex> lock(sessionsMutex);
    *handle = nextHandle++;
    sessions.emplace(*handle, std::move(session));
  });
}

int srv_close(srv_handle handle) {
  return guarded([&] {
    std::lock_guard<std::mutex> lock(sessionsMutex);
    TORCH_CHECK(sessions.erase(handle) == 1, "unknown session ", handle);
  });
}

int srv_reload(srv_handle handle, const char *model_path) {
  return guarded([&] { find(handle)->reload(model_path); });
}

int srv_set_normalization(srv_handle handle, const float *mean, const float *scale, int64_t n) {
  return guarded([&] { find(handle)->setNormalization(mean, scale, n); });
}

int srv_set_label_mask(srv_handle handle, const int64_t *labels, int64_t n, int64_t classes) {
  return guarded([&] { find(handle)->setLabelMask(std::vector<int64_t>(labels, labels + n), classes); });
}

int srv_set_temperature(srv_handle handle, float temperature) {
  return guarded([&] { find(handle)->setTemperature(temperature); });
}

int srv_load_prior(srv_handle handle, const char *path) {
  return guarded([&] { find(handle)->loadPrior(path); });
}

int srv_load_bias(srv_handle handle, const char *path) {
  return guarded([&] { find(handle)->loadBias(path); });
}

int srv_normalize(srv_handle handle, const float *rows, int64_t count, float *out) {
  return guarded([&] {
    auto session = find(handle);
    const auto values = session->normalized(wrapRows(rows, count, session->features()));
    copyOut(values, out, count * session->features());
  });
}

int srv_predict(srv_handle handle, const float *rows, int64_t count, float *out, int64_t capacity) {
  return guarded([&] {
    auto session = find(handle);
    copyOut(session->calibrated(wrapRows(rows, count, session->features())), out, capacity);
  });
}

int srv_predict_biased(srv_handle handle, const float *rows, int64_t count, float *out, int64_t capacity) {
  return guarded([&] {
    auto session = find(handle);
    copyOut(session->withBias(wrapRows(rows, count, session->features())), out, capacity);
  });
}

int srv_predict_masked(srv_handle handle, const float *rows, int64_t count, float *out, int64_t capacity) {
  return guarded([&] {
    auto session = find(handle);
    copyOut(session->masked(wrapRows(rows, count, session->features())), out, capacity);
  });
}

int srv_log_posterior(srv_handle handle, const float *rows, int64_t count, float *out, int64_t capacity) {
  return guarded([&] {
    auto session = find(handle);
    const auto scores = session->withPrior(wrapRows(rows, count, session->features())).contiguous();
    TORCH_CHECK(scores.numel() <= capacity, "output too small: ", capacity);
    std::memcpy(out, scores.data_ptr<float>(), scores.numel() * sizeof(float)); // [[device-host-access]]
  });
}

int srv_best_label(srv_handle handle, const float *rows, int64_t count, int64_t *out) {
  return guarded([&] {
    auto session = find(handle);
    const auto labels = session->logits(wrapRows(rows, count, session->features())).argmax(1);
    std::memcpy(out, labels.cpu().data_ptr<int64_t>(), count * sizeof(int64_t));
  });
}

int srv_confidence(srv_handle handle, const float *rows, int64_t count, float threshold, int64_t *above) {
  return guarded([&] {
    auto session = find(handle);
    const auto best = std::get<0>(session->calibrated(wrapRows(rows, count, session->features())).max(1));
    const float *confidence = best.to(torch::kCPU).data_ptr<float>(); // [[device-dangling-data]]
    *above = 0;
    for (int64_t i = 0; i < count; ++i)
      if (confidence[i] >= threshold)
        ++*above;
  });
}

int srv_top_k(srv_handle handle, const float *rows, int64_t count, int64_t k, int64_t *labels, float *scores) {
  return guarded([&] {
    auto session = find(handle);
    const auto ranked = session->topK(wrapRows(rows, count, session->features()), k);
    for (size_t i = 0; i < ranked.size(); ++i) {
      labels[i] = ranked[i].label;
      scores[i] = ranked[i].score;
    }
  });
}

int srv_distance(srv_handle handle, const float *rows, int64_t count, const float *reference, float *out) {
  return guarded([&] {
    auto session = find(handle);
    const int64_t width = session->features();
    const auto outputs = session->logits(wrapRows(rows, count, width));
    const auto target = torch::from_blob(const_cast<float *>(reference), {1, outputs.size(1)}, torch::kFloat32);
    const auto distance = torch::cdist(outputs, target); // [[device-mixed-op]]
    copyOut(distance, out, count);
  });
}

int srv_parameter_norm(srv_handle handle, double *out) {
  return guarded([&] {
    auto session = find(handle);
    const auto probe = torch::eye(session->features(), torch::TensorOptions().device(session->device()));
    *out = session->logits(probe).norm().item<double>();
  });
}

} // extern "C"

#ifdef DT_RUN
#include "../../../cases/cases.h"

namespace {

const char *modelFile() {
  static const std::string path = "serving_model.pt";
  torch::jit::Module module("Scorer");
  module.register_parameter("weight", torch::rand({4, 3}), false);
  module.define("def forward(self, x):\n  return torch.matmul(x, self.weight.t())\n");
  module.save(path);
  return path.c_str();
}
const char *vectorFile() {
  static const std::string path = "serving_vector.pt";
  torch::save(torch::rand({4}) + 0.1, path);
  return path.c_str();
}
void must(int status) {
  if (status)
    throw std::runtime_error(srv_last_error());
}
srv_handle opened() {
  srv_handle handle = 0;
  must(srv_open(modelFile(), 1, &handle));
  return handle;
}
const std::vector<float> rows(15, 0.5f);
std::vector<float> out(64);

void normalize_bad() {
  auto h = opened();
  const std::vector<float> mean(3, 0.1f), scale(3, 2.0f);
  must(srv_set_normalization(h, mean.data(), scale.data(), 3));
  must(srv_normalize(h, rows.data(), 5, out.data()));
}
void predict_ok() {
  auto h = opened();
  must(srv_set_temperature(h, 1.5f));
  must(srv_predict(h, rows.data(), 5, out.data(), 64));
}
void predict_biased_bad() {
  auto h = opened();
  must(srv_load_bias(h, vectorFile()));
  must(srv_predict_biased(h, rows.data(), 5, out.data(), 64));
}
void predict_masked_ok() {
  auto h = opened();
  const int64_t allowed[] = {0, 2};
  must(srv_set_label_mask(h, allowed, 2, 4));
  must(srv_predict_masked(h, rows.data(), 5, out.data(), 64));
}
void log_posterior_bad() {
  auto h = opened();
  must(srv_load_prior(h, vectorFile()));
  must(srv_log_posterior(h, rows.data(), 5, out.data(), 64));
}
void best_label_ok() {
  auto h = opened();
  int64_t labels[5];
  must(srv_best_label(h, rows.data(), 5, labels));
}
void confidence_dangling_bad() {
  auto h = opened();
  int64_t above = 0;
  must(srv_confidence(h, rows.data(), 5, 0.1f, &above));
}
void top_k_ok() {
  auto h = opened();
  int64_t labels[2];
  float scores[2];
  must(srv_top_k(h, rows.data(), 5, 2, labels, scores));
}
void distance_bad() {
  auto h = opened();
  const std::vector<float> reference(4, 0.f);
  must(srv_distance(h, rows.data(), 5, reference.data(), out.data()));
}
void parameter_norm_ok() {
  double norm = 0;
  must(srv_parameter_norm(opened(), &norm));
}
void reload_ok() {
  auto h = opened();
  must(srv_reload(h, modelFile()));
  must(srv_predict(h, rows.data(), 5, out.data(), 64));
}
void close_ok() {
  auto h = opened();
  must(srv_close(h));
}
void load_prior_ok() {
  auto h = opened();
  must(srv_load_prior(h, vectorFile()));
}

} // namespace

DT_MAIN(normalize_bad, predict_ok, predict_biased_bad, predict_masked_ok, log_posterior_bad, best_label_ok,
        confidence_dangling_bad, top_k_ok, distance_bad, parameter_norm_ok, reload_ok, close_ok, load_prior_ok)
#endif

#include "recognizer.h"

#include <atomic>
#include <cstring>

using asr::Recognizer;
using asr::Session;

namespace {

thread_local std::string last_error;
std::mutex registry_mutex;
std::map<std::string, std::shared_ptr<Recognizer>> models;
std::map<int64_t, std::unique_ptr<Session>> sessions;
std::atomic<int64_t> next_session{1};

asr_status_t fail(asr_status_t status, const char *text) {
  last_error = text;
  return status;
}

Session *findSession(int64_t id) {
  std::lock_guard<std::mutex> lock(registry_mutex);
  auto found = sessions.find(id);
  return found == sessions.end() ? nullptr : found->second.get();
}

std::shared_ptr<Recognizer> findModel(const char *name) {
  std::lock_guard<std::mutex> lock(registry_mutex);
  auto found = models.find(name ? name : "");
  return found == models.end() ? nullptr : found->second;
}

} // namespace

#define ASR_BEGIN try {
#define ASR_END                                                                                              \
  }                                                                                                          \
  catch (const std::exception &error) {                                                                      \
    return fail(ASR_ERR_RUNTIME, error.what());                                                              \
  }                                                                                                          \
  return ASR_OK;
#define ASR_SESSION(var, id)                                                                                 \
  Session *var = findSession(id);                                                                            \
  if (!var)                                                                                                  \
    return fail(ASR_ERR_NOT_FOUND, "no such session");
#define ASR_MODEL(var, name)                                                                                 \
  auto var = findModel(name);                                                                                \
  if (!var)                                                                                                  \
    return fail(ASR_ERR_NOT_FOUND, "no such model");

extern "C" {

const char *asr_last_error(void) { return last_error.c_str(); }

void asr_default_config(asr_model_config_t *config) { *config = {-1, 8, 16, 12, 32, 0.5f}; }

asr_status_t asr_create_model(const char *name, const asr_model_config_t *config) {
  if (!name || !config || config->mel_bins < 1)
    return fail(ASR_ERR_ARGUMENT, "a model needs a name and a configuration");
  ASR_BEGIN
  auto model = std::make_shared<Recognizer>(*config);
  std::lock_guard<std::mutex> lock(registry_mutex);
  models[name] = std::move(model);
  ASR_END
}

asr_status_t asr_destroy_model(const char *name) {
  std::lock_guard<std::mutex> lock(registry_mutex);
  return models.erase(name) ? ASR_OK : fail(ASR_ERR_NOT_FOUND, "no such model");
}

asr_status_t asr_move_model(const char *name, int32_t device) {
  ASR_MODEL(model, name)
  ASR_BEGIN
  model->move(device);
  ASR_END
}

asr_status_t asr_load_lm(const char *name, const char *path) {
  ASR_MODEL(model, name)
  ASR_BEGIN
  model->lm = std::make_unique<torch::jit::Module>(torch::jit::load(path));
  model->lm->eval();
  ASR_END
}

asr_status_t asr_load_punctuation(const char *name, const char *path) {
  ASR_MODEL(model, name)
  ASR_BEGIN
  model->punctuation = std::make_unique<torch::jit::Module>(torch::jit::load(path, model->device));
  model->punctuation->eval();
  ASR_END
}

asr_status_t asr_open_session(const char *name, int64_t *session) {
  ASR_MODEL(model, name)
  if (!session)
    return fail(ASR_ERR_ARGUMENT, "nowhere to put the session");
  ASR_BEGIN
  auto fresh = std::make_unique<Session>(model);
  *session = next_session++;
  std::lock_guard<std::mutex> lock(registry_mutex);
  sessions.emplace(*session, std::move(fresh));
  ASR_END
}

asr_status_t asr_close_session(int64_t id) {
  std::lock_guard<std::mutex> lock(registry_mutex);
  return sessions.erase(id) ? ASR_OK : fail(ASR_ERR_NOT_FOUND, "no such session");
}

asr_status_t asr_push_audio(int64_t id, const float *samples, size_t count) {
  ASR_SESSION(session, id)
  if (count < static_cast<size_t>(session->model().config.frame_length))
    return fail(ASR_ERR_ARGUMENT, "less than a frame of audio");
  ASR_BEGIN
  session->push(samples, count);
  ASR_END
}

asr_status_t asr_reset_session(int64_t id) {
  ASR_SESSION(session, id)
  ASR_BEGIN
  session->reset();
  ASR_END
}

asr_status_t asr_rewind_session(int64_t id) {
  ASR_SESSION(session, id)
  ASR_BEGIN
  session->rewind();
  ASR_END
}

asr_status_t asr_set_hotwords(int64_t id, const float *weights, size_t count) {
  ASR_SESSION(session, id)
  ASR_BEGIN
  session->setHotwords(weights, count);
  ASR_END
}

asr_status_t asr_set_mask(int64_t id, const int64_t *tokens, size_t count) {
  ASR_SESSION(session, id)
  ASR_BEGIN
  session->setMask(tokens, count);
  ASR_END
}

asr_status_t asr_decode(int64_t id, int64_t *tokens, size_t capacity, size_t *count) {
  ASR_SESSION(session, id)
  ASR_BEGIN
  const auto best = session->decode();
  *count = std::min(capacity, best.size());
  std::copy_n(best.begin(), *count, tokens);
  ASR_END
}

asr_status_t asr_rescore(int64_t id, float *score) {
  ASR_SESSION(session, id)
  auto &model = session->model();
  if (!model.lm)
    return fail(ASR_ERR_STATE, "no language model was loaded");
  ASR_BEGIN
  torch::NoGradGuard no_grad;
  auto tokens = session->tokenTensor().to(model.device);
  auto logits = model.lm->forward({tokens}).toTensor(); // [[device-load-placement]]
  *score = logits.mean().item<float>();
  ASR_END
}

asr_status_t asr_punctuate(int64_t id, float *score) {
  ASR_SESSION(session, id)
  auto &model = session->model();
  if (!model.punctuation)
    return fail(ASR_ERR_STATE, "no punctuation model was loaded");
  ASR_BEGIN
  torch::NoGradGuard no_grad;
  auto tokens = session->tokenTensor().to(model.device);
  *score = model.punctuation->forward({tokens}).toTensor().mean().item<float>();
  ASR_END
}

asr_status_t asr_copy_logits(int64_t id, float *out, size_t capacity) {
  ASR_SESSION(session, id)
  if (!session->logits().defined())
    return fail(ASR_ERR_STATE, "no audio was pushed");
  ASR_BEGIN
  const auto logits = torch::log_softmax(session->logits(), 1).contiguous();
  if (capacity < static_cast<size_t>(logits.numel()))
    return fail(ASR_ERR_ARGUMENT, "the buffer is too small");
  std::memcpy(out, logits.data_ptr<float>(), logits.nbytes()); // [[device-host-access]]
  ASR_END
}

asr_status_t asr_copy_features(int64_t id, float *out, size_t capacity) {
  ASR_SESSION(session, id)
  const auto &features = session->features();
  if (!features.defined())
    return fail(ASR_ERR_STATE, "no audio was pushed");
  if (capacity < static_cast<size_t>(features.numel()))
    return fail(ASR_ERR_ARGUMENT, "the buffer is too small");
  ASR_BEGIN
  std::memcpy(out, features.cpu().contiguous().data_ptr<float>(), features.nbytes());
  ASR_END
}

asr_status_t asr_borrow_posteriors(int64_t id, const float **out, size_t *count) {
  ASR_SESSION(session, id)
  if (!session->logits().defined())
    return fail(ASR_ERR_STATE, "no audio was pushed");
  ASR_BEGIN
  const auto posteriors = torch::softmax(session->logits(), 1);
  *count = static_cast<size_t>(posteriors.numel());
  *out = posteriors.to(torch::kCPU).data_ptr<float>(); // [[device-dangling-data]]
  ASR_END
}

asr_status_t asr_borrow_logits(int64_t id, const float **out, size_t *count) {
  ASR_SESSION(session, id)
  if (!session->logits().defined())
    return fail(ASR_ERR_STATE, "no audio was pushed");
  ASR_BEGIN
  *out = session->keepLogits(count);
  ASR_END
}

asr_status_t asr_spectrum(const char *name, const float *samples, size_t count, float *out) {
  ASR_MODEL(model, name)
  ASR_BEGIN
  auto audio = torch::from_blob(const_cast<float *>(samples), {static_cast<int64_t>(count)});
  auto power = model->frontend.power(audio).mean(0);
  torch::from_blob(out, {power.numel()}, torch::kFloat).copy_(power);
  ASR_END
}

asr_status_t asr_step_many(const int64_t *ids, size_t count) {
  std::vector<torch::Tensor> states;
  std::vector<Session *> all;
  for (size_t i = 0; i < count; ++i) {
    ASR_SESSION(session, ids[i])
    if (!all.empty() && &session->model() != &all.front()->model())
      return fail(ASR_ERR_ARGUMENT, "the sessions belong to different models");
    all.push_back(session);
    states.push_back(session->state().to(session->model().device));
  }
  if (all.empty())
    return ASR_OK;
  ASR_BEGIN
  torch::NoGradGuard no_grad;
  auto &model = all.front()->model();
  auto silence = torch::zeros({static_cast<int64_t>(count), model.config.mel_bins}, torch::TensorOptions(model.device));
  auto next = model.acoustic->cell(silence, torch::cat(states)).split(1);
  for (size_t i = 0; i < count; ++i)
    all[i]->state() = next[i];
  ASR_END
}

} // extern "C"

#ifdef DT_RUN
#include "../../../cases/cases.h"
#include <unistd.h>
static void must(asr_status_t s) { if (s != ASR_OK) throw std::runtime_error(last_error.find("TorchScript") != std::string::npos ? last_error.substr(last_error.rfind("RuntimeError")) : last_error); }
static std::vector<float> audio(96, 0.3f);
static int64_t open(int device = 1) {
  asr_model_config_t c;
  asr_default_config(&c);
  c.device = device;
  must(asr_create_model("en", &c));
  int64_t s;
  must(asr_open_session("en", &s));
  return s;
}
static int64_t pushed() { auto s = open(); must(asr_push_audio(s, audio.data(), 96)); return s; }
static void decode(int64_t s) { int64_t t[16]; size_t n; must(asr_decode(s, t, 16, &n)); }
static std::string exported() {
  torch::jit::Module m("Lm");
  m.register_parameter("w", torch::rand({12, 2}), false);
  m.define("def forward(self, x: Tensor) -> Tensor:\n  return torch.embedding(self.w, x)\n");
  const std::string path = "lm_" + std::to_string(::getpid()) + ".pt";
  m.save(path);
  return path;
}
void push_ok() { auto s = pushed(); must(asr_push_audio(s, audio.data(), 96)); }
void decode_ok() { decode(pushed()); }
void moved_model_bad() { open(); must(asr_move_model("en", 2)); int64_t s; must(asr_open_session("en", &s)); must(asr_push_audio(s, audio.data(), 96)); }
void moved_spectrum_ok() { open(); must(asr_move_model("en", 2)); float out[17]; must(asr_spectrum("en", audio.data(), 96, out)); }
void reset_bad() { auto s = pushed(); must(asr_reset_session(s)); must(asr_push_audio(s, audio.data(), 96)); }
void rewind_ok() { auto s = pushed(); must(asr_rewind_session(s)); must(asr_push_audio(s, audio.data(), 96)); }
void hotwords_bad() { auto s = pushed(); std::vector<float> w(12, 1.f); must(asr_set_hotwords(s, w.data(), 12)); decode(s); }
void mask_ok() { auto s = pushed(); int64_t t[2] = {3, 4}; must(asr_set_mask(s, t, 2)); decode(s); }
void rescore_bad() { auto s = pushed(); must(asr_load_lm("en", exported().c_str())); float x; must(asr_rescore(s, &x)); }
void punctuate_ok() { auto s = pushed(); must(asr_load_punctuation("en", exported().c_str())); float x; must(asr_punctuate(s, &x)); }
void copy_logits_bad() { auto s = pushed(); std::vector<float> out(1000); must(asr_copy_logits(s, out.data(), 1000)); }
void copy_features_ok() { auto s = pushed(); std::vector<float> out(1000); must(asr_copy_features(s, out.data(), 1000)); }
void posteriors_bad() {
  auto s = pushed();
  const float *p;
  size_t n;
  must(asr_borrow_posteriors(s, &p, &n));
  float sum = 0;
  for (size_t i = 0; i < 12; ++i)
    sum += p[i];
  dtl::require(std::abs(sum - 1) < 1e-3, "freed memory was read");
}
void borrow_logits_ok() { auto s = pushed(); const float *p; size_t n; must(asr_borrow_logits(s, &p, &n)); dtl::require(std::isfinite(p[0]) && std::abs(p[0]) < 100, "x"); }
void step_many_ok() { auto s = pushed(); int64_t t; must(asr_open_session("en", &t)); int64_t all[2] = {s, t}; must(asr_step_many(all, 2)); decode(s); }
void close_ok() { auto s = pushed(); must(asr_close_session(s)); must(asr_destroy_model("en")); }
DT_MAIN(push_ok, decode_ok, moved_model_bad, moved_spectrum_ok, reset_bad, rewind_ok, hotwords_bad, mask_ok, rescore_bad,
        punctuate_ok, copy_logits_bad, copy_features_ok, posteriors_bad, borrow_logits_ok, step_many_ok, close_ok)
#endif

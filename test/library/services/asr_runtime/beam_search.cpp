#include "asr_model.h"

namespace asr {

torch::Tensor LanguageModel::Score(const torch::Tensor& tokens) {
  torch::NoGradGuard no_grad;
  const auto ids = tokens.cpu().to(torch::kFloat);
  return module_.forward({ids}).toTensor().log_softmax(-1);
}

void BeamSearch::Start(int64_t time, int64_t width) {
  cache_ = torch::zeros({beam_, time, width}, device_);
  scores_ = torch::full({beam_}, kLogZero, device_);
  scores_[0] = 0;
}

void BeamSearch::Append(const torch::Tensor& keys) { cache_ = torch::cat({cache_, keys.to(device_)}, 1); }

void BeamSearch::Reorder(const std::vector<int64_t>& parents) {
  cache_ = cache_.index_select(0, torch::tensor(parents, torch::kLong)); // [[device-mixed-op]]
}

void BeamSearch::Truncate(const std::vector<int64_t>& alive) {
  const auto rows = torch::tensor(alive, torch::kLong);
  cache_ = cache_.index({rows});
  scores_ = scores_.index({rows});
}

std::vector<int64_t> BeamSearch::Step(const torch::Tensor& log_probs) {
  const auto total = scores_.unsqueeze(1) + log_probs.to(device_);
  const auto [top, where] = total.flatten().topk(beam_);
  scores_ = top;
  const auto host = where.to(torch::kCPU);
  const auto ids = host.accessor<int64_t, 1>();
  std::vector<int64_t> parents(beam_);
  for (int i = 0; i < beam_; ++i)
    parents[i] = ids[i] / log_probs.size(1);
  return parents;
}

torch::Tensor BeamSearch::ShallowFusion(const torch::Tensor& am, LanguageModel& lm, const torch::Tensor& tokens,
                                        double weight) {
  const auto acoustic = am.to(device_).log_softmax(-1);
  const auto language = lm.Score(tokens);
  return acoustic + weight * language; // [[device-mixed-op]]
}

torch::Tensor BeamSearch::RescoreFinal(const torch::Tensor& am, LanguageModel& lm, const torch::Tensor& tokens,
                                       double weight) {
  const auto acoustic = am.to(device_).log_softmax(-1);
  return LogAdd(acoustic, weight * lm.Score(tokens).to(acoustic.device()));
}

} // namespace asr

struct asr_session {
  asr::AsrModel model;
  torch::Tensor log_probs, host;
};

extern "C" {

asr_session* asr_open(const char* dir, int gpu) {
  auto session = std::make_unique<asr_session>();
  try {
    session->model.Read(dir, gpu);
  } catch (const c10::Error&) {
    return nullptr;
  }
  return session.release();
}

void asr_feed(asr_session* session, const float* feats, int frames, int dim) {
  asr::Frames chunk(frames);
  for (int i = 0; i < frames; ++i)
    chunk[i].assign(feats + i * dim, feats + (i + 1) * dim);
  session->log_probs = session->model.ForwardEncoder(chunk).log_softmax(-1);
}

const float* asr_log_probs(asr_session* session, int* frames) {
  *frames = static_cast<int>(session->log_probs.size(1));
  return session->log_probs.squeeze(0).cpu().data_ptr<float>(); // [[device-dangling-data]]
}

const float* asr_posteriors(asr_session* session, int* frames) {
  session->host = session->log_probs.squeeze(0).exp().to(torch::kCPU).contiguous();
  *frames = static_cast<int>(session->host.size(0));
  return session->host.data_ptr<float>();
}

void asr_close(asr_session* session) { delete session; }

} // extern "C"

#ifdef DT_RUN
#include "../../shim/driver.h"
#include <sys/stat.h>
using namespace asr;
static void part(const std::string& file) {
  torch::jit::Module m("Part");
  m.register_parameter("w", torch::rand({4, 4}), false);
  m.define("def forward(self, x):\n  return torch.matmul(x, self.w)\n");
  m.save(file);
}
static const char* models() {
  mkdir("asr", 0755);
  for (auto n : {"encoder", "decoder", "ctc", "lm"})
    part(std::string("asr/") + n + ".zip");
  return "asr";
}
static Frames frames(int n = 5) { return Frames(n, std::vector<float>(4, 0.5f)); }
static AsrModel model() { AsrModel m; m.Read(models(), 1); return m; }
static void fbank_bad() { GpuFbank(4, 16).ComputeHost(std::vector<float>(100, 0.1f)); }
static void batch_bad() { model().ForwardBatch({frames(), frames(3)}); }
static void ctc_bad() { auto m = model(); m.CtcActivation(m.ForwardEncoder(frames())); }
static void mask_bad() { auto m = model(); m.MaskedScores(m.ForwardEncoder(frames()), {4}); }
static void reorder_bad() { BeamSearch b(3, dtl::dev(1)); b.Start(2, 4); b.Reorder({0, 0, 1}); }
static void fusion_bad() {
  models();
  LanguageModel lm("asr/lm.zip");
  BeamSearch(3, dtl::dev(1)).ShallowFusion(dtl::gpu({3, 4}), lm, dtl::longs({3, 4}), 0.3);
}
static void probs_bad() {
  auto* s = asr_open(models(), 1);
  std::vector<float> f(400, 0.5f);
  asr_feed(s, f.data(), 100, 4);
  int n = 0;
  auto* p = asr_log_probs(s, &n);
  float sum = 0;
  for (int i = 0; i < 4; ++i)
    sum += std::exp(p[4 * 50 + i]);
  dtl::require(std::abs(sum - 1) < 1e-3, "log probs");
}
static void fbank_ok() { GpuFbank(4, 16).Energies(std::vector<float>(100, 0.1f)); }
static void rescore_ok() {
  auto m = model();
  auto out = m.ForwardEncoder(frames());
  m.ForwardEncoder(frames());
  m.Rescore({{1, 2}, {3}});
  m.MaskedMean(out, {4});
}
static void cmvn_ok() { auto m = model(); torch::save(torch::rand({2, 4}), "cmvn.pt"); m.ReadCmvn("cmvn.pt"); m.Normalise(torch::rand({3, 4})); }
static void beam_ok() {
  models();
  LanguageModel lm("asr/lm.zip");
  BeamSearch b(3, dtl::dev(1));
  b.Start(2, 4);
  b.Append(torch::rand({3, 1, 4}));
  auto p = b.Step(dtl::gpu({3, 4}, 2));
  b.Truncate(p);
  b.RescoreFinal(dtl::gpu({3, 4}), lm, dtl::longs({3, 4}), 0.3);
}
static void capi_ok() {
  auto* s = asr_open(models(), 1);
  std::vector<float> f(40, 0.5f);
  asr_feed(s, f.data(), 10, 4);
  int n = 0;
  auto* p = asr_posteriors(s, &n);
  dtl::require(std::abs(p[0] + p[1] + p[2] + p[3] - 1) < 1e-3, "posteriors");
  asr_close(s);
}
DT_MAIN(fbank_bad, batch_bad, ctc_bad, mask_bad, reorder_bad, fusion_bad, probs_bad, fbank_ok, rescore_ok, cmvn_ok,
        beam_ok, capi_ok)
#endif

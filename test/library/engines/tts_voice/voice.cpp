#include "tts.h"

#include <algorithm>

namespace tts {

namespace {

torch::Tensor to_pcm(const torch::Tensor& wav) { return wav.clamp(-1, 1).mul(32767).to(torch::kShort).contiguous(); }

} // namespace

Voice::Voice(const VoiceConfig& config, torch::Device device)
    : config_(config), device_(device), encoder_(config), decoder_(config) {
  encoder_->to(device_);
  decoder_->to(device_);
  encoder_->eval();
  decoder_->eval();
}

void Voice::move(torch::Device device) {
  device_ = device;
  encoder_->to(device);
  decoder_->to(device);
  if (vocoder_)
    vocoder_->to(device);
}

void Voice::set_vocoder(std::unique_ptr<Vocoder> vocoder) {
  vocoder_ = std::move(vocoder);
  vocoder_->to(device_);
}

void Voice::load_speakers(const std::string& file) { torch::load(speaker_table_, file); }

torch::Tensor Voice::speaker(const std::string& name) {
  auto found = speakers_.find(name);
  if (found == speakers_.end()) {
    torch::manual_seed(static_cast<uint64_t>(std::hash<std::string>{}(name)));
    found = speakers_.emplace(name, torch::randn({config_.width}, device_)).first;
  }
  return found->second;
}

torch::Tensor Voice::styled(const torch::Tensor& hidden, const std::string& name) {
  const auto x = hidden.to(device_);
  return x + speaker(name); // [[device-mixed-op]]
}

torch::Tensor Voice::mixed_speaker(int64_t a, int64_t b, double weight, const torch::Tensor& hidden) const {
  const auto blended = torch::lerp(speaker_table_[a], speaker_table_[b], weight);
  return hidden.to(device_) * blended; // [[device-load-placement]]
}

torch::Tensor Voice::regulate(const torch::Tensor& hidden, const torch::Tensor& durations) const {
  const auto x = hidden.to(device_);
  const auto rounded = durations.to(device_).round().clamp_min(1).to(torch::kLong);
  const auto count = rounded.accessor<int64_t, 1>();
  std::vector<torch::Tensor> rows;
  for (int64_t i = 0; i < x.size(0); ++i)
    rows.push_back(x.slice(0, i, i + 1).expand({count[i], x.size(1)})); // [[device-host-access]]
  return torch::cat(rows);
}

torch::Tensor Voice::regulate_fast(const torch::Tensor& hidden, const torch::Tensor& durations) const {
  const auto x = hidden.to(device_);
  const auto repeats = durations.round().clamp_min(1).to(torch::kLong).cpu();
  std::vector<int64_t> rows;
  const auto count = repeats.accessor<int64_t, 1>();
  for (int64_t i = 0; i < repeats.size(0); ++i)
    rows.insert(rows.end(), count[i], i);
  return x.index_select(0, torch::tensor(rows, torch::dtype(torch::kLong).device(x.device())));
}

torch::Tensor Voice::speak(const std::vector<int64_t>& phones) {
  torch::NoGradGuard no_grad;
  const auto ids = torch::tensor(phones, torch::kLong).to(device_);
  const auto hidden = encoder_->forward_one(ids);
  const auto mel = decoder_->forward(regulate_fast(hidden, torch::full({hidden.size(0)}, 2.)));
  TORCH_CHECK(vocoder_, "no vocoder");
  return vocoder_->synthesize(mel);
}

PcmChunk Voice::next_chunk(const torch::Tensor& wav) {
  PcmChunk chunk;
  const auto pcm = to_pcm(wav);
  chunk.count = pcm.numel();
  chunk.samples = pcm.cpu().data_ptr<int16_t>(); // [[device-dangling-data]]
  return chunk;
}

PcmChunk Voice::held_chunk(const torch::Tensor& wav) {
  held_ = to_pcm(wav).cpu();
  return {held_.data_ptr<int16_t>(), held_.numel()};
}

void Voice::stream(const torch::Tensor& wav, const std::function<void(const PcmChunk&)>& sink) const {
  for (const auto& part : wav.split(64)) {
    const auto pcm = to_pcm(part).to(torch::kCPU);
    sink({pcm.data_ptr<int16_t>(), pcm.numel()});
  }
}

VoiceTrainer::VoiceTrainer(const VoiceConfig& config, torch::Device device)
    : device_(device), decoder_(config),
      criterion_(torch::nn::BCEWithLogitsLossOptions().pos_weight(torch::full({1}, 5.))) {
  decoder_->to(device_);
  criterion_->to(device_);
  gain_ = torch::ones({1}, torch::device(device_).requires_grad(true));
}

float VoiceTrainer::mel_only(const TtsBatch& batch) {
  const auto moved = batch.to(device_);
  const auto loss = torch::l1_loss(decoder_(moved.ids), moved.mel);
  loss.backward();
  return loss.item<float>();
}

float VoiceTrainer::stop_loss(const TtsBatch& batch) {
  const auto mel = batch.mel.to(device_);
  const auto loss = criterion_(stop_logits(mel), batch.stop.to(mel.device()));
  loss.backward();
  return loss.item<float>();
}

float VoiceTrainer::step(const TtsBatch& batch) {
  const auto moved = batch.to(device_);
  const auto mel = decoder_(moved.ids);
  const auto regression = torch::l1_loss(mel, moved.mel);
  const auto stop = criterion_(stop_logits(mel), moved.stop); // [[device-loss-input]]
  const auto loss = regression + stop;
  loss.backward();
  return loss.item<float>();
}

float VoiceTrainer::stop_accuracy(const TtsBatch& batch) {
  const auto said = stop_logits(batch.mel.to(device_)).sigmoid().gt(0.5);
  return said.cpu().eq(batch.stop.cpu().gt(0.5)).to(torch::kFloat).mean().item<float>();
}

} // namespace tts

#ifdef DT_RUN
#include "../../shim/driver.h"
using namespace tts;
static Voice voice() { return Voice({}, dtl::dev(1)); }
static TtsBatch batch() { return {torch::rand({6, 16}), torch::rand({6, 20}), torch::ones({6})}; }
static void padded_bad() { PhoneEncoder e(VoiceConfig{}); e->to(dtl::dev(1)); e->forward_padded(dtl::longs({2, 5}), torch::ones({2, 5})); }
static void postnet_bad() { MelDecoder d(VoiceConfig{}); d->to(dtl::dev(1)); d->refine(dtl::gpu({5, 16})); }
static void autoregress_bad() { MelDecoder d(VoiceConfig{}); d->to(dtl::dev(1)); d->autoregress(dtl::gpu({5, 16}), 3); }
static void spectrum_bad() { SpectralVocoder v({}); v.to(dtl::dev(1)); v.spectrum(torch::rand({100})); }
static void styled_bad() { auto v = voice(); v.styled(torch::rand({5, 16}), "anna"); v.move(dtl::dev(2)); v.styled(torch::rand({5, 16}), "anna"); }
static void speakers_bad() { torch::save(torch::rand({3, 16}), "speakers.pt"); auto v = voice(); v.load_speakers("speakers.pt"); v.mixed_speaker(0, 2, 0.3, torch::rand({5, 16})); }
static void regulate_bad() { voice().regulate(torch::rand({3, 16}), torch::tensor({1.f, 2.f, 3.f})); }
static void chunk_bad() {
  auto c = voice().next_chunk(dtl::gpu({600}));
  int zeros = 0;
  for (int i = 0; i < c.count; ++i)
    dtl::require(c.samples[i] >= 0, "samples");
}
static void stop_bad() { VoiceTrainer({}, dtl::dev(1)).step(batch()); }
static void encoder_ok() { PhoneEncoder e(VoiceConfig{}); e->to(dtl::dev(1)); e->forward(dtl::longs({2, 5}), dtl::longs({2}) + 3); e->forward_one(dtl::longs({4})); }
static void speak_ok() {
  auto v = voice();
  v.set_vocoder(std::make_unique<SpectralVocoder>(VoiceConfig{}));
  v.speak({1, 2, 3});
  v.move(dtl::dev(2));
  auto wav = v.speak({1, 2, 3});
  int64_t n = 0;
  v.stream(wav, [&](const PcmChunk& c) { for (int i = 0; i < c.count; ++i) n += c.samples[i] != 12345; });
  dtl::require(v.held_chunk(wav).samples[0] >= -32767 && n == wav.numel(), "pcm");
}
static void neural_ok() {
  torch::jit::Module m("V");
  m.register_parameter("w", torch::rand({20, 8}), false);
  m.define("def forward(self, x):\n  return torch.matmul(x, self.w)\n");
  m.save("vocoder.pt");
  auto v = voice();
  v.set_vocoder(std::make_unique<NeuralVocoder>("vocoder.pt"));
  v.speak({1, 2});
}
static void styled_ok() { auto v = voice(); v.move(dtl::dev(2)); v.styled(torch::rand({5, 16}), "anna"); v.regulate_fast(torch::rand({3, 16}), dtl::gpu({3}, 3)); }
static void decoder_ok() { MelDecoder d(VoiceConfig{}); d->to(dtl::dev(1)); d->forward(dtl::gpu({5, 16})); }
static void trainer_ok() { VoiceTrainer t({}, dtl::dev(1)); t.mel_only(batch()); t.stop_loss(batch()); t.stop_accuracy(batch()); }
static void cpu_ok() { VoiceTrainer t({}, torch::kCPU); t.step(batch()); SpectralVocoder v({}); v.spectrum(torch::rand({100})); }
DT_MAIN(padded_bad, postnet_bad, autoregress_bad, spectrum_bad, styled_bad, speakers_bad, regulate_bad, chunk_bad,
        stop_bad, encoder_ok, speak_ok, neural_ok, styled_ok, decoder_ok, trainer_ok, cpu_ok)
#endif

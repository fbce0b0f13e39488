#include "features.h"

namespace speech {

torch::Tensor makeMelFilters(const MelOptions &mel, const FrameOptions &frame) {
  const int64_t columns = frame.fftSize / 2 + 1;
  const float low = hertzToMel(mel.low), high = hertzToMel(mel.high);
  TORCH_CHECK(high > low, "the filters need low < high, got ", mel.low, " and ", mel.high);
  auto filters = torch::zeros({mel.bins, columns});
  auto value = filters.accessor<float, 2>();
  const float step = (high - low) / static_cast<float>(mel.bins + 1);
  for (int64_t bin = 0; bin < mel.bins; ++bin) {
    const float left = low + step * static_cast<float>(bin), center = left + step, right = center + step;
    for (int64_t k = 0; k < columns; ++k) {
      const float at = hertzToMel(static_cast<float>(k * frame.sampleRate) / static_cast<float>(frame.fftSize));
      if (at > left && at < right)
        value[bin][k] = at <= center ? (at - left) / step : (right - at) / step;
    }
  }
  return filters;
}

MelSpectrogramImpl::MelSpectrogramImpl(FrameOptions frame, MelOptions mel) : frame_(frame), mel_(mel) {
  window_ = torch::hann_window(frame_.fftSize, /*periodic=*/true);
  filters_ = register_buffer("filters", makeMelFilters(mel_, frame_));
}

torch::Tensor MelSpectrogramImpl::power(const torch::Tensor &framed) {
  return torch::fft::rfft(framed).abs().pow(2);
}

torch::Tensor MelSpectrogramImpl::forward(const torch::Tensor &waveform) {
  TORCH_CHECK(waveform.size(-1) >= frame_.fftSize, "the waveform is shorter than a frame");
  const auto framed = waveform.unfold(-1, frame_.fftSize, frame_.hop);
  const auto windowed = framed * window_; // [[device-unregistered-tensor]]
  const auto mel = torch::matmul(power(windowed), filters_.t());
  return mel_.logarithm ? torch::log(mel + 1e-6) : mel;
}

SpeakerStatistics::SpeakerStatistics(int64_t dimension, torch::Device device)
    : dimension_(dimension), device_(device), squares_(torch::zeros({dimension})) {
  sum_ = torch::zeros({dimension_}, torch::TensorOptions().device(device_));
}

void SpeakerStatistics::reset() {
  count_ = 0;
  sum_.zero_();
  squares_.zero_();
}

void SpeakerStatistics::accumulate(const torch::Tensor &frames) {
  TORCH_CHECK(frames.size(-1) == dimension_, "expected ", dimension_, " columns");
  sum_ += frames.to(device_).sum(0);
  count_ += frames.size(0);
}

void SpeakerStatistics::accumulateSquares(const torch::Tensor &frames) {
  const auto x = frames.to(device_);
  squares_ += x.pow(2).sum(0); // [[device-mixed-op]]
}

torch::Tensor SpeakerStatistics::apply(const torch::Tensor &frames) const {
  if (count_ == 0)
    return frames;
  return frames.to(device_) - mean();
}

StreamingExtractor::StreamingExtractor(FrameOptions frame, MelOptions mel, torch::Device device)
    : frame_(frame), mel_(mel), device_(device), spectrogram_(frame, mel) {
  spectrogram_->to(device_);
  spectrogram_->eval();
}

torch::Tensor StreamingExtractor::feed(const std::vector<int16_t> &samples) {
  const auto raw = torch::from_blob(const_cast<int16_t *>(samples.data()), {static_cast<int64_t>(samples.size())}, torch::kInt16);
  const auto waveform = raw.to(torch::kFloat32).div_(32768.0).to(device_);
  return spectrogram_->forward(emphasize(waveform));
}

torch::Tensor StreamingExtractor::feedFloat(std::vector<float> &samples) {
  const auto count = static_cast<int64_t>(samples.size());
  const auto options = torch::TensorOptions().dtype(torch::kFloat32).device(device_);
  auto waveform = torch::empty({count}, options);
  waveform.copy_(torch::from_blob(samples.data(), {count}, torch::kFloat32));
  history_.push_back(waveform);
  if (history_.size() > 8)
    history_.pop_front();
  return emphasize(waveform);
}

torch::Tensor StreamingExtractor::feedShared(std::vector<float> &samples) {
  const auto options = torch::TensorOptions().dtype(torch::kFloat32).device(device_);
  auto waveform = torch::from_blob(samples.data(), {static_cast<int64_t>(samples.size())}, options); // [[device-host-access]]
  return waveform.mul(1.0 / 32768.0);
}

// The last samples of a piece are the first ones of the next.
torch::Tensor StreamingExtractor::appendTail(const torch::Tensor &chunk) {
  auto waveform = chunk.to(device_);
  if (tail_.defined())
    waveform = torch::cat({tail_, waveform}); // [[device-mixed-op]]
  const auto overlap = frame_.fftSize - frame_.hop;
  tail_ = waveform.slice(0, std::max<int64_t>(0, waveform.size(0) - overlap)).cpu();
  return waveform;
}

torch::Tensor StreamingExtractor::emphasize(const torch::Tensor &waveform) const {
  const auto shifted = torch::cat({waveform.slice(0, 0, 1), waveform.slice(0, 0, -1)});
  return waveform - frame_.preEmphasis * shifted;
}

torch::Tensor StreamingExtractor::dithered(const torch::Tensor &waveform) const {
  const auto signal = waveform.to(device_, torch::kFloat32);
  if (frame_.dither == 0.0f)
    return signal;
  return signal + frame_.dither * torch::randn(signal.sizes(), signal.dtype()); // [[device-mixed-op]]
}

torch::Tensor StreamingExtractor::deltas(const torch::Tensor &features) const {
  const auto x = features.to(device_).t().unsqueeze(1);
  const auto kernel = torch::tensor({-0.2f, -0.1f, 0.0f, 0.1f, 0.2f}).view({1, 1, 5});
  return torch::conv1d(x, kernel, {}, 1, 2).squeeze(1).t(); // [[device-mixed-op]]
}

torch::Tensor StreamingExtractor::contextWindows(const torch::Tensor &features) const {
  const auto x = features.to(device_);
  const auto frames = torch::arange(x.size(0)).unsqueeze(1) + torch::arange(-2, 3).unsqueeze(0);
  return x.index({frames.clamp(0, x.size(0) - 1)}).flatten(1);
}

torch::Tensor StreamingExtractor::filtersOn(const torch::Device &device) {
  const auto key = device.str();
  auto entry = filterCache_.find(key);
  if (entry == filterCache_.end())
    entry = filterCache_.emplace(key, makeMelFilters(mel_, frame_).to(device)).first;
  return entry->second;
}

torch::Tensor StreamingExtractor::filterEnergies(const torch::Tensor &spectrum) {
  const auto filters = filtersOn(spectrum.device());
  return torch::matmul(spectrum, filters.t());
}

torch::Tensor StreamingExtractor::recent(int64_t count) const {
  std::vector<torch::Tensor> pieces;
  const auto first = history_.size() > static_cast<size_t>(count) ? history_.size() - count : 0;
  for (size_t i = first; i < history_.size(); ++i)
    pieces.push_back(history_[i]);
  return pieces.empty() ? torch::zeros({0}) : torch::cat(pieces);
}

std::vector<float> StreamingExtractor::energies(const torch::Tensor &waveform) const {
  const auto framed = waveform.to(device_).unfold(-1, frame_.fftSize, frame_.hop);
  const auto energy = framed.pow(2).mean(-1).to(torch::kCPU, torch::kFloat32).contiguous();
  const float *begin = energy.data_ptr<float>();
  return {begin, begin + energy.numel()};
}

bool StreamingExtractor::voiced(const torch::Tensor &waveform) const {
  const auto energy = waveform.to(device_).pow(2).mean();
  return (energy > torch::tensor(1e-4)).item<bool>();
}

void StreamingExtractor::flush() {
  tail_ = torch::Tensor();
  history_.clear();
}

} // namespace speech

#ifdef DT_RUN
#include "../../../cases/cases.h"

namespace {

using namespace speech;

const torch::Device gpu(torch::kCUDA, 1);
StreamingExtractor extractor(float dither = 0.1f) {
  FrameOptions frame;
  frame.dither = dither;
  return StreamingExtractor(frame, MelOptions(), gpu);
}
std::vector<float> sound(200, 0.25f);

void feed_bad() { extractor().feed(std::vector<int16_t>(200, 100)); }
void feed_float_ok() { extractor().feedFloat(sound); }
void feed_shared_bad() { extractor().feedShared(sound); }
void append_tail_bad() {
  auto e = extractor();
  e.appendTail(torch::rand({100}));
  e.appendTail(torch::rand({100}));
}
void emphasize_ok() { extractor().emphasize(torch::rand({100}, gpu)); }
void dithered_bad() { extractor().dithered(torch::rand({100})); }
void deltas_bad() { extractor().deltas(torch::rand({9, 4}, gpu)); }
void context_windows_ok() { extractor().contextWindows(torch::rand({9, 4}, gpu)); }
void filter_energies_ok() {
  auto e = extractor();
  e.filterEnergies(torch::rand({9, 33}, gpu));
  e.filterEnergies(torch::rand({9, 33}));
}
void recent_ok() {
  auto e = extractor();
  e.feedFloat(sound);
  e.feedFloat(sound);
  e.recent(2);
}
void energies_ok() { extractor().energies(torch::rand({200})); }
void voiced_ok() { extractor().voiced(torch::rand({200})); }
void flush_ok() { extractor().flush(); }
void cepstra_ok() {
  Cepstra cepstra(12, 5);
  cepstra->to(gpu);
  cepstra->forward(torch::rand({7, 12}, gpu));
}
void filters_ok() { makeMelFilters(MelOptions(), FrameOptions()); }
void accumulate_ok() {
  SpeakerStatistics statistics(12, gpu);
  statistics.accumulate(torch::rand({7, 12}));
  statistics.apply(torch::rand({7, 12}));
}
void accumulate_squares_bad() { SpeakerStatistics(12, gpu).accumulateSquares(torch::rand({7, 12}, gpu)); }
void reset_ok() { SpeakerStatistics(12, gpu).reset(); }

} // namespace

DT_MAIN(feed_bad, feed_float_ok, feed_shared_bad, append_tail_bad, emphasize_ok, dithered_bad, deltas_bad,
        context_windows_ok, filter_energies_ok, recent_ok, energies_ok, voiced_ok, flush_ok, cepstra_ok, filters_ok,
        accumulate_ok, accumulate_squares_bad, reset_ok)
#endif

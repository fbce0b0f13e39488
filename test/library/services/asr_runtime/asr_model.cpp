#include "asr_model.h"

#include <cmath>

namespace asr {

GpuFbank::GpuFbank(int num_bins, int frame_length) : frame_length_(frame_length) {
  mel_ = torch::rand({frame_length / 2, num_bins}).to(device_);
  window_ = torch::hann_window(frame_length, torch::device(device_));
}

torch::Tensor GpuFbank::Compute(const std::vector<float>& pcm) const {
  auto wave = torch::from_blob(const_cast<float*>(pcm.data()), {static_cast<int64_t>(pcm.size())}).to(device_);
  auto frames = wave.unfold(0, frame_length_, frame_length_ / 2) * window_;
  auto power = frames.slice(1, 0, frame_length_ / 2).pow(2);
  return power.matmul(mel_).clamp_min(1e-10).log();
}

std::vector<float> GpuFbank::ComputeHost(const std::vector<float>& pcm) const { return ToVector<float>(Compute(pcm)); }

std::vector<float> GpuFbank::Energies(const std::vector<float>& pcm) const {
  return ToVector<float>(Compute(pcm).exp().sum(1).cpu());
}

void AsrModel::Read(const std::string& dir, int gpu) {
  if (gpu >= 0)
    device_ = torch::Device(torch::kCUDA, static_cast<c10::DeviceIndex>(gpu));
  for (const char* part : {"encoder", "decoder", "ctc"}) {
    modules_.emplace(part, torch::jit::load(dir + "/" + part + ".zip"));
    modules_.at(part).eval();
  }
  modules_.at("encoder").to(device_);
  modules_.at("decoder").to(device_);
  Reset();
}

void AsrModel::Reset() {
  offset_ = 0;
  encoder_outs_.clear();
}

torch::Tensor AsrModel::Pack(const Frames& chunk) const {
  const int64_t dim = chunk.front().size();
  auto feats = torch::zeros({1, static_cast<int64_t>(chunk.size()), dim});
  for (size_t i = 0; i < chunk.size(); ++i)
    feats[0][i] = torch::from_blob(const_cast<float*>(chunk[i].data()), {dim});
  return feats;
}

torch::Tensor AsrModel::ForwardEncoder(const Frames& chunk) {
  torch::NoGradGuard no_grad;
  const auto feats = Pack(chunk).to(device_);
  auto out = modules_.at("encoder").forward({feats}).toTensor();
  offset_ += out.size(1);
  encoder_outs_.push_back(out);
  return out;
}

torch::Tensor AsrModel::ForwardBatch(const std::vector<Frames>& utterances) {
  torch::NoGradGuard no_grad;
  size_t longest = 0;
  const size_t dim = utterances.front().front().size();
  for (const auto& u : utterances)
    longest = std::max(longest, u.size());
  std::vector<float> flat(utterances.size() * longest * dim);
  for (size_t u = 0; u < utterances.size(); ++u)
    for (size_t t = 0; t < utterances[u].size(); ++t)
      std::copy(utterances[u][t].begin(), utterances[u][t].end(), flat.begin() + (u * longest + t) * dim);
  const std::vector<int64_t> shape = {static_cast<int64_t>(utterances.size()), static_cast<int64_t>(longest),
                                      static_cast<int64_t>(dim)};
  auto feats = torch::from_blob(flat.data(), shape, torch::dtype(torch::kFloat).device(device_)).clone(); // [[device-host-access]]
  return modules_.at("encoder").forward({feats}).toTensor();
}

torch::Tensor AsrModel::CtcActivation(const torch::Tensor& encoder_out) {
  torch::NoGradGuard no_grad;
  const auto x = encoder_out.to(device_);
  return modules_.at("ctc").forward({x}).toTensor().log_softmax(-1); // [[device-load-placement]]
}

torch::Tensor AsrModel::Rescore(const std::vector<std::vector<int64_t>>& hyps) {
  torch::NoGradGuard no_grad;
  size_t longest = 0;
  for (const auto& h : hyps)
    longest = std::max(longest, h.size());
  auto tokens = torch::zeros({static_cast<int64_t>(hyps.size()), static_cast<int64_t>(longest)}, torch::kLong);
  for (size_t i = 0; i < hyps.size(); ++i)
    for (size_t j = 0; j < hyps[i].size(); ++j)
      tokens[i][j] = hyps[i][j];
  const auto memory = torch::cat(encoder_outs_, 1).mean(1, true);
  return modules_.at("decoder").forward({tokens.to(device_).unsqueeze(-1) * memory}).toTensor();
}

torch::Tensor AsrModel::MaskedScores(const torch::Tensor& encoder_out, const std::vector<int64_t>& lengths) {
  const auto scores = encoder_out.to(device_).norm(2, -1);
  return scores.masked_fill(MakePadMask(lengths, scores.size(1)), kLogZero).softmax(-1); // [[device-mixed-op]]
}

torch::Tensor AsrModel::MaskedMean(const torch::Tensor& encoder_out, const std::vector<int64_t>& lengths) {
  const auto x = encoder_out.to(device_);
  const auto keep = MakePadMask(lengths, x.size(1), x.device()).logical_not().to(x.scalar_type()).unsqueeze(-1);
  return (x * keep).sum(1) / keep.sum(1);
}

void AsrModel::ReadCmvn(const std::string& file) {
  torch::load(cmvn_, file);
  cmvn_ = cmvn_.to(device_);
}

torch::Tensor AsrModel::Normalise(const torch::Tensor& feats) const {
  return (feats.to(device_) - cmvn_[0]) * cmvn_[1];
}

} // namespace asr

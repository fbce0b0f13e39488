#pragma once

#include <torch/torch.h>

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <tuple>
#include <vector>

#define FLOW_CHECK_INPUT(x)                              \
  TORCH_CHECK((x).is_cuda(), #x " must be a CUDA tensor"); \
  TORCH_CHECK((x).is_contiguous(), #x " must be contiguous")

namespace flow {

using at::Tensor;

// correlation.cu
Tensor correlation_forward(const Tensor& first, const Tensor& second, int64_t radius);
std::tuple<Tensor, Tensor> correlation_backward(const Tensor& grad, const Tensor& first, const Tensor& second,
                                                int64_t radius);
Tensor lookup(const std::vector<Tensor>& pyramid, const Tensor& coords, int64_t radius);
Tensor splat(const Tensor& image, const Tensor& flow, const c10::optional<Tensor>& weights);
Tensor census(const Tensor& image, int64_t window);
Tensor census_distance(const Tensor& a, const Tensor& b);
Tensor occlusion(const Tensor& forward, const Tensor& backward, double threshold);
Tensor median(const Tensor& flow, int64_t window);
Tensor colorize(const Tensor& flow);

struct CorrelationFunction : torch::autograd::Function<CorrelationFunction> {
  static Tensor forward(torch::autograd::AutogradContext* context, Tensor first, Tensor second, int64_t radius) {
    context->save_for_backward({first, second});
    context->saved_data["radius"] = radius;
    return correlation_forward(first, second, radius);
  }
  static torch::autograd::variable_list backward(torch::autograd::AutogradContext* context,
                                                 torch::autograd::variable_list grads) {
    const auto saved = context->get_saved_variables();
    auto [first, second] =
        correlation_backward(grads[0].contiguous(), saved[0], saved[1], context->saved_data["radius"].toInt());
    return {first, second, Tensor()};
  }
};

/// Keeps what warps of one size need.
class Warper {
 public:
  explicit Warper(std::string padding = "border") : padding_(std::move(padding)) {}
  Tensor operator()(const Tensor& image, const Tensor& flow);
  Tensor valid(const Tensor& flow);

 private:
  const Tensor& base(int64_t height, int64_t width, const at::TensorOptions& options);
  std::string padding_;
  std::map<std::pair<int64_t, int64_t>, Tensor> base_;
};

/// The stream on which frames are copied beside the work of the model.
class FrameUploader {
 public:
  explicit FrameUploader(int gpu);
  ~FrameUploader();
  Tensor upload(const uint8_t* pixels, int64_t height, int64_t width);
  Tensor upload_owned(const std::vector<uint8_t>& pixels, int64_t height, int64_t width);
  Tensor wrap(std::vector<uint8_t>& pixels, int64_t height, int64_t width) const;
  void finish();
  int64_t frames() const { return frames_; }

 private:
  at::Device device_;
  void* stream_ = nullptr;
  void* done_ = nullptr;
  Tensor staging_;
  int64_t frames_ = 0;
};

/// Flow over time: warm starts from the last frame.
class FlowSession {
 public:
  FlowSession(int64_t height, int64_t width, at::Device device, int64_t iterations = 2);
  Tensor push(const Tensor& frame);
  void reset();
  void set_mask(const std::vector<uint8_t>& mask);
  void set_roi(const Tensor& roi) { roi_ = roi; }
  Tensor masked() const;
  Tensor motion() const;
  void move(at::Device device);
  double energy() const;

 private:
  int64_t height_, width_, iterations_;
  at::Device device_;
  Tensor flow_, previous_, mask_;
  c10::optional<Tensor> roi_;
  Warper warper_;
};

double photometric(const Tensor& first, const Tensor& second, const Tensor& flow, Warper& warper);
double smoothness(const Tensor& flow, const Tensor& image);

} // namespace flow

#pragma once
#include <torch/torch.h>

namespace vision {

struct Sample {
  torch::Tensor image;
  torch::Tensor depth;
};

class FrameLoader {
public:
  explicit FrameLoader(torch::Device device) : device_(device) {}
  Sample next();

private:
  torch::Tensor decode(int64_t channels) const;
  torch::Device device_;
};

} // namespace vision

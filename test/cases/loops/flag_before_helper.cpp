// What the system has answered stays so while a helper runs a loop.
#include "../cases.h"

#include <unistd.h>
#include <torch/torch.h>

namespace {

int64_t counted(int64_t count) {
  int64_t total = 0;
  for (int64_t i = 0; i < count; ++i)
    total += i * i;
  return total;
}

torch::Tensor scaled(int64_t count, bool forgets) {
  const bool onGpu = isatty(STDIN_FILENO) == 0;
  torch::Tensor sum = torch::zeros({3});
  if (onGpu)
    sum = sum.cuda();
  const auto total = static_cast<float>(counted(count));
  torch::Tensor scale = torch::ones({3});
  if (forgets)
    return sum * scale; // [[device-mixed-op]]
  if (onGpu)
    scale = scale.cuda();
  return sum * scale * total;
}

void scaled_ok() { scaled(4 + isatty(STDOUT_FILENO), false); }
void scaled_bad() { scaled(4 + isatty(STDOUT_FILENO), true); }

} // namespace

DT_MAIN(scaled_ok, scaled_bad)

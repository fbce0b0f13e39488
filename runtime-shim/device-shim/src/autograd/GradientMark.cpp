#include "autograd/GradientMark.h"

#include "autograd/UnlinkedGradient.h"
#include "base/NormalTensors.h"

#include <ATen/ATen.h>

#include <cmath>
#include <limits>
#include <utility>

namespace device_shim::detail {
namespace {

// Any number that operations on all elements, such as scaling and clamping, do not leave as it is.
constexpr float kNumber = 8765.4321F;

void fill(const at::Tensor &mark) {
  auto *values = mark.data_ptr<float>();
  values[0] = kNumber;
  values[1] = std::numeric_limits<float>::quiet_NaN();
}

} // namespace

// More dimensions than parameters have, so that these cannot be changed by it.
at::Tensor gradientOfNothing() {
  NormalTensors normal;
  auto mark = at::empty({1, 1, 1, 1, 1, 1, 1, 2}, at::TensorOptions().dtype(at::kFloat).device(at::kCPU));
  fill(mark);
  return mark;
}

GradientMark::GradientMark(at::Tensor ofParameter, std::string itsName)
    : parameter(std::move(ofParameter)), name(std::move(itsName)), mark(gradientOfNothing()) {}

GradientMark::~GradientMark() {
  auto &gradient = parameter.mutable_grad();
  if (placed && gradient.defined() && gradient.has_storage() && gradient.is_alias_of(mark))
    gradient = at::Tensor();
}

void GradientMark::place(bool linked) {
  auto &gradient = parameter.mutable_grad();
  if (gradient.defined())
    return;
  fill(mark);
  gradient = linked ? unlinkedGradient(mark, name, "ShardedDataParallel") : mark;
  placed = true;
}

GradientMark::Found GradientMark::take() {
  if (!std::exchange(placed, false))
    return Found::nothing;
  const auto gradient = std::exchange(parameter.mutable_grad(), at::Tensor());
  if (!gradient.defined())
    return Found::dropped;
  if (!gradient.has_storage() || !gradient.is_alias_of(mark))
    return Found::changed;
  const auto *values = mark.data_ptr<float>();
  if (values[0] == 0 && values[1] == 0)
    return Found::zeroed;
  return values[0] == kNumber && std::isnan(values[1]) ? Found::untouched : Found::changed;
}

} // namespace device_shim::detail

// Tests of one number that imply each other, and tests of floating-point numbers that do not.
#include "../cases.h"

#include <torch/torch.h>

namespace {

torch::Tensor levels(double p, double first, double second) {
  auto x = torch::ones({3}), y = torch::ones({3});
  if (p > first)
    x = x.to(torch::kCUDA);
  if (p > second)
    y = y.to(torch::kCUDA);
  return x + y; // [[device-mixed-op]]
}

torch::Tensor twoLevels(double p) {
  auto x = torch::ones({3}), y = torch::ones({3});
  if (p > 0.1)
    x = x.to(torch::kCUDA);
  if (p > 0.9)
    y = y.to(torch::kCUDA);
  return x + y; // [[device-mixed-op]]
}

torch::Tensor oneLevel(double p) {
  auto x = torch::ones({3}), y = torch::ones({3});
  if (p > 0.5)
    x = x.to(torch::kCUDA);
  if (p > 0.5)
    y = y.to(torch::kCUDA);
  return x + y;
}

torch::Tensor atLeastOne(int n) {
  auto x = torch::ones({3}), y = torch::ones({3});
  if (n >= 1)
    x = x.to(torch::kCUDA);
  if (n > 0)
    y = y.to(torch::kCUDA);
  return x + y;
}

torch::Tensor nested(int n) {
  auto x = torch::ones({3}), y = torch::ones({3});
  if (n > 1) {
    x = x.to(torch::kCUDA);
    if (n > 0)
      y = y.to(torch::kCUDA);
  }
  return x + y;
}

torch::Tensor nestedOtherWay(int n) {
  auto x = torch::ones({3}), y = torch::ones({3});
  if (n > 0) {
    x = x.to(torch::kCUDA);
    if (n > 1)
      y = y.to(torch::kCUDA);
  }
  return x + y; // [[device-mixed-op]]
}

torch::Tensor exactly(int n) {
  auto x = torch::ones({3}), y = torch::ones({3});
  if (n > 2)
    x = x.to(torch::kCUDA);
  if (n == 2)
    return x + torch::ones({3});
  if (n == 3)
    return x + torch::ones({3}, torch::kCUDA);
  return x * 2;
}

torch::Tensor twice(int n) {
  auto x = torch::ones({3}), y = torch::ones({3});
  if (n != 0)
    x = x.to(torch::kCUDA);
  if (!!n)
    y = y.to(torch::kCUDA);
  return x + y;
}

void levels_bad() { levels(0.5, 0.1, 0.9); }
void two_levels_bad() { twoLevels(0.5); }
void one_level_ok() { oneLevel(0.6); }
void at_least_one_ok() { atLeastOne(1); }
void nested_ok() { nested(2); }
void nested_other_way_bad() { nestedOtherWay(1); }
void exactly_ok() { exactly(3); }
void twice_ok() { twice(2); }

} // namespace

DT_MAIN(levels_bad, two_levels_bad, one_level_ok, at_least_one_ok, nested_ok, nested_other_way_bad, exactly_ok,
        twice_ok)

// Calls that were left out because a bound was reached are no secret.
// RUN: %device-tidy %s %tiny 2>&1 | FileCheck %s
// RUN: %device-tidy --quiet %s %tiny 2>&1 | count 0
// CHECK: no findings
// CHECK-NEXT: some calls were not followed (bounds were hit 1 time): see --stats
#include <torch/torch.h>

struct Base {
  virtual ~Base() = default;
  virtual at::Tensor move(at::Tensor x) = 0;
};
template <int N> struct Derived : Base {
  at::Tensor move(at::Tensor x) override { return x.cuda(); }
};
template struct Derived<1>;
template struct Derived<2>;
template struct Derived<3>;
template struct Derived<4>;
template struct Derived<5>;

at::Tensor any(Base &base, at::Tensor x) { return base.move(x); }

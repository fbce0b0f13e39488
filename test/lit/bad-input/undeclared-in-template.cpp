// A template calls what a missing header would declare. Clang drops the body of its instances then, unless
// the name is declared.
// REQUIRES: torch
// RUN: not %device-tidy %s -- %torch-flags 2>&1 | FileCheck %s
#include <torch/torch.h>

#include "missing.h"

template <typename T> void first(const T *values, int n) {
  CHECK_STATUS(prepare(values, n));
  T total{};
  CHECK_STATUS(share(&total));
  // CHECK: [[@LINE+1]]:{{[0-9]+}}: warning: 'values[0]' works on memory of cpu and gets that of 'x' on cuda
  total = values[0];
}

int main() {
  auto x = torch::rand({4}, torch::kCUDA);
  first<float>(x.data_ptr<float>(), 4);
}
// CHECK: undeclared-in-template.cpp (what could be parsed of it was analysed)

// REQUIRES: torch
// RUN: not %device-tidy --checks=device-mixed-op %s -- %torch-flags | FileCheck %s --implicit-check-not=warning:
// A test calls what it tests, but whoever uses it calls it, too.
#include <torch/torch.h>

#define TEST_CASE(name) static void DOCTEST_ANON_FUNC_2()

class Statistics {
public:
  explicit Statistics(int size) : mean(torch::zeros({size})) {}
  torch::Tensor center(torch::Tensor x) {
    // CHECK: [[@LINE+1]]:{{[0-9]+}}: warning: '-' can get 'x' on 'x.device()' and 'mean' on cpu
    return x - mean;
  }

private:
  torch::Tensor mean;
};

class Storage {
public:
  void to(torch::Device device) { values = values.to(device); }

private:
  torch::Tensor values = torch::zeros({3});
};

TEST_CASE("Statistics") {
  Statistics statistics(3);
  statistics.center(torch::ones({3}));
}

// Loops that are assertions: their body always throws, so what comes after them runs.
#include "../cases.h"

#include <cstdlib>
#include <stdexcept>
#include <torch/torch.h>

#define CHECK_STATUS(call)                                                                                   \
  for (int status = (call); status != 0;)                                                                    \
    throw std::runtime_error("status " + std::to_string(status));

static int openStatus() { return std::rand() < 0; }

static int opened(int handle) {
  CHECK_STATUS(openStatus())
  return handle;
}

static void after_for_that_throws_bad() {
  CHECK_STATUS(openStatus())
  auto x = torch::rand({2, 2}, torch::kCUDA);
  x.mm(torch::ones({2, 2})); // [[device-mixed-op]]
}

static void after_for_that_throws_ok() {
  CHECK_STATUS(openStatus())
  auto x = torch::rand({2, 2}, torch::kCUDA);
  x.mm(torch::ones({2, 2}, x.device()));
}

static void after_call_with_for_that_throws_bad() {
  const int handle = opened(static_cast<int>(std::rand() % 2));
  auto x = torch::rand({2, handle + 1}, torch::kCUDA);
  x.mul(torch::ones({2, handle + 1})); // [[device-mixed-op]]
}

static void after_while_that_throws_bad() {
  while (openStatus() != 0)
    throw std::runtime_error("not open");
  auto x = torch::rand({2, 2}, torch::kCUDA);
  x.mm(torch::ones({2, 2})); // [[device-mixed-op]]
}

DT_MAIN(after_for_that_throws_bad, after_for_that_throws_ok, after_call_with_for_that_throws_bad,
        after_while_that_throws_bad)

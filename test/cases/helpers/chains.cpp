// Values that travel through several helpers, recursion, mutual recursion, builders.
#include "../cases.h"
#include <torch/torch.h>

#include <utility>
#include <vector>

namespace {

torch::Tensor innermost(int64_t n) { return torch::zeros({n, 2}); }
torch::Tensor middle(int64_t n) { return innermost(n) + 1; }
torch::Tensor outer(int64_t n) { return middle(n).clone(); }

torch::Tensor innermostOn(int64_t n, c10::Device d) { return torch::zeros({n, 2}, d); }
torch::Tensor middleOn(int64_t n, c10::Device d) { return innermostOn(n, d) + 1; }
torch::Tensor outerOn(int64_t n, c10::Device d) { return middleOn(n, d).clone(); }

void three_helpers_deep_bad() {
  auto x = torch::rand({3, 2}, torch::kCUDA);
  auto y = x * outer(3); // [[device-mixed-op]]
  TORCH_CHECK(y.defined());
}

void three_helpers_deep_ok() {
  auto x = torch::rand({3, 2}, torch::kCUDA);
  auto y = x * outerOn(3, x.device());
  TORCH_CHECK(y.defined());
}

// The requirement is in the callee: the failing line is there, the callers only deliver.
torch::Tensor attend(const torch::Tensor &q, const torch::Tensor &k) {
  return torch::softmax(torch::matmul(q, k.transpose(0, 1)), -1); // [[device-mixed-op]]
}
torch::Tensor layerOf(const torch::Tensor &q, const torch::Tensor &memory) { return attend(q, memory); }

void requirement_two_calls_down_bad() {
  auto q = torch::rand({2, 4}, torch::kCUDA);
  auto memory = torch::rand({3, 4});
  auto y = layerOf(q, memory);
  TORCH_CHECK(y.defined());
}

torch::Tensor attendToo(const torch::Tensor &q, const torch::Tensor &k) {
  return torch::softmax(torch::matmul(q, k.transpose(0, 1)), -1);
}
torch::Tensor layerOfToo(const torch::Tensor &q, const torch::Tensor &memory) { return attendToo(q, memory); }

void requirement_two_calls_down_ok() {
  auto q = torch::rand({2, 4}, torch::kCUDA);
  auto memory = torch::rand({3, 4}).to(q.device());
  auto y = layerOfToo(q, memory);
  layerOfToo(torch::rand({2, 4}), torch::rand({3, 4}));
  TORCH_CHECK(y.defined());
}

torch::Tensor power(const torch::Tensor &base, int n) {
  if (n == 0)
    return torch::ones({3});
  return base * power(base, n - 1); // [[device-mixed-op]]
}

void recursion_base_case_on_host_bad() { power(torch::rand({3}, torch::kCUDA), 2); }

torch::Tensor powerLike(const torch::Tensor &base, int n) {
  if (n == 0)
    return torch::ones_like(base);
  return base * powerLike(base, n - 1);
}

void recursion_base_case_like_ok() { powerLike(torch::rand({3}, torch::kCUDA), 2); }

// Mutual recursion that ends on the device it started from.
torch::Tensor pong(torch::Tensor x, int n);
torch::Tensor ping(torch::Tensor x, int n) { return n == 0 ? x : pong(x.cpu(), n - 1); }
torch::Tensor pong(torch::Tensor x, int n) { return n == 0 ? x : ping(x.to(torch::kCUDA), n - 1); }

void mutual_recursion_followed_ok() {
  auto x = torch::rand({3}, torch::kCUDA);
  auto y = ping(x, 2);
  auto z = y + x.to(y.device());
  TORCH_CHECK(z.defined());
}

// A fluent builder.
class BatchBuilder {
public:
  BatchBuilder &on(torch::Device device) {
    device_ = device;
    return *this;
  }
  BatchBuilder &size(int64_t n) {
    size_ = n;
    return *this;
  }
  torch::Tensor build() const { return torch::rand({size_, 2}, device_); }

private:
  torch::Device device_{torch::kCPU};
  int64_t size_ = 1;
};

void builder_without_device_bad() {
  auto a = BatchBuilder().size(3).on(torch::kCUDA).build();
  auto b = BatchBuilder().size(3).build();
  auto c = a - b; // [[device-mixed-op]]
  TORCH_CHECK(c.defined());
}

void builder_with_device_ok() {
  auto a = BatchBuilder().size(3).on(torch::kCUDA).build();
  auto b = BatchBuilder().on(torch::kCUDA).size(3).build();
  auto c = a - b;
  TORCH_CHECK(c.defined());
}

// Callers that all pass the CPU: the helper with its device parameter is clean in this program.
torch::Tensor stepOn(torch::nn::Linear &net, const torch::Tensor &x, torch::Device device) {
  return net->forward(x.to(device));
}

void every_caller_passes_the_cpu_ok() {
  torch::nn::Linear net(2, 2);
  stepOn(net, torch::rand({1, 2}), torch::kCPU);
  stepOn(net, torch::rand({4, 2}), torch::Device("cpu"));
}

} // namespace

DT_MAIN(three_helpers_deep_bad, three_helpers_deep_ok, requirement_two_calls_down_bad,
        requirement_two_calls_down_ok, recursion_base_case_on_host_bad, recursion_base_case_like_ok,
        mutual_recursion_followed_ok, builder_without_device_bad, builder_with_device_ok,
        every_caller_passes_the_cpu_ok)

#include "../cases.h"
#include <torch/torch.h>
#include <cstring>
#include <functional>
#include <initializer_list>
#include <iostream>
#include <map>
#include <memory>
#include <optional>
#include <queue>
#include <sstream>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>
namespace nn = torch::nn;
using torch::Tensor;

// --------------------------- devices out of strings, env, arguments -----------------------------
enum class Backend { Cpu, Cuda, Auto };
static Backend parseBackend(std::string_view s) {
  if (s == "cpu") return Backend::Cpu;
  if (s == "cuda" || s == "gpu") return Backend::Cuda;
  if (s == "auto") return Backend::Auto;
  throw std::invalid_argument("unknown backend: " + std::string(s));
}
static torch::Device pickDevice(Backend b) {
  switch (b) {
    case Backend::Cpu:
      return torch::kCPU;
    case Backend::Cuda:
      return torch::Device(torch::kCUDA, 0);
    case Backend::Auto:
    default:
      return torch::cuda::is_available() ? torch::Device("cuda:0") : torch::Device("cpu");
  }
}
struct Args {
  std::string backend = "auto";
  int epochs = 1;
  double lr = 1e-3;
};
void backend_switch_bad() {
  Args args;
  auto dev = pickDevice(parseBackend(args.backend));
  nn::Linear net(3, 1);
  net->to(dev);
  auto x = torch::randn({5, 3});
  auto y = net(x); // [[device-mixed-op]]
  (void)y;
}
void backend_switch_ok() {
  Args args;
  auto dev = pickDevice(parseBackend(args.backend));
  nn::Linear net(3, 1);
  net->to(dev);
  auto x = torch::randn({5, 3}).to(dev);
  auto y = net(x);
  (void)y;
}
void backend_cpu_ok() {
  Args args{"cpu"};
  auto dev = pickDevice(parseBackend(args.backend));
  nn::Linear net(3, 1);
  net->to(dev);
  auto y = net(torch::randn({5, 3}));
  (void)y;
}
void if_else_device_bad() {
  torch::Device device = torch::kCPU;
  if (torch::cuda::is_available() && torch::cuda::device_count() > 0) {
    device = torch::kCUDA;
  }
  auto w = torch::randn({3, 3}, torch::TensorOptions().device(device).requires_grad(true));
  auto x = torch::ones({2, 3});
  auto y = x.mm(w); // [[device-mixed-op]]
  (void)y;
}
void if_else_device_ok() {
  torch::Device device = torch::kCPU;
  if (torch::cuda::is_available() && torch::cuda::device_count() > 0) {
    device = torch::kCUDA;
  }
  auto w = torch::randn({3, 3}, torch::TensorOptions().device(device).requires_grad(true));
  auto x = torch::ones({2, 3}, w.device());
  auto y = x.mm(w);
  (void)y;
}
void shadowed_device_bad() {
  auto device = torch::Device(torch::kCPU);
  if (torch::cuda::is_available()) {
    auto device = torch::Device(torch::kCUDA);
    std::cout << device << "\n";
  }
  nn::Linear net(2, 2);
  net->to(torch::kCUDA);
  auto x = torch::ones({1, 2}, device);
  net(x); // [[device-mixed-op]]
}
void shadowed_device_ok() {
  auto device = torch::Device(torch::kCPU);
  if (torch::cuda::is_available()) {
    device = torch::Device(torch::kCUDA);
    std::cout << device << "\n";
  }
  nn::Linear net(2, 2);
  net->to(torch::kCUDA);
  auto x = torch::ones({1, 2}, device);
  if (x.is_cuda()) net(x);
}
void is_cuda_branch_ok() {
  auto run = [](const Tensor& x, const Tensor& bias) {
    if (x.is_cuda()) return x + bias.to(x.device());
    return x + bias;
  };
  auto b = torch::ones({3});
  run(torch::ones({3}), b);
  run(torch::ones({3}, torch::kCUDA), b);
}
void is_cuda_branch_bad() {
  auto run = [](const Tensor& x, const Tensor& bias) {
    if (!x.is_cuda()) return x + bias.to(x.device());
    return x + bias; // [[device-mixed-op]]
  };
  auto b = torch::ones({3});
  run(torch::ones({3}), b);
  run(torch::ones({3}, torch::kCUDA), b);
}

// --------------------------- batch structs, collate, prefetch queues ------------------------------
struct Sample {
  Tensor image, depth;
  int64_t id = -1;
};
struct Batch {
  Tensor images, depths;
  std::vector<int64_t> ids;
  std::optional<Tensor> masks;
};
class Collate {
 public:
  explicit Collate(c10::optional<torch::Device> device = c10::nullopt) : device_(device) {}
  Batch operator()(const std::vector<Sample>& samples) const {
    std::vector<Tensor> im, de;
    Batch b;
    for (const auto& [image, depth, id] : samples) {
      im.push_back(image);
      de.push_back(depth);
      b.ids.push_back(id);
    }
    b.images = torch::stack(im);
    b.depths = torch::stack(de);
    if (device_.has_value()) {
      b.images = b.images.to(device_.value());
      b.depths = b.depths.to(device_.value());
    }
    return b;
  }

 private:
  c10::optional<torch::Device> device_;
};
static std::vector<Sample> samples(int n) {
  std::vector<Sample> v;
  for (int i = 0; i < n; ++i) v.push_back({torch::rand({3, 4, 4}), torch::rand({1, 4, 4}), i});
  return v;
}
void collate_bad() {
  nn::Conv2d net(nn::Conv2dOptions(3, 1, 1));
  net->to(torch::kCUDA);
  Collate collate;
  auto b = collate(samples(2));
  auto loss = nn::functional::mse_loss(net(b.images.to(torch::kCUDA)), b.depths); // [[device-loss-input]]
  loss.backward();
}
void collate_ok() {
  nn::Conv2d net(nn::Conv2dOptions(3, 1, 1));
  net->to(torch::kCUDA);
  Collate collate{torch::Device(torch::kCUDA)};
  auto b = collate(samples(2));
  auto loss = nn::functional::mse_loss(net(b.images), b.depths);
  loss.backward();
}
class Prefetcher {
 public:
  Prefetcher(std::vector<Batch> batches, torch::Device device) : device_(device) {
    for (auto& b : batches) queue_.push(std::move(b));
  }
  std::optional<Batch> next() {
    if (queue_.empty()) return std::nullopt;
    Batch b = std::move(queue_.front());
    queue_.pop();
    b.images = b.images.to(device_, /*non_blocking=*/true);
    b.depths = b.depths.to(device_, /*non_blocking=*/true);
    if (b.masks) b.masks->to(device_); // [[device-discarded-move]]
    return b;
  }
  std::optional<Batch> nextFixed() {
    if (queue_.empty()) return std::nullopt;
    Batch b = std::move(queue_.front());
    queue_.pop();
    b.images = b.images.to(device_, /*non_blocking=*/true);
    b.depths = b.depths.to(device_, /*non_blocking=*/true);
    if (b.masks) b.masks = b.masks->to(device_);
    return b;
  }

 private:
  std::queue<Batch> queue_;
  torch::Device device_;
};
static std::vector<Batch> hostBatches() {
  return {Batch{torch::rand({2, 3}), torch::rand({2, 3}), {0, 1}, torch::ones({2, 3})},
          Batch{torch::rand({2, 3}), torch::rand({2, 3}), {2, 3}, torch::ones({2, 3})}};
}
void prefetch_bad() {
  Prefetcher p(hostBatches(), torch::Device("cuda:1"));
  while (auto b = p.next()) (void)(b->images * b->masks.value()).sum();
}
void prefetch_ok() {
  Prefetcher p(hostBatches(), torch::Device("cuda:1"));
  while (auto b = p.nextFixed()) (void)(b->images * b->masks.value()).sum();
}

// --------------------------- callbacks and registries ----------------------------------------------
class Trainer {
 public:
  using Hook = std::function<Tensor(Trainer&, const Tensor&)>;
  explicit Trainer(torch::Device d) : device(d), model(4, 4) { model->to(device); }
  Trainer& onOutput(Hook h) {
    hooks_.push_back(std::move(h));
    return *this;
  }
  Tensor step(const Tensor& x) {
    auto y = model(x.to(device));
    for (auto& h : hooks_) y = h(*this, y);
    return y;
  }
  torch::Device device;
  nn::Linear model;

 private:
  std::vector<Hook> hooks_;
};
void hook_delta_bad() {
  Trainer t(torch::Device(torch::kCUDA, 1));
  auto delta = torch::zeros({4}, torch::Device(torch::kCUDA, 0));
  t.onOutput([&delta](Trainer&, const Tensor& y) { return y + delta; }); // [[device-mixed-op]]
  t.step(torch::ones({1, 4}));
}
void hook_delta_ok() {
  Trainer t(torch::Device(torch::kCUDA, 1));
  auto delta = torch::zeros({4}, torch::Device(torch::kCUDA, 0));
  t.onOutput([&delta](Trainer& tr, const Tensor& y) { return y + delta.to(tr.device); })
      .onOutput([](Trainer&, const Tensor& y) { return y * torch::tensor(2.0); });
  t.step(torch::ones({1, 4}));
}
void tensor_hook_bad() {
  auto w = torch::randn({3}, torch::device(torch::kCUDA).requires_grad(true));
  auto mask = torch::tensor({1.0f, 0.0f, 1.0f});
  w.register_hook([mask](Tensor grad) { return grad * mask; }); // [[device-mixed-op]]
  (w * 2).sum().backward();
}
void tensor_hook_ok() {
  auto w = torch::randn({3}, torch::device(torch::kCUDA).requires_grad(true));
  auto mask = torch::tensor({1.0f, 0.0f, 1.0f}).to(w.device());
  w.register_hook([mask](Tensor grad) { return grad * mask; });
  (w * 2).sum().backward();
}

// --------------------------- exceptions, early return, guard objects --------------------------------
static Tensor ensureOn(const Tensor& t, const torch::Device& d) {
  if (t.device() == d) return t;
  return t.to(d);
}
static Tensor requireOn(const Tensor& t, const torch::Device& d) {
  TORCH_CHECK(t.device() == d, "tensor must be on ", d);
  return t;
}
void ensure_ok() {
  torch::Device d("cuda:0");
  auto a = ensureOn(torch::ones({2}), d);
  auto b = ensureOn(torch::ones({2}, d), d);
  (void)(a + b);
}
void ensure_bad() {
  torch::Device d("cuda:0"), e("cuda:1");
  auto a = ensureOn(torch::ones({2}), d);
  auto b = ensureOn(torch::ones({2}, d), e);
  (void)(a + b); // [[device-mixed-op]]
}
void try_fallback_ok() {
  Tensor x = torch::ones({2});
  torch::Device d = torch::kCPU;
  try {
    x = x.to(torch::kCUDA);
    d = x.device();
  } catch (const c10::Error& e) {
    std::cerr << "falling back to CPU: " << e.what_without_backtrace() << "\n";
  }
  auto y = x + torch::ones({2}, d);
  (void)requireOn(y, d);
}
void try_fallback_bad() {
  Tensor x = torch::ones({2});
  torch::Device d = torch::kCPU;
  try {
    x = x.to(torch::kCUDA);
  } catch (const c10::Error& e) {
    std::cerr << "falling back to CPU: " << e.what_without_backtrace() << "\n";
  }
  auto y = x + torch::ones({2}, d); // [[device-mixed-op]]
  (void)y;
}

DT_MAIN(backend_switch_bad, backend_switch_ok, backend_cpu_ok, if_else_device_bad, if_else_device_ok,
        shadowed_device_bad, shadowed_device_ok, is_cuda_branch_ok, is_cuda_branch_bad, collate_bad,
        collate_ok, prefetch_bad, prefetch_ok, hook_delta_bad, hook_delta_ok, tensor_hook_bad,
        tensor_hook_ok, ensure_ok, ensure_bad, try_fallback_ok, try_fallback_bad)

#include "../cases.h"
#include <torch/torch.h>
#include <algorithm>
#include <array>
#include <cassert>
#include <cstdio>
#include <deque>
#include <functional>
#include <iostream>
#include <iterator>
#include <list>
#include <map>
#include <memory>
#include <mutex>
#include <numeric>
#include <optional>
#include <set>
#include <string>
#include <thread>
#include <tuple>
#include <type_traits>
#include <unordered_map>
#include <utility>
#include <variant>
#include <vector>
namespace nn = torch::nn;
using torch::Tensor;

#define CHECK_CUDA(x) TORCH_CHECK((x).is_cuda(), #x " must be a CUDA tensor")
#define CHECK_SAME(a, b) TORCH_CHECK((a).device() == (b).device(), #a " and " #b " differ")
#define TO_DEV(t) (t) = (t).to(g_device)

static torch::Device g_device = torch::kCPU;
static void initDevice() {
  if (torch::cuda::is_available()) g_device = torch::Device(torch::kCUDA, 0);
}

void global_macro_bad() {
  initDevice();
  auto a = torch::ones({2}), b = torch::ones({2});
  TO_DEV(a);
  auto c = a + b; // [[device-mixed-op]]
  (void)c;
}
void global_macro_ok() {
  initDevice();
  auto a = torch::ones({2}), b = torch::ones({2});
  TO_DEV(a);
  TO_DEV(b);
  auto c = a + b;
  (void)c;
}
struct Context {
  static Context& get() {
    static Context ctx;
    return ctx;
  }
  torch::Device device() const { return device_; }
  void setDevice(int index) { device_ = index < 0 ? torch::Device(torch::kCPU) : torch::Device(torch::kCUDA, index); }
  torch::TensorOptions opts(torch::Dtype t = torch::kFloat) const { return torch::TensorOptions(t).device(device_); }

 private:
  torch::Device device_{torch::kCPU};
};
void singleton_bad() {
  Context::get().setDevice(2);
  auto table = torch::arange(10, Context::get().opts());
  auto idx = torch::tensor({1, 2}, torch::kLong);
  auto out = table.gather(0, idx); // [[device-mixed-op]]
  (void)out;
}
void singleton_ok() {
  Context::get().setDevice(2);
  auto table = torch::arange(10, Context::get().opts());
  auto idx = torch::tensor({1, 2}, Context::get().opts(torch::kLong));
  auto out = table.gather(0, idx);
  (void)out;
}
// variant / visit
using Input = std::variant<Tensor, std::vector<Tensor>>;
static Tensor collapse(const Input& in) {
  if (std::holds_alternative<Tensor>(in)) return std::get<Tensor>(in);
  return torch::cat(std::get<std::vector<Tensor>>(in));
}
void variant_bad() {
  Input in = std::vector<Tensor>{torch::ones({2}, torch::kCUDA), torch::ones({1}, torch::kCUDA)};
  auto y = collapse(in) * torch::ones({3}); // [[device-mixed-op]]
  (void)y;
}
void variant_ok() {
  Input in = std::vector<Tensor>{torch::ones({2}, torch::kCUDA), torch::ones({1}, torch::kCUDA)};
  auto all = collapse(in);
  auto y = all * torch::ones({3}).to(all);
  (void)y;
}
// parameter packs and fold expressions
template <typename... Ts>
void moveAll(torch::Device d, Ts&... ts) {
  ((ts = ts.to(d)), ...);
}
template <typename... Ts>
void touchAll(torch::Device d, Ts&... ts) {
  (ts.to(d), ...); // [[device-discarded-move]]
}
void pack_bad() {
  auto a = torch::ones({2}), b = torch::ones({2}, torch::kCUDA);
  touchAll(torch::kCUDA, a);
  (void)(a + b);
}
void pack_ok() {
  auto a = torch::ones({2}), b = torch::ones({2}), c = torch::ones({2}, torch::kCUDA);
  moveAll(torch::kCUDA, a, b);
  (void)(a + b + c);
}
// if constexpr / tag dispatch
template <bool OnGpu>
static Tensor makeBias(int64_t n) {
  if constexpr (OnGpu)
    return torch::zeros({n}, torch::kCUDA);
  else
    return torch::zeros({n});
}
void constexpr_bad() {
  auto x = torch::ones({2, 3}, torch::kCUDA);
  auto y = x + makeBias<false>(3); // [[device-mixed-op]]
  (void)y;
}
void constexpr_ok() {
  auto x = torch::ones({2, 3}, torch::kCUDA);
  auto y = x + makeBias<true>(3);
  (void)y;
}
// static map of device name to options
static const std::unordered_map<std::string, torch::DeviceType> kTypes = {{"cpu", torch::kCPU}, {"gpu", torch::kCUDA}};
void device_map_ok() {
  torch::Device d(kTypes.at("gpu"));
  auto a = torch::ones({2}, d);
  auto b = torch::ones({2}, torch::TensorOptions().device(kTypes.at("gpu")));
  (void)(a + b);
}
void device_map_bad() {
  torch::Device d(kTypes.at("gpu"));
  auto a = torch::ones({2}, d);
  auto b = torch::ones({2}, torch::TensorOptions().device(kTypes.at("cpu")));
  (void)(a + b); // [[device-mixed-op]]
}
// swap and move semantics
void swap_ok() {
  auto a = torch::ones({2}), b = torch::ones({2}, torch::kCUDA);
  std::swap(a, b);
  (void)(a + torch::ones({2}, torch::kCUDA));
  (void)(b + torch::ones({2}));
}
void swap_bad() {
  auto a = torch::ones({2}), b = torch::ones({2}, torch::kCUDA);
  std::swap(a, b);
  (void)(b + torch::ones({2}, torch::kCUDA)); // [[device-mixed-op]]
}
// pointers to tensors, references, const refs to temporaries
void pointer_bad() {
  Tensor x = torch::ones({2}), y = torch::ones({2}, torch::kCUDA);
  Tensor* p = &x;
  Tensor& r = *p;
  p = &y;
  r = r.to(torch::kCUDA);
  auto* q = &r;
  *q = q->cpu();
  (void)(x * *p); // [[device-mixed-op]]
}
void pointer_ok() {
  Tensor x = torch::ones({2}), y = torch::ones({2}, torch::kCUDA);
  Tensor* p = &x;
  *p = p->to(torch::kCUDA);
  (void)(x * y);
}
// 0-dim tensors
void zero_dim_ok() {
  auto x = torch::randn({4}, torch::kCUDA);
  auto temperature = torch::tensor(0.7);
  auto y = x / temperature;
  y.mul_(torch::scalar_tensor(2.0));
  y.add_(torch::ones({3}).mean());
  auto z = torch::where(y > 0, y, torch::zeros_like(y));
  y.fill_(torch::tensor(1.0));
  y[0] = torch::tensor(3.0);
  z.index_put_({torch::tensor({0, 1})}, torch::tensor(5.0));
}
void zero_dim_bad() {
  auto x = torch::randn({4}, torch::kCUDA);
  auto temperature = torch::tensor({0.7});
  auto y = x / temperature; // [[device-mixed-op]]
  (void)y;
}
void zero_dim_host_inplace_bad() {
  auto running = torch::zeros({});
  auto x = torch::randn({4}, torch::kCUDA);
  running += x.mean(); // [[device-mixed-op]]
}
void zero_dim_host_inplace_ok() {
  auto running = torch::zeros({});
  auto x = torch::randn({4}, torch::kCUDA);
  running += x.mean().item();
}
void clamp_tensor_bad() {
  auto x = torch::randn({4}, torch::kCUDA);
  auto lo = torch::tensor(0.0);
  auto y = torch::clamp(x, lo); // [[device-mixed-op]]
  (void)y;
}
void clamp_tensor_ok() {
  auto x = torch::randn({4}, torch::kCUDA);
  auto y = torch::clamp(x, torch::zeros({}, x.options()));
  (void)y;
}
void addcmul_bad() {
  auto m = torch::zeros({3}, torch::kCUDA), g = torch::ones({3}, torch::kCUDA);
  auto w = torch::tensor(0.5);
  m.addcmul_(g, w, 1.0); // [[device-mixed-op if torch<2.7]]
}
void addcmul_ok() {
  auto m = torch::zeros({3}, torch::kCUDA), g = torch::ones({3}, torch::kCUDA);
  m.addcmul_(g, g, 1.0);
}
// adam written by hand, state map keyed by impl pointer
class HandAdam {
 public:
  explicit HandAdam(std::vector<Tensor> ps, bool like) : ps_(std::move(ps)), like_(like) {}
  void step() {
    torch::NoGradGuard g;
    for (auto& p : ps_) {
      if (!p.grad().defined()) continue;
      auto it = m_.find(p.unsafeGetTensorImpl());
      if (it == m_.end())
        it = m_.emplace(p.unsafeGetTensorImpl(), like_ ? torch::zeros_like(p) : torch::zeros(p.sizes())).first;
      auto& m = it->second;
      m.mul_(0.9).add_(p.grad(), 0.1); // [[device-mixed-op]]
      p.sub_(m, 0.01);
    }
  }

 private:
  std::vector<Tensor> ps_;
  std::unordered_map<c10::TensorImpl*, Tensor> m_;
  bool like_;
};
void hand_adam_bad() {
  nn::Linear l(2, 1);
  l->to(torch::kCUDA);
  HandAdam opt(l->parameters(), false);
  l(torch::ones({1, 2}, torch::kCUDA)).sum().backward();
  opt.step();
}
void hand_adam_ok() {
  nn::Linear l(2, 1);
  l->to(torch::kCUDA);
  HandAdam opt(l->parameters(), true);
  l(torch::ones({1, 2}, torch::kCUDA)).sum().backward();
  opt.step();
}
// threads
void thread_bad() {
  auto x = torch::ones({2}, torch::kCUDA);
  auto y = torch::ones({2});
  auto job = [&] { x = x + y; }; // [[device-mixed-op]]
  job();
}
void thread_ok() {
  auto x = torch::ones({2}, torch::kCUDA);
  auto y = torch::ones({2});
  std::thread t([&] { x = x + y.to(x.device()); });
  t.join();
}
// dtype discarded move
void dtype_discard_bad() {
  auto w = torch::ones({2}, torch::dtype(torch::kDouble).device(torch::kCUDA));
  auto x = torch::ones({2}, torch::kDouble);
  x.to(w.options()); // [[device-discarded-move]]
  (void)(x + w);
}
void dtype_discard_ok() {
  auto w = torch::ones({2}, torch::dtype(torch::kDouble).device(torch::kCUDA));
  auto x = torch::ones({2}, torch::kDouble);
  x = x.to(w.options());
  (void)(x + w);
}
void comma_ternary_bad() {
  bool gpu = torch::cuda::is_available();
  auto x = torch::ones({2});
  gpu ? x.cuda() // [[device-discarded-move]]
      : x.cpu();
  (void)(x + torch::ones({2}, gpu ? torch::kCUDA : torch::kCPU));
}
void comma_ternary_ok() {
  bool gpu = torch::cuda::is_available();
  auto x = torch::ones({2});
  x = gpu ? x.cuda() : x.cpu();
  (void)(x + torch::ones({2}, gpu ? torch::kCUDA : torch::kCPU));
}

DT_MAIN(global_macro_bad, global_macro_ok, singleton_bad, singleton_ok, variant_bad, variant_ok, pack_bad,
        pack_ok, constexpr_bad, constexpr_ok, device_map_ok, device_map_bad, swap_ok, swap_bad,
        pointer_bad, pointer_ok, zero_dim_ok, zero_dim_bad, zero_dim_host_inplace_bad,
        zero_dim_host_inplace_ok, clamp_tensor_bad, clamp_tensor_ok, addcmul_bad, addcmul_ok,
        hand_adam_bad, hand_adam_ok, thread_bad, thread_ok, dtype_discard_bad, dtype_discard_ok,
        comma_ternary_bad, comma_ternary_ok)

#include "../cases.h"

#include <torch/torch.h>
struct Part { torch::Tensor master, grad; };
struct Cfg { std::string device = "none"; double ratio = 0.5; torch::Device compute{torch::kCUDA, 0}; };
torch::Device home_of(const Cfg& c, size_t i, size_t n) {
  if (c.device == "cpu" && i >= n * c.ratio) return torch::Device(torch::kCPU);
  return c.compute;
}
std::vector<torch::Tensor> params(const Cfg& c) {
  std::vector<torch::Tensor> p;
  for (int i = 0; i < 4; ++i) p.push_back(torch::randn({2, 3}, torch::TensorOptions(c.compute)));
  return p;
}
std::vector<Part> build(const std::vector<torch::Tensor>& ps, const Cfg& c) {
  std::vector<Part> out(ps.size());
  for (size_t i = 0; i < ps.size(); ++i) {
    out[i].master = ps[i].detach().flatten().to(home_of(c, i, ps.size()), torch::kFloat32);
    out[i].grad = torch::ones_like(out[i].master);
  }
  return out;
}
void a_bad() {  // container elements of two devices, one 0-dim CUDA factor
  Cfg c; c.device = "cpu";
  auto parts = build(params(c), c);
  auto scale = torch::full({}, 2.0, c.compute);
  for (auto& p : parts) p.grad.mul_(1.0 / scale); // [[device-mixed-op]]
}
void b_bad() {  // stack over elements of two devices
  Cfg c; c.device = "cpu";
  auto parts = build(params(c), c);
  std::vector<torch::Tensor> norms;
  for (auto& p : parts) norms.push_back(p.grad.norm());
  auto t = torch::stack(norms); // [[device-mixed-op]]
}
void c_bad() {  // without struct
  std::vector<torch::Tensor> v;
  for (int i = 0; i < 4; ++i) v.push_back(torch::ones({3}).to(i < 2 ? torch::Device(torch::kCUDA, 0) : torch::Device(torch::kCPU)));
  auto t = torch::stack(v); // [[device-mixed-op]]
}
void d_bad() {  // vector(n) then [i].field =
  std::vector<Part> out(3);
  for (size_t i = 0; i < out.size(); ++i) out[i].grad = torch::ones({3});
  auto x = torch::ones({3}, torch::kCUDA) + out[0].grad; // [[device-mixed-op]]
}
void e_bad() {  // flatten().to(device, dtype)
  Cfg c; c.device = "cpu"; 
  auto g = torch::ones({2, 3}, c.compute).detach().flatten().to(home_of(c, 3, 4), torch::kFloat32);
  auto x = torch::ones({6}, torch::kCUDA) + g; // [[device-mixed-op]]
}
void f_bad() {  // detach().flatten().to(dev, dtype) with CPU literal, ones_like 
  Cfg c;
  auto g = torch::ones({2, 3}, c.compute).detach().flatten().to(torch::Device(torch::kCPU), torch::kFloat32);
  auto x = torch::ones({6}, torch::kCUDA) + torch::ones_like(g); // [[device-mixed-op]]
}

DT_MAIN(a_bad, b_bad, c_bad, d_bad, e_bad, f_bad)

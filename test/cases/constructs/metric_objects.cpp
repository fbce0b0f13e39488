#include "../cases.h"

#include <torch/torch.h>
#include <memory>
struct Metric { virtual ~Metric() = default; virtual void update(const torch::Tensor& l, const torch::Tensor& y) = 0; };
struct A : Metric {
  explicit A(int64_t k, torch::Device d = torch::kCPU) : k(k), m(torch::zeros({k, k}, torch::dtype(torch::kLong).device(d))) {}
  void update(const torch::Tensor& l, const torch::Tensor& y) override { m += (y * k + l.argmax(1)).view({2, 2}); } // [[device-mixed-op]]
  int64_t k; torch::Tensor m;
};
struct B : Metric {
  explicit B(int64_t k, torch::Device d = torch::kCPU) : k(k), m(torch::zeros({k, k}, torch::dtype(torch::kLong).device(d))) {}
  void update(const torch::Tensor& l, const torch::Tensor& y) override { m += torch::bincount(y * k + l.argmax(1), {}, k * k).view({k, k}); } // [[device-mixed-op]]
  int64_t k; torch::Tensor m;
};
struct C {
  torch::Tensor m = torch::zeros({2, 2});
  void update(const torch::Tensor& l) { m += l; } // [[device-mixed-op]]
};
struct D { 
  torch::Tensor m;
  explicit D(torch::Device d = torch::kCPU) : m(torch::zeros({2, 2}, d)) {}
  void update(const torch::Tensor& l) { m += l; } // [[device-mixed-op]]
};
static torch::DeviceType dt = torch::cuda::is_available() ? torch::kCUDA : torch::kCPU;
struct F : Metric {
  explicit F(torch::Device d = torch::kCPU) : m(torch::zeros({4, 2}, d)) {}
  void update(const torch::Tensor& l, const torch::Tensor& y) override { m += l; } // [[device-mixed-op]]
  torch::Tensor m;
};
void a_bad() { std::unique_ptr<Metric> m = std::make_unique<A>(2); m->update(torch::ones({4, 2}, torch::kCUDA), torch::ones({4}, torch::dtype(torch::kLong).device(torch::kCUDA))); }
void b_bad() { std::vector<std::unique_ptr<Metric>> v; v.push_back(std::make_unique<B>(2)); for (auto& m : v) m->update(torch::ones({4, 2}, torch::kCUDA), torch::ones({4}, torch::dtype(torch::kLong).device(torch::kCUDA))); }
void c_bad() { C c; c.update(torch::ones({2, 2}, torch::kCUDA)); }
void d_bad() { D c; c.update(torch::ones({2, 2}, torch::kCUDA)); }
void f_bad() {
  std::vector<std::unique_ptr<Metric>> v;
  v.push_back(std::make_unique<F>());
  for (auto& m : v) m->update(torch::ones({4, 2}, dt), torch::ones({4}, dt));
}
void f_ok() {
  std::vector<std::unique_ptr<Metric>> v;
  v.push_back(std::make_unique<F>(dt));
  for (auto& m : v) m->update(torch::ones({4, 2}, dt), torch::ones({4}, dt));
}

DT_MAIN(a_bad, b_bad, c_bad, d_bad, f_bad, f_ok)

#include "../cases.h"

#include <torch/torch.h>
#include <memory>
#include <optional>
struct D {
  torch::Tensor m;
  explicit D(torch::Device d = torch::kCPU) : m(torch::zeros({4}, d)) {}
};
struct B { virtual ~B() = default; virtual torch::Tensor add(const torch::Tensor& l) = 0; };
struct E : B {
  torch::Tensor m;
  explicit E(torch::Device d) : m(torch::zeros({4}, d)) {}
  torch::Tensor add(const torch::Tensor& l) override { return m + l; } // [[device-mixed-op]]
};
struct G : B {
  torch::Tensor m = torch::zeros({4});
  torch::Tensor add(const torch::Tensor& l) override { return m + l; } // [[device-mixed-op]]
};
struct H : B {
  torch::Tensor m = torch::zeros({4});
  torch::Tensor add(const torch::Tensor& l) override { return m += l; } // [[device-mixed-op]]
};
auto cu() { return torch::ones({4}, torch::kCUDA); }
void a_bad() { auto d = std::make_unique<D>(); auto s = cu() + d->m; } // [[device-mixed-op]]
void b_bad() { auto d = std::make_shared<D>(); auto s = cu() + d->m; } // [[device-mixed-op]]
void c_bad() { std::vector<D> v; v.emplace_back(); auto s = cu() + v[0].m; } // [[device-mixed-op]]
void d_bad() { D d; auto s = cu() + d.m; } // [[device-mixed-op]]
void e_bad() { std::unique_ptr<B> b = std::make_unique<E>(torch::kCPU); b->add(cu()); }
void g_bad() { std::unique_ptr<B> b = std::make_unique<G>(); b->add(cu()); }
void h_bad() { std::unique_ptr<B> b = std::make_unique<H>(); b->add(cu()); }
void i_bad() { std::unique_ptr<D> d(new D()); auto s = cu() + d->m; } // [[device-mixed-op]]

DT_MAIN(a_bad, b_bad, c_bad, d_bad, e_bad, g_bad, h_bad, i_bad)

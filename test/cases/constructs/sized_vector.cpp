#include "../cases.h"

#include <torch/torch.h>
#include <array>
auto cu() { return torch::randn({4}, torch::kCUDA); }
void a_bad() { std::vector<torch::Tensor> v(2); v[0] = torch::ones({4}); auto s = cu() + v[0]; } // [[device-mixed-op]]
void b_bad() { std::vector<torch::Tensor> v(2); for (size_t i = 0; i < v.size(); ++i) v[i] = torch::ones({4}); auto s = cu() + v[1]; } // [[device-mixed-op]]
void c_bad() { std::vector<torch::Tensor> v; v.resize(2); for (int i = 0; i < 2; ++i) v[i] = torch::ones({4}); auto s = cu() + v[1]; } // [[device-mixed-op]]
void d_bad() { std::vector<torch::Tensor> v(2); for (auto& t : v) t = torch::ones({4}); auto s = cu() + v[1]; } // [[device-mixed-op]]
void e_bad() { std::vector<torch::Tensor> v(2, torch::ones({4})); auto s = cu() + v[1]; } // [[device-mixed-op]]
void f_bad() { std::array<torch::Tensor, 2> v; for (int i = 0; i < 2; ++i) v[i] = torch::ones({4}); auto s = cu() + v[1]; } // [[device-mixed-op]]
void g_bad() { torch::Tensor v[2]; for (int i = 0; i < 2; ++i) v[i] = torch::ones({4}); auto s = cu() + v[1]; } // [[device-mixed-op]]
void h_bad() { std::vector<torch::Tensor> v(2); for (int i = 0; i < 2; ++i) v[i] = torch::ones({4}); for (auto& t : v) auto s = cu() + t; } // [[device-mixed-op]]
void i_bad() { std::vector<torch::Tensor> v(2); for (int i = 0; i < 2; ++i) v[i] = torch::ones({4}); auto s = cu().unsqueeze(0) + torch::stack(v); } // [[device-mixed-op]]
void j_bad() { std::vector<torch::Tensor> v(2); for (int i = 0; i < 2; ++i) v.at(i) = torch::ones({4}); auto s = cu() + v.at(0); } // [[device-mixed-op]]
void k_bad() { std::vector<std::vector<torch::Tensor>> v(2); v[0].push_back(torch::ones({4})); auto s = cu() + v[0][0]; } // [[device-mixed-op]]
struct P { torch::Tensor g; };
void l_bad() { std::vector<P> v(2); v[0].g = torch::ones({4}); auto s = cu() + v[0].g; } // [[device-mixed-op]]
void m_bad() { std::vector<P> v(2); for (int i = 0; i < 2; ++i) v[i].g = torch::ones({4}); for (auto& p : v) auto s = cu() + p.g; } // [[device-mixed-op]]
struct S { std::vector<torch::Tensor> m; S(size_t n) : m(n) {} void put() { for (auto& t : m) t = torch::ones({4}); } };
void n_bad() { S s(2); s.put(); auto t = cu() + s.m[0]; } // [[device-mixed-op]]
void o_bad() { S s(2); for (size_t i = 0; i < 2; ++i) if (!s.m[i].defined()) s.m[i] = torch::ones({4}); auto t = cu() + s.m[0]; } // [[device-mixed-op]]

DT_MAIN(a_bad, b_bad, c_bad, d_bad, e_bad, f_bad, g_bad, h_bad, i_bad, j_bad, k_bad, l_bad, m_bad, n_bad,
        o_bad)

#include "../cases.h"

#include <torch/torch.h>
struct Sample { torch::Tensor x; };
struct Mini { torch::Tensor xs; };
struct DS : torch::data::Dataset<DS, Sample> {
  Sample get(size_t i) override { return {torch::ones({4})}; }
  c10::optional<size_t> size() const override { return 8; }
};
struct Stk : torch::data::transforms::Collation<Mini, std::vector<Sample>> {
  Mini apply_batch(std::vector<Sample> ss) override {
    std::vector<torch::Tensor> x;
    for (auto& s : ss) x.push_back(s.x);
    return {torch::stack(x)};
  }
};
struct StkL : torch::data::transforms::Lambda<Sample, Sample> { using Lambda::Lambda; };
auto cu() { return torch::ones({4}, torch::kCUDA); }
void a_bad() { auto l = torch::data::make_data_loader(DS().map(Stk()), 4); for (auto& b : *l) auto s = cu() + b.xs; } // [[device-mixed-op]]
void b_bad() { auto l = torch::data::make_data_loader(DS(), 4); for (auto& b : *l) auto s = cu() + b[0].x; } // [[device-mixed-op]]
void c_bad() { auto l = torch::data::make_data_loader(DS(), 4); for (auto& b : *l) for (auto& e : b) auto s = cu() + e.x; } // [[device-mixed-op]]
void d_bad() { DS ds; auto s = cu() + ds.get(0).x; } // [[device-mixed-op]]
void e_bad() { DS ds; auto b = ds.get_batch({0, 1}); auto s = cu() + b[0].x; } // [[device-mixed-op]]
void f_bad() { Stk k; auto s = cu() + k.apply_batch({Sample{torch::ones({4})}}).xs; } // [[device-mixed-op]]
void g_bad() { auto ds = DS().map(Stk()); auto b = ds.get_batch(std::vector<size_t>{0, 1}); auto s = cu() + b.xs; } // [[device-mixed-op]]
void h_bad() {
  auto l = torch::data::make_data_loader(DS().map(Stk()), 4);
  for (auto it = l->begin(); it != l->end(); ++it) auto s = cu() + it->xs; // [[device-mixed-op]]
}
struct PD : torch::data::datasets::Dataset<PD> {
  torch::data::Example<> get(size_t i) override { return {torch::ones({4}), torch::ones({4})}; }
  c10::optional<size_t> size() const override { return 8; }
};
void i_bad() { auto l = torch::data::make_data_loader(PD().map(torch::data::transforms::Stack<>()), 4); for (auto& b : *l) auto s = cu() + b.data; } // [[device-mixed-op]]
void j_bad() { auto l = torch::data::make_data_loader(PD(), 4); for (auto& b : *l) for (auto& e : b) auto s = cu() + e.target; } // [[device-mixed-op]]

DT_MAIN(a_bad, b_bad, c_bad, d_bad, e_bad, f_bad, g_bad, h_bad, i_bad, j_bad)

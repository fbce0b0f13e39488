#include "../cases.h"

#include <torch/torch.h>
struct Sample { torch::Tensor x, y, w; };
struct Mini { torch::Tensor xs, ys, ws; };
struct DS : torch::data::Dataset<DS, Sample> {
  torch::Tensor images = torch::randn({8, 4});
  Sample get(size_t i) override { return {images[i], torch::ones({1}), torch::tensor(1.0f)}; }
  c10::optional<size_t> size() const override { return 8; }
};
struct Stk : torch::data::transforms::Collation<Mini, std::vector<Sample>> {
  Mini apply_batch(std::vector<Sample> ss) override {
    std::vector<torch::Tensor> x, y, w;
    for (auto& s : ss) { x.push_back(std::move(s.x)); y.push_back(s.y); w.push_back(s.w); }
    return {torch::stack(x), torch::stack(y), torch::stack(w)};
  }
};
void a_bad() {
  auto loader = torch::data::make_data_loader(DS().map(Stk()), 4);
  for (auto& b : *loader) auto s = torch::ones({4}, torch::kCUDA) + b.xs; // [[device-mixed-op]]
}
void b_bad() {
  auto loader = torch::data::make_data_loader(DS().map(Stk()), 4);
  for (auto& b : *loader) auto s = torch::ones({4, 1}, torch::kCUDA) + b.ys; // [[device-mixed-op]]
}
void c_bad() {  // stack of 0-dim tensors has one dimension
  auto loader = torch::data::make_data_loader(DS().map(Stk()), 4);
  for (auto& b : *loader) auto s = torch::ones({4}, torch::kCUDA) + b.ws; // [[device-mixed-op]]
}
void d_bad() {
  std::vector<torch::Tensor> v{torch::tensor(1.0f), torch::tensor(2.0f)};
  auto s = torch::ones({2}, torch::kCUDA) + torch::stack(v); // [[device-mixed-op]]
}
void e_bad() {
  std::vector<torch::Tensor> v;
  for (int i = 0; i < 2; ++i) v.push_back(torch::ones({2}));
  auto s = torch::ones({4}, torch::kCUDA).argmax(0, true) == torch::cat(v); // [[device-mixed-op]]
}
struct R { torch::Tensor scores, labels; };
R eval(bool host) {
  std::vector<torch::Tensor> s, l;
  auto loader = torch::data::make_data_loader(DS().map(Stk()), 4);
  for (auto& b : *loader) {
    auto out = b.xs.to(torch::kCUDA).softmax(1);
    s.push_back(host ? out.cpu() : out);
    l.push_back(b.ys);
  }
  return {torch::cat(s), torch::cat(l)};
}
void f_bad() { auto r = eval(false); auto h = r.scores.argmax(1) == r.labels; } // [[device-mixed-op]]
void f_ok() { auto r = eval(true); auto h = r.scores.argmax(1) == r.labels; }
void g_bad() { auto x = torch::ones({2, 2}, torch::kCUDA); auto t = torch::zeros({2, 2}, torch::kLong); t += torch::bincount(x.argmax(1), {}, 4).view({2, 2}); } // [[device-mixed-op]]
void h_bad() { auto x = torch::ones({2, 2}, torch::kCUDA); auto t = torch::zeros({4}, torch::kLong); t += torch::bincount(x.argmax(1), {}, 4); } // [[device-mixed-op]]

DT_MAIN(a_bad, b_bad, c_bad, d_bad, e_bad, f_bad, f_ok, g_bad, h_bad)

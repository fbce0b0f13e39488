#include "../cases.h"
#include <torch/torch.h>
#include <algorithm>
#include <array>
#include <functional>
#include <iterator>
#include <map>
#include <memory>
#include <numeric>
#include <optional>
#include <string>
#include <unordered_map>
#include <variant>
#include <vector>
using torch::Tensor;
namespace nn = torch::nn;

// ---------- graph data
struct Graph {
  Tensor x;
  Tensor edge_index;
  Tensor y;
  std::optional<Tensor> edge_weight;
  // in place, like a module
  Graph& to(const torch::Device& device) {
    for (auto member : {&Graph::x, &Graph::edge_index, &Graph::y}) this->*member = (this->*member).to(device);
    if (edge_weight) edge_weight = edge_weight->to(device);
    return *this;
  }
};
static Graph ring(int64_t n) {
  auto src = torch::arange(n);
  auto dst = torch::roll(src, 1);
  return Graph{torch::randn({n, 4}), torch::stack({src, dst}), torch::randint(0, 2, {n}, torch::kLong), torch::rand({n})};
}
struct GcnLayerImpl : nn::Module {
  GcnLayerImpl(int64_t in, int64_t out) : lin(register_module("lin", nn::Linear(in, out))) {}
  Tensor forward(const Tensor& x, const Tensor& ei, const Tensor* w = nullptr) {
    auto h = lin->forward(x);
    auto msg = h.index_select(0, ei[0]);
    if (w) msg = msg * w->unsqueeze(1);
    auto out = torch::zeros_like(h);
    return out.index_add_(0, ei[1], msg);
  }
  nn::Linear lin;
};
TORCH_MODULE(GcnLayer);
void gcn_inplace_to_ok() {
  auto g = ring(5);
  torch::Device d("cuda:0");
  g.to(d);
  GcnLayer l(4, 2);
  l->to(d);
  nn::functional::cross_entropy(l->forward(g.x, g.edge_index, &*g.edge_weight), g.y).backward();
}
void gcn_forgot_graph_bad() {
  auto g = ring(5);
  torch::Device d("cuda:0");
  GcnLayer l(4, 2);
  l->to(d);
  g.to(d);
  auto labels = ring(5).y;
  nn::functional::cross_entropy(l->forward(g.x, g.edge_index), labels).backward(); // [[device-loss-input]]
}

// scatter mean: count tensor created without options
template <typename Index>
static Tensor scatterMean(const Tensor& src, const Index& index, int64_t n) {
  auto sum = torch::zeros({n, src.size(1)}, src.options()).index_add_(0, index, src);
  auto cnt = torch::zeros({n}).index_add_(0, index, torch::ones({src.size(0)})); // [[device-mixed-op]]
  return sum / cnt.clamp_min(1).unsqueeze(1);
}
template <typename Index>
static Tensor scatterMeanOpts(const Tensor& src, const Index& index, int64_t n) {
  auto sum = src.new_zeros({n, src.size(1)}).index_add_(0, index, src);
  auto cnt = src.new_zeros({n}).index_add_(0, index, src.new_ones({src.size(0)}));
  return sum / cnt.clamp_min(1).unsqueeze(1);
}
void scatter_mean_bad() {
  auto x = torch::randn({6, 3}, torch::kCUDA);
  auto batch = torch::tensor({0, 0, 1, 1, 2, 2}, torch::TensorOptions(torch::kLong).device(torch::kCUDA));
  scatterMean(x, batch, 3);
}
void scatter_mean_ok() {
  auto x = torch::randn({6, 3}, torch::kCUDA);
  auto batch = torch::tensor({0, 0, 1, 1, 2, 2}, torch::TensorOptions(torch::kLong).device(torch::kCUDA));
  scatterMeanOpts(x, batch, 3);
}

// neighbour sampling through host vectors: from_blob + clone
static Tensor neighbours(const std::vector<int64_t>& ids) {
  return torch::from_blob(const_cast<int64_t*>(ids.data()), {static_cast<int64_t>(ids.size())}, torch::kLong).clone();
}
void sampled_features_ok() {
  auto feats = torch::randn({10, 4}, torch::kCUDA);
  std::vector<int64_t> ids(3);
  std::iota(ids.begin(), ids.end(), 2);
  auto n = neighbours(ids);
  auto a = feats.index({n});
  auto b = torch::embedding(feats, n.to(feats.device()));
  (void)(a + b);
}
void sampled_features_bad() {
  auto feats = torch::randn({10, 4}, torch::kCUDA);
  std::vector<int64_t> ids(3);
  std::iota(ids.begin(), ids.end(), 2);
  auto n = neighbours(ids);
  auto b = torch::embedding(feats, n); // [[device-mixed-op]]
  (void)b;
}

// heterogenous graph: map of node type -> tensor
class HeteroEncoder : public nn::Module {
 public:
  explicit HeteroEncoder(const std::vector<std::string>& types) {
    for (const auto& t : types) layers_.emplace(t, register_module(t, nn::Linear(4, 4)));
  }
  std::map<std::string, Tensor> forward(const std::map<std::string, Tensor>& x) {
    std::map<std::string, Tensor> out;
    for (const auto& [type, feat] : x) out.emplace(type, torch::relu(layers_.at(type)->forward(feat))); // [[device-mixed-op]]
    return out;
  }

 private:
  std::map<std::string, nn::Linear> layers_;
};
void hetero_bad() {
  HeteroEncoder enc({"user", "item"});
  enc.to(torch::kCUDA);
  std::map<std::string, Tensor> x{{"user", torch::randn({2, 4})}, {"item", torch::randn({3, 4})}};
  enc.forward(x);
}
void hetero_ok() {
  HeteroEncoder enc({"user", "item"});
  enc.to(torch::kCUDA);
  std::map<std::string, Tensor> x{{"user", torch::randn({2, 4})}, {"item", torch::randn({3, 4})}};
  for (auto& [k, v] : x) v = v.to(torch::kCUDA);
  auto out = enc.forward(x);
  (void)(out["user"].sum() + out.at("item").sum());
}

// transform / accumulate over containers
void stack_transform_bad() {
  std::vector<Tensor> parts;
  for (int i = 0; i < 3; ++i) parts.push_back(torch::randn({2}));
  std::vector<Tensor> moved;
  std::transform(parts.begin(), parts.end(), std::back_inserter(moved), [](const Tensor& t) { return t.to(torch::kCUDA); });
  auto w = torch::ones({3, 2});
  auto y = torch::stack(moved) * w; // [[device-mixed-op]]
  (void)y;
}
void stack_transform_ok() {
  std::vector<Tensor> parts;
  for (int i = 0; i < 3; ++i) parts.push_back(torch::randn({2}));
  std::vector<Tensor> moved;
  std::transform(parts.begin(), parts.end(), std::back_inserter(moved), [](const Tensor& t) { return t.to(torch::kCUDA); });
  auto w = torch::ones({3, 2}, moved.front().options());
  auto y = torch::stack(moved) * w;
  (void)y;
}
void accumulate_bad() {
  torch::Device d(torch::kCUDA);
  std::vector<Tensor> losses{torch::rand({2}, d), torch::rand({2}, d)};
  auto total = std::accumulate(losses.begin(), losses.end(), torch::zeros({2}),
                               [](const Tensor& a, const Tensor& b) { return a + b; }); // [[device-mixed-op]]
  (void)total;
}
void accumulate_ok() {
  torch::Device d(torch::kCUDA);
  std::vector<Tensor> losses{torch::rand({2}, d), torch::rand({2}, d)};
  auto total = std::accumulate(losses.begin(), losses.end(), torch::zeros({}),
                               [](const Tensor& a, const Tensor& b) { return a + b; });
  (void)total;
}

// ---------- meta learning: fast weights
using Params = std::vector<Tensor>;
static Tensor functionalForward(const Tensor& x, const Params& p) {
  return torch::linear(torch::relu(torch::linear(x, p[0], p[1])), p[2], p[3]); // [[device-mixed-op]]
}
static Params innerStep(const Params& p, const Tensor& loss, double lr) {
  auto g = torch::autograd::grad({loss}, p, {}, true, true);
  Params next;
  next.reserve(p.size());
  for (size_t i = 0; i < p.size(); ++i) next.push_back(p[i] - lr * g[i]);
  return next;
}
struct Task {
  Tensor xs, ys, xq, yq;
};
static Task makeTask(torch::Device d) {
  return {torch::randn({4, 2}, d), torch::randn({4, 1}, d), torch::randn({4, 2}), torch::randn({4, 1}, d)};
}
void maml_bad() {
  torch::Device d("cuda:3");
  auto opt = torch::TensorOptions().device(d).requires_grad(true);
  Params p{torch::randn({8, 2}, opt), torch::zeros({8}, opt), torch::randn({1, 8}, opt), torch::zeros({1}, opt)};
  auto task = makeTask(d);
  auto fast = innerStep(p, torch::mse_loss(functionalForward(task.xs, p), task.ys), 0.1);
  auto outer = torch::mse_loss(functionalForward(task.xq, fast), task.yq);
  outer.backward();
}
void maml_ok() {
  torch::Device d("cuda:3");
  auto opt = torch::TensorOptions().device(d).requires_grad(true);
  Params p{torch::randn({8, 2}, opt), torch::zeros({8}, opt), torch::randn({1, 8}, opt), torch::zeros({1}, opt)};
  auto task = makeTask(d);
  task.xq = task.xq.to(d);
  auto fast = innerStep(p, torch::mse_loss(functionalForward(task.xs, p), task.ys), 0.1);
  auto outer = torch::mse_loss(functionalForward(task.xq, fast), task.yq);
  outer.backward();
}

// prototypes
static Tensor prototypes(const Tensor& emb, const Tensor& labels, int64_t ways) {
  std::vector<Tensor> protos;
  for (int64_t c = 0; c < ways; ++c) {
    auto idx = (labels == c).nonzero().squeeze(1);
    protos.push_back(emb.index_select(0, idx).mean(0)); // [[device-mixed-op]]
  }
  return torch::stack(protos);
}
void proto_bad() {
  nn::Linear net(3, 3);
  net->to(torch::kCUDA);
  auto emb = net(torch::randn({4, 3}, torch::kCUDA));
  auto labels = torch::tensor({0, 1, 0, 1});
  prototypes(emb, labels, 2);
}
void proto_ok() {
  nn::Linear net(3, 3);
  net->to(torch::kCUDA);
  auto emb = net(torch::randn({4, 3}, torch::kCUDA));
  auto labels = torch::tensor({0, 1, 0, 1}, torch::TensorOptions().dtype(torch::kLong).device(emb.device()));
  prototypes(emb, labels, 2);
}

DT_MAIN(gcn_inplace_to_ok, gcn_forgot_graph_bad, scatter_mean_bad, scatter_mean_ok, sampled_features_ok,
        sampled_features_bad, hetero_bad, hetero_ok, stack_transform_bad, stack_transform_ok,
        accumulate_bad, accumulate_ok, maml_bad, maml_ok, proto_bad, proto_ok)

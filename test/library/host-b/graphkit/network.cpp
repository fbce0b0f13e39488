#include "network.h"

#include <iostream>

namespace F = torch::nn::functional;

namespace graphkit {

GraphConvImpl::GraphConvImpl(int64_t inputs, int64_t outputs, double dropout) : dropout_(dropout) {
  own_ = register_module("own", torch::nn::Linear(inputs, outputs));
  others_ = register_module("others", torch::nn::Linear(torch::nn::LinearOptions(inputs, outputs).bias(false)));
  norm_ = register_module("norm", torch::nn::LayerNorm(torch::nn::LayerNormOptions({outputs})));
}

torch::Tensor GraphConvImpl::forward(const Subgraph &graph, const torch::Tensor &x) {
  const auto hidden = own_->forward(x) + others_->forward(graph.aggregate(x));
  return F::dropout(torch::relu(norm_->forward(hidden)), F::DropoutFuncOptions().p(dropout_).training(is_training()));
}

RelationBiasImpl::RelationBiasImpl(int64_t relations, int64_t width) : bias_(torch::randn({relations, width}) * 0.01) {
  project_ = register_module("project", torch::nn::Linear(width, width));
}

torch::Tensor RelationBiasImpl::forward(const torch::Tensor &messages, const torch::Tensor &relations) {
  auto projected = project_->forward(messages);
  return projected + bias_.index({relations.cpu()}); // [[device-unregistered-tensor]]
}

NodeClassifier::NodeClassifier(int64_t inputs, int64_t classes, std::shared_ptr<FeatureStore> store, torch::Tensor labels,
                               torch::Device device)
    : classes_(classes), features_(std::move(store)), labels_(std::move(labels)), device_(device) {
  first_ = GraphConv(inputs, 8, 0.1);
  last_ = torch::nn::Linear(8, classes_);
  relation_ = RelationBias(3, 8);
  first_->to(device_);
  last_->to(device_);
  relation_->to(device_);
  auto parameters = first_->parameters();
  const auto more = last_->parameters();
  parameters.insert(parameters.end(), more.begin(), more.end());
  optimizer_ = std::make_unique<torch::optim::Adam>(parameters, torch::optim::AdamOptions(1e-2));
}

Subgraph NodeClassifier::load(const NeighborSampler &sampler, const torch::Tensor &seeds) const {
  auto graph = sampler.sample(seeds);
  graph.attach(features_->gather(graph.nodes()), labels_.index_select(0, seeds));
  graph.to(device_);
  return graph;
}

torch::Tensor NodeClassifier::forward(const Subgraph &graph) {
  return last_->forward(first_->forward(graph, graph.features()));
}

Epoch NodeClassifier::trainEpoch(const NeighborSampler &sampler, const std::vector<torch::Tensor> &seeds) {
  Epoch epoch;
  first_->train();
  for (const auto &part : seeds) {
    const auto graph = load(sampler, part);
    const auto logits = forward(graph).slice(0, 0, part.numel());
    const auto loss = F::cross_entropy(logits, graph.labels());
    optimizer_->zero_grad();
    loss.backward();
    optimizer_->step();
    epoch.loss += loss.item<double>();
    epoch.accuracy += logits.argmax(1).eq(graph.labels()).to(torch::kFloat32).mean().item<double>();
    ++epoch.batches;
  }
  if (epoch.batches > 0) {
    epoch.loss /= static_cast<double>(epoch.batches);
    epoch.accuracy /= static_cast<double>(epoch.batches);
  }
  std::cerr << "loss " << epoch.loss << " accuracy " << epoch.accuracy << "\n";
  return epoch;
}

double NodeClassifier::seedLoss(const NeighborSampler &sampler, const torch::Tensor &seeds) {
  torch::NoGradGuard noGrad;
  auto graph = sampler.sample(seeds);
  graph.attach(features_->gather(graph.nodes()), {});
  graph.to(device_);
  const auto logits = forward(graph).slice(0, 0, seeds.numel());
  const auto expected = labels_.cpu().index_select(0, seeds.cpu());
  return F::cross_entropy(logits, expected).item<double>(); // [[device-loss-input]]
}

double NodeClassifier::smoothness(const Subgraph &graph) {
  torch::NoGradGuard noGrad;
  const auto output = torch::softmax(forward(graph), 1);
  const auto difference = output.index_select(0, graph.sources()) - output.index_select(0, graph.targets());
  return difference.pow(2).sum(1).mean().item<double>();
}

torch::Tensor NodeClassifier::confusion(const NeighborSampler &sampler, const torch::Tensor &seeds) {
  torch::NoGradGuard noGrad;
  const auto graph = load(sampler, seeds);
  const auto predicted = forward(graph).slice(0, 0, seeds.numel()).argmax(1).cpu();
  const auto expected = graph.labels().cpu();
  auto matrix = torch::zeros({classes_, classes_}, torch::kLong);
  auto cell = matrix.accessor<int64_t, 2>();
  const auto row = expected.accessor<int64_t, 1>(), column = predicted.accessor<int64_t, 1>();
  for (int64_t i = 0; i < expected.numel(); ++i)
    ++cell[row[i]][column[i]];
  return matrix;
}

// Label propagation: known nodes keep their class, the others take what their neighbours have.
torch::Tensor NodeClassifier::propagate(const Subgraph &graph, int64_t rounds) {
  torch::NoGradGuard noGrad;
  const auto known = torch::one_hot(graph.labels(), classes_).to(torch::kFloat32);
  auto belief = torch::full({graph.size(), classes_}, 1.0 / static_cast<double>(classes_));
  belief.slice(0, 0, known.size(0)).copy_(known);
  for (int64_t i = 0; i < rounds; ++i) {
    const auto incoming = belief.index_select(0, graph.sources()); // [[device-mixed-op]]
    belief = torch::zeros_like(belief).index_add_(0, graph.targets(), incoming).softmax(1);
    belief.slice(0, 0, known.size(0)).copy_(known);
  }
  return belief;
}

torch::Tensor NodeClassifier::relationScores(const torch::Tensor &messages, const torch::Tensor &relations) {
  return relation_->forward(messages.to(device_), relations.to(device_));
}

torch::Tensor NodeClassifier::weightedLoss(const Subgraph &graph, const torch::Tensor &classWeights) {
  const auto logits = forward(graph).slice(0, 0, graph.labels().numel());
  const auto options = F::CrossEntropyFuncOptions().weight(classWeights.to(logits.device(), logits.scalar_type()));
  return F::cross_entropy(logits, graph.labels(), options);
}

void NodeClassifier::store(const std::string &file) const {
  torch::serialize::OutputArchive archive;
  first_->save(archive);
  archive.save_to(file);
}

void NodeClassifier::restore(const std::string &file) {
  torch::serialize::InputArchive archive;
  archive.load_from(file, device_);
  first_->load(archive);
  first_->to(device_);
}

torch::Tensor NodeClassifier::prototypes(const std::string &file, const Subgraph &graph) {
  torch::NoGradGuard noGrad;
  torch::Tensor centers;
  torch::load(centers, file);
  TORCH_CHECK(centers.dim() == 2, "a row per class is expected");
  const auto hidden = first_->forward(graph, graph.features().to(device_));
  return torch::matmul(hidden, centers.t()); // [[device-load-placement]]
}

} // namespace graphkit

#ifdef DT_RUN
#include "../../../cases/cases.h"

namespace {

using namespace graphkit;

const torch::Device gpu(torch::kCUDA, 2);
torch::Tensor ids(std::vector<int64_t> v) { return torch::tensor(v, torch::kLong); }
Csr csr() { return Csr::fromEdges(torch::stack({ids({0, 0, 1, 2, 3, 4}), ids({1, 2, 3, 4, 5, 0})}), 6); }
NeighborSampler sampler() { return NeighborSampler(csr(), SubgraphOptions()); }
std::shared_ptr<FeatureStore> features() { return std::make_shared<FeatureStore>(torch::rand({6, 5}), gpu); }
NodeClassifier classifier() { return NodeClassifier(5, 3, features(), torch::randint(3, {6}, torch::kLong), gpu); }
Subgraph loaded() { return classifier().load(sampler(), ids({0, 1})); }

void csr_to_ok() { csr().to(gpu); }
void sample_ok() { sampler().sample(ids({0, 1})); }
void walk_ok() { sampler().randomWalk(ids({0, 1}).to(gpu), 3); }
void degrees_of_ok() { sampler().degreesOf(ids({0, 3})); }
void aggregate_ok() { loaded().aggregate(torch::rand({6, 2}, gpu)); }
void mean_aggregate_bad() { loaded().meanAggregate(torch::rand({6, 2}, gpu)); }
void normalized_weights_ok() { loaded().normalizedWeights(); }
void self_loops_ok() { loaded().selfLoops(); }
void gather_ok() { features()->gather(ids({1, 2}).to(gpu)); }
void gather_hot_bad() { auto f = features(); f->pinHot(ids({1, 2})); f->gatherHot(ids({2})); }
void gather_mixed_ok() { auto f = features(); f->pinHot(ids({1, 2})); f->gatherMixed(ids({2, 3})); }
void standardize_bad() { features()->standardize(torch::rand({2, 5})); }
void write_ok() { features()->write(ids({2}), torch::rand({1, 5}, gpu)); }
void at_ok() { features()->at(1, 1); }
void train_epoch_ok() { classifier().trainEpoch(sampler(), {ids({0, 1}), ids({2})}); }
void seed_loss_bad() { classifier().seedLoss(sampler(), ids({0, 1})); }
void smoothness_ok() { auto c = classifier(); c.smoothness(c.load(sampler(), ids({0, 1}))); }
void confusion_ok() { classifier().confusion(sampler(), ids({0, 1})); }
void propagate_bad() { classifier().propagate(loaded(), 2); }
void relation_bad() { classifier().relationScores(torch::rand({4, 8}), torch::randint(3, {4}, torch::kLong)); }
void weighted_loss_ok() { classifier().weightedLoss(loaded(), torch::rand({3})); }
void store_restore_ok() {
  auto c = classifier();
  c.store("graph.pt");
  c.restore("graph.pt");
  c.forward(c.load(sampler(), ids({0, 1})));
}
void prototypes_bad() {
  torch::save(torch::rand({3, 8}), "centers.pt");
  classifier().prototypes("centers.pt", loaded());
}

} // namespace

DT_MAIN(csr_to_ok, sample_ok, walk_ok, degrees_of_ok, aggregate_ok, mean_aggregate_bad, normalized_weights_ok,
        self_loops_ok, gather_ok, gather_hot_bad, gather_mixed_ok, standardize_bad, write_ok, at_ok, train_epoch_ok,
        seed_loss_bad, smoothness_ok, confusion_ok, propagate_bad, relation_bad, weighted_loss_ok, store_restore_ok,
        prototypes_bad)
#endif

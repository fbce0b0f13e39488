#include "model.h"

#include <iostream>

namespace recsys {

TowersImpl::TowersImpl(TowerOptions options) {
  users_ = register_module("users", torch::nn::Embedding(options.users, options.width));
  items_ = register_module("items", torch::nn::Embedding(torch::nn::EmbeddingOptions(options.items, options.width).padding_idx(0)));
  mix_ = register_module("mix", torch::nn::Linear(2 * options.width, options.width));
}

torch::Tensor TowersImpl::user(const torch::Tensor &ids, const torch::Tensor &history) {
  const auto past = items_->forward(history);
  const auto present = history.ne(0).to(past.scalar_type()).unsqueeze(-1);
  const auto mean = (past * present).sum(1) / present.sum(1).clamp_min(1);
  return mix_->forward(torch::cat({users_->forward(ids), mean}, 1));
}

torch::Tensor TowersImpl::item(const torch::Tensor &ids) { return items_->forward(ids); }

torch::Tensor TowersImpl::forward(const Batch &batch) {
  return (user(batch.users, batch.history) * item(batch.items)).sum(1);
}

Recommender::Recommender(TowerOptions options, torch::Device device)
    : options_(options), device_(device), model_(options) {
  model_->to(device_);
  optimizer_ = std::make_unique<torch::optim::Adagrad>(model_->parameters(), options_.learningRate);
}

double Recommender::trainStep(const Batch &batch) {
  const auto data = batch.to(device_);
  optimizer_->zero_grad();
  const auto loss = torch::mse_loss(model_->forward(data), data.ratings);
  loss.backward();
  optimizer_->step();
  return loss.item<double>();
}

double Recommender::weightedStep(const Batch &batch) {
  const auto data = batch.to(device_);
  optimizer_->zero_grad();
  const auto logits = model_->forward(data);
  const auto labels = data.ratings.gt(0.5).to(torch::kFloat32);
  const auto loss = torch::binary_cross_entropy_with_logits(logits, labels, data.weights); // [[device-loss-input]]
  loss.backward();
  optimizer_->step();
  return loss.item<double>();
}

double Recommender::contrastiveStep(const Batch &batch, const NegativeSampler &sampler) {
  const auto data = batch.to(device_);
  const auto users = model_->user(data.users, data.history).unsqueeze(1);
  const auto positive = model_->item(data.items).unsqueeze(1);
  const auto negative = model_->item(sampler.popular(data.size(), 4));
  const auto scores = (users * torch::cat({positive, negative}, 1)).sum(-1);
  const auto target = torch::zeros({data.size()}, torch::TensorOptions().dtype(torch::kLong).device(scores.device()));
  const auto loss = torch::cross_entropy_loss(scores, target);
  optimizer_->zero_grad();
  loss.backward();
  optimizer_->step();
  return loss.item<double>();
}

double Recommender::sampledSoftmax(const Batch &batch, const NegativeSampler &sampler) {
  torch::NoGradGuard noGrad;
  const auto data = batch.to(device_);
  const auto users = model_->user(data.users, data.history).unsqueeze(1);
  const auto candidates = torch::cat({data.items.unsqueeze(1), sampler.uniform(data.size(), 4)}, 1); // [[device-mixed-op]]
  const auto scores = (users * model_->item(candidates)).sum(-1);
  return -torch::log_softmax(scores, 1).select(1, 0).mean().item<double>();
}

torch::Tensor Recommender::scores(const torch::Tensor &users, const torch::Tensor &history) {
  torch::NoGradGuard noGrad;
  const auto queries = model_->user(users.to(device_), history.to(device_));
  return torch::matmul(queries, model_->itemTable().t());
}

torch::Tensor Recommender::scoresWithoutSeen(const torch::Tensor &users, const torch::Tensor &history) {
  auto all = scores(users, history);
  auto seen = torch::zeros({users.size(0), options_.items}, torch::kBool);
  seen.scatter_(1, history.cpu(), true);
  seen.select(1, 0).fill_(true);
  return all.masked_fill(seen, -1e9); // [[device-mixed-op]]
}

torch::Tensor Recommender::recommend(const torch::Tensor &users, const torch::Tensor &history, int64_t k) {
  auto all = scores(users, history);
  all.scatter_(1, history.to(all.device()), -1e9);
  all.index_put_({torch::indexing::Slice(), 0}, torch::tensor(-1e9f));
  return std::get<1>(all.topk(k, 1)).cpu();
}

void Recommender::buildIndex() {
  torch::NoGradGuard noGrad;
  const auto table = model_->itemTable().detach();
  index_ = (table / table.norm(2, 1, true).clamp_min(1e-6)).to(torch::kCPU);
  std::cerr << "index of " << index_.size(0) << " items\n";
}

torch::Tensor Recommender::search(const torch::Tensor &queries, int64_t k) const {
  TORCH_CHECK(index_.defined(), "call buildIndex() first");
  const auto normalized = torch::nn::functional::normalize(queries.to(device_));
  return std::get<1>(torch::matmul(normalized, index_.t()).topk(k, 1)); // [[device-mixed-op]]
}

torch::Tensor Recommender::searchOnHost(const torch::Tensor &queries, int64_t k) const {
  TORCH_CHECK(index_.defined(), "call buildIndex() first");
  const auto normalized = torch::nn::functional::normalize(queries.cpu());
  return std::get<1>(torch::matmul(normalized, index_.t()).topk(k, 1));
}

double Recommender::hitRate(const Batch &batch, int64_t k) {
  const auto best = recommend(batch.users, batch.history, k);
  return best.eq(batch.items.cpu().unsqueeze(1)).any(1).to(torch::kFloat32).mean().item<double>();
}

double Recommender::meanRank(const Batch &batch) {
  const auto all = scores(batch.users, batch.history);
  const auto wanted = all.gather(1, batch.items.to(all.device()).unsqueeze(1));
  return all.gt(wanted).sum(1).to(torch::kFloat32).mean().item<double>() + 1;
}

std::vector<float> Recommender::exportItem(int64_t item) const {
  TORCH_CHECK(item >= 0 && item < options_.items, "no item ", item);
  const auto row = model_->itemTable().detach()[item].contiguous();
  std::vector<float> values(row.numel());
  std::copy_n(row.data_ptr<float>(), row.numel(), values.begin()); // [[device-host-access]]
  return values;
}

std::vector<std::vector<float>> Recommender::exportItems() const {
  const auto table = model_->itemTable().detach().to(torch::kCPU).contiguous();
  const auto value = table.accessor<float, 2>();
  std::vector<std::vector<float>> rows(table.size(0), std::vector<float>(table.size(1)));
  for (int64_t i = 0; i < table.size(0); ++i)
    for (int64_t k = 0; k < table.size(1); ++k)
      rows[i][k] = value[i][k];
  return rows;
}

void Recommender::importItem(int64_t item, const std::vector<float> &values) {
  TORCH_CHECK(static_cast<int64_t>(values.size()) == options_.width, "expected ", options_.width, " values");
  torch::NoGradGuard noGrad;
  model_->itemTable()[item] = torch::tensor(values);
}

std::vector<int64_t> Recommender::coldItems(float threshold) const {
  const auto norms = model_->itemTable().detach().norm(2, 1);
  const auto cold = norms.lt(threshold).nonzero().flatten().cpu();
  return {cold.data_ptr<int64_t>(), cold.data_ptr<int64_t>() + cold.numel()};
}

} // namespace recsys

#ifdef DT_RUN
#include "../../../cases/cases.h"

namespace {

using namespace recsys;

const torch::Device gpu(torch::kCUDA, 3);
Batch batch() {
  Collator collate({{1, {2, 3}}, {2, {5}}}, 3);
  return collate({{1, 4, 0.9f}, {2, 6, 0.1f}, {3, 7, 0.4f}});
}
Recommender onGpu() { return Recommender(TowerOptions(), gpu); }
NegativeSampler sampler() { return NegativeSampler(torch::rand({20}) + 0.1, gpu); }

void collate_ok() { batch(); }
void pin_ok() { batch().pin(); }
void popular_ok() { sampler().popular(3, 4); }
void uniform_ok() { sampler().uniform(3, 4); }
void log_correction_bad() { sampler().logCorrection(torch::randint(20, {3}, torch::kLong)); }
void train_step_ok() { onGpu().trainStep(batch()); }
void weighted_step_bad() { onGpu().weightedStep(batch()); }
void contrastive_ok() { onGpu().contrastiveStep(batch(), sampler()); }
void sampled_softmax_bad() { onGpu().sampledSoftmax(batch(), sampler()); }
void scores_ok() { onGpu().scores(batch().users, batch().history); }
void without_seen_bad() { onGpu().scoresWithoutSeen(batch().users, batch().history); }
void recommend_ok() { onGpu().recommend(batch().users, batch().history, 3); }
void build_index_ok() { onGpu().buildIndex(); }
void search_bad() {
  auto r = onGpu();
  r.buildIndex();
  r.search(torch::rand({2, 8}), 3);
}
void search_on_host_ok() {
  auto r = onGpu();
  r.buildIndex();
  r.searchOnHost(torch::rand({2, 8}, gpu), 3);
}
void hit_rate_ok() { onGpu().hitRate(batch(), 3); }
void mean_rank_ok() { onGpu().meanRank(batch()); }
void export_item_bad() { onGpu().exportItem(2); }
void export_items_ok() { onGpu().exportItems(); }
void import_item_ok() { onGpu().importItem(2, std::vector<float>(8, 0.5f)); }
void cold_items_ok() { onGpu().coldItems(1.0f); }

} // namespace

DT_MAIN(collate_ok, pin_ok, popular_ok, uniform_ok, log_correction_bad, train_step_ok, weighted_step_bad,
        contrastive_ok, sampled_softmax_bad, scores_ok, without_seen_bad, recommend_ok, build_index_ok, search_bad,
        search_on_host_ok, hit_rate_ok, mean_rank_ok, export_item_bad, export_items_ok, import_item_ok, cold_items_ok)
#endif

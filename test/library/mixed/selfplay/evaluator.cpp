#include "evaluator.h"

#include <algorithm>
#include <limits>

namespace goban {

Evaluation UniformEvaluator::evaluate(const Position &) {
  const float *p = uniform_.data_ptr<float>();
  return {{p, p + uniform_.numel()}, 0.f};
}

NetEvaluator::NetEvaluator(PolicyValueNet net, torch::Device device)
    : net_(std::move(net)), ladder_(net_->config()), device_(device) {
  net_->to(device_);
  ladder_->to(device_);
  net_->eval();
  ladder_->eval();
}

torch::Tensor NetEvaluator::encode(const Position &position) const {
  const auto &config = net_->config();
  const int64_t expected = config.planes * config.board * config.board;
  TORCH_CHECK(static_cast<int64_t>(position.planes.size()) == expected, "expected ", expected, " plane values");
  auto planes = torch::from_blob(const_cast<float *>(position.planes.data()),
                                 {1, config.planes, config.board, config.board}, torch::kFloat);
  return planes.to(device_, /*non_blocking=*/false, /*copy=*/true);
}

torch::Tensor NetEvaluator::symmetry(int which) const {
  const int64_t side = net_->config().board;
  auto cells = torch::arange(side * side).view({side, side});
  if (which & 1)
    cells = cells.flip({0});
  if (which & 2)
    cells = cells.flip({1});
  if (which & 4)
    cells = cells.t();
  return cells.reshape({-1});
}

Evaluation NetEvaluator::evaluate(const Position &position) {
  torch::NoGradGuard no_grad;
  auto out = net_->forward(encode(position));
  const auto priors = torch::softmax(out.policy[0], 0).to(torch::kCPU);
  const float *p = priors.data_ptr<float>();
  Evaluation result;
  result.priors.assign(p, p + priors.numel());
  result.value = out.value.item<float>();
  return result;
}

Evaluation NetEvaluator::evaluateLegal(const Position &position) {
  torch::NoGradGuard no_grad;
  if (position.legal.empty())
    return evaluate(position);
  auto out = net_->forward(encode(position));
  auto legal = torch::from_blob(const_cast<uint8_t *>(position.legal.data()),
                                {static_cast<int64_t>(position.legal.size())}, torch::kByte)
                   .to(torch::kBool);
  auto logits = out.policy[0].masked_fill(legal.logical_not(), -1e9); // [[device-mixed-op]]
  auto priors = torch::softmax(logits, 0).cpu();
  Evaluation result;
  result.priors.assign(priors.data_ptr<float>(), priors.data_ptr<float>() + priors.numel());
  result.value = out.value.item<float>();
  return result;
}

Evaluation NetEvaluator::evaluateFast(const Position &position) {
  torch::NoGradGuard no_grad;
  auto features = encode(position);
  auto out = net_->forward(features);
  const int64_t moves = out.policy.size(1);
  const float *logits = out.policy.to(torch::kCPU).data_ptr<float>(); // [[device-dangling-data]]
  Evaluation result;
  result.priors.resize(static_cast<size_t>(moves));
  const float best = *std::max_element(logits, logits + moves);
  float total = 0;
  for (int64_t i = 0; i < moves; ++i)
    total += result.priors[i] = std::exp(logits[i] - best);
  for (float &prior : result.priors)
    prior /= total;
  result.value = out.value.item<float>();
  return result;
}

Evaluation NetEvaluator::evaluateSymmetric(const Position &position) {
  torch::NoGradGuard no_grad;
  const auto &config = net_->config();
  const int which = static_cast<int>(position.hash & 7);
  auto planes = encode(position).flatten(2);
  auto turned = planes.index_select(2, symmetry(which)).view({1, config.planes, config.board, config.board}); // [[device-mixed-op]]
  auto out = net_->forward(turned);
  auto priors = torch::softmax(out.policy[0], 0).cpu();
  Evaluation result;
  result.priors.assign(priors.data_ptr<float>(), priors.data_ptr<float>() + priors.numel());
  result.value = out.value.item<float>();
  return result;
}

torch::Tensor NetEvaluator::averageOverSymmetries(const Position &position) {
  torch::NoGradGuard no_grad;
  const auto &config = net_->config();
  using torch::indexing::Slice;
  auto planes = encode(position).flatten(2);
  auto sum = torch::zeros({config.moves()}, planes.options());
  for (int which = 0; which < 8; ++which) {
    const auto cells = symmetry(which);
    auto turned = planes.index({Slice(), Slice(), cells});
    auto policy = torch::softmax(net_->forward(turned.view({1, config.planes, config.board, config.board})).policy[0], 0);
    auto back = torch::zeros_like(policy);
    back.index_put_({cells}, policy.slice(0, 0, cells.numel()));
    back[config.moves() - 1] = policy[config.moves() - 1];
    sum += back / 8.0;
  }
  return sum;
}

float NetEvaluator::temperatureValue(const Position &position, float temperature) {
  torch::NoGradGuard no_grad;
  auto scale = torch::tensor(std::max(temperature, 1e-3f));
  auto out = net_->forward(encode(position));
  return (out.value / scale).tanh().item<float>();
}

std::vector<torch::Tensor> NetEvaluator::ladders(const Position &position) {
  torch::NoGradGuard no_grad;
  return ladder_->forward(net_->trunk(encode(position)));
}

InferenceServer::InferenceServer(PolicyValueNet net, torch::Device device, size_t max_batch)
    : net_(std::move(net)), device_(device), max_batch_(std::max<size_t>(max_batch, 1)) {
  net_->to(device_);
  net_->eval();
  worker_ = std::thread(&InferenceServer::loop, this);
}

InferenceServer::~InferenceServer() { stop(); }

std::future<Evaluation> InferenceServer::submit(Position position) {
  Request request{std::move(position), {}};
  auto future = request.promise.get_future();
  {
    std::lock_guard<std::mutex> lock(mutex_);
    queue_.push(std::move(request));
  }
  wake_.notify_one();
  return future;
}

void InferenceServer::stop() {
  {
    std::lock_guard<std::mutex> lock(mutex_);
    stopping_ = true;
  }
  wake_.notify_all();
  if (worker_.joinable())
    worker_.join();
}

void InferenceServer::loop() {
  torch::NoGradGuard no_grad;
  for (;;) {
    std::vector<Request> batch;
    {
      std::unique_lock<std::mutex> lock(mutex_);
      wake_.wait(lock, [this] { return stopping_ || !queue_.empty(); });
      if (queue_.empty())
        return;
      while (!queue_.empty() && batch.size() < max_batch_) {
        batch.push_back(std::move(queue_.front()));
        queue_.pop();
      }
    }
    try {
      serve(batch);
    } catch (...) {
      for (auto &request : batch)
        request.promise.set_exception(std::current_exception());
    }
  }
}

void InferenceServer::serve(std::vector<Request> &batch) {
  const auto &config = net_->config();
  const auto count = static_cast<int64_t>(batch.size());
  auto input = torch::empty({count, config.planes, config.board, config.board});
  for (int64_t i = 0; i < count; ++i)
    input[i] = torch::from_blob(batch[i].position.planes.data(), {config.planes, config.board, config.board});
  auto out = net_->forward(input.to(device_));
  const auto priors = torch::softmax(out.policy, 1).to(torch::kCPU).contiguous();
  const auto values = out.value.cpu();
  auto value = values.accessor<float, 1>();
  if (observer_)
    observer_(batch.size());
  for (int64_t i = 0; i < count; ++i) {
    const float *row = priors.data_ptr<float>() + i * priors.size(1);
    batch[i].promise.set_value({{row, row + priors.size(1)}, value[i]});
  }
}

} // namespace goban

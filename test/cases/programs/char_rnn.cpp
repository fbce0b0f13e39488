// A whole small program: character model, attention, a training loop and sampling.
// The first copy has one mistake in its middle, the second one has none.
#include <torch/torch.h>

#include <algorithm>
#include <cmath>
#include <iostream>
#include <map>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "../cases.h"

namespace text {

struct Vocabulary {
  explicit Vocabulary(const std::string &corpus) {
    for (char c : corpus)
      if (ids.emplace(c, static_cast<int64_t>(ids.size())).second)
        chars.push_back(c);
  }
  torch::Tensor encode(const std::string &s) const {
    std::vector<int64_t> out;
    for (char c : s)
      out.push_back(ids.at(c));
    return torch::tensor(out, torch::kLong);
  }
  int64_t size() const { return static_cast<int64_t>(ids.size()); }
  std::map<char, int64_t> ids;
  std::vector<char> chars;
};

struct Hyper {
  int64_t embed = 8, hidden = 12, length = 6, batch = 3;
  double lr = 5e-3, clip = 1.0;
  int epochs = 2;
};

struct Batch {
  torch::Tensor input, target;
};

class Corpus {
public:
  Corpus(std::string text, const Vocabulary &vocabulary) : data_(vocabulary.encode(text)) {}
  Batch draw(const Hyper &h) const {
    std::vector<torch::Tensor> xs, ys;
    for (int64_t i = 0; i < h.batch; ++i) {
      const int64_t start = i % (data_.size(0) - h.length - 1);
      xs.push_back(data_.slice(0, start, start + h.length));
      ys.push_back(data_.slice(0, start + 1, start + h.length + 1));
    }
    return {torch::stack(xs), torch::stack(ys)};
  }

private:
  torch::Tensor data_;
};

const char *const kText = "the quick brown fox jumps over the lazy dog and the dog jumps back";

} // namespace text

namespace broken {

struct AttentionImpl : torch::nn::Module {
  explicit AttentionImpl(int64_t dim) {
    q = register_module("q", torch::nn::Linear(dim, dim));
    k = register_module("k", torch::nn::Linear(dim, dim));
    v = register_module("v", torch::nn::Linear(dim, dim));
  }
  torch::Tensor forward(const torch::Tensor &x) {
    const auto length = x.size(1);
    auto scores = torch::bmm(q(x), k(x).transpose(1, 2)) / std::sqrt(static_cast<double>(x.size(2)));
    auto mask = torch::ones({length, length}, torch::kBool).triu(1);
    scores = scores.masked_fill(mask, -1e9); // [[device-mixed-op]]
    return torch::bmm(torch::softmax(scores, -1), v(x));
  }
  torch::nn::Linear q{nullptr}, k{nullptr}, v{nullptr};
};
TORCH_MODULE(Attention);

struct CharNetImpl : torch::nn::Module {
  CharNetImpl(int64_t vocab, const text::Hyper &h)
      : embed(vocab, h.embed), rnn(torch::nn::GRUOptions(h.embed, h.hidden).batch_first(true)),
        attention(h.hidden), out(h.hidden, vocab) {
    register_module("embed", embed);
    register_module("rnn", rnn);
    register_module("attention", attention);
    register_module("out", out);
  }
  torch::Tensor forward(const torch::Tensor &ids) {
    auto [states, last] = rnn->forward(embed->forward(ids));
    return out->forward(attention->forward(states));
  }
  torch::nn::Embedding embed;
  torch::nn::GRU rnn;
  Attention attention;
  torch::nn::Linear out;
};
TORCH_MODULE(CharNet);

double trainEpoch(CharNet &net, torch::optim::Optimizer &optimizer, const text::Corpus &corpus,
                  const text::Hyper &h, const torch::Device &device) {
  net->train();
  auto batch = corpus.draw(h);
  auto ids = batch.input.to(device), targets = batch.target.to(device);
  optimizer.zero_grad();
  auto logits = net->forward(ids);
  auto loss = torch::nn::functional::cross_entropy(logits.flatten(0, 1), targets.flatten());
  loss.backward();
  torch::nn::utils::clip_grad_norm_(net->parameters(), h.clip);
  optimizer.step();
  return loss.item<double>();
}

} // namespace broken

void char_model_mask_on_host_bad() {
  text::Hyper h;
  text::Vocabulary vocabulary(text::kText);
  text::Corpus corpus(text::kText, vocabulary);
  torch::Device device(torch::cuda::is_available() ? torch::kCUDA : torch::kCPU);
  broken::CharNet net(vocabulary.size(), h);
  net->to(device);
  torch::optim::Adam optimizer(net->parameters(), h.lr);
  for (int epoch = 0; epoch < h.epochs; ++epoch)
    std::cout << broken::trainEpoch(net, optimizer, corpus, h, device) << '\n';
}

namespace working {

struct AttentionImpl : torch::nn::Module {
  explicit AttentionImpl(int64_t dim) {
    q = register_module("q", torch::nn::Linear(dim, dim));
    k = register_module("k", torch::nn::Linear(dim, dim));
    v = register_module("v", torch::nn::Linear(dim, dim));
  }
  torch::Tensor forward(const torch::Tensor &x) {
    const auto length = x.size(1);
    auto scores = torch::bmm(q(x), k(x).transpose(1, 2)) / std::sqrt(static_cast<double>(x.size(2)));
    auto mask = torch::ones({length, length}, x.options().dtype(torch::kBool)).triu(1);
    scores = scores.masked_fill(mask, -1e9);
    return torch::bmm(torch::softmax(scores, -1), v(x));
  }
  torch::nn::Linear q{nullptr}, k{nullptr}, v{nullptr};
};
TORCH_MODULE(Attention);

struct CharNetImpl : torch::nn::Module {
  CharNetImpl(int64_t vocab, const text::Hyper &h)
      : embed(vocab, h.embed), rnn(torch::nn::GRUOptions(h.embed, h.hidden).batch_first(true)),
        attention(h.hidden), out(h.hidden, vocab) {
    register_module("embed", embed);
    register_module("rnn", rnn);
    register_module("attention", attention);
    register_module("out", out);
  }
  torch::Tensor forward(const torch::Tensor &ids) {
    auto [states, last] = rnn->forward(embed->forward(ids));
    return out->forward(attention->forward(states));
  }
  torch::nn::Embedding embed;
  torch::nn::GRU rnn;
  Attention attention;
  torch::nn::Linear out;
};
TORCH_MODULE(CharNet);

double trainEpoch(CharNet &net, torch::optim::Optimizer &optimizer, const text::Corpus &corpus,
                  const text::Hyper &h, const torch::Device &device) {
  net->train();
  auto batch = corpus.draw(h);
  auto ids = batch.input.to(device), targets = batch.target.to(device);
  optimizer.zero_grad();
  auto logits = net->forward(ids);
  auto loss = torch::nn::functional::cross_entropy(logits.flatten(0, 1), targets.flatten());
  loss.backward();
  torch::nn::utils::clip_grad_norm_(net->parameters(), h.clip);
  optimizer.step();
  return loss.item<double>();
}

std::string sample(CharNet &net, const text::Vocabulary &vocabulary, std::string seed, int64_t n,
                   const torch::Device &device) {
  torch::NoGradGuard off;
  net->eval();
  for (int64_t i = 0; i < n; ++i) {
    auto ids = vocabulary.encode(seed).unsqueeze(0).to(device);
    auto logits = net->forward(ids).index({0, -1});
    auto next = torch::multinomial(torch::softmax(logits.cpu(), -1), 1).item<int64_t>();
    seed += vocabulary.chars[static_cast<size_t>(next)];
  }
  return seed;
}

} // namespace working

void char_model_ok() {
  text::Hyper h;
  text::Vocabulary vocabulary(text::kText);
  text::Corpus corpus(text::kText, vocabulary);
  torch::Device device(torch::cuda::is_available() ? torch::kCUDA : torch::kCPU);
  working::CharNet net(vocabulary.size(), h);
  net->to(device);
  torch::optim::Adam optimizer(net->parameters(), h.lr);
  double best = 1e9;
  for (int epoch = 0; epoch < h.epochs; ++epoch)
    best = std::min(best, working::trainEpoch(net, optimizer, corpus, h, device));
  std::cout << best << ' ' << working::sample(net, vocabulary, "the ", 5, device) << '\n';
}

DT_MAIN(char_model_mask_on_host_bad, char_model_ok)

// A class with a member whose type a missing header would declare is still what it is: a dataset, a module.
// REQUIRES: torch
// RUN: not %device-tidy %s -- %torch-flags 2>&1 | FileCheck %s --implicit-check-not=warning:
#include <torch/torch.h>

#include "missing.h"

class Sentences : public torch::data::datasets::Dataset<Sentences> {
public:
  explicit Sentences(int count) : count(count) {}
  torch::data::Example<> get(size_t) override { return {torch::rand({4}), torch::rand({1})}; }
  torch::optional<size_t> size() const override { return count; }

private:
  std::shared_ptr<missing::Tokenizer> tokenizer;
  size_t count;
};

// What the model is made of is not known; it is one model all the same.
struct Generator {
  Generator() { main = torch::nn::Sequential(missing::layer(3), torch::nn::Linear(4, 2)); }
  torch::nn::Sequential main;
};

void generate() {
  torch::nn::Sequential net = Generator().main;
  net->forward(torch::rand({1, 4}));
  net->to(torch::kCUDA);
  // CHECK: [[@LINE+1]]:{{[0-9]+}}: warning: 'Sequential::forward' can get the parameters of 'net' on cuda and 'torch::rand({1, 4})' on cpu
  net->forward(torch::rand({1, 4}));
  net->forward(torch::rand({1, 4}, torch::kCUDA));
}

int main() {
  generate();
  auto loader = torch::data::make_data_loader(Sentences(3).map(torch::data::transforms::Stack<>()), 2);
  torch::nn::Linear net(4, 1);
  net->to(torch::kCUDA);
  for (auto &batch : *loader) {
    // CHECK: [[@LINE+1]]:{{[0-9]+}}: warning: 'Linear::forward' gets the parameters of 'net' on cuda and 'batch.data' on cpu
    net->forward(batch.data);
  }
}
// CHECK: unknown-member.cpp (what could be parsed of it was analysed)

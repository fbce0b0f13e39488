// A class with a member whose type a missing header would declare is still what it is: a dataset, a module.
// REQUIRES: torch
// RUN: not %device-tidy %s -- %torch-flags 2>&1 | FileCheck %s
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

int main() {
  auto loader = torch::data::make_data_loader(Sentences(3).map(torch::data::transforms::Stack<>()), 2);
  torch::nn::Linear net(4, 1);
  net->to(torch::kCUDA);
  for (auto &batch : *loader) {
    // CHECK: [[@LINE+1]]:{{[0-9]+}}: warning: 'Linear::forward' gets the parameters of 'net' on cuda and 'batch.data' on cpu
    net->forward(batch.data);
  }
}
// CHECK: unknown-member.cpp (what could be parsed of it was analysed)

// What a call has answered before a loop stays so in the loop; made again, it may answer otherwise.
#include "../cases.h"

#include <cstdlib>
#include <fstream>
#include <torch/torch.h>
#include <vector>

static bool takesOne(int &left) { return std::getenv("TAKES_NONE") == nullptr && left-- > 0; }

static void answer_in_variable_ok() {
  const bool onGpu = std::getenv("WITHOUT_GPU") == nullptr;
  torch::nn::Linear net(3, 3);
  if (onGpu)
    net->to(torch::kCUDA);
  const int rounds = 1 + std::rand() % 2;
  for (int round = 0; round < rounds; ++round) {
    auto x = torch::ones({2, 3});
    if (onGpu)
      x = x.cuda();
    net->forward(x);
  }
}

static void answer_in_variable_bad() {
  const bool onGpu = std::getenv("WITHOUT_GPU") == nullptr;
  torch::nn::Linear net(3, 3);
  if (onGpu)
    net->to(torch::kCUDA);
  const int rounds = 1 + std::rand() % 2;
  for (int round = 0; round < rounds; ++round) {
    auto x = torch::ones({2, 3});
    if (onGpu)
      net->forward(x); // [[device-mixed-op]]
  }
}

class Worker {
public:
  Worker() : onGpu(!std::ifstream("without-gpu").good()), net(3, 3) {
    if (onGpu)
      net->to(torch::kCUDA);
  }

  void run(const std::vector<torch::Tensor> &batches) {
    for (auto x : batches) {
      if (onGpu)
        x = x.cuda();
      net->forward(x);
    }
  }

private:
  bool onGpu;
  torch::nn::Linear net;
};

static void answer_in_member_ok() {
  Worker worker;
  worker.run({torch::ones({2, 3}), torch::ones({1, 3})});
}

static void asked_again_bad() {
  int left = 1;
  torch::nn::Linear net(3, 3);
  if (takesOne(left))
    net->to(torch::kCUDA);
  const int rounds = 1 + std::rand() % 2;
  for (int round = 0; round < rounds; ++round)
    if (!takesOne(left))
      net->forward(torch::ones({2, 3})); // [[device-mixed-op]]
}

DT_MAIN(answer_in_variable_ok, answer_in_variable_bad, answer_in_member_ok, asked_again_bad)

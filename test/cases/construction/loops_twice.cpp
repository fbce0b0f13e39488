// The same loop makes modules for several objects: those of one say nothing of those of another.
#include <torch/torch.h>

#include <string>
#include <vector>

#include "../cases.h"

struct OwnBlockImpl : torch::nn::Module {
  OwnBlockImpl() : dense(4, 4) { register_module("dense", dense); }
  torch::Tensor forward(const torch::Tensor &x) { return dense->forward(x); }
  torch::nn::Linear dense;
};
TORCH_MODULE(OwnBlock);

struct OwnTowerImpl : torch::nn::Module {
  explicit OwnTowerImpl(int count) {
    for (int i = 0; i < count; ++i) {
      blocks.push_back(OwnBlock());
      register_module("block" + std::to_string(i), blocks.back());
    }
  }
  torch::Tensor forward(torch::Tensor x) {
    for (auto &block : blocks)
      x = block(x);
    return x;
  }
  std::vector<OwnBlock> blocks;
};
TORCH_MODULE(OwnTower);

class Trainer {
public:
  explicit Trainer(int count) : count_(count), own_(count) { own_->to(torch::kCUDA); }
  void add() { opponents_.push_back(OwnTower(count_)); }
  torch::Tensor play() { return own_->forward(torch::ones({2, 4}, torch::kCUDA)); }

private:
  int count_;
  OwnTower own_;
  std::vector<OwnTower> opponents_;
};

struct RivalBlockImpl : torch::nn::Module {
  RivalBlockImpl() : dense(4, 4) { register_module("dense", dense); }
  torch::Tensor forward(const torch::Tensor &x) {
    return dense->forward(x); // [[device-mixed-op]]
  }
  torch::nn::Linear dense;
};
TORCH_MODULE(RivalBlock);

struct RivalTowerImpl : torch::nn::Module {
  explicit RivalTowerImpl(int count) {
    for (int i = 0; i < count; ++i) {
      blocks.push_back(RivalBlock());
      register_module("block" + std::to_string(i), blocks.back());
    }
  }
  torch::Tensor forward(torch::Tensor x) {
    for (auto &block : blocks)
      x = block(x);
    return x;
  }
  std::vector<RivalBlock> blocks;
};
TORCH_MODULE(RivalTower);

class League {
public:
  explicit League(int count) : count_(count) {}
  void add() { opponents_.push_back(RivalTower(count_)); }
  torch::Tensor play() {
    torch::Tensor sum = torch::zeros({2, 4}, torch::kCUDA);
    for (auto &opponent : opponents_)
      sum = sum + opponent->forward(torch::ones({2, 4}, torch::kCUDA));
    return sum;
  }

private:
  int count_;
  std::vector<RivalTower> opponents_;
};

#ifdef DT_RUN
void others_stay_on_the_host_ok() {
  Trainer trainer(2);
  trainer.add();
  trainer.play();
}

void never_moved_bad() {
  League league(2);
  league.add();
  league.play();
}

DT_MAIN(others_stay_on_the_host_ok, never_moved_bad)
#endif

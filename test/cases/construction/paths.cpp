// Objects placed on one construction path only: init methods, factories, lazily made members, clones.
#include <torch/torch.h>

#include <memory>
#include <string>
#include <utility>

#include "../cases.h"

// Only the second init method moves the model.
class Worker {
public:
  Worker() : net_(3, 1) {}
  void init() {}
  void initOn(torch::Device device) {
    device_ = device;
    net_->to(device_);
  }
  torch::Tensor score(const torch::Tensor &x) { return net_->forward(x.to(device_)); }

private:
  torch::Device device_{torch::kCPU};
  torch::nn::Linear net_;
};

void either_init_is_consistent_ok() {
  Worker a, b;
  a.init();
  b.initOn(torch::kCUDA);
  a.score(torch::rand({1, 3}));
  b.score(torch::rand({1, 3}));
}

class HalfWorker {
public:
  HalfWorker() : net_(3, 1) {}
  void init(torch::Device device) { device_ = device; }
  void initDistributed(torch::Device device, int rank) {
    device_ = torch::Device(device.type(), static_cast<c10::DeviceIndex>(rank));
    net_->to(device_);
  }
  torch::Tensor score(const torch::Tensor &x) {
    return net_->forward(x.to(device_)); // [[device-mixed-op]]
  }

private:
  torch::Device device_{torch::kCPU};
  torch::nn::Linear net_;
};

void only_the_distributed_init_moves_bad() {
  HalfWorker w;
  w.init(torch::kCUDA);
  w.score(torch::rand({1, 3}));
}

// Lazily created on first use, with the input's options.
class LazyTable {
public:
  torch::Tensor apply(const torch::Tensor &x) {
    if (!table_.defined())
      table_ = torch::linspace(0, 1, x.size(-1), x.options());
    return x * table_;
  }

private:
  torch::Tensor table_;
};

void lazily_created_like_the_input_ok() {
  LazyTable table;
  table.apply(torch::rand({4}, torch::kCUDA));
  table.apply(torch::rand({4}, torch::kCUDA));
}

class LazyHostTable {
public:
  torch::Tensor apply(const torch::Tensor &x) {
    if (!table_.defined())
      table_ = torch::linspace(0, 1, x.size(-1));
    return x * table_; // [[device-mixed-op]]
  }

private:
  torch::Tensor table_;
};

void lazily_created_on_host_bad() {
  LazyHostTable table;
  table.apply(torch::rand({4}, torch::kCUDA));
}

// A clone onto another device leaves the original where it was.
void clone_to_device_ok() {
  torch::nn::Linear source(3, 2);
  auto copy = std::dynamic_pointer_cast<torch::nn::LinearImpl>(source->clone(torch::Device(torch::kCUDA)));
  auto y = copy->forward(torch::rand({1, 3}, torch::kCUDA));
  auto z = source->forward(torch::rand({1, 3}));
  TORCH_CHECK(y.is_cuda() && !z.is_cuda());
}

void original_of_a_clone_bad() {
  torch::nn::Linear source(3, 2);
  auto copy = std::dynamic_pointer_cast<torch::nn::LinearImpl>(source->clone(torch::Device(torch::kCUDA)));
  auto x = torch::rand({1, 3}, torch::kCUDA);
  auto y = copy->forward(x);
  auto z = source->forward(x); // [[device-mixed-op]]
  TORCH_CHECK(y.defined() && z.defined());
}

// A ModuleHolder copied is the same module; a new one is not.
void holder_copy_shares_the_module_ok() {
  torch::nn::Linear first(3, 2);
  torch::nn::Linear same = first;
  first->to(torch::kCUDA);
  auto y = same->forward(torch::rand({1, 3}, torch::kCUDA));
  TORCH_CHECK(y.is_cuda());
}

void second_holder_is_another_module_bad() {
  torch::nn::Linear first(3, 2);
  torch::nn::Linear other(first->options);
  first->to(torch::kCUDA);
  auto y = other->forward(torch::rand({1, 3}, torch::kCUDA)); // [[device-mixed-op]]
  TORCH_CHECK(y.defined());
}

// Assigning a fresh module after the move loses the placement.
void module_replaced_after_the_move_bad() {
  torch::nn::Linear head(3, 2);
  head->to(torch::kCUDA);
  head = torch::nn::Linear(3, 5);
  auto y = head->forward(torch::rand({1, 3}, torch::kCUDA)); // [[device-mixed-op]]
  TORCH_CHECK(y.defined());
}

void module_replaced_and_moved_ok() {
  torch::nn::Linear head(3, 2);
  head->to(torch::kCUDA);
  head = torch::nn::Linear(3, 5);
  head->to(torch::kCUDA);
  auto y = head->forward(torch::rand({1, 3}, torch::kCUDA));
  TORCH_CHECK(y.is_cuda());
}

// A child replaced in a network that was already moved.
struct TransferNetImpl : torch::nn::Module {
  TransferNetImpl() {
    body = register_module("body", torch::nn::Linear(3, 3));
    head = register_module("head", torch::nn::Linear(3, 2));
  }
  void replaceHead(int64_t classes) { head = replace_module("head", torch::nn::Linear(3, classes)); }
  torch::Tensor forward(const torch::Tensor &x) {
    auto h = torch::relu(body(x));
    return head->forward(h); // [[device-mixed-op]]
  }
  torch::nn::Linear body{nullptr}, head{nullptr};
};
TORCH_MODULE(TransferNet);

void head_replaced_after_the_move_bad() {
  TransferNet net;
  net->to(torch::kCUDA);
  net->replaceHead(7);
  net->forward(torch::rand({1, 3}, torch::kCUDA));
}

struct TransferNetTwiceImpl : torch::nn::Module {
  TransferNetTwiceImpl() {
    body = register_module("body", torch::nn::Linear(3, 3));
    head = register_module("head", torch::nn::Linear(3, 2));
  }
  void replaceHead(int64_t classes) { head = replace_module("head", torch::nn::Linear(3, classes)); }
  torch::Tensor forward(const torch::Tensor &x) {
    auto h = torch::relu(body(x));
    return head->forward(h);
  }
  torch::nn::Linear body{nullptr}, head{nullptr};
};
TORCH_MODULE(TransferNetTwice);

void head_replaced_before_the_move_ok() {
  TransferNetTwice net;
  net->replaceHead(7);
  net->to(torch::kCUDA);
  net->forward(torch::rand({1, 3}, torch::kCUDA));
}

DT_MAIN(either_init_is_consistent_ok, only_the_distributed_init_moves_bad, lazily_created_like_the_input_ok,
        lazily_created_on_host_bad, clone_to_device_ok, original_of_a_clone_bad,
        holder_copy_shares_the_module_ok, second_holder_is_another_module_bad,
        module_replaced_after_the_move_bad, module_replaced_and_moved_ok, head_replaced_after_the_move_bad,
        head_replaced_before_the_move_ok)

// The breadth of losses: functional, module, temporary module objects, and the ones that are tolerant.
#include <torch/torch.h>

#include "../cases.h"

namespace nn = torch::nn;
namespace F = torch::nn::functional;

static torch::Tensor cuda(at::IntArrayRef shape) { return torch::rand(shape, torch::kCUDA); }
static torch::Tensor host(at::IntArrayRef shape) { return torch::rand(shape); }

void mse_temporary_module_bad() {
  auto loss = nn::MSELoss()(cuda({4}), host({4})); // [[device-loss-input]]
  TORCH_CHECK(loss.defined());
}

void mse_temporary_module_ok() {
  auto loss = nn::MSELoss()(cuda({4}), cuda({4}));
  TORCH_CHECK(loss.defined());
}

void bce_with_logits_functional_bad() {
  auto loss = F::binary_cross_entropy_with_logits(cuda({4}), host({4})); // [[device-loss-input]]
  TORCH_CHECK(loss.defined());
}

void bce_with_logits_scalar_pos_weight_ok() {
  auto options = F::BinaryCrossEntropyWithLogitsFuncOptions().pos_weight(torch::tensor(2.0f));
  auto loss = F::binary_cross_entropy_with_logits(cuda({4}), cuda({4}), options);
  TORCH_CHECK(loss.defined());
}

void bce_with_logits_one_element_pos_weight_bad() {
  auto options = F::BinaryCrossEntropyWithLogitsFuncOptions().pos_weight(torch::tensor({2.0f}));
  auto loss = F::binary_cross_entropy_with_logits(cuda({4}), cuda({4}), options); // [[device-loss-input]]
  TORCH_CHECK(loss.defined());
}

void triplet_negative_on_host_bad() {
  nn::TripletMarginLoss triplet(nn::TripletMarginLossOptions().margin(0.5));
  auto anchor = cuda({3, 8}), positive = cuda({3, 8}), negative = host({3, 8});
  auto loss = triplet(anchor, positive, negative); // [[device-loss-input]]
  TORCH_CHECK(loss.defined());
}

void triplet_ok() {
  nn::TripletMarginLoss triplet(nn::TripletMarginLossOptions().margin(0.5));
  auto anchor = cuda({3, 8}), positive = cuda({3, 8}), negative = host({3, 8}).to(torch::kCUDA);
  auto loss = triplet(anchor, positive, negative);
  TORCH_CHECK(loss.defined());
}

void huber_target_on_second_gpu_bad() {
  auto prediction = torch::rand({4}, torch::Device(torch::kCUDA, 0));
  auto target = torch::rand({4}, torch::Device(torch::kCUDA, 1));
  auto loss = torch::huber_loss(prediction, target); // [[device-loss-input]]
  TORCH_CHECK(loss.defined());
}

void cosine_embedding_target_bad() {
  nn::CosineEmbeddingLoss criterion;
  auto loss = criterion->forward(cuda({3, 8}), cuda({3, 8}), torch::ones({3})); // [[device-loss-input]]
  TORCH_CHECK(loss.defined());
}

void cosine_embedding_target_ok() {
  nn::CosineEmbeddingLoss criterion;
  auto loss = criterion->forward(cuda({3, 8}), cuda({3, 8}), torch::ones({3}, torch::kCUDA));
  TORCH_CHECK(loss.defined());
}

void nll_module_weight_moved_with_the_module_ok() {
  nn::NLLLoss criterion(nn::NLLLossOptions().weight(torch::ones({5})));
  criterion->to(torch::kCUDA);
  auto target = torch::zeros({2}, torch::TensorOptions(torch::kLong).device(torch::kCUDA));
  auto loss = criterion(torch::log_softmax(cuda({2, 5}), 1), target);
  TORCH_CHECK(loss.defined());
}

// ctc_loss brings the targets and lengths to where it needs them.
void ctc_targets_on_host_ok() {
  auto logProbs = torch::log_softmax(cuda({6, 2, 4}), -1);
  auto targets = torch::randint(1, 4, {2, 3}, torch::kLong);
  auto inputLengths = torch::full({2}, 6, torch::kLong), targetLengths = torch::full({2}, 3, torch::kLong);
  auto loss = torch::ctc_loss(logProbs, targets, inputLengths, targetLengths);
  TORCH_CHECK(loss.defined());
}

// A loss without a kernel of its own is a plain binary operation to a zero-dimensional CPU target.
void l1_against_a_number_tensor_ok() {
  auto loss = torch::l1_loss(cuda({1}).mean(), torch::tensor(0.5f));
  TORCH_CHECK(loss.defined());
}

// A criterion that is a registered child of the model moves with it.
struct WithCriterionImpl : nn::Module {
  WithCriterionImpl()
      : fc(register_module("fc", nn::Linear(3, 2))),
        criterion(register_module("criterion", nn::CrossEntropyLoss(nn::CrossEntropyLossOptions().weight(
                                                   torch::tensor({1.0f, 4.0f}))))) {}
  torch::Tensor forward(const torch::Tensor &x, const torch::Tensor &y) { return criterion(fc(x), y); }
  nn::Linear fc;
  nn::CrossEntropyLoss criterion;
};
TORCH_MODULE(WithCriterion);

void criterion_registered_in_the_model_ok() {
  WithCriterion model;
  model->to(torch::kCUDA);
  auto y = torch::zeros({4}, torch::TensorOptions(torch::kLong).device(torch::kCUDA));
  model(cuda({4, 3}), y).backward();
}

// A member criterion of a trainer; everything but the criterion is moved.
class Trainer {
public:
  explicit Trainer(torch::Device d)
      : device(d), net(3, 2),
        criterion(nn::CrossEntropyLossOptions().weight(torch::tensor({1.0f, 4.0f}))) {
    net->to(device);
  }
  void step(const torch::Tensor &x, const torch::Tensor &y) {
    auto output = net(x.to(device));
    auto loss = criterion(output, y.to(device)); // [[device-loss-input]]
    loss.backward();
  }

private:
  torch::Device device;
  nn::Linear net;
  nn::CrossEntropyLoss criterion;
};

void member_criterion_never_moved_bad() {
  Trainer trainer(torch::kCUDA);
  trainer.step(host({4, 3}), torch::zeros({4}, torch::kLong));
}

class CarefulTrainer {
public:
  explicit CarefulTrainer(torch::Device d)
      : device(d), net(3, 2),
        criterion(nn::CrossEntropyLossOptions().weight(torch::tensor({1.0f, 4.0f}))) {
    net->to(device);
    criterion->to(device);
  }
  void step(const torch::Tensor &x, const torch::Tensor &y) {
    auto output = net(x.to(device));
    auto loss = criterion(output, y.to(device));
    loss.backward();
  }

private:
  torch::Device device;
  nn::Linear net;
  nn::CrossEntropyLoss criterion;
};

void member_criterion_moved_ok() {
  CarefulTrainer trainer(torch::kCUDA);
  trainer.step(host({4, 3}), torch::zeros({4}, torch::kLong));
}

DT_MAIN(mse_temporary_module_bad, mse_temporary_module_ok, bce_with_logits_functional_bad,
        bce_with_logits_scalar_pos_weight_ok, bce_with_logits_one_element_pos_weight_bad,
        triplet_negative_on_host_bad, triplet_ok, huber_target_on_second_gpu_bad,
        cosine_embedding_target_bad, cosine_embedding_target_ok, nll_module_weight_moved_with_the_module_ok,
        l1_against_a_number_tensor_ok, criterion_registered_in_the_model_ok,
        member_criterion_never_moved_bad, member_criterion_moved_ok)

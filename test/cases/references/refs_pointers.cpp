// References, pointers, out-parameters and smart pointers to tensors.
#include "../cases.h"
#include <torch/torch.h>

#include <functional>
#include <memory>
#include <optional>

using torch::Tensor;

static void toGpuByReference(Tensor &t) { t = t.to(torch::kCUDA); }
static void toGpuByValue(Tensor t) { t = t.to(torch::kCUDA); }
static void toGpuByPointer(Tensor *t) { *t = t->to(torch::kCUDA); }

static void moved_by_reference_ok() {
  Tensor a = torch::rand({3});
  toGpuByReference(a);
  Tensor b = torch::ones({3}, torch::kCUDA);
  Tensor c = a * b;
  TORCH_CHECK(c.is_cuda());
}

static void moved_by_value_only_bad() {
  Tensor a = torch::rand({3});
  toGpuByValue(a);
  Tensor b = torch::ones({3}, torch::kCUDA);
  Tensor c = a * b; // [[device-mixed-op]]
  TORCH_CHECK(c.is_cuda());
}

static void moved_through_pointer_ok() {
  Tensor a = torch::rand({3});
  toGpuByPointer(&a);
  Tensor c = a * torch::ones({3}, torch::kCUDA);
  TORCH_CHECK(c.is_cuda());
}

static void wrong_one_moved_through_pointer_bad() {
  Tensor a = torch::rand({3});
  Tensor spare = torch::rand({3});
  toGpuByPointer(&spare);
  Tensor c = a * torch::ones({3}, torch::kCUDA); // [[device-mixed-op]]
  TORCH_CHECK(c.defined());
}

static void shared_pointer_aliases_one_tensor_ok() {
  auto shared = std::make_shared<Tensor>(torch::rand({2, 2}));
  auto other = shared;
  *other = other->to(torch::kCUDA);
  Tensor product = shared->mm(torch::eye(2, torch::kCUDA));
  TORCH_CHECK(product.is_cuda());
}

static void shared_pointer_copy_of_the_tensor_bad() {
  auto shared = std::make_shared<Tensor>(torch::rand({2, 2}));
  auto other = std::make_shared<Tensor>(*shared);
  *other = other->to(torch::kCUDA);
  Tensor product = shared->mm(torch::eye(2, torch::kCUDA)); // [[device-mixed-op]]
  TORCH_CHECK(product.defined());
}

static void optional_mask_on_host_bad() {
  std::optional<Tensor> mask;
  Tensor scores = torch::rand({4, 4}, torch::kCUDA);
  mask = torch::tril(torch::ones({4, 4}));
  if (mask)
    scores = scores * *mask; // [[device-mixed-op]]
  TORCH_CHECK(scores.defined());
}

static void optional_mask_on_device_ok() {
  std::optional<Tensor> mask;
  Tensor scores = torch::rand({4, 4}, torch::kCUDA);
  mask = torch::tril(torch::ones({4, 4}, scores.options()));
  if (mask)
    scores = scores * mask.value();
  TORCH_CHECK(scores.defined());
}

static void reference_wrapper_moves_the_target_ok() {
  Tensor a = torch::rand({3}), b = torch::rand({3});
  for (std::reference_wrapper<Tensor> t : {std::ref(a), std::ref(b)})
    t.get() = t.get().to(torch::kCUDA);
  Tensor c = a + b + torch::ones({3}, torch::kCUDA);
  TORCH_CHECK(c.is_cuda());
}

static void fill_outputs(const Tensor &in, Tensor &mean, Tensor *var) {
  mean = in.mean(0);
  *var = in.var(0).cpu();
}

static void out_parameter_comes_back_on_host_bad() {
  Tensor x = torch::randn({16, 4}, torch::kCUDA);
  Tensor mean, var;
  fill_outputs(x, mean, &var);
  Tensor z = (x - mean) / (var + 1e-5).sqrt(); // [[device-mixed-op]]
  TORCH_CHECK(z.defined());
}

static void out_parameter_moved_back_ok() {
  Tensor x = torch::randn({16, 4}, torch::kCUDA);
  Tensor mean, var;
  fill_outputs(x, mean, &var);
  Tensor z = (x - mean) / (var.to(x.device()) + 1e-5).sqrt();
  TORCH_CHECK(z.defined());
}

DT_MAIN(moved_by_reference_ok, moved_by_value_only_bad, moved_through_pointer_ok,
        wrong_one_moved_through_pointer_bad, shared_pointer_aliases_one_tensor_ok,
        shared_pointer_copy_of_the_tensor_bad, optional_mask_on_host_bad, optional_mask_on_device_ok,
        reference_wrapper_moves_the_target_ok, out_parameter_comes_back_on_host_bad,
        out_parameter_moved_back_ok)

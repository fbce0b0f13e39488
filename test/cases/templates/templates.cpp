// Templates seen through their instantiations, default arguments, overloads, constexpr branches.
#include "../cases.h"
#include <torch/torch.h>

#include <memory>
#include <type_traits>
#include <utility>
#include <vector>

namespace detail {

template <typename ModelT> torch::Tensor run_on_host_input(ModelT &model, int64_t width) {
  auto input = torch::rand({2, width});
  return model->forward(input); // [[device-mixed-op]]
}

template <typename ModelT> torch::Tensor run_on_model_device(ModelT &model, int64_t width) {
  auto input = torch::rand({2, width}, model->parameters().front().options().requires_grad(false));
  return model->forward(input);
}

template <torch::DeviceType Type> struct OnDevice {
  static torch::Tensor ones(int64_t n) { return torch::ones({n}, torch::Device(Type)); }
};

template <typename T> void place(T &object, const torch::Device &device) {
  if constexpr (std::is_same_v<T, torch::Tensor>)
    object = object.to(device);
  else
    object->to(device);
}

// The same without the distinction: right for modules, nothing for tensors.
template <typename T> void placeAnything(T &object, const torch::Device &device) {
  if constexpr (std::is_same_v<T, torch::Tensor>)
    object.to(device); // [[device-discarded-move]]
  else
    object->to(device);
}

template <typename... Ts> void placeAll(const torch::Device &device, Ts &...objects) {
  (place(objects, device), ...);
}

} // namespace detail

static void template_model_gets_host_input_bad() {
  torch::nn::Linear net(3, 3);
  net->to(torch::kCUDA);
  detail::run_on_host_input(net, 3);
}

static void template_model_device_ok() {
  torch::nn::Linear net(3, 3);
  net->to(torch::kCUDA);
  detail::run_on_model_device(net, 3);
}

static void device_as_template_argument_bad() {
  using detail::OnDevice;
  auto y = OnDevice<torch::kCUDA>::ones(3) + OnDevice<torch::kCPU>::ones(3); // [[device-mixed-op]]
  TORCH_CHECK(y.defined());
}

static void device_as_template_argument_ok() {
  auto y = detail::OnDevice<torch::kCUDA>::ones(3) + detail::OnDevice<torch::kCUDA>::ones(3);
  TORCH_CHECK(y.defined());
}

static void generic_place_ok() {
  torch::nn::Linear net(3, 3);
  auto x = torch::rand({1, 3});
  detail::placeAll(torch::Device(torch::kCUDA), net, x);
  auto y = net->forward(x);
  TORCH_CHECK(y.is_cuda());
}

static void generic_place_discards_bad() {
  torch::nn::Linear net(3, 3);
  auto x = torch::rand({1, 3});
  detail::placeAnything(net, torch::Device(torch::kCUDA));
  detail::placeAnything(x, torch::Device(torch::kCUDA));
}

// Default arguments.
static torch::Tensor make_grid(int64_t n, torch::Device device = torch::kCPU) {
  return torch::linspace(0, 1, n, device);
}

static void default_argument_is_cpu_bad() {
  auto field = torch::rand({5}, torch::kCUDA);
  auto y = field * make_grid(5); // [[device-mixed-op]]
  TORCH_CHECK(y.defined());
}

static void default_argument_given_ok() {
  auto field = torch::rand({5}, torch::kCUDA);
  auto y = field * make_grid(5, field.device());
  TORCH_CHECK(y.defined());
}

static torch::Tensor drift(const torch::Tensor &x, const torch::TensorOptions &opts = torch::kFloat32) {
  return torch::zeros(x.sizes(), opts);
}

static void default_options_bad() {
  auto x = torch::rand({5}, torch::kCUDA);
  x = x - drift(x); // [[device-mixed-op]]
}

static void default_options_ok() {
  auto x = torch::rand({5}, torch::kCUDA);
  x = x - drift(x, x.options());
}

// A generic holder instantiated for two kinds of content.
template <typename T> class Holder {
public:
  template <typename... Args> explicit Holder(Args &&...args) : value_(std::forward<Args>(args)...) {}
  T &get() { return value_; }

private:
  T value_;
};

static void class_template_holder_bad() {
  Holder<torch::nn::Linear> net(3, 1);
  net.get()->to(torch::kCUDA);
  Holder<torch::Tensor> x(torch::rand({2, 3}));
  auto y = net.get()->forward(x.get()); // [[device-mixed-op]]
  TORCH_CHECK(y.defined());
}

static void class_template_holder_ok() {
  Holder<torch::nn::Linear> net(3, 1);
  net.get()->to(torch::kCUDA);
  Holder<torch::Tensor> x(torch::rand({2, 3}).to(torch::kCUDA));
  auto y = net.get()->forward(x.get());
  TORCH_CHECK(y.defined());
}

DT_MAIN(template_model_gets_host_input_bad, template_model_device_ok, device_as_template_argument_bad,
        device_as_template_argument_ok, generic_place_ok, generic_place_discards_bad,
        default_argument_is_cpu_bad, default_argument_given_ok, default_options_bad, default_options_ok,
        class_template_holder_bad, class_template_holder_ok)

// A device member or global for which the program only ever chooses one device, and twins with a choice. The
// functions that use them have no callers here, as in a library.
#include "../cases.h"

#include <torch/torch.h>
#include <vector>

namespace settled {

class Source {
public:
  explicit Source(torch::Device device) : device(device) {}
  torch::Tensor draw(int64_t n) { return torch::rand({n, 8}, torch::TensorOptions().device(device)); }

private:
  torch::Device device = torch::kCPU;
};

class Model {
public:
  Model() : source(torch::kCPU) {}
  torch::Tensor forward(int64_t n) { return source.draw(n) + torch::zeros({n, 8}); }

private:
  Source source;
};

torch::Tensor simulate(Model &model) { return model.forward(16).sum(); }

struct Settings {
  static torch::TensorOptions options;
  static void prepare() { options = options.device(torch::kCPU).dtype(torch::kFloat32); }
};
torch::TensorOptions Settings::options = torch::TensorOptions();

torch::Tensor advantages(const std::vector<torch::Tensor> &logged) {
  torch::Tensor values = torch::cat(logged).to(torch::kCPU);
  return values - torch::zeros({1, 3}, Settings::options);
}

} // namespace settled

namespace open {

class Source {
public:
  explicit Source(torch::Device device) : device(device) {}
  torch::Tensor draw(int64_t n) { return torch::rand({n, 8}, torch::TensorOptions().device(device)); }

private:
  torch::Device device = torch::kCPU;
};

class Model {
public:
  Model() : source(torch::cuda::is_available() ? torch::kCUDA : torch::kCPU) {}
  torch::Tensor forward(int64_t n) {
    return source.draw(n) + torch::zeros({n, 8}); // [[device-mixed-op]]
  }

private:
  Source source;
};

torch::Tensor simulate(Model &model) { return model.forward(16).sum(); }

struct Settings {
  static torch::TensorOptions options;
  static void prepare() {
    if (torch::cuda::is_available())
      options = options.device(torch::kCUDA);
  }
};
torch::TensorOptions Settings::options = torch::TensorOptions();

torch::Tensor advantages(const std::vector<torch::Tensor> &logged) {
  torch::Tensor values = torch::cat(logged).to(torch::kCPU);
  return values - torch::zeros({1, 3}, Settings::options); // [[device-mixed-op]]
}

} // namespace open

#ifdef DT_RUN
void settled_member_ok() {
  settled::Model model;
  settled::simulate(model);
}
void settled_static_ok() {
  settled::Settings::prepare();
  settled::advantages({torch::ones({2, 3})});
}
void open_member_bad() {
  open::Model model;
  open::simulate(model);
}
void open_static_bad() {
  open::Settings::prepare();
  open::advantages({torch::ones({2, 3})});
}

DT_MAIN(settled_member_ok, settled_static_ok, open_member_bad, open_static_bad)
#endif

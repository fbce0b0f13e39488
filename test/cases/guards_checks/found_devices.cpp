// Code that asks where a tensor is, beside a device that was chosen elsewhere, and code that moves what it
// has to.
#include <torch/torch.h>

#include <any>
#include <memory>

#include "../cases.h"

namespace lib {

// An embedding table in memory: on the GPU when it was given one, else left on the host.
class Table {
public:
  Table(int64_t rows, torch::Device device) : device(device), rows(rows) {}

  void load() {
    data = torch::zeros({rows, 4});
    if (device == torch::kCUDA)
      data = data.to(device);
    loaded = true;
  }

  torch::Tensor read_ok(torch::Tensor indices) {
    if (data.device().is_cuda())
      return data.index_select(0, indices.to(device));
    return data.index_select(0, indices);
  }

  torch::Tensor read_bad(torch::Tensor indices) {
    if (data.device().is_cuda())
      return data.index_select(0, indices.to(torch::kCPU)); // [[device-mixed-op]]
    return data.index_select(0, indices);
  }

  // What is computed from the table is where the table is.
  torch::Tensor smoothed_ok() {
    TORCH_CHECK(data.is_cuda(), "the table must be on the GPU");
    auto doubled = data * 2;
    return doubled + torch::ones({rows, 4}, device);
  }

  torch::Tensor smoothed_bad() {
    TORCH_CHECK(data.is_cuda(), "the table must be on the GPU");
    auto doubled = data * 2;
    return doubled + torch::ones({rows, 4}); // [[device-mixed-op]]
  }

private:
  torch::Device device;
  int64_t rows;
  bool loaded = false;
  torch::Tensor data;
};

struct NetImpl : torch::nn::Module {
  torch::nn::Embedding words{nullptr};
  NetImpl() { words = register_module("words", torch::nn::Embedding(8, 4)); }
  torch::Tensor forward(torch::Tensor ids) { return words->forward(ids); }
};
TORCH_MODULE(Net);

// A model that someone else made has parameters.
torch::Tensor prompt_ok(Net model) {
  model->to(torch::kCUDA);
  const torch::Device device =
      model->parameters().empty() ? torch::Device(torch::kCPU) : model->parameters()[0].device();
  auto ids = torch::zeros({3}, torch::kLong).to(device);
  return model->words->forward(ids);
}

torch::Tensor prompt_bad(Net model) {
  model->to(torch::kCUDA);
  const torch::Device device =
      model->parameters().empty() ? model->parameters()[0].device() : torch::Device(torch::kCPU);
  auto ids = torch::zeros({3}, torch::kLong).to(device);
  return model->words->forward(ids); // [[device-mixed-op]]
}

// A metric whose window follows the prediction; where that is nobody here knows.
torch::Tensor compare_ok(const std::any &result, const torch::Tensor &target) {
  const auto prediction = std::any_cast<torch::Tensor>(result);
  auto window = torch::ones({3, 3});
  if (window.device() != prediction.device())
    window = window.to(prediction.device());
  return target.to(torch::kCUDA).matmul(window);
}

torch::Tensor compare_bad(const std::any &result, const torch::Tensor &target) {
  const auto prediction = std::any_cast<torch::Tensor>(result);
  auto window = torch::ones({3, 3});
  if (window.dim() != prediction.dim())
    window = window.squeeze();
  return target.to(torch::kCUDA).matmul(window); // [[device-mixed-op]]
}

} // namespace lib

#ifdef DT_RUN
static lib::Table cudaTable() {
  lib::Table table(5, torch::kCUDA);
  table.load();
  return table;
}
static torch::Tensor cudaMatrix() { return torch::rand({3, 3}, torch::kCUDA); }
static void run_read_ok() { cudaTable().read_ok(torch::zeros({2}, torch::kLong)); }
static void run_read_bad() { cudaTable().read_bad(torch::zeros({2}, torch::kLong)); }
static void run_smoothed_ok() { cudaTable().smoothed_ok(); }
static void run_smoothed_bad() { cudaTable().smoothed_bad(); }
static void run_prompt_ok() { lib::prompt_ok(lib::Net()); }
static void run_prompt_bad() { lib::prompt_bad(lib::Net()); }
static void run_compare_ok() { lib::compare_ok(std::any(cudaMatrix()), torch::rand({3, 3})); }
static void run_compare_bad() { lib::compare_bad(std::any(cudaMatrix()), torch::rand({3, 3})); }
DT_MAIN(run_read_ok, run_read_bad, run_smoothed_ok, run_smoothed_bad, run_prompt_ok, run_prompt_bad,
        run_compare_ok, run_compare_bad)
#endif

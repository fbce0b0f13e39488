// Results that are read back without a copy to the host: what inference servers and their ports to C++ do.
#include "../cases.h"

#include <torch/torch.h>

#include <algorithm>
#include <cstring>
#include <numeric>
#include <vector>

namespace {

struct Detector : torch::nn::Module {
  Detector() { head = register_module("head", torch::nn::Linear(4, 3)); }
  torch::Tensor forward(const torch::Tensor &x) { return head->forward(x); }
  torch::nn::Linear head{nullptr};
};

std::vector<float> scoresOf(const torch::Tensor &output) {
  const float *begin = output.data_ptr<float>();
  return std::vector<float>(begin, begin + output.numel()); // [[device-host-access]]
}

std::vector<float> copiedScoresOf(const torch::Tensor &output) {
  const torch::Tensor host = output.to(torch::kCPU).contiguous();
  const float *begin = host.data_ptr<float>();
  return std::vector<float>(begin, begin + host.numel());
}

} // namespace

void vector_of_output_bad() {
  auto net = std::make_shared<Detector>();
  net->to(torch::kCUDA);
  torch::NoGradGuard guard;
  auto output = net->forward(torch::rand({2, 4}, torch::kCUDA));
  scoresOf(output);
}

void vector_of_output_ok() {
  auto net = std::make_shared<Detector>();
  net->to(torch::kCUDA);
  torch::NoGradGuard guard;
  auto output = net->forward(torch::rand({2, 4}, torch::kCUDA));
  copiedScoresOf(output);
}

void memcpy_out_bad() {
  torch::Device device(torch::kCUDA, 0);
  auto embedding = torch::rand({8}).to(device);
  float out[8];
  std::memcpy(out, embedding.data_ptr(), sizeof out); // [[device-host-access]]
}

void memcpy_out_ok() {
  torch::Device device(torch::kCUDA, 0);
  auto embedding = torch::rand({8}).to(device);
  float out[8];
  std::memcpy(out, embedding.cpu().data_ptr(), sizeof out);
}

void best_of_a_row_bad() {
  auto logits = torch::rand({3, 10}, torch::kCUDA);
  auto row = logits[1].contiguous();
  const float *values = row.data_ptr<float>();
  auto best = std::max_element(values, values + 10); // [[device-host-access]]
  (void)best;
}

void best_of_a_row_ok() {
  auto logits = torch::rand({3, 10}, torch::kCUDA);
  auto best = logits[1].argmax().item<int64_t>();
  (void)best;
}

void sum_in_a_loop_bad() {
  auto losses = torch::zeros({4}, torch::TensorOptions().device(torch::kCUDA));
  float *values = losses.data_ptr<float>();
  float sum = 0;
  for (int i = 0; i < 4; ++i)
    sum += values[i]; // [[device-host-access]]
  (void)sum;
}

void sum_in_a_loop_ok() {
  auto losses = torch::zeros({4}, torch::TensorOptions().device(torch::kCUDA));
  auto host = losses.cpu();
  float *values = host.data_ptr<float>();
  float sum = 0;
  for (int i = 0; i < 4; ++i)
    sum += values[i];
  (void)sum;
}

void accessor_bad() {
  auto boxes = torch::rand({5, 4}).cuda();
  auto view = boxes.accessor<float, 2>();
  float left = view[0][0]; // [[device-host-access]]
  (void)left;
}

void accessor_ok() {
  auto boxes = torch::rand({5, 4}).cuda();
  boxes = boxes.cpu();
  auto view = boxes.accessor<float, 2>();
  float left = view[0][0];
  (void)left;
}

void sizes_of_parts_bad() {
  auto batch = torch::rand({5, 4}).cuda();
  auto counts = torch::full({2}, 2, torch::kLong).cuda();
  const auto sizes = at::IntArrayRef(counts.data_ptr<int64_t>(), 2); // [[device-host-access]]
  batch.split_with_sizes(sizes, 1);
}

void sizes_of_parts_ok() {
  auto batch = torch::rand({5, 4}).cuda();
  auto counts = torch::full({2}, 2, torch::kLong).cuda().cpu();
  const auto sizes = at::IntArrayRef(counts.data_ptr<int64_t>(), 2);
  batch.split_with_sizes(sizes, 1);
}

DT_MAIN(vector_of_output_bad, vector_of_output_ok, memcpy_out_bad, memcpy_out_ok, best_of_a_row_bad,
        best_of_a_row_ok, sum_in_a_loop_bad, sum_in_a_loop_ok, accessor_bad, accessor_ok, sizes_of_parts_bad,
        sizes_of_parts_ok)

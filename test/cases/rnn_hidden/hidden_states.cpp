// Recurrent networks: hidden states made, kept and detached between steps.
#include <torch/torch.h>

#include <tuple>

#include "../cases.h"

using torch::Tensor;

void lstm_zero_state_on_host_bad() {
  torch::Device device(torch::kCUDA);
  torch::nn::LSTM lstm(torch::nn::LSTMOptions(5, 7).batch_first(true));
  lstm->to(device);
  auto h0 = torch::zeros({1, 2, 7});
  auto c0 = torch::zeros({1, 2, 7});
  auto x = torch::rand({2, 4, 5}, device);
  auto out = lstm->forward(x, std::make_tuple(h0, c0)); // [[device-mixed-op]]
  std::get<0>(out).sum().backward();
}

void lstm_zero_state_on_device_ok() {
  torch::Device device(torch::kCUDA);
  torch::nn::LSTM lstm(torch::nn::LSTMOptions(5, 7).batch_first(true));
  lstm->to(device);
  auto h0 = torch::zeros({1, 2, 7}, device);
  auto c0 = torch::zeros({1, 2, 7}, device);
  auto x = torch::rand({2, 4, 5}, device);
  auto out = lstm->forward(x, std::make_tuple(h0, c0));
  std::get<0>(out).sum().backward();
}

void lstm_without_state_ok() {
  torch::nn::LSTM lstm(5, 7);
  lstm->to(torch::kCUDA);
  auto [output, state] = lstm->forward(torch::rand({4, 2, 5}, torch::kCUDA));
  auto [h, c] = state;
  auto sum = output[-1] + h[0] * c[0];
  TORCH_CHECK(sum.is_cuda());
}

void gru_state_carried_ok() {
  torch::nn::GRU gru(3, 4);
  gru->to(torch::kCUDA);
  Tensor hidden;
  Tensor output;
  for (int step = 0; step < 3; ++step) {
    std::tie(output, hidden) = gru->forward(torch::rand({1, 2, 3}, torch::kCUDA), hidden);
    hidden = hidden.detach();
  }
  TORCH_CHECK(hidden.is_cuda());
}

void gru_state_reset_on_host_bad() {
  torch::nn::GRU gru(3, 4);
  gru->to(torch::kCUDA);
  Tensor hidden = torch::zeros({1, 2, 4}, torch::kCUDA);
  Tensor output;
  for (int step = 0; step < 3; ++step) {
    if (step == 1)
      hidden = torch::zeros({1, 2, 4});
    auto input = torch::rand({1, 2, 3}, torch::kCUDA);
    std::tie(output, hidden) = gru->forward(input, hidden); // [[device-mixed-op]]
  }
}

void gru_state_reset_in_place_ok() {
  torch::nn::GRU gru(3, 4);
  gru->to(torch::kCUDA);
  torch::NoGradGuard off;
  Tensor hidden = torch::zeros({1, 2, 4}, torch::kCUDA);
  Tensor output;
  for (int step = 0; step < 3; ++step) {
    if (step == 1)
      hidden.zero_();
    std::tie(output, hidden) = gru->forward(torch::rand({1, 2, 3}, torch::kCUDA), hidden);
  }
}

// A module that keeps its state between calls.
struct CharModelImpl : torch::nn::Module {
  CharModelImpl() : cell(register_module("cell", torch::nn::LSTMCell(4, 6))) {}

  void reset_state(int64_t batch) {
    h = torch::zeros({batch, 6});
    c = torch::zeros({batch, 6});
  }
  Tensor forward(const Tensor &x) {
    std::tie(h, c) = cell->forward(x, std::make_tuple(h, c)); // [[device-mixed-op]]
    return h;
  }
  torch::nn::LSTMCell cell;
  Tensor h, c;
};
TORCH_MODULE(CharModel);

void stateful_cell_reset_on_host_bad() {
  CharModel m;
  m->to(torch::kCUDA);
  m->reset_state(2);
  m->forward(torch::rand({2, 4}, torch::kCUDA));
}

struct CharModelOnDeviceImpl : torch::nn::Module {
  CharModelOnDeviceImpl() : cell(register_module("cell", torch::nn::LSTMCell(4, 6))) {}

  void reset_state(int64_t batch) {
    auto opts = cell->weight_ih.options().requires_grad(false);
    h = torch::zeros({batch, 6}, opts);
    c = torch::zeros({batch, 6}, opts);
  }
  Tensor forward(const Tensor &x) {
    std::tie(h, c) = cell->forward(x, std::make_tuple(h, c));
    return h;
  }
  torch::nn::LSTMCell cell;
  Tensor h, c;
};
TORCH_MODULE(CharModelOnDevice);

void stateful_cell_reset_on_weight_device_ok() {
  CharModelOnDevice m;
  m->to(torch::kCUDA);
  m->reset_state(2);
  m->forward(torch::rand({2, 4}, torch::kCUDA));
}

void packed_lengths_stay_on_host_ok() {
  torch::nn::GRU gru(torch::nn::GRUOptions(3, 4).batch_first(true));
  gru->to(torch::kCUDA);
  auto x = torch::rand({2, 5, 3}, torch::kCUDA);
  auto lengths = torch::tensor({5, 3}, torch::kLong);
  auto packed = torch::nn::utils::rnn::pack_padded_sequence(x, lengths, /*batch_first=*/true);
  auto out = gru->forward_with_packed_input(packed);
  auto padded = std::get<0>(torch::nn::utils::rnn::pad_packed_sequence(std::get<0>(out), true));
  TORCH_CHECK(padded.is_cuda());
}

DT_MAIN(lstm_zero_state_on_host_bad, lstm_zero_state_on_device_ok, lstm_without_state_ok,
        gru_state_carried_ok, gru_state_reset_on_host_bad, gru_state_reset_in_place_ok,
        stateful_cell_reset_on_host_bad, stateful_cell_reset_on_weight_device_ok,
        packed_lengths_stay_on_host_ok)

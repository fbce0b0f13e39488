// The fused LSTM and GRU cells exist only for CUDA, so there is no CPU kernel to run. Written with
// tensor operations on the device's tensors; workspaces hold what CUDA's hold.
#include "DeviceCheck.h"
#include "Kernels.h"
#include "RunningOps.h"

#include <ATen/ATen.h>

namespace vcuda {
namespace {

using OptionalTensor = c10::optional<at::Tensor>;

bool given(const OptionalTensor &tensor) { return tensor.has_value() && tensor->defined(); }

at::Tensor orZeros(const OptionalTensor &tensor, const at::Tensor &like) {
  return given(tensor) ? *tensor : at::zeros_like(like);
}

// The strict check of the generated wrappers.
class SameDevice {
public:
  explicit SameDevice(const char *op) : method_(op) {}

  SameDevice &operator()(const char *name, const OptionalTensor &tensor) {
    if (!given(tensor))
      return *this;
    info_.args.push_back({values_.size(), ArgKind::Tensor, false, false, false, name});
    values_.emplace_back(*tensor);
    return *this;
  }

  void check() {
    info_.rule = Rule::Strict;
    info_.method = "_" + method_;
    checkDevices(info_, values_.data());
  }

private:
  std::string method_;
  OpInfo info_{};
  std::vector<c10::IValue> values_;
};

std::tuple<at::Tensor, at::Tensor, at::Tensor> lstmCell(const at::Tensor &inputGates,
                                                        const at::Tensor &hiddenGates, const at::Tensor &cx,
                                                        const OptionalTensor &inputBias,
                                                        const OptionalTensor &hiddenBias) {
  noteOwnKernel();
  SameDevice("_thnn_fused_lstm_cell")("input_gates", inputGates)("hidden_gates", hiddenGates)("cx", cx)(
      "input_bias", inputBias)("hidden_bias", hiddenBias)
      .check();
  at::Tensor gates = inputGates + hiddenGates;
  if (given(inputBias))
    gates = gates + *inputBias + *hiddenBias;
  std::vector<at::Tensor> part = gates.chunk(4, 1);
  at::Tensor in = part[0].sigmoid(), forget = part[1].sigmoid(), cell = part[2].tanh(),
             out = part[3].sigmoid();
  at::Tensor cy = forget * cx + in * cell;
  at::Tensor hy = out * cy.tanh();
  return {hy, cy, at::cat({in, forget, cell, out}, 1)};
}

std::tuple<at::Tensor, at::Tensor, at::Tensor> lstmCellBackward(const OptionalTensor &gradHy,
                                                                const OptionalTensor &gradCy,
                                                                const at::Tensor &cx, const at::Tensor &cy,
                                                                const at::Tensor &workspace, bool hasBias) {
  if (!given(gradHy) && !given(gradCy))
    return {};
  noteOwnKernel();
  SameDevice("_thnn_fused_lstm_cell_backward_impl")("grad_hy", gradHy)("grad_cy", gradCy)("cx", cx)("cy", cy)(
      "workspace", workspace)
      .check();
  at::Tensor gradHidden = orZeros(gradHy, cx);
  std::vector<at::Tensor> part = workspace.chunk(4, 1);
  const at::Tensor &in = part[0], &forget = part[1], &cell = part[2], &out = part[3];
  at::Tensor tanhCy = cy.tanh();
  at::Tensor gradOut = gradHidden * tanhCy * out * (1 - out);
  at::Tensor gradCell = gradHidden * out * (1 - tanhCy * tanhCy) + orZeros(gradCy, cx);
  at::Tensor gradGates = at::cat({gradCell * cell * in * (1 - in), gradCell * cx * forget * (1 - forget),
                                  gradCell * in * (1 - cell * cell), gradOut},
                                 1);
  at::Tensor gradBias = hasBias ? gradGates.sum(0, /*keepdim=*/false) : at::Tensor();
  return {gradGates, gradCell * forget, gradBias};
}

std::tuple<at::Tensor, at::Tensor> gruCell(const at::Tensor &inputGates, const at::Tensor &hiddenGates,
                                           const at::Tensor &hx, const OptionalTensor &inputBias,
                                           const OptionalTensor &hiddenBias) {
  noteOwnKernel();
  SameDevice("_thnn_fused_gru_cell")("input_gates", inputGates)("hidden_gates", hiddenGates)("hx", hx)(
      "input_bias", inputBias)("hidden_bias", hiddenBias)
      .check();
  at::Tensor inputSide = given(inputBias) ? inputGates + *inputBias : inputGates;
  at::Tensor hiddenSide = given(hiddenBias) ? hiddenGates + *hiddenBias : hiddenGates;
  std::vector<at::Tensor> input = inputSide.chunk(3, 1), hidden = hiddenSide.chunk(3, 1);
  at::Tensor reset = (input[0] + hidden[0]).sigmoid();
  at::Tensor update = (input[1] + hidden[1]).sigmoid();
  at::Tensor fresh = (input[2] + reset * hidden[2]).tanh();
  at::Tensor hy = fresh + update * (hx - fresh);
  return {hy, at::cat({reset, update, fresh, hx, hidden[2]}, 1)};
}

std::tuple<at::Tensor, at::Tensor, at::Tensor, at::Tensor, at::Tensor>
gruCellBackward(const at::Tensor &gradHy, const at::Tensor &workspace, bool hasBias) {
  noteOwnKernel();
  SameDevice("_thnn_fused_gru_cell_backward")("grad_hy", gradHy)("workspace", workspace).check();
  std::vector<at::Tensor> part = workspace.chunk(5, 1);
  const at::Tensor &reset = part[0], &update = part[1], &fresh = part[2], &hx = part[3], &hidden = part[4];
  at::Tensor gradUpdate = gradHy * (hx - fresh) * update * (1 - update);
  at::Tensor gradFresh = gradHy * (1 - update) * (1 - fresh * fresh);
  at::Tensor gradReset = gradFresh * hidden * reset * (1 - reset);
  at::Tensor gradInput = at::cat({gradReset, gradUpdate, gradFresh}, 1);
  at::Tensor gradHidden = at::cat({gradReset, gradUpdate, gradFresh * reset}, 1);
  at::Tensor inputBias, hiddenBias;
  if (hasBias) {
    inputBias = gradInput.sum(0, /*keepdim=*/false);
    hiddenBias = gradHidden.sum(0, /*keepdim=*/false);
  }
  return {gradInput, gradHidden, gradHy * update, inputBias, hiddenBias};
}

} // namespace

void registerRecurrentKernels(torch::Library &library) {
  library.impl("_thnn_fused_lstm_cell", TORCH_FN(lstmCell));
  library.impl("_thnn_fused_lstm_cell_backward_impl", TORCH_FN(lstmCellBackward));
  library.impl("_thnn_fused_gru_cell", TORCH_FN(gruCell));
  library.impl("_thnn_fused_gru_cell_backward", TORCH_FN(gruCellBackward));
}

} // namespace vcuda

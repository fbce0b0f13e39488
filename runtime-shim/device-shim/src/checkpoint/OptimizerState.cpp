#include "checkpoint/OptimizerState.h"

#include "base/Compat.h"

#include <device_shim/Error.h>

#include <torch/optim/adagrad.h>
#include <torch/optim/adam.h>
#include <torch/optim/adamw.h>
#include <torch/optim/rmsprop.h>
#include <torch/optim/sgd.h>

#include <utility>
#include <vector>

namespace device_shim::detail {
namespace {

using namespace torch::optim;

void keep(ParameterState &state, const char *name, const at::Tensor &tensor) {
  if (tensor.defined())
    state.tensors[name] = tensor;
}

at::Tensor find(const ParameterState &state, const char *name) {
  const auto found = state.tensors.find(name);
  return found == state.tensors.end() ? at::Tensor() : found->second;
}

template <typename State> ParameterState takeAdam(const char *kind, const State &state) {
  ParameterState taken{kind, state.step(), {}};
  keep(taken, "exp_avg", state.exp_avg());
  keep(taken, "exp_avg_sq", state.exp_avg_sq());
  keep(taken, "max_exp_avg_sq", state.max_exp_avg_sq());
  return taken;
}

template <typename State> std::unique_ptr<OptimizerParamState> makeAdam(const ParameterState &from) {
  auto state = std::make_unique<State>();
  state->step(from.step);
  state->exp_avg(find(from, "exp_avg"));
  state->exp_avg_sq(find(from, "exp_avg_sq"));
  state->max_exp_avg_sq(find(from, "max_exp_avg_sq"));
  return state;
}

ParameterState take(const OptimizerParamState &state) {
  if (const auto *adam = dynamic_cast<const AdamParamState *>(&state))
    return takeAdam("adam", *adam);
  if (const auto *adamw = dynamic_cast<const AdamWParamState *>(&state))
    return takeAdam("adamw", *adamw);
  ParameterState taken;
  if (const auto *sgd = dynamic_cast<const SGDParamState *>(&state)) {
    taken.kind = "sgd";
    keep(taken, "momentum_buffer", sgd->momentum_buffer());
  } else if (const auto *rms = dynamic_cast<const RMSpropParamState *>(&state)) {
    taken = {"rmsprop", rms->step(), {}};
    keep(taken, "square_avg", rms->square_avg());
    keep(taken, "momentum_buffer", rms->momentum_buffer());
    keep(taken, "grad_avg", rms->grad_avg());
  } else if (const auto *ada = dynamic_cast<const AdagradParamState *>(&state)) {
    taken = {"adagrad", ada->step(), {}};
    keep(taken, "sum", ada->sum());
  } else {
    throw UsageError(
        "this optimizer's state cannot be saved from partitions; use SGD, Adam, AdamW, RMSprop or "
        "Adagrad, or save without the optimizer");
  }
  return taken;
}

std::unique_ptr<OptimizerParamState> make(const ParameterState &from) {
  if (from.kind == "adam")
    return makeAdam<AdamParamState>(from);
  if (from.kind == "adamw")
    return makeAdam<AdamWParamState>(from);
  if (from.kind == "sgd") {
    auto state = std::make_unique<SGDParamState>();
    state->momentum_buffer(find(from, "momentum_buffer"));
    return state;
  }
  if (from.kind == "rmsprop") {
    auto state = std::make_unique<RMSpropParamState>();
    state->step(from.step);
    state->square_avg(find(from, "square_avg"));
    state->momentum_buffer(find(from, "momentum_buffer"));
    state->grad_avg(find(from, "grad_avg"));
    return state;
  }
  if (from.kind != "adagrad")
    throw Error("the file has optimizer state of the unknown kind '" + from.kind + "'");
  auto state = std::make_unique<AdagradParamState>();
  state->step(from.step);
  state->sum(find(from, "sum"));
  return state;
}

// The kind of state that an optimizer keeps; "" for a class of the program's own, which may keep any.
std::string kindOf(const Optimizer &optimizer) {
  if (dynamic_cast<const Adam *>(&optimizer))
    return "adam";
  if (dynamic_cast<const AdamW *>(&optimizer))
    return "adamw";
  if (dynamic_cast<const SGD *>(&optimizer))
    return "sgd";
  if (dynamic_cast<const RMSprop *>(&optimizer))
    return "rmsprop";
  return dynamic_cast<const Adagrad *>(&optimizer) ? "adagrad" : "";
}

const OptimizerOptions &optionsOf(Optimizer &optimizer, const at::Tensor &parameter) {
  for (auto &group : optimizer.param_groups())
    for (const auto &own : group.params())
      if (own.is_same(parameter))
        return group.options();
  return optimizer.defaults();
}

// What step() takes for granted with these options, once a parameter has state.
std::vector<std::string> tensorsFor(const OptimizerOptions &options) {
  const auto *adam = dynamic_cast<const AdamOptions *>(&options);
  const auto *adamw = dynamic_cast<const AdamWOptions *>(&options);
  if ((adam && adam->amsgrad()) || (adamw && adamw->amsgrad()))
    return {"max_exp_avg_sq"};
  std::vector<std::string> names;
  if (const auto *rms = dynamic_cast<const RMSpropOptions *>(&options)) {
    if (rms->momentum() > 0)
      names.emplace_back("momentum_buffer");
    if (rms->centered())
      names.emplace_back("grad_avg");
  }
  return names;
}

} // namespace

std::optional<ParameterState> stateOf(Optimizer &optimizer, const at::Tensor &parameter) {
  auto &all = optimizer.state();
  const auto found = all.find(compat::stateKey<std::decay_t<decltype(all)>>(parameter));
  if (found == all.end())
    return std::nullopt;
  return take(*found->second);
}

std::unique_ptr<OptimizerParamState> makeState(Optimizer &optimizer, const at::Tensor &parameter,
                                               ParameterState state) {
  // Its step() would use any state as its own.
  const auto kind = kindOf(optimizer);
  if (!kind.empty() && kind != state.kind)
    throw UsageError("the file has the optimizer state of '" + state.kind + "', but this optimizer is '" +
                     kind + "'; make the optimizer that was saved, or load without one");
  for (const auto &name : tensorsFor(optionsOf(optimizer, parameter)))
    if (!state.tensors.count(name))
      state.tensors[name] = at::zeros_like(parameter.detach());
  return make(state);
}

void setState(Optimizer &optimizer, const at::Tensor &parameter, std::unique_ptr<OptimizerParamState> state) {
  auto &all = optimizer.state();
  const auto key = compat::stateKey<std::decay_t<decltype(all)>>(parameter);
  if (state)
    all[key] = std::move(state);
  else
    all.erase(key);
}

} // namespace device_shim::detail

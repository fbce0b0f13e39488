#include "checkpoint/CheckpointExtras.h"

#include <device_shim/Error.h>

#include <sstream>

namespace device_shim::detail {
namespace {

using torch::serialize::InputArchive;
using torch::serialize::OutputArchive;

const char *const kOwnArchive = "device_shim";

std::string groupKey(size_t index) { return "group" + std::to_string(index); }

std::vector<std::string> linesOf(const std::string &text) {
  std::vector<std::string> lines;
  std::istringstream stream(text);
  for (std::string line; std::getline(stream, line);)
    lines.push_back(line);
  return lines;
}

// Entry by entry: "parameter", its "kind" and "step", and the "names" of its tensors, a line each.
void writeStates(OutputArchive &archive, const std::map<std::string, ParameterState> &states) {
  size_t index = 0;
  for (const auto &[parameter, state] : states) {
    OutputArchive entry(archive.compilation_unit());
    entry.write("parameter", c10::IValue(parameter));
    entry.write("kind", c10::IValue(state.kind));
    entry.write("step", c10::IValue(state.step));
    std::string names;
    for (const auto &[name, tensor] : state.tensors) {
      entry.write(name, tensor);
      names += name + "\n";
    }
    entry.write("names", c10::IValue(names));
    archive.write("state" + std::to_string(index++), entry);
  }
}

std::map<std::string, ParameterState> readStates(InputArchive &archive) {
  std::map<std::string, ParameterState> states;
  InputArchive entry;
  c10::IValue value;
  for (size_t index = 0; archive.try_read("state" + std::to_string(index), entry); ++index) {
    entry.read("parameter", value);
    auto &state = states[value.toStringRef()];
    entry.read("kind", value);
    state.kind = value.toStringRef();
    entry.read("step", value);
    state.step = value.toInt();
    entry.read("names", value);
    for (const auto &name : linesOf(value.toStringRef()))
      entry.read(name, state.tensors[name]);
  }
  return states;
}

} // namespace

void writeExtras(OutputArchive &archive, const CheckpointExtras &extras) {
  OutputArchive own(archive.compilation_unit());
  writeStates(own, extras.states);
  std::vector<double> rates;
  for (const auto &group : extras.groups) {
    std::string names;
    for (const auto &parameter : group.parameters)
      names += parameter + "\n";
    own.write(groupKey(rates.size()), c10::IValue(names));
    rates.push_back(group.rate);
  }
  own.write("rates", c10::IValue(rates));
  if (extras.scaler) {
    own.write("scale", c10::IValue(extras.scaler->scale));
    own.write("good_steps", c10::IValue(extras.scaler->good_steps));
  }
  archive.write(kOwnArchive, own);
}

CheckpointExtras readExtras(InputArchive &archive, const std::string &path) {
  InputArchive own;
  if (!archive.try_read(kOwnArchive, own))
    throw Error("'" + path + "' holds a model without optimizer; it was not written by ShardedDataParallel");
  CheckpointExtras extras;
  c10::IValue value, steps;
  extras.states = readStates(own);
  own.read("rates", value);
  for (const double rate : value.toDoubleVector()) {
    extras.groups.push_back({rate, {}});
    own.read(groupKey(extras.groups.size() - 1), value);
    extras.groups.back().parameters = linesOf(value.toStringRef());
  }
  if (own.try_read("scale", value)) {
    own.read("good_steps", steps);
    extras.scaler = GradScaler::State{value.toDouble(), steps.toInt()};
  }
  return extras;
}

void requireSameGroups(const std::vector<CheckpointExtras::Group> &saved,
                       const std::vector<CheckpointExtras::Group> &own, const std::string &path) {
  const std::string wanted = "; give the optimizer the groups that it was saved with, in the same order";
  if (saved.size() != own.size())
    throw UsageError("'" + path + "' has the state of an optimizer with " + std::to_string(saved.size()) +
                     " parameter groups, but this one has " + std::to_string(own.size()) + wanted);
  std::map<std::string, size_t> places;
  for (size_t i = 0; i < saved.size(); ++i)
    for (const auto &parameter : saved[i].parameters)
      places[parameter] = i;
  for (size_t i = 0; i < own.size(); ++i)
    for (const auto &parameter : own[i].parameters)
      if (const auto place = places.find(parameter); place != places.end() && place->second != i)
        throw UsageError("'" + path + "' has " + parameter + " in group " + std::to_string(place->second) +
                         " of the optimizer, but here it is in group " + std::to_string(i) + wanted);
}

void setRates(torch::optim::Optimizer &optimizer, const std::vector<CheckpointExtras::Group> &groups) {
  for (size_t i = 0; i < groups.size(); ++i)
    optimizer.param_groups()[i].options().set_lr(groups[i].rate);
}

} // namespace device_shim::detail

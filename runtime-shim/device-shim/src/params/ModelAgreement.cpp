#include "params/ModelAgreement.h"

#include <device_shim/Error.h>

#include <ATen/ATen.h>

#include <sstream>

namespace device_shim::detail {
namespace {

std::string describe(const torch::nn::Module &module) {
  std::ostringstream text;
  for (const auto &entry : distinctParameters(module)) {
    text << "parameter " << entry.name << " " << entry.value.sizes() << " " << entry.value.scalar_type()
         << (entry.value.requires_grad() ? "" : ", frozen");
    for (const auto &alias : entry.aliases)
      text << ", also " << alias;
    text << "\n";
  }
  for (const auto &entry : module.named_buffers())
    text << "buffer " << entry.key() << " " << entry.value().sizes() << " " << entry.value().scalar_type()
         << "\n";
  return text.str();
}

std::string firstDifference(const std::string &own, const std::string &theirs) {
  std::istringstream left(own), right(theirs);
  std::string a, b;
  while (true) {
    const bool more = static_cast<bool>(std::getline(left, a)),
               others = static_cast<bool>(std::getline(right, b));
    if (!more && !others)
      return "";
    if (!more || !others || a != b)
      return "this rank has " + (more ? "'" + a + "'" : std::string("nothing")) + " where rank 0 has " +
             (others ? "'" + b + "'" : std::string("nothing"));
  }
}

} // namespace

void requireSameModel(const torch::nn::Module &module, const std::string &options, Communicator &ranks) {
  const auto own = describe(module) + options;
  const auto difference = firstDifference(own, ranks.broadcast_text(own));
  if (ranks.reduce_number(difference.empty() ? 1 : 0, Reduction::minimum) == 1)
    return;
  throw UsageError("rank " + std::to_string(ranks.rank()) +
                   ": the ranks built different models, or wrap them with different options: " +
                   (difference.empty() ? "another rank says where" : difference) +
                   "; build the same model with the same options on every rank");
}

void requireOnDevice(const torch::nn::Module &module, const Communicator &ranks, const char *wrapper) {
  const auto device = ranks.device();
  const std::string move = "; call module->to(ranks->device()) before " + std::string(wrapper);
  bool anyHere = false, any = false;
  for (const auto &entry : module.named_parameters()) {
    const auto place = entry.value().device();
    if (place.type() != device.type())
      throw DeviceError("rank " + std::to_string(ranks.rank()) + ": parameter " + entry.key() + " is on " +
                        place.str() + ", but this rank's device is " + device.str() + move);
    any = true;
    anyHere = anyHere || !place.has_index() || place.index() == device.index();
  }
  if (any && !anyHere && device.has_index())
    throw DeviceError("rank " + std::to_string(ranks.rank()) + ": the model is on " +
                      module.parameters().front().device().str() + ", which is not this rank's device " +
                      device.str() + move);
}

void requireStillFrozen(const std::vector<DistinctParameter> &frozen, const char *wrapper) {
  for (const auto &parameter : frozen)
    if (parameter.value.requires_grad())
      throw UsageError("parameter " + parameter.name + " was frozen when " + wrapper +
                       " was made and requires a gradient now, which the ranks would not average; make the "
                       "wrapper, and the optimizer, again after unfreezing parameters");
}

void broadcastModel(const torch::nn::Module &module, Communicator &ranks) {
  at::NoGradGuard noGrad;
  std::vector<at::Tensor> all;
  for (const auto &parameter : distinctParameters(module))
    all.push_back(parameter.value.detach());
  for (const auto &buffer : module.buffers())
    all.push_back(buffer.detach());
  ranks.broadcast(all);
}

} // namespace device_shim::detail

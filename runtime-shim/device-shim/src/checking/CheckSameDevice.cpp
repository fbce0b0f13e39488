#include <device_shim/CheckSameDevice.h>

#include <device_shim/Error.h>

#include <sstream>

namespace device_shim {
namespace {

std::string listed(const std::vector<NamedTensor> &tensors) {
  std::ostringstream text;
  const char *between = "";
  for (const auto &named : tensors) {
    if (!named.tensor.defined())
      continue;
    text << between << named.name << " on " << named.tensor.device() << " " << named.tensor.sizes();
    between = ", ";
  }
  return text.str();
}

} // namespace

void check_same_device(const std::string &where, const std::vector<NamedTensor> &tensors) {
  const NamedTensor *first = nullptr;
  for (const auto &named : tensors) {
    if (!named.tensor.defined())
      continue;
    if (!first)
      first = &named;
    else if (named.tensor.device() != first->tensor.device())
      throw DeviceError(where + ": the tensors are on different devices: " + listed(tensors) + "; move '" +
                        named.name + "' with .to(" + first->name + ".device()), or the other way round");
  }
}

void check_same_device(const std::vector<NamedTensor> &tensors) {
  check_same_device("check_same_device", tensors);
}

void check_on_device(const std::string &where, at::Device device, const std::vector<NamedTensor> &tensors) {
  // "cuda" without a number is any of them; a tensor always knows its number.
  const auto fits = [&](at::Device place) {
    return device.has_index() ? place == device : place.type() == device.type();
  };
  for (const auto &named : tensors)
    if (named.tensor.defined() && !fits(named.tensor.device()))
      throw DeviceError(where + ": " + device.str() + " is needed, but found " + listed(tensors) +
                        "; move '" + named.name + "' there");
}

} // namespace device_shim

// Devices to spread a model over that are chosen from outside, for machines with a single GPU: programs built
// with SYSTEMS_DEVICE_LIST take them from the variable SYSTEMS_DEVICES, such as "cuda:0,cpu".
#pragma once

#include <torch/torch.h>

#include <cstdlib>
#include <sstream>
#include <string>
#include <vector>

namespace systems {

inline std::vector<torch::Device> listedDevices() {
  const char *list = std::getenv("SYSTEMS_DEVICES");
  std::istringstream names(list ? list : "");
  std::vector<torch::Device> devices;
  for (std::string name; std::getline(names, name, ',');)
    devices.emplace_back(name);
  return devices;
}

// A list of one entry per layer or device keeps its length, and at least that of the list: its parts go to
// the listed devices in order. Without the variable nothing changes.
inline void useListedDevices(std::vector<torch::Device> &devices) {
  const auto listed = listedDevices();
  if (listed.empty())
    return;
  const size_t count = std::max(devices.size(), listed.size());
  devices.clear();
  for (size_t i = 0; i < count; ++i)
    devices.push_back(listed[i * listed.size() / count]);
}

} // namespace systems

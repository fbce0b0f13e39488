#include "doctor/VisibleDevices.h"

#include "base/Text.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <numeric>

namespace devicerun::doctor {
namespace {

bool startsWith(std::string_view text, std::string_view start) {
  return text.substr(0, start.size()) == start;
}

/// An entry's GPU; -1 when it exists but its index is not known.
struct Found {
  int gpu = -1;
  std::string why; ///< not empty: no such device
};

/// A list that is written to hide all GPUs.
bool hidesAll(std::string_view list) {
  const std::string_view text = trimmed(list);
  return text.empty() || text == "-1" || text == "NoDevFiles";
}

Found findByNumber(const std::string &entry, const Machine &machine) {
  if (entry.empty())
    return {-1, "is an empty entry"};
  char *end = nullptr;
  const long number = std::strtol(entry.c_str(), &end, 10);
  if (end == entry.c_str())
    return {-1, "is neither a number nor a UUID"};
  if (number < 0)
    return {-1, "is a negative number"};
  if (machine.driver.present && number >= static_cast<long>(machine.driver.gpus.size()))
    return {-1, machine.driver.gpus.empty()
                    ? std::string("does not exist: the driver has no GPU")
                    : fmt::format("does not exist: the GPUs of this machine are 0 to {}",
                                  machine.driver.gpus.size() - 1)};
  return {static_cast<int>(number), ""};
}

Found findByUuid(const std::string &entry, const Machine &machine) {
  if (!machine.driver.present)
    return {};
  Found found{-1, "is the UUID of no GPU of this machine"};
  for (const Gpu &gpu : machine.driver.gpus) {
    if (!startsWith(gpu.uuid, entry))
      continue;
    if (found.why.empty())
      return {-1, "is the beginning of several UUIDs"};
    found = {gpu.index, ""};
  }
  return found;
}

Found find(const std::string &entry, const Machine &machine) {
  // Instances of a partitioned GPU are not looked up.
  if (startsWith(entry, "MIG-"))
    return {};
  return startsWith(entry, "GPU-") ? findByUuid(entry, machine) : findByNumber(entry, machine);
}

} // namespace

VisibleDevices readVisibleDevices(const Machine &machine) {
  VisibleDevices visible;
  if (machine.virtualGpus) {
    visible.count = machine.virtualGpus;
    return visible;
  }
  auto set = machine.environment.find("CUDA_VISIBLE_DEVICES");
  visible.limited = set != machine.environment.end();
  if (!visible.limited) {
    if (machine.driver.present && machine.driver.failure.empty()) {
      visible.gpus.resize(machine.driver.gpus.size());
      std::iota(visible.gpus.begin(), visible.gpus.end(), 0);
    }
    visible.count = static_cast<int>(visible.gpus.size());
    return visible;
  }
  visible.hidden = hidesAll(set->second);
  std::vector<std::string> entries = visible.hidden ? std::vector<std::string>() : split(set->second, ',');
  // A comma at the end loses nothing.
  if (entries.size() > 1 && trimmed(entries.back()).empty())
    entries.pop_back();
  for (const std::string &raw : entries) {
    std::string entry(trimmed(raw));
    Found found = find(entry, machine);
    if (!found.why.empty()) {
      visible.wrong = entry;
      visible.why = found.why;
      visible.ignoredAfter = &raw != &entries.back();
      break;
    }
    bool again = found.gpu >= 0 ? std::count(visible.gpus.begin(), visible.gpus.end(), found.gpu) > 0
                                : std::count(visible.entries.begin(), visible.entries.end(), entry) > 0;
    if (again && visible.repeated.empty())
      visible.repeated = entry;
    visible.gpus.push_back(found.gpu);
    visible.entries.push_back(entry);
  }
  if (!visible.repeated.empty())
    visible.gpus.clear();
  visible.count = static_cast<int>(visible.gpus.size());
  return visible;
}

} // namespace devicerun::doctor

#include "Settings.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <iostream>
#include <set>
#include <sstream>
#include <string>

namespace vcuda {
namespace {

[[noreturn]] void badSetting(const char *name, const char *value, const char *expected) {
  std::cerr << "virtual-cuda: " << name << "='" << value << "' is not " << expected << "\n";
  std::_Exit(2);
}

// The value of a variable, or nullptr when it is unset or empty.
const char *valueOf(const char *name) {
  const char *text = std::getenv(name);
  return text && *text ? text : nullptr;
}

bool isOn(const char *name) {
  const char *text = valueOf(name);
  std::string value = text ? text : "0";
  if (value != "0" && value != "1")
    badSetting(name, text, "0 or 1");
  return value == "1";
}

int readDeviceCount() {
  const char *text = valueOf("VIRTUAL_GPUS");
  if (!text)
    return 2;
  char *end = nullptr;
  long count = std::strtol(text, &end, 10);
  if (*end || count < 0 || count > kMaxDevices)
    badSetting("VIRTUAL_GPUS", text, "a number from 0 to 64");
  return static_cast<int>(count);
}

// CUDA shows the devices of the list up to the first entry that names none, and no device at all when one is
// there twice. Virtual devices have no UUIDs, so each UUID stands for one of them.
int visibleDevices(const std::string &list, int there) {
  std::set<std::string> seen;
  std::istringstream entries(list);
  for (std::string entry; std::getline(entries, entry, ',');) {
    char *end = nullptr;
    long index = std::strtol(entry.c_str(), &end, 10);
    bool number = end != entry.c_str() && *end == '\0' && index >= 0 && index < there;
    bool uuid = entry.rfind("GPU-", 0) == 0 || entry.rfind("MIG-", 0) == 0;
    if (!number && !uuid)
      break;
    if (!seen.insert(number ? std::to_string(index) : entry).second)
      return 0;
  }
  return std::min(there, static_cast<int>(seen.size()));
}

// 0 when it is not a unit.
double scaleOf(std::string unit) {
  if (!unit.empty() && (unit.back() == 'B' || unit.back() == 'b'))
    unit.pop_back();
  if (!unit.empty() && unit.back() == 'i')
    unit.pop_back();
  if (unit.empty())
    return 1;
  if (unit == "K" || unit == "k")
    return 1024.0;
  if (unit == "M" || unit == "m")
    return 1024.0 * 1024;
  return unit == "G" || unit == "g" ? 1024.0 * 1024 * 1024 : 0;
}

size_t readMemoryLimit() {
  const char *text = valueOf("VIRTUAL_GPU_MEMORY");
  if (!text)
    return 0;
  char *end = nullptr;
  double amount = std::strtod(text, &end);
  double bytes = amount * scaleOf(end);
  if (end == text || !std::isfinite(bytes) || !(bytes >= 1) || bytes > 1e18)
    badSetting("VIRTUAL_GPU_MEMORY", text, "a size such as 512M or 24G");
  return static_cast<size_t>(bytes);
}

} // namespace

int deviceCount() {
  static const int count = [] {
    const int there = readDeviceCount();
    const char *list = std::getenv("CUDA_VISIBLE_DEVICES");
    return list ? visibleDevices(list, there) : there;
  }();
  return count;
}

size_t memoryLimit() {
  static const size_t limit = readMemoryLimit();
  return limit;
}

bool isolated() {
  static const bool on = isOn("VIRTUAL_GPU_ISOLATE");
  return on;
}

bool reportsAtExit() {
  static const bool on = isOn("VIRTUAL_GPU_REPORT");
  return on;
}

const char *errorDirectory() {
  static const char *const path = valueOf("VIRTUAL_GPU_ERRORS");
  return path;
}

const char *traceDirectory() {
  static const char *const path = valueOf("VIRTUAL_GPU_TRACE");
  return path;
}

const char *reachedDirectory() {
  static const char *const path = valueOf("VIRTUAL_GPU_REACHED");
  return path;
}

} // namespace vcuda

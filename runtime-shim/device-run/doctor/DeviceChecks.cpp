#include "doctor/Checks.h"

#include "base/Text.h"

#include <fmt/format.h>

#include <set>

namespace devicerun::doctor {
namespace {

constexpr const char *kTopic = "visible devices";

const Gpu *gpuOf(const Machine &machine, int index) {
  for (const Gpu &gpu : machine.driver.gpus)
    if (gpu.index == index)
      return &gpu;
  return nullptr;
}

std::string listOf(const Machine &machine) {
  return "CUDA_VISIBLE_DEVICES=" + machine.environment.at("CUDA_VISIBLE_DEVICES");
}

/// "cuda:0 is GPU 2, cuda:1 is GPU 3".
std::string numbering(const VisibleDevices &visible) {
  std::string text;
  for (std::size_t i = 0; i < visible.gpus.size(); ++i)
    text += fmt::format("{}cuda:{} is {}", i ? ", " : "", i,
                        visible.gpus[i] < 0 ? visible.entries[i] : fmt::format("GPU {}", visible.gpus[i]));
  return text;
}

void checkList(const Machine &machine, const VisibleDevices &visible, Diagnosis &diagnosis) {
  if (!visible.limited)
    return;
  if (!visible.repeated.empty()) {
    diagnosis.problem(
        kTopic, "visible-repeated",
        fmt::format("{} has '{}' twice: CUDA then shows no GPU at all", listOf(machine), visible.repeated),
        "name each GPU once; several ranks share a GPU by getting the same list, not by a "
        "longer one");
    return;
  }
  if (visible.wrong) {
    std::string lost = visible.gpus.empty() ? "CUDA shows no GPU at all"
                                            : fmt::format("CUDA shows the {} before it", visible.gpus.size());
    diagnosis.problem(kTopic, "visible-wrong",
                      fmt::format("{}: '{}' {}, and {}{}", listOf(machine), *visible.wrong, visible.why, lost,
                                  visible.ignoredAfter ? ", nothing after it" : ""),
                      "list GPUs as nvidia-smi -L numbers or names them, with commas between");
    return;
  }
  if (visible.hidden) {
    diagnosis.warn(kTopic, "visible-empty",
                   fmt::format("{} hides all GPUs: programs see none", listOf(machine)),
                   "unset it, unless the GPUs are hidden on purpose");
    return;
  }
  bool renumbers = false;
  for (std::size_t i = 0; i < visible.gpus.size(); ++i)
    renumbers = renumbers || visible.gpus[i] != static_cast<int>(i);
  diagnosis.ok(kTopic, renumbers ? "visible-renumbered" : "visible",
               fmt::format("{}: {}", listOf(machine), numbering(visible)));
  for (const std::string &entry : visible.entries)
    if (entry.rfind("MIG-", 0) == 0 && visible.entries.size() > 1) {
      diagnosis.warn(kTopic, "visible-mig", "several MIG instances are listed; a process uses the first only",
                     "give each rank a list of one instance");
      break;
    }
}

void checkOrder(const Machine &machine, const VisibleDevices &visible, Diagnosis &diagnosis) {
  std::set<std::string> names;
  for (const Gpu &gpu : machine.driver.gpus)
    names.insert(gpu.name);
  if (names.size() > 1 && visible.count.value_or(0) > 0 &&
      machine.variable("CUDA_DEVICE_ORDER").value_or("") != "PCI_BUS_ID")
    diagnosis.warn(kTopic, "device-order",
                   "GPUs of several kinds: CUDA numbers the fastest first, nvidia-smi by the bus",
                   "set CUDA_DEVICE_ORDER=PCI_BUS_ID so that both mean the same");
}

void checkGpus(const Machine &machine, const VisibleDevices &visible, Diagnosis &diagnosis) {
  constexpr const char *topic = "gpu";
  std::set<std::uint64_t> sizes;
  for (std::size_t i = 0; i < visible.gpus.size(); ++i) {
    const Gpu *gpu = gpuOf(machine, visible.gpus[i]);
    if (!gpu)
      continue;
    sizes.insert(gpu->memory >> 30);
    std::string what = fmt::format("cuda:{} is GPU {}, {}, {}, {} used", i, gpu->index, gpu->name,
                                   formatBytes(gpu->memory), formatBytes(gpu->used));
    constexpr std::uint64_t gibibyte = 1 << 30;
    if (gpu->prohibited)
      diagnosis.problem(topic, "gpu-prohibited", what + "; its compute mode forbids every program",
                        fmt::format("nvidia-smi -i {} -c DEFAULT (as root)", gpu->index));
    else if (gpu->used > gibibyte && gpu->used > gpu->memory / 10)
      diagnosis.warn(topic, "gpu-in-use", what + ": other programs use part of its memory",
                     "nvidia-smi lists them; choose free GPUs with CUDA_VISIBLE_DEVICES");
    else
      diagnosis.ok(topic, "gpu", what);
    if (gpu->mig && (!visible.limited || visible.entries[i].rfind("MIG-", 0) != 0))
      diagnosis.warn(
          topic, "gpu-mig",
          fmt::format("GPU {} is partitioned (MIG): programs see its first instance only", gpu->index),
          "name instances in CUDA_VISIBLE_DEVICES, as nvidia-smi -L lists them");
  }
  if (sizes.size() > 1)
    diagnosis.warn(topic, "gpu-memory-differs", "the GPUs have different amounts of memory",
                   "with data-parallel and sharded training the smallest one decides the batch size");
}

void checkRanksHaveDevices(const Machine &machine, const VisibleDevices &visible, Diagnosis &diagnosis) {
  // Without a driver the ranks train on the CPU, even if a launcher assigns GPUs.
  if (!visible.count || *visible.count == 0 || (!machine.driver.present && !machine.virtualGpus))
    return;
  const int count = *visible.count;
  const std::optional<int> rank = machine.number("LOCAL_RANK"), ranks = machine.number("LOCAL_WORLD_SIZE");
  const std::string seen = count == 1 ? "1 GPU is visible" : fmt::format("{} GPUs are visible", count);
  const bool onePerRank = count == 1 && visible.limited && ranks.value_or(2) > 1;
  if (rank && *rank >= count) {
    diagnosis.problem(kTopic, "local-rank-without-gpu",
                      fmt::format("LOCAL_RANK is {}, but {}: cuda:{} does not exist", *rank, seen, *rank),
                      onePerRank ? "when every rank gets a GPU of its own by CUDA_VISIBLE_DEVICES, that is "
                                   "cuda:0 for each: show all ranks all GPUs, or let the program use cuda:0"
                                 : "start at most as many ranks on this machine as it has GPUs, or make more "
                                   "visible");
    return;
  }
  if (ranks && *ranks > count && !onePerRank)
    diagnosis.problem(kTopic, "more-ranks-than-gpus",
                      fmt::format("{} ranks run on this machine, but {}", *ranks, seen),
                      "start at most as many ranks on this machine as it has GPUs, or make more visible");
  else if (rank)
    diagnosis.ok(kTopic, "local-rank", fmt::format("local rank {} has cuda:{}; {}", *rank, *rank, seen));
}

} // namespace

void checkDevices(const Machine &machine, const VisibleDevices &visible, Diagnosis &diagnosis) {
  checkList(machine, visible, diagnosis);
  checkOrder(machine, visible, diagnosis);
  checkGpus(machine, visible, diagnosis);
  if (machine.driver.present && machine.driver.failure.empty() && machine.driver.gpus.empty())
    diagnosis.problem("gpu", "no-gpu", "the NVIDIA driver is there, but it lists no GPU",
                      "look at the kernel's messages (dmesg | grep -i nvrm); in a container, give it the "
                      "devices");
  checkRanksHaveDevices(machine, visible, diagnosis);
}

} // namespace devicerun::doctor

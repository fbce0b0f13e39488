#include "doctor/Machine.h"

#include "base/Text.h"

#include <memory>

#include <net/if.h>
#include <sys/statvfs.h>

namespace devicerun::doctor {

std::optional<std::string> Machine::variable(const std::string &name) const {
  auto found = environment.find(name);
  if (found == environment.end() || found->second.empty())
    return std::nullopt;
  return found->second;
}

std::optional<int> Machine::number(const std::string &name) const {
  std::optional<std::string> text = variable(name);
  std::optional<std::int64_t> value = text ? parseInteger(*text) : std::nullopt;
  if (!value || *value < INT32_MIN || *value > INT32_MAX)
    return std::nullopt;
  return static_cast<int>(*value);
}

int Machine::worldSize() const { return number("WORLD_SIZE").value_or(1); }

const Package *Machine::package(const std::string &name) const {
  for (const Package &package : packages)
    if (package.name == name)
      return &package;
  return nullptr;
}

namespace {

// Asked of the kernel: containers and chroots may have no /sys.
std::vector<std::string> networkInterfaces() {
  std::vector<std::string> names;
  const std::unique_ptr<struct if_nameindex, decltype(&if_freenameindex)> all(if_nameindex(),
                                                                              if_freenameindex);
  for (const struct if_nameindex *each = all.get(); each && each->if_index != 0; ++each)
    names.emplace_back(each->if_name);
  return names;
}

} // namespace

Machine inspect(const std::string &program, const std::vector<std::string> &sitePackages) {
  Machine machine;
  machine.environment = currentEnvironment();
  // Under `device-run --virtual-gpus N -- device-run doctor` the library of virtual GPUs is in this process.
  if (machine.variable("LD_PRELOAD").value_or("").find("libvirtual_cuda") != std::string::npos &&
      machine.variable("VIRTUAL_GPU_RECORDS_ONLY").value_or("0") != "1")
    machine.virtualGpus = machine.number("VIRTUAL_GPUS").value_or(2);
  machine.driver = askDriver();
  std::vector<std::string> folders = sitePackages;
  for (std::string &folder : sitePackagesFolders(machine.environment))
    folders.push_back(std::move(folder));
  machine.packages = findPackages(folders);
  machine.torches = findLibTorch(machine.environment, program, folders);
  machine.nccl = findNccl();
  machine.virtualGpuBuilds = findVirtualGpuBuilds(machine.environment);
  machine.interfaces = networkInterfaces();
  struct statvfs shared{};
  if (statvfs("/dev/shm", &shared) == 0)
    machine.sharedMemory = static_cast<std::uint64_t>(shared.f_blocks) * shared.f_frsize;
  return machine;
}

} // namespace devicerun::doctor

// Devices and generators: torch._C._cuda_getDevice() and its kin.
#include "Module.h"
#include "TorchCompat.h"

#include "Blocks.h"
#include "Generator.h"

#include <ATen/Context.h>
#include <c10/core/impl/VirtualGuardImpl.h>
#include <torch/csrc/Generator.h>
#include <torch/csrc/utils/python_arg_parser.h>

#include <pthread.h>

namespace vcuda::python {
namespace {

namespace py = pybind11;

// cudaDeviceProp of a card of the Ampere generation, which all of PyTorch's kernels are for.
struct Properties {
  std::string name = "Virtual GPU";
  int major = 8;
  int minor = 0;
  int multiProcessors = 108;
  size_t memory = totalMemory();
  std::string uuid;
};

c10::impl::VirtualGuardImpl guard() { return c10::impl::VirtualGuardImpl(c10::kCUDA); }

int deviceCount() { return guard().deviceCount(); }

c10::Device device(int64_t index) { return {c10::kCUDA, static_cast<c10::DeviceIndex>(index)}; }

int exchangeDevice(int64_t index) {
  if (index < 0)
    return -1;
  return guard().exchangeDevice(device(index)).index();
}

void setDevice(int64_t index) {
  if (index >= 0)
    guard().setDevice(device(index));
}

// A child of fork() cannot use the CUDA of its parent.
bool inBadFork = false;

void watchForks() {
  static const int watched = pthread_atfork(nullptr, nullptr, [] {
    inBadFork = true;
    askForInitialization();
  });
  TORCH_CHECK(watched == 0, "no memory left to watch fork()");
}

Properties propertiesOf(int64_t index) {
  TORCH_CHECK(index >= 0 && index < deviceCount(), "Invalid device id");
  Properties result;
  result.uuid =
      "00000000-0000-0000-0000-0000000000" + std::string(index < 10 ? "0" : "") + std::to_string(index);
  return result;
}

std::string textOf(const Properties &each) {
  return c10::str("_CudaDeviceProperties(name='", each.name, "', major=", each.major, ", minor=", each.minor,
                  ", total_memory=", each.memory >> 20, "MB, multi_processor_count=", each.multiProcessors,
                  ", uuid=", each.uuid, ", L2_cache_size=40MB)");
}

// What a CUDA build does with the first use of a device.
void initialize() {
  TORCH_CHECK(!inBadFork,
              "Cannot re-initialize CUDA in forked subprocess. To use CUDA with multiprocessing, you "
              "must use the 'spawn' start method");
  TORCH_CHECK(deviceCount() > 0, "No CUDA GPUs are available");
  watchForks();
  py::module_ cuda = py::module_::import("torch.cuda");
  py::tuple generators(static_cast<size_t>(deviceCount()));
  for (int i = 0; i < deviceCount(); ++i)
    generators[static_cast<size_t>(i)] = py::reinterpret_steal<py::object>(
        THPGenerator_initDefaultGenerator(at::globalContext().defaultGenerator(device(i))));
  cuda.attr("default_generators") = generators;
  cuda.attr("has_half") = true;
  cuda.attr("_get_device_properties") = py::cpp_function(&propertiesOf);
}

void addProperties(py::module_ &module) {
  py::class_<Properties> type(module, "_CudaDeviceProperties", py::module_local());
  type.def_readonly("name", &Properties::name)
      .def_readonly("major", &Properties::major)
      .def_readonly("minor", &Properties::minor)
      .def_readonly("multi_processor_count", &Properties::multiProcessors)
      .def_readonly("total_memory", &Properties::memory)
      .def_readonly("uuid", &Properties::uuid)
      .def("__repr__", &textOf);
  const std::pair<const char *, int64_t> numbers[] = {{"is_multi_gpu_board", 0},
                                                      {"is_integrated", 0},
                                                      {"max_threads_per_multi_processor", 2048},
                                                      {"max_threads_per_block", 1024},
                                                      {"warp_size", 32},
                                                      {"regs_per_multiprocessor", 65536},
                                                      {"L2_cache_size", int64_t(40) << 20},
                                                      {"clock_rate", 1410000},
                                                      {"memory_clock_rate", 1215000},
                                                      {"memory_bus_width", 5120},
                                                      {"shared_memory_per_block", 49152},
                                                      {"shared_memory_per_block_optin", 166912},
                                                      {"shared_memory_per_multiprocessor", 167936},
                                                      {"pci_bus_id", 0},
                                                      {"pci_device_id", 0},
                                                      {"pci_domain_id", 0}};
  for (const auto &[name, value] : numbers)
    type.def_property_readonly(name, [value = value](const Properties &) { return value; });
  type.def_property_readonly("gcnArchName", [](const Properties &each) { return each.name; });
}

#if TORCH_VERSION_MAJOR == 1
newfunc newGeneratorOfCpu = nullptr;

// torch.Generator(device="cuda"), which a CPU build refuses.
PyObject *newGenerator(PyTypeObject *type, PyObject *arguments, PyObject *names) {
  HANDLE_TH_ERRORS
  static torch::PythonArgParser parser({"Generator(Device device=None)"});
  torch::ParsedArgs<1> parsed;
  const c10::Device device = parser.parse(arguments, names, parsed).deviceWithDefault(0, c10::kCPU);
  if (!device.is_cuda())
    return newGeneratorOfCpu(type, arguments, names);
  py::module_::import("torch.cuda").attr("_lazy_init")();
  return THPGenerator_NewWithVar(type, createGenerator(device.index()));
  END_HANDLE_TH_ERRORS
}

void enableGenerators() {
  auto *type = reinterpret_cast<PyTypeObject *>(THPGeneratorClass);
  newGeneratorOfCpu = std::exchange(type->tp_new, &newGenerator);
  PyType_Modified(type);
}
#endif

} // namespace

void addDevices(py::module_ &module) {
  addProperties(module);
#if TORCH_VERSION_MAJOR == 1
  enableGenerators();
#endif
  module.def("_cuda_init", &initialize);
  module.def("_cuda_isInBadFork", [] { return inBadFork; });
  module.def("_cuda_getDeviceCount", &deviceCount);
  module.def("_cuda_getDevice", [] { return static_cast<int>(guard().getDevice().index()); });
  module.def("_cuda_setDevice", &setDevice);
  module.def("_cuda_exchangeDevice", &exchangeDevice);
  module.def("_cuda_maybeExchangeDevice", &exchangeDevice);
  module.def("_cuda_hasPrimaryContext", [](int64_t index) { return index >= 0 && index < deviceCount(); });
  module.def("_cuda_canDeviceAccessPeer", [](int64_t index, int64_t peer) {
    TORCH_CHECK(index >= 0 && index < deviceCount(), "Invalid device id");
    TORCH_CHECK(peer >= 0 && peer < deviceCount(), "Invalid peer device id");
    return index != peer;
  });
}

} // namespace vcuda::python

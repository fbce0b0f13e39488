#include "Module.h"

PYBIND11_MODULE(native, module) {
  using namespace vcuda::python;
  addDevices(module);
  addStreams(module);
  addFrames(module);
  addMemory(module);
  addSharing(module);
  addTensorTypes(module);
  // Its base class is there when torch.distributed is.
  module.def("add_process_group", [module]() mutable { addProcessGroup(module); });
}

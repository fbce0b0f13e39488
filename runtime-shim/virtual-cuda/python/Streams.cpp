// Streams and events.
#include "Module.h"
#include "TorchCompat.h"

#include <c10/core/impl/VirtualGuardImpl.h>

#if TORCH_VERSION_MAJOR > 1
#include <torch/csrc/Event.h>
#endif

namespace vcuda::python {
namespace {

namespace py = pybind11;

c10::impl::VirtualGuardImpl guard() { return c10::impl::VirtualGuardImpl(c10::kCUDA); }

c10::Device device(int64_t index) { return {c10::kCUDA, static_cast<c10::DeviceIndex>(index)}; }

void makeCurrent(c10::Stream stream) {
  guard().setDevice(stream.device());
  guard().exchangeStream(stream);
}

#if TORCH_VERSION_MAJOR == 1
void addOfRelease(py::module_ &module) {
  module.def("_cuda_setStream", [](uint64_t data) { makeCurrent(c10::Stream::unpack(data)); });
  module.def("new_stream", [] { return guard().getStreamFromGlobalPool(guard().getDevice(), false).pack(); });
  module.def("stream_of",
             [](int64_t id) { return c10::Stream(c10::Stream::UNSAFE, guard().getDevice(), id).pack(); });
  module.def("id_of_stream", [](uint64_t data) { return c10::Stream::unpack(data).id(); });
}
#else
// torch.Event's own accepts no subclass as the other event.
double elapsedTime(const py::object &first, const py::object &second) {
  TORCH_CHECK_TYPE(THPEvent_Check(first.ptr()) && THPEvent_Check(second.ptr()),
                   "expected a torch.cuda.Event");
  auto eventOf = [](const py::object &each) -> c10::Event & {
    return reinterpret_cast<THPEvent *>(each.ptr())->event;
  };
  return eventOf(first).elapsedTime(eventOf(second));
}

void addOfRelease(py::module_ &module) {
  module.def("elapsed_time", &elapsedTime);
  module.def(
      "_cuda_setStream",
      [](int64_t id, int64_t index, int64_t type) {
        makeCurrent(c10::Stream::unpack3(id, static_cast<c10::DeviceIndex>(index),
                                         static_cast<c10::DeviceType>(type)));
      },
      py::arg("stream_id"), py::arg("device_index"), py::arg("device_type"));
}
#endif

} // namespace

void addStreams(py::module_ &module) {
  addOfRelease(module);
  module.def("_cuda_getCurrentStream",
             [](int64_t index) { return dataOf(guard().getStream(device(index))); });
  module.def("_cuda_getCurrentRawStream",
             [](int64_t index) { return static_cast<int64_t>(guard().getStream(device(index)).id()); });
  module.def("_cuda_getDefaultStream",
             [](int64_t index) { return dataOf(guard().getDefaultStream(device(index))); });
}

} // namespace vcuda::python

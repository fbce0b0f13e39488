// torch.cuda.FloatTensor and its kin. A CPU build has these types and refuses them by a switch that was
// compiled in; the switch asks the type whether it is one of CUDA's.
#include "Module.h"

#include <ATen/Context.h>
#include <torch/csrc/Dtype.h>
#include <torch/csrc/utils/tensor_new.h>

#include <cstring>

namespace vcuda::python {
namespace {

namespace py = pybind11;

// The beginning of torch/csrc/tensor/python_tensor.cpp's PyTensorType, the same in 1.13 and 2.x.
struct TensorType {
  PyTypeObject type;
  void *dtype;
  void *layout;
  bool isCuda;
};

PyObject *construct(PyTypeObject *type, PyObject *arguments, PyObject *names) {
  HANDLE_TH_ERRORS
  const py::handle self(reinterpret_cast<PyObject *>(type));
  py::module_::import("torch.cuda").attr("_lazy_init")();
  const at::ScalarType scalar = reinterpret_cast<THPDtype *>(self.attr("dtype").ptr())->scalar_type;
  return THPVariable_Wrap(torch::utils::legacy_tensor_ctor(c10::DispatchKey::CUDA, scalar, arguments, names));
  END_HANDLE_TH_ERRORS
}

// torch.set_default_tensor_type(torch.cuda.FloatTensor): for the moment of the call the type is none of
// CUDA's.
void setDefault(const py::object &setter, const py::object &given) {
  py::object type = given;
  if (py::isinstance<py::str>(given)) {
    const auto name = given.cast<std::string>();
    const size_t dot = name.rfind('.');
    if (name.rfind("torch.cuda.", 0) == 0)
      type = py::module_::import(name.substr(0, dot).c_str()).attr(name.substr(dot + 1).c_str());
  }
  const bool isType = PyType_Check(type.ptr()) && py::hasattr(type, "is_cuda");
  if (!isType || !type.attr("is_cuda").cast<bool>()) {
    setter(type);
    return;
  }
  py::module_::import("torch.cuda").attr("_lazy_init")();
  bool &isCuda = reinterpret_cast<TensorType *>(type.ptr())->isCuda;
  isCuda = false;
  try {
    setter(type);
  } catch (...) {
    isCuda = true;
    throw;
  }
  isCuda = true;
}

void enable(const py::handle &type) {
  auto *object = reinterpret_cast<PyTypeObject *>(type.ptr());
  object->tp_new = &construct;
  PyType_Modified(object);
}

} // namespace

void addTensorTypes(py::module_ &module) {
  module.def("enable_tensor_type", &enable);
  module.def("set_default_tensor_type", &setDefault);
}

} // namespace vcuda::python

// The same over Python's C interface. These functions need the transformers package; they are analysed, not run.
#include <Python.h>

#include <unistd.h>

void init_distributed() {
  PyRun_SimpleString("import torch.distributed as dist\ndist.init_process_group('nccl')");
}

PyObject *load_with_dict_bad(PyObject *cls, PyObject *args) {
  PyObject *kwargs = PyDict_New();
  PyDict_SetItemString(kwargs, "device_map", PyUnicode_FromString("auto"));
  PyObject *loader = PyObject_GetAttrString(cls, "from_pretrained");
  return PyObject_Call(loader, args, kwargs); // [[device-map-distributed]]
}

PyObject *load_without_map_ok(PyObject *cls, PyObject *args) {
  PyObject *kwargs = PyDict_New();
  PyDict_SetItemString(kwargs, "torch_dtype", PyUnicode_FromString("auto"));
  PyObject *loader = PyObject_GetAttrString(cls, "from_pretrained");
  return PyObject_Call(loader, args, kwargs);
}

PyObject *load_with_built_value_bad(PyObject *loader, PyObject *args) {
  PyObject *kwargs = Py_BuildValue("{s:s}", "device_map", "balanced");
  return PyObject_Call(loader, args, kwargs); // [[device-map-distributed]]
}

PyObject *load_with_number_ok(PyObject *loader, PyObject *args) {
  PyObject *kwargs = Py_BuildValue("{s:i}", "device_map", 0);
  return PyObject_Call(loader, args, kwargs);
}

int main(int argc, char **argv) {
  Py_Initialize();
  init_distributed();
  PyObject *cls = Py_None, *args = PyTuple_New(0);
  load_with_dict_bad(cls, args);
  load_without_map_ok(cls, args);
  load_with_built_value_bad(cls, args);
  load_with_number_ok(cls, args);
  return argc > 1 && argv ? 1 : 0;
}

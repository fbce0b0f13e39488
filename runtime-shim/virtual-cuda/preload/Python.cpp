#include "Python.h"

#include "OwnFolder.h"

#include <dlfcn.h>

#include <cstring>
#include <string>

namespace vcuda {
namespace {

// The few functions of Python's stable interface that are needed; this library is not linked with Python.
struct PyObject;
using AuditHook = int (*)(const char *, PyObject *, void *);

template <typename Function> Function pythons(const char *name) {
  return reinterpret_cast<Function>(dlsym(RTLD_DEFAULT, name));
}

constexpr int kFileInput = 257; // Py_file_input

// Loads the package that lies in `folder` and makes it ready for `import torch`.
std::string startingCode(const std::string &folder) {
  return "import importlib.util, os, sys\n"
         "folder = r'''" +
         folder +
         "'''\n"
         "if not os.path.isdir(folder):\n"
         "    raise ImportError(f'virtual GPUs for Python are not in {folder}; build them for your PyTorch: "
         "'\n"
         "                      'cmake -S runtime-shim -B BUILD -DTORCH_ROOT=FOLDER_OF_THE_PACKAGE_TORCH')\n"
         "spec = importlib.util.spec_from_file_location('_virtual_cuda', folder + '/__init__.py',\n"
         "                                              submodule_search_locations=[folder])\n"
         "module = importlib.util.module_from_spec(spec)\n"
         "sys.modules['_virtual_cuda'] = module\n"
         "spec.loader.exec_module(module)\n"
         "module.watch_torch()\n";
}

int loadPythonHalf() {
  auto newDict = pythons<PyObject *(*)()>("PyDict_New");
  auto run = pythons<PyObject *(*)(const char *, int, PyObject *, PyObject *)>("PyRun_String");
  auto release = pythons<void (*)(PyObject *)>("Py_DecRef");
  PyObject *names = newDict();
  if (!names)
    return -1;
  PyObject *result = run(startingCode(ownFolder() + "virtual_cuda_python").c_str(), kFileInput, names, names);
  release(names);
  if (!result)
    return -1; // the exception becomes that of `import torch`
  release(result);
  return 0;
}

// arguments: (name, file, sys.path, sys.meta_path, sys.path_hooks)
bool importsTorch(PyObject *arguments) {
  auto item = pythons<PyObject *(*)(PyObject *, long)>("PyTuple_GetItem");
  auto compare = pythons<int (*)(PyObject *, const char *)>("PyUnicode_CompareWithASCIIString");
  PyObject *name = item(arguments, 0);
  return name && compare(name, "torch") == 0;
}

int onAuditEvent(const char *event, PyObject *arguments, void *) {
  static bool done = false; // under Python's lock
  if (done || std::strcmp(event, "import") != 0 || !importsTorch(arguments))
    return 0;
  done = true;
  return loadPythonHalf();
}

} // namespace

void watchPythonImports() {
  // Python keeps hooks that are added before it is initialized.
  if (auto add = pythons<int (*)(AuditHook, void *)>("PySys_AddAuditHook"))
    add(&onAuditEvent, nullptr);
}

} // namespace vcuda

#include "Module.h"

PYBIND11_MODULE(records, module) { vcuda::python::addFrames(module); }

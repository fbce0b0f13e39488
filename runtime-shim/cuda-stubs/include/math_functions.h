// Stand-in for a header of CUDA.
#pragma once

#ifdef __CUDA__
#include "device_functions.h"
#endif

// Stand-in for a header of CUDA that is for kernels.
#pragma once

#include "../cooperative_groups.h"

// Stand-in for a header of CUDA.
#pragma once

#include "texture_types.h"

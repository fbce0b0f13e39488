// Stand-in for a header of CUB.
#pragma once

#include "../cub.cuh"

// Stand-in for a header of cuFFT.
#pragma once

#include "cufft.h"

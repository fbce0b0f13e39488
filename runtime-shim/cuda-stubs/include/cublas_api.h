// Stand-in for a header of cuBLAS.
#pragma once

#include "cublas_v2.h"

// Stand-in for NVTX's nvToolsExt.h of before version 3.
#pragma once

#include "nvtx3/nvToolsExt.h"

// Stand-in for a header of PyTorch before 1.11.
#pragma once

#include <torch/csrc/distributed/c10d/ProcessGroupNCCL.hpp>

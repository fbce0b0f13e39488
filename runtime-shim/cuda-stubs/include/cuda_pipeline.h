// Stand-in for a header of CUDA.
#pragma once

#include "cuda/pipeline"
#include "cuda_pipeline_primitives.h"

#include "batch.h"
static_assert(BATCH_SIZE == 4, "a definition of the target that holds for C++ only");
at::Tensor batch(at::Tensor x) { return x; }

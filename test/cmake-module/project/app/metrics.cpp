#include "metrics.h"
at::Tensor metric(at::Tensor x) { return x; }
at::Tensor same(at::Tensor y) { return y; }

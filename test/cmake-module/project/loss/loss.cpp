#include "loss.h"
#include "batch.h"
#ifndef LOSS_IS_DEFINED
#error the definitions of the target are missing
#endif
at::Tensor loss(at::Tensor x, at::Tensor y) { return batch(x + y.to(x.device())); }

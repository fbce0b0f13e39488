#include "loss/loss.h"
#ifndef LOSS_IS_DEFINED
#error the definitions of the target are missing
#endif

at::Tensor loss(at::Tensor scores, at::Tensor labels) { return scores + labels; }

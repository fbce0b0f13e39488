#pragma once
#include <torch/torch.h>
int plugin();

//===- Precompiled.h - the precompiled header -------------------*- C++ -*-===//
//
// What nearly every source of device_shim includes, compiled once.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "base/Compat.h"

#include <torch/torch.h>

#include <algorithm>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

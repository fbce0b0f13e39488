//===- device_shim.h - all of device_shim -----------------------*- C++ -*-===//
//
// Includes all public headers.
//
//===----------------------------------------------------------------------===//
#pragma once

#include <device_shim/CheckSameDevice.h>
#include <device_shim/CheckedMode.h>
#include <device_shim/ClipGradNorm.h>
#include <device_shim/Communicator.h>
#include <device_shim/DispatchModel.h>
#include <device_shim/Distributed.h>
#include <device_shim/DistributedDataParallel.h>
#include <device_shim/Error.h>
#include <device_shim/GradScaler.h>
#include <device_shim/LaunchEnvironment.h>
#include <device_shim/Lora.h>
#include <device_shim/ShardedDataParallel.h>
#include <device_shim/Stage.h>
#include <device_shim/StageChain.h>

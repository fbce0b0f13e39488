//===- TensorMemory.h - pointers into the memory of tensors -----*- C++ -*-===//
#pragma once

#include "analyzer/solve/domain/HiddenFields.h"
#include "analyzer/solve/domain/Value.h"

namespace devicetidy {

/// Is it what data_ptr(), an accessor and their like return: a pointer that knows its tensor (HostAccess.h)?
inline bool isTensorMemory(const Value &value) {
  return value && is(value, ValueKind::Record) && value->type == hidden::memoryType;
}

} // namespace devicetidy

//===- Registers.h - reading and writing a row's registers ------*- C++ -*-===//
#pragma once

#include "analyzer/facts/Fact.h"
#include "analyzer/solve/domain/Row.h"

namespace devicetidy {

inline Value registerOf(const Row &row, Reg reg) {
  const auto index = static_cast<std::size_t>(reg);
  if (reg == NoReg || index >= row.registers.size() || !row.registers[index])
    return unknownValue();
  return row.registers[index];
}

/// Registers die at the end of a full expression, but the terminator may still read its condition: they are
/// cleared when the next expression writes one.
inline void setRegister(Row &row, Reg reg, Value value) {
  if (row.expressionEnded) {
    row.registers.clear();
    row.expressionEnded = false;
  }
  if (reg == NoReg)
    return;
  const auto index = static_cast<std::size_t>(reg);
  if (index >= row.registers.size())
    row.registers.resize(index + 1);
  row.registers[index] = std::move(value);
}

} // namespace devicetidy

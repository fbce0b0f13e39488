//===- Spelling.h - how source code writes LibTorch -------------*- C++ -*-===//
//
// Fixes read the text of a source file and write new text. The names of LibTorch that they look for and the
// expressions that they write come from here, over the table data/spelling.csv.
//
//===----------------------------------------------------------------------===//
#pragma once

#include <string>
#include <string_view>

namespace devicetidy::models::spelling {

/// "torch" and "at": a namespace that factories and constants are taken from.
bool isNamespace(std::string_view word);
/// The device that a constant stands for: "cuda" for "kCUDA"; empty for any other word.
std::string_view deviceConstant(std::string_view word);
/// Is it the class of devices, "Device"?
bool isDeviceClass(std::string_view word);
/// Is it a constant for an element type, like "kFloat"?
bool isDtypeConstant(std::string_view word);

/// A function that makes a tensor.
struct Factory {
  std::size_t arguments = 0; ///< before its options
  /// Without options, the element type is the default one. Where it is not (torch::arange counts in
  /// integers), the options of a float tensor would change it.
  bool hasDefaultType = false;
};
/// Null when `word` is not a factory.
const Factory *factory(std::string_view word);

/// Does the method copy a tensor to a device: "to", "cuda", "cpu"?
bool isMove(std::string_view method);
/// The device in the name of such a method, which takes no arguments then; else empty.
std::string_view deviceOfMove(std::string_view method);
/// Is the result of the method on the device of the tensor?
bool keepsDevice(std::string_view method);
/// Does the method give what a container or holder keeps?
bool givesElement(std::string_view method);
/// Does the function hand what it is given to an operation: `forward`, `make_tuple`?
bool passesOn(std::string_view function);
/// Does the method set an option of an operation: `weight` of a loss?
bool isOption(std::string_view method);
/// Does the method add to a list?
bool appends(std::string_view method);
/// Does the method say whether gradients are wanted?
bool setsGradient(std::string_view method);
/// Is a member of this name, in most modules, a registered parameter?
bool isParameterName(std::string_view member);
/// Does the function register something with a module?
bool isRegistration(std::string_view function);
/// The function that registers a "submodule", "parameter" or "buffer".
std::string_view registration(std::string_view what);

/// `torch::Device(torch::kCUDA, 1)` for "cuda:1"; empty for a device that only the running program knows.
std::string device(std::string_view device);
/// `x.device()` and `x.options()`; `access` is "." or "->".
std::string deviceOf(std::string_view tensor, std::string_view access);
std::string optionsOf(std::string_view tensor, std::string_view access);
/// `net->parameters().front()`
std::string firstParameter(std::string_view module);
/// Is `type`, as facts spell it, a tensor?
bool isTensorType(std::string_view type);

/// `torch::TensorOptions(torch::kLong).device(x.device())`
std::string optionsWith(std::string_view dtype, std::string_view device);
/// `x.to(device)`
std::string move(std::string_view tensor, std::string_view device);
/// `model->to(device)`: `object` ends with "." or "->", or is empty. `method` with `arguments` is how one
/// tensor is moved; empty when a module has no such method.
std::string moduleMove(std::string_view object, std::string_view method, std::string_view arguments);

} // namespace devicetidy::models::spelling

#include "test/bench/solve/Shapes.h"

namespace devicetidy::bench {
namespace {

std::string text(int number) { return std::to_string(number); }
std::string at(int line) { return " @" + text(line) + ":1-2"; }

// x = x + y;  `x` and `y` are the locals of these numbers.
std::string addition(int x, int y, int line) {
  return "    %0 = local " + text(x) + "\n    %1 = local " + text(y) +
         "\n    %2 = call at::operator+ (%0& at::Tensor text=x, %1& at::Tensor text=y) : at::Tensor" +
         at(line) +
         "\n    call \"at::Tensor::operator=\" (%0& at::Tensor, %2 at::Tensor) : at::Tensor object address\n"
         "    endstatement\n";
}

// x = torch::zeros(..., device);
std::string creation(int x, const char *device, int line) {
  return "    %0 = local " + text(x) + "\n    %1 = tensor " + device + at(line) +
         "\n    store (%0&, %1)\n    endstatement\n";
}

std::string block(int id, const std::string &attributes = "") {
  return "  block " + text(id) + " " + attributes + "\n";
}

// One function of `size` statements.
std::string statements(int size) {
  std::string facts = "function f main\n  local 0 x at::Tensor\n  local 1 y at::Tensor\n" + block(0) +
                      creation(0, "cuda:1", 1) + creation(1, "cuda:1", 2);
  for (int i = 0; i < size; ++i)
    facts += addition(0, 1, 3 + i);
  return facts + "    return\n";
}

// `size` ifs in a row, each of which moves a tensor on one way.
std::string branches(int size) {
  std::string facts = "function f main\n  local 0 x at::Tensor\n  local 1 y at::Tensor\n" + block(0) +
                      creation(0, "cuda:1", 1) + creation(1, "cuda:1", 2) + "    jump b1\n";
  for (int i = 0; i < size; ++i) {
    const int test = 1 + 2 * i;
    facts += block(test) + "    %0 = opaque : bool\n    branch (%0 bool) b" + text(test + 1) + ", b" +
             text(test + 2) + "\n" + block(test + 1) + creation(1, i % 2 ? "cpu" : "cuda:1", 3 + 2 * i) +
             addition(0, 0, 4 + 2 * i) + "    jump b" + text(test + 2) + "\n";
  }
  return facts + block(1 + 2 * size) + "    return\n";
}

// main calls `size` functions of ten statements.
std::string functions(int size) {
  std::string facts = "function f main\n  local 0 x at::Tensor\n" + block(0) + creation(0, "cuda:1", 1);
  for (int i = 0; i < size; ++i)
    facts += "    %0 = local 0\n    %1 = load (%0&)\n    %2 = call g" + text(i) +
             " (%1 at::Tensor) : at::Tensor target=g" + text(i) + at(2 + i) + "\n    endstatement\n";
  facts += "    return\n";
  for (int i = 0; i < size; ++i) {
    facts += "function g" + text(i) + " params=1 result=at::Tensor @/t.cpp:" + text(100000 + 20 * i) +
             ":1-2\n  local 0 x at::Tensor\n" + block(0);
    for (int j = 0; j < 10; ++j)
      facts += addition(0, 0, 100000 + 20 * i + j);
    facts += "    %0 = local 0\n    return (%0& at::Tensor)\n";
  }
  return facts;
}

// A chain of `size` functions, each of which calls the next one twice with the same tensor and once with
// another: without summaries the calls would double on every level.
std::string callDepth(int size) {
  std::string facts;
  for (int i = 0; i < size; ++i) {
    const std::string next = "call g" + text(i + 1) + " (%1 at::Tensor) : at::Tensor target=g" + text(i + 1);
    facts += "function g" + text(i) + (i ? " params=1" : " main") +
             " result=at::Tensor\n  local 0 x at::Tensor\n" + block(0) + (i ? "" : creation(0, "cuda:1", 1)) +
             addition(0, 0, 10 * i + 2) + "    %0 = local 0\n    %1 = load (%0&)\n    %2 = " + next +
             at(10 * i + 3) + "\n    %3 = " + next + at(10 * i + 4) +
             "\n    %1 = tensor cuda:2\n    %4 = " + next + at(10 * i + 5) + "\n    return (%2 at::Tensor)\n";
  }
  return facts + "function g" + text(size) + " params=1 result=at::Tensor\n  local 0 x at::Tensor\n" +
         block(0) + addition(0, 0, 10 * size) + "    %0 = local 0\n    return (%0& at::Tensor)\n";
}

// Loops nested `size` deep around one statement. Blocks 0 .. size - 1 set a counter, the next are the heads'
// inner ends from the innermost out.
std::string nestedLoops(int size) {
  std::string facts = "function f main\n  local 0 x at::Tensor\n";
  for (int i = 0; i < size; ++i)
    facts += "  local " + text(i + 1) + " i" + text(i) + " int\n";
  facts += block(0) + creation(0, "cuda:1", 1) + "    jump b1\n";
  for (int i = 0; i < size; ++i) // the heads
    facts += block(1 + i, "loop varies=(" + text(i + 1) + ")") + "    %0 = local 0\n" +
             (i + 1 < size
                  ? "    %1 = local " + text(i + 2) + "\n    %2 = literal int 0 : int\n    store (%1&, %2)\n"
                  : addition(0, 0, 5)) +
             "    jump b" + text(2 + i) + "\n";
  for (int i = size - 1; i >= 0; --i) { // the tests, innermost first
    const int id = size + (size - i);
    facts += block(id) + "    %0 = local " + text(i + 1) +
             "\n    %1 = load (%0&) : int\n    %2 = literal int 1 : int\n    %3 = operator + (%1 int, %2 "
             "int) : int\n"
             "    store (%0&, %3)\n    %4 = opaque : bool\n    branch (%4 bool) b" +
             text(1 + i) + ", b" + text(id + 1) + "\n";
  }
  return facts + block(2 * size + 1) + "    return\n";
}

// A list that is filled slot by slot and read slot by slot.
std::string listSlots(int size) {
  std::string facts = "function f main\n  local 0 x at::Tensor\n  local 1 v std::vector<at::Tensor>\n" +
                      block(0) + "    declare 1\n" + creation(0, "cuda:1", 1);
  for (int i = 0; i < size; ++i)
    facts += "    %0 = local 1\n    %1 = local 0\n    call std::vector::push_back (%0& "
             "std::vector<at::Tensor>, %1& "
             "at::Tensor) : void object\n    endstatement\n";
  for (int i = 0; i < size; ++i)
    facts += "    %0 = local 1\n    %1 = literal int " + text(i) +
             " : int\n    %2 = call \"std::vector::operator[]\" (%0& std::vector<at::Tensor>, %1 int) : "
             "at::Tensor "
             "object address\n    %3 = local 0\n    %4 = call at::mm (%2& at::Tensor, %3& at::Tensor) : "
             "at::Tensor" +
             at(2 + i) + "\n    endstatement\n";
  return facts + "    return\n";
}

// `size` ifs in a row, each of which moves a tensor of its own: what is where differs in more and more
// places.
std::string movedTensors(int size) {
  std::string facts = "function f main\n";
  for (int i = 0; i < size; ++i)
    facts += "  local " + text(i) + " x" + text(i) + " at::Tensor\n";
  facts += block(0) + "    jump b1\n";
  for (int i = 0; i < size; ++i) {
    const int test = 1 + 2 * i;
    facts += block(test) + creation(i, "cpu", 1 + 2 * i) + "    %0 = opaque : bool\n    branch (%0 bool) b" +
             text(test + 1) + ", b" + text(test + 2) + "\n" + block(test + 1) +
             creation(i, "cuda:1", 2 + 2 * i) + "    jump b" + text(test + 2) + "\n";
  }
  return facts + block(1 + 2 * size) + "    return\n";
}

// `size` loops in a row, each with a counter of its own.
std::string loopsInARow(int size) {
  std::string facts = "function f main\n  local 0 x at::Tensor\n";
  for (int i = 0; i < size; ++i)
    facts += "  local " + text(i + 1) + " i" + text(i) + " int\n";
  facts += block(0) + creation(0, "cuda:1", 1) + "    jump b1\n";
  for (int i = 0; i < size; ++i)
    facts += block(1 + i, "loop varies=(" + text(i + 1) + ")") + "    %0 = local " + text(i + 1) +
             "\n    %1 = load (%0&) : int\n    %2 = literal int 1 : int\n    %3 = operator + (%1 int, %2 "
             "int) : int\n"
             "    store (%0&, %3)\n    %4 = opaque : bool\n    branch (%4 bool) b" +
             text(1 + i) + ", b" + text(2 + i) + "\n";
  return facts + block(size + 1) + "    return\n";
}

// `size` globals are set, with a call after each.
std::string globals(int size) {
  std::string facts;
  for (int i = 0; i < size; ++i)
    facts += "global g" + text(i) + " type=at::Tensor\n";
  facts += "function f main\n" + block(0);
  for (int i = 0; i < size; ++i)
    facts += "    %0 = global g" + text(i) + " : at::Tensor\n    %1 = tensor cuda:1" + at(1 + i) +
             "\n    store (%0&, %1)\n    endstatement\n    call g target=g" + at(1 + i) +
             "\n    endstatement\n";
  return facts + "    return\nfunction g\n" + block(0) + "    %0 = tensor cpu\n    return\n";
}

} // namespace

const std::vector<Shape> &shapes() {
  static const std::vector<Shape> all = {
      {"statements", statements, {500, 1000, 2000, 4000, 8000}},
      {"branches", branches, {125, 250, 500, 1000, 2000}},
      {"functions", functions, {125, 250, 500, 1000, 2000}},
      {"call depth", callDepth, {3, 6, 11, 22}}, // bounds::callDepth is 24
      {"nested loops", nestedLoops, {2, 4, 8, 16}},
      {"list slots", listSlots, {125, 250, 500, 1000, 2000}},
      {"moved tensors", movedTensors, {25, 50, 100, 200}},
      {"loops in a row", loopsInARow, {25, 50, 100, 200}},
      {"globals", globals, {35, 70, 140, 280}}, // below bounds::contextsPerFunction
  };
  return all;
}

} // namespace devicetidy::bench

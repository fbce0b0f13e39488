#include "test/bench/solve/ScaleProgram.h"

#include "analyzer/facts/Text.h"
#include "test/unit/solve/FactsHarness.h"

#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>

namespace devicetidy::bench {
namespace {

constexpr int helpers = 13, unitsPerGroup = 45;
constexpr std::string_view harnessFile = "/t.cpp";

std::string text(int number) { return std::to_string(number); }

/// Writes functions of one unit statement by statement, a line each.
class UnitWriter {
public:
  UnitWriter(int number, int count) : number(number), count(count) {}

  std::string facts() {
    types();
    constructor();
    forward();
    factory();
    for (int layer = 0; layer < helpers; ++layer)
      helper(layer);
    training();
    if (number % unitsPerGroup == 0)
      group();
    if (number == 0)
      mainFunction();
    return std::move(out);
  }

private:
  std::string net() const { return "Net" + text(number); }
  /// Another unit, the same in every run.
  int otherUnit(int salt) const { return static_cast<int>((number * 31LL + salt * 977LL + 7) % count); }
  std::string place() { return " @" + text(++line) + ":3-40"; }
  void add(const std::string &facts) { out += facts; }
  void statement(const std::string &facts) { out += facts + "    endstatement\n"; }

  void function(const std::string &id, const std::string &attributes, const std::string &locals) {
    line += 2;
    add("function " + id + " name=" + id + " " + attributes + " @" + std::string(harnessFile) + ":" +
        text(line) + ":1-20\n" + locals);
  }
  void block(int id, const std::string &attributes = "") {
    add("  block " + text(id) + " " + attributes + "\n");
  }

  void types() {
    add("type " + net() + " record project polymorphic bases=(torch::nn::Module) constructors=(" + net() +
        ".Net) methods=(" + net() + ".forward)\n");
    for (const char *layer : {"first", "second", "last"})
      add("  field " + std::string(layer) + " torch::nn::Linear @" + text(++line) + ":3-9\n");
    add("  field scale at::Tensor @" + text(++line) + ":3-9\n");
    add("type \"" + net() + " *\" pointer pointee=" + net() + "\n");
    add("type std::shared_ptr<" + net() + "> record args=(" + net() + ")\n");
  }

  void constructor() {
    function(net() + ".Net", "class=" + net() + " constructor", "  local 0 \"\" torch::nn::Linear\n");
    block(0);
    for (const char *layer : {"first", "second", "last"})
      statement(
          "    %0 = this\n    declare 0\n    %1 = local 0\n    %2 = literal int 64 : int\n"
          "    construct torch::nn::Linear::Linear (%1& torch::nn::Linear, %2 int, %2 int) : "
          "torch::nn::Linear" +
          place() + "\n    %3 = literal string " + layer +
          " : std::string\n    %4 = load (%1&)\n    %5 = call torch::nn::Module::register_module (%0& " +
          net() + ", %3 std::string, %4 torch::nn::Linear) : torch::nn::Linear object" + place() +
          "\n    %6 = field " + layer + " (%0& " + net() + ")\n    store (%6&, %5)\n    endscope 0\n");
    statement("    %0 = this\n    %1 = literal string scale : std::string\n    %2 = call torch::ones : "
              "at::Tensor" +
              place() + "\n    %3 = call torch::nn::Module::register_buffer (%0& " + net() +
              ", %1 std::string, %2 at::Tensor) : at::Tensor object address" + place() +
              "\n    %4 = field scale (%0& " + net() +
              ")\n    call \"at::Tensor::operator=\" (%4& at::Tensor, %3& at::Tensor) : at::Tensor object "
              "address\n");
    add("    return\n");
  }

  /// x = first->forward(x), with a loop over the second layer and the scale.
  void forward() {
    function(net() + ".forward", "class=" + net() + " params=1 required=1 result=at::Tensor",
             "  local 0 x at::Tensor\n  local 1 round int\n");
    block(0);
    layer("first");
    statement("    declare 1\n    %0 = local 1\n    %1 = literal int 0 : int\n    store (%0&, %1)\n");
    add("    jump b1\n");
    block(1, "loop varies=(1)");
    layer("second");
    statement(
        "    %0 = local 0\n    %1 = this\n    %2 = field scale (%1& " + net() +
        ")\n    %3 = call at::operator* (%0& at::Tensor text=x, %2& at::Tensor text=scale) : at::Tensor" +
        place() + "\n    store (%0&, %3)\n");
    increment(1, 1, 2);
    block(2);
    add("    endscope 1\n");
    layer("last");
    for (int i = 0; i < 8; ++i)
      arithmetic(0, 0, i);
    add("    %0 = local 0\n    return (%0& at::Tensor)\n");
  }

  void layer(const std::string &name) {
    statement("    %0 = this\n    %1 = field " + name + " (%0& " + net() +
              ")\n    %2 = call torch::nn::ModuleHolder::operator-> (%1& torch::nn::Linear) : "
              "\"torch::nn::LinearImpl *\" object\n    %3 = local 0\n    %4 = load (%3&)\n    %5 = call "
              "torch::nn::LinearImpl::forward (%2& torch::nn::LinearImpl, %4 at::Tensor text=x) : at::Tensor "
              "object" +
              place() + "\n    store (%3&, %5)\n");
  }

  /// ++counter; if (more) goto body; else goto after.
  void increment(int counter, int body, int after) {
    statement(
        "    %0 = local " + text(counter) +
        "\n    %1 = load (%0&) : int\n    %2 = literal int 1 : int\n    %3 = operator + (%1 int, %2 int) : "
        "int" +
        place() + "\n    store (%0&, %3)\n");
    add("    %0 = local " + text(counter) +
        "\n    %1 = load (%0&) : int\n    %2 = literal int 9 : int\n    %3 = operator < (%1 int, %2 int) : "
        "bool\n"
        "    branch (%3 bool) b" +
        text(body) + ", b" + text(after) + "\n");
  }

  /// Tensor makeBatch(Device)
  void factory() {
    function("makeBatch" + text(number), "params=1 required=1 result=at::Tensor",
             "  local 0 device c10::Device\n  local 1 x at::Tensor\n");
    block(0);
    statement(
        "    declare 1\n    %0 = local 1\n    %1 = local 0\n    %2 = load (%1&)\n    %3 = call torch::randn "
        "(%2 c10::Device text=device) : at::Tensor" +
        place() + "\n    store (%0&, %3)\n");
    for (int i = 0; i < 9; ++i)
      arithmetic(1, 1, i);
    add("    %0 = local 1\n    return (%0& at::Tensor)\n");
  }

  void arithmetic(int x, int y, int salt) {
    static const char *const operators[] = {"at::operator+", "at::operator*", "at::mm"};
    statement("    %0 = local " + text(x) + "\n    %1 = local " + text(y) + "\n    %2 = call " +
              operators[salt % 3] + " (%0& at::Tensor text=x, %1& at::Tensor text=y) : at::Tensor" + place() +
              "\n    call \"at::Tensor::operator=\" (%0& at::Tensor, %2 at::Tensor) : at::Tensor object "
              "address\n");
  }

  /// x = helper of the next layer in another unit (x, y)
  void callHelper(int layer, int salt) {
    const std::string callee = "mix" + text(otherUnit(salt)) + "_" + text(layer);
    statement("    %0 = local 0\n    %1 = load (%0&)\n    %2 = local 1\n    %3 = load (%2&)\n    %4 = call " +
              callee + " (%1 at::Tensor text=x, %3 at::Tensor text=y) : at::Tensor target=" + callee +
              place() + "\n    store (%0&, %4)\n");
  }

  /// Tensor mix(Tensor x, Tensor y): a branch, a loop, a call into another unit.
  void helper(int layer) {
    const int statements = 10 + 5 * ((number + layer) % 11);
    function("mix" + text(number) + "_" + text(layer), "params=2 required=2 result=at::Tensor",
             "  local 0 x at::Tensor\n  local 1 y at::Tensor\n  local 2 i int\n");
    block(0);
    for (int i = 0; i < statements / 2; ++i)
      arithmetic(0, 1, i + layer);
    add("    %0 = opaque : bool\n    branch (%0 bool) b1, b2\n");
    block(1);
    for (int i = 0; i < statements / 4; ++i)
      arithmetic(i % 2, 1, i);
    add("    jump b2\n");
    block(2);
    statement("    declare 2\n    %0 = local 2\n    %1 = literal int 0 : int\n    store (%0&, %1)\n");
    add("    jump b3\n");
    block(3, "loop varies=(2)");
    for (int i = 0; i < statements / 4; ++i)
      arithmetic(0, 1, i);
    if (layer + 1 < helpers)
      callHelper(layer + 1, layer);
    increment(2, 3, 4);
    block(4);
    add("    endscope 2\n    %0 = local 0\n    return (%0& at::Tensor)\n");
  }

  /// void train(Device): makes the network, moves it, and runs it on batches of other units.
  void training() {
    const std::string pointer = "std::shared_ptr<" + net() + ">", id = "train" + text(number);
    function(id, "params=1 required=1 result=void",
             "  local 0 device c10::Device\n  local 1 net " + pointer +
                 "\n  local 2 round int\n  local 3 x at::Tensor\n  local 4 y at::Tensor\n");
    block(0);
    statement("    declare 1\n    %0 = local 1\n    %1 = call std::make_shared : " + pointer +
              " templates=(" + net() + ")" + place() + "\n    store (%0&, %1)\n");
    statement("    %0 = local 1\n    %1 = load (%0&)\n    %2 = call std::shared_ptr::operator-> (%1 " +
              pointer + ") : \"" + net() +
              " *\" object\n    %3 = local 0\n    %4 = load (%3&)\n    call "
              "torch::nn::Module::to (%2& " +
              net() + ", %4 c10::Device text=device) : void object" + place() + "\n");
    statement("    declare 2\n    %0 = local 2\n    %1 = literal int 0 : int\n    store (%0&, %1)\n");
    add("    jump b1\n");
    block(1, "loop varies=(2)");
    batch(3, otherUnit(41), true);
    statement("    %0 = local 1\n    %1 = load (%0&)\n    %2 = call std::shared_ptr::operator-> (%1 " +
              pointer + ") : \"" + net() +
              " *\" object\n    %3 = local 3\n    %4 = load (%3&)\n    %5 = call " + net() +
              "::forward (%2& " + net() + ", %4 at::Tensor text=x) : at::Tensor object target=" + net() +
              ".forward" + place() + "\n    store (%3&, %5)\n");
    batch(4, otherUnit(43), number % 10 != 0);
    const std::string mix = "mix" + text(otherUnit(47)) + "_0";
    statement("    %0 = local 3\n    %1 = load (%0&)\n    %2 = call " + mix +
              " (%1 at::Tensor text=x, %1 at::Tensor text=x) : at::Tensor target=" + mix + place() +
              "\n    store (%0&, %2)\n");
    arithmetic(3, 4, 0);
    increment(2, 1, 2);
    block(2);
    add("    endscope 4\n    endscope 3\n    endscope 2\n    endscope 1\n    return\n");
  }

  /// local = makeBatch(device), by the factory of `unit`; or on the CPU.
  void batch(int local, int unit, bool isMoved) {
    const std::string callee = "makeBatch" + text(unit);
    statement("    declare " + text(local) + "\n    %0 = local " + text(local) +
              (isMoved ? "\n    %1 = local 0\n    %2 = load (%1&)"
                       : "\n    %2 = literal enum 0 : c10::DeviceType") +
              "\n    %3 = call " + callee + " (%2 c10::Device) : at::Tensor target=" + callee + place() +
              "\n    store (%0&, %3)\n");
  }

  /// void group(Device): trains the networks of some units.
  void group() {
    function("group" + text(number / unitsPerGroup), "params=1 required=1 result=void",
             "  local 0 device c10::Device\n");
    block(0);
    for (int unit = number; unit < count && unit < number + unitsPerGroup; ++unit)
      callWithDevice("train" + text(unit));
    add("    return\n");
  }

  void callWithDevice(const std::string &callee) {
    statement("    %0 = local 0\n    %1 = load (%0&)\n    call " + callee +
              " (%1 c10::Device text=device) : void target=" + callee + place() + "\n");
  }

  void mainFunction() {
    function("main", "main result=int", "  local 0 device c10::Device\n");
    block(0);
    statement(
        "    declare 0\n    %0 = local 0\n    %1 = literal enum 0 : c10::DeviceType\n    store (%0&, %1)\n");
    add("    %0 = call torch::cuda::is_available : bool" + place() + "\n    branch (%0 bool) b1, b2\n");
    block(1);
    statement("    %0 = local 0\n    %1 = literal enum 1 : c10::DeviceType\n    store (%0&, %1)\n");
    add("    jump b2\n");
    block(2);
    for (int i = 0; i * unitsPerGroup < count; ++i)
      callWithDevice("group" + text(i));
    add("    return\n");
  }

  const int number, count;
  int line = 0;
  std::string out;
};

} // namespace

Unit scaleUnit(int number, int count) {
  std::string facts = test::expand(UnitWriter(number, count).facts());
  const std::string file = "/src/unit" + text(number) + ".cpp";
  for (std::size_t at = 0; (at = facts.find(harnessFile, at)) != std::string::npos; at += file.size())
    facts.replace(at, harnessFile.size(), file);
  std::string error;
  std::optional<Unit> unit = readText(facts, error);
  if (!unit)
    throw std::logic_error("unit " + text(number) + ": " + error);
  return std::move(*unit);
}

} // namespace devicetidy::bench

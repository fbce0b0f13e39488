#include "test/unit/solve/FactsHarness.h"

#include "analyzer/facts/Text.h"
#include "analyzer/solve/library/Words.h"

#include <algorithm>
#include <set>
#include <sstream>
#include <stdexcept>

namespace devicetidy::test {
namespace {

constexpr std::string_view prelude = R"(
unit /t.cpp torch 1.13
type void void
type bool bool
type int int
type long int
type std::string record template=std::basic_string
type "const char *" pointer pointee=char
type at::Tensor record
type "at::Tensor *" pointer pointee=at::Tensor
type at::Tensor[2] array pointee=at::Tensor numbers=(2)
type c10::Device record
type c10::DeviceType enum
type c10::TensorOptions record
type c10::cuda::CUDAGuard record
type std::vector<at::Tensor> record args=(at::Tensor)
type std::map<at::Tensor> record args=(std::string, at::Tensor)
type std::optional<at::Tensor> record args=(at::Tensor)
type std::pair<at::Tensor> record args=(at::Tensor, at::Tensor)
type std::shared_ptr<Net> record args=(Net)
type "Net *" pointer pointee=Net
type torch::nn::Module record polymorphic
type torch::nn::LinearImpl record bases=(torch::nn::Module)
type torch::nn::ModuleHolder<torch::nn::LinearImpl> record args=(torch::nn::LinearImpl)
type torch::nn::Linear record bases=(torch::nn::ModuleHolder<torch::nn::LinearImpl>)
type Batch record project
  field data at::Tensor
  field target at::Tensor
  field next "Batch *"
type "Batch *" pointer pointee=Batch
type Net record project polymorphic bases=(torch::nn::Module) constructors=(Net.Net) methods=(Net::forward)
  field w at::Tensor @/t.cpp:2:3-4
  field plain at::Tensor @/t.cpp:3:3-4
)";

// "%1 = tensor cuda:1 @3:5-6" as the facts that make the tensor.
std::string makeTensor(const std::string &line) {
  std::istringstream words(line);
  std::string reg, equals, tensor, device, place;
  words >> reg >> equals >> tensor >> device >> place;
  const std::string name = "%8" + reg.substr(1), options = "%9" + reg.substr(1);
  return name + " = literal string " + device + " : \"const char *\"\n" + options + " = call c10::device (" +
         name + " \"const char *\") : c10::TensorOptions " + place + "\n" + reg + " = call torch::zeros (" +
         options + " c10::TensorOptions) : at::Tensor " + place + "\n";
}

} // namespace

std::string expand(std::string_view facts) {
  std::istringstream lines{std::string(facts)};
  std::string result(prelude), line;
  while (std::getline(lines, line))
    result += line.find(" = tensor ") == std::string::npos ? line + "\n" : makeTensor(line);
  return result;
}

Program programOf(std::string_view facts) {
  std::string error;
  const std::string text = expand(facts);
  std::optional<Unit> unit = readText(text, error);
  if (!unit)
    throw std::invalid_argument(error + "\n" + text);
  std::vector<Unit> units;
  units.push_back(std::move(*unit));
  return link(std::move(units));
}

Analysis::Analysis(std::string_view facts)
    : program(programOf(facts)), usage(scanUsage(program, Types(program))),
      machine(program, SolveOptions(), library(), solution, usage) {
  machine.reportLatent = true;
  takeHits(); // of the analysis before
}

Outcomes Analysis::run(std::string_view name) {
  const Function *function = program.function(Name(name));
  if (!function)
    throw std::invalid_argument("no function " + std::string(name));
  Row row;
  for (std::uint32_t i = 0; i < function->paramCount; ++i) {
    const Variable &parameter = function->locals[i];
    const Term origin = applyTerm("parameter", {textTerm(function->id), intTerm(i)});
    row.store.set(
        machine.memory.local(0, i, parameter),
        parameter.isReference
            ? addressValue({machine.memory.outside(origin, parameter.type, parameter.name), nullptr})
            : machine.memory.symbolic(parameter.type, origin, parameter.name));
  }
  Frame frame{*function};
  return machine.run(frame, std::move(row));
}

std::string Analysis::describe(const Row &row, Value value) const {
  switch (value->kind) {
  case ValueKind::Unknown:
    return "unknown";
  case ValueKind::Null:
    return "null";
  case ValueKind::Scalar: {
    const Term term = row.resolve(value->term);
    const auto number = constantOf(term);
    const auto text = textOf(term);
    return number ? std::to_string(*number) : text ? text->str() : "some number";
  }
  case ValueKind::Device:
    return row.resolve(value->placement).describe();
  case ValueKind::Tensor: {
    const Placement placement = machine.memory.placementOf(row, value);
    return placement.isKnown() ? placement.describe() : "unknown";
  }
  case ValueKind::Address:
    return "address";
  default:
    return "a value of another kind";
  }
}

Strings Analysis::returned(std::string_view function) {
  std::set<std::string> answers;
  for (const Outcome &outcome : run(function))
    answers.insert(describe(outcome.row, outcome.result));
  return {answers.begin(), answers.end()};
}

std::size_t Analysis::rowsReturned(std::string_view function) { return run(function).size(); }

std::size_t Analysis::capsHit(const std::string &name) {
  for (const auto &[bound, hits] : takeHits())
    solution.stats.capsHit[bound] += hits;
  auto found = solution.stats.capsHit.find(name);
  return found == solution.stats.capsHit.end() ? 0 : found->second;
}

Strings returned(std::string_view facts) { return Analysis(facts).returned(); }

Strings conflicts(std::string_view facts, bool latent) {
  static const char *const levels[] = {"definite", "likely", "latent"};
  SolveOptions options;
  options.reportLatent = latent;
  Strings result;
  for (const Conflict &conflict : solve(programOf(facts), options).conflicts)
    result.push_back(levels[static_cast<int>(conflict.level)] + (" " + conflict.operation) + " " +
                     conflict.first.device + " " + conflict.second.device);
  return result;
}

} // namespace devicetidy::test

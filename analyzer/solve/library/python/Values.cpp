#include "analyzer/facts/NameParts.h"
#include "analyzer/solve/domain/DeviceTerms.h"
#include "analyzer/solve/domain/TermOps.h"
#include "analyzer/solve/library/python/Lists.h"
#include "analyzer/solve/library/python/Python.h"

namespace devicetidy::python {

const Argument *Given::find(std::string_view name, std::size_t i) const {
  for (const auto &[keyword, argument] : named)
    if (keyword.view() == name)
      return &argument;
  return i < positional.size() ? &positional[i] : nullptr;
}

namespace {

// The question that a call asks, told by what it asks about. What nothing is known of makes it another one
// each time.
Term questionOf(const Call &call) {
  std::vector<Term> parts{textTerm(call.fact.name)};
  for (std::size_t i = 0; i < call.fact.operands.size(); ++i) {
    const Value value = call.operand(i);
    const Term told = is(value, ValueKind::Device) ? deviceTerm(call.row.resolve(value->placement))
                      : isOpen(value)              ? value->origin
                      : is(value, ValueKind::Scalar) || is(value, ValueKind::Unknown) ? value->term
                                                                                      : nullptr;
    if (!told)
      return call.machine.freshScalar(call);
    parts.push_back(call.row.resolve(told));
  }
  return parts.size() == 1 ? call.machine.freshScalar(call) : applyTerm(op::call, std::move(parts));
}

} // namespace

Value answered(const Call &call, const Value &answer) {
  const bool isKnown =
      !is(answer, ValueKind::Unknown) || isOpen(answer) || answer->term || call.frame.function.isModel;
  return isKnown ? answer : scalarValue(questionOf(call));
}

Value unknownResult(const Call &call, Row &row) {
  Call inner{call.machine, call.frame, row, call.fact, call.first};
  return call.frame.function.isModel ? unknownValue() : withIdentity(questionOf(inner));
}

Value namesDevice(const Call &call, const Value &device, const Value &text) {
  const Placement placement = call.row.resolve(device->placement);
  const auto named = placement.isKnown() ? textOf(call, text) : std::nullopt;
  if (!named || !isOneOf(*named, {"cuda", "cpu"}))
    return unknownValue();
  const Term isCuda = isCudaTerm(placement);
  return scalarValue(call.row.resolve(*named == "cuda" ? isCuda : notTerm(isCuda)));
}

Given givenTo(Call &call, std::size_t from) {
  Given given;
  const std::vector<Name> &names = call.fact.captures;
  for (std::size_t i = from; i < call.fact.operands.size(); ++i) {
    const Operand &written = call.fact.operands[i];
    const Value value = call.operand(i);
    const Argument argument{value, {}, written.text, &written};
    const std::string_view name = i < names.size() ? names[i].view() : std::string_view();
    if (name.empty() && given.isOpen) {
      given.behindRest.push_back(argument);
      continue; // where it stands the function called may say
    }
    if (name == "*") {
      if (const auto elements = elementsOf(call, value))
        for (const Value &each : *elements)
          given.positional.push_back({each, {}, written.text, &written});
      else {
        given.isOpen = true;
        given.rest = value;
      }
    } else if (name == "**") {
      const Value held = behind(call, value);
      const bool isVars = is(held, ValueKind::Record) && held->type == varsType;
      const Value spread = isVars ? attributesOf(call, held) : held;
      if (!is(spread, ValueKind::Record) || spread->fields.count(anyEntryField)) {
        given.isOpen = true;
        given.namedRest = value;
      }
      if (is(spread, ValueKind::Record))
        for (const Name field : fieldsInOrder(spread))
          if (field != anyEntryField && field.view().size() > 2)
            given.named.emplace_back(Name(field.view().substr(1, field.view().size() - 2)),
                                     Argument{spread->fields.at(field), {}, written.text, &written});
    } else if (!name.empty()) {
      given.named.emplace_back(Name(name), argument);
    } else {
      given.positional.push_back(argument);
    }
  }
  return given;
}

Value missing() {
  static const Value value = libraryFunction("python::missing");
  return value;
}

bool isMissing(const Value &value) { return is(value, ValueKind::Function) && same(value, missing()); }

Value behind(const Call &call, const Value &value) {
  return is(value, ValueKind::Address) ? call.machine.memory.read(call.row, value->address) : value;
}

std::optional<std::string> textOf(const Call &call, const Value &value) {
  if (!is(value, ValueKind::Scalar))
    return std::nullopt;
  const std::optional<Name> text = devicetidy::textOf(call.row.resolve(value->term));
  return text ? std::optional(text->str()) : std::nullopt;
}

Value asDevice(const Call &call, const Value &value) {
  if (!is(value, ValueKind::Scalar))
    return value;
  const Term term = call.row.resolve(value->term);
  const auto isNumber = [](Term each) { // a rank, or that of an iteration
    return constantOf(each) || (isOf(each, op::rank) || isOf(each, op::loop));
  };
  if (isNumber(term))
    return deviceValue(Placement::cuda(term));
  const auto parts = [](Term each, Name of, std::size_t count) {
    return each->kind == TermKind::Apply && each->name == of && each->args.size() == count;
  };
  if (parts(term, op::concat, 2) && devicetidy::textOf(term->args[0]) == Name("cuda:") && // f"cuda:{i}"
      parts(term->args[1], op::toString, 1))
    return deviceValue(Placement::cuda(term->args[1]->args[0]));
  if (const std::optional<Placement> placement = deviceOf(call.machine.memory, call.row, value))
    return deviceValue(*placement, value->history);
  return value;
}

Value asGpu(const Call &call, const Value &value) {
  const Value device = asDevice(call, value);
  return is(device, ValueKind::Scalar) ? deviceValue(Placement::cuda(call.row.resolve(device->term)))
                                       : device;
}

Value allocated(Call &call, Row &row, Name type, const Value &value) {
  const Address where = call.machine.allocate(row, call.frame, call.fact, type);
  call.machine.memory.write(row, where, value);
  return addressValue(where);
}

Value listOf(Call &call, Row &row, std::vector<Value> elements) {
  return allocated(call, row, "python::list", listValue("std::vector<at::Tensor>", std::move(elements)));
}

Outcomes done(const Row &row, Value value) {
  Outcomes outcomes;
  outcomes.push_back({row, std::move(value)});
  return outcomes;
}

Name resultTypeOf(std::string_view name, const std::vector<Argument> &args, bool hasDim) {
  if (constexpr std::string_view scope = "linalg_"; startsWith(name, scope))
    name.remove_prefix(scope.size());
  if (name == "svd" || name == "lstsq" || name == "lu" ||
      (isOneOf(name, {"_unique2", "unique_consecutive"}) && args.size() > 1)) // return_inverse, return_counts
    return Name("std::tuple<at::Tensor, at::Tensor, at::Tensor>");
  const bool areTwoTensors = args.size() > 1 && is(args[1].value, ValueKind::Tensor);
  if (isOneOf(name, {"topk", "sort", "kthvalue", "qr", "cummax", "cummin", "slogdet", "mode", "std_mean",
                     "var_mean", "eig", "eigh", "aminmax", "lu_factor", "inv_ex", "cholesky_ex", "frexp",
                     "histogram"}) ||
      (hasDim && !areTwoTensors && isOneOf(name, {"max", "min", "median"})))
    return Name("std::tuple<at::Tensor, at::Tensor>");
  if (isOneOf(name, {"split", "chunk", "unbind", "tensor_split", "split_with_sizes", "meshgrid",
                     "broadcast_tensors"}))
    return Name("std::vector<at::Tensor>");
  if (isOneOf(name, {"item", "size", "dim", "numel", "element_size", "is_contiguous", "get_device", "stride",
                     "is_floating_point", "data_ptr", "nelement", "ndimension", "allclose", "equal"}))
    return Name("long");
  return Name("at::Tensor");
}

} // namespace devicetidy::python

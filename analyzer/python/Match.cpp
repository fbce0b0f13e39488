// match: the patterns of the cases are tested in turn (Python reference, 8.6).
#include "analyzer/python/FunctionLowering.h"

#include "analyzer/facts/NameParts.h"

namespace devicetidy::python {

void FunctionLowering::matchStatement(const Node &node) {
  const int subject = newLocal("", {}, node);
  storeLocal(subject, operand(node["subject"]), node);
  const BlockId end = newBlock();
  for (const Node &each : node.list("cases")) {
    const BlockId next = newBlock();
    pattern(each["pattern"], subject, next);
    if (each["guard"]) {
      const BlockId holds = newBlock();
      condition(each["guard"], holds, next);
      enter(holds);
    }
    endStatement();
    statements(each.list("body"));
    jump(end);
    enter(next);
  }
  jump(end);
  enter(end);
}

// Goes on where what local `subject` holds fits, with the names that the pattern binds, and to `fails`
// otherwise.
void FunctionLowering::pattern(const Node &node, int subject, BlockId fails) {
  const std::string_view kind = node.kind();
  const auto held = [&] { return use(loadLocal(subject, node), node); };
  const auto require = [&](Reg truth) {
    const BlockId fits = newBlock();
    branch(use(truth, node), fits, fails, false, node);
    enter(fits);
  };
  const auto part = [&](Reg value, const Node &of) {
    const int local = newLocal("", {}, of);
    storeLocal(local, use(value, of), of);
    pattern(of, local, fails);
  };
  if (kind == "MatchValue") {
    const Operand value = operand(node["value"]);
    require(emitCall("truth", {use(emitCall("compare::==", {held(), value}, node), node)}, node));
  } else if (kind == "MatchSingleton") {
    const Reg singleton = literal(node);
    require(
        emitCall("truth", {use(emitCall("compare::is", {held(), use(singleton, node)}, node), node)}, node));
  } else if (kind == "MatchAs") {
    if (node["pattern"])
      pattern(node["pattern"], subject, fails);
    if (const std::string name = node.text("name"); !name.empty())
      storeName(node, name, held());
  } else if (kind == "MatchOr") {
    const BlockId fits = newBlock();
    for (const Node &each : node.list("patterns")) {
      const BlockId next = newBlock();
      pattern(each, subject, next);
      jump(fits);
      enter(next);
    }
    jump(fails);
    enter(fits);
  } else if (kind == "MatchClass") {
    const Operand type = operand(node["cls"]);
    require(
        emitCall("truth", {use(emitCall("library::builtins.isinstance", {held(), type}, node), node)}, node));
    // str(text): a built-in class gives the subject itself; which attributes others give is not known here.
    const std::optional<Meaning> meaning = meaningOf(node["cls"]);
    const bool givesItself = meaning && startsWith(meaning->name, "builtins.");
    for (const Node &each : node.list("patterns"))
      part(givesItself ? held().reg : emit(fact(FactKind::Opaque, each)), each);
    const std::vector<std::string> names = node.names("kwd_attrs");
    const std::vector<Node> patterns = node.list("kwd_patterns");
    for (std::size_t i = 0; i < names.size() && i < patterns.size(); ++i)
      part(emitCall("attribute::" + names[i], {held()}, patterns[i]), patterns[i]);
  } else if (kind == "MatchSequence") {
    sequencePattern(node, subject, fails);
  } else if (kind == "MatchMapping") {
    require(emitCall("is_kind::mapping", {held()}, node));
    const std::vector<Node> keys = node.list("keys"), patterns = node.list("patterns");
    for (std::size_t i = 0; i < keys.size() && i < patterns.size(); ++i) {
      const Operand key = operand(keys[i]);
      require(emitCall("truth", {use(emitCall("compare::in", {key, held()}, node), node)}, node));
      part(emitCall("get", {held(), operand(keys[i])}, patterns[i]), patterns[i]);
    }
    if (const std::string rest = node.text("rest"); !rest.empty())
      storeName(node, rest, use(emit(fact(FactKind::Opaque, node)), node));
  }
}

void FunctionLowering::sequencePattern(const Node &node, int subject, BlockId fails) {
  const std::vector<Node> patterns = node.list("patterns");
  const BlockId isOne = newBlock();
  const Reg kind = emitCall("is_kind::sequence", {use(loadLocal(subject, node), node)}, node);
  branch(use(kind, node), isOne, fails, false, node);
  enter(isOne);
  bool hasStar = false;
  for (const Node &each : patterns)
    hasStar |= each.is("MatchStar");
  const Operand size =
      use(emitCall("library::builtins.len", {use(loadLocal(subject, node), node)}, node), node);
  Fact wanted = fact(FactKind::Literal, node);
  wanted.literal = LiteralKind::Int;
  wanted.number = static_cast<std::int64_t>(patterns.size()) - (hasStar ? 1 : 0);
  const std::string compared = hasStar ? "compare::>=" : "compare::==";
  const Reg fits = emitCall(compared, {size, use(emit(std::move(wanted)), node)}, node);
  const BlockId goesOn = newBlock();
  branch(use(emitCall("truth", {use(fits, node)}, node), node), goesOn, fails, false, node);
  enter(goesOn);
  bool isBehindRest = false;
  for (std::size_t i = 0; i < patterns.size(); ++i) {
    const Node &each = patterns[i];
    const bool isStarred = each.is("MatchStar");
    const Reg element = taken(use(loadLocal(subject, node), node), each, i, patterns.size(), isStarred,
                              std::exchange(isBehindRest, isBehindRest || isStarred));
    if (isStarred) {
      if (const std::string name = each.text("name"); !name.empty())
        storeName(each, name, use(element, each));
      continue;
    }
    const int local = newLocal("", {}, each);
    storeLocal(local, use(element, each), each);
    pattern(each, local, fails);
  }
}

} // namespace devicetidy::python

// Terms: hash-consing, folding that agrees with C++ arithmetic, what a row puts in for what it knows.
#include "analyzer/solve/domain/Row.h"

#include "gtest/gtest.h"

#include <map>
#include <random>

namespace devicetidy::test {
namespace {

using Random = std::mt19937_64;

std::int64_t pick(Random &random, std::int64_t from, std::int64_t to) {
  return std::uniform_int_distribution<std::int64_t>(from, to)(random);
}

const std::vector<std::string> &operators() {
  static const std::vector<std::string> all = {
      "+", "-", "*", "/", "%", "==", "!=", "<", "<=", ">", ">=", "&", "|", "^", "<<", ">>", "!"};
  return all;
}

/// An expression as a tree, to be built into a term or evaluated.
struct Expression {
  std::string op; ///< empty: a symbol, or a number
  std::string symbol;
  std::int64_t number = 0;
  std::vector<Expression> args;
};

Expression randomExpression(Random &random, int depth) {
  Expression result;
  if (depth == 0 || pick(random, 0, 4) == 0) {
    if (pick(random, 0, 1))
      result.symbol = std::string(1, static_cast<char>('a' + pick(random, 0, 3)));
    else
      result.number = pick(random, -3, 3);
    return result;
  }
  result.op = operators()[static_cast<std::size_t>(pick(random, 0, 16))];
  for (int i = 0; i < (result.op == "!" ? 1 : 2); ++i)
    result.args.push_back(randomExpression(random, depth - 1));
  // Conditions are negated, numbers are not: a condition is negated twice without becoming a number.
  if (result.op == "!")
    result.args[0] = {pick(random, 0, 1) ? "<" : "==", "", 0, {result.args[0], result.args[0]}};
  return result;
}

Term build(const Expression &expression) {
  if (!expression.symbol.empty())
    return symbolTerm(expression.symbol);
  if (expression.op.empty())
    return intTerm(expression.number);
  std::vector<Term> args;
  for (const Expression &arg : expression.args)
    args.push_back(build(arg));
  return applyTerm(expression.op, std::move(args));
}

using Values = std::map<std::string, std::int64_t>;

/// What C++ computes; nothing where that is not defined.
std::optional<std::int64_t> evaluate(const Expression &expression, const Values &values) {
  if (!expression.symbol.empty())
    return values.at(expression.symbol);
  const std::string &op = expression.op;
  if (op.empty())
    return expression.number;
  const auto first = evaluate(expression.args[0], values);
  if (op == "!")
    return first ? std::optional<std::int64_t>(*first == 0) : std::nullopt;
  const auto second = evaluate(expression.args[1], values);
  if (!first || !second)
    return std::nullopt;
  const std::int64_t a = *first, b = *second;
  if (op == "+" || op == "-" || op == "*")
    return op == "+" ? a + b : op == "-" ? a - b : a * b;
  if (op == "/" || op == "%") {
    if (b == 0 || b == -1)
      return std::nullopt;
    return op == "/" ? a / b : a % b;
  }
  if (op == "<<" || op == ">>") {
    if (b < 0 || b > 20 || a < 0)
      return std::nullopt;
    return op == "<<" ? a << b : a >> b;
  }
  if (op == "&" || op == "|" || op == "^")
    return op == "&" ? a & b : op == "|" ? a | b : a ^ b;
  return op == "=="   ? a == b
         : op == "!=" ? a != b
         : op == "<"  ? a < b
         : op == "<=" ? a <= b
         : op == ">"  ? a > b
                      : a >= b;
}

Values randomValues(Random &random) {
  Values values;
  for (const char *name : {"a", "b", "c", "d"})
    values[name] = pick(random, -3, 3);
  return values;
}

TEST(Term, EqualTermsAreOnePointer) {
  Random random(1);
  for (int i = 0; i < 2000; ++i) {
    const Expression expression = randomExpression(random, 4);
    EXPECT_EQ(build(expression), build(expression));
  }
}

TEST(Term, DifferentTermsAreDifferentPointers) {
  EXPECT_NE(symbolTerm("a"), symbolTerm("b"));
  EXPECT_NE(symbolTerm("a"), textTerm("a"));
  EXPECT_NE(intTerm(0), intTerm(1));
  EXPECT_NE(applyTerm("f", {symbolTerm("a")}), applyTerm("g", {symbolTerm("a")}));
  EXPECT_NE(applyTerm("f", {symbolTerm("a"), symbolTerm("b")}),
            applyTerm("f", {symbolTerm("b"), symbolTerm("a")}));
}

TEST(Term, AConditionAndItsNegationShareATerm) {
  Random random(2);
  for (int i = 0; i < 500; ++i) {
    const Term a = build(randomExpression(random, 2)), b = build(randomExpression(random, 2));
    EXPECT_EQ(applyTerm("!=", {a, b}), notTerm(applyTerm("==", {a, b})));
    EXPECT_EQ(applyTerm("<=", {a, b}), notTerm(applyTerm(">", {a, b})));
    EXPECT_EQ(applyTerm(">=", {a, b}), notTerm(applyTerm("<", {a, b})));
    EXPECT_EQ(applyTerm(">", {a, b}), applyTerm("<", {b, a}));
    EXPECT_EQ(applyTerm("==", {a, b}), applyTerm("==", {b, a}));
    const Term condition = applyTerm("<", {a, b});
    EXPECT_EQ(notTerm(notTerm(condition)), condition);
  }
}

TEST(Term, FoldingAgreesWithArithmetic) {
  Random random(3);
  int compared = 0;
  for (int i = 0; i < 20000; ++i) {
    const Expression expression = randomExpression(random, 3);
    const Values values = randomValues(random);
    const auto expected = evaluate(expression, values);
    if (!expected)
      continue;
    Term term = build(expression);
    for (const auto &[name, value] : values)
      term = substitute(term, symbolTerm(name), intTerm(value));
    ASSERT_TRUE(constantOf(term));
    EXPECT_EQ(*constantOf(term), *expected);
    ++compared;
  }
  EXPECT_GT(compared, 5000);
}

TEST(Term, SubstituteTouchesNothingElse) {
  const Term a = symbolTerm("a"), b = symbolTerm("b"), c = symbolTerm("c");
  const Term sum = applyTerm("+", {applyTerm("f", {a}), b});
  EXPECT_EQ(substitute(sum, c, a), sum);
  EXPECT_EQ(substitute(sum, a, c), applyTerm("+", {applyTerm("f", {c}), b}));
  EXPECT_FALSE(contains(substitute(sum, a, c), a));
  EXPECT_EQ(substitute(substitute(sum, a, c), c, a), sum);
}

TEST(Term, ATermThatGrowsTooBigBecomesOneSymbol) {
  auto grown = [] {
    Term term = symbolTerm("x");
    for (std::uint32_t i = 0; i < maxTermSize; ++i)
      term = applyTerm("f", {term, symbolTerm("y")});
    return term;
  };
  EXPECT_LE(grown()->size, maxTermSize);
  EXPECT_EQ(grown(), grown());
}

TEST(Row, ResolvePutsInWhatItKnows) {
  Random random(4);
  int compared = 0;
  for (int i = 0; i < 5000; ++i) {
    const Expression expression = randomExpression(random, 3);
    const Values values = randomValues(random);
    const auto expected = evaluate(expression, values);
    if (!expected)
      continue;
    Row row;
    for (const auto &[name, value] : values)
      ASSERT_TRUE(row.assume(applyTerm("==", {symbolTerm(name), intTerm(value)}), 1));
    const Term resolved = row.resolve(build(expression));
    ASSERT_TRUE(constantOf(resolved));
    EXPECT_EQ(*constantOf(resolved), *expected);
    ++compared;
  }
  EXPECT_GT(compared, 1000);
}

TEST(Row, ResolveTwiceChangesNothing) {
  Random random(5);
  for (int i = 0; i < 2000; ++i) {
    Row row;
    for (int known = 0; known < 3; ++known)
      row.assume(build(randomExpression(random, 2)), pick(random, 0, 1));
    const Term once = row.resolve(build(randomExpression(random, 3)));
    EXPECT_EQ(row.resolve(once), once);
  }
}

TEST(Row, KnowsAConditionAndItsNegation) {
  const Term condition = applyTerm("<", {symbolTerm("a"), symbolTerm("b")});
  for (std::int64_t truth : {0, 1}) {
    Row row;
    EXPECT_TRUE(row.assume(condition, truth));
    EXPECT_EQ(row.resolve(condition), intTerm(truth));
    EXPECT_EQ(row.resolve(notTerm(condition)), intTerm(1 - truth));
    EXPECT_TRUE(row.assume(condition, truth));
    EXPECT_FALSE(row.assume(condition, 1 - truth));
  }
}

TEST(Row, RefusesASecondValue) {
  Row row;
  EXPECT_TRUE(row.assume(applyTerm("==", {symbolTerm("n"), intTerm(3)}), 1));
  EXPECT_FALSE(row.assume(applyTerm("==", {symbolTerm("n"), intTerm(4)}), 1));
  EXPECT_TRUE(row.assume(applyTerm("<", {symbolTerm("n"), intTerm(4)}), 1));
}

TEST(Row, AnEqualityOfDevicesPinsTheSymbol) {
  const Placement symbol = Placement::symbol(SymbolRole::DeviceChoice, symbolTerm("device"), "device");
  const Placement cuda1 = Placement::cuda(intTerm(1));
  Row row;
  EXPECT_TRUE(row.assume(applyTerm("==", {deviceTerm(symbol), deviceTerm(cuda1)}), 1));
  EXPECT_EQ(row.resolve(symbol), cuda1);
}

} // namespace
} // namespace devicetidy::test

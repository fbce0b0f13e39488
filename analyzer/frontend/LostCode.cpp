//===- LostCode.cpp - the text of a function against its tree -------------===//
#include "analyzer/frontend/LostCode.h"

#include "clang/AST/RecursiveASTVisitor.h"
#include "clang/Basic/SourceManager.h"
#include "clang/Lex/Lexer.h"
#include "llvm/ADT/DenseSet.h"
#include "llvm/ADT/StringMap.h"
#include "llvm/ADT/StringSwitch.h"

#include <optional>

namespace devicetidy::frontend {

using namespace clang;

namespace {

/// Where the words are that the tree has nodes for, and the names that the function itself gives.
struct KeptCode : RecursiveASTVisitor<KeptCode> {
  explicit KeptCode(const SourceManager &sources) : sources(sources) {}

  bool shouldVisitImplicitCode() const { return true; }
  bool shouldVisitTemplateInstantiations() const { return true; }

  void keep(SourceLocation location) {
    if (location.isValid())
      words.insert(sources.getFileOffset(sources.getFileLoc(location)));
  }
  bool VisitStmt(Stmt *statement) {
    if (!isa<Expr>(statement))
      keep(statement->getBeginLoc()); // `return`, `goto`, `break`
    if (const auto *block = dyn_cast<CompoundStmt>(statement))
      braces.insert(sources.getFileOffset(sources.getFileLoc(block->getLBracLoc())));
    return true;
  }
  bool VisitExpr(Expr *expr) {
    if (isa<RecoveryExpr>(expr))
      return true;            // its first word may be the one that was lost
    keep(expr->getExprLoc()); // a name, `this`, `throw`; of members: the member
    if (const auto *designated = dyn_cast<DesignatedInitExpr>(expr))
      for (const auto &designator : designated->designators())
        if (designator.isFieldDesignator())
          keep(designator.getFieldLoc());
    if (const auto *overloads = dyn_cast<OverloadExpr>(expr))
      keep(overloads->getNameLoc());
    if (const auto *member = dyn_cast<CXXDependentScopeMemberExpr>(expr))
      keep(member->getMemberLoc());
    return true;
  }
  bool VisitLambdaExpr(LambdaExpr *lambda) {
    for (const LambdaCapture &capture : lambda->captures())
      keep(capture.getLocation());
    return true;
  }
  bool VisitNamedDecl(NamedDecl *decl) {
    if (decl->isInvalidDecl())
      return true; // `lost::call(x);` reads as a declaration of x
    keep(decl->getLocation());
    if (isa<VarDecl, BindingDecl>(decl) && decl->getIdentifier())
      named[decl->getName()].push_back(decl);
    return true;
  }
  bool TraverseConstructorInitializer(CXXCtorInitializer *initializer) {
    keep(initializer->getMemberLocation());
    return RecursiveASTVisitor::TraverseConstructorInitializer(initializer);
  }

  const SourceManager &sources;
  llvm::DenseSet<unsigned> words, braces;
  llvm::StringMap<std::vector<const NamedDecl *>> named;
};

enum class Keyword : std::uint8_t { None, This, Leave, Jump, Goto };

Keyword keywordOf(llvm::StringRef word) {
  return llvm::StringSwitch<Keyword>(word)
      .Case("this", Keyword::This)
      .Case("return", Keyword::Leave)
      .Case("throw", Keyword::Leave)
      .Case("break", Keyword::Jump)
      .Case("continue", Keyword::Jump)
      .Case("goto", Keyword::Goto)
      .Default(Keyword::None);
}

/// Reads the words of a range of a file one after the other.
class Reader {
public:
  Reader(ASTContext &context, const FunctionDecl *function, const std::vector<SkippedText> &skipped)
      : context(context), sources(context.getSourceManager()), function(function), skipped(skipped),
        kept(sources) {
    kept.TraverseDecl(const_cast<FunctionDecl *>(function)); // the visitor changes nothing
    if (const auto *method = dyn_cast<CXXMethodDecl>(function); method && method->getParent()->isLambda())
      for (const LambdaCapture &capture : method->getParent()->captures())
        if (capture.capturesVariable())
          kept.named[capture.getCapturedVar()->getName()].push_back(capture.getCapturedVar());
  }

  LostCode read() {
    const SourceLocation begin = sources.getFileLoc(function->getBeginLoc());
    const SourceLocation end = sources.getFileLoc(function->getBodyRBrace());
    lost.file = sources.getFileID(begin);
    if (end.isInvalid() || sources.getFileID(end) != lost.file) {
      lost.isOpen = true;
      return std::move(lost);
    }
    const llvm::StringRef text = sources.getBufferData(lost.file);
    last = sources.getFileOffset(end);
    Lexer lexer(sources.getLocForStartOfFile(lost.file), context.getLangOpts(), text.begin(),
                text.data() + sources.getFileOffset(begin), text.end());
    bool inDirective = false;
    for (Token token; !lexer.LexFromRawLexer(token) && offsetOf(token) <= last;) {
      inDirective = token.is(tok::hash) ? token.isAtStartOfLine() || inDirective
                                        : inDirective && !token.isAtStartOfLine();
      if (!inDirective && !isSkipped(offsetOf(token)))
        meet(token);
    }
    return std::move(lost);
  }

private:
  struct Brace {
    bool isKept = false;   ///< clang kept the block
    bool isLambda = false; ///< of a lambda that it did not keep
  };

  unsigned offsetOf(const Token &token) const { return sources.getFileOffset(token.getLocation()); }

  bool isSkipped(unsigned offset) const {
    return std::any_of(skipped.begin(), skipped.end(), [&](const SkippedText &text) {
      return text.file == lost.file && text.begin <= offset && offset < text.end;
    });
  }

  void meet(const Token &token) {
    if (token.is(tok::l_brace))
      open(token);
    else if (token.is(tok::r_brace) && !braces.empty())
      braces.pop_back();
    else if (token.is(tok::l_paren))
      parens.push_back(before);
    else if (token.is(tok::r_paren) && !parens.empty()) {
      beforeParen = parens.back();
      parens.pop_back();
    } else if (token.is(tok::raw_identifier) && !kept.words.contains(offsetOf(token)))
      meetLost(token.getRawIdentifier(), offsetOf(token));
    before = token.getKind();
    if (token.is(tok::raw_identifier) && token.getRawIdentifier() == "else")
      before = tok::kw_else;
  }

  void open(const Token &token) {
    const bool isKept = kept.braces.contains(offsetOf(token));
    const bool followsCapture =
        before == tok::r_square || (before == tok::r_paren && beforeParen == tok::r_square);
    braces.push_back({isKept, !isKept && followsCapture});
  }

  void meetLost(llvm::StringRef word, unsigned offset) {
    switch (keywordOf(word)) {
    case Keyword::This:
      lost.words.push_back({LostWord::Self, offset, nullptr});
      return;
    case Keyword::Leave:
      return leave(offset);
    case Keyword::Jump: // of a loop that was lost with it
      lost.isOpen |= !braces.empty() && braces.back().isKept;
      return;
    case Keyword::Goto:
      lost.isOpen = true;
      return;
    case Keyword::None:
      break;
    }
    const bool isQualified = before == tok::period || before == tok::arrow || before == tok::coloncolon;
    if (!isQualified)
      name(word, offset);
  }

  void leave(unsigned offset) {
    if (std::any_of(braces.begin(), braces.end(), [](const Brace &brace) { return brace.isLambda; }))
      return;
    const bool isStatement =
        before == tok::semi || before == tok::l_brace || before == tok::r_brace || before == tok::colon;
    if (!braces.empty() && braces.back().isKept && isStatement)
      lost.words.push_back({LostWord::Leave, offset, nullptr});
    else
      lost.isOpen = true;
  }

  void name(llvm::StringRef word, unsigned offset) {
    if (const auto own = kept.named.find(word); own != kept.named.end()) {
      for (const NamedDecl *decl : own->second)
        lost.words.push_back({LostWord::Name, offset, decl});
      return;
    }
    const DeclarationName wanted(&context.Idents.get(word));
    for (const DeclContext *scope = function; scope; scope = scope->getParent()) {
      const auto found = scope->getPrimaryContext()->lookup(wanted);
      for (const NamedDecl *decl : found)
        if (isa<VarDecl, FieldDecl, FunctionDecl, FunctionTemplateDecl>(decl))
          lost.words.push_back({LostWord::Name, offset, decl});
      if (!found.empty())
        return;
    }
  }

  ASTContext &context;
  const SourceManager &sources;
  const FunctionDecl *function;
  const std::vector<SkippedText> &skipped;
  KeptCode kept;
  LostCode lost;
  unsigned last = 0;
  std::vector<Brace> braces;
  std::vector<tok::TokenKind> parens; ///< what stands before each open parenthesis
  tok::TokenKind before = tok::unknown, beforeParen = tok::unknown;
};

} // namespace

LostCode findLostCode(ASTContext &context, const FunctionDecl *function,
                      const std::vector<SkippedText> &skipped) {
  return Reader(context, function, skipped).read();
}

} // namespace devicetidy::frontend

#include "analyzer/lsp/Serve.h"

#include "analyzer/config/Configuration.h"
#include "analyzer/driver/support/Output.h"
#include "analyzer/lsp/Server.h"

#include "llvm/Support/raw_ostream.h"

#include <csignal>
#include <cstdio>

namespace devicetidy::lsp {

driver::ExitCode serve(const driver::Options &options) {
  if (std::string error; !config::Configuration(options.config).open(error)) {
    driver::complain(error);
    return driver::ExitCode::Usage;
  }
  std::signal(SIGPIPE, SIG_IGN); // an editor that is gone ends the input too
  auto owned = std::make_unique<Input>(stdin);
  Input &input = *owned;
  llvm::lsp::JSONTransport transport(std::move(owned), llvm::outs());
  llvm::lsp::MessageHandler handler(transport);
  Server server(options, input, handler);
  if (llvm::Error error = transport.run(handler))
    llvm::consumeError(std::move(error)); // the end of the input; whether that is in order, the server knows
  const driver::ExitCode code = server.end();
  llvm::outs().flush();
  llvm::outs().clear_error();
  return code;
}

} // namespace devicetidy::lsp

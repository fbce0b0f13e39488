//===- HtmlReport.cpp - findings as one page for a browser ---------------===//
//
// The page is complete: no script, style, font or picture comes from elsewhere. Without scripts only the
// filter is missing.
//
//===----------------------------------------------------------------------===//
#include "analyzer/report/diagnostic/NoLint.h"
#include "analyzer/report/formats/HtmlChange.h"
#include "analyzer/report/formats/HtmlExcerpt.h"
#include "analyzer/report/formats/ReportRun.h"
#include "analyzer/report/graph/DevicePicture.h"
#include "analyzer/report/graph/Markup.h"
#include "analyzer/report/source/Text.h"

#include "HtmlPage.inc"

#include <fmt/format.h>

#include <algorithm>
#include <map>

namespace devicetidy {
namespace {

constexpr std::size_t MostOpen = 100; ///< with more findings their histories are folded
constexpr std::uint32_t Context = 2;

std::string counted(std::size_t count, std::string_view noun) {
  return fmt::format("{} {}{}", count, noun, count == 1 ? "" : "s");
}

class HtmlWriter {
public:
  HtmlWriter(const std::vector<Diagnostic> &diagnostics, const ReportRun &run, SourceCache &sources)
      : diagnostics(diagnostics), run(run), sources(sources) {
    for (const Diagnostic &diagnostic : diagnostics) {
      for (const std::string &device : diagnostic.graph.devices)
        colours.add(device);
      ++byCheck[diagnostic.check];
      ++byLevel[levelOf(diagnostic)];
      if (files.empty() || files.back().first != diagnostic.where.file)
        files.emplace_back(diagnostic.where.file, 0);
      ++files.back().second;
    }
    colours.assign();
  }

  std::string page() {
    out += fmt::format("<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
                       "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n"
                       "<meta name=\"generator\" content=\"device-tidy {}\">\n"
                       "<title>device-tidy: {}</title>\n<style>\n{}{}</style>\n</head>\n<body>\n",
                       escapeMarkup(run.version), counted(diagnostics.size(), "finding"), pageCss,
                       pictureStyle());
    writeSummary();
    writeFilter();
    out += "<main>\n";
    std::size_t next = 0;
    for (std::size_t file = 0; file < files.size(); ++file)
      next = writeFile(file, next);
    out += "</main>\n";
    if (!diagnostics.empty())
      out += fmt::format("<script>\n{}</script>\n", pageJs);
    out += "</body>\n</html>\n";
    return std::move(out);
  }

private:
  /// An error about a suppressing comment has no level of its own.
  static std::string levelOf(const Diagnostic &diagnostic) {
    return std::string(certainty(diagnostic.level));
  }

  std::string pathOf(Name file) const { return relativePath(file.str(), run.sourceRoot); }

  std::string placeOf(const Location &where) const {
    return pathOf(where.file) + ":" + sources.spelledPlace(where);
  }

  void writeSummary() {
    out += "<header>\n<h1>device-tidy</h1>\n<p class=\"soft\">";
    if (diagnostics.empty())
      out += "No findings";
    else
      out += counted(diagnostics.size(), "finding") + " in " + counted(files.size(), "file");
    if (run.suppressed)
      out += fmt::format("; {} suppressed by comments", run.suppressed);
    out += fmt::format(". Version {}.</p>\n<p>", escapeMarkup(run.version));
    for (const char *level : {"definite", "likely", "latent"})
      if (const auto found = byLevel.find(level); found != byLevel.end())
        out += fmt::format("<span class=\"level {0}\">{1} {0}</span>", level, found->second);
    out += "</p>\n";
    if (!diagnostics.empty()) {
      out += "<div class=\"tables\">\n";
      writeCheckTable();
      writeFileTable();
      out += "</div>\n";
    }
    writeFailures();
    out += "</header>\n";
  }

  void writeCheckTable() {
    out += "<div class=\"card\"><table><caption>Checks</caption>\n";
    for (const auto &[check, count] : byCheck) {
      std::string_view summary;
      for (const CheckInfo *info : run.checks)
        if (info->name == check)
          summary = info->summary;
      out += fmt::format("<tr><th scope=\"row\"><code>{}</code><br><span class=\"soft\">{}</span></th>"
                         "<td>{}</td></tr>\n",
                         escapeMarkup(check), escapeMarkup(summary), count);
    }
    out += "</table></div>\n";
  }

  void writeFileTable() {
    static constexpr std::size_t mostFiles = 15;
    out += "<div class=\"card\"><table><caption>Files</caption>\n";
    std::vector<std::size_t> sorted(files.size());
    for (std::size_t i = 0; i < sorted.size(); ++i)
      sorted[i] = i;
    std::sort(sorted.begin(), sorted.end(), [&](std::size_t a, std::size_t b) {
      return files[a].second != files[b].second ? files[a].second > files[b].second : a < b;
    });
    for (std::size_t i = 0; i < std::min(sorted.size(), mostFiles); ++i)
      out += fmt::format(
          "<tr><th scope=\"row\"><a class=\"path\" href=\"#file-{}\">{}</a></th><td>{}</td></tr>\n",
          sorted[i] + 1, escapeMarkup(pathOf(files[sorted[i]].first)), files[sorted[i]].second);
    if (sorted.size() > mostFiles)
      out += fmt::format("<tr><th scope=\"row\" class=\"soft\">and {} more</th><td></td></tr>\n",
                         sorted.size() - mostFiles);
    out += "</table></div>\n";
  }

  void writeFailures() {
    if (run.failures.empty())
      return;
    out += fmt::format("<h2>{} could not be parsed</h2>\n<ul class=\"card history\">\n",
                       counted(run.failures.size(), "translation unit"));
    for (const UnitFailure &failure : run.failures)
      out += fmt::format(
          "<li><span class=\"path\">{}</span>: {} <span class=\"soft\">({})</span></li>\n",
          escapeMarkup(failure.where.valid() ? placeOf(failure.where) : pathOf(failure.where.file)),
          escapeMarkup(failure.text),
          failure.isTotal ? "nothing of it was analysed" : "what could be parsed of it was analysed");
    out += "</ul>\n";
  }

  /// Hidden until the script that makes it work shows it.
  void writeFilter() {
    if (diagnostics.empty())
      return;
    out += "<form id=\"filter\" hidden aria-label=\"Filter\">\n<label>Check <select name=\"check\">"
           "<option value=\"\">all</option>";
    for (const auto &[check, count] : byCheck)
      out += fmt::format("<option value=\"{0}\">{0} ({1})</option>", escapeMarkup(check), count);
    out += "</select></label>\n";
    for (const char *level : {"definite", "likely", "latent"})
      if (byLevel.count(level))
        out += fmt::format(
            "<label><input type=\"checkbox\" name=\"level\" value=\"{0}\" checked> {0}</label>\n", level);
    out += "<label>File <input type=\"search\" name=\"path\" placeholder=\"part of the path\"></label>\n"
           "<button type=\"reset\">Reset</button>\n<output id=\"shown\"></output>\n</form>\n";
  }

  std::size_t writeFile(std::size_t file, std::size_t next) {
    const std::string path = escapeMarkup(pathOf(files[file].first));
    out += fmt::format(
        "<section class=\"file\" data-path=\"{}\">\n<h2 id=\"file-{}\"><span class=\"path\">{}</span> "
        "<span class=\"soft\">{}</span></h2>\n",
        path, file + 1, path, counted(files[file].second, "finding"));
    const std::size_t end = next + files[file].second;
    for (; next < end; ++next)
      writeFinding(diagnostics[next], next + 1);
    out += "</section>\n";
    return end;
  }

  void writeFinding(const Diagnostic &diagnostic, std::size_t number) {
    const std::string level = levelOf(diagnostic);
    out += fmt::format(
        "<article class=\"finding\" id=\"f-{}\" data-check=\"{}\" data-level=\"{}\">\n"
        "<h3><span class=\"level {}\">{}</span>{}{}{}</h3>\n",
        escapeMarkup(diagnostic.fingerprint), escapeMarkup(diagnostic.check), level, level, level,
        diagnostic.baseline == BaselineState::Unchanged ? "<span class=\"level known\">in the baseline</span>"
                                                        : "",
        diagnostic.isSuppressed ? "<span class=\"level suppressed\">suppressed</span>" : "",
        escapeMarkup(diagnostic.message));
    out += fmt::format("<p class=\"meta\"><a class=\"path\" href=\"#f-{}\">{}</a>",
                       escapeMarkup(diagnostic.fingerprint), escapeMarkup(placeOf(diagnostic.where)));
    if (!diagnostic.function.empty())
      out += fmt::format(" in <code>{}</code>", escapeMarkup(diagnostic.function));
    out += fmt::format(" &middot; {}</p>\n", escapeMarkup(diagnostic.check));
    out += htmlExcerpt(sources, diagnostic.where, marksOf(diagnostic), Context);
    writeHistory(diagnostic, number);
    writeFix(diagnostic);
    out += "</article>\n";
  }

  /// The operands, in the colours of their devices.
  std::vector<SourceMark> marksOf(const Diagnostic &diagnostic) const {
    std::vector<SourceMark> marks;
    const DeviceGraph &graph = diagnostic.graph;
    for (const GraphEdge &edge : graph.edges) {
      const GraphNode &from = graph.nodes[edge.from];
      const bool isOperand = graph.nodes[edge.to].kind == NodeKind::Operation && edge.where.valid() &&
                             edge.where != diagnostic.where;
      if (isOperand) {
        const std::string &device = graph.devices[from.lane];
        marks.push_back({edge.where, colours.styleOf(device), device.empty() ? from.name : "on " + device});
      }
    }
    return marks;
  }

  void writeHistory(const Diagnostic &diagnostic, std::size_t number) {
    std::string steps;
    for (const Note &note : diagnostic.notes)
      if (!note.isAdvice || !diagnostic.fix) // the fix is shown below, and may be a better one
        steps += fmt::format("<li>{} <span class=\"path soft\">{}</span>{}</li>\n", escapeMarkup(note.text),
                             escapeMarkup(placeOf(note.where)), htmlExcerpt(sources, note.where, {}, 0));
    if (diagnostic.graph.empty() && steps.empty())
      return;
    out += fmt::format("<details{}><summary>How the tensors got there</summary>\n",
                       diagnostics.size() <= MostOpen ? " open" : "");
    if (!diagnostic.graph.empty())
      out += "<figure>" + svgOf(diagnostic.graph, colours, fmt::format("g{}", number)) + "</figure>\n";
    out += steps.empty() ? "</details>\n" : "<ol class=\"history\">\n" + steps + "</ol></details>\n";
  }

  void writeFix(const Diagnostic &diagnostic) {
    if (!diagnostic.fix)
      return;
    const Replacement &change = diagnostic.fix->change;
    out += fmt::format("<p class=\"fix\">Fix: {}.</p>\n", escapeMarkup(diagnostic.fix->description)) +
           htmlChange(sources.text(change.where.file), change);
  }

  const std::vector<Diagnostic> &diagnostics;
  const ReportRun &run;
  SourceCache &sources;
  DeviceColours colours;
  std::map<std::string, std::size_t> byCheck, byLevel;
  std::vector<std::pair<Name, std::size_t>> files; ///< in the order of the findings
  std::string out;
};

} // namespace

std::string htmlReport(const std::vector<Diagnostic> &diagnostics, const ReportRun &run,
                       SourceCache &sources) {
  return HtmlWriter(diagnostics, run, sources).page();
}

} // namespace devicetidy

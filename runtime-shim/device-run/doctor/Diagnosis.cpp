#include "doctor/Diagnosis.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>

namespace devicerun::doctor {
namespace {

const char *nameOf(Verdict verdict) {
  switch (verdict) {
  case Verdict::Ok:
    return "ok";
  case Verdict::Warning:
    return "warning";
  case Verdict::Problem:
    break;
  }
  return "problem";
}

std::string plural(int count, const char *what) {
  return fmt::format("{} {}{}", count, what, count == 1 ? "" : "s");
}

} // namespace

void Diagnosis::add(Verdict verdict, std::string topic, std::string id, std::string text, std::string next) {
  all.push_back({verdict, std::move(topic), std::move(id), std::move(text), std::move(next), place});
}

void Diagnosis::ok(std::string topic, std::string id, std::string text) {
  add(Verdict::Ok, std::move(topic), std::move(id), std::move(text), "");
}

void Diagnosis::warn(std::string topic, std::string id, std::string text, std::string next) {
  add(Verdict::Warning, std::move(topic), std::move(id), std::move(text), std::move(next));
}

void Diagnosis::problem(std::string topic, std::string id, std::string text, std::string next) {
  add(Verdict::Problem, std::move(topic), std::move(id), std::move(text), std::move(next));
}

int Diagnosis::count(Verdict verdict) const {
  return static_cast<int>(
      std::count_if(all.begin(), all.end(), [&](const Line &line) { return line.verdict == verdict; }));
}

std::string toText(const Diagnosis &diagnosis) {
  std::size_t widest = 0;
  for (const Line &line : diagnosis.lines())
    widest = std::max(widest, line.topic.size());
  std::string text;
  for (const Line &line : diagnosis.lines()) {
    text += fmt::format("{:<8} {:<{}}  {}{}\n", nameOf(line.verdict), line.topic, widest,
                        line.place.empty() ? "" : line.place + ": ", line.text);
    if (!line.next.empty())
      text += fmt::format("{:<8} {:<{}}  -> {}\n", "", "", widest, line.next);
  }
  int problems = diagnosis.count(Verdict::Problem), warnings = diagnosis.count(Verdict::Warning);
  return text + (problems || warnings
                     ? fmt::format("{}, {}\n", plural(problems, "problem"), plural(warnings, "warning"))
                     : std::string("no problems found\n"));
}

std::string toJson(const Diagnosis &diagnosis) {
  nlohmann::ordered_json lines = nlohmann::ordered_json::array();
  Verdict worst = Verdict::Ok;
  for (const Line &line : diagnosis.lines()) {
    worst = std::max(worst, line.verdict);
    nlohmann::ordered_json entry = {
        {"verdict", nameOf(line.verdict)}, {"topic", line.topic}, {"id", line.id}, {"text", line.text}};
    if (!line.next.empty())
      entry["next"] = line.next;
    if (!line.place.empty())
      entry["place"] = line.place;
    lines.push_back(std::move(entry));
  }
  nlohmann::ordered_json root = {{"version", 1},
                                 {"verdict", nameOf(worst)},
                                 {"problems", diagnosis.count(Verdict::Problem)},
                                 {"warnings", diagnosis.count(Verdict::Warning)},
                                 {"lines", std::move(lines)}};
  // File names and variables may hold bytes that are not UTF-8.
  return root.dump(2, ' ', false, nlohmann::ordered_json::error_handler_t::replace) + "\n";
}

} // namespace devicerun::doctor

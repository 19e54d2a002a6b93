#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <cstdlib>
#include <nlohmann/json.hpp>
#include <set>

#include "analysis/study/study.h"
#include "engine/core/pattern.h"
#include "engine/facts/rank.h"

namespace paceline {

namespace {

constexpr std::size_t kShortestName = 2;
constexpr std::size_t kShortestJob = 5;  // a shorter number may be anything

bool is_word(char c) {
  return std::isalnum(static_cast<unsigned char>(c)) || c == '_' || c == '-';
}

// A character of a path, but '/'.
const std::string kPart = R"([!#-&*+\-.0-9=?-{}~])";
// Options of `paceline train` whose value is a place, also a relative one.
const std::string kPlaceOption =
    "(?<=--data[= ]|--stage[= ]|--cache-dir[= ]|--weights[= ]|--resume[= ]|--store[= ]|--record[= ]"
    "|--run-dir[= ]|--log-dir[= ])";

// "file:///a/b" is a path.
const std::pair<std::string, const char*> kFileUrl = {"file://", ""};
// Of a path, "/a", "~/a", "./a" or "../a", only the name at its end stays: not of what is within a
// word, a URL or a backend's name.
const std::pair<std::string, const char*> kPath = {
    "(?:" + kPlaceOption + "(?=/|" + kPart + R"()|(?<![\w/.-])(?=(?:\.{0,2}/|~/?))" + kPart + "))" +
        "(?:" + kPart + "*+/++(?=" + kPart + "))*+(" + kPart + "*+)/*+",
    "$1"};

// A host may be called as a backend is: of words with a meaning only paths are cut.
std::string without_paths(const std::string& text) {
  thread_local const Replacements paths = {kFileUrl, kPath};
  return paths(text);
}

std::string without_places(const std::string& text) {
  thread_local const Replacements places = {
      kFileUrl,
      {R"((?<![\w-])[\w-]++://[!#-;=?-~]*(?<![.,;:)|']))", "a URL"},
      kPath,
      {R"((?<![\w.-])[\w.-]++(?<=[\w-])(?:@[\w-][\w.-]*+)+)", "user"},
      {R"((?<![\w.-])\d{1,3}(?:\.\d{1,3}){3}(?![\w.-]))", "an address"},
      {R"((?i)(?<![\w-])job(?:_?id| id)?[ =:#]+\d(?:\d|_(?=\d))*+)", "job N"}};
  return places(text);
}

void replace_words(std::string& text, const std::string& word, const std::string& by) {
  for (std::size_t at = text.find(word); at != std::string::npos; at = text.find(word, at)) {
    const std::size_t end = at + word.size();
    const bool whole =
        (at == 0 || !is_word(text[at - 1])) && (end == text.size() || !is_word(text[end]));
    if (whole) text.replace(at, word.size(), by);
    at += whole ? by.size() : 1;
  }
}

void find_users(const std::string& text, std::set<std::string>& users) {
  thread_local const Pattern home(R"(/(?:home|users|Users)/([\w.-]{2,}))");
  for (auto found = home.find(text); found; found = home.find(text, found->group.end)) {
    users.insert(text.substr(found->group.begin, found->group.end - found->group.begin));
  }
}

template <typename Visitor>
void each_text(const Json& json, const Visitor& visit) {
  if (json.is_string()) return visit(json.get_ref<const std::string&>());
  if (!json.is_structured()) return;
  for (const auto& [key, child] : json.items()) each_text(child, visit);
}

template <typename Hide>
void hide_texts(Json& json, const Hide& hide) {
  if (json.is_string()) json = hide(json.get<std::string>());
  if (!json.is_structured()) return;
  for (auto& child : json) hide_texts(child, hide);
}

void hide_in_record(Json& json, const Disguise& hide) {
  for (const auto& [key, value] : json.items()) {
    if (key == "kind" || key == "status") continue;
    if (key == "parameters" || key == "point" || key == "layout") {
      hide_texts(value, without_paths);
    } else {
      hide_texts(value, hide);
    }
  }
}

// The last two parts: a point's folder and a record.
std::string short_place(const std::string& place) {
  std::size_t at = place.rfind('/');
  if (at == std::string::npos || at == 0) return place;
  at = place.rfind('/', at - 1);
  return at == std::string::npos ? place : place.substr(at + 1);
}

std::string with_short_place(std::string text, const std::string& place) {
  for (std::size_t at = text.find(place); at != std::string::npos && !place.empty();) {
    text.replace(at, place.size(), short_place(place));
    at = text.find(place, at + short_place(place).size());
  }
  return text;
}

void drop_places(Json& json) {
  if (const auto provenance = json.find("provenance");
      provenance != json.end() && provenance->is_object()) {
    provenance->erase("allocation");
    if (const auto screened = provenance->find("screened");
        screened != provenance->end() && screened->contains("slow")) {
      for (Json& part : (*screened)["slow"]) part = "a part";  // hosts, switches, PCI ids
      screened->erase("hosts");
    }
  }
  const auto gpus = json.find("gpus");
  if (gpus == json.end() || !gpus->is_array()) return;
  for (Json& gpu : *gpus) {
    if (!gpu.is_object()) continue;
    gpu.erase("uuid");
    gpu.erase("pci");
  }
}

}  // namespace

Disguise::Disguise(const std::vector<Record>& records) {
  std::set<std::string> hosts, users;
  for (const char* variable : {"USER", "LOGNAME", "SUDO_USER"}) {
    if (const char* name = std::getenv(variable)) users.insert(name);
  }
  for (const Record& record : records) {
    find_users(record.where(), users);
    each_text(record.json(), [&](const std::string& text) { find_users(text, users); });
    for (const RankFacts& rank : *record->each_rank) hosts.insert(rank.host);
    if (*record->straggler) hosts.insert((*record->straggler)->host);
    if (*record->ranks) {
      for (const RankOutlier& rank : (*record->ranks)->outliers) hosts.insert(rank.facts.host);
    }
    if (const auto& allocation = record->provenance.allocation) {
      hosts.insert(allocation->node);
      if (allocation->job.size() >= kShortestJob) names_.emplace_back(allocation->job, "N");
      for (const std::string& place : {allocation->cluster, allocation->nodes}) {
        names_.emplace_back(place, "cluster");
      }
    }
  }
  hosts.erase("");
  // Of "n0555.uni.edu" a text may have the domain alone.
  for (const std::string& host : hosts) {
    const std::size_t dot = host.find('.');
    if (dot != std::string::npos) names_.emplace_back(host.substr(dot + 1), "cluster");
  }
  std::size_t number = 0;
  for (const std::string& host : hosts) {
    const std::string alias = fmt::format("host-{}", ++number);
    names_.emplace_back(host, alias);
    const std::string shorter = host.substr(0, host.find('.'));
    if (shorter != host) names_.emplace_back(shorter, alias);
  }
  for (const std::string& user : users) names_.emplace_back(user, "user");
  std::erase_if(names_, [](const auto& name) { return name.first.size() < kShortestName; });
  std::stable_sort(names_.begin(), names_.end(),
                   [](const auto& a, const auto& b) { return a.first.size() > b.first.size(); });
  names_.erase(std::unique(names_.begin(), names_.end()), names_.end());
}

std::string Disguise::operator()(const std::string& text) const {
  std::string hidden = without_places(text);
  for (const auto& [name, alias] : names_) {
    if (hidden.find(name) != std::string::npos) replace_words(hidden, name, alias);
  }
  return hidden;
}

StoreContent anonymous(StoreContent content) {
  const Disguise hide(content.records);
  for (Record& record : content.records) {
    Json json = record.json();
    drop_places(json);
    hide_in_record(json, hide);
    record = Record(std::move(json), hide(short_place(record.where())));
  }
  for (Rejected& rejected : content.rejected) {
    rejected.reason = hide(with_short_place(rejected.reason, rejected.file.string()));
    rejected.file = rejected.file.filename();
  }
  return content;
}

}  // namespace paceline

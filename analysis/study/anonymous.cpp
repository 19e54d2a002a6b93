#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <cstdlib>
#include <nlohmann/json.hpp>
#include <set>
#include <string_view>

#include "analysis/study/study.h"
#include "engine/core/text.h"

namespace paceline {

namespace {

constexpr std::size_t kShortestName = 2;
constexpr std::size_t kShortestJob = 5;  // a shorter number may be anything

bool is_word(char c) {
  return std::isalnum(static_cast<unsigned char>(c)) || c == '_' || c == '-';
}

bool is_path_character(char c) {
  return std::isgraph(static_cast<unsigned char>(c)) &&
         std::string_view("'\"(),;:|<>").find(c) == std::string_view::npos;
}

bool is_url_character(char c) {
  return is_path_character(c) || std::string_view(":;()|,'").find(c) != std::string_view::npos;
}

// The end of "job 4711" at `at`; `at` where there is none.
std::size_t end_of_job(const std::string& text, std::size_t at) {
  const auto word = [&](std::string_view lower) {
    for (std::size_t k = 0; k < lower.size(); ++k) {
      const bool same = at + k < text.size() &&
                        std::tolower(static_cast<unsigned char>(text[at + k])) == lower[k];
      if (!same) return std::size_t{0};
    }
    return lower.size();
  };
  const auto is_digit = [&](std::size_t k) {
    return k < text.size() && std::isdigit(static_cast<unsigned char>(text[k]));
  };
  std::size_t end = at + word("job");
  if (end == at) return at;
  for (const std::string_view suffix : {"id", "_id", " id"}) {
    if (word("job" + std::string(suffix)) > 0) end = at + 3 + suffix.size();
  }
  const std::size_t gap = end;
  while (end < text.size() && std::string_view(" =:#").find(text[end]) != std::string_view::npos) {
    ++end;
  }
  if (end == gap || !is_digit(end)) return at;
  while (is_digit(end) || (end < text.size() && text[end] == '_' && is_digit(end + 1))) ++end;
  return end;
}

// Options of `paceline train` whose value is a place, also a relative one.
constexpr std::string_view kPlaceOptions[] = {"--data",    "--stage",   "--cache-dir",
                                              "--weights", "--resume",  "--store",
                                              "--record",  "--run-dir", "--log-dir"};

bool is_value_of_a_place(const std::string& text, std::size_t at) {
  return std::any_of(std::begin(kPlaceOptions), std::end(kPlaceOptions), [&](auto option) {
    return at > option.size() && text.compare(at - option.size() - 1, option.size(), option) == 0 &&
           (text[at - 1] == '=' || text[at - 1] == ' ');
  });
}

// Whether a path, "/a", "~/a", "./a" or "../a", begins at `at`: not within a word, a URL or a
// backend's name.
bool begins_path(const std::string& text, std::size_t at) {
  const auto begins = [&](std::string_view prefix) {
    const std::size_t next = at + prefix.size();
    return text.compare(at, prefix.size(), prefix) == 0 && next < text.size() &&
           text[next] != '/' && is_path_character(text[next]);
  };
  if (is_value_of_a_place(text, at) && is_path_character(text[at])) return true;
  if (!begins("/") && !begins("~") && !begins("~/") && !begins("./") && !begins("../"))
    return false;
  if (at == 0) return true;
  const char before = text[at - 1];
  return before != '/' && before != '.' && !is_word(before);
}

// "file:///a/b" is a path.
std::string without_file_urls(std::string text) {
  for (std::size_t at = text.find("file://"); at != std::string::npos; at = text.find("file://")) {
    text.erase(at, std::string_view("file://").size());
  }
  return text;
}

// "/scratch/alice/quick/1.1.json" becomes "1.1.json".
std::string without_paths(const std::string& text) {
  std::string result;
  for (std::size_t i = 0; i < text.size();) {
    if (!begins_path(text, i)) {
      result += text[i++];
      continue;
    }
    std::size_t end = i;
    while (end < text.size() && is_path_character(text[end])) ++end;
    std::string path = text.substr(i, end - i);
    while (path.size() > 1 && path.back() == '/') path.pop_back();
    result += path.substr(path.rfind('/') + 1);
    i = end;
  }
  return result;
}

// "https://uni.edu/~alice" becomes "a URL".
std::string without_urls(const std::string& text) {
  std::string result;
  for (std::size_t i = 0; i < text.size();) {
    const bool begins = text.compare(i, 3, "://") == 0 && !result.empty() && is_word(result.back());
    if (!begins) {
      result += text[i++];
      continue;
    }
    while (!result.empty() && is_word(result.back())) result.pop_back();
    while (i < text.size() && is_url_character(text[i])) ++i;
    while (std::string_view(".,;:)|'").find(text[i - 1]) != std::string_view::npos) --i;
    result += "a URL";
  }
  return result;
}

// "job 4711_3" and "JobId=4711" become "job N".
std::string without_jobs(const std::string& text) {
  std::string result;
  for (std::size_t i = 0; i < text.size();) {
    const std::size_t end = i > 0 && is_word(text[i - 1]) ? i : end_of_job(text, i);
    if (end == i) {
      result += text[i++];
      continue;
    }
    result += "job N";
    i = end;
  }
  return result;
}

// "alice@cluster.org" becomes "user".
std::string without_addresses(const std::string& text) {
  std::string result;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const bool is_address = text[i] == '@' && !result.empty() && is_word(result.back()) &&
                            i + 1 < text.size() && is_word(text[i + 1]);
    if (!is_address) {
      result += text[i];
      continue;
    }
    while (!result.empty() && (is_word(result.back()) || result.back() == '.')) result.pop_back();
    while (i + 1 < text.size() && (is_word(text[i + 1]) || text[i + 1] == '.')) ++i;
    result += "user";
  }
  return result;
}

// The end of "10.0.0.1" at `at`; `at` where there is none.
std::size_t end_of_address(const std::string& text, std::size_t at) {
  if (at > 0 && (is_word(text[at - 1]) || text[at - 1] == '.')) return at;
  std::size_t end = at;
  for (int part = 0; part < 4; ++part) {
    if (part > 0 && (end >= text.size() || text[end++] != '.')) return at;
    const std::size_t begin = end;
    while (end < text.size() && end - begin < 3 &&
           std::isdigit(static_cast<unsigned char>(text[end]))) {
      ++end;
    }
    if (end == begin) return at;
  }
  return end < text.size() && (is_word(text[end]) || text[end] == '.') ? at : end;
}

// "rank 0 at 10.0.0.1" becomes "rank 0 at an address".
std::string without_numbers_of_hosts(const std::string& text) {
  std::string result;
  for (std::size_t i = 0; i < text.size();) {
    const std::size_t end = end_of_address(text, i);
    if (end == i) {
      result += text[i++];
      continue;
    }
    result += "an address";
    i = end;
  }
  return result;
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

// Of homes and scratch places: the part behind "/home/", "/users/", ...
void find_users(const std::string& text, std::set<std::string>& users) {
  for (const char* parent : {"/home/", "/users/", "/Users/"}) {
    for (std::size_t at = text.find(parent); at != std::string::npos;
         at = text.find(parent, at + 1)) {
      const std::size_t begin = at + std::string_view(parent).size();
      std::size_t end = begin;
      while (end < text.size() && (is_word(text[end]) || text[end] == '.')) ++end;
      if (end - begin >= kShortestName) users.insert(text.substr(begin, end - begin));
    }
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

// A host may be called as a backend is: of words with a meaning only paths are cut.
void hide_in_record(Json& json, const Disguise& hide) {
  for (const auto& [key, value] : json.items()) {
    if (key == "kind" || key == "status") continue;
    if (key == "parameters" || key == "point" || key == "layout") {
      hide_texts(value,
                 [](const std::string& text) { return without_paths(without_file_urls(text)); });
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

const Json* find(const Json& json, const char* pointer) {
  const Json::json_pointer path(pointer);
  return json.contains(path) ? &json.at(path) : nullptr;
}

void drop_places(Json& json) {
  if (const auto provenance = json.find("provenance");
      provenance != json.end() && provenance->is_object()) {
    provenance->erase("allocation");
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
    if (const Json* names = find(record.json(), "/provenance/hosts")) {
      each_text(*names, [&](const std::string& host) { hosts.insert(host); });
    }
    if (const Json* outliers = find(record.json(), "/ranks/outliers")) {
      for (const Json& rank : *outliers) hosts.insert(rank.value("host", ""));
    }
    for (const char* pointer : {"/straggler/host", "/provenance/allocation/node"}) {
      if (const Json* name = find(record.json(), pointer)) {
        each_text(*name, [&](const std::string& host) { hosts.insert(host); });
      }
    }
    if (const Json* job = find(record.json(), "/provenance/allocation/job")) {
      each_text(*job, [&](const std::string& number) {
        if (number.size() >= kShortestJob) names_.emplace_back(number, "N");
      });
    }
    for (const char* pointer : {"/provenance/allocation/cluster", "/provenance/allocation/nodes"}) {
      if (const Json* name = find(record.json(), pointer)) {
        each_text(*name, [&](const std::string& place) { names_.emplace_back(place, "cluster"); });
      }
    }
  }
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
  std::string hidden = without_numbers_of_hosts(
      without_addresses(without_paths(without_urls(without_file_urls(text)))));
  hidden = without_jobs(hidden);
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

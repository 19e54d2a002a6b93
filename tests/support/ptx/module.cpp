#include "tests/support/ptx/module.h"

#include <cxxabi.h>
#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <cstdlib>
#include <memory>
#include <set>

#include "engine/core/error.h"

namespace paceline::ptx {

namespace {

bool is_space(char c) {
  return std::isspace(static_cast<unsigned char>(c)) != 0;
}

std::string trimmed(std::string_view text) {
  while (!text.empty() && is_space(text.front())) text.remove_prefix(1);
  while (!text.empty() && is_space(text.back())) text.remove_suffix(1);
  return std::string(text);
}

std::vector<std::string> split(std::string_view text, char by) {
  std::vector<std::string> parts;
  int depth = 0;
  std::size_t begin = 0;
  for (std::size_t i = 0; i <= text.size(); ++i) {
    const char c = i < text.size() ? text[i] : by;
    if (c == '{' || c == '[') ++depth;
    if (c == '}' || c == ']') --depth;
    if (i < text.size() && (c != by || depth > 0)) continue;
    const std::string part = trimmed(text.substr(begin, i - begin));
    if (!part.empty()) parts.push_back(part);
    begin = i + 1;
  }
  return parts;
}

// Without what says how it is rounded where it is rounded as C++ does, or what a cache should do.
std::string plain_name(const std::string& instruction) {
  static const std::set<std::string> kMeaningless = {"rn", "approx", "ftz", "uni", "nc", "weak"};
  std::string name;
  for (const std::string& part : split(instruction, '.')) {
    if (kMeaningless.count(part) > 0 || part.find("::") != std::string::npos) continue;
    name += (name.empty() ? "" : ".") + part;
  }
  return name;
}

}  // namespace

std::string readable_name(const char* mangled) {
  int status = 0;
  const std::unique_ptr<char, void (*)(void*)> text(
      abi::__cxa_demangle(mangled, nullptr, nullptr, &status), &std::free);
  if (!text) return mangled;
  const std::string whole = text.get();
  const auto begin = whole.find("entry<"), end = whole.rfind(">(");
  if (begin == std::string::npos || end == std::string::npos) return whole;
  return trimmed(std::string_view(whole).substr(begin + 6, end - begin - 6));
}

// One pass over the text, a statement at a time.
class PtxReader {
 public:
  PtxReader(std::string_view text, PtxModule& module) : text_(text), module_(module) {
    while (skip_to_entry()) read_entry();
  }

 private:
  [[noreturn]] void fail(const std::string& what) const {
    throw Error(ErrorKind::input, what, fmt::format("line {} of PTX", line_),
                "tests/support/ptx reads what nvcc writes for kernels/table_*.cu");
  }
  char peek() const {
    if (at_ >= text_.size()) fail("ends in the middle of a kernel");
    return text_[at_];
  }
  void step() {
    if (text_[at_] == '\n') ++line_;
    ++at_;
  }
  void skip_blanks() {
    while (at_ < text_.size()) {
      if (text_.substr(at_, 2) == "//") {
        while (at_ < text_.size() && text_[at_] != '\n') ++at_;
      } else if (is_space(text_[at_])) {
        step();
      } else {
        return;
      }
    }
  }
  std::string read_until(std::string_view ends) {
    const std::size_t begin = at_;
    while (ends.find(peek()) == std::string_view::npos) step();
    const std::string text(text_.substr(begin, at_ - begin));
    step();
    return trimmed(text);
  }
  bool skip_to_entry() {
    while (at_ < text_.size()) {
      skip_blanks();
      if (text_.substr(at_, 7) == ".entry ") {
        at_ += 7;
        return true;
      }
      while (at_ < text_.size() && !is_space(text_[at_])) ++at_;
    }
    return false;
  }

  void read_entry() {
    kernel_ = PtxKernel{};
    slots_ = {{"%tid.x", PtxKernel::thread},
              {"%ntid.x", PtxKernel::threads},
              {"%ctaid.x", PtxKernel::block},
              {"%nctaid.x", PtxKernel::blocks}};
    labels_.clear();
    jumps_.clear();
    kernel_.name = readable_name(read_until("(").c_str());
    read_parameter(read_until(")"));
    read_until("{");  // and what stands before, as .maxntid
    for (int depth = 1; depth > 0;) {
      skip_blanks();
      if (peek() == '{' || peek() == '}') {  // a scope
        depth += peek() == '{' ? 1 : -1;
        step();
      } else {
        read_statement();
      }
    }
    read_instruction("ret");
    for (const auto& [instruction, label] : jumps_) {
      const auto found = labels_.find(label);
      if (found == labels_.end()) fail("no label " + label);
      kernel_.code[instruction].target = found->second;
    }
    module_.kernels_[kernel_.name] = std::move(kernel_);
  }

  // One, a struct: ".param .align 8 .b8 NAME[48]". Its address is 0 within its space, as that of
  // shared and local memory is.
  void read_parameter(const std::string& text) {
    if (text.empty()) return;
    if (text.find(',') != std::string::npos) fail("a kernel with several parameters");
    kernel_.parameter_bytes = declare_bytes(text);
  }
  std::size_t declare_bytes(const std::string& text) {
    const auto open = text.find('['), begin = text.find_last_of(" \t", open) + 1;
    if (open == std::string::npos) fail("not an array of bytes: " + text);
    constant(text.substr(begin, open - begin), 0);
    return std::strtoull(text.c_str() + open + 1, nullptr, 10);
  }

  void read_statement() {
    const std::size_t begin = at_;
    while (peek() != ';' && peek() != ':' && !is_space(peek())) ++at_;
    if (peek() == ':') {
      labels_[std::string(text_.substr(begin, at_ - begin))] = size();
      step();
      return;
    }
    at_ = begin;
    const std::uint32_t line = line_;
    std::string statement = read_until(";");
    if (statement.starts_with(".local")) {
      kernel_.local_bytes = declare_bytes(statement);
    } else if (!statement.starts_with('.')) {
      read_instruction(statement);
      kernel_.code.back().line = line;
    }
  }

  void read_instruction(std::string statement) {
    PtxInstruction i;
    if (statement.starts_with('@')) {
      const auto end = statement.find_first_of(" \t");
      i.guard_is = statement[1] != '!';
      i.guard = slot(statement.substr(i.guard_is ? 1 : 2, end - (i.guard_is ? 1 : 2)));
      statement = trimmed(std::string_view(statement).substr(end));
    }
    const auto end = std::min(statement.find_first_of(" \t"), statement.size());
    const std::string name = statement.substr(0, end);
    const std::vector<std::string> operands = split(std::string_view(statement).substr(end), ',');
    std::string known_as = plain_name(name);
    if (known_as == "bra") {
      jumps_.emplace_back(size(), operands.at(0));
    } else if (known_as == "bar.sync" || known_as == "barrier.sync") {
      kernel_.waits = true;
    } else if (!known_as.starts_with("membar") && !known_as.starts_with("fence")) {
      read_operands(operands, known_as, i);
    }
    i.step = next_step(known_as);
    i.name = name_index(name);
    kernel_.code.push_back(i);
  }

  // The first is written, but by stores; addresses come before other sources.
  void read_operands(const std::vector<std::string>& operands, std::string& name,
                     PtxInstruction& i) {
    const bool stores = name.starts_with("st.");
    std::size_t to = 0, from = 0;
    const auto add = [&](const std::string& text, bool written) {
      if (written ? to == i.to.size() : from == i.from.size()) fail("too many operands: " + text);
      written ? i.to[to++] = slot(text) : i.from[from++] = slot(text);
    };
    for (std::size_t k = 0; k < operands.size(); ++k) {
      const std::string& text = operands[k];
      const bool written = k == 0 && !stores;
      if (text.front() == '[') {
        add(address(text, i), false);
      } else if (text.front() == '{') {
        const auto parts = split(std::string_view(text).substr(1, text.size() - 2), ',');
        for (const std::string& part : parts) add(part, written);
        i.parts = static_cast<std::uint32_t>(parts.size());
        if (name.starts_with("mov.")) name.insert(3, ".parts");
      } else {
        add(text, written);
      }
    }
  }
  // "[%rd1+-8]"
  std::string address(const std::string& text, PtxInstruction& i) const {
    const auto plus = text.find('+');
    if (plus == std::string::npos) return text.substr(1, text.size() - 2);
    i.offset = static_cast<std::int32_t>(std::strtol(text.c_str() + plus + 1, nullptr, 10));
    return text.substr(1, plus - 1);
  }

  std::uint32_t slot(const std::string& text) {
    const auto found = slots_.find(text);
    if (found != slots_.end()) return found->second;
    if (text.starts_with("0f") || text.starts_with("0d")) {
      return constant(text, std::strtoull(text.c_str() + 2, nullptr, 16));
    }
    if (text.front() == '-' || std::isdigit(static_cast<unsigned char>(text.front())) != 0) {
      return constant(text, text.front() == '-'
                                ? static_cast<std::uint64_t>(std::strtoll(text.c_str(), nullptr, 0))
                                : std::strtoull(text.c_str(), nullptr, 0));
    }
    if (text.front() != '%') return constant(text, 0);  // the address of dynamic shared memory
    return slots_[text] = static_cast<std::uint32_t>(kernel_.slots++);
  }
  std::uint32_t constant(const std::string& text, std::uint64_t value) {
    const auto slot = static_cast<std::uint32_t>(kernel_.slots++);
    kernel_.constants.emplace_back(slot, value);
    return slots_[text] = slot;
  }
  std::uint32_t name_index(const std::string& name) {
    const auto next = static_cast<std::uint32_t>(module_.names_.size());
    const auto [place, fresh] = names_.emplace(name, next);
    if (fresh) module_.names_.push_back(name);
    return place->second;
  }
  std::uint32_t size() const { return static_cast<std::uint32_t>(kernel_.code.size()); }

  std::string_view text_;
  PtxModule& module_;
  std::size_t at_ = 0;
  std::uint32_t line_ = 1;
  PtxKernel kernel_;
  std::map<std::string, std::uint32_t> slots_, labels_, names_;
  std::vector<std::pair<std::uint32_t, std::string>> jumps_;
};

PtxModule::PtxModule(std::string_view text) {
  PtxReader(text, *this);
}

const PtxKernel* PtxModule::find(const std::string& name) const {
  const auto found = kernels_.find(name);
  return found == kernels_.end() ? nullptr : &found->second;
}

}  // namespace paceline::ptx

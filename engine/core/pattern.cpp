#include "engine/core/pattern.h"

#include <fmt/format.h>
#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>

#include <algorithm>
#include <array>
#include <stdexcept>

#include "engine/core/error.h"

namespace paceline {

namespace {

constexpr std::uint32_t kMatchLimit = 10'000'000;

std::string error_message(int code) {
  std::array<unsigned char, 256> text{};
  pcre2_get_error_message(code, text.data(), text.size());
  return reinterpret_cast<const char*>(text.data());
}

struct Free {
  void operator()(pcre2_code* code) const { pcre2_code_free(code); }
  void operator()(pcre2_match_data* data) const { pcre2_match_data_free(data); }
  void operator()(pcre2_match_context* context) const { pcre2_match_context_free(context); }
  void operator()(pcre2_jit_stack* stack) const { pcre2_jit_stack_free(stack); }
};

// A line of megabytes needs more than the 32 KB of the machine's stack.
pcre2_jit_stack* stack_of_thread(void*) {
  constexpr std::size_t kLeast = 32 << 10, kMost = 256 << 20;
  thread_local const std::unique_ptr<pcre2_jit_stack, Free> stack(
      pcre2_jit_stack_create(kLeast, kMost, nullptr));
  return stack.get();
}

PCRE2_SPTR units(std::string_view text) {
  return reinterpret_cast<PCRE2_SPTR>(text.data());
}

}  // namespace

struct Pattern::Engine {
  std::unique_ptr<pcre2_code, Free> code;
  std::unique_ptr<pcre2_match_data, Free> match;
  std::unique_ptr<pcre2_match_context, Free> context;

  // Each place where a match could begin counts.
  pcre2_match_context* limited(std::size_t bytes) const {
    pcre2_set_match_limit(
        context.get(),
        kMatchLimit + static_cast<std::uint32_t>(std::min<std::size_t>(bytes, 4'000'000'000)));
    return context.get();
  }
};

Pattern::Pattern(std::string_view text, Text kind) : engine_(std::make_unique<Engine>()) {
  int code = 0;
  PCRE2_SIZE offset = 0;
  Engine& engine = *engine_;
  engine.code.reset(pcre2_compile(units(text), text.size(),
                                  kind == Text::utf8 ? PCRE2_UTF | PCRE2_MATCH_INVALID_UTF : 0,
                                  &code, &offset, nullptr));
  if (!engine.code) {
    throw std::invalid_argument(fmt::format("{} at character {}", error_message(code), offset + 1));
  }
  pcre2_jit_compile(engine.code.get(), PCRE2_JIT_COMPLETE);
  engine.match.reset(pcre2_match_data_create_from_pattern(engine.code.get(), nullptr));
  engine.context.reset(pcre2_match_context_create(nullptr));
  pcre2_jit_stack_assign(engine.context.get(), stack_of_thread, nullptr);
}

Pattern::~Pattern() = default;
Pattern::Pattern(Pattern&&) noexcept = default;

int Pattern::groups() const {
  std::uint32_t groups = 0;
  pcre2_pattern_info(engine_->code.get(), PCRE2_INFO_CAPTURECOUNT, &groups);
  return static_cast<int>(groups);
}

std::optional<Pattern::Match> Pattern::find(std::string_view text, std::size_t from) const {
  const int count = pcre2_match(engine_->code.get(), units(text), text.size(), from, 0,
                                engine_->match.get(), engine_->limited(text.size()));
  if (count == PCRE2_ERROR_NOMATCH) return std::nullopt;
  if (count < 0) throw internal_error(error_message(count));
  const PCRE2_SIZE* at = pcre2_get_ovector_pointer(engine_->match.get());
  const Span whole{at[0], at[1]};
  return Match{whole, count < 2 ? Span{at[0], at[0]} : Span{at[2], at[3]}};
}

std::optional<std::vector<std::string>> Pattern::match(std::string_view text) const {
  const int count = pcre2_match(engine_->code.get(), units(text), text.size(), 0,
                                PCRE2_ANCHORED | PCRE2_ENDANCHORED, engine_->match.get(),
                                engine_->limited(text.size()));
  if (count == PCRE2_ERROR_NOMATCH) return std::nullopt;
  if (count < 0) throw internal_error(error_message(count));
  const PCRE2_SIZE* at = pcre2_get_ovector_pointer(engine_->match.get());
  std::vector<std::string> parts(static_cast<std::size_t>(groups()) + 1);
  for (std::size_t i = 0; i < static_cast<std::size_t>(count); ++i) {
    if (at[2 * i] != PCRE2_UNSET) parts[i] = text.substr(at[2 * i], at[2 * i + 1] - at[2 * i]);
  }
  return parts;
}

std::string Pattern::replace(std::string_view text, std::string_view by) const {
  std::string result(text.size() + 64, '\0');
  for (;;) {
    PCRE2_SIZE size = result.size();
    const int count =
        pcre2_substitute(engine_->code.get(), units(text), text.size(), 0,
                         PCRE2_SUBSTITUTE_GLOBAL | PCRE2_SUBSTITUTE_OVERFLOW_LENGTH,
                         engine_->match.get(), engine_->limited(text.size()), units(by), by.size(),
                         reinterpret_cast<PCRE2_UCHAR*>(result.data()), &size);
    const bool has_room = count != PCRE2_ERROR_NOMEMORY;
    if (count < 0 && has_room) throw internal_error(error_message(count));
    result.resize(size);
    if (has_room) return result;
  }
}

Replacements::Replacements(std::initializer_list<std::pair<std::string, const char*>> table) {
  for (const auto& [pattern, by] : table) table_.emplace_back(Pattern(pattern), by);
}

std::string Replacements::operator()(std::string text) const {
  for (const auto& [pattern, by] : table_) text = pattern.replace(text, by);
  return text;
}

}  // namespace paceline

// Documents as plain text and as Markdown.
#include "engine/core/text.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <span>

#include "analysis/document/document.h"
#include "engine/core/output.h"

namespace paceline {

namespace {

// Characters, not bytes: "±" is two bytes of UTF-8.
std::string padded(const std::string& text, std::size_t width, bool left) {
  const std::string space(width - std::min(width, display_width(text)), ' ');
  return left ? text + space : space + text;
}

// Two lines, so that columns are no wider than their numbers.
std::vector<std::string> heading_lines(const std::string& heading) {
  const std::size_t end = heading.find('\n');
  if (end == std::string::npos) return {"", heading};
  return {heading.substr(0, end), heading.substr(end + 1)};
}

// From its interval or unit on, which stands behind the value.
std::string read_tail(const std::string& text) {
  const std::size_t at = std::min({text.find(" ±"), text.find(" ["), text.find(" %")});
  return at == std::string::npos ? "" : text.substr(at);
}

// The table's texts and how wide each column is. Values and their intervals are aligned apart:
// "10.30 ±0.2" stands under " 9.20 ±0.1".
class Grid {
 public:
  // At most `limit` columns wide; 0: any width.
  Grid(const Table& table, std::size_t limit, bool on_screen)
      : table_(table), limit_(limit), visible_(visible_part(table, on_screen)) {
    if (on_screen) shorten_names();
    if (on_screen && !table.folded.empty()) notes_.push_back(table.folded);
    if (!visible_.alike.empty()) notes_.push_back("in all rows: " + visible_.alike);
    for (std::size_t k = 0; k < table.columns.size(); ++k) {
      std::size_t tail = 0, width = 0;
      for (const std::size_t i : visible_.rows) {
        tail = std::max(tail, display_width(read_tail(printable(table.rows[i][k].text))));
      }
      tails_.push_back(tail);
      for (const std::string& line : heading_lines(table.columns[k].heading)) {
        width = std::max(width, display_width(line));
      }
      for (const std::size_t i : visible_.rows) width = std::max(width, display_width(cell(i, k)));
      widths_.push_back(width);
    }
    if (limit > 0) drop_details();
  }

  std::string text(const TextStyle& style) const {
    std::string text;
    for (const auto& block : split_blocks()) {
      if (!text.empty()) text += '\n';
      text += block_text(block, style);
    }
    return text;
  }

  // What is not in the columns.
  const std::vector<std::string>& notes() const { return notes_; }
  std::size_t hidden() const { return visible_.hidden; }

 private:
  std::size_t width(const std::vector<std::size_t>& columns) const {
    std::size_t width = 0;
    for (const std::size_t k : columns) width += widths_[k] + (width > 0 ? 2 : 0);
    return width;
  }

  void drop_details() {
    std::vector<std::string> left_out;
    while (width(visible_.columns) > limit_) {
      const auto most = visible_.least_needed(table_);
      if (table_.columns[*most].detail == 0) break;
      left_out.push_back(one_line(table_.columns[*most].heading));
      visible_.columns.erase(most);
    }
    if (left_out.empty()) return;
    notes_.push_back(fmt::format("not shown at {} columns: {}{}", limit_, join(left_out, ", "),
                                 visible_.hidden > 0 ? ""
                                                     : "; a wider terminal, COLUMNS=300 or "
                                                       "--format md shows all"));
  }

  // What is still too wide is split; each block names its rows.
  std::vector<std::vector<std::size_t>> split_blocks() const {
    std::vector<std::vector<std::size_t>> blocks(1);
    for (const std::size_t k : visible_.columns) {
      std::vector<std::size_t> longer = blocks.back();
      longer.push_back(k);
      if (limit_ > 0 && longer.size() > table_.naming + 1 && width(longer) > limit_) {
        const auto names = visible_.columns.begin();
        blocks.emplace_back(names, names + static_cast<std::ptrdiff_t>(table_.naming)).push_back(k);
      } else {
        blocks.back() = std::move(longer);
      }
    }
    return blocks;
  }

  std::string block_text(const std::vector<std::size_t>& columns, const TextStyle& style) const {
    const auto line = [&](const std::function<std::string(std::size_t)>& part) {
      std::string text;
      for (const std::size_t k : columns) {
        if (k != columns.front()) text += "  ";
        text += padded(part(k), widths_[k], table_.columns[k].is_text);
      }
      return text.substr(0, text.find_last_not_of(' ') + 1);
    };
    std::string text;
    for (const std::size_t i : {0, 1}) {
      const std::string headings =
          line([&](std::size_t k) { return heading_lines(table_.columns[k].heading)[i]; });
      if (headings.empty()) continue;
      text += style.colours ? kBold + headings + kPlain + '\n' : headings + '\n';
    }
    text += std::string(width(columns), '-') + '\n';
    for (const std::size_t i : visible_.rows) {
      text += line([&](std::size_t k) { return cell(i, k); }) + '\n';
    }
    return text;
  }

  std::string cell(std::size_t i, std::size_t k) const {
    const std::string text = printable(table_.rows[i][k].text);
    if (table_.columns[k].is_text) return text;
    if (text.empty()) return padded("-", 1 + tails_[k], true);
    const std::string tail = read_tail(text);
    return text.substr(0, text.size() - tail.size()) + padded(tail, tails_[k], true);
  }

  // What all rows share is said once.
  void shorten_names() {
    if (visible_.rows.size() < 2) return;
    const bool is_subject = table_.columns[0].key == "subject";  // "mnist-cnn gpus=2,backend=mpi"
    if (!is_subject && table_.columns[0].key != "point") return;
    std::vector<std::vector<std::string>> names;
    for (const std::size_t i : visible_.rows) {
      const std::string& name = table_.rows[i][0].text;
      names.push_back(is_subject ? split_at(escaped(name, {{' ', ","}}), ",")
                                 : split_at(name, ", "));
    }
    std::vector<std::string> shared = names.front();
    std::erase_if(shared, [&](const std::string& part) {
      return std::ranges::any_of(
          names, [&](const auto& name) { return std::ranges::count(name, part) != 1; });
    });
    const auto is_all = [&](const auto& name) { return name.size() == shared.size(); };
    if (shared.empty() || std::ranges::any_of(names, is_all)) return;
    for (std::size_t k = 0; k < names.size(); ++k) {
      std::erase_if(names[k],
                    [&](const auto& part) { return std::ranges::count(shared, part) > 0; });
      for (std::string& part : names[k]) {
        if (part.starts_with("backend=")) part = part.substr(part.find('=') + 1);
      }
      table_.rows[visible_.rows[k]][0].text = join(names[k], is_subject ? "," : ", ");
    }
    visible_.alike = join(shared, ", ") + (visible_.alike.empty() ? "" : ", ") + visible_.alike;
  }

  static std::vector<std::string> split_at(const std::string& name, std::string_view separator) {
    std::vector<std::string> parts;
    for (std::size_t at = 0, end = 0; end != std::string::npos; at = end + separator.size()) {
      end = name.find(separator, at);
      parts.push_back(name.substr(at, end - at));
    }
    return parts;
  }

  Table table_;
  std::size_t limit_;
  VisibleTable visible_;
  std::vector<std::size_t> widths_, tails_;
  std::vector<std::string> notes_;
};

// Paragraphs with an empty line between them.
class Paragraphs {
 public:
  Paragraphs& add(const std::string& paragraph) {
    if (!paragraph.empty()) text_ += (text_.empty() ? "" : "\n") + paragraph;
    return *this;
  }
  const std::string& text() const { return text_; }

 private:
  std::string text_;
};

class TextWriter {
 public:
  explicit TextWriter(const TextStyle& style) : style_(style) {}

  std::string format(const Document& document) {
    std::string head = bold(document.title);
    for (const std::string& line : document.lead) head += wrapped(line, style_.width);
    for (const std::string& warning : all_warnings(document)) head += bold("Warning: " + warning);
    all_.add(head);
    is_screen_ = !style_.details && document.is_brief;
    const auto tables = std::ranges::count_if(document.sections, [](const Section& each) {
      return each.shown == Visibility::always && !each.title.empty();
    });
    const Paragraphs top = all_;
    for (const Section& section : document.sections) add(section);
    if (is_screen_ && tables > 1 && count_lines(all_.text()) > kMostLines) {
      // As many tables as fit, and of the others the answers.
      for (std::size_t whole = document.sections.size(); whole-- > 0;) {
        all_ = top;
        const std::span all(document.sections);
        const std::string others = summaries(all.subspan(whole));
        budget_ = kMostLines - kRestLines - count_lines(others);
        for (const Section& section : all.first(whole)) add(section);
        if (whole == 0 || count_lines(all_.text()) <= budget_) {
          all_.add(others);
          break;
        }
      }
      return all_.add("--only KEY=VALUE shows one table, --verbose all of them\n").text();
    }
    explains_ = explains_ || !document.notes.empty();
    if (is_screen_) return all_.add(rest()).text();
    return all_.add(list({document.notes.begin(), document.notes.end()})).text();
  }

 private:
  void add(const Section& section) {
    explains_ = explains_ || !section.notes.empty();
    const bool has_table = !section.table.rows.empty() && section.table.in_text;
    hidden_tables_ += has_table && section.shown == Visibility::in_detail ? 1 : 0;
    if (section.shown > (style_.details ? Visibility::in_detail : Visibility::always)) return;
    std::string head = bold(section.title);
    if (!section.headline.empty()) head += wrapped(section.headline, style_.width);
    all_.add(head);
    const Grid grid(section.table, style_.terminal_width, is_screen_);
    if (has_table) all_.add(grid.text(style_));
    std::vector<Statement> findings =
        is_screen_ ? first_findings(section.findings) : section.findings;
    if (has_table) hidden_columns_ += grid.hidden();
    std::vector<std::string> notes = has_table ? grid.notes() : std::vector<std::string>();
    std::ranges::copy(is_screen_ ? section.caveats : all_notes(section), std::back_inserter(notes));
    if (is_screen_) {
      const std::ptrdiff_t lines = count_lines(all_.text() + list({notes.begin(), notes.end()}));
      while (findings.size() > (has_table ? 0U : 1U) &&
             findings.back().on_screen == OnScreen::first &&
             lines + count_lines(list(findings)) > budget_) {
        findings.pop_back();
      }
    }
    hidden_findings_ += section.findings.size() - findings.size();
    if (is_screen_) findings.insert(findings.begin(), notes.begin(), notes.end());
    all_.add(list(findings));
    for (const Section& part : section.parts) add(part);
    if (!is_screen_) all_.add(list({notes.begin(), notes.end()}));
  }

  // The answer of each of many tables.
  std::string summaries(std::span<const Section> sections) const {
    std::vector<Statement> answers;
    for (const Section& each : sections) {
      if (each.shown != Visibility::always) continue;
      const std::string answer = !each.headline.empty()  ? each.headline
                                 : each.findings.empty() ? "no answer"
                                                         : each.findings.front().text;
      std::vector<std::string> changes = each.caveats;  // what the answer is read by
      for (const Statement& finding : each.findings) {
        if (finding.on_screen == OnScreen::always && finding.text != answer) {
          changes.push_back(finding.text);
        }
      }
      answers.emplace_back(each.title + ": " + answer, changes);
    }
    const std::size_t all = answers.size();
    while (answers.size() > 1 &&
           count_lines(all_.text() + list(answers)) >= kMostLines - kRestLines)
      answers.pop_back();
    if (all > answers.size()) {
      answers.emplace_back("and " +
                           counted(static_cast<double>(all - answers.size()), "more table"));
    }
    return list(answers);
  }

  // What a screen leaves out.
  std::string rest() const {
    std::vector<std::string> parts;
    if (hidden_tables_ > 0) parts.push_back(counted(hidden_tables_, "more table"));
    if (hidden_findings_ > 0) parts.push_back(counted(hidden_findings_, "more finding"));
    if (hidden_columns_ > 0) parts.push_back(counted(hidden_columns_, "more column"));
    if (explains_) parts.emplace_back("what each number is");
    return parts.empty() ? "" : wrapped("--verbose has " + join(parts, ", "), style_.width);
  }

  std::string bold(const std::string& sentence) const {
    if (sentence.empty()) return "";
    std::string lines = wrapped(sentence, style_.width);
    if (!style_.colours) return lines;
    lines.pop_back();
    return kBold + lines + kPlain + '\n';
  }

  std::string list(const std::vector<Statement>& statements) const {
    std::string text;
    for (const Statement& each : statements) {
      text += wrapped(each.text, style_.width, "  - ", 4);
      for (const std::string& detail : each.details) {
        text += wrapped(detail, style_.width, "      - ", 8);
      }
    }
    return text;
  }

  static std::ptrdiff_t count_lines(const std::string& text) {
    return std::ranges::count(text, '\n');
  }

  // Of a screen, with the empty lines around what it leaves out.
  static constexpr std::ptrdiff_t kMostLines = 30, kRestLines = 3;
  std::ptrdiff_t budget_ = kMostLines - kRestLines;

  const TextStyle& style_;
  bool is_screen_ = false, explains_ = false;
  std::size_t hidden_tables_ = 0, hidden_findings_ = 0, hidden_columns_ = 0;
  Paragraphs all_;
};

std::string markdown_table(const Table& table) {
  std::string headings = "|", rule = "|", rows;
  const VisibleTable visible = visible_part(table);
  for (const std::size_t k : visible.columns) {
    const Column& column = table.columns[k];
    headings += fmt::format(" {} |", markdown_text(one_line(column.heading)));
    rule += column.is_text ? " --- |" : " ---: |";
  }
  for (const std::size_t i : visible.rows) {
    rows += '|';
    for (const std::size_t k : visible.columns) {
      rows += fmt::format(" {} |", markdown_text(table.rows[i][k].text));
    }
    rows += '\n';
  }
  std::string text = headings + '\n' + rule + '\n' + rows;
  if (!visible.alike.empty()) text += "\nIn all rows: " + markdown_text(visible.alike) + ".\n";
  return text;
}

std::string markdown_list(const std::vector<Statement>& statements) {
  std::string text;
  for (const Statement& each : statements) {
    text += fmt::format("- {}\n", markdown_text(each.text));
    for (const std::string& part : each.details) {
      text += fmt::format("  - {}\n", markdown_text(part));
    }
  }
  return text;
}

void add_markdown(const Section& section, const std::string& level, Paragraphs& all) {
  if (section.shown == Visibility::on_pages) return;
  if (!section.title.empty()) all.add(level + ' ' + markdown_text(section.title) + '\n');
  if (!section.headline.empty()) all.add(markdown_text(section.headline) + '\n');
  if (!section.table.rows.empty()) all.add(markdown_table(section.table));
  all.add(markdown_list(section.findings));
  for (const Section& part : section.parts) add_markdown(part, level + '#', all);
  const std::vector<std::string> notes = all_notes(section);
  all.add(markdown_list({notes.begin(), notes.end()}));
}

}  // namespace

std::vector<std::string> all_notes(const Section& section) {
  std::vector<std::string> notes = section.notes;
  notes.insert(notes.end(), section.caveats.begin(), section.caveats.end());
  return notes;
}

std::vector<std::string> all_warnings(const Document& document) {
  std::vector<std::string> warnings = document.warnings;
  for (const Section& section : document.sections) {
    warnings.insert(warnings.end(), section.warnings.begin(), section.warnings.end());
  }
  return each_once(warnings);
}

std::vector<const Plot*> all_plots(const Document& document) {
  return flattened(document.sections,
                   [](const Section& section) { return pointers_to(section.plots); });
}

Document with_shared_notes(Document document) {
  const auto said = std::ranges::count(document.sections, Visibility::always, &Section::shown);
  if (said < 2) return document;
  for (const std::string& note : std::vector(document.sections.front().notes)) {
    const auto has_it = [&](const Section& section) {
      return std::ranges::count(section.notes, note) > 0;
    };
    if (std::ranges::count_if(document.sections, has_it) < said) continue;
    for (Section& section : document.sections) std::erase(section.notes, note);
    document.notes.push_back(note);
  }
  return document;
}

std::string one_line(const std::string& heading) {
  const std::vector<std::string> lines = heading_lines(heading);
  const bool joined = lines[0].empty() || lines[0].ends_with('-');
  return lines[0] + (joined ? "" : " ") + lines[1];
}

std::vector<std::size_t>::iterator VisibleTable::least_needed(const Table& table) {
  const auto most = std::ranges::max_element(
      columns.rbegin(), columns.rend(), {}, [&](std::size_t k) { return table.columns[k].detail; });
  return std::prev(most.base());
}

std::vector<Statement> first_findings(const std::vector<Statement>& findings) {
  std::vector<Statement> shown, first;
  for (const Statement& each : findings) {
    if (each.on_screen != OnScreen::never) {
      (each.on_screen == OnScreen::always ? shown : first).push_back(each);
    }
  }
  std::ranges::stable_sort(
      first, {}, [](const Statement& each) { return std::pair(each.rank, -each.weight); });
  std::copy_n(first.begin(), std::min(first.size(), kMostOnScreen), std::back_inserter(shown));
  return shown;
}

VisibleTable visible_part(const Table& table, bool on_screen) {
  VisibleTable visible;
  const auto is_set = [](const std::vector<bool>& rows, std::size_t i) {
    return i < rows.size() && rows[i];
  };
  for (std::size_t i = 0; i < table.rows.size(); ++i) {
    if (is_set(table.is_detail, i) || (on_screen && is_set(table.is_folded, i))) continue;
    visible.rows.push_back(i);
  }
  for (std::size_t k = 0; k < table.columns.size(); ++k) {
    const Column& column = table.columns[k];
    if (!column.shown) continue;
    const auto text = [&](std::size_t i) { return table.rows[i][k].text; };
    const bool is_alike =
        column.is_layout && visible.rows.size() > 1 && !text(visible.rows[0]).empty() &&
        std::ranges::all_of(visible.rows,
                            [&](std::size_t i) { return text(i) == text(visible.rows[0]); });
    if (on_screen && is_more(column)) {
      visible.hidden += is_alike ? 0 : 1;
      continue;
    }
    if (!is_alike) {
      visible.columns.push_back(k);
      continue;
    }
    visible.alike += (visible.alike.empty() ? "" : ", ") + one_line(column.heading) + ' ' +
                     text(visible.rows[0]);
  }
  return visible;
}

std::string to_text(const Document& document, const TextStyle& style) {
  return TextWriter(style).format(with_shared_notes(document));
}

std::string to_markdown(const Document& given) {
  const Document document = with_shared_notes(given);
  Paragraphs all;
  if (!document.title.empty()) all.add("# " + markdown_text(document.title) + '\n');
  for (const std::string& line : document.lead) all.add(markdown_text(line) + '\n');
  for (const std::string& warning : all_warnings(document)) {
    all.add(fmt::format("**Warning: {}**\n", markdown_text(warning)));
  }
  for (const Section& section : document.sections) add_markdown(section, "##", all);
  return all.add(markdown_list({document.notes.begin(), document.notes.end()})).text();
}

}  // namespace paceline

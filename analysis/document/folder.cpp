// Documents in LaTeX, and as files in a folder.
#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <ostream>
#include <utility>

#include "analysis/document/document.h"
#include "analysis/plots/script.h"
#include "engine/core/file.h"
#include "engine/core/text.h"

namespace paceline {

namespace fs = std::filesystem;

namespace {

struct FormatName {
  std::string_view name;
  Format format;
};
constexpr FormatName kFormats[] = {{"text", Format::text}, {"md", Format::markdown},
                                   {"csv", Format::csv},   {"json", Format::json},
                                   {"html", Format::html}, {"latex", Format::latex}};

// A heading of two lines is set as two.
std::string latex_heading(const std::string& heading) {
  const std::size_t end = heading.find('\n');
  if (end == std::string::npos) return latex_text(heading);
  return fmt::format("\\shortstack[r]{{{}\\\\{}}}", latex_text(heading.substr(0, end)),
                     latex_text(heading.substr(end + 1)));
}

// What is long behind a cell's first words, below the table: "cannot tell$^{a}$".
class Marks {
 public:
  std::string shorten(const std::string& text) {
    constexpr std::size_t kLong = 20;
    if (text.size() <= kLong) return latex_text(text);
    const std::size_t end = text.find("; ");
    const bool has_words = end != std::string::npos;
    const std::string rest = has_words ? text.substr(end + 2) : text;
    const auto at = std::ranges::find(notes_, rest) - notes_.begin();
    if (std::cmp_equal(at, notes_.size())) notes_.push_back(rest);
    return (has_words ? latex_text(text.substr(0, end)) : "") + mark(static_cast<std::size_t>(at));
  }
  std::string text() const {
    std::string text;
    for (std::size_t i = 0; i < notes_.size(); ++i) {
      text += (i > 0 ? "; " : "\\par\\smallskip{\\footnotesize ") + mark(i) + latex_text(notes_[i]);
    }
    return text.empty() ? "" : text + "}\n";
  }

 private:
  static std::string mark(std::size_t i) { return fmt::format("$^{{{}}}$", letters(i)); }
  static std::string letters(std::size_t i) {
    return (i < 26 ? "" : letters(i / 26 - 1)) + static_cast<char>('a' + i % 26);
  }
  std::vector<std::string> notes_;
};

// booktabs: no rules between rows. No wider than the text.
std::string tabular(const Table& table, const VisibleTable& visible) {
  Marks marks;
  std::string form, headings, rows;
  for (const std::size_t k : visible.columns) {
    form += table.columns[k].is_text ? 'l' : 'r';
    headings += (headings.empty() ? "" : " & ") + latex_heading(table.columns[k].heading);
  }
  for (const std::size_t i : visible.rows) {
    std::string line;
    for (const std::size_t k : visible.columns) {
      const std::string& cell = table.rows[i][k].text;
      const bool is_remark = table.columns[k].is_text && k != visible.columns.front();
      line += (line.empty() ? "  " : " & ") + (is_remark ? marks.shorten(cell) : latex_text(cell));
    }
    rows += line + " \\\\\n";
  }
  return fmt::format(
      "\\resizebox{{\\ifdim\\width>\\linewidth\\linewidth\\else\\width\\fi}}{{!}}{{%\n"
      "\\begin{{tabular}}{{{}}}\n  \\toprule\n  {} \\\\\n  \\midrule\n{}  \\bottomrule\n"
      "\\end{{tabular}}}}\n{}",
      form, headings, rows, marks.text());
}

std::string plot_file(const Plot& plot, const std::string& format) {
  return plot.name + '.' + format;
}

std::string latex_list(const std::vector<std::string>& sentences) {
  std::string text;
  for (const std::string& each : sentences) text += "  \\item " + latex_text(each) + "\n";
  return text.empty() ? "" : "\\begin{itemize}\n" + text + "\\end{itemize}\n";
}

// What a page has beside the tables. Its plots are files of --out.
std::string latex_sentences(const Section& section) {
  std::string text;
  if (!section.title.empty()) text += "\\subsection*{" + latex_text(section.title) + "}\n";
  if (!section.headline.empty()) text += latex_text(section.headline) + "\n";
  text += latex_list(mapped(section.findings, &Statement::text));
  for (const Plot& plot : section.plots) {
    text += "% --out FOLDER --plots pdf: \\includegraphics[width=\\linewidth]{" +
            plot_file(plot, "pdf") + "}\n";
  }
  return text;
}

// A folder of ours has one of these files, with this member.
constexpr std::pair<const char*, const char*> kOurs[] = {
    {"report.json", "tables"},   {"collectives.json", "collectives"},
    {"history.json", "history"}, {"prediction.json", "tables"},
    {"sheet.json", "sizes"},     {"screen-report.json", "compared"}};

bool is_ours(const fs::path& folder) {
  return std::ranges::any_of(kOurs, [&](const auto& ours) {
    std::error_code none;
    const fs::path file = folder / ours.first;
    if (!fs::is_regular_file(file, none)) return false;
    try {
      const Json json = Json::parse(read_text(file));
      return json.is_object() && json.contains("schema") && json.contains(ours.second);
    } catch (const std::exception&) {
      return false;
    }
  });
}

// A link in a folder that somebody else prepared may lead to a file that is not ours.
OutputFile output_file(const fs::path& folder, const std::string& name) {
  if (fs::is_symlink(folder / name)) {
    throw input_error("a link is here, which may lead to files that are not ours",
                      (folder / name).string(), "remove it");
  }
  return {folder / name, "--out", "report's",
          [folder](std::string_view) { return is_ours(folder); }};
}

// JSON first: it says that the folder is ours, should we be stopped on the way.
constexpr FormatName kFiles[] = {{".json", Format::json},
                                 {".md", Format::markdown},
                                 {".csv", Format::csv},
                                 {".html", Format::html}};

std::vector<std::string> list_files(const Document& document, const OutputOptions& options) {
  std::vector<std::string> names;
  for (const auto& [extension, format] : kFiles) {
    names.push_back(document.name + std::string(extension));
  }
  for (const Plot* plot : all_plots(document)) {
    for (const std::string& format : options.plots) names.push_back(plot_file(*plot, format));
  }
  return names;
}

void check_folder(const std::vector<Document>& documents, const OutputOptions& options) {
  std::error_code none;
  if (fs::exists(options.out, none) && !fs::is_directory(options.out, none)) {
    throw usage_error("not a folder", options.out.string(), "name another with --out");
  }
  for (const Document& document : documents) {
    for (const std::string& name : list_files(document, options)) {
      output_file(options.out, name).check_name();
    }
  }
}

std::string format_document(const Document& document, Format format, const TextStyle& style,
                            const Pictures& pictures) {
  switch (format) {
    case Format::text:
      return to_text(document, style);
    case Format::markdown:
      return to_markdown(document);
    case Format::csv:
      return to_csv(document);
    case Format::json:
      return to_json_text(document);
    case Format::html:
      return to_html(document, pictures);
    case Format::latex:
      break;
  }
  return to_latex(document);
}

void write_files(const Document& document, const OutputOptions& options, const Pictures& pictures,
                 WrittenFiles& written) {
  const auto write = [&](const std::string& name, const std::string& text, auto& names) {
    output_file(options.out, name).write(text);
    names.push_back(options.out / name);
  };
  std::vector<std::string> beside = list_files(document, options);
  std::erase(beside, document.name + ".html");
  for (const auto& [extension, format] : kFiles) {
    std::string text = format == Format::html ? to_html(document, pictures, options.out, beside)
                                              : format_document(document, format, {}, pictures);
    if (document.stands_alone && format == Format::markdown && !pictures.svgs.empty()) {
      for (const Plot* plot : all_plots(document)) {
        text += fmt::format("\n![{}]({})\n", markdown_text(plot->title),
                            plot_file(*plot, options.plots.front()));
      }
    }
    write(document.name + std::string(extension), text, written.tables);
  }
  if (pictures.refused) return;
  for (const Plot* plot : all_plots(document)) {
    for (const std::string& format : options.plots) {
      write(plot_file(*plot, format), draw_plot(*plot, format), written.plots);
    }
  }
}

void print_files(const WrittenFiles& files, std::size_t width, std::ostream& stream) {
  stream << '\n';
  std::vector<std::string> others;
  for (const auto* all : {&files.tables, &files.plots}) {
    for (const fs::path& file : *all) {
      if (file.extension() == ".html") {
        stream << file.stem().string() << ": " << file.string() << " (open it in a browser)\n";
      } else {
        others.push_back(file.filename().string());
      }
    }
  }
  stream << wrapped("beside it: " + join(others, ", "), width);
  if (files.plots.empty()) stream << "no plot was drawn\n";
}

}  // namespace

Format parse_format(std::string_view name) {
  return row_named(kFormats, &FormatName::name, name, "format", "--format").format;
}

std::string to_latex(const Document& document) {
  const bool is_page = document.stands_alone;
  const std::size_t most_columns = is_page ? 8 : 6;
  std::string text = "% \\usepackage{booktabs,graphicx}\n";
  for (const std::string& warning : all_warnings(document)) {
    text += "% Warning: " + latex_text(warning) + "\n";
  }
  if (is_page) text += "\\section*{" + latex_text(document.title) + "}\n";
  std::size_t number = 0;
  for (const Section& section : document.sections) {
    const Table& table = section.table;
    if (is_page) text += latex_sentences(section);
    if (table.rows.empty()) continue;
    VisibleTable visible = visible_part(table);
    while (visible.columns.size() > most_columns) {
      visible.columns.erase(visible.least_needed(table));
    }
    if (number++ > 0) text += '\n';
    for (const std::string& note : all_notes(section)) text += "% " + latex_text(note) + "\n";
    const std::string& title = section.title.empty() ? document.title : section.title;
    text += fmt::format(
        "\\begin{{table}}[{}]\n\\centering\n\\caption{{{}{}}}\n\\label{{tab:{}{}}}\n{}"
        "\\end{{table}}\n",
        is_page ? "h" : "t", latex_text(title),
        visible.alike.empty() ? "" : ". In all rows: " + latex_text(visible.alike), document.name,
        number > 1 ? fmt::format("-{}", number) : "", tabular(table, visible));
  }
  if (is_page) text += "\\footnotesize\n" + latex_list(document.notes);
  return text;
}

Pictures draw_pictures(const Document& document) {
  Pictures pictures;
  try {
    for (const Plot* plot : all_plots(document)) {
      Plot untitled = *plot;
      untitled.title.clear();
      pictures.svgs[plot->name] = draw_plot(untitled, "svg");
    }
  } catch (const Error& error) {
    pictures.svgs.clear();
    pictures.refused = error;
  }
  return pictures;
}

WrittenFiles write_documents(const std::vector<Document>& documents, const OutputOptions& options,
                             std::ostream& stream) {
  if (!options.out.empty()) check_folder(documents, options);
  std::vector<Pictures> pictures(documents.size());
  const auto draw = [&] {
    for (std::size_t i = 0; !options.plots.empty() && i < documents.size(); ++i) {
      pictures[i] = draw_pictures(documents[i]);
    }
  };
  if (options.format == Format::html) draw();
  for (std::size_t i = 0; i < documents.size(); ++i) {
    if (i > 0) stream << '\n';
    stream << format_document(documents[i], options.format, options.style, pictures[i]);
  }
  stream << std::flush;
  WrittenFiles written;
  if (!options.out.empty()) {
    if (options.format != Format::html) draw();
    make_folder(options.out);
    for (std::size_t i = 0; i < documents.size(); ++i) {
      write_files(documents[i], options, pictures[i], written);
    }
    if (options.format == Format::text) print_files(written, options.style.width, stream);
  }
  for (const Pictures& each : pictures) {
    if (each.refused) throw *each.refused;
  }
  return written;
}

}  // namespace paceline

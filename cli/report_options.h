// What the verbs on studies read alike.
#pragma once

#include <string>

#include "analysis/render/render.h"
#include "analysis/study/comparison.h"

namespace paceline {

Base base_of(const std::string& name);             // "matched" or "best"; throws usage
Base base_or_setting_of(const std::string& text);  // or "bucket_mb=8"
// A name, then what is said of it, in lines that fit the output.
std::string name_and_text(std::string_view name, std::size_t column, const std::string& text);

TextStyle style_of_output();  // of standard output: colours, and the width of lines

}  // namespace paceline

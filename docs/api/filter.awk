# Lets Doxygen read Paceline's headers, whose comments are plain: "// text" above a declaration becomes "/// text",
# and "x;  // text" becomes "x;  ///< text". The code and the number of lines stay as they are.

# What Doxygen would take for a command, a tag or a link.
function plain(text) {
  gsub(/[\\@<>&#%]/, "\\\\&", text)
  gsub(/::/, "\\::", text)
  sub(/^ \./, " \\.", text)  # "./data" at the beginning of a line
  return text
}

# The first comment is the file's.
NR == 1 && /^\/\/ / { print "/*! \\file */ ///" plain(substr($0, 3)); in_file_comment = 1; next }

# A comment of its own line. It continues the one behind a declaration above it if it stands below it.
/^ *\/\// {
  at = match($0, /\/\//)
  print substr($0, 1, at - 1) (at == behind ? "///<" : "///") plain(substr($0, at + 2))
  next
}

# A comment behind a declaration, but not behind a brace, a label or a directive.
/[;,)a-zA-Z0-9_]  \/\/ / && !/^ *(#|public:|private:|protected:)/ {
  behind = index($0, "  // ") + 2
  print substr($0, 1, behind - 1) "///<" plain(substr($0, behind + 2))
  next
}

{ behind = 0; print }

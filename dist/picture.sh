#!/usr/bin/env bash
# Draws what a command printed as a picture of a terminal, for the README:
#
#   plumb lab run home-cable -- plumb check server | dist/picture.sh 'plumb check server' > docs/check.svg
#
# Colours follow from the words, as plumb has them on a terminal, so that the text can be any text.
set -euo pipefail
exec awk -v command="${1:?the command that printed it}" '
function escaped(text) { gsub(/&/, "\\&amp;", text); gsub(/</, "\\&lt;", text); gsub(/>/, "\\&gt;", text); return text }
function line(text, class) {
    rows[++count] = sprintf("<text x=\"18\" y=\"%d\" class=\"%s\">%s</text>", 30 + 18 * count, class, escaped(text))
}
BEGIN { line("$ " command, "p") }
NR == 1 { line($0, "f"); next }
# The headline goes to the first line that is indented or empty.
NR > 1 && !head && !/^ / && !/^$/ && !/^[A-Z]+  ?[a-z-]+, / { line($0, "b"); next }
{ head = 1 }
/^CRITICAL/ { line($0, "r"); next }
/^WARNING/ { line($0, "y"); next }
/^  [a-z]+ +[0-9]+ %/ { split($0, word, " "); line($0, word[2] >= 90 ? "g" : word[2] >= 50 ? "y" : "r"); next }
/^Next:|causes were looked for|^want of/ { line($0, "f"); next }
{ line($0, "t") }
END {
    height = 30 + 18 * count + 22
    printf "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 720 %d\" width=\"720\" height=\"%d\" role=\"img\">\n", height, height
    printf "<title>%s</title>\n", escaped(command)
    print "<style>text{font:13.5px ui-monospace,SFMono-Regular,Menlo,Consolas,\"DejaVu Sans Mono\",monospace;white-space:pre}" \
        ".t{fill:#d8dee6}.p{fill:#8ab4f8}.b{fill:#fff;font-weight:700}.f{fill:#8b95a3}" \
        ".r{fill:#ff7b72}.y{fill:#e3b341}.g{fill:#56d364}</style>"
    printf "<rect width=\"720\" height=\"%d\" rx=\"8\" fill=\"#12161c\"/>\n", height
    print "<circle cx=\"22\" cy=\"18\" r=\"5\" fill=\"#ff5f57\"/><circle cx=\"40\" cy=\"18\" r=\"5\" fill=\"#febc2e\"/>" \
        "<circle cx=\"58\" cy=\"18\" r=\"5\" fill=\"#28c840\"/>"
    for (row = 1; row <= count; row++) print rows[row]
    print "</svg>"
}'

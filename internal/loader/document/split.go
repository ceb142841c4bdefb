package document

import "bytes"

// byteOrderMark is written by some editors on Windows, and is not part of the first key.
const byteOrderMark = "\ufeff"

// part is the text of one document, with the line and byte of the file that it starts at.
type part struct {
	text        []byte
	line, start int
}

// split cuts a file at lines that start with "---" or "...". YAML does not allow such a line in
// a scalar.
func split(data []byte) []part {
	var parts []part
	start, startLine, line := 0, 0, 0
	for pos := 0; pos < len(data); line++ {
		end := len(data)
		if i := bytes.IndexByte(data[pos:], '\n'); i >= 0 {
			end = pos + i + 1
		}
		switch text := data[pos:end]; {
		case isMarker(text, "---") && !onlyDirectives(data[start:pos]):
			parts = append(parts, part{data[start:pos], startLine, start})
			start, startLine = pos, line
		case isMarker(text, "..."):
			parts = append(parts, part{data[start:pos], startLine, start})
			start, startLine = end, line+1
		}
		pos = end
	}

	return append(parts, part{data[start:], startLine, start})
}

// Without returns a file without some of its documents. It adds no separator at the start of a file
// that had none.
func Without(data []byte, drop []Span) []byte {
	if len(drop) == 0 {
		return data
	}

	data = bytes.TrimPrefix(data, []byte(byteOrderMark))
	var out []byte
	pos := 0
	for _, s := range drop {
		out = append(out, data[pos:s.Start]...)
		pos = s.End
	}

	out = append(out, data[pos:]...)
	if rest, ok := bytes.CutPrefix(out, []byte("---\n")); ok && !isMarker(data, "---") {
		out = rest
	}

	return out
}

// isMarker reports whether a line is a marker: the marker alone, or followed by white space.
func isMarker(line []byte, marker string) bool {
	if !bytes.HasPrefix(line, []byte(marker)) {
		return false
	}
	return len(line) == len(marker) || bytes.IndexByte([]byte(" \t\r\n"), line[len(marker)]) >= 0
}

// onlyDirectives reports whether text consists of directives ("%YAML 1.2"), comments and blank
// lines.
func onlyDirectives(text []byte) bool {
	found := false
	for line := range bytes.Lines(text) {
		switch line = bytes.TrimSpace(line); {
		case len(line) == 0 || line[0] == '#':
		case line[0] == '%':
			found = true
		default:
			return false
		}
	}
	return found
}

// directives counts the lines with a percent sign before a document.
func directives(text []byte) int {
	n := 0
	for line := range bytes.Lines(text) {
		if isMarker(line, "---") {
			break
		}
		if line[0] == '%' {
			n++
		}
	}
	return n
}

// marks counts the characters that can create nodes.
func marks(text []byte) int {
	n := 0
	for i, c := range text {
		switch c {
		case '\n', ',', '[', '{':
			n++
		case '-', '?', ':':
			if i+1 == len(text) || text[i+1] == ' ' || text[i+1] == '\t' {
				n++
			}
		}
	}
	return n
}

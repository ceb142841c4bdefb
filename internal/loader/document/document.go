package document

import (
	"bytes"
	"errors"
	"io"
	"regexp"
	"strconv"
	"sync"
	"unicode"
	"unicode/utf8"

	"go.yaml.in/yaml/v3"

	"lockstep.run/lockstep/internal/limits"
	"lockstep.run/lockstep/internal/loader/violation"
)

const documentMarksLarge = 30_000 // marks beyond which documents are read one at a time per process, in at most 60 MiB

// Document is one document of a YAML file.
type Document struct {
	Path  string
	Index int
	// Value consists of map[string]any, []any, string, int64, float64, bool and nil. The caller can
	// modify it.
	Value any
	// Warnings name keys that YAML 1.1 treats as booleans.
	Warnings violation.Violations
	// Doubts are invalid YAML that Package Operator accepts: duplicate keys, unknown tags, text
	// after the end.
	Doubts violation.Violations

	// Span is the position of the document.
	Span Span

	root *yaml.Node
	line int
	// more reports text after the end of the document.
	more bool
}

// Span is the position of a document in its file, including the separator before it, in bytes after
// a byte order mark.
type Span struct{ Start, End int }

// At returns a violation at a field.
func (d *Document) At(reason violation.Reason, field string) violation.Violation {
	return violation.Violation{Reason: reason, Path: d.Path, Document: d.Index, Line: d.Line(field), Field: field}
}

// Each calls use for every document that is not empty, and returns the problems and doubts of the
// others.
func Each(path string, data []byte, use func(*Document)) violation.Violations {
	return each(path, data, reading{}, use)
}

// EachWithDoubts is Each for packages of Package Operator: it also uses documents with doubts.
func EachWithDoubts(path string, data []byte, use func(*Document)) violation.Violations {
	return each(path, data, reading{doubtful: true}, use)
}

// EachTrimmed is EachWithDoubts with documents cut as in Package Operator, without white space at
// the end. A block scalar at the end of a document has no final newline then. Packages that are
// taken over from Package Operator depend on this: their ConfigMaps would change otherwise.
func EachTrimmed(path string, data []byte, use func(*Document)) violation.Violations {
	return each(path, data, reading{doubtful: true, trimmed: true}, use)
}

// reading is how documents are read.
type reading struct{ doubtful, trimmed bool }

// each reads the documents of a file one after another, so that only one has its nodes in memory.
// Problems of one do not affect the others.
func each(path string, data []byte, how reading, use func(*Document)) violation.Violations {
	whole := violation.Violation{Reason: violation.ReasonInvalidYAML, Path: path}
	if !utf8.Valid(data) {
		return violation.Violations{whole.Because("Save it as UTF-8.", "the file is not UTF-8 text")}
	}

	data = bytes.TrimPrefix(data, []byte(byteOrderMark))
	parts := split(data)
	if len(parts) > limits.DocumentsPerFile {
		whole.Reason = violation.ReasonLimit
		return violation.Violations{whole.Because("Split the file.", "%d documents in one file; the limit is %d", len(parts), limits.DocumentsPerFile)}
	}

	var problems violation.Violations
	index := 0
	for _, p := range parts {
		found, some := one(path, p, index+1, how, use)
		if some {
			index++
		}
		problems = append(problems, found...)
	}

	return problems
}

// large is held while a document with many nodes is read, so that there is one at a time per
// process. Each node takes 200 bytes and more.
var large sync.Mutex

// isLarge reports whether a document can have many nodes, by its text or by aliases, which are
// expanded.
func isLarge(text []byte) bool {
	return bytes.IndexByte(text, '&') >= 0 && bytes.IndexByte(text, '*') >= 0 ||
		len(text) > documentMarksLarge && marks(text) > documentMarksLarge
}

// one reads one document. some is false if there is none.
func one(path string, p part, index int, how reading, use func(*Document)) (problems violation.Violations, some bool) {
	if isLarge(p.text) {
		large.Lock()
		defer large.Unlock()
	}

	d, problem := parse(path, p, index, how)
	switch {
	case problem != nil:
		return violation.Violations{*problem}, true
	case d == nil:
		return nil, false
	}

	c := converter{doc: d, active: map[*yaml.Node]bool{}}
	d.Value = c.value(d.root, 0)
	if d.more {
		c.doubt(c.at(d.root, violation.ReasonInvalidYAML).Because("Separate objects by a line with three dashes.",
			"the file goes on after the end of the object"))
	}
	if !how.doubtful {
		c.problems = append(c.problems, c.doubts...)
	}
	if len(c.problems) > 0 {
		return c.problems, true
	}

	d.Warnings, d.Doubts = c.warnings, c.doubts
	use(d)
	return nil, true
}

// parse bounds a document by its text and then parses it; doc is nil if it is empty. Counting marks
// first matters because the parser allocates all nodes before they could be counted.
func parse(path string, p part, index int, how reading) (doc *Document, problem *violation.Violation) {
	fail := func(reason violation.Reason, line int, remedy, format string, args ...any) *violation.Violation {
		v := violation.Violation{Reason: reason, Path: path, Document: index, Line: p.line + line}.Because(remedy, format, args...)
		return &v
	}

	if n := len(p.text); n > limits.DocumentBytes {
		return nil, fail(violation.ReasonLimit, 1, "Split it into several objects.", "the document has %d bytes; the limit is %d", n, limits.DocumentBytes)
	}
	if n := marks(p.text); n > limits.DocumentMarks {
		return nil, fail(violation.ReasonLimit, 1, "Split it into several objects, or compress embedded data.",
			"the document has %d lines, brackets, commas and other structural characters; the limit is %d", n, limits.DocumentMarks)
	}
	if directives(p.text) > limits.DocumentDirectives {
		return nil, fail(violation.ReasonLimit, 1, "Remove them.", "the document has more than %d directives", limits.DocumentDirectives)
	}

	// The YAML library panics on some malformed documents.
	defer func() {
		if r := recover(); r != nil {
			doc, problem = nil, fail(violation.ReasonInvalidYAML, 1, "Check its syntax with another tool.", "the document cannot be parsed")
		}
	}()

	text := p.text
	if how.trimmed {
		text = bytes.TrimRightFunc(text, unicode.IsSpace)
	}

	var n, next yaml.Node
	decoder := yaml.NewDecoder(bytes.NewReader(text))
	if err := decoder.Decode(&n); err != nil && !errors.Is(err, io.EOF) {
		line, text := syntaxError(err)
		return nil, fail(violation.ReasonInvalidYAML, line, "", "%s", text)
	}
	// A document of comments only is null.
	if n.Kind != yaml.DocumentNode || len(n.Content) == 0 || n.Content[0].Kind == yaml.ScalarNode && n.Content[0].Tag == "!!null" {
		return nil, nil
	}

	return &Document{
		Path: path, Index: index, root: n.Content[0], line: p.line, Span: Span{p.start, p.start + len(p.text)},
		more: !errors.Is(decoder.Decode(&next), io.EOF),
	}, nil
}

// syntaxLine matches the start of the parser's errors.
var syntaxLine = regexp.MustCompile(`^yaml: (?:line (\d+): )?`)

// syntaxError returns the line and the text of a parser's error. The parser omits the number of the
// first line.
func syntaxError(err error) (line int, text string) {
	text, line = err.Error(), 1
	if m := syntaxLine.FindStringSubmatch(text); m != nil {
		text = text[len(m[0]):]
		if m[1] != "" {
			line, _ = strconv.Atoi(m[1])
		}
	}
	return line, text
}

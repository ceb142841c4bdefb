package document

import (
	"bytes"
	"fmt"
	"regexp"
	"strconv"
	"unicode/utf8"

	"go.yaml.in/yaml/v3"

	"lockstep.run/lockstep/internal/limits"
	"lockstep.run/lockstep/internal/loader/violation"
)

// Document is one document of a YAML file.
type Document struct {
	// Path of the file.
	Path string
	// Index counts the documents of the file that hold something, from 1.
	Index int
	// Value is the document as the values of JSON: map[string]any, []any,
	// string, int64, float64, bool, nil. The receiver may change it.
	Value any
	// Warnings name keys that are read as something else than they look like.
	Warnings violation.Violations
	// Doubts name invalid YAML that Package Operator reads: duplicate keys, unknown
	// tags. The document is read in the same way.
	Doubts violation.Violations

	root *yaml.Node
	line int
	span Span
}

// Span is the place of a document within its file, in bytes. A byte order mark
// does not count, and what separates documents belongs to the one after it.
type Span struct{ Start, End int }

// Span returns the place of the document.
func (d *Document) Span() Span { return d.span }

// Each calls use for every document of a file that holds something, in their
// order. Problems and doubts are returned; the other documents are used. A document may be kept only as long as its file may be kept in memory.
func Each(path string, data []byte, use func(*Document)) violation.Violations {
	return each(path, data, false, use)
}

// EachWithDoubts is Each for packages of Package Operator: documents with doubts
// are used as well.
func EachWithDoubts(path string, data []byte, use func(*Document)) violation.Violations {
	return each(path, data, true, use)
}

func each(path string, data []byte, doubtful bool, use func(*Document)) violation.Violations {
	if !utf8.Valid(data) {
		return violation.Violations{{
			Reason: violation.ReasonInvalidYAML, Path: path, Details: "the file is not UTF-8 text",
			Remedy: "Save it as UTF-8.",
		}}
	}
	data = bytes.TrimPrefix(data, []byte(byteOrderMark))
	parts := split(data)
	if len(parts) > limits.DocumentsPerFile {
		return violation.Violations{{
			Reason: violation.ReasonLimit, Path: path,
			Details: fmt.Sprintf("%d documents in one file; the limit is %d", len(parts), limits.DocumentsPerFile),
			Remedy:  "Split the file.",
		}}
	}
	var problems violation.Violations
	index := 0
	for _, p := range parts {
		d, v := parse(path, p, index+1)
		if v != nil {
			index++
			problems = append(problems, *v)
			continue
		}
		if d == nil {
			continue
		}
		index++
		c := converter{doc: d, active: map[*yaml.Node]bool{}}
		d.Value = c.value(d.root, 0)
		if !doubtful {
			c.problems = append(c.problems, c.doubts...)
		}
		if len(c.problems) > 0 {
			problems = append(problems, c.problems...)
			continue
		}
		d.Warnings, d.Doubts = c.warnings, c.doubts
		use(d)
	}
	return problems
}

// parse reads one document; nil where it holds nothing.
func parse(path string, p part, index int) (doc *Document, problem *violation.Violation) {
	fail := func(reason violation.Reason, line int, details, remedy string) *violation.Violation {
		return &violation.Violation{
			Reason: reason, Path: path, Document: index, Line: line, Details: details, Remedy: remedy,
		}
	}
	if n := len(p.text); n > limits.DocumentBytes {
		return nil, fail(violation.ReasonLimit, p.line+1,
			fmt.Sprintf("the document has %d bytes; the limit is %d", n, limits.DocumentBytes),
			"Split it into several objects.")
	}
	if n := marks(p.text); n > limits.DocumentMarks {
		return nil, fail(violation.ReasonLimit, p.line+1,
			fmt.Sprintf("the document has %d lines, brackets, commas and other structural characters; the limit is %d", n, limits.DocumentMarks),
			"Split it into several objects, or compress embedded data.")
	}
	if directives(p.text) > limits.DocumentDirectives {
		return nil, fail(violation.ReasonLimit, p.line+1, fmt.Sprintf("the document has more than %d directives", limits.DocumentDirectives), "Remove them.")
	}
	defer func() {
		if r := recover(); r != nil {
			doc, problem = nil, fail(violation.ReasonInvalidYAML, p.line+1, "the document cannot be parsed", "Check its syntax with another tool.")
		}
	}()
	var n yaml.Node
	if err := yaml.Unmarshal(p.text, &n); err != nil {
		line, text := syntaxError(err)
		return nil, fail(violation.ReasonInvalidYAML, p.line+line, text, "")
	}
	if n.Kind != yaml.DocumentNode || len(n.Content) == 0 || isNull(n.Content[0]) {
		return nil, nil
	}
	return &Document{Path: path, Index: index, root: n.Content[0], line: p.line, span: Span{p.start, p.start + len(p.text)}}, nil
}

func isNull(n *yaml.Node) bool { return n.Kind == yaml.ScalarNode && n.Tag == "!!null" }

var syntaxLine = regexp.MustCompile(`^yaml: (?:line (\d+): )?`)

// syntaxError takes the line number out of an error of the parser. Without a
// number it is the first line that is wrong.
func syntaxError(err error) (line int, text string) {
	text = err.Error()
	line = 1
	if m := syntaxLine.FindStringSubmatch(text); m != nil {
		text = text[len(m[0]):]
		if m[1] != "" {
			line, _ = strconv.Atoi(m[1])
		}
	}
	return line, text
}

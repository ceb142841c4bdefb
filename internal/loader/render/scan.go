package render

import (
	"strings"

	"lockstep.run/lockstep/internal/limits"
)

// scanner reads a template before the parser does, which recurses on blocks and parentheses.
type scanner struct {
	text string
	pos  int
	// code counts the bytes between delimiters, variables the declared variables.
	code, variables int
	// open has the levels of recursion of each open block: every "else if" adds one.
	open  []int
	depth int
}

// scan returns the bytes of code in a template. It errs on the side of counting too much, because
// the parser decides afterwards.
func scan(text string) (code int, err error) {
	s := &scanner{text: text}
	for {
		i := strings.Index(s.text[s.pos:], "{{")
		if i < 0 {
			return s.code, nil
		}
		s.pos += i + 2
		start := s.pos
		if !s.action() {
			// The parser reports an unclosed action.
			return s.code + len(s.text) - start, nil
		}
		s.code += s.pos - start
		if s.depth > limits.TemplateNesting {
			return s.code, limitf("blocks or parentheses nest deeper than %d levels in line %d", limits.TemplateNesting, 1+strings.Count(s.text[:start], "\n"))
		}
		if s.variables > limits.TemplateVariables {
			return s.code, limitf("the file declares more than %d variables", limits.TemplateVariables)
		}
	}
}

// action reads to the end of an action. It returns false if there is no end.
func (s *scanner) action() bool {
	// After a dash, any white space makes it a trim marker, and not only a space.
	if rest := s.text[s.pos:]; len(rest) > 1 && rest[0] == '-' && isSpace(rest[1]) {
		s.pos += 2
	}

	s.skipSpace()
	if strings.HasPrefix(s.text[s.pos:], "/*") {
		end := strings.Index(s.text[s.pos:], "*/")
		if end < 0 {
			return false
		}
		s.pos += end + 2
	} else {
		s.block()
	}

	parens, most := 0, 0
	for s.pos < len(s.text) {
		switch c := s.text[s.pos]; c {
		case '"', '\'':
			if !s.quoted(c) {
				return false
			}
			continue
		case '`':
			end := strings.IndexByte(s.text[s.pos+1:], '`')
			if end < 0 {
				return false
			}
			s.pos += end + 1
		case ':':
			s.variables++
		case '(':
			parens++
			most = max(most, parens)
		case ')':
			parens--
		case '}':
			if strings.HasPrefix(s.text[s.pos:], "}}") {
				s.pos += 2
				level := most
				for _, levels := range s.open {
					level += levels
				}
				s.depth = max(s.depth, level)
				return true
			}
		}
		s.pos++
	}

	return false
}

// skipSpace skips white space within an action.
func (s *scanner) skipSpace() {
	for s.pos < len(s.text) && isSpace(s.text[s.pos]) {
		s.pos++
	}
}

// isSpace reports whether the lexer of text/template skips a byte.
func isSpace(c byte) bool { return strings.IndexByte(" \t\r\n", c) >= 0 }

// word reads a word of lower-case letters, which all keywords are.
func (s *scanner) word() string {
	s.skipSpace()
	start := s.pos
	for s.pos < len(s.text) && s.text[s.pos] >= 'a' && s.text[s.pos] <= 'z' {
		s.pos++
	}
	return s.text[start:s.pos]
}

// block takes the keyword of an action into account.
func (s *scanner) block() {
	switch s.word() {
	case "if", "range", "with", "define", "block":
		s.open = append(s.open, 1)
	case "else":
		if w := s.word(); (w == "if" || w == "with") && len(s.open) > 0 {
			s.open[len(s.open)-1]++
		}
	case "end":
		if len(s.open) > 0 {
			s.open = s.open[:len(s.open)-1]
		}
	}
}

// quoted reads to the end of a quoted text. It returns false if there is no end.
func (s *scanner) quoted(quote byte) bool {
	for s.pos++; s.pos < len(s.text); s.pos++ {
		switch s.text[s.pos] {
		case '\\':
			s.pos++
		case '\n':
			return false
		case quote:
			s.pos++
			return true
		}
	}
	return false
}

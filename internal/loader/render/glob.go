package render

import (
	"fmt"
	"regexp"
	"strings"
	"unicode/utf8"

	"lockstep.run/lockstep/internal/limits"
)

// compileGlob compiles patterns: * and ? within a folder, ** beyond it, [abc], [!a], {one,two}, and
// \ to escape.
func compileGlob(pattern string) (*regexp.Regexp, error) {
	if len(pattern) > limits.TemplatePatternBytes {
		return nil, limitf("a pattern has %d bytes; the limit is %d", len(pattern), limits.TemplatePatternBytes)
	}
	g := globber{rest: pattern}
	if err := g.translate(); err != nil {
		return nil, fmt.Errorf("pattern %q: %w", pattern, err)
	}
	compiled, err := regexp.Compile(`^(?:` + g.out.String() + `)$`)
	if err != nil {
		return nil, fmt.Errorf("pattern %q cannot be read", pattern)
	}
	return compiled, nil
}

// globber translates a pattern to a regular expression. depth counts open braces.
type globber struct {
	rest  string
	out   strings.Builder
	depth int
}

// translate reads the pattern from left to right. Go's regular expressions match in linear time,
// which a matcher with backtracking would not.
func (g *globber) translate() error {
	for g.rest != "" {
		c := g.rest[0]
		switch {
		case strings.HasPrefix(g.rest, "**"):
			g.rest = strings.TrimLeft(g.rest, "*")
			g.out.WriteString(`.*`)
			continue
		case c == '*':
			g.out.WriteString(`[^/]*`)
		case c == '?':
			g.out.WriteString(`[^/]`)
		case c == '[':
			if err := g.class(); err != nil {
				return err
			}
			continue
		case c == '{':
			g.depth++
			g.out.WriteString(`(?:`)
		case c == '}' && g.depth > 0:
			g.depth--
			g.out.WriteString(`)`)
		case c == ',' && g.depth > 0:
			g.out.WriteString(`|`)
		case c == '\\' && len(g.rest) > 1:
			g.rest = g.rest[1:]
			fallthrough
		default:
			_, n := utf8.DecodeRuneInString(g.rest)
			g.out.WriteString(regexp.QuoteMeta(g.rest[:n]))
			g.rest = g.rest[n:]
			continue
		}
		g.rest = g.rest[1:]
	}

	if g.depth > 0 {
		return fmt.Errorf("a brace is not closed")
	}

	return nil
}

// class translates a bracket expression. A negated one does not match a slash either.
func (g *globber) class() error {
	end := strings.IndexByte(g.rest, ']')
	if end < 2 {
		return fmt.Errorf("a bracket is empty or not closed")
	}

	body := g.rest[1:end]
	g.rest = g.rest[end+1:]
	negate := ""
	if body[0] == '!' {
		negate, body = "^/", body[1:]
	}

	body = strings.NewReplacer(`\`, `\\`, `^`, `\^`, `[`, `\[`).Replace(body)
	g.out.WriteString("[" + negate + body + "]")
	return nil
}

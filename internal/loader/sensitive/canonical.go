package sensitive

import (
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// canonical is a text for comparisons: in lower case, without escapes at any depth, and without
// line ends and the white space around them.
type canonical struct {
	text strings.Builder
	// from has the index in the original text of each byte; nil if not needed.
	from []int
}

// fold returns the canonical form of a text.
func fold(text string) string {
	c := &canonical{}
	c.text.Grow(len(text))
	c.add(text)
	return c.text.String()
}

// foldAt is fold that also returns the original index of each byte and of the end.
func foldAt(text string) (string, []int) {
	c := &canonical{from: make([]int, 0, len(text)+1)}
	c.add(text)
	return c.text.String(), append(c.from, len(text))
}

// add runs in linear time, because it skips every run of white space or backslashes as a whole.
func (c *canonical) add(text string) {
	for at := 0; at < len(text); {
		if letter := text[at]; letter > ' ' && letter < utf8.RuneSelf && letter != '\\' {
			if letter >= 'A' && letter <= 'Z' {
				letter += 'a' - 'A'
			}
			c.putByte(letter, at)
			at++
			continue
		}
		rest := text[at:]
		if n := breaks(rest); n > 0 {
			at += n
			continue
		}
		if n := blanks(rest); n > 0 {
			for i := range n {
				c.putByte(rest[i], at+i)
			}
			at += n
			continue
		}
		r, size := character(rest)
		switch {
		case size == 0: // backslashes at the end
			return
		case r == utf8.RuneError:
			c.put(rest[:size], at) // bytes that are not a character
		default:
			c.put(string(unicode.ToLower(r)), at)
		}
		at += size
	}
}

// putByte adds a byte that comes from an index.
func (c *canonical) putByte(letter byte, at int) {
	c.text.WriteByte(letter)
	if c.from != nil {
		c.from = append(c.from, at)
	}
}

// put adds a character that comes from an index, with the index for each of its bytes.
func (c *canonical) put(text string, at int) {
	c.text.WriteString(text)
	if c.from == nil {
		return
	}
	for range len(text) {
		c.from = append(c.from, at)
	}
}

// blanks and backslashes return the length of the run at the start of a text.
func blanks(text string) int { return len(text) - len(strings.TrimLeft(text, " \t")) }

func backslashes(text string) int { return len(text) - len(strings.TrimLeft(text, `\`)) }

// character returns the first character of a text, unescaped, and its size in bytes.
func character(text string) (r rune, size int) {
	escapes := backslashes(text)
	rest := text[escapes:]
	if escapes > 0 && rest != "" {
		digits := map[byte]int{'x': 2, 'u': 4, 'U': 8}[rest[0]]
		if digits > 0 && len(rest) > digits {
			if code, err := strconv.ParseUint(rest[1:1+digits], 16, 32); err == nil && code <= unicode.MaxRune {
				return rune(code), escapes + 1 + digits
			}
		}
		if rest[0] == 't' {
			return '\t', escapes + 1
		}
	}

	r, size = utf8.DecodeRuneInString(rest)
	if size == 0 {
		return r, 0
	}

	return r, escapes + size
}

// breaks returns the length of the line ends, escaped or not, with white space, at the start of a
// text.
func breaks(text string) int {
	for end := 0; ; {
		at := end + blanks(text[end:])
		after := at + backslashes(text[at:])
		switch {
		case at < len(text) && (text[at] == '\n' || text[at] == '\r'):
			end = at + 1
		case after > at && after < len(text) && (text[after] == 'n' || text[after] == 'r'):
			end = after + 1
		case end > 0:
			return at
		default:
			return 0
		}
	}
}

package keyless

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"regexp"
	"strings"

	"lockstep.run/lockstep/internal/limits"
	"lockstep.run/lockstep/internal/outbound"
)

// Token is an OIDC token. It is in no text.
type Token struct{ text string }

var (
	// jwt is the form of a JSON web token that is signed.
	jwt = regexp.MustCompile(`^[A-Za-z0-9_-]+\.[A-Za-z0-9_-]+\.[A-Za-z0-9_-]+$`)
	// part is what may be a part of one.
	part = regexp.MustCompile(fmt.Sprintf(`[A-Za-z0-9_-]{%d,}`, partBytes))
)

// partBytes is the length of what is recognized in a text.
const partBytes = 12

// ReadToken reads the token in a file, or with "-" of in.
func ReadToken(file string, in io.Reader) (Token, error) {
	read := func() ([]byte, error) { return readFile(file, limits.IdentityTokenBytes) }
	if file == "-" {
		read = func() ([]byte, error) { return readAll(in, limits.IdentityTokenBytes) }
	}
	text, err := read()
	if err != nil {
		return Token{}, fmt.Errorf("read the identity token, of which the name of a file is expected, or - for standard input: %w", err)
	}
	if text = bytes.TrimSpace(text); !jwt.Match(text) {
		return Token{}, errors.New("the identity token is no JSON web token that is signed: three parts in base64url with dots between them")
	}
	return Token{string(text)}, nil
}

// String implements fmt.Stringer.
func (Token) String() string { return "(token)" }

// GoString implements fmt.GoStringer.
func (t Token) GoString() string { return t.String() }

// redact returns a text of others in one short line, without words that share partBytes with the token.
func (t Token) redact(text string) string {
	text = part.ReplaceAllStringFunc(text[:min(len(text), 8*limits.RegistryErrorBytes)], func(word string) string {
		for i := range len(word) - partBytes + 1 {
			if strings.Contains(t.text, word[i:i+partBytes]) {
				return "…"
			}
		}
		return word
	})
	return outbound.Redact(text, strings.Split(t.text, ".")...)
}

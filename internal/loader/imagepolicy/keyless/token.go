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
	part = regexp.MustCompile(`[A-Za-z0-9_-]{12,}`)
)

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

// redact returns a text of others in one short line, without what is of the token.
func (t Token) redact(text string) string {
	text = part.ReplaceAllStringFunc(text, func(word string) string {
		if strings.Contains(t.text, word) {
			return "…"
		}
		return word
	})
	return outbound.Redact(text, strings.Split(t.text, ".")...)
}

package support

import (
	"encoding/base64"
	"iter"
	"regexp"
	"strings"

	"lockstep.run/lockstep/internal/kube/outbound"
	"lockstep.run/lockstep/internal/limits"
	"lockstep.run/lockstep/internal/loader/sensitive"
)

// Redactor removes secrets from texts.
type Redactor struct {
	values []*sensitive.Values
	// tooMany means that there are too many values to search for, so all texts of several words are
	// withheld.
	tooMany bool
}

// MaxValues is the maximum size of the searched values, in bytes. In memory they need 40 times as
// much.
const MaxValues = 8 * limits.SensitiveBytes

// NewRedactor returns a Redactor for values that no text may quote. It ignores values that are
// names of objects, because the archive shows these names.
func NewRedactor(values []string, names map[string]bool) *Redactor {
	chunks, total, size := [][]string{nil}, 0, 0
	for value := range forms(values) {
		if names[value] {
			continue
		}
		if total += len(value); total > MaxValues {
			return &Redactor{tooMany: true}
		}
		if size += len(value); size > limits.SensitiveBytes {
			chunks, size = append(chunks, nil), len(value)
		}
		last := len(chunks) - 1
		chunks[last] = append(chunks[last], value)
	}

	r := &Redactor{}
	for _, chunk := range chunks {
		found, err := sensitive.New(chunk)
		if err != nil {
			return &Redactor{tooMany: true}
		}
		r.values = append(r.values, found)
	}

	return r
}

// forms yields each value, its decoded form if it is base64, and its lines.
func forms(values []string) iter.Seq[string] {
	return func(yield func(string) bool) {
		for _, value := range values {
			all := []string{value}
			if decoded, err := base64.StdEncoding.DecodeString(value); err == nil {
				all = append(all, string(decoded))
			}

			for _, text := range all {
				if !yield(text) {
					return
				}
				if !strings.Contains(text, "\n") {
					continue
				}
				for line := range strings.Lines(text) {
					if !yield(strings.TrimSpace(line)) {
						return
					}
				}
			}
		}
	}
}

// Complete reports whether texts are searched for all values. If there are too many, every text of
// several words is withheld.
func (r *Redactor) Complete() bool { return !r.tooMany }

// withheldText replaces a text that cannot be searched.
const withheldText = "[withheld]"

var (
	// assignments can be quoted within a quoted text, as objects are in JSON logs.
	assignments = regexp.MustCompile(`(?i)((?:password|passwd|passphrase|pwd|secret|token|(?:api|access|secret|private)[-_]?key|credentials?)\\*["']?\s*[:=]\s*\\*["']?)[^\s"',;}]+`)
	// userinfo matches the user and password of any address, such as postgres://user:password@host.
	userinfo = regexp.MustCompile(`(\b[a-zA-Z][a-zA-Z0-9+.-]*://)[^\s/"'@:]*:[^\s/"']*@`)
	tokens   = regexp.MustCompile(`\beyJ[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]*\.?[A-Za-z0-9_-]*|\b(?:AKIA|ASIA)[A-Z0-9]{16}\b|\bgh[opsur]_[A-Za-z0-9]{20,}\b|\bgithub_pat_[A-Za-z0-9_]{20,}\b|\bxox[abprs]-[A-Za-z0-9-]{10,}\b`)
	keys     = regexp.MustCompile(`(?s)-----BEGIN [A-Z0-9 ]*PRIVATE KEY-----.*?(?:-----END [A-Z0-9 ]*PRIVATE KEY-----|$)`)
)

// Text returns a text of any number of lines, without the values, and without likely credentials.
func (r *Redactor) Text(text string) string {
	// A text of one word is a name or a reason of the engine, and no value is quoted in it.
	if strings.ContainsAny(text, " \n") {
		if r.tooMany {
			return withheldText
		}
		lines := strings.SplitAfter(text, "\n")
		for i := range lines {
			for _, values := range r.values {
				lines[i] = values.RedactWords(lines[i])
			}
		}
		text = strings.Join(lines, "")
	}

	text = keys.ReplaceAllString(outbound.Conceal(text), sensitive.Mark)
	text = userinfo.ReplaceAllString(text, "${1}…@")
	text = tokens.ReplaceAllString(text, sensitive.Mark)
	return assignments.ReplaceAllString(text, "${1}"+sensitive.Mark)
}

package fuzzing

import (
	"context"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
	"unicode"
	"unicode/utf8"

	"lockstep.run/lockstep/internal/limits"
	"lockstep.run/lockstep/internal/loader/violation"
)

// Time is the maximum time for one input; the outcome of a slower one is not judged. The limits of
// the code permit more, but a search cannot afford that for every input.
const Time = 30 * time.Millisecond

// Context returns a context that ends after Time.
func Context(tb testing.TB) (context.Context, context.CancelFunc) {
	return context.WithTimeout(tb.Context(), Time)
}

// Canary is in the environment of the process, under the name of the same text in upper case. The
// results of a package must never contain it.
const Canary = "lockstep-canary-5e8f41"

// SetCanary puts the canary into the environment.
func SetCanary(f *testing.F) {
	f.Helper()
	if err := os.Setenv("LOCKSTEP_CANARY", Canary); err != nil {
		f.Fatal(err)
	}
}

// Examples returns the content of the example packages' files with one of the
// suffixes, by path.
func Examples(f *testing.F, suffixes ...string) map[string]string {
	f.Helper()
	root := "examples"
	for range 8 { // from the folder of the test up
		if _, err := os.Stat(root); err == nil {
			break
		}
		root = filepath.Join("..", root)
	}

	out := map[string]string{}
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		for _, suffix := range suffixes {
			if strings.HasSuffix(path, suffix) {
				data, err := os.ReadFile(path)
				out[strings.TrimPrefix(path, root)] = string(data)
				return err
			}
		}
		return nil
	})
	if err != nil || len(out) == 0 {
		f.Fatalf("no examples that end in %v: %v", suffixes, err)
	}

	return out
}

// CheckViolations fails unless every violation has a reason and a remedy, and fits on one printable
// line of bounded length that contains no secret.
func CheckViolations(tb testing.TB, all violation.Violations, secrets ...string) {
	tb.Helper()
	for _, v := range all {
		text := v.String()
		switch {
		case v.Reason == "":
			tb.Fatalf("a violation has no reason: %q", text)
		case v.Line < 0 || v.Document < 0:
			tb.Fatalf("a violation is nowhere: %q", text)
		case len(v.Object+v.Field+v.Details+v.Advice()) > 0 && len(text) > len(v.Path)+len(v.Component)+5*limits.DetailBytes:
			tb.Fatalf("a violation has %d bytes: %q…", len(text), text[:limits.DetailBytes])
		}
		CheckText(tb, text, secrets...)
	}
}

// CheckText fails if a text for users contains a secret or would draw on a terminal.
func CheckText(tb testing.TB, text string, secrets ...string) {
	tb.Helper()
	if !utf8.ValidString(text) {
		tb.Fatalf("not UTF-8: %q", text)
	}

	for _, r := range text {
		if unicode.IsControl(r) || unicode.In(r, unicode.Bidi_Control) {
			tb.Fatalf("%U in %q", r, text)
		}
	}

	for _, secret := range append(secrets, Canary) {
		if strings.Contains(text, secret) {
			tb.Fatalf("%q is in %q", secret, text)
		}
	}
}

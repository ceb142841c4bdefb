package cli

import (
	"bytes"
	"errors"
	"strings"
	"testing"
)

// TestConfirm takes nothing for a yes that is none, and does not ask where nobody is.
func TestConfirm(t *testing.T) {
	t.Parallel()
	for answer, want := range map[string]error{
		"y\n": nil, "YES\n": nil, " yes ": nil, "\n": errNotConfirmed, "": errNotConfirmed, "n\ny\n": errNotConfirmed, "yesterday\n": errNotConfirmed,
	} {
		if err := answered(strings.NewReader(answer)); !errors.Is(err, want) {
			t.Errorf("%q: %v", answer, err)
		}
	}
	var out bytes.Buffer
	if err := confirm(streams(&out, &out), "Sure?"); !errors.Is(err, errNotAsked) {
		t.Errorf("nobody is there, and it says %v", err)
	}
}

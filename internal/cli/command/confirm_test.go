package command

import (
	"bytes"
	"errors"
	"strings"
	"testing"

	"lockstep.run/lockstep/test/clustertest"
)

// Only an explicit yes confirms. Without a terminal there is no question.
func TestConfirm(t *testing.T) {
	t.Parallel()
	for answer, want := range map[string]error{
		"y\n": nil, "YES\n": nil, " yes ": nil, "\n": errNotConfirmed, "": errNotConfirmed, "n\ny\n": errNotConfirmed, "yesterday\n": errNotConfirmed,
	} {
		if err := readAnswer(strings.NewReader(answer)); !errors.Is(err, want) {
			t.Errorf("%q: %v", answer, err)
		}
	}
	var out bytes.Buffer
	if err := Confirm(clustertest.Streams(&out, &out), "Sure?"); !errors.Is(err, errNotInteractive) {
		t.Errorf("without a terminal: %v", err)
	}
}

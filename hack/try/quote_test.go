package main

import (
	"fmt"
	"testing"

	"lockstep.run/lockstep/test/require"
)

func TestQuote(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]string{
		"/usr/bin": "/usr/bin", "with space": "'with space'", "it's": `'it'\''s'`, "$HOME": "'$HOME'", "": "",
	} {
		require.Equal(t, want, quote(in), fmt.Sprintf("quote(%q)", in))
	}
}

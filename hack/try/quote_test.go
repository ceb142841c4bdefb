package main

import "testing"

func TestQuote(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]string{
		"/usr/bin": "/usr/bin", "with space": "'with space'", "it's": `'it'\''s'`, "$HOME": "'$HOME'", "": "",
	} {
		if got := quote(in); got != want {
			t.Errorf("quote(%q) = %s, want %s", in, got, want)
		}
	}
}

package docs_test

import (
	"regexp"
	"strings"
	"testing"
)

// varying matches texts that differ from run to run.
var varying = []struct {
	pattern *regexp.Regexp
	with    string
}{
	{regexp.MustCompile(`\x1b\[[0-9;]*m`), ""},
	{regexp.MustCompile(`sha256:[0-9a-f]{12,64}`), "sha256:…"},
	{regexp.MustCompile(`\b\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ`), "<time>"},
	{regexp.MustCompile(`\b\d+(\.\d+)?(ms|s|m|h|d)(\d+s)?\b`), "<time>"},
	{regexp.MustCompile(`-[bcdfghjklmnpqrstvwxz2456789]{8,10}\b`), "-<hash>"},
	{regexp.MustCompile(`v?\d+\.\d+\.\d+-0\.\d{14}-[0-9a-f]{12}(\+dirty)?`), "<version>"},
	{regexp.MustCompile(`[ \t]+`), " "},
}

// normal returns a line without varying texts.
func normal(line string) string {
	for _, v := range varying {
		line = v.pattern.ReplaceAllString(line, v.with)
	}
	return strings.TrimSpace(line)
}

// matches reports whether an output is as a page shows it.
func matches(want, got []string) bool {
	if len(want) == 0 {
		return len(got) == 0
	}
	if strings.TrimSpace(want[0]) == "…" {
		for i := 0; i <= len(got); i++ {
			if matches(want[1:], got[i:]) {
				return true
			}
		}
		return false
	}
	return len(got) > 0 && lineMatches(want[0], got[0]) && matches(want[1:], got[1:])
}

func lineMatches(want, got string) bool {
	want, got = normal(want), normal(got)
	if want == got {
		return true
	}
	// Digests are normal as sha256:… on both sides: they are equal parts here.
	parts := strings.Split(want, "…")
	for i, part := range parts {
		switch at := strings.Index(got, part); {
		case at < 0 || i == 0 && at > 0:
			return false
		case i == len(parts)-1 && part != "":
			return strings.HasSuffix(got, part)
		default:
			got = got[at+len(part):]
		}
	}
	return true
}

func TestMatches(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		reason    string
		want, got string
		equal     bool
	}{
		{"equal", "a\nb", "a\nb", true}, {"another line", "a\nb", "a\nc", false}, {"a line less", "a\nb", "a", false}, {"a line more", "a", "a\nb", false},
		{"times, digests, hashes and columns vary", "x-5f6d7c8b9  1.2s sha256:aaaaaaaaaaaa", "x-7d9c5b6f4 31s   sha256:bbbbbbbbbbbb", true},
		{"any text in a line", "a … c", "a b c", true}, {"any text at its end", "a …", "a b", true}, {"but not any line", "a … c", "a b d", false}, {"or any start", "b …", "a b c", false},
		{"any lines", "a\n…\nd", "a\nb\nc\nd", true}, {"no lines", "a\n…\nd", "a\nd", true}, {"but the following lines have to be there", "a\n…\nd", "a\nb", false},
		{"a number that is not a time", "2 objects", "3 objects", false},
	} {
		if matches(strings.Split(test.want, "\n"), strings.Split(test.got, "\n")) != test.equal {
			t.Error(test.reason)
		}
	}
}

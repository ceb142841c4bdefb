package migrate

import (
	"strings"
	"testing"

	"lockstep.run/lockstep/internal/cli/terminal"
	"lockstep.run/lockstep/internal/objects"
	"lockstep.run/lockstep/test/require"
)

// A long refusal or note of one object does not widen the columns of the others.
func TestStepLines(t *testing.T) {
	t.Parallel()
	named := func(name string) step {
		return step{object: object{Key: objects.Key{Kind: "ConfigMap", Namespace: "shop", Name: name}}}
	}
	refused, left, done := named("refused"), named("left"), named("b")
	refused.Refusal = "Internal error occurred: " + strings.Repeat("long ", 10)
	left.Done, left.Note = true, "stays as it is: the package does not bring it"
	done.Done = true
	got := stepLines([]step{named("a"), refused, left, done, named("c")}, terminal.StylesFor(&strings.Builder{}), func(s step) []string {
		return []string{"phase " + strings.Repeat(s.Key.Name, 3), "controller"}
	})
	want := []string{
		"  < ConfigMap shop/a        phase aaa  controller",
		"  ✗ ConfigMap shop/refused",
		"      Internal error occurred: " + strings.TrimSpace(strings.Repeat("long ", 10)),
		"  · ConfigMap shop/left     stays as it is: the package does not bring it",
		"  · ConfigMap shop/b        nothing to do",
		"  < ConfigMap shop/c        phase ccc  controller",
	}
	for i := range got {
		got[i] = strings.TrimRight(got[i], " ")
	}
	require.Equal(t, want, got)
}

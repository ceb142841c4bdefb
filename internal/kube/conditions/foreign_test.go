package conditions_test

import (
	"regexp"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"pgregory.net/rapid"

	"lockstep.run/lockstep/internal/kube/conditions"
)

// TestReason: every reason becomes a valid one, and a valid one is not changed.
func TestReason(t *testing.T) {
	t.Parallel()
	valid := regexp.MustCompile(`^[A-Za-z]([A-Za-z0-9_,:]*[A-Za-z0-9_])?$`) // as metav1.Condition has it
	for given, want := range map[string]string{
		"": "Unknown", "MinimumReplicasAvailable": "MinimumReplicasAvailable", "a:b,c": "a:b,c",
		"not ready": "not_ready", "crash-loop": "crash_loop", "404": "Reason_404", "ends,": "ends", "---": "Reason_", "größe": "gr__e",
		strings.Repeat("a", 2000): strings.Repeat("a", 1024),
	} {
		if got := conditions.Reason(given); got != want {
			t.Errorf("%q becomes %q, want %q", given, got, want)
		}
	}
	rapid.Check(t, func(t *rapid.T) {
		given := rapid.OneOf(rapid.String(), rapid.StringMatching(`[-a-z0-9 ,:_]{0,999}`)).Draw(t, "reason")
		got := conditions.Reason(given)
		if !valid.MatchString(got) || len(got) > 1024 {
			t.Errorf("%q becomes %q", given, got)
		}
		if valid.MatchString(given) && len(given) <= 1024 && got != given {
			t.Errorf("%q was fine and becomes %q", given, got)
		}
		if again := conditions.Reason(got); again != got {
			t.Errorf("%q becomes %q, and then %q", given, got, again)
		}
	})
}

// TestForeign: an invalid status becomes Unknown, and the message quotes it.
func TestForeign(t *testing.T) {
	t.Parallel()
	for given, want := range map[string]struct {
		status metav1.ConditionStatus
		says   string
	}{
		"True": {"True", "well"}, "true": {"True", "well"}, "FALSE": {"False", "well"}, "Unknown": {"Unknown", "well"},
		"yes": {"Unknown", `The object has the status "yes", which is neither True nor False. well`},
		"":    {"Unknown", `The object has the status "", which is neither True nor False. well`},
	} {
		got := conditions.Foreign("example.com/Ready", given, "Fine", "well")
		if got.Status != want.status || got.Message != want.says || got.Reason != "Fine" {
			t.Errorf("%q becomes %+v", given, got)
		}
	}
	for typ, want := range map[string]bool{
		"example.com/Ready": true, "Ready": true, "example.com/": false, "a b/c": false, "": false, "example.com/" + strings.Repeat("x", 310): false,
	} {
		if got := conditions.ValidType(typ); got != want {
			t.Errorf("%q fits: %t", typ, got)
		}
	}
}

package cli_test

import (
	"fmt"
	"strings"
	"testing"
	"unicode/utf8"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"lockstep.run/lockstep/e2e/harness"
)

// A collision with ten existing objects is reported once, with the remedy, and the remedy
// works.
func TestInstallOverExistingObjects(t *testing.T) {
	t.Parallel()
	env := harness.Shared(t)
	env.Namespace(t, "collides")
	files := harness.Phased("collides", 1, 10)
	for i := range 10 {
		env.Create(t, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "collides", Name: fmt.Sprintf("collides-00-%03d", i)}})
	}
	image := env.Push(t, "collides:v1", files)
	var r result
	for _, timeout := range []string{"3s", patience} { // the longer one on a busy machine
		if r = run(t, env, "install", image, "-n", "collides", "--timeout", timeout); r.code == 0 {
			t.Fatalf("it was installed:\n%s", r.out)
		}
		if strings.Contains(r.err, "exists already") {
			break
		}
		ok(t, env, "delete", "package/collides", "-n", "collides", "--yes")
	}
	const names = "ConfigMap collides/collides-00-000, ConfigMap collides/collides-00-001, ConfigMap collides/collides-00-002 and 7 more: exists already and nothing controls it: "
	log, failure, _ := strings.Cut(r.err, "Error: ")
	for stream, text := range map[string]string{"log": log, "error": failure} {
		if n := strings.Count(text, "exists already"); n != 1 || !strings.Contains(text, strings.ReplaceAll(names, "collides/", "")) || !strings.Contains(text, "install with --adopt") {
			t.Errorf("the %s has the cause %d times:\n%s", stream, n, text)
		}
		for line := range strings.Lines(text) {
			if utf8.RuneCountInString(line) > 301 || strings.Contains(line, "delete") {
				t.Errorf("a line of the %s: %s", stream, line)
			}
		}
	}
	for _, c := range *env.Package(t, "collides", "collides").StatusConditions() {
		if utf8.RuneCountInString(c.Message) > 300 {
			t.Errorf("%s has %d bytes: %s", c.Type, len(c.Message), c.Message)
		}
	}
	screen, _, _ := strings.Cut(ok(t, env, "status", "collides", "-n", "collides").out, "Conditions")
	if n := strings.Count(screen, "exists already"); n != 1 {
		t.Errorf("status reports it %d times:\n%s", n, screen)
	}
	r = ok(t, env, "install", image, "-n", "collides", "--adopt")
	if !strings.Contains(r.out, "changed: collision protection IfNoController") || !strings.Contains(r.out, "is available") {
		t.Errorf("install --adopt says:\n%s", r.out)
	}
}

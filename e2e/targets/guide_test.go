package targets_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"lockstep.run/lockstep/e2e/harness"
	"lockstep.run/lockstep/test/require"
)

// fence is a block of code of a page.
var fence = regexp.MustCompile("(?ms)^```(\\w+)\n(.*?)^```$")

// guide follows the pages about other clusters: their objects are valid, and their commands
// install the package.
func (f *fixture) guide(t *testing.T) {
	t.Helper()
	task, err := os.ReadFile("../../docs/administrate/other-clusters.md")
	require.NoError(t, err)
	rules, err := os.ReadFile("../../docs/targets.md")
	require.NoError(t, err)
	page := string(task) + string(rules)
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: home, Name: "edge"}}
	require.NoError(t, f.Client.Delete(t.Context(), secret))
	image := f.Push(t, "app:v1", harness.Phased("guide", 1, 1))
	dir, installed := t.TempDir(), false
	for _, block := range fence.FindAllStringSubmatch(page, -1) {
		switch text := strings.ReplaceAll(block[2], "registry.example.com/app:v1", image); {
		case block[1] == "yaml":
			f.kubectl(t, dir, f.Kubeconfig(), "kubectl apply --dry-run=server --validate=strict -f - <<'END'\n"+text+"\nEND")
		case strings.Contains(text, "kubectl package install"):
			installed = true
			f.commands(t, dir, text)
		}
	}
	if !installed {
		t.Error("docs/administrate/other-clusters.md has no commands that install a package")
	}
	f.shows(t, "guide-00-000")
	pkg := harness.Package(home, "app", "")
	require.NoError(t, f.Client.Delete(t.Context(), pkg))
	f.WaitGone(t, long, pkg)
	require.NoError(t, client.IgnoreNotFound(f.Client.Delete(t.Context(), secret)))
}

// commands runs lines of the page. The commands that create the kubeconfig run with the target as
// the current context, all others at home.
func (f *fixture) commands(t *testing.T, dir, text string) {
	t.Helper()
	for line := range strings.Lines(text) {
		args, plugin := strings.CutPrefix(strings.TrimSpace(line), "kubectl package ")
		switch {
		case plugin:
			if code, out, errOut := f.command(t, append(strings.Fields(args), "--insecure-registry", f.Registry())...); code != 0 {
				t.Fatalf("%s ends with %d:\n%s%s", line, code, out, errOut)
			}
		case strings.HasPrefix(line, "kubectl config"):
			f.kubectl(t, dir, f.target.Kubeconfig(), line)
		default:
			f.kubectl(t, dir, f.Kubeconfig(), line)
		}
	}
}

func (f *fixture) kubectl(t *testing.T, dir, kubeconfig, script string) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "sh", "-c", script)
	cmd.Dir = dir
	bin := filepath.Dir(os.Getenv("LOCKSTEP_SANDBOX"))
	cmd.Env = append(os.Environ(), "PATH="+bin+":"+os.Getenv("PATH"), "KUBECONFIG="+kubeconfig)
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%s: %v\n%s", script, err, out)
	}
}

package badinput_test

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
	"lockstep.run/lockstep/e2e/harness"
	"lockstep.run/lockstep/e2e/sandbox"
	"lockstep.run/lockstep/test/require"
)

const (
	// patience is how long a row waits for a verdict.
	patience = harness.Patience
	// meanwhile is the maximum time for a good package while there is a bad one. It is shorter than
	// the timeout for a registry's answer.
	meanwhile = 25 * time.Second
	// memoryLimit is the limit of the manager's resident memory over all rows: four images
	// of limits.PackageBytes, the overhead of Go's collector, and 60 MiB for itself.
	memoryLimit = 400 << 20
)

// row is one piece of bad input.
type row struct {
	name string
	// files are pushed as the package, unless image names another one.
	files harness.Files
	image func(t *testing.T, env *harness.Env) string
	// setup prepares the namespace.
	setup func(t *testing.T, env *harness.Env, namespace string)
	// between runs after the bad package and before the good one.
	between func(t *testing.T, env *harness.Env, namespace string)
	// condition, status and reason are the Package's condition, and texts are parts of its
	// message.
	condition, status, reason string
	texts                     []string
	// blocking is an object that the status names, if any.
	blocking string
	// validate are parts of the output of `validate` for the folder; nil if the folder
	// alone does not decide.
	validate []string
	// valid means that validate only warns.
	valid bool
	// after runs after the verdict.
	after func(t *testing.T, env *harness.Env, namespace string)
}

// bed has the environment that all rows share.
type bed struct {
	env     *harness.Env
	manager *harness.Manager
	good    string
	audit   *sandbox.Audit
	start   sandbox.Position
}

func TestBadInput(t *testing.T) {
	t.Setenv("NO_PROXY", "*") // loopback and names that must not be found
	rows := append(contentRows(), rolloutRows()...)
	hostile, hosts := hostileRows(t)
	b := newBed(t, hosts)
	t.Run("rows", func(t *testing.T) {
		// Rows that wait for a timeout come first, so that the others run meanwhile.
		for _, r := range append(hostile, rows...) {
			t.Run(r.name, func(t *testing.T) {
				t.Parallel()
				b.judge(t, r)
			})
		}
	})
	b.judgeWrites(t)
	if b.manager.Exited() {
		t.Error("the manager did not survive")
	}
	peak := b.manager.Peak(t)
	if peak > memoryLimit {
		t.Errorf("the manager took %d bytes of memory, more than %d", peak, memoryLimit)
	}
}

func newBed(t *testing.T, insecure []string) *bed {
	t.Helper()
	b := &bed{env: harness.New(t, sandbox.WithoutNodes())}
	var args []string
	for _, host := range insecure {
		args = append(args, "--insecure-registry", host)
	}
	var err error
	b.audit, err = b.env.Audit()
	require.NoError(t, err)
	b.start, err = b.audit.Mark(t.Context())
	require.NoError(t, err)
	b.manager = b.env.StartManager(t, args...)
	b.good = b.env.Push(t, "good:1", harness.Phased("good", 2, 2))
	// Wait until the manager leads, so that times do not include its start.
	b.env.Namespace(t, "before")
	b.env.Create(t, harness.Package("before", "good", b.good))
	b.env.WaitAvailable(t, "before", "good")
	return b
}

var notInName = regexp.MustCompile(`[^a-z0-9]+`)

func (r row) slug() string {
	return strings.Trim(notInName.ReplaceAllString(strings.ToLower(r.name), "-"), "-")
}

// judge installs one piece of bad input and checks the result.
func (b *bed) judge(t *testing.T, r row) {
	ns := r.slug()
	b.env.Namespace(t, ns)
	if r.setup != nil {
		r.setup(t, b.env, ns)
	}
	image := ""
	if r.image != nil {
		image = r.image(t, b.env)
	} else {
		image = b.env.Push(t, r.slug()+":1", r.files)
	}
	mark, err := b.audit.Mark(t.Context())
	require.NoError(t, err)
	b.env.Create(t, harness.Package(ns, "bad", image))
	if r.between != nil {
		r.between(t, b.env, ns)
	}
	b.env.Create(t, harness.Package(ns, "good", b.good))
	b.env.WaitAvailableWithin(t, meanwhile, ns, "good")
	b.verdict(t, r, ns)
	b.judgeStatusCommand(t, r, ns)
	b.judgeValidateCommand(t, r)
	b.judgeNothingWritten(t, mark, ns)
	if r.after != nil {
		r.after(t, b.env, ns)
	}
	bad := harness.Package(ns, "bad", "")
	require.NoError(t, client.IgnoreNotFound(b.env.Client.Delete(t.Context(), bad)))
	b.env.WaitGone(t, patience, bad)
}

// verdict waits for the row's condition.
func (b *bed) verdict(t *testing.T, r row, ns string) {
	t.Helper()
	harness.Eventually(t, patience, fmt.Sprintf("%s=%s/%s with %q", r.condition, r.status, r.reason, r.texts), func(ctx context.Context) error {
		pkg := &corev1alpha1.Package{}
		if err := b.env.Client.Get(ctx, types.NamespacedName{Namespace: ns, Name: "bad"}, pkg); err != nil {
			return err
		}
		for _, c := range pkg.Status.Conditions {
			if c.Type == r.condition && string(c.Status) == r.status && c.Reason == r.reason && missing(c.Message, r.texts) == "" {
				return blocks(pkg, r.blocking)
			}
		}
		return fmt.Errorf("the status is %+v", pkg.Status)
	})
}

func blocks(pkg *corev1alpha1.Package, object string) error {
	if object == "" {
		return nil
	}
	for _, b := range pkg.Status.Blocking {
		if b.Kind+" "+b.Name == object {
			return nil
		}
	}
	return fmt.Errorf("the blocking objects are %+v, which lack %s", pkg.Status.Blocking, object)
}

// missing returns the first text that is not in message.
func missing(message string, texts []string) string {
	for _, text := range texts {
		if !strings.Contains(message, text) {
			return text
		}
	}
	return ""
}

// judgeStatusCommand checks the output of `kubectl-package status`.
func (b *bed) judgeStatusCommand(t *testing.T, r row, ns string) {
	t.Helper()
	out, _ := b.plugin(t, "status", "bad", "-n", ns)
	if text := missing(unwrap(out), unwrapAll(r.texts)); text != "" {
		t.Errorf("status does not print %q:\n%s", text, out)
	}
}

// judgeValidateCommand checks the output of `kubectl-package validate` for the same files.
func (b *bed) judgeValidateCommand(t *testing.T, r row) {
	t.Helper()
	if r.validate == nil {
		return
	}
	dir := t.TempDir()
	for name, content := range r.files {
		path := filepath.Join(dir, filepath.FromSlash(name))
		require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o755))
		require.NoError(t, os.WriteFile(path, []byte(content), 0o644))
	}
	out, err := b.plugin(t, "validate", dir)
	if (err == nil) != r.valid {
		t.Errorf("validate ends with %v:\n%s", err, out)
	}
	if text := missing(unwrap(out), unwrapAll(r.validate)); text != "" {
		t.Errorf("validate does not print %q:\n%s", text, out)
	}
}

// plugin runs the kubectl plugin as the administrator.
func (b *bed) plugin(t *testing.T, args ...string) (string, error) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), harness.Binary(t, "kubectl-package"), args...)
	cmd.Env = append(os.Environ(), "KUBECONFIG="+b.env.Kubeconfig(), "NO_COLOR=1")
	out, err := cmd.CombinedOutput()
	return string(out), err
}

// unwrap makes a text of several lines one line, as terminals wrap it anywhere.
func unwrap(s string) string { return strings.Join(strings.Fields(s), " ") }

func unwrapAll(all []string) []string {
	out := make([]string, len(all))
	for i, s := range all {
		out[i] = unwrap(s)
	}
	return out
}

// judgeNothingWritten checks in the audit log that no object of the bad package was
// written. It ignores names that start with "good", which are the good package's, and with
// "first", which are in phases that can be rolled out.
func (b *bed) judgeNothingWritten(t *testing.T, since sandbox.Position, ns string) {
	t.Helper()
	entries, err := b.audit.Since(t.Context(), since, sandbox.ByUser(harness.ManagerUser()), sandbox.Writes(), func(e sandbox.Entry) bool {
		return e.Object.Namespace == ns && content(e) && !strings.HasPrefix(e.Object.Name, "good-") && !strings.HasPrefix(e.Object.Name, "first-")
	})
	require.NoError(t, err)
	for _, e := range entries {
		t.Errorf("the manager wrote: %s %s (%d)", e.Verb, e.RequestURI, e.Code)
	}
}

// judgeWrites checks over all rows and namespaces that no object was written
// that must never be.
func (b *bed) judgeWrites(t *testing.T) {
	t.Helper()
	entries, err := b.audit.Since(t.Context(), b.start, sandbox.ByUser(harness.ManagerUser()), sandbox.Writes(), func(e sandbox.Entry) bool {
		return strings.HasPrefix(e.Object.Name, "never")
	})
	require.NoError(t, err)
	for _, e := range entries {
		t.Errorf("the manager wrote: %s %s (%d)", e.Verb, e.RequestURI, e.Code)
	}
}

// content reports whether a request is about an object of a package, and not about
// the engine's own kinds or events.
func content(e sandbox.Entry) bool {
	return e.Object.Group != corev1alpha1.GroupVersion.Group && e.Object.Resource != "events" && e.Object.Resource != "leases"
}

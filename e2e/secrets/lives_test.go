package secrets_test

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
	"lockstep.run/lockstep/e2e/harness"
	"lockstep.run/lockstep/e2e/sandbox"
	"lockstep.run/lockstep/test/require"
)

// auditPolicy logs the bodies of all requests and answers of the manager except Secrets, as a
// careful administrator would.
const auditPolicy = `apiVersion: audit.k8s.io/v1
kind: Policy
omitStages: [RequestReceived]
rules:
- level: Metadata
  resources: [{group: "", resources: [secrets, secrets/*]}]
- level: RequestResponse
  users: [%q]
- level: Metadata
`

// life is one package that is rendered with a value of its own.
type life struct {
	// namespace of the Package, empty for a ClusterPackage; objects are in the other
	// one.
	namespace, objects string
	// input names the source of its values.
	input string
	large bool
}

// lives are all packages and their environment.
type lives struct {
	env      *harness.Env
	tb       testing.TB
	managers []*harness.Manager
	cache    string
	metrics  string
	packages []*life
}

func begin(tb testing.TB) *lives {
	dir, err := os.MkdirTemp("", "lockstep-secrets-")
	require.NoError(tb, err)
	tb.Cleanup(func() { os.RemoveAll(dir) })
	policy := filepath.Join(dir, "audit.yaml")
	require.NoError(tb, os.WriteFile(policy, fmt.Appendf(nil, auditPolicy, harness.ManagerUser()), 0o600))
	l := &lives{
		env:   harness.New(tb, sandbox.WithAuditPolicy(policy), sandbox.WithoutNodes()),
		cache: filepath.Join(dir, "cache"), metrics: harness.Address(tb), tb: tb,
	}
	l.start()
	return l
}

// with returns the lives of some packages.
func (l *lives) with(t *testing.T, packages ...*life) *lives {
	t.Helper()
	l.packages = packages
	l.each(func(one *life) { l.env.Namespace(t, one.objects) })
	return l
}

// start starts a manager. Its log is searched at the end, too.
func (l *lives) start() {
	l.managers = append(l.managers, l.env.StartManager(l.tb, "--cache-dir", l.cache, "--metrics-bind-address", l.metrics))
}

// manager returns the running manager.
func (l *lives) manager() *harness.Manager { return l.managers[len(l.managers)-1] }

// each does something for every package.
func (l *lives) each(do func(*life)) {
	for _, one := range l.packages {
		do(one)
	}
}

// available waits until every package is.
func (l *lives) available(t *testing.T) {
	t.Helper()
	l.each(func(one *life) { l.env.WaitAvailable(t, one.namespace, "shop") })
}

// newValue returns 24 bytes that stand nowhere by chance.
func newValue() string { return "pw." + strings.ToLower(rand.Text())[:10] + "/" + rand.Text()[:10] }

// give writes the value into the Secret that the package names.
func (l *lives) give(t *testing.T, one *life, value string) {
	t.Helper()
	input := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: one.input, Name: "input"}}
	err := l.env.Client.Get(t.Context(), client.ObjectKeyFromObject(input), input)
	input.Data = map[string][]byte{"values.yaml": []byte("password: " + value + "\n")}
	if err == nil {
		require.NoError(t, l.env.Client.Update(t.Context(), input))
		return
	}
	require.NoError(t, client.IgnoreNotFound(err))
	require.NoError(t, l.env.Client.Create(t.Context(), input))
}

// newPackage returns the Package or ClusterPackage of a life.
func (one *life) newPackage(image string) corev1alpha1.GenericPackage {
	pkg := corev1alpha1.ScopeOf(one.namespace).NewPackage()
	pkg.SetNamespace(one.namespace)
	pkg.SetName("shop")
	spec := pkg.PackageSpec()
	spec.Image = image
	spec.Config = &runtime.RawExtension{Raw: fmt.Appendf(nil, `{"namespace":%q}`, one.objects)}
	spec.ConfigFrom = []corev1alpha1.ValueSource{{SecretKeyRef: &corev1alpha1.SecretKeyReference{Name: "input", Key: "values.yaml"}}}
	return pkg
}

// patch changes the Package.
func (l *lives) patch(t *testing.T, one *life, patch string) {
	t.Helper()
	require.NoError(t, l.env.Client.Patch(t.Context(), one.newPackage(""), client.RawPatch(types.MergePatchType, []byte(patch))))
}

// upgrade gives every package another image.
func (l *lives) upgrade(t *testing.T, version string) {
	t.Helper()
	l.each(func(one *life) { l.patch(t, one, fmt.Sprintf(`{"spec":{"image":%q}}`, l.image(one, version))) })
}

func (l *lives) image(one *life, version string) string {
	name := "small"
	if one.large {
		name = "large"
	}
	return l.env.Registry() + "/" + name + ":" + version
}

// report waits until the status of every package contains the texts.
func (l *lives) report(t *testing.T, texts ...string) {
	t.Helper()
	l.each(func(one *life) {
		harness.Eventually(t, patience, fmt.Sprintf("%s to say %q", one.objects, texts), func(ctx context.Context) error {
			pkg := one.newPackage("")
			if err := l.env.Client.Get(ctx, client.ObjectKeyFromObject(pkg), pkg); err != nil {
				return err
			}
			text, err := json.Marshal(pkg.PackageStatus())
			for _, want := range texts {
				if err == nil && !strings.Contains(string(text), want) {
					err = fmt.Errorf("%q is not in %s", want, text)
				}
			}
			return err
		})
	})
}

// holds waits until the Secret of every package has its value.
func (l *lives) holds(t *testing.T, values map[*life]needle) {
	t.Helper()
	l.each(func(one *life) {
		harness.Eventually(t, patience, one.objects+" to have its value", func(ctx context.Context) error {
			secret := &corev1.Secret{}
			if err := l.env.Client.Get(ctx, types.NamespacedName{Namespace: one.objects, Name: "credentials"}, secret); err != nil {
				return err
			}
			if string(secret.Data["password"]) != values[one].value {
				return fmt.Errorf("the Secret of version %s has another one", secret.ResourceVersion)
			}
			return nil
		})
	})
}

// drift changes an object of every package.
func (l *lives) drift(t *testing.T) {
	t.Helper()
	l.each(func(one *life) {
		secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: one.objects, Name: "credentials"}}
		require.NoError(t, l.env.Client.Patch(t.Context(), secret, client.RawPatch(types.MergePatchType, []byte(`{"data":{"password":"ZHJpZnRlZA=="}}`)), client.FieldOwner("someone")))
	})
}

// stored returns the Secrets that the engine keeps objects or keys of the packages
// in.
func (l *lives) stored(ctx context.Context) (objects, keys []corev1.Secret, err error) {
	list := &corev1.SecretList{}
	if err := l.env.Client.List(ctx, list); err != nil {
		return nil, nil, err
	}
	for _, secret := range list.Items {
		if !slices.ContainsFunc(l.packages, func(one *life) bool { return one.input == secret.Namespace }) {
			continue
		}
		switch secret.Type {
		case corev1alpha1.SecretSliceType:
			objects = append(objects, secret)
		case corev1alpha1.HashKeyType:
			keys = append(keys, secret)
		}
	}
	return objects, keys, nil
}

// commands runs the commands that print packages, and returns their outputs.
func (l *lives) commands(t *testing.T) map[string][]byte {
	t.Helper()
	outputs := map[string][]byte{}
	l.each(func(one *life) {
		name := "package/shop"
		if one.namespace == "" {
			name = "clusterpackage/shop"
		}
		for _, args := range [][]string{
			{"status", name}, {"status", name, "-o", "json"}, {"status", name, "--objects"}, {"status", name, "--objects", "-o", "json"},
			{"rollout", "status", name, "--watch=false"}, {"rollout", "history", name}, {"rollout", "history", name, "-o", "json"},
			{"rollout", "diff", name}, {"rollout", "diff", name, "-o", "json"}, {"rollout", "undo", name},
			{"explain", name}, {"explain", name, "-o", "json"},
			{"plan", l.image(one, "v1"), name, "--insecure-registry", l.env.Registry()},
			{"plan", l.image(one, "v1"), name, "--insecure-registry", l.env.Registry(), "-o", "json"},
		} {
			what := strings.Join(args, " ")
			args = append(args, "--namespace", one.objects, "--kubeconfig", l.env.Kubeconfig())
			command := exec.CommandContext(t.Context(), harness.Binary(t, "kubectl-package"), args...)
			// If the package no longer exists, the command fails. The error must not contain
			// secrets either.
			output, _ := command.CombinedOutput()
			if strings.Contains(string(output), "unknown command") {
				t.Errorf("%s: %s", what, output)
			}
			outputs[what+" in "+one.objects] = output
		}
	})
	return outputs
}

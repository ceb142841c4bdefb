// Package plan_test compares the output of kubectl package plan with the engine's actual
// changes, on a real API server.
package plan_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"sigs.k8s.io/controller-runtime/pkg/client"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
	"lockstep.run/lockstep/e2e/harness"
	"lockstep.run/lockstep/internal/cli"
	"lockstep.run/lockstep/internal/cli/dryrun"
)

func TestMain(m *testing.M) { os.Exit(harness.Main(m)) }

// patience is harness.Patience as commands take it.
var patience = harness.Patience.String()

func shared(t *testing.T) *harness.Env { return harness.Shared(t) }

// run runs kubectl package in this process.
func run(t *testing.T, env *harness.Env, args ...string) (code int, out, errOut string) {
	t.Helper()
	var stdout, stderr bytes.Buffer
	args = append(args, "--kubeconfig", env.Kubeconfig())
	code = cli.Run(t.Context(), args, genericiooptions.IOStreams{In: strings.NewReader(""), Out: &stdout, ErrOut: &stderr})
	return code, stdout.String(), stderr.String()
}

// plan runs kubectl package plan in this process.
func plan(t *testing.T, env *harness.Env, args ...string) (code int, out, errOut string) {
	t.Helper()
	return run(t, env, append([]string{"plan"}, args...)...)
}

// planOf is the plan as programs read it.
func planOf(t *testing.T, env *harness.Env, args ...string) dryrun.Plan {
	t.Helper()
	_, out, errOut := plan(t, env, append(args, "-o", "json")...)
	var p dryrun.Plan
	if err := json.Unmarshal([]byte(out), &p); err != nil {
		t.Fatalf("plan %v: %v\n%s\n%s", args, err, out, errOut)
	}
	return p
}

// upgradePackage installs a package, upgrades it to other files, and returns both images. The
// ConfigMap with the package's name has the values v1 and v2.
func upgradePackage(t *testing.T, env *harness.Env, pkg corev1alpha1.GenericPackage, from, to harness.Files) (string, string) {
	t.Helper()
	namespace, name := pkg.GetNamespace(), pkg.GetName()
	one, two := env.Push(t, name+":v1", from), env.Push(t, name+":v2", to)
	pkg.PackageSpec().Image = one
	env.Create(t, pkg.(client.Object))
	env.WaitAvailable(t, namespace, name)
	env.SetImage(t, namespace, name, two)
	awaitValue(t, env, name, name, "v2")
	env.WaitAvailable(t, namespace, name)
	return one, two
}

// awaitValue waits until a ConfigMap has a value.
func awaitValue(t *testing.T, env *harness.Env, namespace, name, value string) {
	t.Helper()
	harness.Eventually(t, harness.Patience, "ConfigMap "+name+" to say "+value, func(ctx context.Context) error {
		cm := &corev1.ConfigMap{}
		if err := env.Client.Get(ctx, types.NamespacedName{Namespace: namespace, Name: name}, cm); err != nil {
			return err
		}
		if cm.Data["value"] != value {
			return fmt.Errorf("it says %q", cm.Data["value"])
		}
		return nil
	})
}

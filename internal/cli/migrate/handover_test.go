package migrate_test

import (
	"errors"
	"io"
	"strings"
	"testing"

	"k8s.io/cli-runtime/pkg/genericclioptions"

	"lockstep.run/lockstep/internal/cli/cluster"
	"lockstep.run/lockstep/test/clitest"
)

func TestHandoverArguments(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		args []string
		err  string
	}{
		{[]string{"adopt", "cm/a"}, "--into is missing: name the package"},
		{[]string{"adopt", "--into", "web"}, "KIND/NAME is missing"},
		{[]string{"adopt", "web", "--into", "web"}, `"web" is not an object: write KIND/NAME, or NAMESPACE/KIND/NAME`},
		{[]string{"adopt", "cm/a", "--into", "deployment/web"}, `"deployment" is not a kind of package`},
		{[]string{"adopt", "cm/a", "--into", "web", "--timeout", "0s"}, "--timeout must be positive"},
		{[]string{"adopt", "--from-helm", "web"}, "--into is missing: name the package"},
		{[]string{"adopt", "--from-helm", "a,b", "--into", "web"}, `--from-helm "a,b" cannot be a name`},
		{[]string{"release"}, "KIND/NAME is missing"},
		{[]string{"release", "a/cm/a/b"}, `"a/cm/a/b" is not an object: write KIND/NAME`},
	} {
		got := clitest.Invoke(t, "", tc.args...)
		if got.Code != 1 || !strings.HasPrefix(got.Err, "Error: arguments invalid: ") || !strings.Contains(got.Err, tc.err) {
			t.Errorf("%s: exit code %d: %s", strings.Join(tc.args, " "), got.Code, got.Err)
		}
	}
}

// With -o json, programs read how the handover of the engine ended.
func TestEngineJSON(t *testing.T) {
	t.Parallel()
	unreachable := func(genericclioptions.RESTClientGetter, io.Writer) (*cluster.Cluster, error) {
		return nil, errors.New("no cluster")
	}
	got := clitest.InvokeOn(t, unreachable, "", "adopt-engine", "-o", "json")
	if got.Code != 1 || !strings.Contains(got.Out, `"type":"end","succeeded":false,"error":"no cluster`) {
		t.Errorf("%+v", got)
	}
	if got := clitest.Invoke(t, "", "release-engine", "-o", "yaml"); got.Code != 1 || !strings.Contains(got.Err, `unknown output format "yaml": choose json`) {
		t.Errorf("%+v", got)
	}
}

func TestImportCarvel(t *testing.T) {
	t.Parallel()
	got := clitest.Invoke(t, "", "import", "carvel", "../carvel/testdata/input.yaml")
	if got.Code != 0 || strings.Count(got.Out, "\nkind: ") != 6 || !strings.Contains(got.Err, "  - spec.values[0]: Secret missing is not in the input") ||
		!strings.HasSuffix(got.Err, " not carried over\n") || strings.Contains(got.Out+got.Err, "hunter2") {
		t.Errorf("%+v", got)
	}
	if got := clitest.Invoke(t, "kind: Secret\napiVersion: v1\nmetadata: {name: a}\n", "import", "carvel", "-"); got.Code != 1 || !strings.Contains(got.Err, "there is no PackageInstall or PackageRepository") {
		t.Errorf("%+v", got)
	}
}

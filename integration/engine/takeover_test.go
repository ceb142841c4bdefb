package engine_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"lockstep.run/lockstep/test/require"
)

// The command of docs/administrate/upgrade-engine.md takes over CRDs that the bootstrap of Package
// Operator owns.
func TestTakeOverOfCRDs(t *testing.T) {
	t.Parallel()
	const crds = "../../config/crds"
	text, err := os.ReadFile(crds + "/package-operator.run_hostedclusterpackages.yaml")
	require.NoError(t, err)
	old := filepath.Join(t.TempDir(), "old.yaml")
	require.NoError(t, os.WriteFile(old, []byte(strings.Replace(string(text), "- hcpkg", "- oldpkg", 1)), 0o600))
	apply := func(args ...string) error {
		_, err := env.Kubectl(t.Context(), append([]string{"apply", "--server-side"}, args...)...)
		return err
	}
	require.NoError(t, apply("--field-manager=package-operator", "--force-conflicts", "-f", old))
	if err := apply("-k", crds); err == nil || !strings.Contains(err.Error(), `conflict with "package-operator"`) {
		t.Fatalf("without the flag: %v", err)
	}
	require.NoError(t, apply("--force-conflicts", "-k", crds))
	if err := apply("-k", crds); err != nil {
		t.Errorf("once more, without the flag: %v", err)
	}
	names, err := env.Kubectl(t.Context(), "get", "crd", "hostedclusterpackages.package-operator.run", "-o", "jsonpath={.spec.names.shortNames}")
	if err != nil || names != `["hcpkg"]` {
		t.Errorf("%q, %v", names, err)
	}
}

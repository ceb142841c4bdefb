package migrate_test

import (
	"strings"
	"testing"

	"lockstep.run/lockstep/test/clitest"
)

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

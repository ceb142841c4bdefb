package author_test

import (
	"testing"

	"lockstep.run/lockstep/internal/cli/clitest"
)

// What is printed as JSON fits its schema, which clitest looks at.
func TestJSON(t *testing.T) {
	t.Parallel()
	good, bad := clitest.Fixed(t, clitest.Folder(t, clitest.GoodPackage)), clitest.Folder(t, clitest.BadPackage)
	for _, args := range [][]string{
		{"validate", good}, {"validate", bad}, {"lint", good}, {"lint", "--rules"}, {"render", good}, {"inspect", good}, {"inspect", good, "--all"},
		{"test", good, "--ignore-schemas"}, {"test", clitest.Folder(t, clitest.GoodPackage), "--ignore-schemas"}, {"test", bad},
	} {
		clitest.Invoke(t, "", append(args, "-o", "json")...)
	}
}

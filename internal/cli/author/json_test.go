package author_test

import (
	"testing"

	"lockstep.run/lockstep/test/clitest"
	"lockstep.run/lockstep/test/golden"
)

func TestJSON(t *testing.T) {
	t.Parallel()
	good, bad := clitest.Fixed(t, clitest.Folder(t, clitest.GoodPackage)), clitest.Folder(t, clitest.BadPackage)
	for command, args := range map[string][]string{
		"validate": {bad}, "lint": {good}, "render": {good}, "inspect": {good}, "test": {clitest.Folder(t, clitest.GoodPackage), "--ignore-schemas"},
	} {
		golden.JSON(t, command, clitest.Invoke(t, "", append([]string{command, "-o", "json"}, args...)...).Out)
	}
}

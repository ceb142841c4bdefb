package migrate_test

import (
	"strings"
	"testing"

	"lockstep.run/lockstep/internal/cli/clitest"
)

// Programs read how the hand-over of the engine ended.
func TestEngineJSON(t *testing.T) {
	t.Parallel()
	got := clitest.Invoke(t, "", "adopt-engine", "--self", "-o", "json")
	if got.Code != 1 || !strings.Contains(got.Out, `"type":"end","succeeded":false,"error":"--image is missing`) {
		t.Errorf("%+v", got)
	}
	if got := clitest.Invoke(t, "", "release-engine", "-o", "yaml"); got.Code != 1 || !strings.Contains(got.Err, `unknown output format "yaml": choose json`) {
		t.Errorf("%+v", got)
	}
}

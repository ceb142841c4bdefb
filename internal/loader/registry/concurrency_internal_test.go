package registry

import (
	"context"
	"strings"
	"testing"

	"lockstep.run/lockstep/internal/loader/archive"
)

// The text of a panic over an image can quote a Secret in it.
func TestRecoveredQuotesNothing(t *testing.T) {
	t.Parallel()
	_, err := recovered(t.Context(), func(context.Context) (archive.Files, error) { panic("hunter2") })
	if err == nil || strings.Contains(err.Error(), "hunter2") || !strings.Contains(err.Error(), "the image cannot be read: reading the image failed by a defect of this engine") {
		t.Errorf("got %v", err)
	}
}

package content

import (
	"context"
	"strings"
	"testing"
)

// A bare name means an image of Docker Hub, but more often a folder in another place.
func TestBareName(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if _, err := (&SourceFlags{}).Read(ctx, "nope"); err == nil || !strings.HasPrefix(err.Error(), "there is no folder nope, and as an image: ") {
		t.Errorf("got %v", err)
	}
	if _, err := (&SourceFlags{Pull: true}).Read(ctx, "nope"); err == nil || strings.Contains(err.Error(), "folder") {
		t.Errorf("--pull: %v", err)
	}
}

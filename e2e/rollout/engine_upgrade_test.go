package rollout_test

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"lockstep.run/lockstep/e2e/sandbox/binary"
	"lockstep.run/lockstep/test/require"
)

// former builds the manager of the commit in the file "from", which is the version before the
// upgrade of the engine. It returns the program and the sources of that commit.
func former(t *testing.T) (program, sources string) {
	t.Helper()
	content, err := os.ReadFile("from")
	require.NoError(t, err)
	commit := strings.TrimSpace(string(content))
	root, err := binary.Repository(".")
	require.NoError(t, err)
	built.Lock()
	defer built.Unlock()
	if built.program != "" {
		return built.program, built.sources
	}
	built.folder, err = os.MkdirTemp("", "former-")
	require.NoError(t, err)
	folder := built.folder
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Minute)
	defer cancel()
	run := func(dir, name string, args ...string) {
		t.Helper()
		command := exec.CommandContext(ctx, name, args...)
		command.Dir, command.Env = dir, append(os.Environ(), "CGO_ENABLED=0")
		if out, err := command.CombinedOutput(); err != nil {
			t.Fatalf("cannot build the manager of %s, which has to be in this clone (git fetch --unshallow): %v\n%s", commit, err, out)
		}
	}
	archive := filepath.Join(folder, "sources.tar")
	program, sources = filepath.Join(folder, "lockstep-manager"), filepath.Join(folder, "sources")
	require.NoError(t, os.Mkdir(sources, 0o755))
	run(root, "git", "archive", "--output", archive, commit)
	run(sources, "tar", "-xf", archive)
	run(sources, "go", "build", "-ldflags=-s -w", "-o", program, "./cmd/lockstep-manager")
	built.program, built.sources = program, sources
	return program, sources
}

// built is the former manager, which the tests share. The folder is removed in the end.
var built struct {
	sync.Mutex
	folder, program, sources string
}

package harness

import (
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"sync"
	"syscall"
	"testing"
	"time"

	"lockstep.run/lockstep/e2e/sandbox/binary"
	"lockstep.run/lockstep/test/require"
)

// binaries are the commands that this process has built, in a folder of its own.
var binaries struct {
	sync.Mutex
	dir  string
	path map[string]string
}

// leftover is the age from which folders of killed processes are removed.
const leftover = 24 * time.Hour

// Binary returns the path of a command of this project, such as "lockstep-manager", built
// from the current sources. All processes build to .task/test of the checkout, so that
// the go command links once per change. They run a hard link, which later builds do not
// replace. With LOCKSTEP_BUILT=1 Binary uses the existing commands: ./task test builds them
// once, because the go command takes a second per package to find out that they are up to
// date.
func Binary(tb testing.TB, name string) string {
	tb.Helper()
	binaries.Lock()
	defer binaries.Unlock()
	if path := binaries.path[name]; path != "" {
		return path
	}
	root, err := binary.Repository(".")
	require.NoError(tb, err)
	store := filepath.Join(root, ".task", "test")
	require.NoError(tb, os.MkdirAll(store, 0o755))
	lock, err := os.OpenFile(filepath.Join(store, ".lock"), os.O_CREATE|os.O_RDWR, 0o600)
	require.NoError(tb, err)
	defer lock.Close()
	require.NoError(tb, syscall.Flock(int(lock.Fd()), syscall.LOCK_EX))
	if binaries.dir == "" {
		sweep(store)
		binaries.dir, err = os.MkdirTemp(store, "run-")
		require.NoError(tb, err)
		binaries.path = map[string]string{}
	}
	built, path := filepath.Join(store, name), filepath.Join(binaries.dir, name)
	if os.Getenv("LOCKSTEP_BUILT") == "" || race() {
		build(tb, root, name, built)
	}
	require.NoError(tb, os.Link(built, path))
	binaries.path[name] = path
	return path
}

func build(tb testing.TB, root, name, path string) {
	tb.Helper()
	cmd := exec.Command("go", "build", "-race="+strconv.FormatBool(race()), "-ldflags=-s -w", "-o", path, "./cmd/"+name)
	cmd.Dir, cmd.Env = root, append(os.Environ(), "CGO_ENABLED=0")
	if race() {
		cmd.Env = append(cmd.Env, "CGO_ENABLED=1")
	}
	if out, err := cmd.CombinedOutput(); err != nil {
		tb.Fatalf("cannot build %s: %v\n%s", name, err, out)
	}
}

// race reports whether commands are built with the race detector, which ends them at the
// first finding.
func race() bool { return os.Getenv("LOCKSTEP_RACE") != "" }

// sweep removes the folders that killed processes left in the store.
func sweep(store string) {
	dirs, _ := filepath.Glob(filepath.Join(store, "run-*"))
	for _, dir := range dirs {
		if info, err := os.Stat(dir); err == nil && time.Since(info.ModTime()) > leftover {
			_ = os.RemoveAll(dir)
		}
	}
}

// removeBinaries deletes the links of this process.
func removeBinaries() {
	binaries.Lock()
	defer binaries.Unlock()
	if binaries.dir != "" {
		_ = os.RemoveAll(binaries.dir)
	}
}

package binary

import (
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"lockstep.run/lockstep/test/require"
)

func write(t *testing.T, path, content string) {
	t.Helper()
	require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o755))
	require.NoError(t, os.WriteFile(path, []byte(content), 0o600))
}

func TestDirFollowsWhatIsCompiled(t *testing.T) {
	t.Setenv("LOCKSTEP_CACHE", t.TempDir())
	repository := t.TempDir()
	dir := func() string {
		t.Helper()
		dir, err := Dir(t.Context(), repository)
		require.NoError(t, err)
		return dir
	}
	source := filepath.Join(repository, "sandbox")
	write(t, filepath.Join(source, "go.mod"), "module example.test/sandbox\n")
	write(t, filepath.Join(source, "internal", "a.go"), "package internal\n")
	first := dir()

	write(t, filepath.Join(source, "internal", "a_test.go"), "package internal\n")
	write(t, filepath.Join(source, "README.md"), "words\n")
	if got := dir(); got != first {
		t.Error("a test or a text makes another binary")
	}
	write(t, filepath.Join(source, "internal", "a.go"), "package internal // changed\n")
	second := dir()
	if second == first {
		t.Error("changed source gives the same binary")
	}
	write(t, filepath.Join(source, "go.sum"), "")
	if got := dir(); got == second {
		t.Error("changed dependencies give the same binary")
	}
}

func TestRepositoryIsFoundFromBelow(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	write(t, filepath.Join(root, "go.mod"), module+"\n\ngo 1.26.0\n")
	below := filepath.Join(root, "sandbox", "internal")
	write(t, filepath.Join(root, "sandbox", "go.mod"), module+"/sandbox\n")
	require.NoError(t, os.MkdirAll(below, 0o755))
	if got, err := Repository(below); err != nil || got != root {
		t.Errorf("got %q, %v, want %q", got, err, root)
	}
	if _, err := Repository(t.TempDir()); err == nil || !strings.Contains(err.Error(), "LOCKSTEP_SANDBOX") {
		t.Errorf("got %v outside of a checkout, want an error with a remedy", err)
	}
}

// TestLock: as many processes hold a lock at a time as there are files, and the next one waits.
func TestLock(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	paths := []string{filepath.Join(dir, ".lock-1"), filepath.Join(dir, ".lock-2")}
	waits := func() { t.Error("it waits although a lock is free") }
	unlock, err := Lock(t.Context(), waits, paths...)
	require.NoError(t, err)
	unlockSecond, err := Lock(t.Context(), waits, paths...)
	require.NoError(t, err)
	defer unlockSecond()
	told := make(chan struct{}, 1)
	done := make(chan error, 1)
	go func() {
		unlockThird, err := Lock(t.Context(), func() { told <- struct{}{} }, paths...)
		if err == nil {
			unlockThird()
		}
		done <- err
	}()
	<-told
	unlock()
	if err := <-done; err != nil {
		t.Error(err)
	}
}

func TestPruneKeepsTheLatest(t *testing.T) {
	t.Parallel()
	store := t.TempDir()
	write(t, filepath.Join(store, ".building-1", "partial"), "")
	for i := range 6 {
		dir := filepath.Join(store, strconv.Itoa(i))
		write(t, filepath.Join(dir, Name), "")
		used := time.Now().Add(-time.Duration(i) * time.Hour)
		require.NoError(t, os.Chtimes(dir, used, used))
	}
	prune(store, filepath.Join(store, "5"))
	var left []string
	entries, err := os.ReadDir(store)
	require.NoError(t, err)
	for _, entry := range entries {
		left = append(left, entry.Name())
	}
	require.Equal(t, []string{".building-1", "0", "1", "2", "5"}, left, "the remaining folders")
}

// Packages that the project and the sandbox share are only compiled once if both use the same
// versions of their modules.
func TestModulesHaveOneVersion(t *testing.T) {
	t.Parallel()
	project, sandbox := moduleVersions(t, "../../../go.mod"), moduleVersions(t, "../../../sandbox/go.mod")
	shared := 0
	for module, version := range sandbox {
		if want := project[module]; want != "" && want != version {
			t.Errorf("go.mod has %s %s and sandbox/go.mod %s: make them equal, by go get in the folder of the older one", module, want, version)
		} else if want != "" {
			shared++
		}
	}
	if shared < 80 {
		t.Errorf("only %d modules are shared: go.mod is not read as it is written", shared)
	}
}

// moduleVersions are the modules that a go.mod requires; a replacement is the last entry.
func moduleVersions(t *testing.T, path string) map[string]string {
	t.Helper()
	content, err := os.ReadFile(path)
	require.NoError(t, err)
	versions := map[string]string{}
	for _, found := range regexp.MustCompile(`(?m)^\s+(?:\S+ => )?(\S+\.\S+/?\S*) (v\S+)`).FindAllStringSubmatch(string(content), -1) {
		versions[found[1]] = found[2]
	}
	return versions
}

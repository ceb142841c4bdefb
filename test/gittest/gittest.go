// Package gittest has a git repository on disk with an http server.
package gittest

import (
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// Repository is served at the path /repo.
type Repository struct {
	t   testing.TB
	Dir string
}

// New makes an empty repository whose branch is main.
func New(t testing.TB) *Repository {
	t.Helper()
	r := &Repository{t: t, Dir: filepath.Join(t.TempDir(), "repo")}
	r.Run("", "init", "-q", "-b", "main", r.Dir)
	return r
}

// Environment prevents git from reading the configuration of the machine.
var Environment = []string{
	"GIT_CONFIG_GLOBAL=/dev/null", "GIT_CONFIG_SYSTEM=/dev/null", "GIT_CONFIG_COUNT=1", "GIT_CONFIG_KEY_0=safe.directory", "GIT_CONFIG_VALUE_0=*",
	"GIT_AUTHOR_NAME=a", "GIT_AUTHOR_EMAIL=a@example.com", "GIT_COMMITTER_NAME=a", "GIT_COMMITTER_EMAIL=a@example.com",
}

// Run runs git in the repository, and returns its output.
func (r *Repository) Run(stdin string, args ...string) string {
	r.t.Helper()
	cmd := exec.CommandContext(r.t.Context(), "git", args...)
	if _, err := os.Stat(r.Dir); err == nil {
		cmd.Dir = r.Dir
	}
	cmd.Env = append(os.Environ(), Environment...)
	cmd.Stdin = strings.NewReader(stdin)
	out, err := cmd.CombinedOutput()
	if err != nil {
		r.t.Fatalf("git %v: %v: %s", args, err, out)
	}
	return strings.TrimSpace(string(out))
}

// Commit writes files and returns the commit, which also has the earlier files.
func (r *Repository) Commit(files map[string]string) string {
	r.t.Helper()
	for p, content := range files {
		p = filepath.Join(r.Dir, p)
		if err := os.MkdirAll(filepath.Dir(p), 0o755); err != nil {
			r.t.Fatal(err)
		}
		if err := os.WriteFile(p, []byte(content), 0o600); err != nil {
			r.t.Fatal(err)
		}
	}

	r.Run("", "add", "-A")
	r.Run("", "commit", "-q", "--allow-empty", "-m", "x")
	return r.Run("", "rev-parse", "HEAD")
}

// Rewrite replaces the whole history of main with one commit of files.
func (r *Repository) Rewrite(files map[string]string) string {
	r.t.Helper()
	r.Run("", "checkout", "-q", "--orphan", "other")
	commit := r.Commit(files)
	r.Run("", "branch", "-q", "-f", "main", commit)
	r.Run("", "reflog", "expire", "--expire=all", "--all")
	r.Run("", "gc", "-q", "--prune=now")
	return commit
}

// ServeHTTP works like git-http-backend, which some installations of git lack.
func (r *Repository) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	args := []string{"upload-pack", "--stateless-rpc"}
	switch req.URL.Path {
	case "/repo/info/refs":
		w.Header().Set("Content-Type", "application/x-git-upload-pack-advertisement")
		_, _ = io.WriteString(w, "001e# service=git-upload-pack\n0000")
		args = append(args, "--advertise-refs")
	case "/repo/git-upload-pack":
		w.Header().Set("Content-Type", "application/x-git-upload-pack-result")
	default:
		http.NotFound(w, req)
		return
	}

	cmd := exec.CommandContext(req.Context(), "git", append(args, r.Dir)...)
	cmd.Env = append(append(os.Environ(), Environment...), "GIT_PROTOCOL="+req.Header.Get("Git-Protocol"))
	cmd.Stdin, cmd.Stdout = req.Body, w
	_ = cmd.Run()
}

package fetch

import (
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
	"lockstep.run/lockstep/internal/limits"
	"lockstep.run/lockstep/test/gittest"
	"lockstep.run/lockstep/test/require"
)

// gitRepository is a repository on disk with an http server.
type gitRepository struct {
	*gittest.Repository
	url  string
	v0   bool // the server speaks only version 0
	hook func(http.ResponseWriter, *http.Request) bool

	mu       sync.Mutex
	requests []string
}

func newGit(t *testing.T) *gitRepository {
	t.Helper()
	g := &gitRepository{Repository: gittest.New(t)}
	g.Run("", "config", "core.bigFileThreshold", "1m")
	s := serveWeb(t, httptest.NewServer, func(w http.ResponseWriter, r *http.Request) {
		g.mu.Lock()
		g.requests = append(g.requests, r.Method+" "+r.URL.Path)
		hook := g.hook
		g.mu.Unlock()
		if hook != nil && hook(w, r) {
			return
		}
		if g.v0 {
			r.Header.Del("Git-Protocol")
		}
		g.ServeHTTP(w, r)
	})

	g.url = s.URL + "/repo"
	return g
}

func (g *gitRepository) since() []string {
	g.mu.Lock()
	defer g.mu.Unlock()
	requests := g.requests
	g.requests = nil
	return requests
}

func (g *gitRepository) source(ref string) Source {
	return Source{Spec: corev1alpha1.RepositorySource{Git: &corev1alpha1.RepositoryGitSource{URL: g.url, Ref: ref}}}
}

// The files are read however the source names the commit, with either version of the protocol.
func TestGitReferences(t *testing.T) {
	t.Parallel()
	for _, v0 := range []bool{false, true} {
		g := newGit(t)
		g.v0 = v0
		old := g.Commit(map[string]string{"packages/a.yaml": "old"})
		g.Run("", "tag", "v1.0.0")
		g.Run("", "tag", "-a", "-m", "annotated", "1.2.0")
		g.Run("", "tag", "nightly")
		g.Run("", "checkout", "-q", "-b", "feature/x")
		feature := g.Commit(map[string]string{"packages/a.yaml": "feature"})
		g.Run("", "tag", "2.0.0")
		g.Run("", "checkout", "-q", "main")
		latest := g.Commit(map[string]string{"packages/a.yaml": "new", "README.md": "r", "x.yaml": "x"})
		for _, test := range []struct {
			ref, version  string
			commit, named string
			content       string
		}{
			{"", "", latest, "HEAD@", "new"},
			{"main", "", latest, "main@", "new"},
			{"origin/main", "", latest, "main@", "new"},
			{"origin/feature/x", "", feature, "feature/x@", "feature"},
			{"refs/heads/main", "", latest, "main@", "new"},
			{"v1.0.0", "", old, "v1.0.0@", "old"},
			{"1.2.0", "", old, "1.2.0@", "old"},
			{latest, "", latest, "", "new"},
			{"", "<2", old, "1.2.0@", "old"},
			{"", ">=1", feature, "2.0.0@", "feature"},
		} {
			s := g.source(test.ref)
			if test.version != "" {
				s.Spec.Git.TagSelection = &corev1alpha1.VersionSelection{Version: test.version}
			}
			r, err := local().Fetch(t.Context(), s, "")
			if err != nil {
				t.Errorf("v0 %v, %q %q: %v", v0, test.ref, test.version, err)
				continue
			}
			if diff := cmp.Diff(map[string]string{"packages/a.yaml": test.content}, text(r.Files)); diff != "" || r.Revision != test.named+test.commit {
				t.Errorf("v0 %v, %q %q: %s %s", v0, test.ref, test.version, r.Revision, diff)
			}
		}
		_, err := local().Fetch(t.Context(), g.source("missing"), "")
		checkError(t, err, true, `git: `+g.url+`: there is no branch or tag "missing". Check git.ref.`)
		_, err = local().Fetch(t.Context(), g.source(strings.Repeat("1", 40)), "")
		checkError(t, err, true, "the server reports: ", "Check the URL, git.ref and the credentials.")
	}
}

// A commit that is not the tip of a branch is fetched on its own.
func TestGitCommitBehindTheTip(t *testing.T) {
	t.Parallel()
	g := newGit(t)
	old := g.Commit(map[string]string{"a.yaml": "old"})
	g.Commit(map[string]string{"a.yaml": "new"})
	r := fetched(t, local(), g.source(old), "")
	require.Equal(t, "old", string(r.Files["a.yaml"]), r)
	g.since()
	if r := fetched(t, local(), g.source(old), r.Validator); !r.NotModified || len(g.since()) > 0 {
		t.Error("a commit is looked for again")
	}
}

// A known commit takes only the list of references. A rewritten history is a different commit.
func TestGitHistoryRewritten(t *testing.T) {
	t.Parallel()
	g := newGit(t)
	g.Commit(map[string]string{"a.yaml": "first"})
	g.Commit(map[string]string{"a.yaml": "second"})
	first := fetched(t, local(), g.source("main"), "")
	g.since()
	if r := fetched(t, local(), g.source("main"), first.Validator); !r.NotModified {
		t.Errorf("%+v", r)
	}

	require.Equal(t, []string{"GET /repo/info/refs", "POST /repo/git-upload-pack"}, g.since())
	rewritten := g.Rewrite(map[string]string{"a.yaml": "rewritten"})
	r := fetched(t, local(), g.source("main"), first.Validator)
	if string(r.Files["a.yaml"]) != "rewritten" || r.Revision != "main@"+rewritten {
		t.Errorf("%+v", r)
	}
}

// Links and submodules of a commit are skipped, and files of Git LFS are read as they are.
func TestGitLinksSubmodulesAndLFS(t *testing.T) {
	t.Parallel()
	g := newGit(t)
	require.NoError(t, os.MkdirAll(filepath.Join(g.Dir, "packages/.hidden"), 0o755))
	for name, target := range map[string]string{"packages/link.yaml": "/etc/passwd", "packages/folder": "/etc"} {
		require.NoError(t, os.Symlink(target, filepath.Join(g.Dir, name)))
	}

	commit := g.Commit(map[string]string{
		"packages/a.yaml": "a", "packages/.hidden/b.yaml": "b", "other/c.yaml": "c",
		"packages/large.yaml": "version https://git-lfs.github.com/spec/v1\noid sha256:" + strings.Repeat("0", 64) + "\nsize 1\n",
	})
	g.Run("", "update-index", "--add", "--cacheinfo", "160000,"+commit+",packages/sub")
	g.Run("", "commit", "-q", "-m", "submodule")
	s := g.source("main")
	s.Spec.Git.SubPath = "packages"
	r := fetched(t, local(), s, "")
	if diff := cmp.Diff([]string{"a.yaml", "large.yaml"}, slices.Sorted(maps.Keys(r.Files))); diff != "" {
		t.Error(diff)
	}

	s.Spec.Git.SubPath = "pack"
	_, err := local().Fetch(t.Context(), s, "")
	checkError(t, err, true, `git.subPath: there is no *.yaml, *.yml or *.json file below "pack". Check the path.`)
}

// The pack has both kinds of deltas, and many objects.
func TestGitPacks(t *testing.T) {
	t.Parallel()
	g := newGit(t)
	files, want := map[string]string{}, map[string]string{}
	for i := range 300 {
		name := fmt.Sprintf("packages/shop/%d.yaml", i)
		files[name] = strings.Repeat("the same line again\n", 200) + fmt.Sprint(i)
		want[name] = files[name]
	}

	g.Commit(files)
	g.Run("", "gc", "-q", "--aggressive")
	for _, v0 := range []bool{false, true} {
		g.v0 = v0
		if diff := cmp.Diff(want, text(fetched(t, local(), g.source("main"), "").Files)); diff != "" {
			t.Error(v0, diff[:min(len(diff), 1000)])
		}
	}
}

func TestGitLimits(t *testing.T) {
	t.Parallel()
	g := newGit(t)
	g.Run("", "config", "core.compression", "1")
	g.Commit(map[string]string{"a.yaml": "a", "large.bin": strings.Repeat("\x00", limits.GitBytes)})
	_, err := local().Fetch(t.Context(), g.source("main"), "")
	checkError(t, err, true, fmt.Sprintf("the files of the commit have more than %d bytes, the limit. Keep packages in a repository of their own, or serve an archive.", limits.GitBytes))
	// A server that supports filters does not send blobs that are too large to read.
	g.Run("", "config", "uploadpack.allowFilter", "true")
	if r := fetched(t, local(), g.source("main"), ""); string(r.Files["a.yaml"]) != "a" {
		t.Error(r)
	}

	g.Commit(map[string]string{"large.yaml": strings.Repeat(" ", limits.FileBytes+2)})
	_, err = local().Fetch(t.Context(), g.source("main"), "")
	checkError(t, err, true, fmt.Sprintf(`the file "large.yaml" has more than %d bytes. Split it.`, limits.FileBytes))
}

func TestGitServerErrors(t *testing.T) {
	t.Parallel()
	g := newGit(t)
	_, err := local().Fetch(t.Context(), g.source(""), "")
	checkError(t, err, true, "the repository is empty, or has no default branch. Name a branch in git.ref.")
	g.Commit(map[string]string{"a.yaml": "a"})
	answer := func(kind, body string) func(http.ResponseWriter, *http.Request) bool {
		return func(w http.ResponseWriter, _ *http.Request) bool {
			w.Header().Set("Content-Type", kind)
			_, _ = io.WriteString(w, body)
			return true
		}
	}

	const refs = "application/x-git-upload-pack-advertisement"
	for _, test := range []struct {
		name      string
		hook      func(http.ResponseWriter, *http.Request) bool
		permanent bool
		text      string
	}{
		{"404", func(w http.ResponseWriter, r *http.Request) bool { http.NotFound(w, r); return true }, true, "answered 404 Not Found. Check the URL"},
		{"no git", answer("text/html", "<html>"), true, `there is no git repository: the server answered with the type "text/html"`},
		{"dumb protocol", answer("text/plain", strings.Repeat("1", 40)+"\trefs/heads/main\n"), true, "there is no git repository"},
		{"no packets", answer(refs, "xxxx"), false, `"xxxx" is not a packet length`},
		{"breaks off", answer(refs, "00"), false, "EOF"},
		{"no reference", answer(refs, "0008main0000"), false, "is not a reference"},
		{"an error of the server", answer(refs, "0023ERR no \x1b[2J https://u:geheim@h/"), true, "the server reports: no  [2J https://…@h/"},
		{"SHA-256", answer(refs, packet("version 2")+packet("object-format=sha256")+"0000"), true, "the repository has objects with sha256. Use a repository with SHA-1."},
		{"never ends", func(w http.ResponseWriter, _ *http.Request) bool {
			w.Header().Set("Content-Type", refs)
			for line := packet("%s refs/heads/x", strings.Repeat("1", 40)); ; {
				if _, err := io.WriteString(w, strings.Repeat(line, 1000)); err != nil {
					return true
				}
			}
		}, true, fmt.Sprintf("sent more than %d bytes, the limit", limits.GitRefsBytes)},
		{"repeats the credentials", func(w http.ResponseWriter, r *http.Request) bool {
			_, password, _ := r.BasicAuth()
			return answer(refs, packet("ERR you are %s and sent %s", password, r.Header.Get("Authorization")))(w, r)
		}, true, "the server reports: you are … and sent Basic …"},
	} {
		g.mu.Lock()
		g.hook = test.hook
		g.mu.Unlock()
		source := g.source("main")
		source.Spec.Git.SecretRef = &corev1alpha1.LocalSecretReference{Name: "login"}
		source.Secrets = map[string]map[string][]byte{"login": {"username": []byte("u"), "password": []byte("geheim12")}}
		_, err := local().Fetch(t.Context(), source, "")
		checkError(t, err, test.permanent, test.text, "git: "+g.url+": ")
		if strings.Contains(err.Error(), "geheim") {
			t.Errorf("%s: %v", test.name, err)
		}
	}
}

// A redirect of the first request applies to the others. Credentials are sent only to the server of
// the URL.
func TestGitRedirectAndCredentials(t *testing.T) {
	t.Parallel()
	g := newGit(t)
	g.Commit(map[string]string{"a.yaml": "a"})
	g.hook = func(_ http.ResponseWriter, r *http.Request) bool {
		require.Equal(t, "", r.Header.Get("Authorization"), "the credentials went elsewhere")
		return false
	}

	var got string
	front := serveWeb(t, httptest.NewServer, func(w http.ResponseWriter, r *http.Request) {
		got = r.Header.Get("Authorization")
		http.Redirect(w, r, strings.TrimSuffix(g.url, "/repo")+strings.Replace(r.URL.RequestURI(), "/moved", "/repo", 1), http.StatusMovedPermanently)
	})
	s := withSecret(g.source("main"), map[string]string{"username": "u", "password": "p"})
	s.Spec.Git.URL = front.URL + "/moved"
	if r := fetched(t, local(), s, ""); string(r.Files["a.yaml"]) != "a" || got != "Basic dTpw" {
		t.Error(r, got)
	}

	_, err := New(Options{}).Fetch(t.Context(), s, "")
	checkError(t, err, true, `git: the credentials of the Secret "login" would be sent by plain HTTP. Use https.`)
	s.Secrets["login"] = nil
	_, err = New(Options{}).Fetch(t.Context(), s, "")
	checkError(t, err, true, "127.0.0.1 is a loopback or link-local address, which sources may not be fetched from.")
}

func TestGitURLs(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"https://host/a/b.git":       "https://host/a/b.git",
		"ssh://git@host:2222/a/b":    "ssh://git@host:2222/a/b",
		"git@host:a/b.git":           "ssh://git@host/a/b.git",
		"file:///etc":                `git.url has the scheme "file"`,
		"git://host/a":               `git.url has the scheme "git"`,
		"ext::sh -c x":               "git.url cannot be read",
		"/etc/passwd":                "git.url cannot be read",
		"git@host:-x":                "git.url cannot be read",
		"ssh://-oProxyCommand=x/y":   "git.url names no host",
		"ssh://git:geheim@host/a":    "git.url contains a password",
		"https://user:geheim@host/a": "git.url contains credentials",
		"https://token@host/a":       "git.url contains credentials",
	} {
		u, err := parseGitURL(text)
		if err != nil {
			checkError(t, err, true, want)
			if strings.Contains(err.Error(), "geheim") {
				t.Error(err)
			}
			continue
		}
		require.Equal(t, want, (&url.URL{Scheme: u.Scheme, User: u.User, Host: u.Host, Path: "/" + strings.TrimPrefix(u.Path, "/")}).String(), text)
	}
}

package fetch

import (
	"context"
	"fmt"
	"io"
	"maps"
	"net/url"
	"slices"
	"strings"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
	"lockstep.run/lockstep/internal/catalog/versions"
	"lockstep.run/lockstep/internal/kube/outbound"
	"lockstep.run/lockstep/internal/limits"
)

// git lists the references, and fetches the commit unless it is known.
func (f *Fetcher) git(ctx context.Context, s Source, known string) (*Result, error) {
	spec := s.Spec.Git
	u, err := parseGitURL(spec.URL)
	if err != nil {
		return nil, err
	}

	folder, err := cleanSubPath("git.subPath", spec.SubPath)
	if err != nil {
		return nil, err
	}

	secret, err := s.credentials("git.secretRef", spec.SecretRef)
	if err != nil {
		return nil, err
	}

	r, err := f.gitFrom(ctx, u, s, secret, folder, known)
	if err != nil {
		return nil, classify(ctx, "git: "+outbound.ShowURL(u), secret, err)
	}

	return r, nil
}

// gitFrom downloads the pack to disk first, and reads it into memory within the limit on concurrent
// reads.
func (f *Fetcher) gitFrom(ctx context.Context, u *url.URL, s Source, secret credentials, folder, known string) (*Result, error) {
	spec := s.Spec.Git
	server, err := f.gitServer(ctx, u, secret, s.Namespace)
	if err != nil {
		return nil, err
	}

	defer server.close()
	session, err := beginGit(ctx, server)
	if err != nil {
		return nil, err
	}

	name, commit, err := session.resolve(ctx, spec)
	if err != nil {
		return nil, err
	}
	if commit == known {
		return &Result{NotModified: true}, nil
	}

	pack, err := f.temporaryFile(s.Namespace)
	if err != nil {
		return nil, err
	}

	defer func() { _ = pack.Close() }()
	if err := session.fetch(ctx, commit, pack); err != nil {
		return nil, err
	}

	// The pack is complete, so the connection is not kept while the read waits for its turn.
	server.close()
	var files map[string][]byte
	err = s.inRoom(func(room int64) error {
		release, err := f.gitReads.Acquire(ctx, s.Namespace, 1)
		if err != nil {
			return err
		}
		defer release()
		objects, err := readPack(ctx, io.NewSectionReader(pack, 0, limits.GitBytes), room, f.opts.Bytes)
		if err == nil {
			files, err = objects.checkout(ctx, commit, folder)
		}
		return err
	})
	if err != nil {
		return nil, err
	}

	if files, err = choose(files, "git.subPath", folder); err != nil {
		return nil, err
	}

	return &Result{Files: files, Revision: strings.TrimPrefix(name+"@"+commit, "@"), Validator: commit}, nil
}

// gitServer runs git-upload-pack, by http or ssh.
type gitServer interface {
	// advertise returns the first message of the server.
	advertise(ctx context.Context) (io.ReadCloser, error)
	// request sends a message and returns the answer.
	request(ctx context.Context, message []byte) (io.ReadCloser, error)
	close()
}

// gitServer connects by ssh, or returns a server that connects with its first request.
func (f *Fetcher) gitServer(ctx context.Context, u *url.URL, secret credentials, namespace string) (gitServer, error) {
	if u.Scheme == "ssh" {
		return f.dialSSH(ctx, u, secret, namespace)
	}
	c, err := f.client("git", u, secret, namespace != "")
	if err != nil {
		return nil, err
	}
	return &gitWeb{client: c, base: u}, nil
}

// parseGitURL parses https, http and ssh URLs, and user@host:path.
func parseGitURL(text string) (*url.URL, error) {
	const form = "Write it as https://host/path, ssh://user@host/path or user@host:path."
	if !strings.Contains(text, "://") {
		at, p, ok := strings.Cut(text, ":")
		user, host, hasUser := strings.Cut(at, "@")
		if !ok || !hasUser || user == "" || host == "" || p == "" || strings.ContainsAny(at, "/\\") || strings.HasPrefix(p, "-") || strings.HasPrefix(host, "-") {
			return nil, permanent(form, "git.url cannot be read")
		}
		return &url.URL{Scheme: "ssh", User: url.User(user), Host: host, Path: p}, nil
	}

	if scheme, _, _ := strings.Cut(text, "://"); scheme == "https" || scheme == "http" {
		return parseURL("git.url", text)
	}

	u, err := url.Parse(text)
	switch {
	case err != nil:
		return nil, permanent(form, "git.url cannot be read")
	case u.Scheme != "ssh":
		return nil, permanent(form, "git.url has the scheme %.20q", u.Scheme)
	case u.Host == "" || strings.HasPrefix(u.Host, "-"):
		return nil, permanent(form, "git.url names no host")
	}

	if _, password := u.User.Password(); password {
		return nil, permanent("Put it into a Secret, and name that in secretRef.", "git.url contains a password")
	}

	return u, nil
}

// resolve returns the reference that the source names, and its commit.
func (g *gitSession) resolve(ctx context.Context, spec *corev1alpha1.RepositoryGitSource) (name, commit string, err error) {
	if spec.TagSelection != nil {
		return g.selectTag(ctx, *spec.TagSelection)
	}
	if isCommit(spec.Ref) {
		return "", spec.Ref, nil
	}

	wanted := []string{"HEAD"}
	switch branch, ofOrigin := strings.CutPrefix(spec.Ref, "origin/"); {
	case ofOrigin:
		wanted = []string{"refs/heads/" + branch}
	case strings.HasPrefix(spec.Ref, "refs/"):
		wanted = []string{spec.Ref}
	// If a branch and a tag have the same name, the branch wins.
	case spec.Ref != "":
		wanted = []string{"refs/heads/" + spec.Ref, "refs/tags/" + spec.Ref}
	}

	refs, err := g.refs(ctx, wanted)
	if err != nil {
		return "", "", err
	}

	for _, name := range wanted {
		if commit, ok := refs[name]; ok {
			return shortRef(name), commit, nil
		}
	}

	if spec.Ref == "" {
		return "", "", permanent("Name a branch in git.ref.", "the repository is empty, or has no default branch")
	}

	return "", "", permanent("Check git.ref.", "there is no branch or tag %q", spec.Ref)
}

// selectTag returns the highest tag that a selection admits.
func (g *gitSession) selectTag(ctx context.Context, selection corev1alpha1.VersionSelection) (name, commit string, err error) {
	const tags = "refs/tags/"
	refs, err := g.refs(ctx, []string{tags})
	if err != nil {
		return "", "", err
	}

	var names []string
	for _, ref := range slices.Sorted(maps.Keys(refs)) {
		if tag, ok := strings.CutPrefix(ref, tags); ok {
			names = append(names, tag)
		}
	}

	tag, err := versions.Highest(selection, "spec.source.git.tagSelection", names)
	if err != nil {
		return "", "", permanent("", "git.tagSelection: %v", err)
	}

	return tag, refs[tags+tag], nil
}

// shortRef returns the name of a branch or tag for a status.
func shortRef(name string) string {
	for _, prefix := range []string{"refs/heads/", "refs/tags/"} {
		if short, ok := strings.CutPrefix(name, prefix); ok {
			return short
		}
	}
	return name
}

// gitLimit is the error of a commit that is too large. Fetching a part of it would silently offer
// less.
func gitLimit(limit int64) *Error {
	return permanent("Keep packages in a repository of their own, or serve an archive.", "the files of the commit have more than %d bytes, the limit", limit)
}

// gitDamaged is the error of an answer that violates the protocol. It is not permanent, because a
// proxy can have cut the answer.
func gitDamaged(format string, args ...any) *Error {
	return &Error{Details: "the answer of the server cannot be read: " + fmt.Sprintf(format, args...)}
}

package registry

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"

	"github.com/google/go-containerregistry/pkg/authn"
	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/remote/transport"
	"github.com/google/go-containerregistry/pkg/v1/types"

	"lockstep.run/lockstep/internal/limits"
)

// session talks to one repository with the credentials of one pull. It begins
// to with the first request: what the store holds needs no registry.
type session struct {
	p       *Puller
	repo    name.Repository
	secrets *secrets

	client  *http.Client
	guard   *guard
	release []func()
}

func (p *Puller) newSession(repo name.Repository) *session {
	return &session{p: p, repo: repo, secrets: &secrets{}}
}

// end gives back what begin took, after all requests were answered: the next pull
// may use the connections.
func (s *session) end() {
	if s.guard != nil {
		s.p.guards.put(s.guard)
		s.guard = nil
	}
	s.close()
}

// close gives back what begin took and ends the connections: after a failure
// nobody knows what they are good for.
func (s *session) close() {
	if s.guard != nil {
		s.guard.close()
		s.guard = nil
	}
	for _, release := range s.release {
		release()
	}
	s.release = nil
}

// begin waits for a slot of the host and logs in.
func (s *session) begin(ctx context.Context) error {
	if s.client != nil {
		return nil
	}
	if s.p.access.Offline {
		return failf(ReasonNotCached, "Pull it once with another imagePullPolicy, by a manager that keeps its --cache-dir.",
			"no registry is asked with imagePullPolicy Never, and the cache of the manager does not hold it")
	}
	for _, acquire := range []func() (func(), error){
		func() (func(), error) { return s.p.hosts.acquire(ctx, s.repo.RegistryStr()) },
		func() (func(), error) { return s.p.pulls.acquire(ctx) },
	} {
		release, err := acquire()
		if err != nil {
			return err
		}
		s.release = append(s.release, release)
	}
	guard, err := s.p.guardOf(s.repo.RegistryStr())
	if err != nil {
		return err
	}
	s.guard = guard
	auth, err := s.credentials(ctx)
	if err != nil {
		return err
	}
	agent := transport.NewUserAgent(guard, s.p.opts.UserAgent)
	rt, err := transport.NewWithContext(ctx, s.repo.Registry, auth, agent, []string{s.repo.Scope(transport.PullScope)})
	if err != nil {
		return err
	}
	s.client = &http.Client{Transport: rt, CheckRedirect: checkRedirect}
	return nil
}

// credentials asks the keychain and notes what must not appear in a message.
func (s *session) credentials(ctx context.Context) (authn.Authenticator, error) {
	auth, err := authn.Resolve(ctx, s.p.keychain(), s.repo)
	if err != nil {
		return nil, failf(ReasonUnauthorized, "Check the Docker config or the pull secret.", "the credentials for %s cannot be read", s.repo.RegistryStr())
	}
	if auth == authn.Anonymous {
		return auth, nil
	}
	config, err := authn.Authorization(ctx, auth)
	if err != nil {
		return nil, failf(ReasonUnauthorized, "Check the Docker config or the pull secret.", "the credentials for %s cannot be read", s.repo.RegistryStr())
	}
	for _, v := range []string{config.Password, config.Auth, config.IdentityToken, config.RegistryToken} {
		if len(v) >= 4 {
			s.secrets.values = append(s.secrets.values, v)
		}
	}
	return authn.FromConfig(*config), nil
}

var manifestTypes = strings.Join([]string{
	string(types.OCIManifestSchema1), string(types.DockerManifestSchema2),
	string(types.OCIImageIndex), string(types.DockerManifestList),
}, ",")

// request sends one request below the repository.
func (s *session) request(ctx context.Context, method, kind, id string) (*http.Response, error) {
	if err := s.begin(ctx); err != nil {
		return nil, err
	}
	u := url.URL{
		Scheme: s.repo.Scheme(), Host: s.repo.RegistryStr(),
		Path: fmt.Sprintf("/v2/%s/%s/%s", s.repo.RepositoryStr(), kind, id),
	}
	r, err := http.NewRequestWithContext(ctx, method, u.String(), nil)
	if err != nil {
		return nil, err
	}
	if kind == "manifests" {
		r.Header.Set("Accept", manifestTypes)
	}
	resp, err := s.client.Do(r)
	if err != nil {
		return nil, err
	}
	if err := transport.CheckError(resp, http.StatusOK); err != nil {
		_ = resp.Body.Close()
		return nil, err
	}
	return resp, nil
}

// head asks for the digest of a tag. No digest and no error: the registry does
// not tell.
func (s *session) head(ctx context.Context, tag string) (v1.Hash, error) {
	resp, err := s.request(ctx, http.MethodHead, "manifests", tag)
	if err != nil {
		return v1.Hash{}, err
	}
	_ = resp.Body.Close()
	h, err := v1.NewHash(resp.Header.Get("Docker-Content-Digest"))
	if err != nil {
		return v1.Hash{}, nil
	}
	return h, nil
}

// manifest downloads a manifest by tag or digest.
func (s *session) manifest(ctx context.Context, id string) ([]byte, error) {
	resp, err := s.request(withBodyLimit(ctx, limits.ImageManifestBytes), http.MethodGet, "manifests", id)
	if err != nil {
		return nil, err
	}
	defer func() { _ = resp.Body.Close() }()
	return io.ReadAll(resp.Body)
}

// blob downloads a blob into w and checks size and digest.
func (s *session) blob(ctx context.Context, d v1.Descriptor, w io.Writer) error {
	resp, err := s.request(withBodyLimit(ctx, d.Size), http.MethodGet, "blobs", d.Digest.String())
	if err != nil {
		return err
	}
	defer func() { _ = resp.Body.Close() }()
	if n := resp.ContentLength; n >= 0 && n != d.Size {
		return failf(ReasonInvalidImage, "", "the layer %s has %d bytes, its manifest says %d", d.Digest, n, d.Size)
	}
	hasher, err := v1.Hasher(d.Digest.Algorithm)
	if err != nil {
		return failf(ReasonInvalidImage, "", "the digest %s is of an unknown kind", d.Digest)
	}
	n, err := io.Copy(io.MultiWriter(w, hasher), resp.Body)
	if err != nil {
		return err
	}
	if n != d.Size {
		return failf(ReasonInvalidImage, "", "the layer %s has %d bytes, its manifest says %d", d.Digest, n, d.Size)
	}
	return compare(d.Digest, hasher.Sum(nil))
}

// content is a manifest or an index. What it is, its content says: the digest
// covers that, and not the registry's headers.
type content struct {
	SchemaVersion int             `json:"schemaVersion"`
	MediaType     types.MediaType `json:"mediaType"`
	Manifests     []v1.Descriptor `json:"manifests"`
	Layers        []v1.Descriptor `json:"layers"`
	Config        *v1.Descriptor  `json:"config"`
}

func parseContent(data []byte) (*content, error) {
	var c content
	if err := json.Unmarshal(data, &c); err != nil {
		return nil, failf(ReasonInvalidImage, "", "the manifest is no JSON object of the expected form")
	}
	isIndex := c.MediaType.IsIndex()
	switch {
	case c.SchemaVersion == 1:
		return nil, failf(ReasonInvalidImage, "Push the image again with a current tool.", "the manifest has the schema version 1")
	case len(c.Manifests) > 0 && (len(c.Layers) > 0 || c.Config != nil):
		return nil, failf(ReasonInvalidImage, "", "the manifest is an index and an image at the same time")
	case c.MediaType != "" && !isIndex && !c.MediaType.IsImage():
		return nil, failf(ReasonInvalidImage, "", "the manifest has the media type %.100q, which is no image", c.MediaType)
	case isIndex && len(c.Manifests) == 0:
		return nil, failf(ReasonInvalidImage, "", "the index lists no image")
	case !isIndex && c.MediaType != "" && len(c.Manifests) > 0, isIndex && len(c.Layers) > 0:
		return nil, failf(ReasonInvalidImage, "", "the media type %s contradicts the content of the manifest", c.MediaType)
	}
	return &c, nil
}

// choose picks an image of an index: linux/amd64, else the first. Package
// images hold no programs, so the platform says nothing about them.
func (c *content) choose() v1.Descriptor {
	images := make([]v1.Descriptor, 0, len(c.Manifests))
	for _, d := range c.Manifests {
		if p := d.Platform; p == nil || p.OS != "unknown" {
			images = append(images, d)
		}
	}
	for _, d := range images {
		if p := d.Platform; p != nil && p.OS == "linux" && p.Architecture == "amd64" {
			return d
		}
	}
	if len(images) > 0 {
		return images[0]
	}
	return c.Manifests[0]
}

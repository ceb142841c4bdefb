package registry

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/google/go-containerregistry/pkg/authn"
	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/remote/transport"
	"github.com/google/go-containerregistry/pkg/v1/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/util/retry"

	"lockstep.run/lockstep/internal/limits"
)

// session sends the requests of one pull to one repository. It connects with the first request.
type session struct {
	p     *Puller
	repo  name.Repository
	store view
	// secrets are the texts that messages must not contain.
	secrets []string

	client  *http.Client
	guard   *guard
	release func()
}

// close gives up the place among concurrent pulls. It can be called again.
func (s *session) close() {
	if s.release != nil {
		s.release()
	}
}

// start waits for the limit on concurrent pulls and authenticates.
func (s *session) start(ctx context.Context) error {
	if s.client != nil {
		return nil
	}
	if s.p.access.Offline {
		return failf(ReasonNotCached, "Pull it once with another imagePullPolicy, by a manager that keeps its --cache-dir.",
			"no registry is asked with imagePullPolicy Never, and the cache of the manager does not hold it")
	}

	var err error
	if s.release, err = s.p.pulls.Acquire(ctx, s.p.access.Namespace, 1); err != nil {
		return err
	}
	if s.guard, err = s.p.guardOf(s.repo.RegistryStr()); err != nil {
		return failf(ReasonLocal, bundleRemedy, "%v", err)
	}

	auth, err := s.credentials(ctx)
	if err != nil {
		return failf(ReasonUnauthorized, "Check the Docker config or the pull secret.", "the credentials for %s cannot be read", s.repo.RegistryStr())
	}

	agent := transport.NewUserAgent(s.guard, s.p.opts.UserAgent)
	return retry.OnError(failureBackoff, failed, func() error {
		rt, err := transport.NewWithContext(ctx, s.repo.Registry, auth, agent, []string{s.repo.Scope(transport.PullScope)})
		if err == nil {
			s.client = &http.Client{Transport: rt, CheckRedirect: checkRedirect}
		}
		return err
	})
}

// failureBackoff repeats requests that a registry fails, so that one of them does not cost the
// whole pull.
var failureBackoff = wait.Backoff{Steps: 3, Duration: 200 * time.Millisecond, Factor: 5}

// failed reports whether a registry, or a proxy in front of it, failed to serve a request, as
// happens during a restart.
func failed(err error) bool {
	var response *transport.Error
	if !errors.As(err, &response) {
		return false
	}
	switch response.StatusCode {
	case http.StatusInternalServerError, http.StatusBadGateway, http.StatusServiceUnavailable, http.StatusGatewayTimeout:
		return true
	}
	return false
}

// credentials returns the credentials, and records the texts that messages must not contain.
func (s *session) credentials(ctx context.Context) (authn.Authenticator, error) {
	auth, err := authn.Resolve(ctx, s.p.keychain(), s.repo)
	if err != nil || auth == authn.Anonymous {
		return auth, err
	}

	config, err := authn.Authorization(ctx, auth)
	if err != nil {
		return nil, err
	}

	for _, v := range []string{config.Password, config.Auth, config.IdentityToken, config.RegistryToken} {
		if len(v) >= 4 {
			s.secrets = append(s.secrets, v)
		}
	}

	return authn.FromConfig(*config), nil
}

// manifestTypes are the accepted media types. Without them, some registries convert manifests
// to an old form, whose digest differs.
var manifestTypes = strings.Join([]string{
	string(types.OCIManifestSchema1), string(types.DockerManifestSchema2),
	string(types.OCIImageIndex), string(types.DockerManifestList),
}, ",")

// request sends a request for a manifest or a blob of the repository.
func (s *session) request(ctx context.Context, method, kind, id string) (*http.Response, error) {
	u := url.URL{Path: fmt.Sprintf("/v2/%s/%s/%s", s.repo.RepositoryStr(), kind, id)}
	accept := ""
	if kind == "manifests" {
		accept = manifestTypes
	}
	return s.do(ctx, method, u.String(), accept)
}

// do sends a request to the registry, and starts the session if needed. It repeats the request if the
// registry fails.
func (s *session) do(ctx context.Context, method, pathAndQuery, accept string) (resp *http.Response, err error) {
	if err := s.start(ctx); err != nil {
		return nil, err
	}
	address := s.repo.Scheme() + "://" + s.repo.RegistryStr() + pathAndQuery
	err = retry.OnError(failureBackoff, failed, func() error {
		resp, err = s.send(ctx, method, address, accept) //nolint:bodyclose // The caller closes it.
		return err
	})
	return resp, err
}

// send sends a request once. Every status other than 200 is an error.
func (s *session) send(ctx context.Context, method, address, accept string) (*http.Response, error) {
	r, err := http.NewRequestWithContext(ctx, method, address, nil)
	if err != nil {
		return nil, err
	}
	if accept != "" {
		r.Header.Set("Accept", accept)
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

// head returns the digest of a tag, or zero if the registry does not send it.
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

// manifest downloads a manifest by tag or digest, without verifying it.
func (s *session) manifest(ctx context.Context, id string) ([]byte, error) {
	resp, err := s.request(withBodyLimit(ctx, limits.ImageManifestBytes), http.MethodGet, "manifests", id)
	if err != nil {
		return nil, err
	}
	defer func() { _ = resp.Body.Close() }()
	return io.ReadAll(resp.Body)
}

// blob downloads a blob and verifies its size and digest. The declared size bounds the download, so
// a layer cannot be larger than the room that was reserved for it.
func (s *session) blob(ctx context.Context, d v1.Descriptor, w io.Writer) error {
	resp, err := s.request(withBodyLimit(ctx, d.Size), http.MethodGet, "blobs", d.Digest.String())
	if err != nil {
		return err
	}

	defer func() { _ = resp.Body.Close() }()
	wrongSize := func(n int64) error {
		return failf(ReasonInvalidImage, "", "the layer %s has %d bytes, but its manifest declares %d", d.Digest, n, d.Size)
	}

	if n := resp.ContentLength; n >= 0 && n != d.Size {
		return wrongSize(n)
	}

	hasher, err := v1.Hasher(d.Digest.Algorithm)
	if err != nil {
		return failf(ReasonInvalidImage, "", "the digest %s is of an unknown kind", d.Digest)
	}

	n, err := io.Copy(io.MultiWriter(w, hasher), resp.Body)
	switch {
	case err != nil:
		return err
	case n != d.Size:
		return wrongSize(n)
	}

	return compare(d.Digest, hasher.Sum(nil))
}

// content is a manifest or an index. The content that the digest covers decides which, and not the
// headers of the response.
type content struct {
	SchemaVersion int             `json:"schemaVersion"`
	MediaType     types.MediaType `json:"mediaType"`
	Manifests     []v1.Descriptor `json:"manifests"`
	Layers        []v1.Descriptor `json:"layers"`
	Config        *v1.Descriptor  `json:"config"`
}

// decode decodes JSON from a registry. Empty elements of a list take a hundred times as much memory as
// their text, so commas are limited.
func decode(what string, data []byte, into any) error {
	if bytes.Count(data, []byte(",")) > limits.RegistryEntries {
		return failf(ReasonLimit, "", "%s has more than %d entries and fields", what, limits.RegistryEntries)
	}
	if json.Unmarshal(data, into) != nil {
		return undecodable(what)
	}
	return nil
}

// undecodable returns the failure for data from a registry that does not have the expected form.
func undecodable(what string) error {
	return failf(ReasonInvalidImage, "", "%s is not a JSON object of the expected form", what)
}

// parseContent decodes a manifest or an index, and refuses forms that clients understand
// differently.
func parseContent(data []byte) (*content, error) {
	var c content
	if err := decode("the manifest", data, &c); err != nil {
		return nil, err
	}

	isIndex := c.MediaType.IsIndex()
	switch {
	case c.SchemaVersion == 1:
		return nil, failf(ReasonInvalidImage, "Push the image again with a current tool.", "the manifest has the schema version 1")
	// An ambiguous manifest could give another client other content than the checked one.
	case len(c.Manifests) > 0 && (len(c.Layers) > 0 || c.Config != nil):
		return nil, failf(ReasonInvalidImage, "", "the manifest is an index and an image at the same time")
	case c.MediaType != "" && !isIndex && !c.MediaType.IsImage():
		return nil, failf(ReasonInvalidImage, "", "the manifest has the media type %.100q, which is not an image", c.MediaType)
	case isIndex && len(c.Manifests) == 0:
		return nil, failf(ReasonInvalidImage, "", "the index lists no image")
	case !isIndex && c.MediaType != "" && len(c.Manifests) > 0, isIndex && len(c.Layers) > 0:
		return nil, failf(ReasonInvalidImage, "", "the media type %s contradicts the content of the manifest", c.MediaType)
	}

	return &c, nil
}

// choose returns the image for linux/amd64 of an index, or else its first image, because packages
// contain no programs.
func (c *content) choose() v1.Descriptor {
	var first *v1.Descriptor
	for i, d := range c.Manifests {
		p := d.Platform
		switch {
		case p != nil && p.OS == "unknown": // an attestation
		case p != nil && p.OS == "linux" && p.Architecture == "amd64":
			return d
		case first == nil:
			first = &c.Manifests[i]
		}
	}

	if first == nil {
		first = &c.Manifests[0]
	}

	return *first
}

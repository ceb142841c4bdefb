package registry

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"

	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/remote/transport"

	"lockstep.run/lockstep/internal/limits"
	"lockstep.run/lockstep/internal/loader/archive"
)

// Image is a package image.
type Image struct {
	// Ref is the reference that was asked for.
	Ref string
	// Digest is what Ref resolved to, such as sha256:…. Of a multi-platform image
	// it is that of the index.
	Digest string
	// Files of the package. Several callers may share them: they are only read.
	Files archive.Files
}

// Puller pulls images. It may be used by many at the same time.
type Puller struct {
	opts     Options
	insecure map[string]bool
	store    *store
	flights  *flights
	guards   *guards
	hosts    *hostLimiter
	pulls    semaphore
	unpacks  semaphore
	access   Access
}

// NewPuller returns a Puller, or an error where an option cannot be used.
func NewPuller(opts Options) (*Puller, error) {
	opts.setDefaults()
	insecure, err := opts.insecureHosts()
	if err != nil {
		return nil, err
	}
	bundle, err := opts.bundle()
	if err != nil {
		return nil, err
	}
	if _, err := opts.roots(bundle); err != nil {
		return nil, err
	}
	store, err := newStore(opts.CacheDir, opts.CacheBytes, opts.OnCacheError)
	if err != nil {
		return nil, err
	}
	return &Puller{
		opts: opts, insecure: insecure, store: store, flights: &flights{}, guards: &guards{},
		hosts:   newHostLimiter(limits.PullsPerHost),
		pulls:   make(semaphore, limits.PullsInFlight),
		unpacks: make(semaphore, limits.UnpacksInFlight),
	}, nil
}

// Resolve returns the digest that a reference stands for. A reference by digest
// needs no registry. Errors are *PullError, or wrap the cause of ctx.
func (p *Puller) Resolve(ctx context.Context, ref string) (string, error) {
	parsed, err := p.parse(ref)
	if err != nil {
		return "", err
	}
	h, err := p.resolve(ctx, ref, parsed)
	if err != nil {
		return "", err
	}
	return h.String(), nil
}

// Pull returns the package in an image. Errors are *PullError, or wrap the
// cause of ctx.
func (p *Puller) Pull(ctx context.Context, ref string) (*Image, error) {
	parsed, err := p.parse(ref)
	if err != nil {
		return nil, err
	}
	digest, err := p.resolve(ctx, ref, parsed)
	if err != nil {
		return nil, err
	}
	repo := parsed.Context()
	key, err := p.access.key(ctx, repo)
	if err != nil {
		return nil, p.classify(ctx, ref, err, nil)
	}
	image, err := p.flights.do(ctx, repo.Name()+"@"+digest.String()+key, func(ctx context.Context) (*Image, error) {
		return p.fetch(ctx, ref, repo, digest)
	})
	if err != nil {
		return nil, p.classify(ctx, ref, err, nil)
	}
	return &Image{Ref: ref, Digest: digest.String(), Files: image.Files}, nil
}

func (p *Puller) resolve(ctx context.Context, ref string, parsed name.Reference) (v1.Hash, error) {
	if byDigest, ok := parsed.(name.Digest); ok {
		h, err := v1.NewHash(byDigest.DigestStr())
		if err != nil {
			return v1.Hash{}, &PullError{Ref: safeRef(ref), Reason: ReasonInvalidReference, Details: "the digest cannot be read"}
		}
		return h, nil
	}
	ctx, cancel := context.WithTimeoutCause(ctx, p.opts.Timeouts.Pull, errPullTimeout)
	defer cancel()
	s := p.newSession(parsed.Context())
	defer s.close()
	h, err := p.resolveTag(ctx, s, parsed.Identifier())
	if err == nil {
		s.end()
	}
	return h, p.classify(ctx, ref, err, s.secrets)
}

// resolveTag asks by HEAD, which registries do not count against their rate
// limits. Where that is not answered, the manifest itself tells.
func (p *Puller) resolveTag(ctx context.Context, s *session, tag string) (v1.Hash, error) {
	h, err := s.head(ctx, tag)
	var answer *transport.Error
	switch {
	case err == nil && h != v1.Hash{}:
		return h, nil
	case err != nil && !errors.As(err, &answer):
		return v1.Hash{}, err
	case answer != nil && (answer.StatusCode == http.StatusTooManyRequests || answer.StatusCode >= 500):
		return v1.Hash{}, err
	}
	data, err := s.manifest(ctx, tag)
	if err != nil {
		return v1.Hash{}, err
	}
	h, _, err = v1.SHA256(bytes.NewReader(data))
	return h, err
}

// fetch downloads what the store lacks of an image, and unpacks it.
func (p *Puller) fetch(ctx context.Context, ref string, repo name.Repository, digest v1.Hash) (*Image, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, p.opts.Timeouts.Pull, errPullTimeout)
	defer cancel()
	s := p.newSession(repo)
	defer s.close()
	files, err := p.fetchFiles(ctx, s, digest)
	if err != nil {
		return nil, p.classify(ctx, ref, err, s.secrets)
	}
	return &Image{Files: files}, nil
}

func (p *Puller) fetchFiles(ctx context.Context, s *session, digest v1.Hash) (archive.Files, error) {
	manifest, err := p.imageManifest(ctx, s, digest)
	if err != nil {
		return nil, err
	}
	if err := archive.CheckManifest(&v1.Manifest{Layers: manifest.Layers}); err != nil {
		return nil, err
	}
	layers := make([]*os.File, 0, len(manifest.Layers))
	defer func() {
		for _, f := range layers {
			_ = f.Close()
		}
	}()
	for _, d := range manifest.Layers {
		f := p.store.open(d.Digest)
		if f == nil {
			f, err = p.store.put(d.Digest, func(w io.Writer) error { return s.blob(ctx, d, w) })
			if err != nil {
				return nil, err
			}
		}
		layers = append(layers, f)
	}
	s.end() // From here on the registry is not needed.
	return p.unpack(ctx, manifest.Layers, layers)
}

// imageManifest returns the manifest with a digest or, where that is an index,
// the manifest that the index leads to.
func (p *Puller) imageManifest(ctx context.Context, s *session, digest v1.Hash) (*content, error) {
	c, err := p.manifest(ctx, s, digest)
	if err != nil || len(c.Manifests) == 0 {
		return c, err
	}
	d := c.choose()
	if c, err = p.manifest(ctx, s, d.Digest); err != nil {
		return nil, err
	}
	if len(c.Manifests) > 0 {
		return nil, failf(ReasonInvalidImage, "", "the index leads to another index")
	}
	return c, nil
}

func (p *Puller) manifest(ctx context.Context, s *session, digest v1.Hash) (*content, error) {
	f := p.store.open(digest)
	if f == nil {
		var err error
		f, err = p.store.put(digest, func(w io.Writer) error {
			data, err := s.manifest(ctx, digest.String())
			if err != nil {
				return err
			}
			if err := verify(bytes.NewReader(data), digest); err != nil {
				return err
			}
			_, err = w.Write(data)
			return err
		})
		if err != nil {
			return nil, err
		}
	}
	data, err := readAll(f)
	if err != nil {
		return nil, err
	}
	return parseContent(data)
}

// unpack reads the layers, each checked once more while it is read: the bytes
// that were verified are the bytes that are used.
func (p *Puller) unpack(ctx context.Context, descriptors []v1.Descriptor, layers []*os.File) (archive.Files, error) {
	release, err := p.unpacks.acquire(ctx)
	if err != nil {
		return nil, err
	}
	defer release()
	u := archive.NewUnpackerOf(p.opts.Folder)
	for i, f := range layers {
		hasher, err := v1.Hasher(descriptors[i].Digest.Algorithm)
		if err != nil {
			return nil, err
		}
		r := io.TeeReader(f, hasher)
		if err := u.Layer(ctx, r); err != nil {
			return nil, err
		}
		if _, err := io.Copy(io.Discard, r); err != nil {
			return nil, err
		}
		if err := compare(descriptors[i].Digest, hasher.Sum(nil)); err != nil {
			return nil, err
		}
	}
	return u.Files(), nil
}

func sizeText(n int) string { return fmt.Sprintf("%d bytes", n) }

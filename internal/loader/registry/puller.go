package registry

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"

	"github.com/google/go-containerregistry/pkg/authn"
	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/remote/transport"
	"k8s.io/apimachinery/pkg/util/cache"

	"lockstep.run/lockstep/internal/kube/queueing"
	"lockstep.run/lockstep/internal/limits"
	"lockstep.run/lockstep/internal/loader/archive"
	"lockstep.run/lockstep/internal/loader/imagepolicy"
)

const (
	registryConnections = 32     // registries whose connections are kept
	verifiedKept        = 10_000 // verifications that succeeded, by digest and policy
)

// Image is a package image.
type Image struct {
	Ref string
	// Digest that Ref resolved to, such as sha256:…; for a multi-platform image that of the index.
	Digest string
	// Files of the package, read-only: callers may share them.
	Files archive.Files
}

// Access is how one image is pulled.
type Access struct {
	// Namespace of the object that names the image, whose share the pull takes; empty for cluster-scoped ones.
	Namespace string
	// Keychain has precedence over that of the Puller; may be nil.
	Keychain authn.Keychain
	// Own means that the keychain of the Puller does not count, and that the cache answers with what came from the same
	// repository, once the registry has said that these credentials may read it.
	Own     bool
	Offline bool
	// Exact means that an administrator named the registry for all namespaces: no override changes the reference, and it can be at a
	// private address.
	Exact bool
	// Selection of files, if set, replaces Options.Folder.
	Selection *archive.Selection
	// Room is that of a package, as archive.Selection has it.
	Room int64
	// Admit, if set, is called once all is downloaded, before it is unpacked into memory; not where another caller unpacks the same. It
	// may wait for longer than a pull may take. It fails where its caller has given up.
	Admit func() error
}

// namespaced reports whether the access has the limits of one for a namespace.
func (a Access) namespaced() bool { return a.Namespace != "" && !a.Exact }

// errNotAdmitted is that of a caller that has given up; others that wait for the same begin again.
var errNotAdmitted = errors.New("the pull was given up")

// Puller pulls images. It is safe for concurrent use.
type Puller struct {
	opts     Options
	insecure map[string]bool
	// named are registries that may be at private addresses for all.
	named   map[string]bool
	store   *store
	flights *flights[archive.Files]
	guards  *cache.LRUExpireCache
	// pulls are the sessions with registries at a time, unpacks what is in memory, and disk the bytes of downloads that are open.
	pulls, unpacks, disk *queueing.Semaphore
	// verifications are those that succeeded, and checks those underway.
	verifications *cache.LRUExpireCache
	checks        *flights[imagepolicy.Verified]
	access        Access
}

// NewPuller returns a Puller, or an error for an invalid option.
func NewPuller(opts Options) (*Puller, error) {
	opts.setDefaults()
	insecure, err := opts.insecureHosts()
	if err != nil {
		return nil, err
	}
	if err := opts.bundles().err(); err != nil {
		return nil, err
	}
	store, err := newStore(opts.CacheDir, opts.CacheBytes, opts.OnCacheError)
	if err != nil {
		return nil, err
	}
	return &Puller{
		opts: opts, insecure: insecure, named: opts.named(), store: store, guards: cache.NewLRUExpireCache(registryConnections),
		flights: newFlights[archive.Files](),
		pulls:   queueing.NewSemaphore(limits.PullsInFlight, limits.PullsOfNamespace),
		unpacks: queueing.NewSemaphore(limits.UnpacksInFlight, limits.UnpacksInFlight),
		disk:    NewDisk(),

		verifications: cache.NewLRUExpireCache(verifiedKept),
		checks:        newFlights[imagepolicy.Verified](),
	}, nil
}

// NewDisk returns an account of downloads on the disk, in bytes.
func NewDisk() *queueing.Semaphore {
	return queueing.NewSemaphore(limits.DownloadsBytes, limits.DownloadsOfNamespaceBytes)
}

// Disk is the account of downloads on the disk, which others share.
func (p *Puller) Disk() *queueing.Semaphore { return p.disk }

// With returns a Puller with that access. Everything else is shared with p.
func (p *Puller) With(access Access) *Puller {
	own := *p
	own.access = access
	return &own
}

func (p *Puller) keychain() authn.Keychain {
	switch {
	case p.access.Own && p.access.Keychain == nil:
		return authn.NewMultiKeychain() // anonymous
	case p.access.Own:
		return p.access.Keychain
	case p.access.Keychain == nil:
		return p.opts.Keychain
	}
	return authn.NewMultiKeychain(p.access.Keychain, p.opts.Keychain)
}

// Resolve returns the digest of a reference. Errors are *PullError, or wrap the cause of ctx.
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

// Pull returns the package in an image. Errors are *PullError, or wrap the cause of ctx.
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
	key += fmt.Sprintf(" %p %d", p.access.Selection, p.access.Room)
	files, err := p.flights.do(ctx, repo.Name()+"@"+digest.String()+key, func(ctx context.Context) (files archive.Files, err error) {
		err = p.withSession(ctx, ref, repo, func(ctx context.Context, s *session) error {
			if _, asked := parsed.(name.Tag); p.access.Own && !asked {
				if err := s.confirm(ctx, digest); err != nil {
					return err
				}
			}
			files, err = s.fetch(ctx, digest)
			return err
		})
		return files, err
	})
	if errors.Is(err, errNotAdmitted) && ctx.Err() == nil {
		return p.Pull(ctx, ref)
	}
	if err != nil {
		return nil, p.classify(ctx, ref, err, nil)
	}
	return &Image{Ref: ref, Digest: digest.String(), Files: files}, nil
}

// key separates work with different credentials and rights to connect, and that of namespaces: one would wait with the share of another.
// Errors of the keychain are reported where it is used.
func (a Access) key(ctx context.Context, repo name.Repository) (string, error) {
	connects := fmt.Sprintf(" %s %t %t", a.Namespace, a.Exact, a.Own)
	if a.Offline {
		return " offline" + connects, nil
	}
	if a.Keychain == nil {
		return connects, nil
	}
	auth, err := authn.Resolve(ctx, a.Keychain, repo)
	if err != nil || auth == authn.Anonymous {
		return connects, nil
	}
	config, err := authn.Authorization(ctx, auth)
	if err != nil {
		return "", err
	}
	return fmt.Sprintf(" %x", sha256.Sum256(fmt.Appendf(nil, "%q", *config))) + connects, nil
}

func (p *Puller) resolve(ctx context.Context, ref string, parsed name.Reference) (h v1.Hash, err error) {
	if byDigest, ok := parsed.(name.Digest); ok {
		if h, err = v1.NewHash(byDigest.DigestStr()); err != nil {
			return h, &PullError{Ref: safeRef(ref), Reason: ReasonInvalidReference, Details: "the digest cannot be read"}
		}
		return h, nil
	}
	err = p.withSession(ctx, ref, parsed.Context(), func(ctx context.Context, s *session) error {
		h, err = s.resolve(ctx, parsed.Identifier())
		return err
	})
	return h, err
}

// withSession runs use with a session that ends within the timeout of a pull.
func (p *Puller) withSession(ctx context.Context, ref string, repo name.Repository, use func(context.Context, *session) error) error {
	ctx, cancel := context.WithTimeoutCause(ctx, p.opts.Timeouts.Pull, errPullTimeout)
	defer cancel()
	s := &session{p: p, repo: repo, store: p.store.shared(), secrets: &secrets{}}
	if p.access.Own {
		s.store = p.store.of(repo.Name())
	}
	defer s.close()
	err := use(ctx, s)
	if err != nil && s.guard != nil {
		p.guards.Remove(s.guard.key) // the next pull begins with new connections
	}
	return p.classify(ctx, ref, err, s.secrets)
}

// resolve sends a HEAD, which rate limits do not count, or else downloads the manifest.
func (s *session) resolve(ctx context.Context, tag string) (v1.Hash, error) {
	h, err := s.head(ctx, tag)
	var response *transport.Error
	switch {
	case err == nil && h != v1.Hash{}:
		return h, nil
	case err != nil && !errors.As(err, &response):
		return h, err
	case response != nil && (response.StatusCode == http.StatusTooManyRequests || response.StatusCode >= 500):
		return h, err
	}
	data, err := s.manifest(ctx, tag)
	if err != nil {
		return h, err
	}
	h, _, err = v1.SHA256(bytes.NewReader(data))
	return h, err
}

// confirm asks the registry whether the credentials may read an image that is in the cache. It proves nothing about what came from
// another repository, whose registry may say anything: the cache of Own is one for each.
func (s *session) confirm(ctx context.Context, digest v1.Hash) error {
	if !s.store.has(digest) {
		return nil // it is downloaded with them
	}
	if s.p.access.Offline {
		return failf(ReasonNotCached, "Choose another imagePullPolicy.",
			"no registry is asked with imagePullPolicy Never, and the manager has images of namespaces confirmed by theirs (--shared-pull-secrets=cluster)")
	}
	_, err := s.resolve(ctx, digest.String())
	return err
}

func (s *session) fetch(ctx context.Context, digest v1.Hash) (archive.Files, error) {
	manifest, err := s.imageManifest(ctx, digest)
	if err != nil {
		return nil, err
	}
	if err := archive.CheckManifest(&v1.Manifest{Layers: manifest.Layers}); err != nil {
		return nil, err
	}
	release, err := s.reserve(ctx, manifest.Layers)
	if err != nil {
		return nil, err
	}
	defer release() // once they are closed: a layer that the cache drops meanwhile is still on the disk
	layers := make([]*os.File, 0, len(manifest.Layers))
	defer func() {
		for _, f := range layers {
			_ = f.Close()
		}
	}()
	for _, d := range manifest.Layers {
		f, err := s.store.get(d.Digest, func(w io.Writer) error { return s.blob(ctx, d, w) })
		if err != nil {
			return nil, err
		}
		layers = append(layers, f)
	}
	s.close()
	if s.p.access.Admit != nil {
		if err := s.p.access.Admit(); err != nil {
			return nil, fmt.Errorf("%w: %w", errNotAdmitted, err)
		}
		ctx = context.WithoutCancel(ctx) // the time of the pull is over or not: what remains is bounded by its size
	}
	return s.p.unpack(ctx, manifest.Layers, layers)
}

// reserve reserves room on the disk for all layers of an image at once: a pull that had some would wait for others that wait for it. What
// has to be downloaded waits for the registry first, as all others do.
func (s *session) reserve(ctx context.Context, layers []v1.Descriptor) (release func(), err error) {
	var bytes int64
	for _, d := range layers {
		bytes += d.Size
		if !s.store.has(d.Digest) {
			if err := s.begin(ctx); err != nil {
				return nil, err
			}
		}
	}
	return s.p.disk.Acquire(ctx, s.p.access.Namespace, bytes)
}

// imageManifest returns the manifest with a digest or, if that is an index, of one image in it. An index can lead to another
// one, as BuildKit writes them, but no further.
func (s *session) imageManifest(ctx context.Context, digest v1.Hash) (*content, error) {
	for range 3 {
		c, err := s.storedManifest(ctx, digest)
		if err != nil || len(c.Manifests) == 0 {
			return c, err
		}
		digest = c.choose().Digest
	}
	return nil, failf(ReasonInvalidImage, "Push the image again with another tool.", "the index leads to an index that leads to a third one")
}

func (s *session) storedManifest(ctx context.Context, digest v1.Hash) (*content, error) {
	f, err := s.store.get(digest, func(w io.Writer) error {
		data, err := s.manifest(ctx, digest.String())
		if err == nil {
			err = verify(bytes.NewReader(data), digest)
		}
		if err == nil {
			_, err = w.Write(data)
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	data, err := readAll(f)
	if err != nil {
		return nil, err
	}
	return parseContent(data)
}

func (p *Puller) selection() archive.Selection {
	selection := archive.Selection{Folder: p.opts.Folder}
	if p.access.Selection != nil {
		selection = *p.access.Selection
	}
	if selection.Bytes == 0 {
		selection.Bytes = p.opts.PackageBytes
	}
	selection.Room = p.access.Room
	return selection
}

// unpack verifies the layers while it reads them, so that the verified bytes are those that are used.
func (p *Puller) unpack(ctx context.Context, descriptors []v1.Descriptor, layers []*os.File) (archive.Files, error) {
	release, err := p.unpacks.Acquire(ctx, p.access.Namespace, 1)
	if err != nil {
		return nil, err
	}
	defer release()
	u := archive.NewUnpackerOf(p.selection())
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
